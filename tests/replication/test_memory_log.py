"""The log in memory: what crashes, truncation and deletion leave."""

from __future__ import annotations

import pytest

from kafkawire.records import end_txn_batch
from kafkawire.replication import AppendRejected, EpochEndOffset, MemoryLog

from .checker import values
from .clients import batch


def log_of(*epochs: int) -> MemoryLog:
    """Return a log with two records of each epoch."""
    log = MemoryLog()
    for epoch in epochs:
        log.append_as_leader(batch([b"a", b"b"]), epoch)
    return log


def test_a_crash_loses_what_was_not_flushed() -> None:
    log = log_of(0, 0)
    log.flush()
    log.append_as_leader(batch([b"c"]), 1)
    log.update_high_watermark(5)
    log.crash(0, high_watermark=3)
    assert (log.log_end_offset, log.high_watermark, log.latest_epoch) == (4, 3, 0)


@pytest.mark.parametrize(
    ("requested", "end"),
    [(0, (0, 4)), (1, (0, 4)), (2, (2, 6)), (3, (3, 8)), (4, (-1, -1)), (-1, (-1, -1))],
)  # fmt: skip
def test_ends_of_epochs(requested: int, end: tuple[int, int]) -> None:
    """KIP-279: of the largest epoch up to the requested one."""
    assert log_of(0, 0, 2, 3).end_offset_for_epoch(requested) == EpochEndOffset(*end)


def test_epochs_before_the_first() -> None:
    log = log_of(2, 3)
    assert log.end_offset_for_epoch(1) == EpochEndOffset(1, 0)


def test_deletion_keeps_the_batch_that_has_later_records() -> None:
    log = log_of(0, 1)
    log.increment_log_start_offset(1)
    assert values(log, 1, 4) == {1: b"b", 2: b"a", 3: b"b"}
    log.increment_log_start_offset(3)
    assert log.end_offset_for_epoch(0) == EpochEndOffset(0, 3)
    assert log.size_between(2, 4) == len(log.batches[0].data)


def test_a_read_ends_before_an_offset() -> None:
    log = log_of(0, 0)
    assert values(log, 0, 3) == {0: b"a", 1: b"b"}
    assert log.read(0, 1, 4, at_least_one=False) == b""
    assert log.read(0, 1, 4, at_least_one=True) == log.batches[0].data


def test_a_follower_may_begin_inside_a_batch() -> None:
    leader, follower = log_of(0, 0), MemoryLog()
    follower.truncate_fully_and_start_at(3)
    follower.append_as_follower(leader.read(3, 1 << 20, 4, at_least_one=True))
    assert (follower.log_start_offset, follower.log_end_offset) == (3, 4)


def test_truncation_before_the_start() -> None:
    log = log_of(0, 1)
    log.increment_log_start_offset(2)
    log.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (1, 1, -1)


def test_transactions_bound_the_last_stable_offset() -> None:
    log = MemoryLog()
    for producer in (7, 8):
        log.append_as_leader(batch([b"x"], producer), 0)
    log.update_high_watermark(2)
    assert log.last_stable_offset == 0
    for producer in (7, 8):
        marker = end_txn_batch(
            producer == 8, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=0
        )
        log.append_as_leader(marker, 0)
    assert log.last_stable_offset == 0, "the markers are not replicated yet"
    log.update_high_watermark(3)
    assert log.last_stable_offset == 1
    log.update_high_watermark(4)
    assert log.last_stable_offset == 4
    assert log.aborted_transactions(0, 4) == [(7, 0)]
    log.truncate_to(2)
    assert (log.last_stable_offset, log.aborted_transactions(0, 4)) == (0, [])


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"?"])
def test_damaged_batches_are_rejected(damage: object) -> None:
    assert callable(damage)
    log = MemoryLog()
    with pytest.raises(AppendRejected):
        log.append_as_leader(damage(batch([b"abc"])), 0)
    assert log.log_end_offset == 0


def test_timestamps() -> None:
    found = log_of(0).offset_for_timestamp(1_600_000_000_000)
    assert found is not None
    assert found.offset == 0
    assert log_of(0).offset_for_timestamp(1 << 60) is None
