"""What a partition remembers of idempotent producers: epochs and the last five batches of each.

Law: a batch that is there already is answered with the offset it got then; one that would leave a
hole is refused (KIP-98, KIP-360). Beyond `most` the producer that wrote longest ago is forgotten,
as Kafka forgets it after `producer.id.expiration.ms`: its next batch may have any sequence.

    sequence of the next batch == last sequence + 1, counted in 31 bits
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...protocol import ErrorCode
from ...records import Batch
from ..bounds import DEFAULT_BOUNDS
from .partition_log import Stored

REMEMBERED: Final = 5
"""Batches a producer may have in flight."""
SEQUENCES: Final = 0x80000000


class Written(NamedTuple):
    """A batch that a producer wrote. timestamp: its latest, which Kafka answers with when the batch
    comes again.
    """

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


@dataclass(slots=True)
class ProducerState:
    """One producer id in one partition."""

    producer_epoch: int
    batches: deque[Written] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


@dataclass(slots=True)
class Producers:
    """All producer ids in one partition, the one that wrote longest ago first."""

    most: int = DEFAULT_BOUNDS.producers
    _states: OrderedDict[int, ProducerState] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._states)

    def duplicate(self, batch: Batch) -> Written | None:
        """Find the batch among those its producer wrote last."""
        state = self._states.get(batch.producer_id)
        if state is None or state.producer_epoch != batch.producer_epoch:
            return None
        span = batch.base_sequence, batch.last_sequence
        for written in state.batches:
            if (written.base_sequence, written.last_sequence) == span:
                return written
        return None

    def sequence_error(self, batch: Batch) -> ErrorCode:
        """Say why a batch of an idempotent producer may not be written; NONE if it may."""
        state = self._states.get(batch.producer_id)
        if state is None:
            return ErrorCode.NONE  # all it wrote may have been deleted: any sequence will do
        if batch.producer_epoch < state.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if batch.producer_epoch > state.producer_epoch:
            first = batch.base_sequence == 0
            return ErrorCode.NONE if first else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if state.batches:
            expected = (state.batches[-1].last_sequence + 1) % SEQUENCES
            if batch.base_sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return ErrorCode.NONE

    def note(self, batch: Batch, stored: Stored) -> None:
        """Remember a batch that was written, and where."""
        state = self._states.get(batch.producer_id)
        if state is None or batch.producer_epoch != state.producer_epoch:
            state = self._states[batch.producer_id] = ProducerState(batch.producer_epoch)
            if len(self._states) > self.most:
                self._states.popitem(last=False)
        self._states.move_to_end(batch.producer_id)
        state.batches.append(
            Written(
                batch.base_sequence,
                batch.last_sequence,
                stored.base_offset,
                stored.max_timestamp,
            )
        )

    def forget_from(self, offset: int) -> None:
        """Forget batches that the log lost."""
        for producer_id, state in list(self._states.items()):
            remaining = [written for written in state.batches if written.base_offset < offset]
            if not remaining:
                del self._states[producer_id]
            else:
                state.batches = deque(remaining, maxlen=REMEMBERED)
