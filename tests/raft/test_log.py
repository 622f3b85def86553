"""The log in memory: epochs, truncation, snapshots, crashes."""

from __future__ import annotations

import pytest

from kafkawire.raft import MemoryLog, OffsetAndEpoch
from kafkawire.raft.control_batches import data_batch
from kafkawire.records import RecordBatches


def log_of(*epochs: int) -> MemoryLog:
    """A log with a batch of two records for each epoch."""
    log = MemoryLog()
    for epoch in epochs:
        log.append(data_batch([b"a", b"b"], log.end.offset, epoch, 0))
    return log


def test_a_log_ends_after_its_last_record() -> None:
    assert MemoryLog().end == OffsetAndEpoch(0, 0)
    assert log_of(1, 1, 3).end == OffsetAndEpoch(6, 3)


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(0, (0, -1)), (1, (4, 1)), (2, (4, 1)), (3, (6, 3)), (9, (6, 3))],
)
def test_the_end_of_an_epoch_is_that_of_the_largest_one_up_to_it(
    epoch: int, end: tuple[int, int]
) -> None:
    assert log_of(1, 1, 3).end_offset_for_epoch(epoch) == end


def test_batches_must_continue_the_log() -> None:
    log = log_of(2)
    for offset, epoch in ((1, 2), (3, 2), (2, 1)):
        with pytest.raises(ValueError, match="does not continue"):
            log.append(data_batch([b"c"], offset, epoch, 0))


def test_reads_give_whole_batches_and_at_least_one() -> None:
    log = log_of(1, 1, 3)
    size = len(log.batches[0].data)
    assert [each.base_offset for each in RecordBatches(log.read(2, 1))] == [2]
    assert [each.base_offset for each in RecordBatches(log.read(1, 2 * size))] == [0, 2]
    assert log.read(6, 1000) == b""


def test_a_crash_loses_what_is_not_flushed() -> None:
    log = log_of(1, 1)
    log.flush()
    log.append(data_batch([b"c"], 4, 2, 0))
    log.append(data_batch([b"d"], 5, 2, 0))
    assert log.unflushed == 2
    assert log.crash(kept=1) == 1
    assert log.end == OffsetAndEpoch(5, 2)
    assert log.crash() == 0


def test_a_truncated_flush_does_not_count_again() -> None:
    log = log_of(1, 1)
    log.flush()
    log.truncate(2)
    log.append(data_batch([b"c"], 2, 2, 0))
    assert log.crash() == 1
    assert log.end == OffsetAndEpoch(2, 1)


def test_a_snapshot_of_the_log_drops_what_is_before_it() -> None:
    log = log_of(1, 1, 3)
    log.store_snapshot(OffsetAndEpoch(4, 1), b"state")
    assert log.start_offset == 4
    assert log.end == OffsetAndEpoch(6, 3)
    assert log.end_offset_for_epoch(1) == (4, 1)
    assert log.end_offset_for_epoch(0).epoch == -1
    assert log.snapshot(OffsetAndEpoch(4, 1)) == b"state"


def test_a_snapshot_beyond_the_log_replaces_it() -> None:
    log = log_of(1, 1)
    log.store_snapshot(OffsetAndEpoch(9, 2), b"state")
    assert log.batches == ()
    assert log.end == OffsetAndEpoch(9, 2)
    log.store_snapshot(OffsetAndEpoch(4, 1), b"older")
    assert log.latest_snapshot == OffsetAndEpoch(9, 2)


def test_the_snapshot_before_the_latest_is_kept_for_those_who_fetch_it() -> None:
    log = log_of(1, 1, 1)
    for offset in (2, 4, 6):
        log.store_snapshot(OffsetAndEpoch(offset, 1), b"%d" % offset)
    assert log.snapshot(OffsetAndEpoch(2, 1)) is None
    assert log.snapshot(OffsetAndEpoch(4, 1)) == b"4"
