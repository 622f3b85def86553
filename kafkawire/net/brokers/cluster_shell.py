"""Runs a cluster of brokers in memory in asyncio: listeners for the clients of each broker."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from ...broker import Endpoint
from ...broker.configs import Settings
from ...display import host_and_port
from ...raft import Endpoint as ListenerAddress
from ..server_config import ServerConfig
from .shell import Observers, Shell, bound, reserved
from .tls_stores import ListenerTls, TlsStores
from .transport import Listener

if TYPE_CHECKING:
    import socket

    from ..listeners import ListenerPlan


def epoch_ms() -> int:
    """Return the time since the epoch in milliseconds, rounded up.

    So a clock that begins with it is not behind what other programs on this machine show.
    """
    return -(-time.time_ns() // 1_000_000)


def bound_addresses(listeners: Iterable[Listener]) -> list[ListenerAddress]:
    """Return where listeners accept clients, by name."""
    return [ListenerAddress(each.name, *each.endpoint[1:3]) for each in listeners]


def advertised(listeners: Iterable[Listener]) -> list[ListenerAddress]:
    """Return the addresses of listeners that clients are shown, by name."""
    return [ListenerAddress(each.name, *each.advertised[1:3]) for each in listeners]


class ClusterShell(Shell):
    """The listeners of a cluster of brokers; brokers have the ids from 1.

    plan: of their listeners. names: of those of each broker besides the planned ones.
    """

    def __init__(
        self,
        config: ServerConfig,
        plan: ListenerPlan,
        observers: Observers | None,
        names: Iterable[str] = (),
    ) -> None:
        super().__init__(observers or Observers())
        self.config = config
        self.plan = plan
        self.client_listener = plan.clients[0]
        self.listeners: list[Listener] = []
        self._reserved: dict[Listener, socket.socket] = {}
        planned = [each.name for each in plan.listeners]
        self._names = dict.fromkeys((*planned, *names))

    async def start(self) -> None:
        """Listen on all ports, and create the configured topics."""
        self.start_clock()
        with self._bound(self._wanted()) as sockets:
            self.listeners = list(sockets)
            await self._start_brokers()
        self._listen(sockets)

    def _wanted(self) -> Iterator[Listener]:
        """Yield the listeners of all brokers, with port 0 for any."""
        racks = self.config.racks
        planned = [self.plan.listener(name, self.config.host) for name in self._names]
        settings = Settings(self.config.settings)
        for index in range(self.config.brokers):
            rack = racks[index] if index < len(racks) else None
            for each in planned:
                endpoint = Endpoint(index + 1, each.host, each.port(index), rack)
                context = each.tls
                tls = None if context is None else ListenerTls(settings, each.name, context)
                yield Listener(endpoint, each.name, tls)

    @contextmanager
    def _bound(self, listeners: Iterable[Listener]) -> Iterator[dict[Listener, socket.socket]]:
        """Bind sockets; yield the listeners with their ports. An error in the block closes them."""
        with ExitStack() as opened:
            sockets = {}
            for each in listeners:
                sock = self._reserved.pop(each, None)
                if sock is None:
                    sock = bound(each.endpoint.host, each.endpoint.port)
                opened.enter_context(sock)
                endpoint = each.endpoint._replace(port=sock.getsockname()[1])
                shown = self._shown(each.name, endpoint)
                sockets[each._replace(endpoint=endpoint, shown=shown)] = sock
            yield sockets
            opened.pop_all()  # they are the listeners'

    def _shown(self, name: str, bound: Endpoint) -> tuple[str, int]:
        planned = self.plan.listener(name, bound.host)
        return planned.shown(bound.node_id - 1, bound.host, bound.port)[1:]

    def _listen(self, sockets: Mapping[Listener, socket.socket]) -> None:
        for listener, sock in sockets.items():
            self.listen(listener, sock)

    @abstractmethod
    async def _start_brokers(self) -> None:
        """Set `machine`; return when the brokers are active, and the topics exist."""

    async def close(self) -> None:
        """Stop listening and close all connections."""
        await self.close_connections()
        for each in self._reserved.values():
            each.close()
        if self.observers.recording is not None:
            self.observers.recording.close()

    async def _stop_listener(self, node_id: int) -> None:
        """Stop listening on the ports of a broker; they stay reserved until it starts again."""
        listeners = self._of(node_id)
        await self.stop_listening(listeners)
        for each in listeners:
            if each in self._reserved:
                continue
            with suppress(OSError):  # another process listens there already: the start says so
                self._reserved[each] = reserved(each.endpoint.host, each.endpoint.port)

    @property
    def stores(self) -> dict[int, TlsStores]:
        """The stores of certificates of each broker."""
        brokers = {each.endpoint.node_id for each in self.listeners}
        return {
            node_id: TlsStores(each.tls for each in self._of(node_id) if each.tls is not None)
            for node_id in brokers
        }

    def _of(self, node_id: int) -> list[Listener]:
        """List the listeners of a broker."""
        return [each for each in self.listeners if each.endpoint.node_id == node_id]

    @property
    def endpoints(self) -> list[Endpoint]:
        """Where the brokers listen for clients, on the first listener."""
        return [each.endpoint for each in self.listeners if each.name == self.client_listener]

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers of the first listener: `host:port,...`."""
        return self.bootstrap_servers(self.client_listener)

    def bootstrap_servers(self, listener: str) -> str:
        """Return the bootstrap servers of a listener, "" for a name that none has."""
        listening = [each.endpoint for each in self.listeners if each.name == listener]
        return ",".join(host_and_port(each.host, each.port) for each in listening)
