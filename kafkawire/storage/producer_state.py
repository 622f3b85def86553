"""The producers of a partition: their state, ongoing transactions, and snapshots of both.

The state is that of all batches before `map_end_offset`. A snapshot is named by that offset;
one that is corrupt, or beyond the log, is deleted, and an earlier one takes its place. There are
at most MAX_PRODUCERS: the one that wrote longest ago is forgotten, as Kafka forgets it after
`producer.id.expiration.ms`, and its next batch may have any sequence.

    ongoing:      transactions without a marker
    unreplicated: transactions whose marker is not below the high watermark
    first unstable offset = the smallest first offset of both
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable

from ..records import Batch
from .config import MAX_PRODUCERS
from .disks.disk import Disk
from .errors import CorruptFile
from .formats import read_snapshot, write_snapshot
from .names import SNAPSHOT, file_name, numbered
from .producer_entry import NONE, AppendOrigin, BatchMetadata, CompletedTxn, LastRecord
from .producer_entry import ProducerStateEntry as Entry


class ProducerStateManager:
    """The producers of a partition, the one that wrote longest ago first. most: how many at most.

    Those with an ongoing transaction do not count.
    """

    def __init__(self, disk: Disk, folder: str, most: int = MAX_PRODUCERS) -> None:
        self.most = most
        self.folder = folder
        self._disk = disk
        self.producers: dict[int, Entry] = {}
        self.map_end_offset = 0
        self._ongoing: dict[int, int] = {}
        """First offset of an ongoing transaction -> producer id, in the order of the log."""
        self._unreplicated: dict[int, int] = {}
        """First offset of a transaction -> offset of its marker."""
        self.snapshots: list[int] = sorted(
            offset.offset
            for offset in map(numbered, disk.list(folder))
            if offset is not None and offset.suffix == SNAPSHOT and not offset.state
        )

    # -- batches

    def find_duplicate(self, batch: Batch) -> BatchMetadata | None:
        """Find a batch of a client among the last of its producer."""
        entry = self.producers.get(batch.producer_id)
        return None if entry is None else entry.find_duplicate(batch)

    def check(self, batch: Batch, origin: AppendOrigin) -> None:
        """Raise AppendRejected if a producer may not write this batch next."""
        entry = self.producers.get(batch.producer_id)
        (Entry(batch.producer_id) if entry is None else entry).check(batch, origin)

    def update(self, batch: Batch) -> CompletedTxn | None:
        """Add a batch of the log; return the transaction that it ends.

        The transaction is ongoing until `complete`: `last_stable_offset` needs it.
        """
        self.map_end_offset = batch.last_offset + 1
        if batch.producer_id < 0:
            return None
        entry = self.producers.pop(batch.producer_id, None) or Entry(batch.producer_id)
        self.producers[batch.producer_id] = entry
        for _ in range(len(self.producers) - self.most - len(self._ongoing)):
            self._forget_oldest()
        before = entry.current_txn_first_offset
        completed = entry.update(batch)
        if before == NONE and entry.current_txn_first_offset != NONE:
            self._ongoing[entry.current_txn_first_offset] = batch.producer_id
        return completed

    def _forget_oldest(self) -> None:
        """Forget the producer that wrote longest ago; those in a transaction go to the end."""
        for _ in range(len(self._ongoing) + 1):
            producer_id = next(iter(self.producers))
            entry = self.producers.pop(producer_id)
            if entry.current_txn_first_offset == NONE:
                return
            self.producers[producer_id] = entry

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """Return the last stable offset once this transaction is complete."""
        for first, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first
        return completed.last_offset + 1

    def complete(self, completed: CompletedTxn) -> None:
        """End a transaction; it stays unstable until its marker is replicated."""
        self._ongoing.pop(completed.first_offset, None)
        self._unreplicated[completed.first_offset] = completed.last_offset

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget completed transactions whose markers are replicated."""
        if not self._unreplicated:
            return
        done = [first for first, last in self._unreplicated.items() if last < high_watermark]
        for first in done:
            del self._unreplicated[first]

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of a transaction that is ongoing or not replicated."""
        if not self._ongoing and not self._unreplicated:
            return None
        first = next(iter(self._ongoing), None)  # the oldest, they begin in order
        unreplicated = min(self._unreplicated, default=None)
        offsets = [each for each in (first, unreplicated) if each is not None]
        return min(offsets, default=None)

    @property
    def last_records(self) -> dict[int, LastRecord]:
        """The last data of each producer, which compaction must leave a trace of."""
        return {key: entry.last_record for key, entry in self.producers.items()}

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that wrote nothing for so long and have no transaction."""
        self.producers = {
            key: entry
            for key, entry in self.producers.items()
            if entry.current_txn_first_offset != NONE
            or now_ms - entry.last_timestamp < expiration_ms
        }

    def adopt(self, other: ProducerStateManager) -> None:
        """Replace the state by that of the same batches in another directory.

        It may know more than the batches: compaction removes some.
        """
        self.producers = dict(other.producers)
        self._ongoing = dict(other._ongoing)
        self._unreplicated = dict(other._unreplicated)
        if self.map_end_offset in self.snapshots:
            self._delete(self.map_end_offset)

    # -- snapshots

    def take_snapshot(self) -> None:
        """Write the state at `map_end_offset`, unless there is a snapshot of it."""
        offset = self.map_end_offset
        if offset in self.snapshots:
            return
        rows = [entry.row(n) for n, entry in enumerate(self.producers.values())]
        write_snapshot(self._disk, self._path(offset), rows)
        insort(self.snapshots, offset)

    def load(self, log_start_offset: int, log_end_offset: int) -> None:
        """Replace the state by that of the latest snapshot in a range of offsets.

        Without a snapshot, the state is empty and begins at `log_start_offset`.
        """
        self._clear(log_start_offset)
        for offset in self.snapshots[::-1]:
            if not log_start_offset < offset <= log_end_offset:
                continue
            try:
                rows = read_snapshot(self._disk, self._path(offset))
            except CorruptFile:
                self._delete(offset)
                continue
            self.producers = {row.producer_id: Entry.of(row) for row in rows}
            firsts = (
                (entry.current_txn_first_offset, key)
                for key, entry in self.producers.items()
                if entry.current_txn_first_offset != NONE
            )
            self._ongoing = dict(sorted(firsts))
            self.map_end_offset = offset
            return

    def delete_outside(self, log_start_offset: int, log_end_offset: int) -> None:
        """Delete snapshots that are not of this range of offsets."""
        for offset in list(self.snapshots):
            if not log_start_offset < offset <= log_end_offset:
                self._delete(offset)

    def truncate_fully(self, offset: int) -> None:
        """Forget everything; the log starts at an offset."""
        self._clear(offset)
        for each in list(self.snapshots):
            self._delete(each)

    def delete_snapshots(self, offsets: Iterable[int]) -> None:
        """Delete the snapshots at the base offsets of deleted segments."""
        for offset in offsets:
            if offset in self.snapshots:
                self._delete(offset)

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Delete snapshots that belong to no segment; the latest may be that of a shutdown."""
        segments = set(base_offsets)
        for offset in self.snapshots[:-1]:
            if offset not in segments:
                self._delete(offset)

    def _clear(self, offset: int) -> None:
        self.producers = {}
        self._ongoing = {}
        self._unreplicated = {}
        self.map_end_offset = offset

    def _delete(self, offset: int) -> None:
        self.snapshots.remove(offset)
        if self._disk.exists(self._path(offset)):
            self._disk.delete(self._path(offset))

    def _path(self, offset: int) -> str:
        return file_name(self.folder, offset, SNAPSHOT)
