"""The lowest sequences of batches that begin transactions, while these are verified.

The log cannot check the first batch of a producer that it does not know: any sequence is valid. If
the verification of that batch fails, for a moment, the next batch of the producer, which was in
flight, must not be appended before it.
"""

from __future__ import annotations

from typing import NamedTuple

from ...metadata import TopicIdPartition
from ...records import Batch


class First(NamedTuple):
    """A batch that would begin a transaction in a partition."""

    key: TopicIdPartition
    producer_id: int
    producer_epoch: int
    sequence: int

    @classmethod
    def of(cls, key: TopicIdPartition, batch: Batch) -> First:
        """Return what identifies a batch."""
        return cls(key, batch.producer_id, batch.producer_epoch, batch.base_sequence)


class LowestSequences:
    """The lowest sequence of each producer of a partition since its last transaction there.

    limit: how many are kept; seconds: for how long. Those that are noted first go first.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._lowest: dict[tuple[TopicIdPartition, int], tuple[First, float]] = {}

    def note(self, first: First, now: float) -> None:
        """Take note of a batch whose verification begins."""
        of = first.key, first.producer_id
        lowest = self._get(first, now)
        if lowest is None or first.producer_epoch > lowest.producer_epoch:
            self._lowest.pop(of, None)
            self._lowest[of] = first, now
        elif first.sequence < lowest.sequence and first.producer_epoch == lowest.producer_epoch:
            self._lowest[of] = first, now
        while len(self._lowest) > self._limit:
            del self._lowest[next(iter(self._lowest))]

    def is_later(self, first: First, now: float) -> bool:
        """Return whether an earlier batch of the same epoch is not appended yet."""
        lowest = self._get(first, now)
        return (
            lowest is not None
            and lowest.producer_epoch == first.producer_epoch
            and lowest.sequence < first.sequence
        )

    def forget(self, key: TopicIdPartition, producer_id: int) -> None:
        """Forget a producer, whose transaction has begun or ended."""
        self._lowest.pop((key, producer_id), None)

    def _get(self, first: First, now: float) -> First | None:
        lowest, noted = self._lowest.get((first.key, first.producer_id), (None, now))
        return lowest if now - noted < self._seconds else None
