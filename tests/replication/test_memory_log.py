"""The log in memory."""

from __future__ import annotations

from kafkawire.replication import MemoryLog, whole_batches

from .clients import batch
from .log_contract import LogContract


class TestMemoryLog(LogContract):
    def new_log(self) -> MemoryLog:
        return MemoryLog()


def test_a_crash_loses_what_was_not_flushed() -> None:
    log = MemoryLog()
    for _ in range(2):
        log.append_as_leader(whole_batches(batch([b"a", b"b"])), 0)
    log.flush()
    log.append_as_leader(whole_batches(batch([b"c"])), 1)
    log.update_high_watermark(5)
    log.crash(0, high_watermark=3)
    assert (log.log_end_offset, log.high_watermark, log.latest_epoch) == (4, 3, 0)
