"""Runs a cluster of brokers in memory in asyncio: listeners for the clients of each broker."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ...broker import Endpoint
from ...broker.security.protocols import SecurityProtocol
from ..server_config import ServerConfig, client_listener
from .shell import Observers, Shell, bound
from .transport import Listener

if TYPE_CHECKING:
    import socket


def epoch_ms() -> int:
    """Return the time since the epoch in milliseconds."""
    return int(time.time() * 1000)


class ClusterShell(Shell):
    """The listeners of a cluster of brokers; brokers have the ids from 1.

    names: of the listeners of each broker besides that of clients.
    """

    def __init__(
        self, config: ServerConfig, observers: Observers | None, names: Iterable[str] = ()
    ) -> None:
        super().__init__(observers or Observers())
        self.config = config
        self.client_listener = client_listener(config)
        self.listeners: list[Listener] = []
        self._names = dict.fromkeys((self.client_listener, *names))

    async def start(self) -> None:
        """Listen on all ports, and create the configured topics."""
        self.start_clock()
        with self._bound(self._wanted()) as sockets:
            self.listeners = list(sockets)
            await self._start_brokers()
        await self._listen(sockets)

    def _wanted(self) -> Iterator[Listener]:
        """Yield the listeners of all brokers, with port 0 for any."""
        host, ports, racks = self.config.host, self.config.ports, self.config.racks
        for index in range(self.config.brokers):
            rack = racks[index] if index < len(racks) else None
            port = ports[index] if index < len(ports) else 0
            for name in self._names:
                has_tls = SecurityProtocol.of_listener(name).has_tls
                endpoint = Endpoint(index + 1, host, port, rack)
                yield Listener(endpoint, name, self.config.tls if has_tls else None)
                port = 0

    @contextmanager
    def _bound(self, listeners: Iterable[Listener]) -> Iterator[dict[Listener, socket.socket]]:
        """Bind sockets; yield the listeners with their ports. An error in the block closes them."""
        with ExitStack() as opened:
            sockets = {}
            for each in listeners:
                sock = opened.enter_context(bound(each.endpoint.host, each.endpoint.port))
                endpoint = each.endpoint._replace(port=sock.getsockname()[1])
                sockets[each._replace(endpoint=endpoint)] = sock
            yield sockets
            opened.pop_all()  # they are the listeners'

    async def _listen(self, sockets: Mapping[Listener, socket.socket]) -> None:
        for listener, sock in sockets.items():
            await self.listen(listener, sock)

    @abstractmethod
    async def _start_brokers(self) -> None:
        """Set `machine`; return when the brokers are active, and the topics exist."""

    async def close(self) -> None:
        """Stop listening and close all connections."""
        await self.close_connections()
        if self.observers.recording is not None:
            self.observers.recording.close()

    async def _listen_again(self, node_id: int) -> None:
        """Listen on the ports of a broker that has stopped."""
        with self._bound(self._of(node_id)) as sockets:
            pass
        await self._listen(sockets)

    async def _stop_listener(self, node_id: int) -> None:
        await self.stop_listening(self._of(node_id))

    def _of(self, node_id: int) -> list[Listener]:
        """List the listeners of a broker."""
        return [each for each in self.listeners if each.endpoint.node_id == node_id]

    @property
    def endpoints(self) -> list[Endpoint]:
        """Where clients reach the brokers."""
        return [each.endpoint for each in self.listeners if each.name == self.client_listener]

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port,...`."""
        return ",".join(f"{each.host}:{each.port}" for each in self.endpoints)
