"""The `exchanges` table filled column by column from what is heard of messages, without decoding
most of them.

Law: row for row what `exchanges.rows` makes of the decoded messages (a test holds one against the
other for every capture); pairing is as in `capture.exchanges`.

    Heard --by connection--> request, response --> columns --> record batches
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, final

from ...protocol.error_code import ErrorCode
from ..blocks import NO_TIME
from ..exchanges import MAX_OPEN, MAX_OPEN_BYTES
from ..fetch_sessions import MAX_SESSIONS, Sessions
from ..topic_ids import Topic
from .heard import Heard
from .notes import NO_GROUPS, NO_TEXTS, Groups, Notes, Session
from .traffic import FILE_BITS, Traffic

NUMBER: Final = (1 << FILE_BITS) - 1
NOTES: Final = Notes()
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
        self.connection: int = connection
        self.client: str = client
        self.broker: str = broker
        self.requests: deque[Heard] = deque()
        self.bytes: int = 0


@final
class ExchangeColumns:
    """Exchanges of a capture as values of columns; times are nanoseconds, None for none.

    rows: in the order of MADE: file, packet, time_ns, connection, client, broker, api_key, api_name, api_version,
    correlation_id, client_id, response_file, response_packet, request_bytes, request_status,
    response_time_ns, response_bytes, response_status, latency_ns, error_codes, errors,
    throttle_time_ms, topics, partitions, partitions_complete, group_ids, transactional_ids.
    """

    def __init__(self, places: Traffic) -> None:
        self.places: Traffic = places
        self.open: dict[int, Waiting] = {}
        self.sessions: Sessions[tuple[Topic, int]] = Sessions()
        self.held: dict[tuple[int, int], Held] = {}
        self.file_index: int = -1
        self.file_name: str = ""
        self.rows: list[tuple[Any, ...]] = []

    # -- pairing

    def take(self, connection: int, client: str, broker: str, heard: Heard) -> None:
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
        before = 0
        for request in requests:
            if (
                request.packet == heard.request_packet
                and request.correlation_id == heard.correlation_id
            ):
                while before > 0:
                    self.alone(waiting)
                    before -= 1
                asked = requests.popleft()
                waiting.bytes -= asked.length
                self.add(waiting, asked, heard)
                return
            before += 1
        self.add(waiting, None, heard)

    def alone(self, waiting: Waiting) -> None:
        """Give up the oldest request."""
        request = waiting.requests.popleft()
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

    def add(self, waiting: Waiting, request: Heard | None, response: Heard | None) -> None:
        """Add an exchange."""
        asks = NOTES if request is None else request.notes
        says = NOTES if response is None else response.notes
        told = response if request is None else request
        assert told is not None
        topics = both(asks.topics, says.topics)
        groups = asks.partitions
        complete: bool | None = None
        session = asks.session
        if session is not None and request is not None:
            held, complete = self.asked(waiting.connection, session, says.session)
            topics = both(topics, held.topics)
            groups = held.groups
        codes = both(asks.error_codes, says.error_codes)
        throttled = says.throttle_time_ms
        if throttled is None:
            throttled = asks.throttle_time_ms
        file: str | None = None
        packet: int | None = None
        time_ns: int | None = None
        request_bytes: int | None = None
        request_status: str | None = None
        if request is not None:
            file = self.file(request.packet)
            packet = request.packet & NUMBER
            time_ns = request.time_ns
            if time_ns == NO_TIME:
                time_ns = None
            request_bytes = request.length
            request_status = request.status
        response_file: str | None = None
        response_packet: int | None = None
        response_ns: int | None = None
        response_bytes: int | None = None
        response_status: str | None = None
        latency_ns: int | None = None
        if response is not None:
            response_file = self.file(response.packet)
            response_packet = response.packet & NUMBER
            response_ns = response.time_ns
            if response_ns == NO_TIME:
                response_ns = None
            response_bytes = response.length
            response_status = response.status
            asked_ns = response.request_time_ns
            if response_ns is not None and asked_ns is not None and asked_ns != NO_TIME:
                latency_ns = response_ns - asked_ns
        self.rows.append(
            (
                file,
                packet,
                time_ns,
                waiting.connection,
                waiting.client,
                waiting.broker,
                told.api_key,
                told.api_name,
                told.api_version,
                told.correlation_id,
                told.client_id,
                response_file,
                response_packet,
                request_bytes,
                request_status,
                response_ns,
                response_bytes,
                response_status,
                latency_ns,
                codes,
                [ErrorCode.name_of(code) for code in codes] if codes else NO_TEXTS,
                throttled,
                topics,
                groups,
                complete,
                both(asks.groups, says.groups),
                both(asks.transactional_ids, says.transactional_ids),
            )
        )

    def file(self, packet: int) -> str:
        """Name the file that a packet is in."""
        index = packet >> FILE_BITS
        if index != self.file_index:
            self.file_index = index
            self.file_name = self.places.place(packet)[0]
        return self.file_name

    # -- fetch sessions

    def asked(
        self, connection: int, asks: Session, answer: Session | None
    ) -> tuple[Held, bool]:
        """Say what a Fetch asks for, as its session knows."""
        wanted, complete = self.sessions.turn(
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


def both(first: list[Any], second: list[Any]) -> list[Any]:
    """Put what both sides say together, each once; what is given is never changed."""
    if not second or first is second:
        return first
    if not first:
        return second
    return list(dict.fromkeys(first + second))

