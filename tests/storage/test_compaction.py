"""Compaction: latest values, tombstones, transactions, producers, what is due, restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkawire.records import Compression, MessageSetBuilder, RecordBatches
from kafkawire.storage.cleanup.cleaner import clean
from kafkawire.storage.cleanup.cleaner_manager import compact, filthiest, log_to_clean
from kafkawire.storage.config import MAX_INT64
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.unified_log import UnifiedLog

from .logs import ORDERS, SMALL, TIME, batch, content, open_log, records
from .managers import started
from .test_unified_log import end

COMPACT = replace(SMALL, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)
LATER = TIME + 1000
RETAINED_UNTIL = LATER + COMPACT.delete_retention_ms


def keyed(log: UnifiedLog, *pairs: tuple[bytes, bytes | None], **options: object) -> None:
    data = batch(log.log_end_offset, *pairs, **options)  # type: ignore[arg-type]
    log.append(data, TIME)


def compacted(log: UnifiedLog, now_ms: int = LATER, first_dirty: int = 0) -> int:
    """Roll, and compact all that is closed."""
    log.update_high_watermark(MAX_INT64)
    if log.segments.active.size:
        log.roll(TIME)
    log.update_high_watermark(MAX_INT64)
    return compact(log_to_clean(log, first_dirty, now_ms), now_ms).end_offset


def updates(log: UnifiedLog, rounds: int = 20, compression: Compression = Compression.NONE) -> None:
    for n in range(rounds):
        pairs = [(b"key %d" % key, b"value %d" % n) for key in range(n % 4 + 1)]
        keyed(log, *pairs, compression=compression)


def latest(rows: list[tuple[int, bytes | None, bytes | None]]) -> set[object]:
    return set({key: (offset, key, value) for offset, key, value in rows}.values())


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_the_latest_value_of_each_key_stays(compression: Compression) -> None:
    log = open_log(config=COMPACT)
    updates(log, compression=compression)
    before = records(log)
    end_offset = compacted(log)
    assert end_offset == log.log_end_offset
    assert set(records(log)) == latest(before)
    compacted(log)
    assert len(log.segments) == 2  # neighbours that fit into one segment are joined
    for each in RecordBatches(content(log)):
        each.verify()
        assert each.records_count == len(each.records())
    assert records(open_log(log.disk, COMPACT)) == records(log)


def test_batches_keep_their_range() -> None:
    log = open_log(config=COMPACT)
    keyed(log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    keyed(log, (b"a", b"2"), (b"c", b"2"))
    before = [(each.base_offset, each.last_offset) for each in RecordBatches(content(log))]
    compacted(log)
    after = list(RecordBatches(content(log)))
    assert [(each.base_offset, each.last_offset) for each in after] == before
    assert [each.records_count for each in after] == [1, 2]


def test_tombstones_stay_for_delete_retention_ms() -> None:
    log = open_log(config=COMPACT)
    keyed(log, (b"a", b"1"), (b"b", b"1"))
    keyed(log, (b"a", None))
    keyed(log, (b"c", b"1"))
    compacted(log)
    assert [key for _, key, _ in records(log)] == [b"b", b"a", b"c"]
    marked = [each.delete_horizon_ms for each in RecordBatches(content(log))]
    assert marked == [None, RETAINED_UNTIL, None]
    clean(log, 0, log.segments.active.base_offset, RETAINED_UNTIL - 1)
    assert [key for _, key, _ in records(log)] == [b"b", b"a", b"c"]
    clean(log, 0, log.segments.active.base_offset, RETAINED_UNTIL)
    assert [key for _, key, _ in records(log)] == [b"b", b"c"]


def test_records_without_keys_go() -> None:
    log = open_log(config=COMPACT)
    log.append(batch(0, (None, b"x"), (b"a", b"y")), TIME)
    compacted(log)
    assert records(log) == [(1, b"a", b"y")]


def test_producers_keep_their_last_batch() -> None:
    log = open_log(config=COMPACT)
    for n, producer_id in enumerate((7, 8, 7, 8)):
        keyed(
            log,
            (b"a", b"%d" % n),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=n // 2,
        )
    keyed(log, (b"a", b"last"))
    compacted(log)
    kept = [
        (each.producer_id, each.base_sequence, each.records_count)
        for each in RecordBatches(content(log))
    ]
    assert kept == [(7, 1, 0), (8, 1, 0), (-1, -1, 1)]
    for snapshot in list(log.producers.snapshots):
        log.producers.delete_snapshots([snapshot])
    again = open_log(log.disk, COMPACT)
    assert again.producers.last_records == log.producers.last_records


def transactional(log: UnifiedLog, key: bytes, producer_id: int, sequence: int) -> None:
    keyed(
        log,
        (key, b"%d" % log.log_end_offset),
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )


def kinds(log: UnifiedLog) -> str:
    """Show batches: a letter for the key of data, ! for markers, lower case empty."""
    shown = []
    for each in RecordBatches(content(log)):
        rows = each.records()
        shown.append("!" if each.control else (rows[0].key or b"?").decode() if rows else "_")
    return "".join(shown)


def test_aborted_records_go_and_markers_stay_until_the_horizon() -> None:
    log = open_log(config=COMPACT)
    transactional(log, b"A", 1, 0)
    end(log, 1, committed=True)
    transactional(log, b"B", 1, 1)
    end(log, 1, committed=False)
    keyed(log, (b"C", b"x"))
    compacted(log)
    # the last batch of the producer stays empty; the marker of an aborted transaction too
    assert kinds(log) == "A!_!C"
    assert [each.producer_id for each in log.aborted_transactions(0, 99)] == [1]
    transactional(log, b"A", 1, 2)
    end(log, 1, committed=True)
    for _ in range(2):  # the first of these removes the last batch, the second sees that
        compacted(log)
        assert kinds(log) == "!!CA!"
    assert log.aborted_transactions(0, 99) == []
    clean(log, 0, log.segments.active.base_offset, RETAINED_UNTIL)
    assert kinds(log) == "CA!"


def test_what_is_not_stable_is_not_compacted() -> None:
    log = open_log(config=COMPACT)
    updates(log, 8)
    transactional(log, b"key 0", 1, 0)
    updates(log, 8)
    log.update_high_watermark(MAX_INT64)
    open_at = log.last_stable_offset
    assert compacted(log) <= open_at
    assert open_at in {row[0] for row in records(log)}


def test_a_small_map_compacts_in_several_rounds() -> None:
    log = open_log(config=COMPACT)
    for n in range(40):
        keyed(log, (b"key %d" % (n % 10), b"%d" % n))
    before = records(log)
    log.update_high_watermark(MAX_INT64)
    log.roll(TIME)
    log.update_high_watermark(MAX_INT64)
    dirty, rounds = 0, 0
    while dirty < log.log_end_offset:
        after = clean(log, dirty, log.segments.active.base_offset, LATER, capacity=7).end_offset
        assert after > dirty
        dirty, rounds = after, rounds + 1
    assert rounds > 1
    assert set(records(log)) == latest(before)


def test_what_is_due() -> None:
    config = replace(COMPACT, min_cleanable_dirty_ratio=0.5)
    log = open_log(config=config)
    updates(log)
    assert filthiest([log_to_clean(log, None, LATER)]) is None  # nothing is replicated
    log.update_high_watermark(MAX_INT64)
    assert filthiest([log_to_clean(log, None, LATER)]) is not None
    assert filthiest([log_to_clean(log, log.log_end_offset * 3 // 4, LATER)]) is None
    log.config = replace(config, max_compaction_lag_ms=500)
    assert filthiest([log_to_clean(log, log.log_end_offset * 3 // 4, LATER)]) is not None
    log.config = replace(config, min_compaction_lag_ms=5000)
    assert filthiest([log_to_clean(log, None, LATER)]) is None
    assert filthiest([log_to_clean(log, None, TIME + 6000)]) is not None
    log.config = replace(config, cleanup_policy=frozenset({"delete"}))
    assert filthiest([log_to_clean(log, None, LATER)]) is None


def test_the_manager_compacts_and_deletes() -> None:
    disk = MemoryDisk()
    both = replace(
        COMPACT, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10 * 60_000
    )
    logs = started({"a": disk}, both)
    log = logs.get_or_create(ORDERS, TIME)
    updates(log)
    log.update_high_watermark(MAX_INT64)
    before = log.size
    logs.advance(TIME + 15_000)
    assert log.size < before
    assert disk.exists("cleaner-offset-checkpoint")
    logs.advance(TIME + 11 * 60_000)
    assert log.size == 0


def test_compaction_is_linear() -> None:
    counts = []
    for rounds in (50, 500):
        disk = MemoryDisk()
        log = open_log(disk, replace(COMPACT, segment_bytes=1 << 20))
        updates(log, rounds)
        operations: list[str] = []

        def fault(operation: str, _path: str, seen: list[str] = operations) -> float:
            seen.append(operation)
            return 0

        disk.fault = fault
        compacted(log)
        counts.append(len(operations))
    assert counts[1] < 10 * counts[0] + 100


def test_a_batch_with_more_keys_than_the_map() -> None:
    log = open_log(config=COMPACT)
    keyed(log, *((b"key %d" % n, b"x") for n in range(9)))
    log.roll(TIME)
    assert clean(log, 0, log.segments.active.base_offset, LATER, capacity=5).end_offset == 0
    assert len(records(log)) == 9


def test_messages_of_old_formats_stay() -> None:
    log = open_log(config=COMPACT)
    for offset in range(3):
        messages = MessageSetBuilder(1, base_offset=offset)
        messages.append(b"key", b"value", TIME)
        log.append(messages.build(), TIME)
    before = content(log)
    compacted(log)
    assert content(log) == before
    assert content(open_log(log.disk)) == before
