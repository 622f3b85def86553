"""Simulates a broker's log directory that crashes at any operation, and checks what is recovered.

Everything follows from the seed: operations, what a crash loses, where it happens. `trace`
has a line per step; two runs of a seed give the same lines.

    step: append, flush, roll, truncate, delete records, compact, advance, restart
    crash: during a step, or between two; a full disk; a killed process; then recover, and compare
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kafkawire.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from kafkawire.records import Batch, Record, RecordBatches
from kafkawire.storage.cleanup.cleaner_manager import compact, log_to_clean
from kafkawire.storage.config import LogConfig, LogManagerConfig
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.errors import KafkaStorageError
from kafkawire.storage.log_manager import LogManager
from kafkawire.storage.lookup import find_offset
from kafkawire.storage.producer_entry import AppendOrigin, ProducerStateEntry, marker_of
from kafkawire.storage.segment import LogSegment
from kafkawire.storage.unified_log import UnifiedLog
from tests.fuzzing import replayable

from .logs import ORDERS, TIME, batch, content, marker
from .managers import uuids

CONFIG: Final = LogConfig(
    segment_bytes=600,
    index_interval_bytes=90,
    retention_ms=-1,
    file_delete_delay_ms=50,
    delete_retention_ms=100,
    cleanup_policy=frozenset({"compact"}),
    min_cleanable_dirty_ratio=2.0,  # only when the simulation asks for it
)
PRODUCERS: Final = 3
STEPS: Final = {
    "append": 60,
    "flush": 6,
    "roll": 3,
    "truncate": 5,
    "delete_records": 2,
    "compact": 4,
    "advance": 5,
    "restart": 2,
    "crash": 6,
}


class PowerFailure(OSError):
    """The machine stops at this operation."""


class Written(NamedTuple):
    """A batch that was appended."""

    first: int
    last: int
    data: bytes


class Simulation:
    """One log on disks in memory, and the model of it."""

    directories: tuple[str, ...] = ("a",)
    uninterrupted: tuple[str, ...] = ("crash",)
    """Steps that crash themselves."""

    def __init__(self, seed: int, steps: dict[str, int] | None = None) -> None:
        self.rng = random.Random(seed)
        self.steps = STEPS if steps is None else steps
        self.disks = {name: MemoryDisk() for name in self.directories}
        self.now_ms = TIME
        self.epoch = 0
        self.trace: list[str] = []
        self.written: list[Written] = []
        """The batches of the log, before compaction."""
        self.durable = 0
        """What is before this offset must survive."""
        self.gone_to = self.deleted_to = 0
        """The log start offset that is durable, and that to which it may have moved."""
        self.compacted = False
        self.aborted: set[int] = set()
        """Offsets of aborted records that compaction may have removed."""
        self.crashes = 0
        self.cutting = False
        """Whether a crash interrupted a truncation."""
        self.logs = self.manager()
        self.open()

    def manager(self) -> LogManager:
        config = LogManagerConfig("cluster", 1, CONFIG, cleaner_backoff_ms=1 << 60)
        return LogManager(self.disks, config, uuids())

    def open(self) -> None:
        self.logs = self.manager()
        self.logs.start(self.now_ms)
        self.logs.get_or_create(ORDERS, self.now_ms)

    @property
    def log(self) -> UnifiedLog:
        found = self.logs.log(ORDERS)
        assert found is not None
        return found

    def run(self, count: int = 120) -> None:
        """Take steps, about one in ten of which is interrupted by a crash."""
        for _ in range(count):
            name = self.rng.choices(list(self.steps), list(self.steps.values()))[0]
            step: Callable[[], None] = getattr(self, name)
            if name not in self.uninterrupted and self.rng.random() < 0.06:
                self.interrupted(name, step, self.rng.randrange(40))
            elif name not in self.uninterrupted and self.rng.random() < 0.02:
                self.on_a_full_disk(name, step)
            else:
                step()
                self.trace.append(f"{name}: {self.log.log_end_offset} {self.log.recovery_point}")
            if self.rng.random() < 0.1:
                self.check()
        self.crash()

    def interrupted(self, name: str, step: Callable[[], None], left: int) -> None:
        """Stop the machine at an operation of a step, and crash."""

        def fault(operation: str, path: str) -> float:
            nonlocal left
            if operation not in ("read", "size", "list"):
                left -= 1
            if left < 0:
                raise PowerFailure(errno.EIO, operation, path)
            return 0

        for disk in self.disks.values():
            disk.fault = fault
        try:
            step()
            self.trace.append(f"{name} ended")
        except Exception:
            if left >= 0:
                raise
            self.trace.append(f"{name} interrupted")
        self.crash()

    def on_a_full_disk(self, name: str, step: Callable[[], None]) -> None:
        """Let a step fill the disk, and start again: nothing is lost but what did not fit."""
        room = self.rng.randrange(400)
        for disk in self.disks.values():
            disk.capacity = disk.used + room
        try:
            step()
            self.trace.append(f"{name} fitted")
        except KafkaStorageError:
            self.trace.append(f"{name} did not fit")
            assert self.logs.offline_directories
        for disk in self.disks.values():
            disk.capacity = None
        self.crash(loses=False)

    # -- steps

    def append(self) -> None:
        log = self.log
        offset = log.log_end_offset
        kind = self.rng.random()
        if kind < 0.15:
            self.epoch += 1
        data = self.transaction(offset) if kind > 0.7 else self.plain(offset)
        read = Batch(data, 0, len(data))
        self.written.append(Written(offset, read.last_offset, data))
        log.append(data, self.now_ms, AppendOrigin.COORDINATOR)
        log.update_high_watermark(log.log_end_offset)

    def plain(self, offset: int) -> bytes:
        rows = [
            (b"key %d" % self.rng.randrange(6), self.value()) for _ in range(self.rng.randint(1, 4))
        ]
        return batch(offset, *rows, epoch=self.epoch, timestamp=self.timestamp())

    def value(self) -> bytes | None:
        return None if self.rng.random() < 0.1 else self.rng.randbytes(self.rng.randrange(30))

    def timestamp(self) -> int:
        return self.now_ms + self.rng.randint(-50, 50)

    def transaction(self, offset: int) -> bytes:
        """Build a batch or a marker of a producer."""
        producer_id = self.rng.randrange(PRODUCERS)
        entry = self.log.producers.producers.get(producer_id, ProducerStateEntry(producer_id))
        if entry.current_txn_first_offset >= 0 and self.rng.random() < 0.5:
            return marker(offset, self.rng.random() < 0.5, producer_id, self.epoch)
        last = entry.batches[-1].last_sequence if entry.batches else -1
        return batch(
            offset,
            (b"key %d" % self.rng.randrange(6), self.value()),
            epoch=self.epoch,
            timestamp=self.timestamp(),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=last + 1,
            transactional=True,
        )

    def flush(self) -> None:
        self.log.flush(self.now_ms)
        self.durable = max(self.durable, self.log.log_end_offset)

    def roll(self) -> None:
        self.log.roll(self.now_ms)
        self.durable = max(self.durable, self.log.log_end_offset)

    def truncate(self) -> None:
        end = self.log.log_end_offset
        offset = self.rng.randint(max(self.gone_to, end - self.rng.choice((8, 60))), end)
        if self.compacted:  # a log is not truncated below what is compacted: it is replicated
            offset = max(offset, self.log.segments.active.base_offset)
        kept = [each for each in self.written if each.last < offset]
        self.durable = min(self.durable, kept[-1].last + 1 if kept else 0)
        self.cutting = True
        self.logs.truncate(ORDERS, offset, self.now_ms)
        self.cutting = False
        self.written = kept
        self.aborted = {each for each in self.aborted if each < offset}

    def delete_records(self) -> None:
        offset = self.rng.randint(self.log.log_start_offset, self.log.log_end_offset)
        self.deleted_to = max(self.deleted_to, offset)
        self.logs.delete_records(ORDERS, offset)
        self.gone_to = max(self.gone_to, offset)

    def compact(self) -> None:
        self.compacted = True
        # a crash may lose the marker; the coordinator writes it again
        self.aborted |= aborted_offsets(b"".join(each.data for each in self.written))
        directory = self.logs._places[ORDERS].directory
        chosen = log_to_clean(self.log, directory.checkpoints.cleaned.get(ORDERS), self.now_ms)
        done = compact(chosen, self.now_ms, capacity=self.rng.choice((3, 1000)))
        directory.checkpoints.write_cleaned(ORDERS, done.end_offset)

    def advance(self) -> None:
        self.now_ms += self.rng.choice((20, 200, 70_000, 400_000))
        self.logs.advance(self.now_ms)

    def restart(self) -> None:
        self.logs.shutdown(self.now_ms)
        self.durable = self.log.log_end_offset
        self.open()
        assert self.log.truncated_bytes == 0
        self.log.update_high_watermark(self.log.log_end_offset)

    def crash(self, *, loses: bool = True) -> None:
        """Stop without a shutdown. loses: the machine, not only the process."""
        self.crashes += 1
        for disk in self.disks.values():
            disk.fault = None
            if loses:
                disk.crash(self.rng.randrange)
        self.open()
        log = self.log
        log.update_high_watermark(log.log_end_offset)
        self.trace.append(f"crash: {log.log_start_offset} {log.log_end_offset} {log.size}")
        self.check_prefix()
        self.check()

    # -- invariants

    def check_prefix(self) -> None:
        """What was durable is there; the log is a prefix of what was written."""
        log = self.log
        end = log.log_end_offset
        assert end >= self.durable, f"ends at {end}, durable to {self.durable}"
        assert self.gone_to <= log.log_start_offset <= self.deleted_to
        self.written = [each for each in self.written if each.last < end]
        self.aborted = {offset for offset in self.aborted if offset < end}
        if self.written and not self.cutting:
            assert end == max(self.written[-1].last + 1, log.log_start_offset)
        self.durable = end
        self.cutting = False
        self.gone_to = self.deleted_to = log.log_start_offset

    def check(self) -> None:
        """The log has the batches of the model; files and state agree with them."""
        log = self.log
        start = log.log_start_offset
        data = content(log)
        expected = [each.data for each in self.written if each.last >= start]
        if not self.compacted:
            assert data == b"".join(expected)
        self.check_records(data, b"".join(expected), start)
        self.check_epochs(log)
        self.check_producers(log)
        for segment in log.segments:
            check_indexes(log, segment, self.compacted)
        self.check_lookups(log, data)

    def check_records(self, data: bytes, expected: bytes, start: int) -> None:
        """Compaction drops records, but of each key that has a value the latest is there."""
        wanted = {each.offset: each for each in records_of(expected)}
        kept = records_of(data)
        assert [each.offset for each in kept] == sorted({each.offset for each in kept})
        for record in kept:
            assert record == wanted[record.offset], record.offset
        aborted = aborted_offsets(expected) | self.aborted
        latest = {each.key: each for each in wanted.values() if each.offset not in aborted}
        offsets = {each.offset for each in kept}
        for record in latest.values():
            if record.value is not None and record.offset >= start:
                assert record.offset in offsets, f"lost offset {record.offset}"

    def check_epochs(self, log: UnifiedLog) -> None:
        starts: dict[int, int] = {}
        for each in self.written:
            epoch = Batch(each.data, 0, len(each.data)).partition_leader_epoch
            starts.setdefault(epoch, each.first)
        for each in self.written:
            if each.first >= log.log_start_offset:
                epoch = Batch(each.data, 0, len(each.data)).partition_leader_epoch
                assert log.epochs.epoch_of(each.first) == epoch
        for entry in log.epochs.entries[1:]:
            assert starts.get(entry.epoch, entry.start_offset) == entry.start_offset

    def check_producers(self, log: UnifiedLog) -> None:
        """The state of producers is that of all batches before the log end."""
        model: dict[int, ProducerStateEntry] = {}
        for each in self.written:
            read = Batch(each.data, 0, len(each.data))
            if read.producer_id >= 0:
                model.setdefault(read.producer_id, ProducerStateEntry(read.producer_id)).update(
                    read
                )
        for producer_id, entry in model.items():
            last = entry.last_record.last_data_offset
            if last >= log.log_start_offset:
                found = log.producers.producers[producer_id]
                assert found.last_record == entry.last_record
                first = entry.current_txn_first_offset
                if first == -1 or first >= log.log_start_offset:
                    assert found.current_txn_first_offset == first

    def check_lookups(self, log: UnifiedLog, data: bytes) -> None:
        offset = self.rng.randint(log.log_start_offset, log.log_end_offset)
        ends = [each.last_offset for each in RecordBatches(data)]
        after = [each.base_offset for each in RecordBatches(data) if each.last_offset >= offset]
        read = list(RecordBatches(b"".join(log.read(offset, 300, at_least_one=True))))
        assert [each.base_offset for each in read] == after[: len(read)]
        assert bool(read) == any(each >= offset for each in ends)
        timestamp = self.timestamp()
        rows = [each for batch in RecordBatches(data) for each in batch.records()]
        rows = [each for each in rows if each.offset >= log.log_start_offset]
        first = next((each.offset for each in rows if each.timestamp >= timestamp), None)
        found = find_offset(log, timestamp)
        assert (None if found is None else found.offset) == first


def records_of(data: bytes) -> list[Record]:
    """Return the records, without those of control batches."""
    return [record for each in RecordBatches(data) if not each.control for record in each.records()]


def aborted_offsets(data: bytes) -> set[int]:
    """Return the offsets of records that were aborted."""
    pending: dict[int, set[int]] = {}
    aborted: set[int] = set()
    for each in RecordBatches(data):
        if each.control:
            done = marker_of(each)
            offsets = pending.pop(each.producer_id, set())
            if done is not None and not done.committed:
                aborted |= offsets
        elif each.transactional:
            pending.setdefault(each.producer_id, set()).update(
                record.offset for record in each.records()
            )
    return aborted


def check_indexes(log: UnifiedLog, segment: LogSegment, compacted: bool) -> None:
    """Each entry of an index is that of a batch of the segment."""
    batches = {each.position: each.batch for each in segment.batches()}
    by_last = {each.last_offset: each for each in batches.values()}
    disk = log.disk
    before = (-1, -1)
    raw = disk.read(segment.offset_index.entries.path, 0, 1 << 20)
    for relative, position in OFFSET_ENTRY.iter_unpack(raw):
        assert (relative, position) > before
        before = (relative, position)
        assert batches[position].last_offset == segment.base_offset + relative
    raw = disk.read(segment.time_index.entries.path, 0, 1 << 20)
    latest = -1
    for timestamp, relative in TIME_ENTRY.iter_unpack(raw):
        assert timestamp > latest
        latest = timestamp
        assert by_last[segment.base_offset + relative].max_timestamp == timestamp
    largest = max((each.max_timestamp for each in batches.values()), default=-1)
    assert segment.max_timestamp.timestamp == largest
    for aborted in segment.transaction_index:
        assert aborted.first_offset < aborted.last_offset < log.log_end_offset
        assert compacted or by_last[aborted.last_offset].control


def crashes(which: Sequence[int], kind: type[Simulation] = Simulation) -> int:
    """Run seeds; return the number of crashes."""
    count = 0
    for seed in which:
        with replayable(seed):
            simulation = kind(seed)
            simulation.run()
            count += simulation.crashes
    return count
