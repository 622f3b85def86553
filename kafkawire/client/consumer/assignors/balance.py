"""Partitions divided as evenly as subscriptions allow, moving as few as that takes.

Law: the result is balanced: no chain of moves, each from a member to another that subscribes to
the topic, takes a partition from a member to one that holds at least two fewer. What was held
stays unless such a chain needs it.

    held before ─▶ kept ─▶ + what nobody holds, to who holds least ─▶ chains, shortest first
                                                      A(4) ─t0─▶ B(3) ─u1─▶ C(2)   =  3 3 3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ..partitions import TopicPartition
from .assignor import Assignments, Member, all_partitions, in_order, subscribers


class Hop(NamedTuple):
    """How a member is reached: who gives it a partition, and of which topic."""

    source: int
    topic: str


def former_owners(
    partitions: Mapping[str, int], members: Sequence[Member]
) -> dict[TopicPartition, str]:
    """Say who held each partition last and may still hold it.

    Of several claims the one of the latest generation counts (KIP-341); where two members claim
    a partition in the same generation, neither has it.
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
    """Divide topics (name -> number of partitions) among the members."""
    return _Balance(partitions, in_order(members)).assign()


class _Balance:
    """One division at work; members are known by their place in the order."""

    def __init__(self, partitions: Mapping[str, int], members: list[Member]) -> None:
        self.members = members
        self.place = {member.member_id: i for i, member in enumerate(members)}
        self.subscribers = {
            topic: [self.place[member.member_id] for member in who]
            for topic, who in subscribers(members).items()
            if partitions.get(topic, 0) > 0
        }
        self.partitions = {topic: partitions[topic] for topic in self.subscribers}
        # topics with the same subscribers are one audience: who reads one may read the other
        numbers: dict[tuple[int, ...], int] = {}
        self.audience = {
            topic: numbers.setdefault(tuple(who), len(numbers))
            for topic, who in self.subscribers.items()
        }
        self.former = {
            partition: self.place[owner]
            for partition, owner in former_owners(partitions, members).items()
        }
        self.audiences = len(numbers)
        # who holds what: topic -> numbers of the partitions, for each member
        self.held: list[dict[str, set[int]]] = [{} for _ in members]
        self.load = [0] * len(members)

    def assign(self) -> Assignments:
        for partition, owner in self.former.items():
            self.give(owner, partition)
        self.deal()
        self.settle()
        return {
            member.member_id: sorted(
                TopicPartition(topic, number)
                for topic, numbers in self.held[i].items()
                for number in numbers
            )
            for i, member in enumerate(self.members)
        }

    def give(self, to: int, partition: TopicPartition) -> None:
        self.held[to].setdefault(partition.topic, set()).add(partition.partition)
        self.load[to] += 1

    def take(self, giver: int, partition: TopicPartition) -> None:
        numbers = self.held[giver][partition.topic]
        numbers.remove(partition.partition)
        if not numbers:
            del self.held[giver][partition.topic]
        self.load[giver] -= 1

    def deal(self) -> None:
        """Give what nobody holds to who holds least; topics that few may read come first."""
        free = [each for each in all_partitions(self.partitions) if each not in self.former]
        free.sort(key=lambda each: len(self.subscribers[each.topic]))
        heaps: dict[int, list[tuple[int, int]]] = {}
        for partition in free:
            heap = heaps.get(self.audience[partition.topic])
            if heap is None:
                heap = [(self.load[i], i) for i in self.subscribers[partition.topic]]
                heapify(heap)
                heaps[self.audience[partition.topic]] = heap
            load, to = heappop(heap)
            while load != self.load[to]:  # dealt to meanwhile for another topic
                heappush(heap, (self.load[to], to))
                load, to = heappop(heap)
            self.give(to, partition)
            heappush(heap, (self.load[to], to))

    def settle(self) -> None:
        """Take from the most loaded member until it can give to nobody; then from the next.

        Who can give to nobody has no chain later either: whoever it reaches holds as much as it
        does, less one, and no chain of a member that holds less leads there.
        """
        heap = [(-load, i) for i, load in enumerate(self.load)]
        heapify(heap)
        while heap:
            load, giver = heappop(heap)
            if -load != self.load[giver]:
                heappush(heap, (-self.load[giver], giver))
                continue
            if self.relieve(giver):
                heappush(heap, (-self.load[giver], giver))

    def relieve(self, giver: int) -> bool:
        """Move one partition's worth of load away from a member; False if that helps nobody."""
        chain = self.shortest(giver)
        if chain is None:
            return False
        came, receiver = chain
        while receiver != giver:
            source, topic = came[receiver]
            partition = self.spare(source, topic, receiver)
            self.take(source, partition)
            self.give(receiver, partition)
            receiver = source
        return True

    def shortest(self, giver: int) -> tuple[dict[int, Hop], int] | None:
        """Find the shortest chain to who holds at least two fewer, to the least loaded of those.

        Give by which hop each member is reached, and that last member; None if there is no chain.
        """
        came = {giver: Hop(giver, "")}
        heard: set[int] = set()
        level = [giver]
        while level:
            following: list[int] = []
            for source in level if len(heard) < self.audiences else ():
                for topic in sorted(self.held[source]):
                    if self.audience[topic] not in heard:
                        heard.add(self.audience[topic])
                        new = [i for i in self.subscribers[topic] if i not in came]
                        following += new
                        came |= dict.fromkeys(new, Hop(source, topic))
            best = min(following, key=self.load.__getitem__, default=giver)
            if self.load[best] <= self.load[giver] - 2:
                return came, best
            level = following
        return None

    def spare(self, giver: int, topic: str, receiver: int) -> TopicPartition:
        """Choose what to give: what the receiver had before, else what the giver had not."""

        def rank(number: int) -> tuple[int, int]:
            former = self.former.get(TopicPartition(topic, number))
            return (0 if former == receiver else 2 if former == giver else 1, -number)

        return TopicPartition(topic, min(self.held[giver][topic], key=rank))
