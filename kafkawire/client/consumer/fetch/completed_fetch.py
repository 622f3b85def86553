"""What was fetched of a partition and not yet returned.

Law: records come out once, in order, from the position that was asked for; those of aborted
transactions and of brokers' own (control records) never, but the position moves over them.

    batch by batch ─▶ control? aborted? ─▶ records from the position on ─▶ take(most)

    read committed: the answer lists aborted transactions (producer id, first offset). From that
    offset on the producer's batches are aborted, until its abort marker.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop
from itertools import islice
from typing import Final

from ....errors import WireError
from ....messages.fetch_response import AbortedTransaction
from ....records import Batch, ControlType, RecordBatches, control_record
from ..failures import FetchFailed
from ..offsets.partition_state import Position
from ..partitions import ConsumerRecord, TopicPartition

EMPTY: Final[tuple[ConsumerRecord, ...]] = ()


class CompletedFetch:
    """Records of one partition that wait for the user.

    position: of the next record to come out; where the user is, when nothing else has moved it.
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
        self._batches: Iterator[Batch] = iter(RecordBatches(data, check_crcs=check_crcs))
        self._skips_aborted = aborted is not None
        self._to_come = [(each.first_offset, each.producer_id) for each in aborted or ()]
        heapify(self._to_come)
        self._aborted: set[int] = set()
        self._ready: list[ConsumerRecord] = []
        self._at = 0
        self._behind = position  # the position when all that is ready is out
        self._failure: FetchFailed | None = None
        self.done = False

    def take(self, most: int) -> list[ConsumerRecord]:
        """Take out up to so many records; fewer only where a batch ends, none at the end.

        Raises FetchFailed for what cannot be read; it is raised again with the next call.
        """
        self._look_ahead()
        if self._at == len(self._ready) and self._failure is not None:
            raise self._failure
        taken = self._ready[self._at : self._at + most]
        if not taken:
            return taken
        self._at += len(taken)
        if self._at < len(self._ready):
            self.position = Position(taken[-1].offset + 1, taken[-1].leader_epoch)
        else:
            self.position = self._behind
            self._look_ahead()
        return taken

    def give_back(self, records: list[ConsumerRecord]) -> None:
        """Take records back that were taken out last, in their order."""
        self._ready = [*records, *islice(self._ready, self._at, None)]
        self._at = 0
        self.position = Position(records[0].offset, records[0].leader_epoch)
        self.done = False

    def _look_ahead(self) -> None:
        """Find out now whether there is more, so that the next fetch need not wait for a poll."""
        while self._at == len(self._ready) and not self.done and self._failure is None:
            self._next_batch()
            if self._at == len(self._ready):
                self.position = self._behind

    def _next_batch(self) -> None:
        try:
            batch = next(self._batches, None)
            self._ready, self._at = [], 0
            if batch is None:
                self.done = True
            elif batch.last_offset >= self._behind.offset:
                self._open(batch)
            else:
                self._passes_over(batch)  # an abort marker counts wherever the position is
        except WireError as error:
            why = f"records from offset {self._behind.offset} on cannot be read: {error}"
            self._failure = FetchFailed(why, partitions=[self.partition])

    def _open(self, batch: Batch) -> None:
        """Decode a batch; what comes next is behind it, even if it has no records for us."""
        behind = Position(batch.last_offset + 1, batch.partition_leader_epoch)
        if not self._passes_over(batch):
            faults: list[WireError] = []
            first, topic, number = self._behind.offset, *self.partition
            kind, epoch = batch.timestamp_type, batch.partition_leader_epoch
            self._ready = [
                ConsumerRecord(
                    topic, number, r.offset, r.timestamp, r.key, r.value, r.headers, kind, epoch
                )
                for r in batch.records(faults=faults)
                if r.offset >= first
            ]
            if faults:  # the records before it come out first, as those of Kafka's consumer do
                if self._ready:
                    self._behind = behind._replace(offset=self._ready[-1].offset + 1)
                raise faults[0]
        self._behind = behind

    def _passes_over(self, batch: Batch) -> bool:
        if self._skips_aborted:
            while self._to_come and self._to_come[0][0] <= batch.last_offset:
                self._aborted.add(heappop(self._to_come)[1])
        if batch.control:
            if self._skips_aborted and batch.producer_id in self._aborted and _aborts(batch):
                self._aborted.discard(batch.producer_id)
            return True
        return self._skips_aborted and batch.transactional and batch.producer_id in self._aborted


def _aborts(batch: Batch) -> bool:
    return any(control_record(each).type == ControlType.ABORT for each in batch.records())
