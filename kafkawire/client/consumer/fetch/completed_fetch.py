"""Decodes the fetched records of one partition.

Records are returned once, in order, from the fetch offset on. Control records and records of
aborted transactions are skipped; the position moves past them.

    batch by batch ─▶ control? aborted? ─▶ records from the position on ─▶ take(max_records)
                                        └─▶ columns of several batches ──▶ take_columns(max_records)

    read_committed: the response lists aborted transactions (producer id, first offset). From that
    offset on the producer's batches are aborted, until its abort marker.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop
from itertools import islice, repeat
from typing import Final

from ....errors import WireError
from ....messages.fetch_response import AbortedTransaction
from ....records import Batch, ControlType, RecordBatches, control_record
from ..columns import FetchedColumns
from ..failures import FetchFailed
from ..offsets.partition_state import Position
from ..partitions import ConsumerRecord, TopicPartition
from .column_runs import ColumnRuns

NEW: Final = tuple.__new__
"""Makes a record in half the time of its class, which calls it from Python."""


COLUMN_BYTES: Final = 1 << 23
"""Decompressed bytes of batches that become columns together; a larger batch does by itself."""

WHOLE_BATCH_VERSION: Final = 3
"""From this version of Fetch on, a batch may exceed the limits (KIP-74)."""


def without_progress(data: bytes, offset: int, version: int) -> str:
    """Return why the records of a response do not go beyond the fetch offset; "" if they do.

    A fetch at the same offset would have the same response.
    """
    faults: list[WireError] = []
    complete = False
    for batch in RecordBatches(data).batches(faults):
        complete = True
        if batch.last_offset >= offset:
            return ""
    if faults:
        return ""  # the next poll raises them
    if complete:
        return f"a response to offset {offset} has only records before it"
    if version < WHOLE_BATCH_VERSION:
        return f"record at offset {offset} is larger than max.partition.fetch.bytes"
    return f"no complete record batch at offset {offset}, in {len(data)} bytes"


class CompletedFetch:
    """The fetched records of one partition.

    position: of the next record to return. consumed: whether all records were returned. as_columns:
    whether they are returned as columns, which does not change; None before the first.
    """

    def __init__(
        self,
        partition: TopicPartition,
        position: Position,
        data: bytes,
        aborted: list[AbortedTransaction] | None = None,
        *,
        check_crcs: bool = True,
    ) -> None:
        self.partition = partition
        self.position = position
        self._data: RecordBatches | None = RecordBatches(data, check_crcs=check_crcs)
        self._batches: deque[Batch] = deque()  # of `_data`, once the user reads them
        self._fault: WireError | None = None  # behind `_batches`
        self._skips_aborted = aborted is not None
        self._aborted_ahead = [(each.first_offset, each.producer_id) for each in aborted or ()]
        heapify(self._aborted_ahead)
        self._aborted: set[int] = set()
        self._ready: list[ConsumerRecord] = []
        self._index = 0
        self._next_position = position  # the position after all of `_ready`
        self._error: FetchFailed | None = None
        self._columns = ColumnRuns(b"")
        self.as_columns: bool | None = None
        self.consumed = False
        self._end: Position | None = None

    @property
    def end(self) -> Position | None:
        """The position after all records, once the user reads them; None if any is corrupt."""
        return self._end if self._error is None else None

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """Return up to max_records; fewer only at the end of a batch, none at the end.

        Raises FetchFailed for a corrupt batch, again with every call.
        """
        self.as_columns = False
        self._decode_next()
        if self._index == len(self._ready) and self._error is not None:
            raise self._error
        records = self._ready[self._index : self._index + max_records]
        if not records:
            return records
        self._index += len(records)
        if self._index < len(self._ready):
            self.position = Position(records[-1].offset + 1, records[-1].leader_epoch)
        else:
            self.position = self._next_position
            self._decode_next()
        return records

    def take_columns(self, max_records: int) -> FetchedColumns | None:
        """Return up to max_records as columns; fewer where columns end, None at the end.

        Raises FetchFailed for a corrupt batch, again with every call.
        """
        self.as_columns = True
        self._find_batches()
        taken: FetchedColumns | None = None
        while not self.consumed and (taken is None or not taken.rows):
            if not self._columns and self._error is None:
                self._fill_columns()
            if self._columns:
                taken = self._columns.take(self.partition, self.position, max_records)
                self.position = taken.next_position
            elif self._error is not None:
                raise self._error
            self.consumed = not (self._columns or self._batches or self._error)
        return taken if taken is not None and taken.rows else None

    def _fill_columns(self) -> None:
        """Add batches to new columns, up to COLUMN_BYTES, and those after them without records."""
        self._columns = ColumnRuns(self._batches[0].data if self._batches else b"")
        try:
            while self._batches:
                batch = self._batches[0]
                skipped = self._skips(batch)  # the same again, if the batch stays
                if not skipped and self._columns.bytes >= COLUMN_BYTES:
                    return
                self._batches.popleft()
                if batch.last_offset >= self._next_position.offset:
                    self._add_to_columns(batch, skipped)
            if self._fault is not None:
                raise self._fault
        except WireError as error:
            self._fail(error)

    def _add_to_columns(self, batch: Batch, skipped: bool) -> None:
        next_position = Position(batch.last_offset + 1, batch.partition_leader_epoch)
        if skipped:
            self._columns.skip(next_position)
        else:
            first = self._next_position.offset
            fault = self._columns.add(batch, first, next_position)
            if fault is not None:
                self._next_position = self._columns.end or self._next_position
                raise fault
        self._next_position = next_position

    def return_records(self, records: list[ConsumerRecord]) -> None:
        """Put the records that were returned last back, in their order."""
        self.as_columns = False
        self._find_batches()
        self._ready = [*records, *islice(self._ready, self._index, None)]
        self._index = 0
        self.position = Position(records[0].offset, records[0].leader_epoch)
        self.consumed = False

    def _decode_next(self) -> None:
        """Decode the next batch now, so that the next fetch does not wait for a poll."""
        while self._index == len(self._ready) and not self.consumed and self._error is None:
            self._next_batch()
            if self._index == len(self._ready):
                self.position = self._next_position

    def _next_batch(self) -> None:
        self._find_batches()
        self._ready, self._index = [], 0
        if not self._batches:
            self.consumed = self._fault is None
            if self._fault is not None:
                self._fail(self._fault)
            return
        batch = self._batches.popleft()
        try:
            if batch.last_offset >= self._next_position.offset:
                self._decode_batch(batch)
            else:
                self._skips(batch)  # an abort marker counts at every position
        except WireError as error:
            self._fail(error)

    def _find_batches(self) -> None:
        """Find all batches once, without decoding them: the next fetch begins where they end."""
        data, self._data = self._data, None
        if data is None:
            return
        try:
            for batch in data:
                self._batches.append(batch)
        except WireError as error:
            self._fault = error
            return
        self._end = self._next_position
        if self._batches and self._batches[-1].last_offset >= self._end.offset:
            last = self._batches[-1]
            self._end = Position(last.last_offset + 1, last.partition_leader_epoch)

    def _fail(self, error: WireError) -> None:
        """Raise the error once the records before it are returned."""
        reason = f"corrupt records from offset {self._next_position.offset} on: {error}"
        self._error = FetchFailed(reason, partitions=[self.partition])

    def _decode_batch(self, batch: Batch) -> None:
        """Decode a batch; the next position is after it, even if all its records are skipped."""
        next_position = Position(batch.last_offset + 1, batch.partition_leader_epoch)
        if not self._skips(batch):
            errors: list[WireError] = []
            rows = batch.rows(*self.partition, self._next_position.offset, errors)
            # without bytecode for each record
            self._ready = list(map(NEW, repeat(ConsumerRecord), rows))
            if errors:  # the records before it are returned first, as by Kafka's consumer
                if self._ready:
                    self._next_position = next_position._replace(offset=self._ready[-1].offset + 1)
                raise errors[0]
        self._next_position = next_position

    def _skips(self, batch: Batch) -> bool:
        if self._skips_aborted:
            while self._aborted_ahead and self._aborted_ahead[0][0] <= batch.last_offset:
                self._aborted.add(heappop(self._aborted_ahead)[1])
        if batch.control:
            if self._skips_aborted and batch.producer_id in self._aborted and _aborts(batch):
                self._aborted.discard(batch.producer_id)
            return True
        return self._skips_aborted and batch.transactional and batch.producer_id in self._aborted


def _aborts(batch: Batch) -> bool:
    return any(control_record(each).type == ControlType.ABORT for each in batch.records())
