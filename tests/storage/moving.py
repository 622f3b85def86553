"""Simulates a log that is moved between log directories, which crash together and fail alone.

As in `simulation`. A new leader epoch follows a truncation or a restart, as in a cluster.
"""

from __future__ import annotations

import errno
from typing import Final

from kafkawire.records import Batch, RecordBatches
from kafkawire.storage.config import LogManagerConfig
from kafkawire.storage.errors import KafkaStorageError
from kafkawire.storage.log_manager import LogManager
from kafkawire.storage.unified_log import UnifiedLog

from .logs import ORDERS, content
from .simulation import CONFIG, STEPS, Simulation

WHILE_IT_FAILS: Final = ("append", "append", "copy", "copy", "move", "flush", "truncate")


class MovingSimulation(Simulation):
    """One log on three disks, and the model of it. swaps: how often it was moved."""

    directories = ("a", "b", "c")
    uninterrupted = ("crash", "failing_disk")

    def __init__(self, seed: int) -> None:
        self.swaps = 0
        super().__init__(seed, STEPS | {"move": 9, "copy": 40, "failing_disk": 3})

    def manager(self) -> LogManager:
        config = LogManagerConfig(
            "cluster", 1, CONFIG, cleaner_backoff_ms=1 << 60, replica_fetch_max_bytes=500
        )
        return LogManager(self.disks, config, lambda: self.rng.randbytes(16))

    def move(self) -> None:
        self.logs.move(ORDERS, self.rng.choice(self.directories), self.now_ms)

    def copy(self) -> None:
        before = self.logs._places[ORDERS].directory
        self.logs.advance(self.now_ms)
        self.swaps += self.logs._places[ORDERS].directory is not before

    def truncate(self) -> None:
        super().truncate()
        self.epoch += 1

    def compact(self) -> None:
        if not self.logs.moves:  # as the log manager, which does not compact what is moved
            super().compact()

    def failing_disk(self) -> None:
        """Let operations of one disk fail from one on, and go on with the others; then restart."""
        disk = self.disks[self.rng.choice(self.directories)]
        names = self.rng.random() < 0.5
        left = self.rng.randrange(3 if names else 30)

        def fault(operation: str, path: str) -> float:
            nonlocal left
            if names:  # of the log directory itself
                left -= operation == "fsync_directory" and path == ""
            else:
                left -= operation not in ("read", "size", "list")
            if left < 0:
                raise OSError(errno.EIO, "Input/output error", path)
            return 0

        disk.fault = fault
        try:
            for name in self.rng.choices(WHILE_IT_FAILS, k=20):
                getattr(self, name)()
                self.trace.append(f"{name} beside a failing disk: {self.log.log_end_offset}")
        except KafkaStorageError:
            self.trace.append("log directory offline")
        self.crash(loses=self.rng.random() < 0.5)

    def crash(self, *, loses: bool = True) -> None:
        super().crash(loses=loses)
        self.epoch += 1

    def check(self) -> None:
        """The log is in one directory, and the future log has its batches."""
        super().check()
        assert sum(disk.exists(str(ORDERS)) for disk in self.disks.values()) <= 1 + len(
            self.logs.offline_directories
        )
        for directory in self.logs._online:
            future = directory.futures.get(ORDERS)
            if future is not None and directory.name == self.logs.moves.get(ORDERS):
                there = set(batches_of(self.log))
                for data in batches_of(future):
                    end = Batch(data, 0, len(data)).last_offset
                    assert data in there or end < self.log.log_start_offset


def batches_of(log: UnifiedLog) -> list[bytes]:
    """Return the bytes of each batch of a log."""
    data = content(log)
    return [data[each.start : each.end] for each in RecordBatches(data)]
