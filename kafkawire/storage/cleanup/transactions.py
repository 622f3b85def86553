"""Follows transactions while a log is compacted: which batches were aborted, which markers remain.

Batches and markers come in the order of the log. A marker may go when no batch of its
transaction is left; an aborted transaction stays in the transaction index while one is.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from ...records import Batch, ControlType, control_record
from ..segment_files.indexes import AbortedTxn, TransactionIndex


class CleanedTransactions:
    """The transactions of the batches read so far."""

    def __init__(self) -> None:
        self.index: TransactionIndex | None = None
        """Where aborted transactions of which batches remain are written."""
        self._coming: list[tuple[int, AbortedTxn]] = []
        self._aborted: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()
        """Producers of whose aborted transaction a batch was read."""
        self._committed: set[int] = set()

    def add(self, aborted: Iterable[AbortedTxn]) -> None:
        """Add aborted transactions of the segment that is read next."""
        for each in aborted:
            heappush(self._coming, (each.first_offset, each))

    def can_discard(self, batch: Batch) -> bool:
        """Read the next batch; return whether it was aborted, or is a marker without batches."""
        while self._coming and self._coming[0][0] <= batch.last_offset:
            aborted = heappop(self._coming)[1]
            self._aborted.setdefault(aborted.producer_id, aborted)
        if batch.control:
            return self._marker(batch)
        if not batch.transactional:
            return False
        if batch.producer_id in self._aborted:
            self._seen.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def _marker(self, batch: Batch) -> bool:
        records = batch.records()
        if not records:
            return True
        kind = control_record(records[0]).type
        producer_id = batch.producer_id
        if kind == ControlType.ABORT:
            aborted = self._aborted.pop(producer_id, None)
            if aborted is None or producer_id not in self._seen:
                return True
            self._seen.discard(producer_id)
            if self.index is not None:
                self.index.append(aborted)
            return False
        if kind == ControlType.COMMIT:
            had_batches = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_batches
        return False
