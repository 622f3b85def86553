"""Makes the JSON form of a consumer group for the page: assignments, rebalances, absences, lag."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kafkawire.protocol.error_code import ErrorCode
from kafkawire.reports.groups.absences import AbsenceKind
from kafkawire.reports.groups.assignments import assignments

from ..group_events import ABSENCE_TEXTS, assigned_text
from .bodies import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkawire.reports.groups.absences import Absence
    from kafkawire.reports.groups.assignments import Assignment, Partitions
    from kafkawire.reports.groups.group import GroupHistory, Rebalance
    from kafkawire.reports.groups.member import Member

MAX_ENTRIES: Final = 300
"""Assignments, rebalances, absences and members of a group."""

MAX_PARTITIONS: Final = 64
"""Partitions of an assignment that have rows of their own."""


def group_json(group: GroupHistory, until_ns: int) -> dict[str, Any]:
    """Return the JSON form of a group. until_ns: the end of the capture."""
    held = assignments(group, until_ns)
    rebalances = sorted(group.rebalances, key=lambda one: one.noticed_ns)
    members = {one: at for at, one in enumerate(islice(group.members, MAX_ENTRIES))}
    shown = [one for one in held if one.member_id in members][:MAX_ENTRIES]
    topics: dict[str, int] = {}
    return {
        "group": shown_text(group.group_id),
        "protocol": "commits only" if group.protocol is None else group.protocol.value,
        "assignors": [shown_text(one) for one in islice(group.assignors, 8)],
        "members": [_member(group.members[one]) for one in members],
        "assignments": [_assignment(one, members, topics) for one in shown],
        "topics": list(topics),
        "rebalances": [_rebalance(one) for one in rebalances[:MAX_ENTRIES]],
        "lags": [(ns / 1e6, lag) for ns, lag in group.lags.points],
        "commits": group.commits,
        "unavailable_ns": group.unavailable_ns,
        "absences": [
            _absence(one, group) for one in sorted(group.absences, key=lambda one: one.time_ns)
        ][:MAX_ENTRIES],
        "errors": {ErrorCode.name_of(code): n for code, n in group.failures.most_common(8)},
        "left_out": {
            "members": len(group.members) - len(members),
            "assignments": len(held) - len(shown),
            "absences": max(0, len(group.absences) - MAX_ENTRIES),
            "rebalances": max(0, len(group.rebalances) - MAX_ENTRIES),
            "events": group.omitted,
        },
    }


def _member(member: Member) -> dict[str, Any]:
    return {
        "member": shown_text(member.member_id),
        "client": shown_text(member.client_id or member.address),
        "software": shown_text(str(member.software or "")),
        "commits": member.commits,
    }


def _assignment(one: Assignment, members: dict[str, int], topics: dict[str, int]) -> dict[str, Any]:
    """Return the JSON form; partitions are the numbers of a topic and of a partition in it."""
    return {
        "member": members[one.member_id],
        "from_ms": one.from_ns / 1e6,
        "until_ms": one.until_ns / 1e6,
        "text": shown_text(assigned_text(one.partitions)),
        "partitions": list(islice(_numbers(one.partitions, topics), MAX_PARTITIONS)),
    }


def _numbers(partitions: Partitions, topics: dict[str, int]) -> Iterator[tuple[int, int]]:
    for topic, numbers in partitions:
        name = shown_text(topic.name or topic.id_text or "")
        index = topics.setdefault(name, len(topics))
        yield from ((index, number) for number in numbers)


def _absence(one: Absence, group: GroupHistory) -> dict[str, Any]:
    """Return the JSON form; without a client if it is about all members."""
    member = group.members.get(one.member_id or "")
    address = "" if member is None else member.address
    return {
        "from_ms": one.time_ns / 1e6,
        "until_ms": one.until_ns / 1e6,
        "duration_ns": one.duration_ns,
        "what": ABSENCE_TEXTS[one.kind],
        "client": shown_text(one.client_id or address),
        "all": one.kind is AbsenceKind.NO_MEMBERS,
    }


def _rebalance(one: Rebalance) -> dict[str, Any]:
    return {
        "started_ms": one.started_ns / 1e6,
        "from_ms": one.noticed_ns / 1e6,
        "until_ms": None if one.ended_ns is None else one.ended_ns / 1e6,
        "reason": shown_text(one.reason or "unknown cause"),
        "client": shown_text(one.client_id or ""),
        "duration_ns": one.duration_ns,
        "stops": one.stops_consumption,
        "stopped_ns": one.stopped_ns,
        "generation": one.generation,
        "members": one.members,
    }
