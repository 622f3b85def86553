"""The server-side assignor `simple`, as Kafka's SimpleAssignor (KIP-932).

Invariant: each partition has a member that is subscribed to it, if there is any; each member has a
partition, if its topics have any. Members keep what they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from math import ceil
from typing import Final

from ..consumer_groups.assignors import Assignment, MemberSpec
from ..consumer_groups.members import Partitions, TopicPartition

SIMPLE: Final = "simple"


def simple(members: Sequence[MemberSpec], assignable: Partitions) -> Assignment:
    """Assign partitions: as many members to each as it takes to give each member one.

    assignable: the partitions of all topics that may be assigned.
    """
    by_topic: defaultdict[bytes, list[TopicPartition]] = defaultdict(list)
    for partition in sorted(assignable):
        by_topic[partition[0]].append(partition)
    if len({each.topics for each in members}) <= 1:
        return _same_subscriptions(members, by_topic)
    return _different_subscriptions(members, by_topic)


def _targets(
    topics: Iterable[bytes], by_topic: Mapping[bytes, list[TopicPartition]]
) -> list[TopicPartition]:
    return [each for topic in sorted(topics) for each in by_topic.get(topic, ())]


def _same_subscriptions(
    members: Sequence[MemberSpec], by_topic: Mapping[bytes, list[TopicPartition]]
) -> Assignment:
    targets = _targets(members[0].topics if members else (), by_topic)
    assignment: Assignment = {each.member_id: set() for each in members}
    if not targets:
        return assignment
    sharing = -(-len(members) // len(targets))
    each_gets = sharing * len(targets) / len(members)
    limits = {
        member.member_id: ceil(each_gets * (at + 1)) - ceil(each_gets * at)
        for at, member in enumerate(members)
    }
    sharers = dict.fromkeys(targets, 0)
    for member in members:
        kept = assignment[member.member_id]
        for partition in sorted(member.partitions):
            room = len(kept) < limits[member.member_id]
            if room and sharers.get(partition, sharing) < sharing:
                kept.add(partition)
                sharers[partition] += 1
    unfilled = [each for each, kept in assignment.items() if len(kept) < limits[each]]
    _fill(assignment, unfilled, limits, sharers, sharing)
    return assignment


def _fill(
    assignment: Assignment,
    unfilled: list[str],
    limits: Mapping[str, int],
    sharers: Mapping[TopicPartition, int],
    sharing: int,
) -> None:
    """Give the partitions with too few members to the members with too few partitions, in turn."""
    turn = 0
    for partition, count in sharers.items():
        missing, passed = sharing - count, 0
        while missing and passed < len(unfilled):
            turn %= len(unfilled)
            member_id = unfilled[turn]
            if partition in assignment[member_id]:
                turn, passed = turn + 1, passed + 1
                continue
            assignment[member_id].add(partition)
            missing, passed = missing - 1, 0
            if len(assignment[member_id]) >= limits[member_id]:
                del unfilled[turn]
            else:
                turn += 1


def _different_subscriptions(
    members: Sequence[MemberSpec], by_topic: Mapping[bytes, list[TopicPartition]]
) -> Assignment:
    """Assign the topics of each subscription to the members that have it, which keep theirs."""
    assignment: Assignment = {}
    assigned: set[TopicPartition] = set()
    without: list[MemberSpec] = []
    subscribers: defaultdict[bytes, list[str]] = defaultdict(list)
    for member in members:
        targets = set(_targets(member.topics, by_topic))
        kept = set(member.partitions & targets)
        assignment[member.member_id] = kept
        assigned |= kept
        if targets and not kept:
            without.append(member)
        for topic in member.topics:
            subscribers[topic].append(member.member_id)
    _give_new(assignment, subscribers, by_topic, assigned)
    for member in without:
        if not assignment[member.member_id]:
            targets_in_order = _targets(member.topics, by_topic)
            number = members.index(member)
            assignment[member.member_id].add(targets_in_order[number % len(targets_in_order)])
    return assignment


def _give_new(
    assignment: Assignment,
    subscribers: Mapping[bytes, list[str]],
    by_topic: Mapping[bytes, list[TopicPartition]],
    assigned: set[TopicPartition],
) -> None:
    """Give each partition that nobody has to the subscriber that has the fewest."""
    for topic in sorted(subscribers):
        heap = [(len(assignment[each]), each) for each in subscribers[topic]]
        heapify(heap)
        for partition in by_topic.get(topic, ()):
            if partition not in assigned:
                count, member_id = heap[0]
                assignment[member_id].add(partition)
                heapreplace(heap, (count + 1, member_id))
