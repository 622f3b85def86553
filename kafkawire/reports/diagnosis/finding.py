"""Describes what is wrong: findings, with the messages that show them."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.topic_ids import TopicKey
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Row

from ...display import time_text


class Severity(StrEnum):
    """How harmful a finding is."""

    CRITICAL = "critical"
    """Data is rejected, lost or not processed."""
    WARNING = "warning"
    """Time or resources are wasted, or an operation fails now and then."""
    NOTICE = "notice"
    """Worth knowing; nothing fails."""


SEVERITIES: Final = tuple(Severity)
"""Most harmful first."""


class Confidence(StrEnum):
    """How sure a finding's cause is."""

    HIGH = "high"
    """The broker or the client states it."""
    MEDIUM = "medium"
    """It is the usual cause of what was seen."""
    LOW = "low"
    """Something outside of the capture may explain it."""


class Subject(NamedTuple):
    """Whom a finding is about. topic: its key, which `TopicNames` resolves to a name.

    address: of a client without an id, or where clients with the same id are distinguished.
    """

    client: str | None = None
    address: str | None = None
    group: str | None = None
    group_instance_id: str | None = None
    transactional_id: str | None = None
    topic: TopicKey = None
    partition: int | None = None
    broker: str | None = None
    broker_id: int | None = None
    api: str | None = None


OTHERS: Final = Subject(client="(others)")
"""The subject of everything beyond the bound of a table."""

MAX_PACKETS: Final = 5
"""Packets kept of each finding, in addition to the last one."""


class Moment(NamedTuple):
    """A packet and its time."""

    packet: int
    time_ns: int


class Occurrences:
    """How often something happened, when, and what it cost.

    packets: the numbers of the first packets that show it, and of the last one. time_ns: time lost;
    bytes: of the messages concerned.
    """

    __slots__ = ("bytes", "count", "first_ns", "last_ns", "last_packet", "packets", "time_ns")

    def __init__(self) -> None:
        self.count = self.bytes = self.time_ns = 0
        self.first_ns = self.last_ns = NO_TIME
        self.packets: list[int] = []
        self.last_packet: int | None = None

    def add_at(self, packet: int, at_ns: int, size: int = 0, time_ns: int = 0) -> None:
        """Count an occurrence that a packet shows."""
        self.add(Moment(packet, at_ns), size, time_ns)

    def add(self, row: Row | Moment, size: int = 0, time_ns: int = 0, count: int = 1) -> None:
        """Count occurrences that a message shows; called for each message."""
        packet, at_ns = row.packet, row.time_ns
        self.count += count
        if size:
            self.bytes += size
        if time_ns:
            self.time_ns += time_ns
        if packet != self.last_packet:
            self.last_packet = packet
            if len(self.packets) < MAX_PACKETS:
                self.packets.append(packet)
        if at_ns > self.last_ns:  # NO_TIME is before all times
            if self.last_ns == NO_TIME:
                self.first_ns = at_ns
            self.last_ns = at_ns
        elif NO_TIME < at_ns < self.first_ns:
            self.first_ns = at_ns

    def average_time(self, decimals: int) -> str:
        """Format the time lost each time, in seconds: `6.5 s on average`; of one, its time."""
        seconds = f"{self.time_ns / max(self.count, 1) / 1e9:,.{decimals}f} s"
        return seconds if self.count == 1 else f"{seconds} on average"

    @property
    def span_seconds(self) -> float:
        """Seconds from the first to the last."""
        return 0.0 if NO_TIME in (self.first_ns, self.last_ns) else self._span_ns / 1e9

    @property
    def _span_ns(self) -> int:
        return self.last_ns - self.first_ns

    @property
    def per_second(self) -> float:
        """How often it happened in a second; 0 for a single occurrence."""
        span = self.span_seconds
        return (self.count - 1) / span if span else 0.0


class Setting(NamedTuple):
    """A configuration key to look at; value: the one seen in the capture, None if unknown."""

    key: str
    value: str | None = None


class Finding(NamedTuple):
    """Something that is wrong.

    what: a sentence. cause: the likely one. advice: what to look at or change. reference: the KIP
    or release that introduced or removed something. terms: conditions that select its messages,
    besides those of the subject.
    """

    rule: str
    severity: Severity
    subject: Subject
    what: str
    seen: Occurrences
    cause: str
    advice: str
    confidence: Confidence
    settings: tuple[Setting, ...] = ()
    reference: str = ""
    terms: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, int, int, int, str, str]:
        """The key by which findings are sorted, the most harmful first."""
        seen = self.seen
        rank = SEVERITIES.index(self.severity)
        return rank, -seen.time_ns, -seen.count, -seen.bytes, self.rule, str(self.subject)


ORDERS: Final[dict[str, Callable[[Finding], tuple[Any, ...]]]] = {
    "harm": lambda finding: finding.order,
    "first": lambda finding: (finding.seen.first_ns, finding.order),
    "time": lambda finding: (-finding.seen.time_ns, finding.order),
    "count": lambda finding: (-finding.seen.count, finding.order),
}
"""Orders of findings: the most harmful, the earliest, those that cost most time or are most."""


class ResolvedFinding(NamedTuple):
    """A finding with names of topics and places of packets.

    packets: file and number of each. expression: selects its messages, for `decode --filter`.
    """

    finding: Finding
    subject: dict[str, str | int]
    packets: list[tuple[str, int]]
    expression: str

    @property
    def who(self) -> str:
        """The subject in words: `client billing, topic orders`."""
        return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in self.subject.items())

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        finding, seen = self.finding, self.finding.seen
        return {
            "rule": finding.rule,
            "severity": finding.severity.value,
            "subject": self.subject,
            "what": finding.what,
            "count": seen.count,
            "first_time": time_text(seen.first_ns),
            "last_time": time_text(seen.last_ns),
            "cost": {"time_ns": seen.time_ns, "bytes": seen.bytes},
            "packets": [{"file": file, "packet": packet} for file, packet in self.packets],
            "filter": self.expression,
            "cause": finding.cause,
            "advice": finding.advice,
            "settings": [setting._asdict() for setting in finding.settings],
            "reference": finding.reference or None,
            "confidence": finding.confidence.value,
        }


FIELDS: Final = {
    "client": "client",
    "address": "client_address",
    "group": "group",
    "topic": "topic",
    "broker": "broker",
    "api": "api",
}
"""Fields of a subject that filters can compare -> their names in filters."""


def resolve(
    finding: Finding, topic_name: Callable[[TopicKey], str], place: Callable[[int], tuple[str, int]]
) -> ResolvedFinding:
    """Name the topics and packets of a finding."""
    subject: dict[str, str | int] = {
        key: value for key, value in finding.subject._asdict().items() if value is not None
    }
    if finding.subject.topic is not None:
        subject["topic"] = topic_name(finding.subject.topic)
    seen = finding.seen
    packets = list(seen.packets)
    if seen.last_packet is not None and seen.last_packet not in packets:
        packets.append(seen.last_packet)
    terms = [] if finding.subject == OTHERS else _conditions(subject)
    expression = " and ".join([*terms, *finding.terms])
    return ResolvedFinding(finding, subject, [place(packet) for packet in packets], expression)


def _conditions(subject: dict[str, str | int]) -> list[str]:
    """Write the conditions that select the messages of a subject."""
    return [
        f"{field} == {quoted(str(subject[key]))}" for key, field in FIELDS.items() if key in subject
    ]


def quoted(text: str) -> str:
    """Quote a value for a filter."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
