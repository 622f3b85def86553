"""Runs one node in asyncio: its listeners, and its connections to other nodes.

Clients are accepted once the broker is running; until then they wait in the backlog of the socket.

    sockets ─▶ events ─▶ NodeFront ─▶ effects ─▶ sockets
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ...broker import Connected, Endpoint, Fault
from ...broker.configs import Settings
from ...client.network import transport
from ...client.network.oauthbearer import OAuthBearerToken, TokenProvider
from ...client.security import TokenSource
from ...client.unsecured_login import UnsecuredLogin
from ...node import (
    BrokerState,
    BrokerStateChanged,
    Node,
    NodeConfig,
    ShutdownRequested,
    Stopped,
)
from ...node.front.front import (
    Accepted,
    Effect,
    Event,
    NodeFront,
)
from ...node.front.options import DEFAULT, FrontOptions
from ...node.logins import Login
from ...storage import Disk
from ..brokers.cluster_shell import epoch_ms
from ..brokers.key_endpoints import KeyEndpoints
from ..brokers.shell import Observers, Shell, random_uuid
from ..brokers.tls_stores import ListenerTls, TlsStores
from ..brokers.transport import Listener
from ..clients.token_requests import TokenRequests
from ..clients.token_sources import provider_of
from ..sockets.socket import Socket

if TYPE_CHECKING:
    import ssl

LOG: Final = logging.getLogger("kafkawire.node")
TopicName = Callable[[bytes], str]
LOOPS_UNTIL_CLOSED: Final = 3
"""Iterations of the event loop until aborted connections to other nodes are closed."""


class NodeServer(Shell):
    """A node that listens.

    sockets: bound, by the name of the listener. on_effect: called with each effect of the node that
    is neither for a client nor for another node, and a function from topic ids to names. tls: the
    contexts of listeners by name. peer_tls: those with which it connects to others. `running` is
    set when the broker serves clients, `stopped` when the node has stopped.
    """

    def __init__(
        self,
        config: NodeConfig,
        disks: Mapping[str, Disk],
        sockets: Mapping[str, socket.socket],
        *,
        observers: Observers | None = None,
        on_effect: Callable[[Effect, TopicName], None] | None = None,
        front: FrontOptions = DEFAULT,
        tls: Mapping[str, ssl.SSLContext] = MappingProxyType({}),
        peer_tls: Mapping[str, ssl.SSLContext] = MappingProxyType({}),
    ) -> None:
        super().__init__(observers or Observers())
        self.start_clock()
        self.config = config = replace(config, epoch_ms=epoch_ms())
        self._peer_tls = peer_tls
        self._stores = _stores(config, tls, peer_tls)
        self.running = asyncio.Event()
        self.stopped: asyncio.Future[Stopped] = self.loop.create_future()
        self._sockets = dict(sockets)
        self._on_effect = on_effect
        self._peers: dict[int, Socket] = {}
        self._tokens = TokenRequests(self.handle)
        self._providers = _providers(config.broker_login, config.controller_login)
        """Of tokens, by the listener that a connection leads to."""
        self._stopping = False
        rng = random.SystemRandom()
        new_uuid = partial(random_uuid, rng)
        node = Node(config, disks, rng, new_uuid, self.now())
        self._keys = KeyEndpoints(config.static)
        options = replace(
            front,
            reports=self.observers.on_report is not None,
            key_sources=self._keys.sources,
            stores={config.node_id: self._stores},
        )
        self.machine = self._front = NodeFront(node, config, new_uuid, rng.random, options)

    # -- lifecycle

    async def start(self) -> None:
        """Start the node; controllers accept connections at once.

        Raises OSError, which names the key, for keys of signed tokens that cannot be fetched.
        """
        await self._keys.start()
        for each in self.config.controller_listeners:
            self._accept(each.name)
        self.run(lambda: self._front.start(self.now()))

    def _accept(self, name: str) -> None:
        bound = self._sockets[name]
        endpoint = Endpoint(self.config.node_id, *bound.getsockname()[:2])
        self.listen(Listener(endpoint, name, self._stores.listeners.get(name)), bound)

    async def serving(self) -> bool:
        """Wait until the broker serves clients; False if the node has stopped before."""
        running: asyncio.Future[Any] = asyncio.ensure_future(self.running.wait())
        either: set[asyncio.Future[Any]] = {running, self.stopped}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        return not self.stopped.done()

    @property
    def front(self) -> NodeFront:
        """The machine."""
        return self._front

    @property
    def faults(self) -> list[Fault]:
        """The faults to inject into requests of clients."""
        return self._front.faults

    def shut_down(self) -> None:
        """Let the node stop in order, at the second call at once; `stopped` says when."""
        if self._stopping and not self.stopped.done():
            self.stopped.set_result(Stopped(None))
            return
        self._stopping = True
        self.handle(ShutdownRequested())

    async def close(self) -> None:
        """Close all sockets, whatever the node is doing; it handles nothing more."""
        if not self.stopped.done():
            self.stopped.set_result(Stopped(None))
        self._tokens.close()
        for peer in list(self._peers.values()):
            peer.abort()
        await self._keys.close()
        await self.close_connections()
        for bound in self._sockets.values():
            with suppress(OSError):
                bound.close()
        for _ in range(LOOPS_UNTIL_CLOSED):
            await asyncio.sleep(0)

    # -- the node

    def handle(self, event: Event | Connected) -> None:
        """Pass an event to the node and carry out its effects."""
        if isinstance(event, Connected):
            event = Accepted(event.listener, event.connection, event.host)
        self.run(lambda: self._front.handle(event, self.now()))

    def run(self, work: Callable[[], Iterable[Effect]]) -> None:
        """Let the node do some work; an unexpected error is its end."""
        if self.stopped.done():
            return
        try:
            super().run(work)
        except Exception as error:
            LOG.exception("unexpected error: the node stops")
            self.stopped.set_result(Stopped(f"{type(error).__name__}: {error}"))

    def carry_out(self, effect: Any) -> None:
        """Carry out an effect of a connection to another node, or of the node itself."""
        match effect:
            case transport.Connect():
                listener = self._front.peers.listener_of(effect.connection)
                context = self._stores.peer(listener) or self._peer_tls.get(listener)
                self._peers[effect.connection] = Socket(self, effect, context)
            case transport.Write():
                self._peers[effect.connection].write(effect.buffers)
            case transport.Close():
                self._tokens.cancel(effect.connection)
                self._peers[effect.connection].close()
            case transport.RequestToken():
                listener = self._front.peers.listener_of(effect.connection)
                self._tokens.start(effect, self._providers[listener])
            case _:
                self._node_effect(effect)

    def _node_effect(self, effect: Effect) -> None:
        if self._on_effect is not None:
            self._on_effect(effect, self._front.broker.metadata.topic_name)
        if isinstance(effect, BrokerStateChanged) and effect.state is BrokerState.RUNNING:
            for each in self.config.broker_listeners:
                self._accept(each.name)
            self.running.set()
        elif isinstance(effect, Stopped) and not self.stopped.done():
            self.stopped.set_result(effect)

    # -- connections to other nodes

    def receive(self, event: transport.ShellEvent) -> None:
        """Handle an event of a connection to another node."""
        self.handle(event)

    def received(self, connection: int, data: bytes) -> None:
        """Handle bytes of another node."""
        self.handle(transport.BytesReceived(connection, data))

    def forget(self, socket: Socket) -> None:
        """Remove a connection to another node that has closed."""
        self._tokens.cancel(socket.number)
        self._peers.pop(socket.number, None)


def _stores(
    config: NodeConfig, tls: Mapping[str, ssl.SSLContext], peers: Collection[str]
) -> TlsStores:
    """Return the stores of the listeners with TLS. peers: those on which it connects to others."""
    between, settings = config.inter_broker_listener, Settings(config.static)
    return TlsStores(
        ListenerTls(settings, name, context, connects=name in peers, is_verified=name == between)
        for name, context in tls.items()
    )


def _providers(*logins: Login) -> dict[str, TokenProvider]:
    providers = ((each.listener, provider_of(_token_source(each))) for each in logins)
    return {listener: each for listener, each in providers if each is not None}


def _token_source(login: Login) -> TokenSource | None:
    tokens = login.tokens
    return partial(_unsecured, tokens) if isinstance(tokens, UnsecuredLogin) else tokens


def _unsecured(login: UnsecuredLogin) -> OAuthBearerToken:
    return login.token(time.time())
