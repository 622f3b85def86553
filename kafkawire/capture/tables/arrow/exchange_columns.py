"""Builds the `exchanges` table column by column from extracted messages, most of them undecoded.

Law: rows equal those that `exchanges.rows` builds of decoded messages (a test compares them for
every capture).

    ExtractedExchange --> columns --> record batches
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from ...exchanges.fetch_sessions import MAX_SESSIONS
from ...exchanges.topic_ids import Topic
from ...multifile import PacketPositions
from ..extraction.blocks import Block
from ..extraction.body_facts import NONE
from ..extraction.messages import NO_FACTS, ExtractedMessage
from .buffers import Lists, Numbers
from .exchange_heads import ExchangeHeads, ExtractedExchange, FileNames

Groups = list[tuple[Topic, list[int]]]
"""Partitions by topic."""

NO_GROUPS: Final[Groups] = []
"""Never changed."""


@final
class SessionPartitions:
    """Partitions and topics of a fetch session, until it changes."""

    def __init__(self, requested: Block) -> None:
        groups = requested.by_topic()
        self.requested: Block = requested
        self.topics: list[Topic] = [topic for topic, _ in groups if topic.name or topic.id]
        self.groups: Groups = groups


@final
class ExchangeValues:
    """Values of the columns, one per row."""

    def __init__(self) -> None:
        self.rows: int = 0
        self.heads: ExchangeHeads = ExchangeHeads()
        self.request_bytes: Numbers = Numbers()
        self.request_status: list[str | None] = []
        self.response_time_ns: Numbers = Numbers()
        self.response_bytes: Numbers = Numbers()
        self.response_status: list[str | None] = []
        self.latency_ns: Numbers = Numbers()
        self.error_codes: Lists = Lists()
        self.throttle_time_ms: Numbers = Numbers()
        self.topics: Lists = Lists()
        self.partitions: Lists = Lists()
        self.complete: BytesWriter = BytesWriter()
        self.is_fetch: BytesWriter = BytesWriter()
        self.group_ids: Lists = Lists()
        self.transactional_ids: Lists = Lists()


@final
class ExchangeColumns:
    """Collects the exchanges of a capture as column values. filled: rows not returned yet."""

    def __init__(self, traffic: PacketPositions) -> None:
        self.files: FileNames = FileNames(traffic)
        self.by_session: dict[tuple[int, int], SessionPartitions] = {}
        self.filled: ExchangeValues = ExchangeValues()

    def take_values(self) -> ExchangeValues:
        """Return the rows, and start new ones."""
        filled = self.filled
        self.filled = ExchangeValues()
        return filled

    # -- rows

    def add(self, exchange: ExtractedExchange, requested: Block | None, complete: bool) -> None:
        """Add an exchange.

        requested: all partitions of a Fetch and its session. complete: whether all are known.
        """
        filled = self.filled
        request, response = exchange.request, exchange.response
        filled.rows += 1
        filled.heads.add(exchange, self.files)
        self.add_request(filled, request)
        self.add_response(filled, response)
        sent = NO_FACTS if request is None else request.facts
        received = NO_FACTS if response is None else response.facts
        filled.error_codes.put_union(sent.error_codes, received.error_codes)
        throttle = received.throttle_time_ms
        if throttle == NONE:
            throttle = sent.throttle_time_ms
        filled.throttle_time_ms.put32(throttle)
        filled.group_ids.put_union(sent.groups, received.groups)
        filled.transactional_ids.put_union(sent.transactional_ids, received.transactional_ids)
        if requested is None:
            filled.topics.put_union(sent.topics, received.topics)
            block = sent.block
            filled.partitions.put(NO_GROUPS if block is None else block.by_topic())
            filled.is_fetch.append(0)
            filled.complete.append(0)
            return
        assert sent.session is not None
        partitions = self.session_partitions(exchange.connection, sent.session.id, requested)
        topics = sent.topics
        if received.topics or partitions.topics:
            topics = list(dict.fromkeys(topics + received.topics + partitions.topics))
        filled.topics.put(topics)
        filled.partitions.put(partitions.groups)
        filled.is_fetch.append(1)
        filled.complete.append(complete)

    def add_request(self, filled: ExchangeValues, request: ExtractedMessage | None) -> None:
        if request is None:
            filled.request_bytes.none32()
            filled.request_status.append(None)
            return
        filled.request_bytes.put32(request.length)
        filled.request_status.append(request.status)

    def add_response(self, filled: ExchangeValues, response: ExtractedMessage | None) -> None:
        if response is None:
            filled.response_time_ns.none64()
            filled.response_bytes.none32()
            filled.response_status.append(None)
            filled.latency_ns.none64()
            return
        filled.response_bytes.put32(response.length)
        filled.response_status.append(response.status)
        if response.time_ns == self.files.never:
            filled.response_time_ns.none64()
            filled.latency_ns.none64()
            return
        filled.response_time_ns.put64(response.time_ns)
        if response.request_ns == self.files.never:
            filled.latency_ns.none64()
        else:
            filled.latency_ns.put64(response.time_ns - response.request_ns)

    # -- fetch sessions

    def session_partitions(self, connection: int, id: int, requested: Block) -> SessionPartitions:
        """Return the partitions of a session by topic, and their topics."""
        partitions = self.by_session.get((connection, id))
        if partitions is None or partitions.requested is not requested:
            partitions = SessionPartitions(requested)
            if len(self.by_session) >= MAX_SESSIONS:
                self.by_session.clear()
            self.by_session[connection, id] = partitions
        return partitions
