"""Topics, their partitions, replicas and leaders.

Law: a leader changes only with its epoch; a partition without a live replica has leader -1.

    replicas of partition p: brokers round robin, from (number of the topic + p) on
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..configs.topic_names import normalised
from .bounds import DEFAULT_BOUNDS, Bounds
from .log.partition_log import PartitionLog
from .log.producer_state import Producers

NO_LEADER: Final = -1
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})


@dataclass(slots=True)
class Partition:
    """One partition; all its replicas share one log."""

    topic: str
    index: int
    replicas: list[int]
    isr: list[int]
    leader_id: int
    leader_epoch: int = 0
    log: PartitionLog = field(default_factory=PartitionLog)
    producers: Producers = field(default_factory=Producers)

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.index

    @property
    def offline(self) -> list[int]:
        """Replicas on brokers that are down."""
        return [node for node in self.replicas if node not in self.isr]

    def move_to(self, leader_id: int) -> None:
        """Set the leader (NO_LEADER for none) and increment the leader epoch."""
        self.leader_id = leader_id
        self.leader_epoch += 1
        self.log.start_epoch(self.leader_epoch, self.log.log_end_offset)

    def update_isr(self, node_id: int, alive: bool) -> bool:
        """Update the ISR for a broker that is up or down; return whether the leader changed."""
        if node_id not in self.replicas:
            return False
        self.isr = [
            n for n in self.replicas if (n in self.isr and n != node_id) or (alive and n == node_id)
        ]
        if alive and self.leader_id == NO_LEADER:
            self.move_to(node_id)
            return True
        if not alive and self.leader_id == node_id:
            self.move_to(self.isr[0] if self.isr else NO_LEADER)
            return True
        return False


@dataclass(slots=True)
class Topic:
    """A topic. configs: the values set for it."""

    name: str
    topic_id: bytes
    partitions: list[Partition]
    configs: dict[str, str] = field(default_factory=dict)

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL

    def partition(self, index: int) -> Partition | None:
        """Find a partition by its index."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class Topics:
    """All topics of a cluster, by name and by id."""

    def __init__(
        self,
        node_ids: Sequence[int],
        new_uuid: Callable[[], bytes],
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self._bounds = bounds
        self.node_ids = list(node_ids)
        self.alive: set[int] = set(node_ids)
        self._new_uuid = new_uuid
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._by_normalised: dict[str, dict[str, None]] = {}
        self._created = 0
        self.partition_count = 0

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Topic | None:
        """Find a topic by name."""
        return self._by_name.get(name)

    def colliding(self, name: str) -> str | None:
        """Find another topic whose name differs in "." and "_" only; None if there is none."""
        names = self._by_normalised.get(normalised(name), ())
        return next((each for each in names if each != name), None)

    def by_id(self, topic_id: bytes) -> Topic | None:
        """Find a topic by id."""
        return self._by_id.get(topic_id)

    def partition(self, name: str, index: int) -> Partition | None:
        """Find a partition."""
        topic = self._by_name.get(name)
        return None if topic is None else topic.partition(index)

    def partitions(self) -> Iterator[Partition]:
        """Iterate over all partitions of all topics."""
        for topic in self._by_name.values():
            yield from topic.partitions

    def create(
        self, name: str, assignments: Iterable[Sequence[int]], configs: dict[str, str]
    ) -> Topic:
        """Create a topic. assignments: the replicas of each partition."""
        topic = self.add(name, self._new_uuid())
        topic.configs = dict(configs)
        self.extend(topic, assignments)
        return topic

    def add(self, name: str, topic_id: bytes) -> Topic:
        """Add a topic without partitions."""
        topic = Topic(name, topic_id, [])
        self._by_name[name] = self._by_id[topic_id] = topic
        self._by_normalised.setdefault(normalised(name), {})[name] = None
        self._created += 1
        return topic

    def extend(self, topic: Topic, assignments: Iterable[Sequence[int]]) -> None:
        """Add partitions to a topic."""
        for replicas in assignments:
            isr = [node for node in replicas if node in self.alive]
            leader = isr[0] if isr else NO_LEADER
            index = len(topic.partitions)
            self.append(topic, Partition(topic.name, index, list(replicas), isr, leader))

    def append(self, topic: Topic, partition: Partition) -> None:
        """Append a partition to a topic."""
        partition.producers.most = self._bounds.producers
        topic.partitions.append(partition)
        self.partition_count += 1

    def spread(self, count: int, factor: int, first: int = 0) -> list[list[int]]:
        """Assign replicas to partitions from `first` on, each on `factor` brokers.

        Live ones first: a stopped broker gets replicas only where the others do not suffice.
        """
        live = [each for each in self.node_ids if each in self.alive]
        on_live = min(factor, len(live))
        others = [each for each in self.node_ids if each not in self.alive][: factor - on_live]
        return [
            [live[(self._created + index + more) % len(live)] for more in range(on_live)] + others
            for index in range(first, first + count)
        ]

    def delete(self, topic: Topic) -> None:
        """Delete a topic."""
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        names = self._by_normalised[normalised(topic.name)]
        del names[topic.name]
        if not names:
            del self._by_normalised[normalised(topic.name)]
        self.partition_count -= len(topic.partitions)
