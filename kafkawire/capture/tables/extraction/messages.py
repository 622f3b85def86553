"""Messages as tables hear them: what their headers say, and notes of their bodies.

Law: what is heard of a frame is what its row says once it is opened; a frame is opened only where
its bytes alone do not tell, and bodies that are alike and name no topics are read once.

    Sealed --Layout--> Notes --.
       `---opened--> Row ------+--> Heard
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ....messages.api_key import ApiKey
from ....primitives import Limits
from ....primitives.limits import elements_within
from ....protocol.header import response_header_version
from ...exchanges.topic_ids import TopicNames, may_name
from ...files.blocks import NO_TIME
from ...frames.apis import api
from ...frames.decoding import API_VERSIONS, InFlightRequest, RawFrame
from ...rows import Row, Status
from .body_facts import NONE, BodyFacts, body_facts_of
from .body_reader import Reader
from .layouts import Layout, layout_of
from .record_batches import CARRIERS

OK: Final = Status.OK.value
LENIENT: Final = Status.LENIENT.value
FETCH: Final = int(ApiKey.FETCH)

KEPT_BYTES: Final = 1 << 10
"""The longest body that is remembered."""

KEPT: Final = 1 << 8
"""Bodies of an API's requests or responses at a version that are remembered."""


@final
@mypyc_attr(acyclic=True)
class ExtractedMessage:
    """A message: as in Row, and what its body says. NONE stands for numbers that are not there,
    NO_TIME for times; request_packet, request_ns: of a response.
    """

    def __init__(
        self,
        is_request: bool,
        packet: i64,
        time_ns: i64,
        length: i64,
        api_key: i64,
        api_name: str | None,
        api_version: i64,
        correlation_id: i64,
        client_id: str | None,
        request_packet: i64,
        request_ns: i64,
        status: str,
        notes: BodyFacts,
    ) -> None:
        self.is_request: bool = is_request
        self.packet: i64 = packet
        self.time_ns: i64 = time_ns
        self.length: i64 = length
        self.api_key: i64 = api_key
        self.api_name: str | None = api_name
        self.api_version: i64 = api_version
        self.correlation_id: i64 = correlation_id
        self.client_id: str | None = client_id
        self.request_packet: i64 = request_packet
        self.request_ns: i64 = request_ns
        self.status: str = status
        self.notes: BodyFacts = notes


@final
class Head:
    """What is known of an API's requests or responses at a version.

    layout: how bodies are read, None where they are opened. carries: whether there may be records;
    names: whether topics may be named. tagged, plain_if_zero: as in `row_text`. kept: notes of
    bodies.
    """

    def __init__(self, asked: InFlightRequest, is_request: bool) -> None:
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
        self.kept: dict[bytes, BodyFacts] = {}
        if side is None or not side.first <= version <= side.last:
            return
        cls = side.load()
        flexible = side.info.flexible is not None and version >= side.info.flexible
        self.names = may_name(cls, version)
        self.layout = layout_of(cls, key, is_request, version, flexible)
        self.tagged = not is_request and response_header_version(key, version) == 1


@final
class Extractor:
    """Hears the messages of one capture. records: whether those that messages carry, too."""

    def __init__(self, names: TopicNames, limits: Limits, records: bool) -> None:
        self.names: TopicNames = names
        self.limits: Limits = limits
        self.records: bool = records
        self.reader: Reader = Reader(names, records)
        self.heads: dict[int, Head] = {}

    def head(self, asked: InFlightRequest, is_request: bool) -> Head:
        """Look up what is known of a message, as far as its header tells."""
        number = (asked.api_key << 16 | asked.api_version & 0xFFFF) << 1 | is_request
        found = self.heads.get(number)
        if found is None:
            found = self.heads[number] = Head(asked, is_request)
        return found

    def hear(self, sealed: RawFrame, row: Row | None = None) -> ExtractedMessage:
        """Hear a frame; row: what it is, if it was opened already."""
        asked = sealed.request
        if asked is None or sealed.body < 0:
            return self.row(sealed.decode(self.limits) if row is None else row)
        is_request = sealed.is_request
        head = self.head(asked, is_request)
        frame = sealed.frame
        at: i64 = sealed.body
        notes: BodyFacts | None = None
        if head.names or len(frame) - at > KEPT_BYTES:  # names are stated each time anew
            notes = self.unsealed(head, sealed, row)
        else:
            body = frame[at:]
            notes = head.kept.get(body)
            if notes is None:
                notes = self.unsealed(head, sealed, row)
                if not notes.fields and not sealed.error:  # records do not repeat
                    if len(head.kept) >= KEPT:
                        head.kept.clear()
                    head.kept[body] = notes
        status = notes.status
        if sealed.error and status == OK:
            status = LENIENT
        request_packet: i64 = NONE
        request_ns: i64 = NONE
        if not is_request:
            request_packet = asked.packet
            request_ns = asked.time_ns
        return ExtractedMessage(
            is_request,
            sealed.packet,
            sealed.time_ns,
            len(frame),
            asked.api_key,
            head.api_name,
            asked.api_version,
            asked.correlation_id,
            asked.client_id,
            request_packet,
            request_ns,
            status,
            notes,
        )

    def unsealed(self, head: Head, sealed: RawFrame, row: Row | None) -> BodyFacts:
        """Take notes of a frame's body."""
        reader = self.reader
        reader.doubts = []
        layout = head.layout
        notes: BodyFacts | None = None
        if layout is not None:
            frame = sealed.frame
            at = sealed.body
            plain = True
            if head.plain_if_zero:
                plain = frame[at : at + 2] == b"\0\0"
            elif head.tagged:
                plain = frame[at : at + 1] == b"\0"
                at += 1
            if plain:
                elements = elements_within(self.limits, len(frame))
                asks = sealed.is_request
                notes = reader.read(layout, frame, at, elements, asks, head.is_fetch)
        if notes is None:
            if row is None:
                row = sealed.decode(self.limits)
            if row.status is Status.OK:
                for step in reader.doubts:  # all nulls that were met may be there
                    step.nulls = True
            notes = self.opened(row)
        return notes

    def opened(self, row: Row) -> BodyFacts:
        """Take notes of a row, and learn the names that it states."""
        is_guess = row.status is Status.GUESSED  # a guess is shown, not built upon
        if row.message is not None and row.body_version is not None and not is_guess:
            self.names.learn(row.message, row.body_version)
        return body_facts_of(row, self.names, self.records)

    def row(self, row: Row) -> ExtractedMessage:
        """Hear what is a row already."""
        notes = self.opened(row)
        request_ns = row.request_time_ns
        return ExtractedMessage(
            row.direction == "request",
            row.packet,
            row.time_ns,
            row.length,
            or_none(row.api_key),
            row.api_name,
            or_none(row.api_version),
            or_none(row.correlation_id),
            row.client_id,
            or_none(row.request_packet),
            NO_TIME if request_ns is None else request_ns,
            notes.status,
            notes,
        )


def or_none(value: int | None) -> int:
    return NONE if value is None else value
