"""The `exchanges` table filled column by column from what is heard of messages, without decoding
most of them.

Law: row for row what `exchanges.rows` makes of the decoded messages (a test holds one against the
other for every capture); pairing is as in `capture.exchanges`.

    Heard --by connection--> request, response --> columns --> record batches
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from ...exchanges.exchanges import MAX_OPEN, MAX_OPEN_BYTES
from ...exchanges.fetch_sessions import MAX_SESSIONS, Sessions
from ...exchanges.topic_ids import Topic
from ...files.blocks import NO_TIME
from ...multifile import FILE_BITS, Traffic
from ..extraction.body_facts import NO_GROUPS, NONE, OK, BodyFacts, Groups, Session
from ..extraction.messages import ExtractedMessage
from .buffers import Lists, Numbers

NUMBER: Final = (1 << 40) - 1
NOTHING_SAID: Final = BodyFacts(OK)
"""What a message says that is not there."""


@final
class Held:
    """Partitions of a fetch session that has not changed since, and their topics."""

    def __init__(self, wanted: object, topics: list[Topic], groups: Groups) -> None:
        self.wanted: object = wanted
        self.topics: list[Topic] = topics
        self.groups: Groups = groups


@final
class Waiting:
    """The requests of one connection that may still be answered."""

    def __init__(self, connection: int, client: str, broker: str) -> None:
        self.connection: i64 = connection
        self.client: str = client
        self.broker: str = broker
        self.requests: list[ExtractedMessage] = []
        self.bytes: i64 = 0


@final
class Filled:
    """Values of columns, so far."""

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
    """Exchanges of a capture as values of columns. filled: what was not taken away yet."""

    def __init__(self, traffic: Traffic) -> None:
        self.traffic: Traffic = traffic
        self.open: dict[int, Waiting] = {}
        self.sessions: Sessions[tuple[Topic, int]] = Sessions()
        self.held: dict[tuple[int, int], Held] = {}
        self.file_index: i64 = -1
        self.file_name: str = ""
        self.never: i64 = NO_TIME
        self.filled: Filled = Filled()

    def taken(self) -> Filled:
        """Take the rows away."""
        filled = self.filled
        self.filled = Filled()
        return filled

    # -- pairing

    def take(self, connection: int, client: str, broker: str, heard: ExtractedMessage) -> None:
        """Take the next message of a connection."""
        waiting = self.open.get(connection)
        if waiting is None:
            waiting = self.open[connection] = Waiting(connection, client, broker)
        requests = waiting.requests
        if heard.is_request:
            requests.append(heard)
            waiting.bytes += heard.length
            while len(requests) > MAX_OPEN or (
                waiting.bytes > MAX_OPEN_BYTES and len(requests) > 1
            ):
                self.alone(waiting)
            return
        at: i64 = 0
        while at < len(requests):
            request = requests[at]
            if (
                request.packet == heard.request_packet
                and request.correlation_id == heard.correlation_id
            ):
                while at > 0:
                    self.alone(waiting)
                    at -= 1
                requests.pop(0)
                waiting.bytes -= request.length
                self.add(waiting, request, heard)
                return
            at += 1
        self.add(waiting, None, heard)

    def alone(self, waiting: Waiting) -> None:
        """Give up the oldest request."""
        request = waiting.requests.pop(0)
        waiting.bytes -= request.length
        self.add(waiting, request, None)

    def end(self, connection: int) -> None:
        """Take that nothing more comes of a connection."""
        waiting = self.open.pop(connection, None)
        if waiting is not None:
            while waiting.requests:
                self.alone(waiting)

    def finish(self) -> None:
        """Take that nothing more comes."""
        for connection in list(self.open):
            self.end(connection)

    # -- rows

    def add(
        self, waiting: Waiting, request: ExtractedMessage | None, response: ExtractedMessage | None
    ) -> None:
        """Add an exchange."""
        filled = self.filled
        filled.rows += 1
        told = response if request is None else request
        assert told is not None
        filled.connection.put64(waiting.connection)
        filled.client.append(waiting.client)
        filled.broker.append(waiting.broker)
        filled.api_key.put16(told.api_key)
        filled.api_name.append(told.api_name)
        filled.api_version.put16(told.api_version)
        filled.correlation_id.put32(told.correlation_id)
        filled.client_id.append(told.client_id)
        self.add_request(filled, request)
        self.add_response(filled, response)
        asks = NOTHING_SAID if request is None else request.notes
        says = NOTHING_SAID if response is None else response.notes
        filled.error_codes.put_both(asks.error_codes, says.error_codes)
        throttle = says.throttle_time_ms
        if throttle == NONE:
            throttle = asks.throttle_time_ms
        filled.throttle_time_ms.put32(throttle)
        filled.group_ids.put_both(asks.groups, says.groups)
        filled.transactional_ids.put_both(asks.transactional_ids, says.transactional_ids)
        session = asks.session
        if session is None:
            filled.topics.put_both(asks.topics, says.topics)
            filled.partitions.put(asks.partitions)
            filled.is_fetch.append(0)
            filled.complete.append(0)
            return
        held, complete = self.asked(waiting.connection, session, says.session)
        topics = asks.topics
        if says.topics or held.topics:
            topics = list(dict.fromkeys(topics + says.topics + held.topics))
        filled.topics.put(topics)
        filled.partitions.put(held.groups)
        filled.is_fetch.append(1)
        filled.complete.append(complete)

    def add_request(self, filled: Filled, request: ExtractedMessage | None) -> None:
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

    def add_response(self, filled: Filled, response: ExtractedMessage | None) -> None:
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
        """Name the file that a packet is in."""
        index = packet >> 40
        if index != self.file_index:
            self.file_index = index
            self.file_name = self.traffic.place(packet)[0]
        return self.file_name

    # -- fetch sessions

    def asked(self, connection: int, asks: Session, answer: Session | None) -> tuple[Held, bool]:
        """Say what a Fetch asks for, as its session knows."""
        wanted, complete = self.sessions.apply(
            connection,
            asks.id,
            asks.epoch,
            asks.listed,
            asks.forgotten,
            None if answer is None else (answer.error_code, answer.id),
        )
        held = self.held.get((connection, asks.id))
        if held is None or held.wanted is not wanted:
            held = held_of(wanted)
            if len(self.held) >= MAX_SESSIONS:
                self.held.clear()
            self.held[connection, asks.id] = held
        return held, complete


def held_of(wanted: dict[tuple[object, int], tuple[Topic, int]]) -> Held:
    """Group partitions by topic."""
    found: dict[object, tuple[Topic, list[int]]] = {}
    for (key, number), (topic, _) in wanted.items():
        group = found.get(key)
        if group is None:
            group = found[key] = topic, []
        group[1].append(number)
    topics = [topic for topic, _ in found.values() if topic.name or topic.id]
    return Held(wanted, topics, list(found.values()) if found else NO_GROUPS)


assert FILE_BITS == 40  # written out above, where compiled code wants a number
