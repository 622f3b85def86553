"""The server-side assignors `uniform` and `range` (KIP-848).

Invariant: each partition of a topic is assigned to one member that is subscribed to it, if there is
any. Both keep of the last target assignment what they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import Final, NamedTuple

from .members import Partitions, TopicPartition

UNIFORM: Final = "uniform"
RANGE: Final = "range"
MAX_ROUNDS: Final = 10
"""How often the uniform assignor goes over topics to even out different subscriptions."""


class MemberSpec(NamedTuple):
    """A member. topics: the ids of its topics. partitions: its last target assignment."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]
    partitions: Partitions


Assignment = dict[str, set[TopicPartition]]
Assignor = Callable[[Sequence[MemberSpec], Mapping[bytes, int]], Assignment]


def uniform(members: Sequence[MemberSpec], topics: Mapping[bytes, int]) -> Assignment:
    """Assign the same number of partitions to each member, give or take one.

    topics: topic id -> number of partitions. Where subscriptions differ, no partition can move from
    a member to another one that has two less.
    """
    if len({each.topics for each in members}) <= 1:
        return _same_subscriptions(members, topics)
    return _different_subscriptions(members, topics)


def _all_partitions(topics: Mapping[bytes, int]) -> list[TopicPartition]:
    return [(topic, index) for topic in sorted(topics) for index in range(topics[topic])]


def _same_subscriptions(members: Sequence[MemberSpec], topics: Mapping[bytes, int]) -> Assignment:
    subscribed = members[0].topics if members else frozenset()
    everything = _all_partitions({topic: topics[topic] for topic in subscribed if topic in topics})
    quota, extra = divmod(len(everything), max(len(members), 1))
    valid, taken = set(everything), set[TopicPartition]()
    assignment: Assignment = {}
    missing: list[tuple[str, int]] = []
    for at, member in enumerate(members):
        limit = quota + (at < extra)
        kept = sorted(member.partitions & valid - taken)[:limit]
        taken.update(kept)
        assignment[member.member_id] = set(kept)
        missing.append((member.member_id, limit - len(kept)))
    rest = iter([each for each in everything if each not in taken])
    for member_id, count in missing:
        assignment[member_id].update(next(rest) for _ in range(count))
    return assignment


def _different_subscriptions(
    members: Sequence[MemberSpec], topics: Mapping[bytes, int]
) -> Assignment:
    subscribers = _subscribers(members)
    assignment: Assignment = {}
    taken: set[TopicPartition] = set()
    for member in members:
        kept = {
            each
            for each in member.partitions - taken
            if each[0] in member.topics and each[1] < topics.get(each[0], 0)
        }
        taken |= kept
        assignment[member.member_id] = kept
    # topics with few subscribers first: those of others are more free to even that out
    order = sorted((topic for topic in topics if topic in subscribers), key=_least(subscribers))
    for topic in order:
        free = [(topic, at) for at in range(topics[topic]) if (topic, at) not in taken]
        _fill(assignment, subscribers[topic], free)
    for _ in range(MAX_ROUNDS):
        if not sum(_even_out(assignment, subscribers[topic], topic) for topic in order):
            break
    return assignment


def _least(subscribers: Mapping[bytes, list[str]]) -> Callable[[bytes], tuple[int, bytes]]:
    return lambda topic: (len(subscribers[topic]), topic)


def _subscribers(members: Iterable[MemberSpec]) -> Mapping[bytes, list[str]]:
    subscribers: defaultdict[bytes, list[str]] = defaultdict(list)
    for member in members:
        for topic in member.topics:
            subscribers[topic].append(member.member_id)
    return subscribers


def _fill(assignment: Assignment, members: list[str], free: list[TopicPartition]) -> None:
    """Give each free partition to the member that has the fewest."""
    heap = [(len(assignment[each]), each) for each in members]
    heapify(heap)
    for partition in free:
        count, member_id = heap[0]
        assignment[member_id].add(partition)
        heapreplace(heap, (count + 1, member_id))


def _even_out(assignment: Assignment, members: list[str], topic: bytes) -> bool:
    """Move partitions of a topic from members with many to members with few, if there are any."""
    order = sorted(members, key=lambda each: (len(assignment[each]), each))
    low, high, moved = 0, len(order) - 1, False
    while low < high:
        few, many = assignment[order[low]], assignment[order[high]]
        movable = sorted(each for each in many if each[0] == topic)
        count = min((len(many) - len(few)) // 2, len(movable))
        for partition in movable[len(movable) - count :]:
            many.discard(partition)
            few.add(partition)
            moved = True
        low, high = low + 1, high - 1
    return moved


def range_(members: Sequence[MemberSpec], topics: Mapping[bytes, int]) -> Assignment:
    """Assign consecutive partitions of each topic, with the same indexes of topics to a member.

    Static members come first, by their instance ids, then the others by their member ids.
    """
    order = sorted(
        members, key=lambda each: (each.instance_id is None, each.instance_id or each.member_id)
    )
    assignment: Assignment = {each.member_id: set() for each in order}
    subscribed: defaultdict[bytes, list[MemberSpec]] = defaultdict(list)
    kept: defaultdict[tuple[str, bytes], list[int]] = defaultdict(list)
    for member in order:
        for topic in member.topics:
            subscribed[topic].append(member)
        for topic, index in sorted(member.partitions):
            kept[member.member_id, topic].append(index)
    for topic in sorted(subscribed):
        count = topics.get(topic, 0)
        members_of = [each.member_id for each in subscribed[topic]]
        before = [kept.get((each, topic), []) for each in members_of]
        for member_id, indexes in zip(members_of, _ranges(before, count), strict=True):
            assignment[member_id].update((topic, index) for index in indexes)
    return assignment


def _ranges(before: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Divide the partitions of a topic. before: those that each member has, in order."""
    quota, extra = divmod(count, len(before))
    taken: set[int] = set()
    ranges, limits = [], []
    for indexes in before:
        valid = [each for each in indexes if each < count and each not in taken]
        limit = quota
        if extra and len(valid) > quota:
            limit, extra = quota + 1, extra - 1
        taken.update(valid[:limit])
        ranges.append(valid[:limit])
        limits.append(limit)
    rest = iter([each for each in range(count) if each not in taken])
    for at, indexes in enumerate(ranges):
        if extra and limits[at] == quota:
            limits[at], extra = quota + 1, extra - 1
        indexes.extend(next(rest) for _ in range(limits[at] - len(indexes)))
    return ranges


ASSIGNORS: Final[Mapping[str, Assignor]] = {UNIFORM: uniform, RANGE: range_}
"""The assignors by name, in the order of `group.consumer.assignors`."""
