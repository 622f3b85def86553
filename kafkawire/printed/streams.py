"""Streams that Wireshark and tshark follow: what both sides of a connection sent, as text.

"Follow TCP Stream" of Wireshark, shown as hex dump, C arrays or YAML and saved or copied, and
`tshark -q -z follow,tcp,hex,0`, `raw` and `yaml`; of streams that they decrypt (`follow,tls`), too.
The side that is indented, or is `peer1`, is the second one. Bytes that are missing are a problem,
and lost in the connection.

    00000000  00 00 00 24 00 12     0000002400120003     char peer0_0[] = {     - packet: 4
        00000000  00 00 02 4c           0000024c00000001   0x00, 0x00, ...        peer: 0
    hex                             raw                  c                      yaml
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from .conversation import UNKNOWN, Conversation, Endpoint, endpoint
from .dump_rows import dump_row
from .splitter import PrintedPacket, Splitter
from .times import seconds_ns

FOLLOW: Final = re.compile(r"\s*={20,}\s+Follow: (?:tcp|tls),(?P<form>\w+)")
"""How tshark begins."""
NODE: Final = re.compile(r"Node (?P<side>[01]): (?P<host>\S+):(?P<port>\d{1,5})\s*")
RULE: Final = re.compile(r"={20,}\s*")
YAML: Final = re.compile(r"\s*peers:\s+- peer: \d\s")
ARRAY: Final = re.compile(r"\s*(?:/\*[^*]{0,40}\*/\s*)?char peer(?P<side>[01])_\d+\[\] = \{")
_ROWS: Final = r"(?:{}[0-9A-F]{{8}}  (?:[0-9a-f]{{2}} ){{4}}[^\n]*\n)+{}0{{8}}  [0-9a-f]"
_INDENT: Final = r"(?:\t| {4})"
SIDES: Final = re.compile(f"{_ROWS.format('', _INDENT)}|{_ROWS.format(_INDENT, '')}")
"""How a hex dump of both sides begins: one of them is indented."""

MAX_LINE: Final = 1 << 22
"""Bytes of a line at most: `raw` has the bytes of a packet on one."""
MAX_ROW: Final = 1 << 10
"""Characters of a line of a dump at most."""
MAX_BYTES: Final = 1 << 20
"""Bytes of a part at most that is on several lines."""
HELD: Final = 1 << 12
"""Bytes of lines of a dump that become a packet."""


class Part(NamedTuple):
    """Bytes of a side. offset: of the first one, among those of the side; None if it is the next.

    problem: why there are none.
    """

    side: int
    data: bytes
    offset: int | None = None
    time_ns: int | None = None
    problem: str = ""


class Form(Protocol):
    """A form of streams: lines in, bytes of sides out. sides: those that it has so far."""

    sides: list[Endpoint]

    def line(self, text: str) -> Iterator[Part]:
        """Handle a line."""

    def finish(self) -> Iterator[Part]:
        """Handle the end of the stream."""


class _Hex:
    """Lines of dumps; the offsets count the bytes of a side."""

    def __init__(self) -> None:
        self.sides = list(UNKNOWN)
        self._held: Part | None = None

    def line(self, text: str) -> Iterator[Part]:
        row = dump_row(text) if len(text) <= MAX_ROW else None
        if row is None or not row.data:
            return
        side, held = int(text[:1].isspace()), self._held
        if held is not None:
            end = (held.offset or 0) + len(held.data)
            if held.side == side and end == row.offset and len(held.data) < HELD:
                self._held = held._replace(data=held.data + row.data)
                return
            yield held
        self._held = Part(side, row.data, row.offset)

    def finish(self) -> Iterator[Part]:
        if self._held is not None:
            yield self._held
        self._held = None


class _Raw:
    """A line for each packet, in hexadecimal."""

    def __init__(self) -> None:
        self.sides = list(UNKNOWN)

    def line(self, text: str) -> Iterator[Part]:
        digits = text.strip()
        if not digits:
            return
        side = int(text[:1].isspace())
        try:
            yield Part(side, bytes.fromhex(digits))
        except ValueError:
            yield Part(side, b"", problem=f"no hexadecimal digits: {digits[:40]}")

    def finish(self) -> Iterator[Part]:
        yield from ()


class _Arrays:
    """Arrays of C."""

    BYTE: Final = re.compile(r"0x([0-9a-f]{2})\b")

    def __init__(self) -> None:
        self.sides = list(UNKNOWN)
        self._side: int | None = None
        self._data = bytearray()

    def line(self, text: str) -> Iterator[Part]:
        if match := ARRAY.match(text):
            yield from self.finish()
            self._side, text = int(match["side"]), text[match.end() :]
        if self._side is None:
            return
        body, is_end, _ = text.partition("}")
        self._data += bytes.fromhex("".join(self.BYTE.findall(body)))
        if is_end or len(self._data) > MAX_BYTES:
            side = self._side
            yield from self.finish()
            self._side = None if is_end else side

    def finish(self) -> Iterator[Part]:
        if self._side is not None and self._data:
            yield Part(self._side, bytes(self._data))
        self._side, self._data = None, bytearray()


class _Yaml:
    """Mappings, of peers and then of packets, whose data is in base64."""

    KEY: Final = re.compile(r"(?P<indent> *)(?P<item>- )?(?P<key>\w{1,20}):(?P<value>.*)")
    SECONDS: Final = re.compile(r"(\d{1,10})\.(\d{1,9})")
    PORT: Final = re.compile(r"\d{1,5}")

    def __init__(self) -> None:
        self.sides = list(UNKNOWN)
        self._keys: dict[str, str] = {}
        self._base64: list[str] = []
        self._size = 0

    def line(self, text: str) -> Iterator[Part]:
        match = self.KEY.fullmatch(text)
        if match is None:
            if self._size <= MAX_BYTES:
                self._base64.append(text.strip())
                self._size += len(text)
            return
        if match["item"] or not match["indent"]:
            yield from self.finish()
        self._keys[match["key"]] = match["value"].strip()

    def finish(self) -> Iterator[Part]:
        keys, digits = self._keys, "".join(self._base64)
        self._keys, self._base64, self._size = {}, [], 0
        side = int(keys.get("peer") == "1")
        if "host" in keys and self.PORT.fullmatch(keys.get("port", "")):
            self.sides[side] = endpoint(keys["host"], keys["port"], side)
        if "data" not in keys:
            return
        time = self.SECONDS.fullmatch(keys.get("timestamp", ""))
        time_ns = None if time is None else seconds_ns(time[1], time[2])
        try:
            data = base64.b64decode(digits, validate=True)
        except ValueError as error:  # not ASCII, or binascii.Error
            yield Part(side, b"", problem=f"invalid base64: {error}")
            return
        yield Part(side, data, time_ns=time_ns)


FORMS: Final[dict[str, Callable[[], Form]]] = {
    "hex": _Hex,
    "raw": _Raw,
    "yaml": _Yaml,
    "c": _Arrays,
}


def form_of(head: bytes) -> str | None:
    """Return the form of the stream that text is; None if it is none. head: its beginning."""
    text = head.decode("latin-1")
    if match := FOLLOW.match(text):
        return match["form"] if match["form"] in FORMS else None
    for form, pattern in (("yaml", YAML), ("c", ARRAY), ("hex", SIDES)):
        if pattern.match(text):
            return form
    return None


def lossy_form(head: bytes) -> str:
    """Return the form of a stream that does not have all bytes, such as `ascii`; "" for others."""
    match = FOLLOW.match(head.decode("latin-1"))
    return match["form"] if match and match["form"] not in FORMS else ""


class FollowedStream(Splitter):
    """Splits streams of a form into packets."""

    def __init__(self, form: str) -> None:
        self._form = form
        super().__init__(MAX_LINE)
        self._count = 0
        self._begin()

    def _begin(self) -> None:
        self._count += 1
        self._reader = FORMS[self._form]()
        self._conversation: Conversation | None = None

    def _end(self, position: int) -> Iterator[PrintedPacket]:
        yield from self._send(self._reader.finish(), position)

    def _handle(self, position: int, text: str) -> Iterator[PrintedPacket]:
        if RULE.fullmatch(text):
            yield from self._send(self._reader.finish(), position)
            self._begin()
        elif match := NODE.fullmatch(text):
            side = int(match["side"])
            self._reader.sides[side] = endpoint(match["host"], match["port"], side)
        elif not text.startswith(("Follow: ", "Filter: ")):
            yield from self._send(self._reader.line(text), position)

    def _send(self, parts: Iterator[Part], position: int) -> Iterator[PrintedPacket]:
        for part in parts:
            if self._conversation is None:
                self._conversation = Conversation(self._count, tuple(self._reader.sides))
            sent = self._conversation.sent[part.side]
            missing = 0 if part.offset is None else part.offset - sent
            problem = part.problem
            if missing:
                problem = f"offset {part.offset:#x} does not follow {sent:#x}"
            if problem:
                yield PrintedPacket(b"", None, None, problem, position)
            if missing > 0:
                self._conversation.lose(part.side, missing)
            if missing >= 0:
                yield from self._conversation.send(part.side, part.data, part.time_ns, position)
