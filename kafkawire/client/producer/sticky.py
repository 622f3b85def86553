"""The sticky partitioner: the partition of a record without a key (KIP-480, KIP-794).

One partition until batch.size bytes went there, then a random other one, weighted against
long queues; every partition gets the same bytes if brokers are equally fast. A topic's only
partition is never left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from ..cluster import Partition, Topic
from ..network.backoff import Rng


class Sticky:
    """The current partition of one topic.

    partition: of the previous record. stay_bytes: how many bytes go to a partition before a switch.
    adaptive: whether long queues are avoided.
    """

    def __init__(self, stay_bytes: int, adaptive: bool, rng: Rng) -> None:
        self._stay_bytes = stay_bytes
        self._adaptive = adaptive
        self._rng = rng
        self.partition: int | None = None
        self._bytes = 0

    def stays(self, partitions: Mapping[int, Partition], size: int) -> bool:
        """Return whether the next record, of `size` bytes, stays; if so, count it.

        partitions: those of the topic.
        """
        if self.partition not in partitions:
            return False
        total = self._bytes
        if total and total + size > self._stay_bytes and len(partitions) > 1:
            return False
        self._bytes = total + size
        return True

    def choose(self, topic: Topic, size: int, queued: Callable[[str, int], int]) -> int:
        """Choose the partition of the next record, of `size` bytes.

        queued: returns the number of queued batches of a topic and partition.
        """
        self.partition = self._draw(topic, queued)
        self._bytes = size
        return self.partition

    def _draw(self, topic: Topic, queued: Callable[[str, int], int]) -> int:
        led = [index for index, each in topic.partitions.items() if each.leader >= 0]
        among = led or list(topic.partitions)
        weights = [1] * len(among)
        if self._adaptive:
            lengths = [queued(topic.name, index) for index in among]
            weights = [max(lengths) + 1 - length for length in lengths]
        return weighted_choice(among, weights, self._rng)


def weighted_choice(among: Sequence[int], weights: Sequence[int], rng: Rng) -> int:
    """Choose one of them by weight."""
    sums = list(accumulate(weights))
    draw = int(rng() * sums[-1])
    return next(each for each, upto in zip(among, sums, strict=True) if draw < upto)
