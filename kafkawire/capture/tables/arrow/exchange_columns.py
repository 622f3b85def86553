"""Builds the `exchanges` table column by column from extracted messages, most of them undecoded.

Law: rows equal those that `exchanges.rows` builds of decoded messages (a test compares them for
every capture).

    ExtractedExchange --> columns --> record batches
"""

from __future__ import annotations

from typing import final

from librt.strings import BytesWriter

from ...exchanges.fetch_sessions import MAX_SESSIONS, Key, Sessions, State, merged
from ...exchanges.topic_ids import Topic
from ...multifile import PacketPositions
from ..extraction.body_facts import NO_GROUPS, NONE, Groups, Session
from ..extraction.messages import NO_FACTS, ExtractedMessage
from .buffers import Lists, Numbers
from .exchange_heads import ExchangeHeads, ExtractedExchange, FileNames


@final
class SessionPartitions:
    """Partitions and topics of a fetch session, until it changes."""

    def __init__(self, wanted: object, topics: list[Topic], groups: Groups) -> None:
        self.wanted: object = wanted
        self.topics: list[Topic] = topics
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
        self.sessions: Sessions[dict[Key, tuple[Topic, int]]] = Sessions({}, merged)
        self.by_session: dict[tuple[int, int], SessionPartitions] = {}
        self.filled: ExchangeValues = ExchangeValues()

    def take_values(self) -> ExchangeValues:
        """Return the rows, and start new ones."""
        filled = self.filled
        self.filled = ExchangeValues()
        return filled

    # -- rows

    def add(self, exchange: ExtractedExchange) -> None:
        """Add an exchange."""
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
        session = sent.session
        if session is None:
            filled.topics.put_union(sent.topics, received.topics)
            filled.partitions.put(sent.partitions)
            filled.is_fetch.append(0)
            filled.complete.append(0)
            return
        partitions, complete = self.session_partitions(
            exchange.connection, session, received.session
        )
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

    def session_partitions(
        self, connection: int, sent: Session, received: Session | None
    ) -> tuple[SessionPartitions, bool]:
        """Return the partitions of a Fetch and its session, and whether all are known."""
        wanted, complete = self.apply(connection, sent, received)
        partitions = self.by_session.get((connection, sent.id))
        if partitions is None or partitions.wanted is not wanted:
            partitions = grouped_by_topic(wanted)
            if len(self.by_session) >= MAX_SESSIONS:
                self.by_session.clear()
            self.by_session[connection, sent.id] = partitions
        return partitions, complete

    def apply(
        self, connection: int, sent: Session, received: Session | None
    ) -> State[dict[Key, tuple[Topic, int]]]:
        """Apply a Fetch to its session; return its partitions, and whether all are known."""
        return self.sessions.apply(
            connection,
            sent.id,
            sent.epoch,
            sent.listed,
            sent.forgotten,
            None if received is None else (received.error_code, received.id),
        )

    def forget_sessions(self) -> None:
        """Forget all fetch sessions."""
        self.sessions = Sessions({}, merged)


def grouped_by_topic(wanted: dict[Key, tuple[Topic, int]]) -> SessionPartitions:
    """Group partitions by topic."""
    found: dict[object, tuple[Topic, list[int]]] = {}
    for (key, number), (topic, _) in wanted.items():
        group = found.get(key)
        if group is None:
            group = found[key] = topic, []
        group[1].append(number)
    topics = [topic for topic, _ in found.values() if topic.name or topic.id]
    return SessionPartitions(wanted, topics, list(found.values()) if found else NO_GROUPS)
