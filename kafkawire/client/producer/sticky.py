"""Which partition a record without a key goes to (KIP-480, KIP-794).

Law: one partition until a batch's worth of bytes has gone there, then another, drawn so that
partitions whose queues are long are drawn seldom; every partition gets the same bytes where
brokers are equally fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from ..network.backoff import Rng
from ..network.cluster import Topic


class Sticky:
    """The choice for one topic.

    stay_bytes: how much goes to a partition before another is drawn. adaptive: whether long queues
    are avoided.
    """

    def __init__(self, stay_bytes: int, adaptive: bool, rng: Rng) -> None:
        self._stay_bytes = stay_bytes
        self._adaptive = adaptive
        self._rng = rng
        self._partition: int | None = None
        self._bytes = 0

    @property
    def partition(self) -> int | None:
        """The partition of the record before."""
        return self._partition

    def stays(self, topic: Topic, size: int) -> bool:
        """Say whether the next record, of that many bytes, goes where the one before went; then it
        is taken as placed.
        """
        held = self._bytes
        if (held and held + size > self._stay_bytes) or self._partition not in topic.partitions:
            return False
        self._bytes = held + size
        return True

    def choose(self, topic: Topic, size: int, queued: Callable[[str, int], int]) -> int:
        """Give the partition for the next record, of that many bytes, where the one before does not
        say it; `queued` tells how many batches a partition of a topic has waiting.
        """
        self._partition = self._draw(topic, queued)
        self._bytes = size
        return self._partition

    def _draw(self, topic: Topic, queued: Callable[[str, int], int]) -> int:
        led = [index for index, each in topic.partitions.items() if each.leader >= 0]
        among = led or list(topic.partitions)
        weights = [1] * len(among)
        if self._adaptive:
            lengths = [queued(topic.name, index) for index in among]
            weights = [max(lengths) + 1 - length for length in lengths]
        return drawn(among, weights, self._rng)


def drawn(among: Sequence[int], weights: Sequence[int], rng: Rng) -> int:
    """Draw one of them by weight."""
    sums = list(accumulate(weights))
    at = int(rng() * sums[-1])
    return next(each for each, upto in zip(among, sums, strict=True) if at < upto)
