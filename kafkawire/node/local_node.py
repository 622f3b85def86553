"""A node of a cluster in one process: its disks, and its work while it runs.

What a disk has survives its node; what is wrong with it stays until it is repaired. A node
waits for its disks, though others in the same thread go on: what an event leads to leaves once the
disks are done, and later events wait, in order.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from ..storage import MemoryDisk
from .config import NodeConfig
from .front.front import Effect, Event, NodeFront

DURABLE: Final = frozenset({"append", "truncate", "fsync", "fsync_directory", "rename", "delete"})
"""The operations of a disk that take time when it is slow."""
ELAPSED: Final = attrgetter("elapsed_s")


class NodeStarted(NamedTuple):
    """A node starts, with what its disks have."""

    node_id: int


class ShutDown(NamedTuple):
    """A node shall stop in order: others lead its partitions before it stops."""

    node_id: int


class Killed(NamedTuple):
    """The process of a node ends at once."""

    node_id: int


class Isolated(NamedTuple):
    """These nodes, and only these, reach no others any more; clients still reach them."""

    node_ids: frozenset[int]


NodeEvent = NodeStarted | ShutDown | Killed | Isolated


@dataclass(slots=True)
class LocalNode:
    """A node that may run. disks: name of a log directory -> its disk.

    starts: how often it was started.
    """

    config: NodeConfig
    disks: Mapping[str, MemoryDisk]
    starts: int = field(default=0, init=False)
    _waited: float = field(default=0.0, init=False)
    """The time of its disks that the node has waited for."""

    def slow(self, seconds: float, directory: str | None = None) -> None:
        """Let each write to the disk of a directory, or to all disks, take so long."""
        for disk in self._disks(directory):
            disk.fault = lambda operation, _path: seconds if operation in DURABLE else 0.0

    def fill(self, directory: str | None = None) -> None:
        """Leave no room."""
        for disk in self._disks(directory):
            disk.capacity = disk.used

    def fail(self, directory: str | None = None) -> None:
        """Let each operation fail."""
        for disk in self._disks(directory):
            disk.fault = _broken

    def repair(self) -> None:
        """Let all disks be as they were; a directory that has failed is used after a restart."""
        for disk in self.disks.values():
            disk.fault = disk.capacity = None

    def _disks(self, directory: str | None) -> list[MemoryDisk]:
        if directory is None:
            return list(self.disks.values())
        if directory not in self.disks:
            names = ", ".join(self.disks)
            raise ValueError(f"node {self.config.node_id} has no directory {directory!r}: {names}")
        return [self.disks[directory]]

    def take_disk_time(self) -> float:
        """Return the seconds that the disks took since the last call."""
        elapsed: float = sum(map(ELAPSED, self.disks.values()))
        taken, self._waited = elapsed - self._waited, elapsed
        return taken


class RunningNode:
    """A node that runs. clients: the connections of its clients."""

    def __init__(self, node: LocalNode, front: NodeFront) -> None:
        self.front = front
        self.clients: set[int] = set()
        self._node = node
        self._ready_at: float | None = None
        """When its disks are done; None while it does not wait for them."""
        self._delayed: list[Effect] = []
        self._waiting: deque[Event] = deque()

    def start(self, now: float) -> list[Effect]:
        """Begin where the node stopped, without waiting for the disks."""
        effects = self.front.start(now)
        self._node.take_disk_time()
        return effects

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event, or keep it until the disks are done."""
        if self._ready_at is not None:
            self._waiting.append(event)
            return []
        effects = self.front.handle(event, now)
        seconds = self._node.take_disk_time()
        return effects if seconds <= 0.0 else self._wait(effects, now + seconds)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self.front.next_deadline() if self._ready_at is None else self._ready_at

    def advance(self, now: float) -> list[Effect]:
        """Do what is due; once the disks are done, handle what has come meanwhile."""
        if self._ready_at is None:
            effects = self.front.advance(now)
            seconds = self._node.take_disk_time()
            return effects if seconds <= 0.0 else self._wait(effects, now + seconds)
        if now < self._ready_at:
            return []
        self._ready_at = None
        effects, self._delayed = self._delayed, []
        while self._waiting and self._ready_at is None:
            effects += self.handle(self._waiting.popleft(), now)
        return effects

    def _wait(self, effects: list[Effect], ready_at: float) -> list[Effect]:
        """Keep effects until the disks are done; return those that may leave now: none."""
        self._ready_at = ready_at
        self._delayed = effects
        return []


def _broken(_operation: str, path: str) -> float:
    raise OSError(errno.EIO, os.strerror(errno.EIO), path)
