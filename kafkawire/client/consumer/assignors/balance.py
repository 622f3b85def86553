"""Distributes partitions evenly among subscribers, moving as few as possible.

The result is balanced: no chain of moves between subscribers of the moved topics takes a
partition from a member to one that has at least two fewer. Previous assignments are kept unless
such a chain needs them.

    previous assignment ─▶ + free partitions, to the least loaded ─▶ chains of moves, shortest first
                                                      A(4) ─t0─▶ B(3) ─u1─▶ C(2)   =  3 3 3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ..partitions import TopicPartition
from .assignor import Assignments, Member, all_partitions, in_order, subscribers


class Hop(NamedTuple):
    """A move to a member: from which member, and of which topic."""

    source: int
    topic: str


def previous_owners_of(
    partitions: Mapping[str, int], members: Sequence[Member]
) -> dict[TopicPartition, str]:
    """Return the previous owner of each partition.

    If several members claim a partition, the latest generation wins (KIP-341); if two claim it in
    the same generation, it has no owner.
    """
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        topics = frozenset(member.topics)
        for claim in dict.fromkeys(member.owned):
            if claim.topic not in topics or not claim.partition < partitions.get(claim.topic, 0):
                continue
            generation = best.get(claim, (-2, None))[0]
            if member.generation > generation:
                best[claim] = (member.generation, member.member_id)
            elif member.generation == generation:
                best[claim] = (generation, None)
    return {claim: owner for claim, (_, owner) in best.items() if owner is not None}


def balanced(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    """Assign topics (name -> number of partitions) to the members."""
    return _Balance(partitions, in_order(members)).assign()


class _Balance:
    """An assignment in progress; members are known by their index."""

    def __init__(self, partitions: Mapping[str, int], members: list[Member]) -> None:
        self.members = members
        self.index = {member.member_id: i for i, member in enumerate(members)}
        self.subscribers = {
            topic: [self.index[member.member_id] for member in who]
            for topic, who in subscribers(members).items()
            if partitions.get(topic, 0) > 0
        }
        self.partitions = {topic: partitions[topic] for topic in self.subscribers}
        # topics with the same subscribers have the same number
        numbers: dict[tuple[int, ...], int] = {}
        self.subscriber_set = {
            topic: numbers.setdefault(tuple(who), len(numbers))
            for topic, who in self.subscribers.items()
        }
        self.previous_owners = {
            partition: self.index[owner]
            for partition, owner in previous_owners_of(partitions, members).items()
        }
        self.subscriber_sets = len(numbers)
        # for each member: topic -> partition numbers
        self.assigned: list[dict[str, set[int]]] = [{} for _ in members]
        self.load = [0] * len(members)

    def assign(self) -> Assignments:
        for partition, owner in self.previous_owners.items():
            self.add(owner, partition)
        self.distribute()
        self.even_out()
        return {
            member.member_id: sorted(
                TopicPartition(topic, number)
                for topic, numbers in self.assigned[i].items()
                for number in numbers
            )
            for i, member in enumerate(self.members)
        }

    def add(self, to: int, partition: TopicPartition) -> None:
        self.assigned[to].setdefault(partition.topic, set()).add(partition.partition)
        self.load[to] += 1

    def remove(self, giver: int, partition: TopicPartition) -> None:
        numbers = self.assigned[giver][partition.topic]
        numbers.remove(partition.partition)
        if not numbers:
            del self.assigned[giver][partition.topic]
        self.load[giver] -= 1

    def distribute(self) -> None:
        """Assign free partitions to the least loaded members; topics with few subscribers first."""
        free = [
            each for each in all_partitions(self.partitions) if each not in self.previous_owners
        ]
        free.sort(key=lambda each: len(self.subscribers[each.topic]))
        heaps: dict[int, list[tuple[int, int]]] = {}
        for partition in free:
            heap = heaps.get(self.subscriber_set[partition.topic])
            if heap is None:
                heap = [(self.load[i], i) for i in self.subscribers[partition.topic]]
                heapify(heap)
                heaps[self.subscriber_set[partition.topic]] = heap
            load, to = heappop(heap)
            while load != self.load[to]:  # its load has changed for another topic
                heappush(heap, (self.load[to], to))
                load, to = heappop(heap)
            self.add(to, partition)
            heappush(heap, (self.load[to], to))

    def even_out(self) -> None:
        """Move partitions away from the most loaded member while that helps; then from the next.

        A member without a chain has none later either: all members that it reaches have at least
        its load less one, and no chain of a less loaded member leads to them.
        """
        heap = [(-load, i) for i, load in enumerate(self.load)]
        heapify(heap)
        while heap:
            load, giver = heappop(heap)
            if -load != self.load[giver]:
                heappush(heap, (-self.load[giver], giver))
                continue
            if self.reduce_load(giver):
                heappush(heap, (-self.load[giver], giver))

    def reduce_load(self, giver: int) -> bool:
        """Reduce a member's load by one, along a chain; False if it has no chain."""
        chain = self.shortest_chain(giver)
        if chain is None:
            return False
        hops, receiver = chain
        while receiver != giver:
            source, topic = hops[receiver]
            partition = self.choose_partition(source, topic, receiver)
            self.remove(source, partition)
            self.add(receiver, partition)
            receiver = source
        return True

    def shortest_chain(self, giver: int) -> tuple[dict[int, Hop], int] | None:
        """Find the shortest chain to a member with at least two fewer; the least loaded of those.

        Returns the hop to each member, and the last member; None without a chain.
        """
        hops = {giver: Hop(giver, "")}
        visited: set[int] = set()
        level = [giver]
        while level:
            next_level: list[int] = []
            for source in level if len(visited) < self.subscriber_sets else ():
                for topic in sorted(self.assigned[source]):
                    if self.subscriber_set[topic] not in visited:
                        visited.add(self.subscriber_set[topic])
                        new = [i for i in self.subscribers[topic] if i not in hops]
                        next_level += new
                        hops |= dict.fromkeys(new, Hop(source, topic))
            best = min(next_level, key=self.load.__getitem__, default=giver)
            if self.load[best] <= self.load[giver] - 2:
                return hops, best
            level = next_level
        return None

    def choose_partition(self, giver: int, topic: str, receiver: int) -> TopicPartition:
        """Choose a partition to move: one the receiver had before, else one the giver had not."""

        def rank(number: int) -> tuple[int, int]:
            owner = self.previous_owners.get(TopicPartition(topic, number))
            return (0 if owner == receiver else 2 if owner == giver else 1, -number)

        return TopicPartition(topic, min(self.assigned[giver][topic], key=rank))
