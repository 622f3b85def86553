"""The state of idempotent producers in a partition: epoch and the last five batches of each.

Law: a duplicate batch gets the offset of the first; one that would leave a gap in the sequence is
rejected (KIP-98, KIP-360). Beyond `most` the producer that wrote longest ago expires, as in Kafka
after `producer.id.expiration.ms`: its next batch may have any sequence.

    sequence of the next batch == last sequence + 1, modulo 2**31
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...protocol import ErrorCode
from ...records import Batch
from ..bounds import DEFAULT_BOUNDS
from .partition_log import Stored

BATCHES_KEPT: Final = 5
"""In-flight batches of a producer, as in Kafka."""
SEQUENCES: Final = 0x80000000


class Written(NamedTuple):
    """A batch that a producer wrote. timestamp: its maximum, returned for a duplicate."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


@dataclass(slots=True)
class ProducerState:
    """One producer id in one partition."""

    producer_epoch: int
    batches: deque[Written] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))


@dataclass(slots=True)
class Producers:
    """The producers of one partition, the one that wrote longest ago first."""

    most: int = DEFAULT_BOUNDS.producers
    _states: OrderedDict[int, ProducerState] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._states)

    def duplicate(self, batch: Batch) -> Written | None:
        """Find the batch among the last of its producer."""
        state = self._states.get(batch.producer_id)
        if state is None or state.producer_epoch != batch.producer_epoch:
            return None
        span = batch.base_sequence, batch.last_sequence
        for written in state.batches:
            if (written.base_sequence, written.last_sequence) == span:
                return written
        return None

    def sequence_error(self, batch: Batch) -> ErrorCode:
        """Return the error of a batch's epoch or sequence, or NONE."""
        state = self._states.get(batch.producer_id)
        if state is None:
            return ErrorCode.NONE  # its batches may have been deleted: any sequence is valid
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
        """Add a batch that was appended."""
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
        """Remove batches that were truncated from the log."""
        for producer_id, state in list(self._states.items()):
            remaining = [written for written in state.batches if written.base_offset < offset]
            if not remaining:
                del self._states[producer_id]
            else:
                state.batches = deque(remaining, maxlen=BATCHES_KEPT)
