"""Renders the history of a group: facts, members, timeline.

A member is shown by its client id if that is unique in the group.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from kafkawire.capture.tables.extraction.group_event import Protocol
from kafkawire.display import plural, time_text
from kafkawire.reports.groups.absences import Absence, AbsenceKind
from kafkawire.reports.groups.deliveries import COUNTED, Deliveries
from kafkawire.reports.groups.group import Entry, GroupHistory, Rebalance, TimelineEvent
from kafkawire.reports.groups.member import Member

from .group_events import clock, event_text, summarised
from .report import (
    Section,
    Shown,
    count_text,
    duration_text,
    list_text,
    ranges_text,
    top,
)

GENERATION: Final = {
    None: "generation",
    Protocol.CLASSIC: "generation",
    Protocol.CONSUMER: "epoch",
    Protocol.SHARE: "epoch",
    Protocol.STREAMS: "epoch",
}
"""What a generation is called in each group protocol."""


def sections_of(group: GroupHistory, most: int | None) -> list[Section]:
    """Render a group.

    most: how many members, and how many of the first and of the last events of the timeline; None
    for all.
    """
    names = labels(group)
    return [
        Section(f"Group {group.group_id}", lines=facts(group)),
        members(group, names, most),
        timeline(group, names, most),
    ]


def overview(shown: Shown[GroupHistory]) -> Section:
    """List the groups."""
    head = (
        "group", "protocol", ">members", ">rebalances", ">unavailable", ">commits", ">lag",
    )  # fmt: skip
    rows = [
        (
            group.group_id,
            protocol(group),
            count_text(len(group.members)),
            count_text(len(group.rebalances)),
            duration_text(group.unavailable_ns) if group.unavailable_ns else "",
            count_text(group.commits),
            "" if group.lag is None else f"{group.lag:,}",
        )
        for group in shown.first
    ]
    optional = ("protocol", "commits", "members")
    return Section("Groups", head, rows, shown.more("group"), optional)


def protocol(group: GroupHistory) -> str:
    """Return the protocol of a group and its assignors."""
    name = "commits only" if group.protocol is None else group.protocol.value
    return f"{name} ({list_text(group.assignors)})" if group.assignors else name


def facts(group: GroupHistory) -> list[str]:
    """Summarise a group in a few lines."""
    parts = [protocol(group)]
    if group.generations is not None:
        first, last = group.generations
        kind = GENERATION[group.protocol]
        parts.append(f"{kind} {first}" if first == last else f"{kind}s {first} to {last}")
    lines = [", ".join(parts)]
    availability = "; ".join(filter(None, (rebalances(group.rebalances), unavailable(group))))
    if availability:
        lines.append(availability)
    if group.rebalances and group.rebalances[-1].ended_ns is None:
        lines[-1] += "; the last is unfinished at the end of the capture"
    lines += absences(group.absences)
    if group.commits:
        lag = (
            "unknown"
            if group.lag is None
            else f"{group.lag:,} at the last commit of each partition"
        )
        lines.append(f"{plural(group.commits, 'commit')}, lag {lag}")
    if group.deliveries is not None:
        lines.append(deliveries(group.deliveries))
    return lines


def unavailable(group: GroupHistory) -> str:
    """Say how long nobody in a group consumed, and why; "" if never."""
    parts = group.unavailable_parts
    if not parts:
        return ""
    why = [f"{what} {duration_text(ns)}" for what, ns in parts.items()]
    causes = ", ".join(why) if len(parts) > 1 else next(iter(parts))
    return f"unavailable for {duration_text(group.unavailable_ns)} ({causes})"


ABSENCES: Final = {AbsenceKind.SILENT: "silence", AbsenceKind.OUT_OF_GROUP: "absence"}
"""Absences of members, as they are counted."""


def absences(times: list[Absence]) -> list[str]:
    """Summarise the absences of members of a group in a line, if there are any."""
    parts = []
    for kind, noun in ABSENCES.items():
        lengths = [one.duration_ns for one in times if one.kind is kind]
        if lengths:
            count = plural(len(lengths), noun)
            parts.append(f"{count}, the longest {duration_text(max(lengths))}")
    return [f"of members: {'; '.join(parts)}"] if parts else []


def rebalances(history: list[Rebalance]) -> str:
    """Summarise the rebalances of a group; "" if there are none."""
    if not history:
        return ""
    longest = max((one.duration_ns or 0 for one in history), default=0)
    text = plural(len(history), "rebalance")
    if longest:
        text += f", the longest {duration_text(longest)}"
    return text


def deliveries(total: Deliveries) -> str:
    """Summarise what a share group acquired and acknowledged."""
    text = f"{plural(total.acquired, 'record')} acquired"
    if total.redelivered:
        text += f", {total.redelivered:,} not for the first time"
        text += f" (delivery count up to {total.max_delivery_count})"
    counts = [
        f"{total.acknowledged[type]:,} {type}" for type in COUNTED if total.acknowledged[type]
    ]
    return f"{text}; acknowledged: {list_text(counts) or 'none'}"


# -- members


def labels(group: GroupHistory) -> dict[str, str]:
    """Return a unique label for each member: its client id if that is unique."""
    client_ids = Counter(member.client_id for member in group.members.values())
    return {
        member.member_id: member.client_id
        if member.client_id and client_ids[member.client_id] == 1
        else f"{member.client_id or ''} ({_unique_part(member)})".strip()
        for member in group.members.values()
    }


def _unique_part(member: Member) -> str:
    return member.group_instance_id or member.member_id[-8:]


def members(group: GroupHistory, names: dict[str, str], most: int | None) -> Section:
    """List the members."""
    shown = top(list(group.members.values()), most)
    head = (
        "member",
        "software",
        "address",
        "joined",
        "left",
        f">{GENERATION[group.protocol]}s",
        ">commits",
    )
    rows = [
        (
            names[member.member_id],
            str(member.software or ""),
            member.address,
            clock(member.joined_ns)[:8] or "before",
            left(member),
            ranges_text(range(member.first_generation, (member.last_generation or 0) + 1))
            if member.first_generation is not None
            else "",
            count_text(member.commits),
        )
        for member in shown.first
    ]
    return Section("", head, rows, shown.more("member"), ("software", "address", "commits"))


def left(member: Member) -> str:
    """Return when and how a member left."""
    if member.left_by is None or member.left_ns is None:
        return ""
    return f"{clock(member.left_ns)[:8]} {member.left_by.value}"


# -- the timeline


def timeline(group: GroupHistory, names: dict[str, str], most: int | None) -> Section:
    """List the events in order."""
    rows: list[tuple[str, ...]] = []
    day = ""
    entries = group.timeline
    left_out = max(0, len(entries) - 2 * most) if most is not None else 0
    first = len(entries) - left_out if most is None else most
    for at, entry in enumerate(entries):
        if first <= at < first + left_out:
            if at == first:
                middle = summarised(entries[first : first + left_out])
                rows.append(("...", "", f"{middle} (--all shows them)"))
            continue
        date = (time_text(entry.time_ns) or "")[:10]
        if date != day:
            rows.append((date, "", ""))
            day = date
        label = names.get(entry.member_id or "") or entry.client_id or _unnamed(entry)
        rows.append((clock(entry.time_ns), label, event_text(entry, GENERATION[group.protocol])))
    dropped = plural(group.omitted, "event")
    notes = (f"... {dropped} in the middle discarded",) if group.omitted else ()
    return Section("", ("time (UTC)", "member", "event"), rows, notes)


def _unnamed(entry: Entry) -> str:
    """Return how a member is known that sent no request in the capture."""
    instance = entry.group_instance_id if isinstance(entry, TimelineEvent) else None
    return instance or entry.member_id or ""
