"""Open and aborted transactions of a log, from its batches.

A transaction is decided for consumers when its marker is below the high watermark; until then
its first offset bounds the last stable offset (KIP-98).
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from typing import NamedTuple

from ...records import Batch, ControlType, EndTxnMarker, control_record, end_txn_marker
from .replica_log import AbortedTransaction


class AbortedSpan(NamedTuple):
    """An aborted transaction: its first offset and that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class Transactions:
    """The transactions of one log."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """Producer id -> first offset, in order of the offsets."""
        self._ended: list[tuple[int, int]] = []
        """A heap: first offset and marker of transactions not known to be replicated yet."""
        self._aborted: list[AbortedSpan] = []

    def append(self, batch: Batch) -> None:
        """Note a batch that was appended."""
        if not batch.transactional:
            return
        if not batch.control:
            self._open.setdefault(batch.producer_id, batch.base_offset)
            return
        marker = _marker(batch)
        first = self._open.pop(batch.producer_id, None)
        if marker is None or first is None:
            return
        heappush(self._ended, (first, batch.last_offset))
        if not marker.committed:
            self._aborted.append(AbortedSpan(batch.producer_id, first, batch.last_offset))

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of a transaction that consumers may not see the end of yet."""
        while self._ended and self._ended[0][1] < high_watermark:
            heappop(self._ended)
        firsts = [first for first, _ in self._ended[:1]]
        firsts += [next(iter(self._open.values()))] if self._open else []
        return min(firsts, default=None)

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """List the aborted transactions with records from `start` to before `end`."""
        index = bisect_left(self._aborted, start, key=_last)
        return [
            AbortedTransaction(one.producer_id, one.first_offset)
            for one in self._aborted[index:]
            if one.first_offset < end
        ]


def _last(span: AbortedSpan) -> int:
    return span.last_offset


def _marker(batch: Batch) -> EndTxnMarker | None:
    for record in batch.records():
        control = control_record(record)
        if control.type in (ControlType.ABORT, ControlType.COMMIT):
            return end_txn_marker(control)
    return None
