"""Rules about TCP: windows, segment sizes, round-trip times, retransmissions."""

# over 300 lines: what TCP itself says about a connection, a rule each

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.rows import Located, Status
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tcp.events import DiscardReason
from kafkawire.display import plural

from ...clients import host
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import Rule, Scene, Subjects, Threshold, client_at
from .connections import HELLO, ClientsOfConnections, of_connection
from .latencies import PROMPT


class Repeated:
    """The retransmissions between two hosts. captured: bytes, without the repeated ones."""

    __slots__ = ("captured", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.captured = 0


class Retransmissions(Rule):
    """Bytes that were sent again."""

    name = "retransmissions"
    description = "TCP sends many bytes again: packets get lost or come too late."
    statuses = frozenset({Status.DISCARDED})
    thresholds = (
        Threshold("bytes", 100_000, "B", "fewer rarely matter"),
        Threshold("share", 0.01, "of all bytes", "a healthy network loses far less"),
        Threshold("copies", 0.4, "of all bytes", "so many are packets that were captured twice"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._hosts: Subjects[Repeated] = Subjects(Repeated)
        self._counted = bytearray()  # by connection, 1 if it is among the occurrences

    def row(self, located: Located) -> None:
        """Add bytes that were captured again after the end of their connection."""
        row = located.row
        if row.error == DiscardReason.REPEATED and located.connection is not None:
            repeated = self._between(located.client or "", located.broker or "")
            repeated.captured += row.length
            self._add(repeated.seen, located.connection, row.packet, row.time_ns, row.length)

    def ended(self, connection: Ended) -> None:
        """Add the bytes of a connection."""
        repeated = self._between(connection.client, connection.broker)
        repeated.captured += connection.captured_bytes
        if connection.repeated_bytes:
            self._add(
                repeated.seen,
                connection.connection,
                connection.first_packet,
                connection.first_ns,
                connection.repeated_bytes,
            )

    def _between(self, client: str, broker: str) -> Repeated:
        return self._hosts.of(Subject(address=host(client), broker=broker))

    def _add(
        self, seen: Occurrences, connection: int, packet: int, time_ns: int, size: int
    ) -> None:
        """Add bytes of a connection, which is one occurrence."""
        self._counted.extend(bytes(max(0, connection + 1 - len(self._counted))))
        if self._counted[connection]:
            seen.bytes += size
        else:
            self._counted[connection] = 1
            seen.add_at(packet, time_ns, size)

    def findings(self) -> Iterator[Finding]:
        """Return the hosts with many retransmissions."""
        for subject, repeated in self._hosts:
            seen = repeated.seen
            share = seen.bytes / max(repeated.captured, 1)
            if seen.bytes < self.limits["bytes"] or share < self.limits["share"]:
                continue
            copied = share >= self.limits["copies"]
            yield Finding(
                self.name,
                Severity.NOTICE if copied else Severity.WARNING,
                subject,
                f"{seen.bytes:,} bytes ({share:.1%}) were sent again on "
                f"{plural(seen.count, 'connection')}",
                seen,
                "Packets were captured twice (several interfaces, a bridge, both hosts)."
                if copied
                else "Packets get lost between the two hosts, or a window is too small.",
                "Capture on one interface of one host."
                if copied
                else "Look for drops on interfaces and devices between them, and at TCP settings.",
                Confidence.MEDIUM,
            )


class Advice(NamedTuple):
    """The cause of closed windows of one side, and what to look at."""

    cause: str
    advice: str
    setting: str


CLIENT: Final = "client"
BROKER: Final = "broker"

ADVICE: Final = {
    CLIENT: Advice(
        "The client does not read its responses: it processes records for long, is short of CPU "
        "time, or was paused (garbage collection).",
        "Look at the client at these times; fetch.max.bytes and max.partition.fetch.bytes limit "
        "what it receives at once.",
        "receive.buffer.bytes",
    ),
    BROKER: Advice(
        "The broker does not read requests: its request queue is full, it throttles the client, "
        "or it was paused.",
        "Look at the broker's request queue, its network and I/O threads (queued.max.requests, "
        "num.network.threads, num.io.threads), and quotas.",
        "socket.receive.buffer.bytes",
    ),
}


class ZeroWindows(Rule):
    """Receive windows that close."""

    name = "zero-windows"
    description = (
        "One side of a connection closes its receive window for a long time: it does not read what "
        "the other side sends, which has to wait."
    )
    apis = HELLO
    thresholds = (
        Threshold("seconds", 1, "s", "in all; a receiver that keeps up closes it for milliseconds"),
        Threshold("critical", 60, "s", "the other side cannot send for a minute"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._connections = ClientsOfConnections()
        self._sides: dict[str, Subjects[Occurrences]] = {
            side: Subjects(Occurrences) for side in ADVICE
        }

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note the client of a connection."""
        self._connections.note(exchange)

    def ended(self, connection: Ended) -> None:
        """Add the closed windows of a connection."""
        client = self._connections.ended(connection)
        for side, tcp in ((CLIENT, connection.client_tcp), (BROKER, connection.broker_tcp)):
            if tcp.zero_windows:
                seen = self._sides[side].of(client or of_connection(connection))
                seen.add_at(connection.first_packet, connection.first_ns, 0, tcp.closed_ns)
                seen.count += tcp.zero_windows - 1

    def findings(self) -> Iterator[Finding]:
        """Return the clients and brokers whose windows were closed for long."""
        for side, subjects in self._sides.items():
            for subject, seen in subjects:
                seconds = seen.time_ns / 1e9
                if seconds < self.limits["seconds"]:
                    continue
                is_critical = seconds >= self.limits["critical"]
                cause, advice, setting = ADVICE[side]
                yield Finding(
                    self.name,
                    Severity.CRITICAL if is_critical else Severity.WARNING,
                    subject,
                    f"the receive window of the {side} was closed {plural(seen.count, 'time')}, "
                    f"{seconds:,.1f} s in all",
                    seen,
                    cause,
                    advice,
                    Confidence.HIGH,
                    (Setting(setting),),
                    "RFC 9293, section 3.8.6",
                )


class Segments:
    """The connections between two hosts with small segments. mss: the smallest."""

    __slots__ = ("mss", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.mss = 1 << 16


class SmallSegments(Rule):
    """Connections with a small maximum segment size."""

    name = "small-segments"
    description = (
        "A connection that carries much data has a small maximum segment size (MSS): more packets, "
        "headers and interrupts than necessary."
    )
    thresholds = (
        Threshold("mss", 1200, "B", "Ethernet has 1460; tunnels and IPv6 rarely less than 1220"),
        Threshold("bytes", 1_000_000, "B", "with less data, headers rarely matter"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._hosts: Subjects[Segments] = Subjects(Segments)

    def ended(self, connection: Ended) -> None:
        """Add a connection with a small maximum segment size."""
        sizes = [side.mss for side in (connection.client_tcp, connection.broker_tcp) if side.mss]
        mss = min(sizes, default=None)
        if mss is None or mss >= self.limits["mss"]:
            return
        segments = self._hosts.of(of_connection(connection))
        segments.mss = min(segments.mss, mss)
        segments.seen.add_at(
            connection.first_packet, connection.first_ns, connection.captured_bytes
        )

    def findings(self) -> Iterator[Finding]:
        """Return the hosts with small segments and much data."""
        for subject, segments in self._hosts:
            if segments.seen.bytes < self.limits["bytes"]:
                continue
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                f"maximum segment size {segments.mss:,} on "
                f"{plural(segments.seen.count, 'connection')}",
                segments.seen,
                "An interface, a tunnel or a firewall between them has a small MTU.",
                "Compare the MTU of the interfaces (ip link), of overlay networks and tunnels.",
                Confidence.HIGH,
            )


class OpenConnection:
    """The requests of an open connection, and their latencies together."""

    __slots__ = ("client", "requests", "time_ns")

    def __init__(self, client: Subject) -> None:
        self.client = client
        self.requests = self.time_ns = 0


class Times:
    """The times of requests of a client, and how much of them the network took.

    requests: number of them; time_ns: their time as the client sees it.
    """

    __slots__ = ("requests", "seen", "time_ns")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.requests = self.time_ns = 0


class NetworkLatency(Rule):
    """Requests whose time is mostly that of the network."""

    name = "network-latency"
    description = (
        "Requests that do not wait on purpose spend most of their time in the network, and not in "
        "the broker. Round-trip times are those of TCP handshakes, on both sides of the capture."
    )
    apis = PROMPT
    thresholds = (
        Threshold("requests", 20, "requests", "the times of fewer vary too much"),
        Threshold("milliseconds", 20, "ms", "a round trip inside of a region takes a few"),
        Threshold("share", 0.5, "of the time", "below, the broker takes longer than the network"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._open: dict[int, OpenConnection] = {}
        self._clients: Subjects[Times] = Subjects(Times)

    def responded(self, exchange: Exchange, latency_ns: int) -> None:
        """Add the latency of an exchange to those of its connection."""
        connection = self._open.get(exchange.connection)
        if connection is None:
            client = client_at(exchange, broker=exchange.broker)
            connection = self._open[exchange.connection] = OpenConnection(client)
        connection.requests += 1
        connection.time_ns += latency_ns

    def ended(self, connection: Ended) -> None:
        """Add the times of a connection to those of its client, if its handshake was captured."""
        times = self._open.pop(connection.connection, None)
        near, far = connection.client_tcp.rtt_ns, connection.broker_tcp.rtt_ns
        if times is None or near is None or far is None:
            return
        client = self._clients.of(times.client)
        client.requests += times.requests
        client.time_ns += times.time_ns + times.requests * near
        client.seen.add_at(
            connection.first_packet, connection.first_ns, 0, times.requests * (near + far)
        )

    def findings(self) -> Iterator[Finding]:
        """Return the clients whose requests are mostly in the network."""
        for subject, client in self._clients:
            if client.requests < self.limits["requests"]:
                continue
            network_ms = client.seen.time_ns / client.requests / 1e6
            share = client.seen.time_ns / max(client.time_ns, 1)
            if network_ms < self.limits["milliseconds"] or share < self.limits["share"]:
                continue
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                f"{min(share, 1):.0%} of the time of {client.requests:,} requests is the network: "
                f"{network_ms:,.1f} ms for each",
                client.seen,
                "Client and broker are far from each other, or a path between them is slow.",
                "Move the client near the brokers (consumers: client.rack); send fewer and larger "
                "requests: linger.ms, batch.size, fetch.min.bytes.",
                Confidence.HIGH,
                (Setting("linger.ms"), Setting("fetch.min.bytes")),
                "KIP-392",
            )
