"""Finds which member of a group held which partitions, and when.

An assignment lasts until the member's next assignment, until it leaves, or until a rebalance
in which consumption stops; what the kept timeline does not contain is not invented.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.tables.extraction.group_event import EventType

from .group import GroupHistory, Rebalance, TimelineEvent

Partitions = list[tuple[Topic, list[int]]]


ENDS: Final = frozenset({EventType.ASSIGNED, EventType.LEFT, EventType.REMOVED})
"""Events after which a member no longer has its earlier assignment."""


class Assignment(NamedTuple):
    """Partitions of a member from one time to another."""

    member_id: str
    partitions: Partitions
    from_ns: int
    until_ns: int


def assignments(history: GroupHistory, until_ns: int) -> list[Assignment]:
    """List the assignments of a group, by start. until_ns: the end of the capture."""
    return sorted(_assignments(history, until_ns), key=lambda one: (one.from_ns, one.member_id))


def _assignments(history: GroupHistory, until_ns: int) -> Iterator[Assignment]:
    stops = deque(
        sorted(
            (one for one in history.rebalances if one.stops_consumption),
            key=lambda one: one.noticed_ns,
        )
    )
    open_: dict[str, tuple[int, Partitions]] = {}
    for event in history.timeline:
        if not isinstance(event, TimelineEvent):
            continue
        while stops and stops[0].noticed_ns <= event.time_ns:
            yield from _ended(open_, stops.popleft())
        member = event.member_id
        if member is None or event.event not in ENDS:
            continue
        before = open_.pop(member, None)
        if before is not None and before[0] < event.time_ns:
            yield Assignment(member, before[1], before[0], event.time_ns)
        if event.event is EventType.ASSIGNED and event.partitions:
            open_[member] = event.time_ns, event.partitions
    for stop in stops:
        yield from _ended(open_, stop)
    for member, (from_ns, partitions) in open_.items():
        yield Assignment(member, partitions, from_ns, max(from_ns, until_ns))


def _ended(open_: dict[str, tuple[int, Partitions]], stop: Rebalance) -> Iterator[Assignment]:
    """End the assignments that began before a rebalance that stops consumption."""
    for member, (from_ns, partitions) in list(open_.items()):
        if from_ns < stop.noticed_ns:
            del open_[member]
            yield Assignment(member, partitions, from_ns, stop.noticed_ns)
