"""The state of one producer in a partition, and the rules for its next batch.

Rules are checked before an append and never when a log is read back or replicated: what is
in the log was accepted.

    epoch not older │ sequence follows the last │ within a transaction only transactional batches
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from ..errors import DecodeError
from ..log import ProducerState
from ..protocol import ErrorCode
from ..records import Batch, ControlType, EndTxnMarker, control_record, end_txn_marker
from .errors import AppendRejected

NONE: Final = -1
BATCHES_KEPT: Final = 5
"""In-flight batches of a producer, which may come twice."""
SEQUENCES: Final = 0x80000000


class AppendOrigin(Enum):
    """Where an append comes from: what is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class BatchMetadata(NamedTuple):
    """A batch of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % SEQUENCES


class CompletedTxn(NamedTuple):
    """A transaction that ended. last_offset: of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class LastRecord(NamedTuple):
    """The last data of a producer: its offset, -1 for none, and the epoch."""

    last_data_offset: int
    producer_epoch: int


@dataclass(slots=True)
class ProducerStateEntry:
    """The state of one producer."""

    producer_id: int
    producer_epoch: int = NONE
    coordinator_epoch: int = NONE
    last_timestamp: int = NONE
    current_txn_first_offset: int = NONE
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))

    @property
    def is_in_transaction(self) -> bool:
        """Whether it has a transaction without a marker here."""
        return self.current_txn_first_offset != NONE

    @property
    def last_record(self) -> LastRecord:
        return LastRecord(
            self.batches[-1].last_offset if self.batches else NONE, self.producer_epoch
        )

    def find_duplicate(self, batch: Batch) -> BatchMetadata | None:
        """Find the batch among the last ones."""
        if batch.producer_epoch != self.producer_epoch or batch.base_sequence < 0:
            return None
        wanted = batch.base_sequence, batch.last_sequence
        for each in self.batches:
            if (each.base_sequence, each.last_sequence) == wanted:
                return each
        return None

    def check(self, batch: Batch, origin: AppendOrigin) -> None:
        """Raise AppendRejected if the batch may not be appended next."""
        if origin is AppendOrigin.REPLICATION:
            return
        if batch.producer_epoch < self.producer_epoch:
            self._reject(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {batch.producer_epoch}, the last was {self.producer_epoch}",
            )
        if batch.control:
            marker = marker_of(batch)
            if marker is not None and marker.coordinator_epoch < self.coordinator_epoch:
                self._reject(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"coordinator epoch {marker.coordinator_epoch}, "
                    f"the last was {self.coordinator_epoch}",
                )
            return
        if self.current_txn_first_offset != NONE and not batch.transactional:
            self._reject(ErrorCode.INVALID_TXN_STATE, "a transaction is ongoing")
        if origin is AppendOrigin.CLIENT:
            self._check_sequence(batch)

    def _check_sequence(self, batch: Batch) -> None:
        if self.producer_epoch == NONE:
            return  # unknown, perhaps because its batches were deleted: any sequence is valid
        if batch.producer_epoch != self.producer_epoch:
            expected = 0
        else:
            last = self.batches[-1].last_sequence if self.batches else NONE
            expected = (last + 1) % SEQUENCES
        if batch.base_sequence != expected:
            self._reject(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"sequence {batch.base_sequence}, expected {expected}",
            )

    def _reject(self, error: ErrorCode, reason: str) -> None:
        raise AppendRejected(error, f"producer {self.producer_id}: {reason}")

    def update(self, batch: Batch) -> CompletedTxn | None:
        """Add a batch that is in the log; return the transaction that it ends."""
        if batch.control:
            return self._end_transaction(batch)
        self._start_epoch(batch.producer_epoch)
        self.last_timestamp = batch.max_timestamp
        first = batch.base_offset
        last = batch.last_offset
        self.batches.append(
            BatchMetadata(batch.last_sequence, last, last - first, batch.max_timestamp)
        )
        if batch.transactional and self.current_txn_first_offset == NONE:
            self.current_txn_first_offset = first
        return None

    def _end_transaction(self, batch: Batch) -> CompletedTxn | None:
        marker = marker_of(batch)
        if marker is None:
            return None
        self._start_epoch(batch.producer_epoch)
        first = self.current_txn_first_offset
        self.current_txn_first_offset = NONE
        self.coordinator_epoch = max(self.coordinator_epoch, marker.coordinator_epoch)
        self.last_timestamp = batch.max_timestamp
        if first == NONE:
            return None
        return CompletedTxn(self.producer_id, first, batch.base_offset, not marker.committed)

    def _start_epoch(self, epoch: int) -> None:
        if epoch != self.producer_epoch:
            self.producer_epoch = epoch
            self.batches.clear()

    def row(self, number: int) -> ProducerState:
        """Return the entry for a snapshot."""
        last = self.batches[-1] if self.batches else BatchMetadata(NONE, NONE, 0, NONE)
        return ProducerState(
            number,
            self.producer_id,
            self.producer_epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.current_txn_first_offset,
        )

    @classmethod
    def of(cls, row: ProducerState) -> ProducerStateEntry:
        """Make the entry of a snapshot's row; earlier batches are not in snapshots."""
        batches: Iterable[BatchMetadata] = ()
        if row.last_offset >= 0:
            batches = [
                BatchMetadata(row.last_sequence, row.last_offset, row.offset_delta, row.timestamp)
            ]
        return cls(
            row.producer_id,
            row.epoch,
            row.coordinator_epoch,
            row.timestamp,
            row.current_txn_first_offset,
            deque(batches, maxlen=BATCHES_KEPT),
        )


def marker_of(batch: Batch) -> EndTxnMarker | None:
    """Read the marker in a control batch; None for other control records, or if it is empty."""
    records = batch.records()
    if not records:
        return None  # compaction removed the marker and all of its transaction
    control = control_record(records[0])
    if control.type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    try:
        return end_txn_marker(control)
    except DecodeError:
        return None
