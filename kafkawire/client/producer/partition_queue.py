"""All batches of one partition, in order.

Law: batches leave in the order of their records, and so do their results; while one is sent again,
none that is younger overtakes it; sequence numbers have no gap within an epoch.

    unresolved  [b1 b2 b3 b4 b5]      results are given from the left
    in flight   [b1 b2]
    queued            [b3 b4 b5]      b5 may be open
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from .batch import NO_SEQUENCE, Batch

SEQUENCES: Final = 1 << 31
"""Sequence numbers begin again at 0 behind 2147483647."""
MOST_IN_FLIGHT: Final = 5
"""Batches of a partition whose sequence numbers a broker remembers."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who numbers the records: as the broker gave it, the epoch counted on (KIP-360)."""

    producer_id: int
    producer_epoch: int


class PartitionQueue:
    """The batches of a partition.

    not_before: when the next may be sent, after one failed. reset: whether what was numbered must
    be numbered anew, under a newer identity. known: whether the broker has taken a batch under the
    identity; before, it takes any number for the first, and a second batch could overtake.
    led_anew: whether a broker has just said that another one leads.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.queued: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.unresolved: deque[Batch] = deque()
        self.not_before = 0.0
        self.identity: Identity | None = None
        self.reset = False
        self.known = False
        self.led_anew = False
        self._next_sequence = 0

    @property
    def open(self) -> Batch | None:
        """The batch that takes the next record."""
        last = self.queued[-1] if self.queued else None
        return None if last is None or last.closed else last

    def add(self, batch: Batch) -> None:
        """Begin a batch behind the others."""
        if self.queued:
            self.queued[-1].closed = True
        self.queued.append(batch)
        self.unresolved.append(batch)

    def may_send(self, idempotent: bool, in_order: bool) -> bool:
        """Say whether the next batch may leave without harm to the order.

        idempotent: the broker refuses what comes out of order, so several may be on their way;
        in_order: else one at a time; neither: nothing is sent twice, so nothing can overtake.
        """
        if not self.queued:
            return False
        if idempotent:
            again = self.queued[0].attempts > 0 or any(each.attempts for each in self.in_flight)
            alone = again or not self.known
            return not self.in_flight if alone else len(self.in_flight) < MOST_IN_FLIGHT
        return not (in_order and self.in_flight)

    def take_identity(self, identity: Identity) -> bool:
        """Number what is not numbered, under that identity where it is time for it; False: wait.

        A batch keeps the epoch it was first sent with, or the broker could not know it again.
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
            head.number_from(
                self.identity.producer_id, self.identity.producer_epoch, self._next_sequence
            )
            self._next_sequence = (self._next_sequence + len(head.tokens)) % SEQUENCES
        return True

    def send(self) -> Batch:
        """Take the next batch, for sending."""
        batch = self.queued.popleft()
        batch.closed = True
        self.in_flight.append(batch)
        return batch

    def again(self, batch: Batch) -> None:
        """Put a batch back where it was: before all that are younger."""
        self.in_flight.remove(batch)
        batch.attempts += 1
        at = sum(1 for each in self.queued if each.order < batch.order)
        self.queued.insert(at, batch)

    def split(self, batch: Batch) -> int:
        """Put the two halves of a batch in its place; their sequence numbers are its own.
        Give by how many bytes that is more.
        """
        self.in_flight.remove(batch)
        first, second = batch.split()
        if batch.sequence != NO_SEQUENCE:
            assert self.identity is not None
            who = self.identity.producer_id, self.identity.producer_epoch
            first.number_from(*who, batch.sequence)
            second.number_from(*who, (batch.sequence + len(first.tokens)) % SEQUENCES)
        at = sum(1 for each in self.queued if each.order < batch.order)
        self.queued.insert(at, second)
        self.queued.insert(at, first)
        place = self.unresolved.index(batch)
        del self.unresolved[place]
        self.unresolved.insert(place, second)
        self.unresolved.insert(place, first)
        return first.size + second.size - batch.size

    def drop(self, batch: Batch) -> None:
        """Send a batch no more: it has its result."""
        if batch in self.queued:
            self.queued.remove(batch)

    def resolved(self) -> list[Batch]:
        """Take the batches whose results can be given."""
        found = []
        while self.unresolved and self.unresolved[0].done:
            found.append(self.unresolved.popleft())
        return found

    def _begin(self, identity: Identity) -> None:
        self.identity, self.reset, self.known, self._next_sequence = identity, False, False, 0
        for batch in self.queued:
            batch.sequence = NO_SEQUENCE
