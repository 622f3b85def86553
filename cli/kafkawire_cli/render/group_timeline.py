"""The life of a group as a person reads it: what it came to, its members, what happened.

Law: a member goes by its client id where that tells it from the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.rows import time_text
from kafkawire.capture.tables.extraction.group_event import EventType, Protocol
from kafkawire.reports.group import (
    Commits,
    GroupHistory,
    Member,
    Partition,
    Rebalance,
    TimelineEvent,
)

from ..input.sources import Shown, top
from .report import Section, count_text, duration_text, list_text, plural, ranges_text

GENERATION: Final = {
    None: "generation",
    Protocol.CLASSIC: "generation",
    Protocol.CONSUMER: "epoch",
    Protocol.SHARE: "epoch",
    Protocol.STREAMS: "epoch",
}
"""What a group of that protocol counts."""


def told(life: GroupHistory, most: int | None) -> list[Section]:
    """Tell a group's life: the first `most` members, the first and the last `most` entries of the
    timeline; None for all.
    """
    names = labels(life)
    return [
        Section(f"Group {life.group_id}", lines=facts(life)),
        members(life, names, most),
        timeline(life, names, most),
    ]


def overview(shown: Shown[GroupHistory]) -> Section:
    """Make the list of groups."""
    head = (
        "group", "protocol", ">members", ">rebalances", ">stood still", ">commits", ">lag",
    )  # fmt: skip
    rows = [
        (
            life.group_id,
            protocol(life),
            count_text(len(life.members)),
            count_text(len(life.rebalances)),
            duration_text(life.stopped_ns) if life.stopped_ns else "",
            count_text(life.commits),
            "" if life.lag is None else f"{life.lag:,}",
        )
        for life in shown.first
    ]
    return Section("Groups", head, rows, shown.more("groups"))


def protocol(life: GroupHistory) -> str:
    """Say by which protocol a group lives, and with which assignors."""
    said = "commits only" if life.protocol is None else life.protocol.value
    return f"{said} ({list_text(life.assignors)})" if life.assignors else said


def facts(life: GroupHistory) -> list[str]:
    """Say in a few lines what a group's life came to."""
    said = [protocol(life)]
    if life.generations is not None:
        first, last = life.generations
        kind = GENERATION[life.protocol]
        said.append(f"{kind} {first}" if first == last else f"{kind}s {first} to {last}")
    lines = [", ".join(said)]
    if life.rebalances:
        lines.append(rebalances(life.rebalances, life.stopped_ns))
    if life.commits:
        lag = "unknown" if life.lag is None else f"{life.lag:,} at the last of each partition"
        lines.append(f"{plural(life.commits, 'commit')}, lag {lag}")
    return lines


def rebalances(found: list[Rebalance], stopped_ns: int) -> str:
    """Say how many rebalances there were, and what they cost."""
    longest = max((one.duration_ns or 0 for one in found), default=0)
    said = plural(len(found), "rebalance")
    if longest:
        said += f", the longest {duration_text(longest)}"
    if stopped_ns:
        said += f"; consumption stood still for {duration_text(stopped_ns)}"
    if found[-1].ended_ns is None:
        said += "; the last is not over where the capture ends"
    return said


# -- members


def labels(life: GroupHistory) -> dict[str, str]:
    """Give each member a name that tells it from the others: its client id, if that does."""
    called = Counter(member.client_id for member in life.members.values())
    return {
        member.member_id: member.client_id
        if member.client_id and called[member.client_id] == 1
        else f"{member.client_id or ''} ({_told_apart(member)})".strip()
        for member in life.members.values()
    }


def _told_apart(member: Member) -> str:
    return member.group_instance_id or member.member_id[-8:]


def members(life: GroupHistory, names: dict[str, str], most: int | None) -> Section:
    """Make the list of members."""
    shown = top(list(life.members.values()), most)
    head = (
        "member",
        "software",
        "address",
        "joined",
        "gone",
        f">{GENERATION[life.protocol]}s",
        ">commits",
    )
    rows = [
        (
            names[member.member_id],
            str(member.software or ""),
            member.address,
            clock(member.joined_ns)[:8] or "before",
            gone(member),
            ranges_text(range(member.first_generation, (member.last_generation or 0) + 1))
            if member.first_generation is not None
            else "",
            count_text(member.commits),
        )
        for member in shown.first
    ]
    return Section("", head, rows, shown.more("members"))


def gone(member: Member) -> str:
    """Say when and how a member went."""
    if member.left_by is None or member.left_ns is None:
        return ""
    return f"{clock(member.left_ns)[:8]} {member.left_by.value}"


# -- the timeline


def timeline(life: GroupHistory, names: dict[str, str], most: int | None) -> Section:
    """Tell what happened, in order."""
    rows: list[tuple[str, ...]] = []
    day = ""
    kept = life.timeline
    left_out = max(0, len(kept) - 2 * most) if most is not None else 0
    first = len(kept) - left_out if most is None else most
    for at, entry in enumerate(kept):
        if first <= at < first + left_out:
            if at == first:
                rows.append(("...", "", f"{plural_entries(left_out)} left out: --all"))
            continue
        here = (time_text(entry.time_ns) or "")[:10]
        if here != day:
            rows.append((here, "", ""))
            day = here
        who = names.get(entry.member_id or "") or entry.client_id or ""
        rows.append((clock(entry.time_ns), who, said(entry, GENERATION[life.protocol])))
    lost = (f"... {plural_entries(life.omitted)} in the middle not kept",) if life.omitted else ()
    return Section("", ("time (UTC)", "who", "what"), rows, lost)


def plural_entries(count: int) -> str:
    """Write a number of entries of a timeline."""
    return f"{count:,} entry" if count == 1 else f"{count:,} entries"


def clock(time_ns: int | None) -> str:
    """Write the time of day, to the millisecond."""
    return "" if time_ns is None else (time_text(time_ns) or "")[11:23]


WORDS: Final = {
    EventType.REBALANCE_STARTED: "rebalance starts",
    EventType.REBALANCE_ENDED: "rebalance ends",
    EventType.JOINED: "joins",
    EventType.LEFT: "leaves",
    EventType.REMOVED: "is no longer a member",
    EventType.ASSIGNED: "is assigned",
    EventType.FAILED: "is refused",
}
WITH_STATE: Final = frozenset({EventType.JOINED, EventType.REBALANCE_ENDED})
"""What says which generation it is, and of how many."""


def said(entry: TimelineEvent | Commits, generation: str) -> str:
    """Say what happened."""
    if isinstance(entry, Commits):
        return _committed(entry)
    text = WORDS[entry.event]
    if entry.duration_ns is not None:
        text += f" after {duration_text(entry.duration_ns)}"
    if entry.event is EventType.ASSIGNED:
        text += f" {assigned_text(entry.partitions)}"
    if entry.event in WITH_STATE:
        text += _state(entry, generation)
    if entry.stops_consumption is not None:
        text += (
            f"; nobody consumed for {duration_text(entry.stopped_ns)}"
            if entry.stops_consumption
            else ("; members went on meanwhile")
        )
    return text + (f": {entry.reason}" if entry.reason else "")


def _state(entry: TimelineEvent, generation: str) -> str:
    parts = [] if entry.generation is None else [f"{generation} {entry.generation}"]
    if entry.members:
        parts.append(plural(entry.members, "member"))
    return f" ({', '.join(parts)})" if parts else ""


def _committed(entry: Commits) -> str:
    text = "commits"
    if entry.count > 1:
        text += f" {entry.count:,} times until {clock(entry.until_ns)}:"
    text += f" {partitions_text(entry.last)}"
    if entry.lag is not None:
        text += f", lag {entry.lag:,}"
        if entry.max_lag is not None and entry.max_lag > entry.lag:
            text += f" (before up to {entry.max_lag:,})"
    return text


def assigned_text(partitions: list[tuple[Topic, list[int]]] | None) -> str:
    """Write an assignment."""
    if partitions is None:
        return "what cannot be read"
    each = (f"{_name(topic)} {ranges_text(numbers)}" for topic, numbers in partitions)
    return list_text(each) or "nothing"


def partitions_text(partitions: Iterable[Partition]) -> str:
    """Write which partitions were committed."""
    numbers: dict[str, list[int]] = {}
    for one in partitions:
        numbers.setdefault(_name(one.topic), []).append(one.partition)
    return list_text(f"{name} {ranges_text(those)}" for name, those in numbers.items()) or "nothing"


def _name(topic: Topic) -> str:
    return topic.name or topic.id_text or ""
