"""A segment: the batches of a range of offsets, and their indexes.

Batches are appended whole and in order of their offsets. What the indexes say can be rebuilt
from the batches, which `recover` does; it cuts the file at the first invalid batch.
"""

# over 300 lines: one class for a segment

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import WireError
from ..records import Batch
from ..records.record import NO_TIMESTAMP
from .config import LogConfig
from .disks.disk import Disk
from .epochs import LeaderEpochFileCache
from .errors import CorruptFile
from .names import INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX, file_name
from .producer_entry import CompletedTxn
from .producer_state import ProducerStateManager
from .segment_files.file_records import FileRecords, StoredBatch
from .segment_files.indexes import (
    MAX_RELATIVE_OFFSET,
    AbortedTxn,
    OffsetIndex,
    OffsetPosition,
    TimeIndex,
    TimestampOffset,
    TransactionIndex,
)


@dataclass(slots=True)
class LastAppend:
    """A batch in the file. next_offset: of the one after it."""

    offset: int
    position: int
    size: int
    next_offset: int


class LogSegment:
    """One segment. suffix: of files that are not part of the log yet."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        base_offset: int,
        config: LogConfig,
        created_ms: int,
        suffix: str = "",
    ) -> None:
        self.base_offset = base_offset
        self.folder = folder
        self.suffix = suffix
        self.created_ms = created_ms
        self._disk = disk
        self._index_interval = config.index_interval_bytes
        bound = config.segment_index_bytes
        self.path = file_name(folder, base_offset, LOG + suffix)
        self.records = FileRecords(disk, self.path)
        self.offset_index = OffsetIndex(disk, folder, base_offset, bound, suffix)
        self.time_index = TimeIndex(disk, folder, base_offset, bound, suffix)
        self.transaction_index = TransactionIndex(disk, folder, base_offset, suffix)
        self.max_timestamp = self.time_index.last
        self._since_index = 0
        self._first_timestamp: int | None = None
        self._next: dict[int, int] = {}
        """Where the batches begin that a reader reads next: their offsets -> positions."""
        self._located: OffsetPosition | None = None
        """The batch that was located last: the next one is near it."""
        self._last: LastAppend | None = None
        """What was appended last, if it was one batch: consumers wait for it."""
        self.names_changed = False
        """Whether files were created that are not durable in their directory."""

    @classmethod
    def create(
        cls,
        disk: Disk,
        folder: str,
        base_offset: int,
        config: LogConfig,
        created_ms: int,
        suffix: str = "",
    ) -> LogSegment:
        """Create the files of an empty segment; files with their names are deleted."""
        for kind in (TRANSACTION_INDEX, TIME_INDEX, INDEX, LOG):
            path = file_name(folder, base_offset, kind + suffix)
            if disk.exists(path):
                disk.delete(path)
            if kind != TRANSACTION_INDEX:
                disk.append(path, b"")
        segment = cls(disk, folder, base_offset, config, created_ms, suffix)
        segment.names_changed = True
        return segment

    @property
    def size(self) -> int:
        """The bytes of all batches."""
        return self.records.size

    # -- writing

    def accepts(self, batch_bytes: int, last_offset: int, config: LogConfig) -> bool:
        """Whether a batch fits into the segment and its indexes."""
        return (
            self.records.size + batch_bytes <= config.segment_bytes
            and self.offset_index.entries.count < self.offset_index.entries.limit
            and self.time_index.entries.count < self.time_index.entries.limit
            and last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
        )

    def waited_ms(self, now_ms: int, timestamp: int) -> int:
        """Return how long the segment is open, by timestamps if its batches have them."""
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    def append(self, data: bytes, batches: list[Batch]) -> None:
        """Append batches in one write and, each `index.interval.bytes`, their index entries."""
        position = self.records.size
        self.records.append(data)
        first = batches[0]
        if position == 0:
            self._first_timestamp = first.max_timestamp
        self._last = None
        if len(batches) == 1:
            self._last = LastAppend(first.base_offset, position, len(data), first.last_offset + 1)
        for batch in batches:
            self._index(batch, position, batch.size)
            position += batch.size

    def _index(self, batch: Batch, position: int, size: int) -> None:
        if batch.max_timestamp > self.max_timestamp.timestamp:
            self.max_timestamp = TimestampOffset(batch.max_timestamp, batch.last_offset)
        if self._since_index > self._index_interval:
            self.offset_index.append(batch.last_offset, position)
            self.time_index.maybe_append(*self.max_timestamp)
            self._since_index = 0
        self._since_index += size

    def complete(self, completed: CompletedTxn, last_stable_offset: int) -> None:
        """Add a transaction to the index, if it was aborted."""
        if completed.aborted:
            self.names_changed |= not self.transaction_index.entries.count
            self.transaction_index.append(
                AbortedTxn(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    last_stable_offset,
                )
            )

    def check_size(self) -> None:
        """Raise CorruptFile if the file has lost batches since they were appended."""
        size = self._disk.size(self.path) if self._disk.exists(self.path) else 0
        if size < self.size:
            raise CorruptFile(self.path, f"{size} bytes long, but {self.size} were written")

    def seal(self) -> None:
        """Index the largest timestamp: nothing is appended to the segment for now."""
        if self.max_timestamp.timestamp >= 0:
            self.time_index.maybe_append(*self.max_timestamp)

    def flush(self) -> None:
        """Make batches and indexes durable."""
        self._disk.fsync(self.path)
        self.offset_index.entries.flush()
        self.time_index.entries.flush()
        self.transaction_index.entries.flush()
        if self.names_changed:
            self._disk.fsync_directory(self.folder)
            self.names_changed = False

    def truncate(self, offset: int) -> int:
        """Remove the batches from the one with an offset on; return how many bytes."""
        location = self.locate(offset)
        self.offset_index.truncate(offset)
        self.time_index.truncate(offset)
        self.transaction_index.truncate(offset)
        if location is None:
            return 0
        removed = self.size - location.position
        self._cut(location.position)
        self._since_index = 0
        self.max_timestamp = self.time_index.last
        position = self.offset_index.lookup(self.max_timestamp.offset).position
        for stored in self.headers(position):
            self._latest(stored.batch)
        return removed

    def _cut(self, size: int) -> None:
        self.records.truncate(size)
        self._located = self._last = None
        self._next = {}
        if size == 0:
            self._first_timestamp = None

    def _latest(self, batch: Batch) -> None:
        if batch.max_timestamp > self.max_timestamp.timestamp:
            self.max_timestamp = TimestampOffset(batch.max_timestamp, batch.last_offset)

    # -- reading

    def headers(self, position: int = 0) -> Iterator[StoredBatch]:
        """Yield the headers of batches from a position on. Raises CorruptFile."""
        return self.records.headers(position)

    def batches(self, position: int = 0) -> Iterator[StoredBatch]:
        """Yield whole batches from a position on. Raises CorruptFile."""
        return self.records.batches(position)

    def locate(self, offset: int) -> StoredBatch | None:
        """Find the header of the first batch that ends at an offset or after it."""
        start = self.offset_index.lookup(offset).position
        near = self._located
        if near is not None and near.offset <= offset:
            start = max(start, near.position)
        for stored in self.headers(start):
            if stored.batch.last_offset >= offset:
                self._located = OffsetPosition(stored.batch.base_offset, stored.position)
                return stored
        return None

    def position_of(self, offset: int) -> int | None:
        """Return where the first batch begins that ends at an offset or after it."""
        position = self._next.get(offset)
        if position is not None and position < self.size:
            return position
        stored = self.locate(offset)
        return None if stored is None else stored.position

    def read(self, position: int, end: int, max_bytes: int, at_least_one: bool) -> bytes:
        """Read whole batches between two positions where batches begin, up to a size.

        at_least_one: read the first batch even if it is larger.
        """
        batches = self.records.read(position, end, max_bytes, at_least_one)
        if batches.data:
            following = batches.next_offsets()
            self._next = {offset: position + start for offset, start in following.items()}
        elif at_least_one and position < end:
            next(self.headers(position))  # raises CorruptFile: what begins there is damaged
        return batches.data

    def read_last(self, offset: int, max_bytes: int) -> bytes:
        """Read the batch that was appended last, if it begins at an offset.

        Nothing if it does not, is larger than `max_bytes`, or is damaged.
        """
        last = self._last
        if last is None or last.offset != offset or last.size > max_bytes:
            return b""
        data = self.records.read_one(last.position, last.size)
        if data:
            self._next = {last.next_offset: last.position + last.size}
        return data

    @property
    def next_offset(self) -> int:
        """The offset after the last batch; that of the name if there is none."""
        position = self.offset_index.lookup(self.base_offset + MAX_RELATIVE_OFFSET).position
        last = self.base_offset
        for stored in self.headers(position):
            last = stored.batch.last_offset + 1
        return last

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 for none."""
        if self._first_timestamp is None:
            first = next(self.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first.batch.max_timestamp
        return self._first_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp; if batches have none, when the file was last changed."""
        if self.max_timestamp.timestamp >= 0:
            return self.max_timestamp.timestamp
        return self._disk.modified_ms(self.path)

    # -- recovery

    def indexes_valid(self) -> bool:
        """Whether there are indexes that can be those of the segment."""
        return (
            self._disk.exists(self.offset_index.entries.path)
            and self._disk.exists(self.time_index.entries.path)
            and self.offset_index.check(self.size)
            and self.time_index.check(self.base_offset + MAX_RELATIVE_OFFSET)
            and self.transaction_index.check()
        )

    def recover(
        self, producers: ProducerStateManager, epochs: LeaderEpochFileCache, durable: int = 0
    ) -> int:
        """Read all batches, rebuild the indexes, cut what is invalid; return its bytes.

        producers: their state before the segment; it is updated, as are the leader epochs. durable:
        the offset before which batches were durable. Raises CorruptFile for an invalid one.
        """
        for index in (self.offset_index, self.time_index, self.transaction_index):
            index.entries.keep(0)
        self.max_timestamp = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self._since_index = 0
        self._first_timestamp = None
        valid, next_offset = 0, self.base_offset
        invalid = "offsets go back"
        try:
            for stored in self.batches():
                batch = stored.batch
                batch.verify()
                if not next_offset <= batch.base_offset <= batch.last_offset:
                    break
                if batch.last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
                    break
                self._index(batch, stored.position, stored.size)
                self._replay(batch, producers, epochs)
                valid, next_offset = stored.position + stored.size, batch.last_offset + 1
        except (CorruptFile, WireError) as error:
            invalid = str(error)  # a torn tail, unless it was durable
        removed = self.size - valid
        if removed and next_offset < durable:
            reason = f"damaged at byte {valid}, offset {next_offset}: {invalid}"
            raise CorruptFile(self.path, reason)
        self._cut(valid)
        for index in (self.offset_index, self.time_index):
            if not self._disk.exists(index.entries.path):
                self._disk.append(index.entries.path, b"")
        self.seal()
        return removed

    def _replay(
        self, batch: Batch, producers: ProducerStateManager, epochs: LeaderEpochFileCache
    ) -> None:
        if batch.partition_leader_epoch > epochs.latest:
            epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        completed = producers.update(batch)
        if completed is not None:
            self.complete(completed, producers.last_stable_offset(completed))
            producers.complete(completed)

    def paths(self) -> list[str]:
        """List the segment's files that exist, the batches first."""
        names = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)
        paths = [file_name(self.folder, self.base_offset, each + self.suffix) for each in names]
        return [path for path in paths if self._disk.exists(path)]
