"""What a replica needs of its log, as tests of any `ReplicatedLog`."""

from __future__ import annotations

import pytest

from kafkawire.raft import OffsetAndEpoch, ReplicatedLog
from kafkawire.raft.control_batches import data_batch
from kafkawire.records import RecordBatches


class LogContract:
    """The tests; a subclass makes the log."""

    def new_log(self) -> ReplicatedLog:
        """Return an empty log."""
        raise NotImplementedError

    def log_of(self, *epochs: int) -> ReplicatedLog:
        """Return a log with a batch of two records for each epoch."""
        log = self.new_log()
        for epoch in epochs:
            log.append(data_batch([b"a", b"b"], log.end.offset, epoch, 0))
        return log

    def test_a_log_ends_after_its_last_record(self) -> None:
        assert self.new_log().end == OffsetAndEpoch(0, 0)
        assert self.log_of(1, 1, 3).end == OffsetAndEpoch(6, 3)

    @pytest.mark.parametrize(
        ("epoch", "end"),
        [(0, (0, -1)), (1, (4, 1)), (2, (4, 1)), (3, (6, 3)), (9, (6, 3))],
    )
    def test_the_end_of_an_epoch_is_that_of_the_largest_one_up_to_it(
        self, epoch: int, end: tuple[int, int]
    ) -> None:
        assert self.log_of(1, 1, 3).end_offset_for_epoch(epoch) == end

    def test_batches_must_continue_the_log(self) -> None:
        log = self.log_of(2)
        for offset, epoch in ((1, 2), (3, 2), (2, 1)):
            with pytest.raises(ValueError, match="does not continue"):
                log.append(data_batch([b"c"], offset, epoch, 0))

    def test_reads_give_whole_batches_and_at_least_one(self) -> None:
        log = self.log_of(1, 1, 3)
        size = len(log.read(0, 1))
        assert [each.base_offset for each in RecordBatches(log.read(2, 1))] == [2]
        assert [each.base_offset for each in RecordBatches(log.read(1, 2 * size))] == [0, 2]
        assert log.read(6, 1000) == b""

    def test_a_truncated_log_ends_in_an_earlier_epoch(self) -> None:
        log = self.log_of(1, 1, 3)
        log.truncate(4)
        assert log.end == OffsetAndEpoch(4, 1)
        assert log.end_offset_for_epoch(3) == (4, 1)
        log.append(data_batch([b"c"], 4, 4, 0))
        assert log.end == OffsetAndEpoch(5, 4)

    def test_a_snapshot_of_the_log_drops_what_is_before_it(self) -> None:
        log = self.log_of(1, 1, 3)
        log.store_snapshot(OffsetAndEpoch(4, 1), b"state")
        assert log.start_offset == 4
        assert log.end == OffsetAndEpoch(6, 3)
        assert log.end_offset_for_epoch(1) == (4, 1)
        assert log.end_offset_for_epoch(0).epoch == -1
        assert log.snapshot(OffsetAndEpoch(4, 1)) == b"state"

    def test_a_snapshot_beyond_the_log_replaces_it(self) -> None:
        log = self.log_of(1, 1)
        log.store_snapshot(OffsetAndEpoch(9, 2), b"state")
        assert log.read(0, 1000) == b""
        assert (log.start_offset, log.end) == (9, OffsetAndEpoch(9, 2))
        log.store_snapshot(OffsetAndEpoch(4, 1), b"older")
        assert log.latest_snapshot == OffsetAndEpoch(9, 2)

    def test_a_snapshot_of_another_epoch_replaces_a_longer_log(self) -> None:
        log = self.log_of(1, 1, 4)
        log.store_snapshot(OffsetAndEpoch(4, 3), b"state")
        assert log.end == OffsetAndEpoch(4, 3)
        assert log.read(4, 1000) == b""

    def test_the_snapshot_before_the_latest_is_kept_for_those_who_fetch_it(self) -> None:
        log = self.log_of(1, 1, 1)
        for offset in (2, 4, 6):
            log.store_snapshot(OffsetAndEpoch(offset, 1), b"%d" % offset)
        assert log.snapshot(OffsetAndEpoch(2, 1)) is None
        assert log.snapshot(OffsetAndEpoch(4, 1)) == b"4"
