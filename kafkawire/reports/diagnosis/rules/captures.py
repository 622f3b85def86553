"""Rules about the capture itself: what it lacks, and what it has twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.rows import Located, Status
from kafkawire.capture.tcp.events import DiscardReason, GapReason
from kafkawire.display import plural

from ...clients import NO_KAFKA, NO_REQUEST, ONE_DIRECTION, host, protocol_reason
from ..finding import Confidence, Finding, Occurrences, Severity, Subject
from ..rule import Rule, Scene, Subjects, Threshold


class CaptureLoss(Rule):
    """Bytes that the capture lacks."""

    name = "capture-loss"
    description = (
        "The capture lacks bytes that were sent: what is in them is not diagnosed, and other "
        "findings may be due to them."
    )
    statuses = frozenset({Status.GAP, Status.DISCARDED})
    thresholds = (
        Threshold("bytes", 1, "B", "anything may be in the missing bytes"),
        Threshold("warning_share", 0.05, "of all bytes", "beyond, counts and times are wrong"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._seen = Occurrences()
        self._captured = 0
        self._sizes: Counter[str] = Counter()  # by the reason of the gap, or of what came late

    def row(self, located: Located) -> None:
        """Count a gap, or what came after it."""
        row = located.row
        self._sizes[row.error] += row.length
        if row.status is Status.GAP:
            self._seen.add(row, row.length)

    def ended(self, connection: Ended) -> None:
        """Add the captured bytes of a connection."""
        self._captured += connection.captured_bytes

    def findings(self) -> Iterator[Finding]:
        """Return the loss, if there is any."""
        seen = self._seen
        if seen.bytes < self.limits["bytes"]:
            return
        share = seen.bytes / (seen.bytes + self._captured)
        yield Finding(
            self.name,
            Severity.WARNING if share >= self.limits["warning_share"] else Severity.NOTICE,
            Subject(),
            f"{seen.bytes:,} bytes ({share:.1%}) are missing in the capture",
            seen,
            *self._cause(),
            Confidence.HIGH,
            terms=(LOST,),
        )

    def _cause(self) -> tuple[str, str]:
        """Return why bytes are missing, and what to do."""
        cut, missing = self._sizes[GapReason.CUT], self._seen.bytes
        if 2 * self._sizes[DiscardReason.LATE] > missing:
            return DISORDERED
        if cut == missing:
            return CUT_OFF
        return TOO_SLOW_OR_CUT_OFF if cut else TOO_SLOW


DISORDERED: Final = (
    "The packets are not in the order of their times: most of the bytes come later in the capture.",
    "Sort the packets: reordercap OLD NEW, or mergecap -w NEW FILES, and read the new file.",
)
CUT_OFF: Final = (
    "Packets were captured without their ends (snaplen).",
    "Capture whole packets (tcpdump -s 0).",
)
TOO_SLOW: Final = (
    "The capturing process was too slow.",
    "Capture with a larger buffer (tcpdump -B 65536).",
)
TOO_SLOW_OR_CUT_OFF: Final = (
    "The capturing process was too slow, and packets were captured without their ends (snaplen).",
    "Capture with a larger buffer (tcpdump -B 65536) and whole packets (-s 0).",
)


class DamagedCaptures(Rule):
    """Files that are not captures up to their ends."""

    name = "damaged-captures"
    description = (
        "A file is cut off or damaged: what comes after that place is not read, and not diagnosed."
    )
    statuses = frozenset({Status.UNREADABLE})
    thresholds = (Threshold("places", 1, "places", "anything may be in what was not read"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._seen = Occurrences()
        self._reason = ""

    def row(self, located: Located) -> None:
        """Note where a file cannot be read."""
        self._reason = self._reason or located.row.error
        self._seen.add(located.row)

    def findings(self) -> Iterator[Finding]:
        """Return the places, if there are any."""
        if self._seen.count < self.limits["places"]:
            return
        more = self._seen.count - 1
        yield Finding(
            self.name,
            Severity.WARNING,
            Subject(),
            self._reason + (f" (and {plural(more, 'more such place')})" if more else ""),
            self._seen,
            "The file was cut off when it was written or copied, or is damaged.",
            "Get the whole file: end the capturing process before its file is copied.",
            Confidence.HIGH,
            terms=("status == unreadable",),
        )


LOST: Final = "status in (gap, truncated)"


class CopiedConnections(Rule):
    """Connections that were captured twice."""

    name = "copied-connections"
    description = (
        "Connections are in the capture twice, before and after address translation or on both "
        "sides of a bridge. Their messages are counted once."
    )
    statuses = frozenset({Status.COPY})
    thresholds = (Threshold("connections", 1, "connections", "counts of packets include both"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._hosts: Subjects[Occurrences] = Subjects(Occurrences)

    def row(self, located: Located) -> None:
        """Count a copy."""
        if located.client is not None:
            subject = Subject(address=host(located.client), broker=located.broker)
            self._hosts.of(subject).add(located.row)

    def findings(self) -> Iterator[Finding]:
        """Return the hosts with copies."""
        for subject, seen in self._hosts:
            if seen.count < self.limits["connections"]:
                continue
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                f"{plural(seen.count, 'connection')} captured twice",
                seen,
                "Several interfaces were captured (tcpdump -i any), with address translation, a "
                "bridge or a container network between them.",
                "Capture on one interface.",
                Confidence.HIGH,
            )


WHY_UNDECODED: Final = (
    (
        protocol_reason("TLS"),
        (
            "TLS without keys, or a capture that began too late.",
            "Give a key log (--keylog), and capture before clients connect.",
        ),
    ),
    (
        NO_REQUEST,
        (
            "The capture has no requests: it began too late, or lacks one direction.",
            "Capture both directions, before clients connect.",
        ),
    ),
    (
        NO_KAFKA,
        (
            "TLS without keys, another protocol, or a capture that began too late.",
            "For TLS, give a key log (--keylog); for Kafka on unusual ports, --port.",
        ),
    ),
)
"""How a reason begins why connections were not decoded; cause and advice."""
OTHER_PROTOCOL: Final = (
    "These connections are not Kafka's.",
    "Nothing to change; a filter of tcpdump (tcp port 9092) leaves them out.",
)
OTHER_PROTOCOL_AT_BROKER: Final = (
    "Not Kafka's protocol, to a port at which others are served: a health check, a scraper of "
    "metrics, or a client with the wrong port. A broker takes the first bytes for the size of a "
    "request, and closes the connection (InvalidReceiveException in its log).",
    "Let health checks connect and send nothing, and correct the address of what connects.",
)


class UndecodedConnections(Rule):
    """Connections that are not diagnosed."""

    name = "undecoded-connections"
    description = (
        "Connections whose data could not be decoded, and which are not diagnosed, other than "
        "those that are findings of tls-handshakes."
    )
    thresholds = (Threshold("connections", 1, "connections", "problems in them are not detected"),)

    def findings(self) -> Iterator[Finding]:
        """Return the connections, by client address and broker, after the other rules."""
        undecoded = Counter(self.scene.clients.undecoded)
        for explained in self.scene.explained.values():
            undecoded.subtract(explained)
        for connections, count in (+undecoded).most_common():
            if count < self.limits["connections"] or connections.reason == ONE_DIRECTION:
                continue  # one-way-captures reports the latter
            seen = Occurrences()
            seen.count = count
            seen.first_ns, seen.last_ns = self.scene.clients.undecoded_periods[connections]
            matching = (why for start, why in WHY_UNDECODED if connections.reason.startswith(start))
            is_broker = connections.broker in self.scene.clients.brokers
            cause, advice = next(
                matching, OTHER_PROTOCOL_AT_BROKER if is_broker else OTHER_PROTOCOL
            )
            yield Finding(
                self.name,
                Severity.NOTICE,
                Subject(address=connections.address, broker=connections.broker),
                f"{plural(count, 'connection')}: {connections.reason}",
                seen,
                cause,
                advice,
                Confidence.HIGH,
            )
