"""Extracts what tables need from messages: header fields, and facts of bodies.

The result equals that of the decoded row; a frame is decoded only if its bytes do not suffice,
and equal bodies that name no topics are read once.

    RawFrame --Program--> Block --> BodyFacts --.
        `-----decoded---> Row ------------------+--> ExtractedMessage
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ....messages.api_key import ApiKey
from ....primitives import Limits
from ....primitives.limits import elements_within
from ...exchanges.topic_ids import TopicNames, may_name
from ...files.blocks import NO_TIME
from ...frames.decoding import InFlightRequest, RawFrame
from ...rows import Row, Status
from .blocks import ENTITIES, FIELDS, PARTITION_VALUES, Block, Program, Reader
from .body_facts import NO_FIELDS, NONE, BodyFacts, Session, body_facts_of
from .decoded_partitions import HAS_PARTITIONS, count_records
from .programs import program_of
from .record_batches import RECORDS_MESSAGES, RecordsField

OK: Final = Status.OK.value
LENIENT: Final = Status.LENIENT.value
FETCH: Final = int(ApiKey.FETCH)

NO_FACTS: Final = BodyFacts(OK)

CACHED_BODY_BYTES: Final = 1 << 7
"""Size of the largest body that is cached; reading a larger one takes no longer than its hash."""

CACHED_BODIES: Final = 1 << 8
"""Cached bodies of the requests or responses of an API at a version, at most."""


@final
@mypyc_attr(acyclic=True)
class ExtractedMessage:
    """A message: fields as in Row, and the facts of its body.

    NONE stands for missing numbers, NO_TIME for missing times; request_packet, request_ns: of a
    response.
    """

    def __init__(  # noqa: PLR0913 - one argument per field, made for every message
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
        facts: BodyFacts,
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
        self.facts: BodyFacts = facts


@final
class MessageFormat:
    """How the requests or responses of an API at a version are read.

    program: how bodies are read, None if they are decoded. has_records: whether there may be
    records, has_partitions: whether there may be some for the table `partitions`; names: whether
    topic ids may be mapped to names. tagged, simple_if_zero: as in `row_text`. cache: facts by
    body.
    """

    def __init__(self, in_flight: InFlightRequest, is_request: bool) -> None:
        key, version, apis = in_flight.api_key, in_flight.api_version, in_flight.apis
        api = apis.api(key)
        side = api.request if is_request else api.response
        self.api_name: str | None = api.name
        self.program: Program | None = None
        self.has_records: bool = (key, "request" if is_request else "response") in RECORDS_MESSAGES
        self.has_partitions: bool = (key, is_request) in HAS_PARTITIONS
        self.names: bool = side is not None
        self.tagged: bool = False
        self.simple_if_zero: bool = not is_request and key == apis.api_versions
        self.is_fetch: bool = key == FETCH
        self.cache: dict[bytes, BodyFacts] = {}
        if side is None or not side.first <= version <= side.last:
            return
        cls = side.load()
        flexible = side.info.flexible is not None and version >= side.info.flexible
        self.names = may_name(cls, version)
        self.program = program_of(cls, key, is_request, version, flexible)
        self.tagged = not is_request and version >= api.tagged_response


def facts_of(block: Block, wanted: int, is_request: bool, is_fetch: bool) -> BodyFacts:
    """Return the facts of a body that was read without the decoder."""
    facts = BodyFacts(OK)
    if wanted & ENTITIES:
        facts.entities = block
    if wanted & PARTITION_VALUES:
        facts.block = block
    if wanted & FIELDS:
        facts.fields = block.fields or NO_FIELDS
    if is_fetch:
        facts.session = Session(block.session_id, block.session_epoch, block.error_code)
        if is_request:
            facts.session.listed = block
    return facts


@final
class Extractor:
    """Extracts the messages of one capture.

    records, partitions: whether to include records fields, and all partitions. entities: whether
    topics, groups, requested partitions and all other facts are needed; without them, bodies that
    have nothing that is needed are not read.
    """

    def __init__(
        self,
        names: TopicNames,
        limits: Limits,
        records: bool,
        partitions: bool = False,
        entities: bool = True,
    ) -> None:
        self.names: TopicNames = names
        self.limits: Limits = limits
        self.records: bool = records
        self.partitions: bool = partitions
        self.entities: bool = entities
        self.reader: Reader = Reader(
            names.topic, names.add, names.learned, count_records, RecordsField
        )
        self.formats: dict[int, MessageFormat] = {}

    def format_of(self, in_flight: InFlightRequest, is_request: bool) -> MessageFormat:
        """Return the format of a message, by its API and version."""
        number = (in_flight.api_key << 16 | in_flight.api_version & 0xFFFF) << 1 | is_request
        message_format = self.formats.get(number)
        if message_format is None:
            message_format = self.formats[number] = MessageFormat(in_flight, is_request)
        return message_format

    def extract(self, raw: RawFrame, row: Row | None = None) -> ExtractedMessage:
        """Extract a frame; row: its row, if it is already decoded."""
        in_flight = raw.request
        if in_flight is None or raw.body < 0:
            return self.row(raw.decode(self.limits) if row is None else row)
        is_request = raw.is_request
        format = self.format_of(in_flight, is_request)
        # names must be learned from each message
        if format.names or len(raw.frame) - raw.body > CACHED_BODY_BYTES:
            facts = self.frame_facts(format, raw, row)
        else:
            facts = self.cached_facts(format, raw, row)
        status = facts.status
        if raw.error and status == OK:
            status = LENIENT
        request_packet: i64 = NONE if is_request else in_flight.packet
        request_ns: i64 = NONE if is_request else in_flight.time_ns
        return ExtractedMessage(
            is_request,
            raw.packet,
            raw.time_ns,
            len(raw.frame),
            in_flight.api_key,
            format.api_name,
            in_flight.api_version,
            in_flight.correlation_id,
            in_flight.client_id,
            request_packet,
            request_ns,
            status,
            facts,
        )

    def cached_facts(self, format: MessageFormat, raw: RawFrame, row: Row | None) -> BodyFacts:
        """Return the facts of a frame's body from the cache, or extract and add them."""
        body = raw.frame[raw.body :]
        facts = format.cache.get(body)
        if facts is None:
            facts = self.frame_facts(format, raw, row)
            if not facts.fields and not raw.error:  # records do not repeat
                if len(format.cache) >= CACHED_BODIES:
                    format.cache.clear()
                format.cache[body] = facts
        return facts

    def wanted_of(self, has_records: bool, has_partitions: bool, is_request: bool) -> int:
        """Return what is needed of a message (see `blocks`)."""
        wanted = ENTITIES if self.entities else 0
        if has_records and self.records:
            wanted |= FIELDS
        if has_partitions and (self.partitions or (is_request and self.entities)):
            wanted |= PARTITION_VALUES
        return wanted

    def frame_facts(self, format: MessageFormat, raw: RawFrame, row: Row | None) -> BodyFacts:
        """Extract the facts of a frame's body."""
        wanted = self.wanted_of(format.has_records, format.has_partitions, raw.is_request)
        if not wanted and not format.names:
            return NO_FACTS
        block = self.block_of(format, raw, wanted)
        if block is None:
            return self.row_facts(raw.decode(self.limits) if row is None else row)
        return facts_of(block, wanted, raw.is_request, format.is_fetch)

    def block_of(self, format: MessageFormat, raw: RawFrame, wanted: int) -> Block | None:
        """Read a body; None if it is left to the decoder."""
        program = format.program
        if program is None:
            return None
        frame = raw.frame
        position = raw.body
        if format.simple_if_zero:
            if frame[position : position + 2] != b"\0\0":
                return None
        elif format.tagged:
            if frame[position : position + 1] != b"\0":
                return None
            position += 1
        return self.reader.read(
            program, frame, position, elements_within(self.limits, len(frame)), wanted
        )

    def row_facts(self, row: Row) -> BodyFacts:
        """Extract the facts of a row, and learn the topic names in it."""
        is_guess = row.status is Status.GUESSED  # a guess may be wrong
        if row.message is not None and row.body_version is not None and not is_guess:
            self.names.learn(row.message, row.body_version)
        is_request = row.direction == "request"
        has_records = (row.api_key, row.direction) in RECORDS_MESSAGES
        has_partitions = (row.api_key, is_request) in HAS_PARTITIONS
        return body_facts_of(
            row, self.names, self.wanted_of(has_records, has_partitions, is_request)
        )

    def row(self, row: Row) -> ExtractedMessage:
        """Extract a decoded row."""
        facts = self.row_facts(row)
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
            facts.status,
            facts,
        )


def or_none(value: int | None) -> int:
    """Return a number, or NONE for a missing one."""
    return NONE if value is None else value
