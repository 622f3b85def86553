"""Rules about responses: those that never come, and those that come late."""

# over 300 lines: what becomes of a request without a response, by one way to wait for it

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.rows import Located, Row, Status
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.frame import SIZE

from ...clients import ONE_DIRECTION, Period
from ...expected import expects_no_response
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold, client_of

LONG_WAITS: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
"""APIs whose responses wait for other members, for minutes if need be."""

MAX_WAITING: Final = 100
"""Requests without a response of a connection that are kept."""


class Waiting(NamedTuple):
    """A request without a response, as long as its connection is open."""

    subject: Subject
    packet: int
    time_ns: int
    size: int
    may_wait_ns: int


def waiting_request(exchange: Exchange, request: Row) -> Waiting:
    """Return a request without a response, and whose it is."""
    subject = client_of(exchange, broker=exchange.broker, api=request.api_name)
    size = request.length + SIZE
    return Waiting(subject, request.packet, request.time_ns, size, may_wait_ns(request))


class UnansweredRequests(Rule):
    """Requests that never get a response."""

    name = "unanswered-requests"
    description = (
        "A request gets no response although its connection stays open for a while: the broker "
        "hangs, or the client gave up. Connections with gaps, and brokers of which the capture has "
        "no response at all, are not counted."
    )
    statuses = frozenset({Status.GAP, Status.TRUNCATED})
    thresholds = (
        Threshold("requests", 1, "requests", "brokers respond to every request"),
        Threshold("seconds", 5, "s", "a response is usually there within a second"),
        Threshold("critical", 20, "requests", "the client makes no progress"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._open: dict[int, list[Waiting]] = {}
        self._with_gaps: set[int] = set()
        self._clients: Subjects[Occurrences] = Subjects(Occurrences)

    def row(self, located: Located) -> None:
        """Note that a connection has a gap, in which responses may be."""
        if located.connection is not None:
            self._with_gaps.add(located.connection)

    def unanswered(self, exchange: Exchange, request: Row) -> None:
        """Note a request without a response, until its connection ends."""
        if request.api_key in LONG_WAITS:
            return
        waiting = self._open.setdefault(exchange.connection, [])
        if len(waiting) < MAX_WAITING:
            waiting.append(waiting_request(exchange, request))

    def ended(self, connection: Ended) -> None:
        """Judge the requests of a connection by how long the client kept it open after them."""
        requests = self._open.pop(connection.connection, ())
        if connection.connection in self._with_gaps:
            self._with_gaps.discard(connection.connection)
            return
        finished_ns = connection.client_tcp.finished_ns  # the client no longer waits
        until_ns = connection.last_ns if finished_ns is None else finished_ns
        for request in requests:
            waited_ns = since(request.time_ns, until_ns)
            allowed_ns = self.limits["seconds"] * 1e9 + request.may_wait_ns
            if waited_ns is not None and waited_ns >= allowed_ns:
                self._clients.of(request.subject).add_at(
                    request.packet, request.time_ns, request.size, waited_ns
                )

    def findings(self) -> Iterator[Finding]:
        """Return the clients whose requests got no response."""
        for subject, seen in self._clients:
            if seen.count < self.limits["requests"]:
                continue
            if subject.broker not in self.scene.responding:
                continue
            is_critical = seen.count >= self.limits["critical"]
            yield Finding(
                self.name,
                Severity.CRITICAL if is_critical else Severity.WARNING,
                subject,
                f"{plural(seen.count, 'request')} without a response for {seen.average_time(0)}",
                seen,
                "The broker is paused, overloaded or dead, or a device on the way drops packets.",
                "Look at the broker at these times; compare request.timeout.ms.",
                Confidence.MEDIUM,
                (Setting("request.timeout.ms"),),
            )


class OneWayCaptures(Rule):
    """Captures with one direction of the traffic."""

    name = "one-way-captures"
    description = (
        "Of a broker, the capture has requests and no response at all, or responses and no "
        "request, or of a connection the SYN of one side only: what the other direction would show "
        "is not diagnosed."
    )
    thresholds = (
        Threshold("messages", 10, "messages", "of fewer, the others may not be captured"),
        Threshold("connections", 1, "connections", "without a message; nothing of them is known"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._directions: dict[str, Subjects[Occurrences]] = {
            direction: Subjects(Occurrences) for direction in ("request", "response")
        }
        self._both: set[str] = set()
        self._half: set[str] = set()

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note the directions of a broker's traffic."""
        if exchange.broker in self._both:
            return
        if exchange.request is not None and exchange.response is not None:
            self._both.add(exchange.broker)
        elif not expects_no_response(exchange):
            row = exchange.main_row
            seen = self._directions[row.direction].of(Subject(broker=exchange.broker))
            seen.add(row, row.length + SIZE)

    def ended(self, connection: Ended) -> None:
        """Note a broker with data on a connection of which one side's SYN alone was captured."""
        half = connection.client_tcp.opened != connection.broker_tcp.opened
        if half and connection.captured_bytes and len(self._half) < MAX_SUBJECTS:
            self._half.add(connection.broker)

    def findings(self) -> Iterator[Finding]:
        """Return the brokers with one direction."""
        for direction, brokers in self._directions.items():
            for subject, seen in brokers:
                enough = seen.count >= self.limits["messages"] or subject.broker in self._half
                if enough and subject.broker not in self._both:
                    yield self._finding(subject, seen, direction)
        for broker, seen in self._without_messages().items():
            if seen.count >= self.limits["connections"]:
                yield self._finding(Subject(broker=broker), seen, "connection")

    def _without_messages(self) -> dict[str, Occurrences]:
        """Return the connections with one direction in which nothing was decoded, by broker."""
        brokers: dict[str, Occurrences] = {}
        for connections, count in self.scene.clients.undecoded.items():
            if connections.reason == ONE_DIRECTION:
                seen = brokers.setdefault(connections.broker, Occurrences())
                period = self.scene.clients.undecoded_periods[connections]
                seen.count += count
                period = period.extended(Period(seen.first_ns, seen.last_ns))
                seen.first_ns, seen.last_ns = period
        return brokers

    def _finding(self, subject: Subject, seen: Occurrences, what: str) -> Finding:
        return Finding(
            self.name,
            Severity.NOTICE,
            subject,
            f"{plural(seen.count, what)}, and nothing of the other direction",
            seen,
            "The capturing host or port sees only one direction (a filter with src or dst, "
            "asymmetric routes, a mirror port for one direction), or the broker never responds.",
            "Capture both directions, on the broker or the client (tcp port 9092).",
            Confidence.MEDIUM,
        )


UNKNOWN_WAIT_NS: Final = 3600 * 10**9
"""Of a request that was cut off before what it says of waiting: it is not judged."""
MAY_WAIT: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.SHARE_FETCH,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
    }
)
"""APIs whose requests say how long the broker may wait."""


def may_wait_ns(request: Row) -> int:
    """Return how long a broker may wait on purpose before it responds, as the request says."""
    message: Any = request.message
    if message is None and request.api_key in MAY_WAIT:
        return UNKNOWN_WAIT_NS
    waits: list[int] = [getattr(message, name, 0) for name in ("max_wait_ms", "timeout_ms")]
    return max(waits) * 1_000_000


class Slow:
    """The late responses to a client. closed: of these, connections that the broker closed."""

    __slots__ = ("closed", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.closed = 0


class SlowResponses(Rule):
    """Responses that come too late."""

    name = "slow-responses"
    description = (
        "A broker takes many seconds for requests that do not wait on purpose: the client may have "
        "stopped waiting by then. If it closed its connection before, the time until the broker "
        "closes it, too, counts: a broker reads on, and sees the close, when it has responded."
    )
    thresholds = (
        Threshold("responses", 1, "responses", "a healthy broker responds within a second"),
        Threshold("seconds", 5, "s", "beyond the wait that the request allows"),
        Threshold("critical", 100, "responses", "the broker is not usable"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._longest_ns = self.least_latency_ns = int(limits["seconds"] * 1e9)
        self._clients: Subjects[Slow] = Subjects(Slow)
        self._open: dict[int, Waiting] = {}

    def responded(self, exchange: Exchange, latency_ns: int) -> None:
        """Count a response that took too long."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or request.api_key in LONG_WAITS:
            return
        if latency_ns >= self._longest_ns + may_wait_ns(request):
            subject = client_of(exchange, broker=exchange.broker, api=request.api_name)
            self._clients.of(subject).seen.add(response, response.length + SIZE, latency_ns)

    def unanswered(self, exchange: Exchange, request: Row) -> None:
        """Note the first request of a connection without a response."""
        if exchange.connection not in self._open and request.api_key not in LONG_WAITS:
            self._open[exchange.connection] = waiting_request(exchange, request)

    def ended(self, connection: Ended) -> None:
        """Count a request whose client closed before the broker did, many seconds later."""
        request = self._open.pop(connection.connection, None)
        client_ns, broker_ns = connection.client_tcp.finished_ns, connection.broker_tcp.finished_ns
        if request is None or client_ns is None or broker_ns is None:
            return
        given_up, closed = since(request.time_ns, client_ns), since(request.time_ns, broker_ns)
        longest_ns = self._longest_ns + request.may_wait_ns
        if given_up is None or closed is None or given_up >= longest_ns:
            return  # a client that waits for so long is one of unanswered-requests
        if closed >= longest_ns:
            client = self._clients.of(request.subject)
            client.seen.add_at(request.packet, request.time_ns, request.size, closed)
            client.closed += 1

    def findings(self) -> Iterator[Finding]:
        """Return the clients whose responses came late."""
        for subject, client in self._clients:
            seen = client.seen
            if seen.count < self.limits["responses"]:
                continue
            is_critical = seen.count >= self.limits["critical"]
            yield Finding(
                self.name,
                Severity.CRITICAL if is_critical else Severity.WARNING,
                subject,
                f"{_late(client)} after {seen.average_time(1)}",
                seen,
                "The broker was paused (garbage collection, a virtual machine), or its disks or "
                "its request queue stall.",
                "Look at the broker at these times; compare request.timeout.ms (librdkafka: "
                "socket.timeout.ms) of the client.",
                Confidence.MEDIUM,
                (Setting("request.timeout.ms"),),
                terms=()
                if client.closed == seen.count
                else (f"latency > {self.limits['seconds']:g}s",),
            )


def _late(client: Slow) -> str:
    """Say how many responses came late, and how many connections were closed instead."""
    responses = client.seen.count - client.closed
    parts = [plural(responses, "response")] if responses else []
    if client.closed:
        parts.append(f"{plural(client.closed, 'close')} instead of a response")
    return " and ".join(parts)
