"""Finds out which side of a connection is the client, or which other protocol it has.

A side that is known from a SYN or a port is checked, any other is proven by the content. All
searches of a connection together are linear in its bytes.

    held bytes of both sides --a proven request--> client
       |--they begin like another protocol, or there are too many--> protocol
       `--responses that can be nothing else, and no byte of the other side--> client
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, final

from librt.strings import read_i32_be

from ...primitives import Limits
from ..frames.apis import KAFKA_APIS, Apis
from ..frames.detection import Confidence, check_request, looks_like_request, scan_request
from ..frames.framing import Stream
from ..frames.other_protocols import (
    CONNECT_BYTES,
    has_tls_records,
    may_be_zookeeper,
    signature,
)
from .inference import walk_responses

SIZE: Final = 4
HEAD: Final = 10
"""Bytes of a request header up to the length of its client id."""

MAX_HELD: Final = 1 << 20
"""Bytes held of a direction that is undetected or out of sync; older ones are given up."""


MAX_TOKEN: Final = 1 << 16
"""Bytes of a SASL token that is recognised without its SaslHandshake."""

GSSAPI: Final = re.compile(
    rb"\x60(?:[\x00-\x7f]|\x81.|\x82..)\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02", re.DOTALL
)
"""How the first token of Kerberos begins (RFC 2743, section 3.1; RFC 4121, section 4.1)."""


class Detected(NamedTuple):
    """The side that is the client, or the name of another protocol; both None if undecided.

    tokens: whether the held bytes begin with SASL tokens, as those of Kafka 0.9 do.
    """

    client: int | None = None
    protocol: str | None = None
    tokens: bool = False


UNDECIDED: Final = Detected()


@final
class ClientDetection:
    """Searches the streams of both sides of a connection."""

    def __init__(
        self, streams: tuple[Stream, Stream], limits: Limits, apis: Apis = KAFKA_APIS
    ) -> None:
        self._streams = streams
        self._limits = limits
        self._apis = apis
        self._walked = 0
        self._searched = [0, 0]
        self._retry_at = [0, 0]

    def detect(self, client: int | None, *, last: bool) -> Detected:
        """Search the held bytes. client: the side that is the client if it is one.

        last: also if few bytes arrived since the last attempt.
        """
        for side in (0, 1) if client is None else (client,):
            stream = self._streams[side]
            end = stream.position + stream.held
            if not stream.held or (end < self._retry_at[side] and not last):
                continue
            self._retry_at[side] = end + retry_bytes(stream.held)
            detected = self._detect_side(side, client, last=last)
            if detected is not UNDECIDED:
                return detected
        protocol = self._other_protocol(client, last=last)
        return UNDECIDED if protocol is None else Detected(protocol=protocol)

    def _detect_side(self, side: int, client: int | None, *, last: bool) -> Detected:
        stream = self._streams[side]
        data = stream.peek()
        is_first = stream.in_sync and client is not None
        first = self._first_request(data) if is_first else Confidence.NO
        if first is Confidence.PROVEN:
            return Detected(client=side)
        protocol = signature(data) if is_first and first is Confidence.NO else None
        if protocol is None and (last or first is Confidence.NO):
            position = self._search(side, data)
            if position is not None or (last and is_first and GSSAPI.match(data, SIZE)):
                tokens = is_first and self._begin_behind(side, data, position)
                return Detected(client=side, tokens=tokens)
            protocol = signature(data)
        if protocol is not None:
            return Detected(protocol=protocol)
        if self.sends_only_responses(side, client):
            stream.in_sync = True
            return Detected(client=1 - side)
        return UNDECIDED

    def _begin_behind(self, side: int, data: bytes, position: int | None) -> bool:
        """Note where a request was found, None for none; return whether tokens are before it.

        Otherwise what is before the request is not Kafka, on the other side perhaps, too.
        """
        stream, other = self._streams[side], self._streams[1 - side]
        end = len(data) if position is None else position
        tokens = end > 0 and not stream.position and _are_tokens(data[:end])
        answered = not other.position and _are_tokens(other.peek())
        stream.in_sync = tokens
        other.in_sync = tokens and answered
        return tokens and (answered or not other.held)

    def _other_protocol(self, client: int | None, *, last: bool) -> str | None:
        """Name the protocol by the first bytes of the server, or by the number of held bytes."""
        if client is not None:  # some servers send first
            server = self._streams[1 - client]
            protocol = None if server.position or not server.held else signature(server.peek())
            if protocol is not None:
                return protocol
        full = sum(stream.held for stream in self._streams) > MAX_HELD
        if (full or last) and any(has_tls_records(stream.peek()) for stream in self._streams):
            return "TLS: the handshake was not captured"
        return "not recognised" if full else None

    def sends_only_responses(self, side: int, client: int | None) -> bool:
        """Whether a side sends responses, if the other side was not captured.

        One of its first frames can then only be a certain response.
        """
        stream, other = self._streams[side], self._streams[1 - side]
        if other.position or other.held or side == client:
            return False
        start = max(0, self._walked - stream.position)
        walked = walk_responses(stream.peek(), start, self._limits, self._apis)
        self._walked = stream.position + walked.end
        return walked.certain

    def _first_request(self, data: bytes) -> Confidence:
        """Return how certain it is that a stream whose first byte is known begins with a request.

        Its header is enough, unless its client id is not ordinary text or it may be ZooKeeper's.
        """
        limit = self._limits.max_frame_bytes
        is_doubtful = self._apis.is_kafka and may_be_zookeeper(data)
        if not is_doubtful and looks_like_request(data, 0, limit, self._apis):
            return Confidence.PROVEN
        confidence = check_request(data, 0, limit, apis=self._apis)
        if confidence is Confidence.NO and is_doubtful and len(data) < CONNECT_BYTES:
            return Confidence.POSSIBLE
        return confidence

    def _search(self, side: int, data: bytes) -> int | None:
        """Return where a proven request begins in the held bytes of a side; None for nowhere."""
        limit, stream = self._limits.max_frame_bytes, self._streams[side]
        start = max(0, self._searched[side] - stream.position)
        candidate, resume = scan_request(data, limit, start, self._apis)
        self._searched[side] = stream.position + resume
        if candidate is None:
            return None
        self._retry_at[side] = stream.position + bytes_for_retry(data, candidate.at)
        return candidate.at if candidate.proven else None


def _are_tokens(data: bytes) -> bool:
    """Whether bytes are whole frames, none of which begins like a request."""
    position = 0
    while position + SIZE <= len(data):
        size = int(read_i32_be(data, position))
        head = data[position + SIZE : position + SIZE + HEAD]
        length = int.from_bytes(head[8:HEAD], "big", signed=True)
        may_be_request = len(head) == HEAD and not head[0] and not head[2] and length <= size - HEAD
        if not 0 <= size <= MAX_TOKEN or may_be_request:
            return False
        position += SIZE + size
    return position == len(data)


def retry_bytes(held: int) -> int:
    """Return how many more bytes to wait for before all held bytes are searched again.

    They are a share of the held ones, so that all searches together are linear in the bytes.
    """
    return 1 + (held >> 4)


def bytes_for_retry(data: bytes, position: int) -> int:
    """Return how many bytes to hold before a frame that may begin at `position` is checked again.

    That is half as many more of it, or all of it.
    """
    held = len(data)
    if held - position < SIZE:
        return held + 1
    end = position + SIZE + int(read_i32_be(data, position))
    wanted = held + 1 + ((held - position) >> 1)
    return min(wanted, end) if end > held else held + 1
