"""Describes the events of a group: one by one, or many of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.tables.extraction.group_event import EventType
from kafkawire.display import plural, time_text
from kafkawire.reports.groups.absences import Absence, AbsenceKind
from kafkawire.reports.groups.commits import Commits, Partition
from kafkawire.reports.groups.group import Entry, TimelineEvent

from .report import duration_text, list_text, ranges_text

COUNTED: Final = {
    EventType.REBALANCE_ENDED: "rebalance",
    EventType.JOINED: "join",
    EventType.LEFT: "leave",
    EventType.REMOVED: "removal",
    EventType.ASSIGNED: "assignment",
    EventType.FAILED: "error",
}
"""What events of the middle of a long history are counted as."""


COUNTED_ABSENCES: Final = {
    AbsenceKind.SILENT: "silence",
    AbsenceKind.OUT_OF_GROUP: "absence",
    AbsenceKind.NO_MEMBERS: "absence of all members",
}


def summarised(entries: Sequence[Entry]) -> str:
    """Summarise events: how many of each kind, how long the group was unavailable."""
    events = [entry for entry in entries if isinstance(entry, TimelineEvent)]
    counts = Counter(entry.event for entry in events)
    parts = [plural(counts[event], noun) for event, noun in COUNTED.items() if counts[event]]
    commits = sum(entry.count for entry in entries if isinstance(entry, Commits))
    if commits:
        parts.append(plural(commits, "commit"))
    text = f"{plural(len(entries), 'event')}: {', '.join(parts)}" if parts else ""
    for kind, noun in COUNTED_ABSENCES.items():
        absences = [one for one in entries if isinstance(one, Absence) and one.kind is kind]
        if absences:
            most = duration_text(max(one.duration_ns for one in absences))
            parts.append(f"{plural(len(absences), noun)} (longest {most})")
    longest = max((entry.duration_ns or 0 for entry in events), default=0)
    stopped = sum(entry.stopped_ns or 0 for entry in events if entry.stops_consumption)
    if longest:
        text += f"; the longest rebalance {duration_text(longest)}"
    if stopped:
        text += f"; unavailable for {duration_text(stopped)}"
    return text or plural(len(entries), "event")


def clock(time_ns: int | None) -> str:
    """Format the time of day, in milliseconds."""
    return "" if time_ns is None else (time_text(time_ns) or "")[11:23]


EVENT_TEXTS: Final = {
    EventType.REBALANCE_STARTED: "rebalance starts",
    EventType.REBALANCE_ENDED: "rebalance ends",
    EventType.JOINED: "joins",
    EventType.LEFT: "leaves",
    EventType.REMOVED: "is removed",
    EventType.ASSIGNED: "is assigned",
    EventType.REVOKED: "has to release",
    EventType.RELEASED: "releases",
    EventType.FAILED: "gets an error",
}
ABSENCE_TEXTS: Final = {
    AbsenceKind.SILENT: "is silent (no heartbeat, no fetch)",
    AbsenceKind.OUT_OF_GROUP: "is out of the group",
    AbsenceKind.NO_MEMBERS: "no members",
}
OWNERSHIP: Final = frozenset({EventType.ASSIGNED, EventType.REVOKED, EventType.RELEASED})
"""Events shown with partitions or tasks."""
WITH_STATE: Final = frozenset({EventType.JOINED, EventType.REBALANCE_ENDED})
"""Events shown with generation and number of members."""


def event_text(entry: Entry, generation: str) -> str:
    """Describe an event."""
    if isinstance(entry, Commits):
        return _commits_text(entry)
    if isinstance(entry, Absence):
        span = f"for {duration_text(entry.duration_ns)}, until {clock(entry.until_ns)}"
        return f"{ABSENCE_TEXTS[entry.kind]} {span}"
    text = EVENT_TEXTS[entry.event]
    if entry.event in OWNERSHIP:
        text += f" {owned_text(entry)}"
    if entry.duration_ns is not None:
        text += f" after {duration_text(entry.duration_ns)}"
    if entry.event in WITH_STATE:
        text += _generation_text(entry, generation)
    if entry.stops_consumption is not None:
        text += (
            f"; unavailable for {duration_text(entry.stopped_ns)}"
            if entry.stops_consumption
            else "; members continued meanwhile"
        )
    return text + (f": {entry.reason}" if entry.reason else "")


def _generation_text(entry: TimelineEvent, generation: str) -> str:
    parts = [] if entry.generation is None else [f"{generation} {entry.generation}"]
    if entry.members:
        parts.append(plural(entry.members, "member"))
    return f" ({', '.join(parts)})" if parts else ""


def _commits_text(entry: Commits) -> str:
    text = "commits"
    if entry.count > 1:
        text += f" {entry.count:,} times until {clock(entry.until_ns)}:"
    text += f" {partitions_text(entry.last)}"
    if entry.lag is not None:
        text += f", lag {entry.lag:,}"
        if entry.max_lag is not None and entry.max_lag > entry.lag:
            text += f" (maximum {entry.max_lag:,})"
    return text


def owned_text(entry: TimelineEvent) -> str:
    """Format the partitions or the tasks of an event."""
    if entry.tasks is None:
        return assigned_text(entry.partitions)
    texts = (
        f"{each.type} tasks {each.subtopology_id}_{ranges_text(each.partitions)}"
        for each in entry.tasks
    )
    return list_text(texts) or "nothing"


def assigned_text(partitions: list[tuple[Topic, list[int]]] | None) -> str:
    """Format an assignment."""
    if partitions is None:
        return "(assignment not decoded)"
    texts = (f"{_name(topic)} {ranges_text(numbers)}" for topic, numbers in partitions)
    return list_text(texts) or "nothing"


def partitions_text(partitions: Iterable[Partition]) -> str:
    """Format the committed partitions."""
    numbers: dict[str, list[int]] = {}
    for one in partitions:
        numbers.setdefault(_name(one.topic), []).append(one.partition)
    return (
        list_text(f"{name} {ranges_text(partition)}" for name, partition in numbers.items())
        or "nothing"
    )


def _name(topic: Topic) -> str:
    return topic.name or topic.id_text or ""
