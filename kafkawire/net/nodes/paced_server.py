"""A node that waits for its disks, though they are in memory and in one thread with others.

What an event leads to leaves once the disks are done; later events wait, in order.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...broker import AwaitDrain, Close, PauseReading, Reply, ResumeReading
from ...client.network import transport
from ...node import NodeConfig
from ...node.front.front import Effect
from ...storage import Disk
from .server import NodeServer

Work = Callable[[], Iterable[Effect]]


class PacedServer(NodeServer):
    """A node that takes the time of its disks. take_time: returns it since the last call."""

    def __init__(
        self,
        config: NodeConfig,
        disks: Mapping[str, Disk],
        sockets: Mapping[str, socket.socket],
        take_time: Callable[[], float],
        **observers: Any,
    ) -> None:
        super().__init__(config, disks, sockets, **observers)
        self._take_time = take_time
        self._waiting: deque[Work] = deque()
        self._busy: asyncio.TimerHandle | None = None
        take_time()  # that of its start

    def run(self, work: Work) -> None:
        """Let the node do some work, once its disks are done with what came before."""
        if self._busy is not None:
            self._waiting.append(work)
        else:
            super().run(lambda: self._paced(work))

    def _paced(self, work: Work) -> Iterable[Effect]:
        effects = list(work())
        seconds = self._take_time()
        if seconds <= 0.0:
            return effects
        self._busy = self.loop.call_later(seconds, self._resume, effects)
        return ()

    def _resume(self, effects: list[Effect]) -> None:
        """Carry out what the disks have delayed, then what came meanwhile."""
        self._busy = None
        super().run(lambda: self._of_open_connections(effects))
        while self._waiting and self._busy is None:
            self.run(self._waiting.popleft())

    def _of_open_connections(self, effects: list[Effect]) -> Iterator[Effect]:
        for effect in effects:
            match effect:
                case Reply() | Close() | AwaitDrain() | PauseReading() | ResumeReading():
                    is_open = effect.connection in self.connections
                case transport.Write() | transport.Close():
                    is_open = effect.connection in self._peers
                case _:
                    is_open = True
            if is_open:
                yield effect

    async def close(self) -> None:
        """Close all sockets."""
        if self._busy is not None:
            self._busy.cancel()
        self._waiting.clear()
        await super().close()
