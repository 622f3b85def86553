"""Rules about requests that wait: behind others, for a stalled broker, for an impatient client."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey

from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold, client_of
from .latencies import PROMPT

MAX_IN_FLIGHT: Final = 16
"""Responses of a connection that are kept, to count requests in flight."""


class Blocked:
    """The Produce requests of a client that waited behind others. most: in flight at once."""

    __slots__ = ("latency_ns", "most", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.latency_ns = self.most = 0


class HeadOfLineBlocking(Rule):
    """Requests that wait behind others of their connection."""

    name = "head-of-line-blocking"
    description = (
        "A producer has several requests in flight, and most of their latency is the wait for the "
        "ones before: a broker handles the requests of a connection one after the other."
    )
    apis = frozenset({ApiKey.PRODUCE})
    thresholds = (
        Threshold("requests", 50, "requests", "fewer may be a burst"),
        Threshold("milliseconds", 100, "ms", "on average; a shorter wait rarely matters"),
        Threshold("share", 0.5, "of the latency", "below, the broker takes longer than the wait"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._responses: dict[int, deque[int]] = {}
        self._clients: Subjects[Blocked] = Subjects(Blocked)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Compare the time of a request with those of the responses before."""
        connection, request, response = exchange.connection, exchange.request, exchange.response
        if request is None or response is None:
            return
        sent_ns, at_ns = request.time_ns, response.time_ns
        if sent_ns == NO_TIME or at_ns == NO_TIME:
            return
        responses = self._responses.get(connection)
        if responses is None:
            responses = self._responses[connection] = deque(maxlen=MAX_IN_FLIGHT)
        if responses and responses[-1] > sent_ns:
            client = self._clients.of_key(
                (request.client_id or exchange.client, exchange.broker),
                lambda: client_of(exchange, broker=exchange.broker),
            )
            client.seen.add(request, time_ns=responses[-1] - sent_ns)
            client.latency_ns += at_ns - sent_ns
            client.most = max(client.most, 1 + sum([one > sent_ns for one in responses]))
        responses.append(at_ns)

    def ended(self, connection: Ended) -> None:
        """Forget a connection."""
        self._responses.pop(connection.connection, None)

    def findings(self) -> Iterator[Finding]:
        """Return the producers whose requests wait for each other."""
        for subject, blocked in self._clients:
            seen = blocked.seen
            waited_ms = seen.time_ns / seen.count / 1e6
            if seen.count < self.limits["requests"] or waited_ms < self.limits["milliseconds"]:
                continue
            if seen.time_ns < self.limits["share"] * blocked.latency_ns:
                continue
            latency_ms = blocked.latency_ns / seen.count / 1e6
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{plural(seen.count, 'Produce request')} waited {waited_ms:,.0f} ms of "
                f"{latency_ms:,.0f} ms on average for those before them",
                seen,
                "The broker acknowledges records more slowly than the producer sends requests.",
                "Send fewer and larger requests (linger.ms, batch.size), spread partitions over "
                "more brokers, and look at what makes Produce slow (acks=all waits for followers).",
                Confidence.HIGH,
                (Setting("max.in.flight.requests.per.connection", f"{blocked.most} in flight"),),
                terms=("api == Produce",),
            )


class Timeouts:
    """Requests on which a client gave up. shortest_ns, longest_ns: how long it had waited."""

    __slots__ = ("longest_ns", "seen", "shortest_ns")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.shortest_ns = self.longest_ns = 0


class Pending(dict[int, tuple[Subject, int, int]]):
    """The first request without a response of each open connection: client, packet, time."""


class ShortTimeouts(Rule):
    """Clients that do not wait long enough."""

    name = "short-timeouts"
    description = (
        "A client closes its connection after a short time that is always the same, while a "
        "request waits for its response: its timeout is shorter than the broker's answers. Brokers "
        "of which the capture has no response at all are not judged."
    )
    apis = PROMPT
    thresholds = (
        Threshold("requests", 3, "requests", "one or two may be a client that ends"),
        Threshold("at_least", 0.2, "s", "a shorter wait is a client that ends"),
        Threshold("at_most", 5, "s", "longer is enough for a healthy broker"),
        Threshold("spread", 0.25, "of the shortest", "a timer has about the same length"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._pending = Pending()
        self._clients: Subjects[Timeouts] = Subjects(Timeouts)

    def unanswered(self, exchange: Exchange, request: Row) -> None:
        """Note a request without a response, until its connection ends."""
        subject = client_of(exchange, broker=exchange.broker, api=request.api_name)
        self._pending.setdefault(exchange.connection, (subject, request.packet, request.time_ns))

    def ended(self, connection: Ended) -> None:
        """Count a request that waited when the client closed its connection."""
        first = self._pending.pop(connection.connection, None)
        finished_ns = connection.client_tcp.finished_ns
        if first is None or finished_ns is None:
            return
        subject, packet, sent_ns = first
        waited_ns = since(sent_ns, finished_ns)  # late responses are reset
        low, high = self.limits["at_least"] * 1e9, self.limits["at_most"] * 1e9
        if waited_ns is None or not low <= waited_ns < high:
            return
        client = self._clients.of(subject)
        client.seen.add_at(packet, sent_ns, time_ns=waited_ns)
        client.longest_ns = max(client.longest_ns, waited_ns)
        client.shortest_ns = min(client.shortest_ns or waited_ns, waited_ns)

    def findings(self) -> Iterator[Finding]:
        """Return the clients with such a timeout."""
        for subject, client in self._clients:
            spread_ns = client.longest_ns - client.shortest_ns
            if client.seen.count < self.limits["requests"]:
                continue
            if PROMPT.isdisjoint(self.scene.responding.apis(subject.broker)):
                continue
            if spread_ns > self.limits["spread"] * client.shortest_ns:
                continue
            milliseconds = f"{client.shortest_ns / 1e6:,.0f} ms"
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"gave up {plural(client.seen.count, 'request')} after {milliseconds}",
                client.seen,
                "The client's timeout is shorter than the broker needs now and then.",
                "Raise request.timeout.ms (socket.timeout.ms of librdkafka) above the slowest "
                "responses; see kafkawire latency --by api.",
                Confidence.MEDIUM,
                (Setting("request.timeout.ms", f"about {milliseconds}"),),
            )


class Stall:
    """A time in which a broker sent nothing. connections: those that waited through it."""

    __slots__ = ("began_ns", "connections", "ended_ns", "packet")

    def __init__(self, began_ns: int, ended_ns: int, packet: int) -> None:
        self.began_ns, self.ended_ns, self.packet = began_ns, ended_ns, packet
        self.connections: set[int] = set()


class BrokerStalls(Rule):
    """Brokers that respond to everybody at once, after a pause."""

    name = "broker-stalls"
    description = (
        "A broker responds to nobody for a while, and then to many connections at once: its "
        "request queue stood still. Requests that wait on purpose are not counted."
    )
    apis = PROMPT
    thresholds = (
        Threshold("connections", 5, "connections", "of fewer, the clients may be the cause"),
        Threshold("seconds", 0.5, "s", "a healthy broker pauses for milliseconds"),
        Threshold("burst", 0.2, "s", "in which the responses come"),
        Threshold("critical", 20, "stalls", "the broker hardly works"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._last: dict[str, int] = {}
        self._stalls: dict[str, Stall] = {}
        self._brokers: Subjects[Occurrences] = Subjects(Occurrences)
        self._pause_ns, self._burst_ns = limits["seconds"] * 1e9, limits["burst"] * 1e9

    def responded(self, exchange: Exchange, latency_ns: int) -> None:
        """Note when a broker responds, and who waited since before its pause."""
        _, _, broker, _, response = exchange
        assert response is not None
        at_ns = response.time_ns
        last_ns = self._last.get(broker)
        if last_ns is None:
            if len(self._last) >= MAX_SUBJECTS:
                return
            self._last[broker] = at_ns
        elif at_ns > last_ns:
            self._last[broker] = at_ns
            if at_ns - last_ns >= self._pause_ns:
                self._judge(broker)
                self._stalls[broker] = Stall(last_ns, at_ns, response.packet)
        stall = self._stalls.get(broker)
        if stall is None:
            return
        if at_ns - stall.ended_ns > self._burst_ns:
            self._judge(broker)
        elif stall.ended_ns - at_ns + latency_ns >= self._pause_ns:
            stall.connections.add(exchange.connection)

    def _judge(self, broker: str) -> None:
        """Count the last stall of a broker if many waited."""
        stall = self._stalls.pop(broker, None)
        if stall is not None and len(stall.connections) >= self.limits["connections"]:
            self._brokers.of(Subject(broker=broker)).add_at(
                stall.packet, stall.ended_ns, time_ns=stall.ended_ns - stall.began_ns
            )

    def findings(self) -> Iterator[Finding]:
        """Return the brokers that stalled."""
        for broker in list(self._stalls):
            self._judge(broker)
        for subject, seen in self._brokers:
            is_critical = seen.count >= self.limits["critical"]
            yield Finding(
                self.name,
                Severity.CRITICAL if is_critical else Severity.WARNING,
                subject,
                f"responded to nobody for {seen.average_time(1)}, {plural(seen.count, 'time')}",
                seen,
                "A pause of garbage collection, a disk that hangs, or a full request queue.",
                "Look at the broker's GC log and disks at these times, and at the metrics "
                "RequestQueueSize and RequestHandlerAvgIdlePercent.",
                Confidence.MEDIUM,
                (Setting("num.io.threads"), Setting("queued.max.requests")),
            )
