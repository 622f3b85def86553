"""Rules about connections: those that fail, their number and their ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey

from ...apis import expects_no_response
from ...clients import host
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import Rule, Scene, Subjects, Threshold, client_at, client_of
from .responses import LONG_WAITS

HELLO: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.SASL_HANDSHAKE})
"""APIs of which at least one is on each connection of a client."""


class Lives:
    """The connections of a client to a broker."""

    __slots__ = ("life_ns", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.life_ns = 0


def of_connection(connection: Ended) -> Subject:
    """Return the address of a connection's client and its broker as a subject."""
    return Subject(address=host(connection.client), broker=connection.broker)


class ClientsOfConnections:
    """The clients of open connections, by client id and address."""

    def __init__(self) -> None:
        self._open: dict[int, Subject] = {}

    def note(self, exchange: Exchange) -> None:
        """Note the client of a connection."""
        if exchange.connection not in self._open:
            self._open[exchange.connection] = client_at(exchange)

    def ended(self, connection: Ended) -> Subject | None:
        """Return the client of a connection that ended, with its broker; None if unknown."""
        client = self._open.pop(connection.connection, None)
        return None if client is None else client._replace(broker=connection.broker)


class ConnectionChurn(Rule):
    """Short connections, one after the other."""

    name = "connection-churn"
    description = (
        "A client opens connections all the time and uses each only briefly: handshakes, "
        "authentication and metadata cost more than the requests."
    )
    apis = HELLO
    thresholds = (
        Threshold("connections", 50, "connections", "a client opens one or two per broker"),
        Threshold("per_second", 0.5, "1/s", "connections.max.idle.ms is nine minutes"),
        Threshold("life", 10, "s", "a connection that lives longer is used"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._connections = ClientsOfConnections()
        self._clients: Subjects[Lives] = Subjects(Lives)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note the client of a connection."""
        self._connections.note(exchange)

    def ended(self, connection: Ended) -> None:
        """Count a connection of a client."""
        subject = self._connections.ended(connection)
        if subject is None:
            return
        lives = self._clients.of(subject)
        lives.seen.add_at(connection.first_packet, connection.first_ns, connection.captured_bytes)
        lives.life_ns += since(connection.first_ns, connection.last_ns) or 0

    def findings(self) -> Iterator[Finding]:
        """Return the clients that open many connections."""
        for subject, lives in self._clients:
            seen = lives.seen
            if seen.count < self.limits["connections"]:
                continue
            life_s = lives.life_ns / seen.count / 1e9
            if life_s > self.limits["life"] or seen.per_second < self.limits["per_second"]:
                continue
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{seen.count:,} connections of {life_s:.1f} s on average, "
                f"{seen.per_second:.1f} a second",
                seen,
                "The application creates a client for each message or task, or its connections "
                "fail.",
                "Keep one producer or consumer per process and reuse it.",
                Confidence.HIGH,
                (Setting("connections.max.idle.ms"),),
            )


POLLS: Final = LONG_WAITS | {ApiKey.FETCH, ApiKey.SHARE_FETCH}
"""APIs whose requests are in flight nearly always, also when a client closes in order."""


class InFlight(NamedTuple):
    """The first request of a connection that has no response."""

    subject: Subject
    sent_ns: int


class ConnectionResets(Rule):
    """Connections that end with requests in flight."""

    name = "connection-resets"
    description = "Connections are reset while requests wait for their responses."
    thresholds = (
        Threshold("connections", 3, "connections", "a killed process causes one per broker"),
        Threshold("seconds", 0.1, "s", "a client that ends does not wait for its last request"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._open: dict[int, InFlight] = {}
        self._clients: Subjects[Occurrences] = Subjects(Occurrences)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note a request without a response, until its connection ends."""
        request = exchange.request
        if exchange.response is not None or request is None or request.api_key in POLLS:
            return
        if not expects_no_response(exchange):
            subject = client_of(exchange, broker=exchange.broker)
            self._open.setdefault(exchange.connection, InFlight(subject, request.time_ns))

    def ended(self, connection: Ended) -> None:
        """Count a connection that was reset with requests in flight."""
        first = self._open.pop(connection.connection, None)
        if first is None or not connection.reset:
            return
        waited_ns = since(first.sent_ns, connection.last_ns)
        if waited_ns is not None and waited_ns >= self.limits["seconds"] * 1e9:
            self._clients.of(first.subject).add_at(
                connection.last_packet, connection.last_ns, time_ns=waited_ns
            )

    def findings(self) -> Iterator[Finding]:
        """Return the clients whose connections were reset."""
        for subject, seen in self._clients:
            if seen.count >= self.limits["connections"]:
                yield Finding(
                    self.name,
                    Severity.WARNING,
                    subject,
                    f"{plural(seen.count, 'connection')} reset with requests in flight",
                    seen,
                    "A process ends or closes its connections without waiting, or a firewall or "
                    "load balancer drops idle connections.",
                    "Close clients before a process ends; keep connections.max.idle.ms below the "
                    "idle timeout of devices between them.",
                    Confidence.LOW,
                    (Setting("connections.max.idle.ms"),),
                )


REFUSED: Final = "refused (RST)"
UNANSWERED: Final = "without an answer"

CAUSES: Final = {
    REFUSED: "No process listens on the port: the broker is down, or it restarts.",
    UNANSWERED: "The host is down, or a firewall drops the packets.",
}


class FailedConnections(Rule):
    """Connections that are not established."""

    name = "failed-connections"
    description = (
        "A client tries to connect to the port of a broker, and gets a RST or no answer at all "
        "(half-open connections)."
    )
    thresholds = (
        Threshold("attempts", 3, "attempts", "a broker that restarts refuses one or two"),
        Threshold("critical", 100, "attempts", "the client tries again and again"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._attempts: dict[str, Subjects[Occurrences]] = {
            outcome: Subjects(Occurrences) for outcome in CAUSES
        }

    def ended(self, connection: Ended) -> None:
        """Count a connection without the SYN of the broker and without data."""
        if not connection.client_tcp.opened or connection.broker_tcp.opened:
            return
        if not connection.captured_bytes:
            attempts = self._attempts[REFUSED if connection.reset else UNANSWERED]
            attempts.of(of_connection(connection)).add_at(
                connection.first_packet, connection.first_ns
            )

    def findings(self) -> Iterator[Finding]:
        """Return the clients and brokers with failed attempts, at ports that brokers have."""
        ports = {port_of(broker) for broker in self.scene.clients.brokers}
        for outcome, subjects in self._attempts.items():
            for subject, seen in subjects:
                if seen.count < self.limits["attempts"] or port_of(subject.broker) not in ports:
                    continue
                is_critical = seen.count >= self.limits["critical"]
                yield Finding(
                    self.name,
                    Severity.CRITICAL if is_critical else Severity.WARNING,
                    subject,
                    f"{plural(seen.count, 'connection')} {outcome}",
                    seen,
                    CAUSES[outcome],
                    "Check that the broker runs, and advertised.listeners and firewalls; remove "
                    "hosts that are gone from bootstrap.servers.",
                    Confidence.MEDIUM,
                    (Setting("bootstrap.servers"), Setting("reconnect.backoff.ms")),
                )


def port_of(broker: str | None) -> str:
    """Return the port of `address:port`."""
    return (broker or "").rpartition(":")[2]
