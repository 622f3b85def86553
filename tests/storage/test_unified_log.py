"""A log of segments does what a list of batches does; segments roll, close, reopen."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafkawire.protocol import ErrorCode
from kafkawire.records import Batch, RecordBatches
from kafkawire.storage.config import MAX_INT64, LogConfig
from kafkawire.storage.disks.files import FileDisk
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.errors import AppendRejected, OffsetOutOfRange
from kafkawire.storage.lookup import find_offset
from kafkawire.storage.producer_entry import AppendOrigin
from kafkawire.storage.segment_files.file_records import FileRecords
from kafkawire.storage.unified_log import UnifiedLog
from tests.fuzzing import replayable, seeds

from .logs import SMALL, TIME, batch, content, filled, marker, open_log, records
from .simple_log import OffsetOutOfRange as OutOfRange
from .simple_log import PartitionLog, Stored


class Both:
    """The same operations on both logs."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.old = PartitionLog()
        self.new = open_log()
        self.epoch = 0

    def step(self) -> None:
        name = self.rng.choice(("append",) * 8 + ("truncate", "delete", "start_epoch", "reopen"))
        getattr(self, name)()
        self.compare()

    def append(self) -> None:
        offset = self.new.log_end_offset
        made = [
            (b"key", self.rng.randbytes(self.rng.randrange(60)))
            for _ in range(self.rng.randint(1, 5))
        ]
        timestamp = TIME + self.rng.randrange(1000)
        data = batch(offset, *made, epoch=self.epoch, timestamp=timestamp)
        read = Batch(data, 0, len(data))
        self.old.append(Stored(offset, read.last_offset, read.max_timestamp, data), self.epoch)
        self.new.append(data, TIME)

    def truncate(self) -> None:
        start, end = self.old.log_start_offset, self.old.log_end_offset
        offset = self.rng.randint(max(start, end - self.rng.choice((5, 50))), end)
        self.old.truncate(offset)
        self.new.truncate(offset, TIME)

    def delete(self) -> None:
        offset = self.rng.randint(self.old.log_start_offset, self.old.log_end_offset)
        if self.rng.random() < 0.3:
            self.old.delete_before(offset)
            self.new.delete_before(offset)

    def start_epoch(self) -> None:
        self.epoch += 1

    def reopen(self) -> None:
        start = self.new.log_start_offset
        self.new.close(TIME)
        self.new = open_log(self.new.disk, log_start_offset=start, clean_shutdown=True)

    def compare(self) -> None:
        old, new = self.old, self.new
        assert (new.log_start_offset, new.log_end_offset) == (
            old.log_start_offset,
            old.log_end_offset,
        )
        assert content(new) == b"".join(each.data for each in old)
        self.new.update_high_watermark(old.high_watermark)
        assert [tuple(each) for each in new.epochs.entries] == [tuple(each) for each in old.epochs]
        self.compare_reads()
        for timestamp in (-1, -2, -3, -4, TIME + self.rng.randrange(1100)):
            found = old.find(timestamp)
            assert find_offset(new, timestamp) == (None if found is None else tuple(found))
        for epoch in range(self.epoch + 2):
            latest = old.epochs[-1].epoch if old.epochs else -1
            assert tuple(new.end_of_epoch(epoch)) == tuple(old.end_of_epoch(epoch, latest))

    def compare_reads(self) -> None:
        old, new = self.old, self.new
        for _ in range(3):
            offset = self.rng.randint(old.log_start_offset - 1, old.log_end_offset + 1)
            size, least = self.rng.choice((0, 1, 300, 900, 1 << 20)), self.rng.random() < 0.5
            try:
                expected = b"".join(old.read(offset, size, least))
            except OutOfRange:
                with pytest.raises(OffsetOutOfRange):
                    new.read(offset, size, least)
                continue
            assert b"".join(new.read(offset, size, least)) == expected
            assert new.bytes_from(offset) == old.bytes_from(offset)
            assert new.epochs.epoch_of(offset) == old.epoch_of(offset)


@pytest.mark.fuzz
def test_it_does_what_the_log_in_memory_does() -> None:
    largest = 0
    for seed in seeds(15):
        with replayable(seed):
            both = Both(random.Random(seed))
            for _ in range(60):
                both.step()
            largest = max(largest, both.new.log_end_offset)
    assert largest > 100


def test_segments_roll_by_bytes() -> None:
    log = filled(open_log())
    assert len(log.segments) > 3
    assert all(segment.size <= SMALL.segment_bytes for segment in log.segments)
    assert log.recovery_point == log.segments.active.base_offset


def test_segments_roll_by_time() -> None:
    log = open_log(config=replace(SMALL, segment_ms=1000))
    for timestamp, count in ((0, 1), (1000, 1), (1001, 2), (1500, 2)):
        log.append(batch(log.log_end_offset, timestamp=TIME + timestamp), TIME)
        assert len(log.segments) == count, timestamp


def test_segments_roll_by_time_without_timestamps() -> None:
    log = open_log(config=replace(SMALL, segment_ms=1000))
    for now_ms, count in ((0, 1), (1000, 1), (1001, 2)):
        log.append(batch(log.log_end_offset, timestamp=-1), TIME + now_ms)
        assert len(log.segments) == count, now_ms


def test_segments_roll_when_an_index_is_full() -> None:
    config = LogConfig(index_interval_bytes=0, segment_index_bytes=12 * 6)
    log = filled(open_log(config=config))
    assert len(log.segments) > 4
    assert all(each.offset_index.entries.count <= 9 for each in log.segments)
    assert all(each.time_index.entries.count <= 6 for each in log.segments)


def test_segments_roll_before_an_offset_that_the_index_cannot_hold() -> None:
    log = filled(open_log(), 1)
    far = 1 << 31
    log.append(batch(far), TIME, AppendOrigin.REPLICATION)
    assert log.segments.base_offsets == [0, far]
    again = open_log(log.disk)
    assert (again.log_end_offset, content(again)) == (far + 1, content(log))


def test_flush_by_messages() -> None:
    log = filled(open_log(config=LogConfig(flush_messages=5)), 2, size=3)
    assert log.recovery_point == 6
    assert filled(log, 1, size=3).recovery_point == 6
    assert log.is_dirty


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (batch(3)[:-1], ErrorCode.CORRUPT_MESSAGE),
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (batch(2), ErrorCode.INVALID_RECORD),
        (batch(3) + batch(3), ErrorCode.INVALID_RECORD),
        (batch(3, (b"k", bytes(1000))), ErrorCode.RECORD_LIST_TOO_LARGE),
        (batch(3)[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_what_is_not_appended(data: bytes, error: ErrorCode) -> None:
    log = filled(open_log(), 1)
    before = content(log)
    with pytest.raises(AppendRejected) as found:
        log.append(data, TIME, AppendOrigin.REPLICATION)
    assert found.value.error is error
    assert (content(log), log.log_end_offset) == (before, 3)


def producer(offset: int, sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    rows = [(b"k", b"v")] * count
    return batch(offset, *rows, producer_id=9, producer_epoch=epoch, base_sequence=sequence)


def test_sequences_of_producers() -> None:
    log = open_log()
    log.append(producer(0, 0, 3), TIME)
    log.append(producer(3, 3), TIME)
    again = log.append(producer(4, 0, 3), TIME)
    assert again.duplicate is not None
    assert (again.first_offset, log.log_end_offset) == (0, 4)
    for sequence, epoch, error in (
        (5, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (4, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ):
        with pytest.raises(AppendRejected) as found:
            log.append(producer(4, sequence, epoch=epoch), TIME)
        assert found.value.error is error
    log.append(producer(4, 0, epoch=1), TIME)
    with pytest.raises(AppendRejected) as found:
        log.append(producer(5, 4), TIME)
    assert found.value.error is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_survive_restarts_and_truncation() -> None:
    log = open_log()
    for n in range(20):
        log.append(producer(n, n), TIME)
    for clean in (True, False):
        log.close(TIME)
        log = open_log(log.disk, clean_shutdown=clean)
        assert log.append(producer(20, 19), TIME).duplicate is not None
    log.truncate(10, TIME)
    with pytest.raises(AppendRejected):
        log.append(producer(10, 11), TIME)
    log.append(producer(10, 10), TIME)


def test_there_are_only_so_many_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that wrote longest ago is forgotten, but none that is in a transaction."""
    log = open_log()
    monkeypatch.setattr(log.producers, "most", 3)
    transaction(log, 1)
    for producer_id in (2, 3, 4, 2, 5):
        log.append(of_producer(log, producer_id), TIME)
    assert set(log.producers.producers) == {1, 4, 2, 5}
    end(log, 1, committed=True)
    for producer_id in (6, 7):
        log.append(of_producer(log, producer_id), TIME)
    assert set(log.producers.producers) == {1, 6, 7}


def of_producer(log: UnifiedLog, producer_id: int) -> bytes:
    """Build the next batch of a producer."""
    entry = log.producers.producers.get(producer_id)
    sequence = 0 if entry is None or not entry.batches else entry.batches[-1].last_sequence + 1
    offset = log.log_end_offset
    return batch(offset, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


def transaction(log: UnifiedLog, producer_id: int) -> None:
    known = log.producers.producers.get(producer_id)
    sequence = 0 if known is None or not known.batches else known.batches[-1].last_sequence + 1
    data = batch(
        log.log_end_offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    log.append(data, TIME)


def end(log: UnifiedLog, producer_id: int, committed: bool) -> None:
    log.append(marker(log.log_end_offset, committed, producer_id), TIME, AppendOrigin.COORDINATOR)


def test_transactions() -> None:
    log = open_log()
    for producer_id in (1, 2):
        transaction(log, producer_id)
    log.update_high_watermark(MAX_INT64)
    assert log.last_stable_offset == 0
    end(log, 2, committed=False)
    assert log.update_high_watermark(MAX_INT64) == 3
    assert log.last_stable_offset == 0
    end(log, 1, committed=True)
    assert log.last_stable_offset == 0  # the marker is not below the high watermark
    log.update_high_watermark(MAX_INT64)
    assert log.last_stable_offset == 4
    assert [tuple(each) for each in log.aborted_transactions(0, 4)] == [(2, 1, 2, 0)]
    assert log.aborted_transactions(0, 1) == log.aborted_transactions(3, 4) == []
    transaction(log, 3)
    plain = batch(log.log_end_offset, producer_id=3, producer_epoch=0, base_sequence=1)
    with pytest.raises(AppendRejected) as found:
        log.append(plain, TIME)
    assert found.value.error is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_restarts(clean: bool) -> None:
    log = open_log()
    for n in range(12):
        transaction(log, n % 3)
        if n % 4 == 3:
            end(log, n % 3, committed=n % 8 == 3)
    log.update_high_watermark(MAX_INT64)
    stable, aborted = log.last_stable_offset, log.aborted_transactions(0, MAX_INT64)
    assert aborted
    assert 0 < stable < log.log_end_offset or len(log.segments) > 1
    log.close(TIME)
    again = open_log(log.disk, clean_shutdown=clean)
    again.update_high_watermark(MAX_INT64)
    assert again.last_stable_offset == stable
    assert again.aborted_transactions(0, MAX_INT64) == aborted


def test_a_flush_writes_no_index_that_has_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(open_log(config=LogConfig()), 1)
    log.flush(TIME)
    flushed: list[str] = []
    monkeypatch.setattr(MemoryDisk, "fsync", lambda _, path: flushed.append(path))
    filled(log, 1)
    log.flush(TIME)
    assert [each.endswith(".log") for each in flushed] == [True]
    filled(log, 100)  # some of these batches have entries
    log.flush(TIME)
    assert any(each.endswith(".index") for each in flushed)


def test_reads_end_at_the_high_watermark() -> None:
    log = filled(open_log())
    for limit in (0, 1, 3, 31, 60, 90):
        data = b"".join(log.read(0, 1 << 20, at_least_one=True, up_to=limit))
        last = max((each.last_offset for each in RecordBatches(data)), default=-1)
        assert last == limit // 3 * 3 - 1


@pytest.mark.parametrize("cut", [1, 11, 2000])
def test_a_batch_in_several_parts_of_a_disk_is_read(cut: int) -> None:
    """A disk in memory has a part for each large append, with whole batches or not."""
    first, second = (batch(offset, (None, bytes(3000))) for offset in (0, 1))
    disk = MemoryDisk()
    for part in (first + second[:cut], second[cut:], first[:cut]):
        disk.append("log", part)
    file = FileRecords(disk, "log")
    read = file.read(0, file.size, file.size, at_least_one=False)
    assert read == (first + second, len(first), len(first))
    assert file.read(0, file.size, len(first) + cut, at_least_one=False).data == first
    assert file.read(len(first), file.size, 20, at_least_one=True).data == second


def counted(operations: Counter[str], operation: str, _path: str) -> float:
    operations[operation] += 1
    return 0


def test_reading_does_not_read_the_whole_log() -> None:
    counts = []
    for count in (200, 2000):
        disk = MemoryDisk()
        log = filled(open_log(disk, LogConfig(index_interval_bytes=256)), count)
        operations: Counter[str] = Counter()
        disk.fault = partial(counted, operations)
        log.read(count, 100, at_least_one=True)
        counts.append(operations["read"])
    assert counts[1] <= counts[0] + 8


def test_reading_on_begins_where_the_last_read_was(monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(open_log(config=LogConfig(index_interval_bytes=1 << 20)), 200)
    headers: Counter[int] = Counter()
    stored = FileRecords._stored

    def noted(self: FileRecords, chunk: bytes, start: int, position: int, *, whole: bool) -> Any:
        headers[position] += 1
        return stored(self, chunk, start, position, whole=whole)

    monkeypatch.setattr(FileRecords, "_stored", noted)
    for offset in range(0, 600, 3):
        [data] = log.read(offset, 1, at_least_one=True, up_to=offset + 3)
        assert [each.base_offset for each in RecordBatches(data)] == [offset]
    assert sum(headers.values()) <= 4 * 200
    log.truncate(300, TIME)
    assert b"".join(log.read(297, 1, at_least_one=True))
    assert log.read(300, 1, at_least_one=True) == []


def test_reading_on_reads_nothing_but_the_batches() -> None:
    disk = MemoryDisk()
    log = filled(open_log(disk, LogConfig(index_interval_bytes=256)), 100)
    log.read(0, 1, at_least_one=True)
    operations: Counter[str] = Counter()
    disk.fault = partial(counted, operations)
    for offset in range(3, 300, 3):
        [data] = log.read(offset, 300, at_least_one=True)
        assert next(iter(RecordBatches(data))).base_offset == offset
    assert operations["read"] == 99


def test_on_real_files(tmp_path: Path) -> None:
    disk = FileDisk(tmp_path, max_open=4)
    log = filled(open_log(disk))
    before = records(log)
    disk.close()
    again = open_log(FileDisk(tmp_path))
    assert records(again) == before
    assert again.truncated_bytes == 0
