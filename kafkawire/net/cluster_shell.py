"""Runs a cluster of brokers in memory in asyncio: a listener for the clients of each broker."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..broker import Endpoint
from .server_config import ServerConfig
from .server_transport import Listener
from .shell import Observers, Shell, bound

if TYPE_CHECKING:
    import socket


def epoch_ms() -> int:
    """Return the time since the epoch in milliseconds."""
    return int(time.time() * 1000)


class ClusterShell(Shell):
    """The listeners of a cluster of brokers; brokers have the ids from 1."""

    def __init__(self, config: ServerConfig, observers: Observers | None) -> None:
        super().__init__(observers or Observers())
        self.config = config
        self.endpoints: list[Endpoint] = []

    async def start(self) -> None:
        """Listen on all ports, and create the configured topics."""
        self.start_clock()
        with ExitStack() as opened:
            sockets = [opened.enter_context(each) for each in self._bound()]
            await self._start_brokers()
            opened.pop_all()  # they are the listeners'
        for endpoint, sock in zip(self.endpoints, sockets, strict=True):
            await self.listen(self._listener(endpoint), sock)

    def _bound(self) -> Iterator[socket.socket]:
        """Bind a socket for each broker."""
        host, ports, racks = self.config.host, self.config.ports, self.config.racks
        for index in range(self.config.brokers):
            sock = bound(host, ports[index] if index < len(ports) else 0)
            rack = racks[index] if index < len(racks) else None
            self.endpoints.append(Endpoint(index + 1, host, sock.getsockname()[1], rack))
            yield sock

    @abstractmethod
    async def _start_brokers(self) -> None:
        """Set `machine`; return when the brokers are active, and the topics exist."""

    async def close(self) -> None:
        """Stop listening and close all connections."""
        await self.close_connections()
        if self.observers.recording is not None:
            self.observers.recording.close()

    async def _listen_again(self, node_id: int) -> None:
        """Listen on the port of a broker that has stopped."""
        endpoint = self.endpoints[node_id - 1]
        await self.listen(self._listener(endpoint), bound(endpoint.host, endpoint.port))

    async def _stop_listener(self, node_id: int) -> None:
        await self.stop_listening([self._listener(self.endpoints[node_id - 1])])

    def _listener(self, endpoint: Endpoint) -> Listener:
        return Listener(endpoint, tls=self.config.tls)

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port,...`."""
        return ",".join(f"{each.host}:{each.port}" for each in self.endpoints)
