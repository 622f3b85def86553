"""Queues the batches of one partition, in order.

Batches are sent and reported in the order of their records; no batch overtakes one that is
retried; sequence numbers have no gap within an epoch.

    unresolved  [b1 b2 b3 b4 b5]      results are reported from the left
    in flight   [b1 b2]
    queued            [b3 b4 b5]      b5 may be open
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from .batch import NO_SEQUENCE, Batch

SEQUENCES: Final = 1 << 31
"""Sequence numbers wrap to 0 after 2147483647."""
MOST_IN_FLIGHT: Final = 5
"""Batches of a partition whose sequence numbers a broker tracks."""


class ProducerIdAndEpoch(NamedTuple):
    """The producer id from the broker, and the epoch, bumped by the client (KIP-360)."""

    producer_id: int
    producer_epoch: int


class PartitionQueue:
    """The batches of a partition.

    not_before: end of the backoff after a failure. reset: whether batches must be renumbered under
    a newer producer id or epoch. acknowledged: whether the broker accepted a batch under the
    current one; before, it accepts any sequence number, and a second batch could overtake.
    leader_changed: whether a broker just reported a new leader.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.queued: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.unresolved: deque[Batch] = deque()
        self.not_before = 0.0
        self.identity: ProducerIdAndEpoch | None = None
        self.reset = False
        self.acknowledged = False
        self.leader_changed = False
        self._next_sequence = 0

    @property
    def last(self) -> Batch | None:
        """The newest batch that was not sent, or None."""
        return self.queued[-1] if self.queued else None

    @property
    def open(self) -> Batch | None:
        """The batch that accepts records, or None."""
        last = self.last
        return None if last is None or last.closed else last

    def add(self, batch: Batch) -> None:
        """Append a new batch."""
        if self.queued:
            self.queued[-1].close()
        self.queued.append(batch)
        self.unresolved.append(batch)

    def may_send(self, idempotent: bool, in_order: bool) -> bool:
        """Return whether the next batch can be sent without breaking the order.

        idempotent: the broker rejects out-of-order batches, so several may be in flight; in_order:
        else one at a time; neither: nothing is retried, so nothing can overtake.
        """
        if not self.queued:
            return False
        if idempotent:
            retrying = self.queued[0].attempts > 0 or any(each.attempts for each in self.in_flight)
            alone = retrying or not self.acknowledged
            return not self.in_flight if alone else len(self.in_flight) < MOST_IN_FLIGHT
        return not (in_order and self.in_flight)

    def assign_sequences(self, identity: ProducerIdAndEpoch) -> bool:
        """Assign sequence numbers to the next batch; return False if it must wait.

        A retried batch keeps its epoch, or the broker could not detect a duplicate.
        """
        if self.identity != identity:
            numbered = any(each.sequence != NO_SEQUENCE for each in self.queued)
            if self.reset or not numbered:
                if self.in_flight:
                    return False
                self._begin(identity)
            elif self.queued[0].sequence == NO_SEQUENCE:
                return False
        head = self.queued[0]
        if head.sequence == NO_SEQUENCE:
            assert self.identity is not None
            head.set_producer_state(
                self.identity.producer_id, self.identity.producer_epoch, self._next_sequence
            )
            self._next_sequence = (self._next_sequence + len(head.tokens)) % SEQUENCES
        return True

    def send(self) -> Batch:
        """Remove the next batch from the queue and mark it as in flight."""
        batch = self.queued.popleft()
        batch.closed = True
        self.in_flight.append(batch)
        return batch

    def reenqueue(self, batch: Batch) -> None:
        """Return a batch to the queue, before all younger ones."""
        self.in_flight.remove(batch)
        batch.attempts += 1
        index = sum(1 for each in self.queued if each.order < batch.order)
        self.queued.insert(index, batch)

    def split(self, batch: Batch) -> int:
        """Replace a batch by its two halves, which share its sequence numbers.

        Returns how many more bytes they have.
        """
        self.in_flight.remove(batch)
        first, second = batch.split()
        if batch.sequence != NO_SEQUENCE:
            assert self.identity is not None
            producer = self.identity.producer_id, self.identity.producer_epoch
            first.set_producer_state(*producer, batch.sequence)
            second.set_producer_state(*producer, (batch.sequence + len(first.tokens)) % SEQUENCES)
        index = sum(1 for each in self.queued if each.order < batch.order)
        self.queued.insert(index, second)
        self.queued.insert(index, first)
        position = self.unresolved.index(batch)
        del self.unresolved[position]
        self.unresolved.insert(position, second)
        self.unresolved.insert(position, first)
        return first.size + second.size - batch.size

    def drop(self, batch: Batch) -> None:
        """Remove a completed batch from the queue."""
        if batch in self.queued:
            self.queued.remove(batch)

    def resolved(self) -> list[Batch]:
        """Remove and return the batches whose results can be reported."""
        resolved = []
        while self.unresolved and self.unresolved[0].done:
            resolved.append(self.unresolved.popleft())
        return resolved

    def _begin(self, identity: ProducerIdAndEpoch) -> None:
        self.identity, self.reset, self.acknowledged, self._next_sequence = (
            identity,
            False,
            False,
            0,
        )
        for batch in self.queued:
            batch.sequence = NO_SEQUENCE
