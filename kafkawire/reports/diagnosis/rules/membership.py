"""Rules about the members of groups: rebalances, and members that do not poll."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from kafkawire.capture.tables.extraction.group_event import (
    JOINED,
    REBALANCE_ENDED,
    REBALANCE_STARTED,
    EventType,
    GroupEvent,
)
from kafkawire.display import plural

from ...groups.absences import ENTERING, LEAVING, AbsenceKind, Presence
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold, client_of

LEFT: Final = EventType.LEFT
COUNTED: Final = ENTERING | LEAVING
"""Events that change who is in a group."""


class Rebalances:
    """The rebalances of a group. causes: how many began with each.

    The time lost is that of rebalances, and that in which the group had no members.
    """

    __slots__ = ("causes", "presence", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.causes: Counter[str] = Counter()
        self.presence = Presence()


MAX_CAUSES: Final = 100
"""Different causes of rebalances of a group that are counted apart."""

SHOWN_CAUSES: Final = 3


def cause_of(event: GroupEvent) -> str:
    """Return the cause of a rebalance and its client, without figures that always differ."""
    reason = FIGURE.sub("...", event.reason or "unknown cause")
    return f"{reason}, by {event.client_id}" if event.client_id else reason


FIGURE: Final = re.compile(r"\d+(\.\d+)?")


class RebalanceStorm(Rule):
    """Rebalances one after the other."""

    name = "rebalance-storm"
    description = (
        "A group rebalances again and again. With eager assignors all members stop consuming "
        "during each of them, and a group without members consumes nothing."
    )
    thresholds = (
        Threshold("rebalances", 8, "rebalances", "a deployment of a few members causes as many"),
        Threshold("interval", 60, "s", "a healthy group rebalances when members join or leave"),
        Threshold("seconds", 60, "s", "a shorter series, such as a deployment, is a notice"),
        Threshold("critical_share", 0.5, "of the time", "half of the time nobody consumes"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._groups: Subjects[Rebalances] = Subjects(Rebalances)

    def group_event(self, event: GroupEvent) -> None:
        """Count the start of a rebalance, its duration at its end, and times without members."""
        if event.type in COUNTED:
            group = self._groups.of(Subject(group=event.group_id))
            absence = group.presence.handle(event)
            if absence is not None and absence.kind is AbsenceKind.NO_MEMBERS:
                group.seen.time_ns += absence.duration_ns
        if event.type is REBALANCE_STARTED:
            group = self._groups.of(Subject(group=event.group_id))
            group.seen.add(event.row)
            reason = cause_of(event)
            if reason not in group.causes and len(group.causes) >= MAX_CAUSES:
                reason = "others"
            group.causes[reason] += 1
        elif event.type is REBALANCE_ENDED:
            group = self._groups.of(Subject(group=event.group_id))
            group.seen.time_ns += event.duration_ns or 0

    def findings(self) -> Iterator[Finding]:
        """Return the groups that rebalance often."""
        limits = self.limits
        for subject, group in self._groups:
            seen = group.seen
            if seen.count < limits["rebalances"]:
                continue
            if seen.span_seconds / seen.count > limits["interval"]:
                continue
            share = seen.time_ns / 1e9 / seen.span_seconds if seen.span_seconds else 1.0
            severity = Severity.WARNING if share < limits["critical_share"] else Severity.CRITICAL
            if seen.span_seconds < limits["seconds"]:
                severity = Severity.NOTICE
            causes = [
                f"{cause} ({count:,})" for cause, count in group.causes.most_common(SHOWN_CAUSES)
            ]
            yield Finding(
                self.name,
                severity,
                subject,
                f"{seen.count:,} rebalances, {min(share, 1):.0%} of the time; "
                f"causes: {'; '.join(causes)}",
                seen,
                "Members join and leave, or are removed: they do not poll, or send no heartbeats.",
                "Look at the causes (kafkawire groups); use group.instance.id for restarts, "
                "partition.assignment.strategy=CooperativeStickyAssignor or "
                "group.protocol=consumer.",
                Confidence.HIGH,
                (Setting("partition.assignment.strategy"), Setting("session.timeout.ms")),
                "KIP-345, KIP-429, KIP-848",
                ("api in (JoinGroup, SyncGroup, LeaveGroup, ConsumerGroupHeartbeat)",),
            )


class LongRebalances(Rule):
    """Rebalances that take long."""

    name = "long-rebalances"
    description = (
        "A rebalance takes longer than the coordinator waits for more members. With eager "
        "assignors all members stop consuming until it ends."
    )
    thresholds = (
        Threshold("seconds", 4, "s", "group.initial.rebalance.delay.ms is 3 s by default"),
        Threshold("warning", 30, "s in all", "a deployment of a few members takes as long"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._groups: Subjects[Occurrences] = Subjects(Occurrences)
        self._longest: dict[Subject, int] = {}

    def group_event(self, event: GroupEvent) -> None:
        """Add a rebalance that took long."""
        duration_ns = event.duration_ns or 0
        if event.type is REBALANCE_ENDED and duration_ns >= self.limits["seconds"] * 1e9:
            subject = Subject(group=event.group_id)
            seen = self._groups.of(subject)
            seen.add(event.row)
            seen.time_ns += duration_ns
            longest = max(duration_ns, self._longest.get(subject, 0))
            if subject in self._longest or len(self._longest) < MAX_SUBJECTS:
                self._longest[subject] = longest

    def findings(self) -> Iterator[Finding]:
        """Return the groups with such rebalances."""
        for subject, seen in self._groups:
            longest = self._longest.get(subject, 0)
            of_which = f", the longest {longest / 1e9:.1f} s" if seen.count > 1 and longest else ""
            is_warning = seen.time_ns >= self.limits["warning"] * 1e9
            yield Finding(
                self.name,
                Severity.WARNING if is_warning else Severity.NOTICE,
                subject,
                f"{plural(seen.count, 'rebalance')} of {seen.time_ns / 1e9:.1f} s{of_which}",
                seen,
                "A member joined again late: it processed records, and did not poll.",
                "Look who joined last (kafkawire groups); process fewer records between polls, or "
                "use partition.assignment.strategy=CooperativeStickyAssignor or "
                "group.protocol=consumer, with which others go on meanwhile.",
                Confidence.MEDIUM,
                (Setting("max.poll.records"), Setting("partition.assignment.strategy")),
                "KIP-429, KIP-848",
                ("api in (JoinGroup, SyncGroup)",),
            )


class PollTimeouts(Rule):
    """Members that leave because the application does not poll."""

    name = "poll-timeouts"
    description = (
        "A member leaves its group and comes back on the same connection: its client library left "
        "because the application did not poll within max.poll.interval.ms."
    )
    thresholds = (
        Threshold("times", 1, "times", "an application that polls in time never does this"),
        Threshold("critical", 20, "times", "the application never polls in time"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._left: dict[tuple[int, str], GroupEvent] = {}  # by connection and group
        self._members: Subjects[Occurrences] = Subjects(Occurrences)
        self._stated: dict[Subject, None] = {}

    def group_event(self, event: GroupEvent) -> None:
        """Note a member that leaves, and count it if it comes back."""
        type, exchange = event.type, event.exchange
        if type is LEFT:
            if POLL_TIMEOUT in (event.reason or ""):
                subject = client_of(exchange, group=event.group_id)
                self._members.of(subject).add(event.row)
                self._stated.setdefault(subject)
            elif len(self._left) < MAX_SUBJECTS:
                self._left[exchange.connection, event.group_id] = event
        elif type is JOINED:
            left = self._left.pop((exchange.connection, event.group_id), None)
            if left is not None:
                subject = client_of(exchange, group=event.group_id)
                away_ns = max(0, event.row.time_ns - left.row.time_ns)
                self._members.of(subject).add_at(left.row.packet, left.row.time_ns, time_ns=away_ns)

    def findings(self) -> Iterator[Finding]:
        """Return the members that left and came back."""
        for subject, seen in self._members:
            if seen.count < self.limits["times"]:
                continue
            is_critical = seen.count >= self.limits["critical"]
            stated = subject in self._stated
            yield Finding(
                self.name,
                Severity.CRITICAL if is_critical else Severity.WARNING,
                subject,
                "left the group"
                + (" because its poll timeout expired" if stated else " and joined again")
                + f", {seen.count:,} times",
                seen,
                "The application takes longer than max.poll.interval.ms for the records of a poll.",
                "Lower max.poll.records, raise max.poll.interval.ms (5 minutes by default), or "
                "process in another thread and pause partitions.",
                Confidence.HIGH if stated else Confidence.MEDIUM,
                (Setting("max.poll.interval.ms"), Setting("max.poll.records")),
                "KIP-62",
                ("api in (LeaveGroup, JoinGroup, ConsumerGroupHeartbeat)",),
            )


POLL_TIMEOUT: Final = "poll timeout"
"""Part of the reason that Java clients state when they leave (KIP-800)."""
