"""Rules about connections: their number and their ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import inf
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey

from ...clients import host
from ..finding import OTHERS, Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import Rule, Scene, Subjects, Threshold, client_at, client_of
from .responses import LONG_WAITS

HELLO: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.SASL_HANDSHAKE})
"""APIs of which at least one is on each connection of a client."""
MAX_CONNECTIONS: Final = 100_000
"""Connections whose times are kept."""


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


class Spans:
    """When the connections of a client to a broker were open: first and last times."""

    __slots__ = ("seen", "spans")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.spans: list[tuple[int, float]] = []

    @property
    def most(self) -> int:
        """How many were open at the same time, at most."""
        ends = [(last_ns, -1) for _, last_ns in self.spans]
        changes = sorted([*ends, *((first_ns, 1) for first_ns, _ in self.spans)])
        return max(accumulate(change for _, change in changes), default=0)


class ManyConnections(Rule):
    """Very many connections at once."""

    name = "many-connections"
    description = (
        "A client, by its client id and host, has very many connections to a broker open at the "
        "same time: each takes memory of the broker, and a part of max.connections.per.ip."
    )
    apis = HELLO
    thresholds = (
        Threshold("connections", 50, "connections", "a client opens one or two per broker"),
        Threshold("life", 10, "s", "of each; shorter ones are churn"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._connections = ClientsOfConnections()
        self._clients: Subjects[Spans] = Subjects(Spans)
        self._spans = 0

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note the client of a connection."""
        self._connections.note(exchange)

    def ended(self, connection: Ended) -> None:
        """Note how long a connection was open: until the end, if the capture has no FIN or RST."""
        subject = self._connections.ended(connection)
        if subject is None or NO_TIME in (connection.first_ns, connection.last_ns):
            return
        closed = connection.client_tcp.finished or connection.broker_tcp.finished
        last_ns = connection.last_ns if closed or connection.reset else inf
        long_enough = last_ns - connection.first_ns >= self.limits["life"] * 1e9
        if long_enough and self._spans < MAX_CONNECTIONS:
            self._spans += 1
            client = self._clients.of(subject)
            client.seen.add_at(connection.first_packet, connection.first_ns)
            client.spans.append((connection.first_ns, last_ns))

    def findings(self) -> Iterator[Finding]:
        """Return the clients with many connections."""
        for subject, client in self._clients:
            most = client.most
            if most >= self.limits["connections"] and subject != OTHERS:
                yield Finding(
                    self.name,
                    Severity.WARNING,
                    subject,
                    f"{most:,} connections to one broker at the same time",
                    client.seen,
                    "The application creates a client for each thread or task and does not close "
                    "them, or many processes run on the host, or behind its address.",
                    "Share one producer between threads, and close clients; give each process a "
                    "client.id of its own to see which one it is.",
                    Confidence.MEDIUM,
                    (
                        Setting("max.connections.per.ip"),
                        Setting("max.connections"),
                        Setting("connections.max.idle.ms"),
                    ),
                    "KIP-402",
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

    def unanswered(self, exchange: Exchange, request: Row) -> None:
        """Note a request without a response, until its connection ends."""
        if request.api_key not in POLLS:
            subject = client_of(exchange, broker=exchange.broker)
            self._open.setdefault(exchange.connection, InFlight(subject, request.time_ns))

    def ended(self, connection: Ended) -> None:
        """Count a connection that was reset with requests in flight."""
        first = self._open.pop(connection.connection, None)
        if first is None or not connection.reset or connection.client_tcp.finished:
            return  # a client that closed its connection resets what comes late
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
