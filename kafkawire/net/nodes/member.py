"""A node of a cluster in a thread: its ports, and disks that are slow, full or fail on request.

Law: what a disk has survives its node; what is wrong with it stays until it is repaired.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...storage import MemoryDisk

DURABLE: Final = frozenset({"append", "truncate", "fsync", "fsync_directory", "rename", "delete"})
"""The operations of a disk that take time when it is slow."""


@dataclass
class Member:
    """A node that may run. ports: of its listeners, the same at each start."""

    node_id: int
    ports: Mapping[str, int]
    disks: Mapping[str, MemoryDisk]
    starts: int = 0
    taken: float = field(default=0.0, init=False)
    """The time of its disks that the node has waited for."""

    def chosen(self, directory: str | None) -> list[MemoryDisk]:
        """Return the disk of a directory; None: all of them."""
        if directory is None:
            return list(self.disks.values())
        if directory not in self.disks:
            known = ", ".join(self.disks)
            raise ValueError(f"node {self.node_id} has no directory {directory!r}: {known}")
        return [self.disks[directory]]

    def slow(self, seconds: float, directory: str | None) -> None:
        """Let each write take so long."""
        for disk in self.chosen(directory):
            disk.fault = lambda operation, _path: seconds if operation in DURABLE else 0.0

    def fill(self, directory: str | None) -> None:
        """Leave no room."""
        for disk in self.chosen(directory):
            disk.capacity = disk.used

    def fail(self, directory: str | None) -> None:
        """Let each operation fail."""
        for disk in self.chosen(directory):
            disk.fault = _broken

    def repair(self) -> None:
        """Let all disks be as they were; a directory that has failed is used after a restart."""
        for disk in self.disks.values():
            disk.fault = disk.capacity = None

    def take_time(self) -> float:
        """Return how long the disks took since the last call."""
        elapsed = sum(disk.elapsed_s for disk in self.disks.values())
        taken, self.taken = elapsed - self.taken, elapsed
        return taken


def _broken(_operation: str, path: str) -> float:
    raise OSError(errno.EIO, os.strerror(errno.EIO), path)
