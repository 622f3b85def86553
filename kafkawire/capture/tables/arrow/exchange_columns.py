"""Builds the `exchanges` table column by column from extracted messages, most of them undecoded.

Law: rows equal those that `exchanges.rows` builds of decoded messages (a test compares them for
every capture); requests and responses are paired as in `capture.exchanges`.

    ExtractedMessage --by connection--> request, response --> columns --> record batches
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from ...exchanges.exchanges import MAX_OPEN, MAX_OPEN_BYTES
from ...exchanges.fetch_sessions import MAX_SESSIONS, Key, Sessions
from ...exchanges.topic_ids import Topic
from ...files.blocks import NO_TIME
from ...multifile import FILE_BITS, PacketPositions
from ..extraction.body_facts import NO_GROUPS, NONE, OK, BodyFacts, Groups, Session
from ..extraction.messages import ExtractedMessage
from .buffers import Lists, Numbers

NUMBER: Final = (1 << 40) - 1
NO_FACTS: Final = BodyFacts(OK)
"""Facts of a missing message."""


@final
class SessionPartitions:
    """Partitions and topics of a fetch session, until it changes."""

    def __init__(self, wanted: object, topics: list[Topic], groups: Groups) -> None:
        self.wanted: object = wanted
        self.topics: list[Topic] = topics
        self.groups: Groups = groups


@final
class PendingRequests:
    """The requests of one connection without a response so far."""

    def __init__(self, connection: int, client: str, broker: str) -> None:
        self.connection: i64 = connection
        self.client: str = client
        self.broker: str = broker
        self.requests: list[ExtractedMessage] = []
        self.bytes: i64 = 0


@final
class ExchangeValues:
    """Values of the columns, one per row."""

    def __init__(self) -> None:
        self.rows: int = 0
        self.file: list[str | None] = []
        self.packet: Numbers = Numbers()
        self.time_ns: Numbers = Numbers()
        self.connection: Numbers = Numbers()
        self.client: list[str | None] = []
        self.broker: list[str | None] = []
        self.api_key: Numbers = Numbers()
        self.api_name: list[str | None] = []
        self.api_version: Numbers = Numbers()
        self.correlation_id: Numbers = Numbers()
        self.client_id: list[str | None] = []
        self.response_file: list[str | None] = []
        self.response_packet: Numbers = Numbers()
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
        self.traffic: PacketPositions = traffic
        self.open: dict[int, PendingRequests] = {}
        self.sessions: Sessions[tuple[Topic, int]] = Sessions()
        self.by_session: dict[tuple[int, int], SessionPartitions] = {}
        self.file_index: i64 = -1
        self.file_name: str = ""
        self.never: i64 = NO_TIME
        self.filled: ExchangeValues = ExchangeValues()

    def take_values(self) -> ExchangeValues:
        """Return the rows, and start new ones."""
        filled = self.filled
        self.filled = ExchangeValues()
        return filled

    # -- pairing

    def handle(self, connection: int, client: str, broker: str, message: ExtractedMessage) -> None:
        """Handle the next message of a connection."""
        pending = self.open.get(connection)
        if pending is None:
            pending = self.open[connection] = PendingRequests(connection, client, broker)
        requests = pending.requests
        if message.is_request:
            requests.append(message)
            pending.bytes += message.length
            while len(requests) > MAX_OPEN or (
                pending.bytes > MAX_OPEN_BYTES and len(requests) > 1
            ):
                self.add_without_response(pending)
            return
        at: i64 = 0
        while at < len(requests):
            request = requests[at]
            if (
                request.packet == message.request_packet
                and request.correlation_id == message.correlation_id
            ):
                while at > 0:
                    self.add_without_response(pending)
                    at -= 1
                requests.pop(0)
                pending.bytes -= request.length
                self.add(pending, request, message)
                return
            at += 1
        self.add(pending, None, message)

    def add_without_response(self, pending: PendingRequests) -> None:
        """Add the oldest request as an exchange without a response."""
        request = pending.requests.pop(0)
        pending.bytes -= request.length
        self.add(pending, request, None)

    def end(self, connection: int) -> None:
        """Handle the end of a connection."""
        pending = self.open.pop(connection, None)
        if pending is not None:
            while pending.requests:
                self.add_without_response(pending)

    def finish(self) -> None:
        """Handle the end of the capture."""
        for connection in list(self.open):
            self.end(connection)

    # -- rows

    def add(
        self,
        pending: PendingRequests,
        request: ExtractedMessage | None,
        response: ExtractedMessage | None,
    ) -> None:
        """Add an exchange."""
        filled = self.filled
        filled.rows += 1
        side = response if request is None else request
        assert side is not None
        filled.connection.put64(pending.connection)
        filled.client.append(pending.client)
        filled.broker.append(pending.broker)
        filled.api_key.put16(side.api_key)
        filled.api_name.append(side.api_name)
        filled.api_version.put16(side.api_version)
        filled.correlation_id.put32(side.correlation_id)
        filled.client_id.append(side.client_id)
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
            pending.connection, session, received.session
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
            filled.file.append(None)
            filled.packet.none64()
            filled.time_ns.none64()
            filled.request_bytes.none32()
            filled.request_status.append(None)
            return
        filled.file.append(self.file(request.packet))
        filled.packet.put64(request.packet & NUMBER)
        if request.time_ns == self.never:
            filled.time_ns.none64()
        else:
            filled.time_ns.put64(request.time_ns)
        filled.request_bytes.put32(request.length)
        filled.request_status.append(request.status)

    def add_response(self, filled: ExchangeValues, response: ExtractedMessage | None) -> None:
        if response is None:
            filled.response_file.append(None)
            filled.response_packet.none64()
            filled.response_time_ns.none64()
            filled.response_bytes.none32()
            filled.response_status.append(None)
            filled.latency_ns.none64()
            return
        filled.response_file.append(self.file(response.packet))
        filled.response_packet.put64(response.packet & NUMBER)
        filled.response_bytes.put32(response.length)
        filled.response_status.append(response.status)
        if response.time_ns == self.never:
            filled.response_time_ns.none64()
            filled.latency_ns.none64()
            return
        filled.response_time_ns.put64(response.time_ns)
        if response.request_ns == self.never:
            filled.latency_ns.none64()
        else:
            filled.latency_ns.put64(response.time_ns - response.request_ns)

    def file(self, packet: i64) -> str:
        """Return the name of a packet's file."""
        index = packet >> 40
        if index != self.file_index:
            self.file_index = index
            self.file_name = self.traffic.place(packet)[0]
        return self.file_name

    # -- fetch sessions

    def session_partitions(
        self, connection: int, sent: Session, received: Session | None
    ) -> tuple[SessionPartitions, bool]:
        """Return the partitions of a Fetch and its session, and whether all are known."""
        wanted, complete = self.sessions.apply(
            connection,
            sent.id,
            sent.epoch,
            sent.listed,
            sent.forgotten,
            None if received is None else (received.error_code, received.id),
        )
        partitions = self.by_session.get((connection, sent.id))
        if partitions is None or partitions.wanted is not wanted:
            partitions = grouped_by_topic(wanted)
            if len(self.by_session) >= MAX_SESSIONS:
                self.by_session.clear()
            self.by_session[connection, sent.id] = partitions
        return partitions, complete


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


assert FILE_BITS == 40  # a literal above, as compiled code needs a constant
