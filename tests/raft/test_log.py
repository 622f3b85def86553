"""The log in memory: epochs, truncation, snapshots, crashes."""

from __future__ import annotations

from kafkawire.raft import MemoryLog, OffsetAndEpoch
from kafkawire.raft.control_batches import data_batch

from .log_contract import LogContract


class TestMemoryLog(LogContract):
    def new_log(self) -> MemoryLog:
        return MemoryLog()


def log_of(*epochs: int) -> MemoryLog:
    """A log with a batch of two records for each epoch."""
    log = MemoryLog()
    for epoch in epochs:
        log.append(data_batch([b"a", b"b"], log.end.offset, epoch, 0))
    return log


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
