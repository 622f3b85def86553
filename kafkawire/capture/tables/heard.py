"""Messages as tables hear them: what their headers say, and notes of their bodies.

Law: what is heard of a frame is what its row says once it is opened; a frame is opened only where
its bytes alone do not tell, and bodies that are alike are read once.

    Sealed --Layout--> Notes --.
       `---opened--> Row ------+--> Heard
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from ...messages.api_key import ApiKey
from ...primitives import Limits
from ...protocol.header import response_header_version
from ..apis import api
from ..reading import API_VERSIONS, Asked, Sealed
from ..rows import Row, Status
from ..topic_ids import TopicNames, may_name
from .layouts import Layout, layout_of
from .notes import Notes, Reader, notes_of
from .record_batches import CARRIERS

OK: Final = Status.OK.value
LENIENT: Final = Status.LENIENT.value
FETCH: Final = int(ApiKey.FETCH)

KEPT_BYTES: Final = 1 << 10
"""The longest body that is remembered."""

KEPT: Final = 1 << 9
"""Bodies of an API's requests or responses at a version that are remembered."""


@final
@mypyc_attr(acyclic=True)
class Heard:
    """A message: as in Row, and what its body says."""

    def __init__(
        self,
        is_request: bool,
        packet: int,
        time_ns: int,
        length: int,
        status: str,
        api_key: int | None,
        api_name: str | None,
        api_version: int | None,
        correlation_id: int | None,
        client_id: str | None,
        request_packet: int | None,
        request_time_ns: int | None,
        notes: Notes,
    ) -> None:
        self.is_request: bool = is_request
        self.packet: int = packet
        self.time_ns: int = time_ns
        self.length: int = length
        self.status: str = status
        self.api_key: int | None = api_key
        self.api_name: str | None = api_name
        self.api_version: int | None = api_version
        self.correlation_id: int | None = correlation_id
        self.client_id: str | None = client_id
        self.request_packet: int | None = request_packet
        self.request_time_ns: int | None = request_time_ns
        self.notes: Notes = notes


@final
class Head:
    """What is known of an API's requests or responses at a version.

    layout: how bodies are read, None where they are opened. carries: whether there may be records;
    names: whether topics may be named. tagged, plain_if_zero: as in `row_text`. kept: notes of
    bodies.
    """

    def __init__(self, asked: Asked, is_request: bool) -> None:
        key, version = asked.api_key, asked.api_version
        known = api(key)
        side = known.request if is_request else known.response
        self.api_name: str | None = known.name
        self.layout: Layout | None = None
        self.carries: bool = (key, "request" if is_request else "response") in CARRIERS
        self.names: bool = side is not None
        self.tagged: bool = False
        self.plain_if_zero: bool = not is_request and key == API_VERSIONS
        self.is_fetch: bool = key == FETCH
        self.kept: dict[bytes, Notes] = {}
        if side is None or not side.first <= version <= side.last:
            return
        cls = side.load()
        flexible = side.info.flexible is not None and version >= side.info.flexible
        self.names = may_name(cls, version)
        self.layout = layout_of(cls, key, is_request, version, flexible)
        self.tagged = not is_request and response_header_version(key, version) == 1


@final
class Hearing:
    """Hears the messages of one capture. records: whether those that messages carry, too."""

    def __init__(self, names: TopicNames, limits: Limits, records: bool) -> None:
        self.names: TopicNames = names
        self.limits: Limits = limits
        self.records: bool = records
        self.reader: Reader = Reader(names, records)
        self.heads: dict[int, Head] = {}

    def head(self, asked: Asked, is_request: bool) -> Head:
        """Look up what is known of a message, as far as its header tells."""
        number = (asked.api_key << 16 | asked.api_version & 0xFFFF) << 1 | is_request
        found = self.heads.get(number)
        if found is None:
            found = self.heads[number] = Head(asked, is_request)
        return found

    def hear(self, sealed: Sealed) -> Heard:
        """Hear a frame."""
        asked = sealed.asked
        if asked is None or sealed.body < 0:
            return self.row(sealed.open(self.limits))
        is_request = sealed.is_request
        head = self.head(asked, is_request)
        frame, at = sealed.frame, sealed.body
        plain = True
        if head.plain_if_zero:
            plain = frame[at : at + 2] == b"\0\0"
        elif head.tagged:
            plain = frame[at : at + 1] == b"\0"
            at += 1
        notes: Notes | None = None
        status = LENIENT if sealed.error else OK
        if plain:
            notes = self.plain(head, frame, at, is_request)
        if notes is None:
            row = sealed.open(self.limits)
            notes = self.opened(row)
            status = row.status.value
            if plain and row.status is Status.OK:
                for step in self.reader.doubts:  # all nulls that were met may be there
                    step.nulls = True
                if len(frame) - at <= KEPT_BYTES:
                    self.keep(head, frame[at:], notes)
        return Heard(
            is_request,
            sealed.packet,
            sealed.time_ns,
            len(frame),
            status,
            asked.api_key,
            head.api_name,
            asked.api_version,
            asked.correlation_id,
            asked.client_id,
            None if is_request else asked.packet,
            None if is_request else asked.time_ns,
            notes,
        )

    def plain(self, head: Head, frame: bytes, at: int, is_request: bool) -> Notes | None:
        """Take notes of a body, or find those of one that was alike."""
        reader = self.reader
        reader.doubts = []
        layout = head.layout
        elements = self.limits.max_elements
        if len(frame) - at > KEPT_BYTES:
            if layout is None:
                return None
            return reader.read(layout, frame, at, elements, is_request, head.is_fetch)
        body = frame[at:]
        notes = head.kept.get(body)
        if notes is None and layout is not None:
            notes = reader.read(layout, frame, at, elements, is_request, head.is_fetch)
            if notes is not None:
                self.keep(head, body, notes)
        return notes

    def keep(self, head: Head, body: bytes, notes: Notes) -> None:
        """Remember the notes of a body."""
        if notes.fields:
            return  # records do not repeat
        kept = head.kept
        if len(kept) >= KEPT:
            kept.clear()
        kept[body] = notes

    def opened(self, row: Row) -> Notes:
        """Take notes of a row, and learn the names that it states."""
        if row.message is not None and row.body_version is not None:
            if row.status is not Status.GUESSED:  # a guess is shown, not built upon
                self.names.learn(row.message, row.body_version)
        return notes_of(row, self.names, self.records)

    def row(self, row: Row) -> Heard:
        """Hear what is a row already."""
        return Heard(
            row.direction == "request",
            row.packet,
            row.time_ns,
            row.length,
            row.status.value,
            row.api_key,
            row.api_name,
            row.api_version,
            row.correlation_id,
            row.client_id,
            row.request_packet,
            row.request_time_ns,
            self.opened(row),
        )
