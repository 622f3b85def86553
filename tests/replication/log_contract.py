"""What replication needs of a log, as tests of any `ReplicaLog`."""

from __future__ import annotations

import pytest

from kafkawire.records import end_txn_batch
from kafkawire.replication import EpochEndOffset, ReplicaLog, whole_batches

from .checker import values
from .clients import batch


class LogContract:
    """The tests; a subclass makes the log."""

    def new_log(self) -> ReplicaLog:
        """Return an empty log."""
        raise NotImplementedError

    def log_of(self, *epochs: int) -> ReplicaLog:
        """Return a log with two records of each epoch."""
        log = self.new_log()
        for epoch in epochs:
            log.append_as_leader(whole_batches(batch([b"a", b"b"])), epoch)
        return log

    @pytest.mark.parametrize(
        ("requested", "end"),
        [(0, (0, 4)), (1, (0, 4)), (2, (2, 6)), (3, (3, 8)), (4, (-1, -1)), (-1, (-1, -1))],
    )  # fmt: skip
    def test_ends_of_epochs(self, requested: int, end: tuple[int, int]) -> None:
        """KIP-279: of the largest epoch up to the requested one."""
        assert self.log_of(0, 0, 2, 3).end_offset_for_epoch(requested) == EpochEndOffset(*end)

    def test_epochs_before_the_first(self) -> None:
        log = self.log_of(2, 3)
        assert log.end_offset_for_epoch(1) == EpochEndOffset(1, 0)

    def test_deletion_keeps_the_batch_that_has_later_records(self) -> None:
        log = self.log_of(0, 1)
        log.increment_log_start_offset(1)
        assert values(log, 1, 4) == {1: b"b", 2: b"a", 3: b"b"}
        log.increment_log_start_offset(3)
        assert log.end_offset_for_epoch(0) == EpochEndOffset(0, 3)
        assert log.size_between(2, 4) == len(log.read(2, 1, 4, at_least_one=True))

    def test_a_read_ends_before_an_offset(self) -> None:
        log = self.log_of(0, 0)
        assert values(log, 0, 3) == {0: b"a", 1: b"b"}
        assert log.read(0, 1, 4, at_least_one=False) == b""
        assert log.read(0, 1, 4, at_least_one=True) == log.read(0, 1 << 20, 2, at_least_one=True)

    def test_a_follower_may_begin_inside_a_batch(self) -> None:
        leader, follower = self.log_of(0, 0), self.new_log()
        follower.truncate_fully_and_start_at(3)
        follower.append_as_follower(leader.read(3, 1 << 20, 4, at_least_one=True))
        assert (follower.log_start_offset, follower.log_end_offset) == (3, 4)

    def test_truncation_before_the_start(self) -> None:
        log = self.log_of(0, 1)
        log.increment_log_start_offset(2)
        log.truncate_to(1)
        assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (1, 1, -1)

    def test_transactions_bound_the_last_stable_offset(self) -> None:
        log = self.new_log()
        for producer in (7, 8):
            log.append_as_leader(whole_batches(batch([b"x"], producer)), 0)
        log.update_high_watermark(2)
        assert log.last_stable_offset == 0
        for producer in (7, 8):
            marker = end_txn_batch(
                producer == 8,
                producer_id=producer,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp=0,
            )
            log.append_as_leader(whole_batches(marker, internal=True), 0, internal=True)
        assert log.last_stable_offset == 0, "the markers are not replicated yet"
        log.update_high_watermark(3)
        assert log.last_stable_offset == 1
        log.update_high_watermark(4)
        assert log.last_stable_offset == 4
        assert log.aborted_transactions(0, 4) == [(7, 0)]
        log.truncate_to(2)
        assert (log.last_stable_offset, log.aborted_transactions(0, 4)) == (0, [])

    def test_timestamps(self) -> None:
        found = self.log_of(0).offset_for_timestamp(1_600_000_000_000)
        assert found is not None
        assert found.offset == 0
        assert self.log_of(0).offset_for_timestamp(1 << 60) is None
