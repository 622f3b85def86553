"""Runs one node in asyncio: its listeners, its connections to other nodes, its timer.

Law: the node decides and the server carries out. Clients are accepted once the broker is running;
until then they wait in the backlog of the socket.

    sockets ─▶ events ─▶ NodeFront ─▶ effects ─▶ sockets
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...broker import (
    AwaitDrain,
    Close,
    Endpoint,
    Fault,
    PauseReading,
    Reply,
    Report,
    ResumeReading,
)
from ...broker.security.protocols import SecurityProtocol
from ...client.network import transport
from ...node import (
    BrokerState,
    BrokerStateChanged,
    Node,
    NodeConfig,
    ShutdownRequested,
    Stopped,
)
from ...node.front.front import Effect, Event, NodeFront
from ...node.front.options import DEFAULT, FrontOptions
from ...storage import Disk
from ..server_transport import ServerConnection
from ..sockets.socket import Socket
from ..timer import Timer
from .listener import NodeListener

if TYPE_CHECKING:
    import ssl

    from ..server_recording import Recording

LOG: Final = logging.getLogger("kafkawire.node")
TopicName = Callable[[bytes], str]
LOOPS_UNTIL_CLOSED: Final = 3
"""Iterations of the event loop until aborted connections are closed."""


def _uuid(rng: random.Random) -> bytes:
    """Return a random UUID."""
    return uuid.UUID(int=rng.getrandbits(128), version=4).bytes


class NodeServer:
    """A node that listens.

    sockets: bound, by the name of the listener. epoch: the time of the loop at `now` 0 of the node.
    on_report, on_close: as of `Server`. on_effect: called with each effect of the node that is
    neither for a client nor for another node, and a function from topic ids to names. tls: of
    the listener of clients. faults: those to inject into requests of clients. `running` is set when
    the broker serves clients, `stopped` when the node has stopped.
    """

    def __init__(  # noqa: PLR0913 - options of one constructor, all but three by keyword
        self,
        config: NodeConfig,
        disks: Mapping[str, Disk],
        sockets: Mapping[str, socket.socket],
        *,
        on_report: Callable[[Report], None] | None = None,
        on_close: Callable[[Close], None] | None = None,
        on_effect: Callable[[Effect, TopicName], None] | None = None,
        recording: Recording | None = None,
        front: FrontOptions = DEFAULT,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.config = config
        self._tls = tls
        self.recording = recording
        self.loop = asyncio.get_running_loop()
        self.running = asyncio.Event()
        self.stopped: asyncio.Future[Stopped] = self.loop.create_future()
        self.connections: dict[int, ServerConnection] = {}
        self._started_at = self.loop.time()
        self._sockets = dict(sockets)
        self._on_report = on_report
        self._on_close = on_close
        self._on_effect = on_effect
        self._peers: dict[int, Socket] = {}
        self._ports: dict[int, int] = {}
        self._listeners: dict[str, asyncio.Server] = {}
        self._timer = Timer(self._due)
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self._stopping = False
        self._advanced = 0.0
        self.unreachable: frozenset[int] = frozenset()
        """Ports of other nodes that this one cannot connect to."""
        rng = random.SystemRandom()
        new_uuid = partial(_uuid, rng)
        node = Node(config, disks, rng, new_uuid, self.now())
        self._front = NodeFront(node, config, new_uuid, rng.random, front)

    # -- lifecycle

    async def start(self) -> None:
        """Start the node; controllers accept connections at once."""
        for each in self.config.controller_listeners:
            await self._listen(each.name)
        self._do(lambda: self._front.start(self.now()))

    async def _listen(self, name: str) -> None:
        bound = self._sockets[name]
        host, port = bound.getsockname()[:2]
        endpoint = Endpoint(self.config.node_id, host, port)
        has_tls = SecurityProtocol.of_listener(name).has_tls
        listener = NodeListener(self, name, endpoint, self._tls if has_tls else None)
        self._listeners[name] = await self.loop.create_server(
            lambda: ServerConnection(listener, endpoint), sock=bound
        )

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
        self._timer.set(None)
        for listener in self._listeners.values():
            listener.close()
        for connection in list(self.connections.values()):
            connection.abort()
        for peer in list(self._peers.values()):
            peer.abort()
        for bound in self._sockets.values():
            with suppress(OSError):
                bound.close()
        for _ in range(LOOPS_UNTIL_CLOSED):
            await asyncio.sleep(0)

    # -- the node

    def now(self) -> float:
        """Return the node's time in seconds since it started."""
        return self.loop.time() - self._started_at + self._advanced

    def advance(self, seconds: float) -> None:
        """Advance the node's clock at once; expired deadlines are handled."""
        self._advanced += seconds
        self._do(lambda: self._front.advance(self.now()))

    def handle(self, event: Event) -> None:
        """Pass an event to the node and carry out its effects."""
        self._do(lambda: self._front.handle(event, self.now()))

    def _do(self, work: Callable[[], Iterable[Effect]]) -> None:
        """Carry out the effects of some work; an unexpected error is the end of the node."""
        if self.stopped.done():
            return
        try:
            self._perform(work())
        except Exception as error:
            LOG.exception("unexpected error: the node stops")
            self.stopped.set_result(Stopped(f"{type(error).__name__}: {error}"))

    def opened(self, connection: ServerConnection) -> int:
        """Register a connection and return its id."""
        self._count += 1
        self.connections[self._count] = connection
        return self._count

    def closed(self, number: int) -> None:
        """Remove a connection that has closed."""
        del self.connections[number]

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    self.connections[effect.connection].send(effect.buffers)
                case Report() | Close():
                    self._report(effect)
                case AwaitDrain() | PauseReading() | ResumeReading():
                    self._apply_flow_control(effect)
                case transport.Connect():
                    self._connect(effect)
                case transport.Write():
                    self._peers[effect.connection].write(effect.buffers)
                case transport.Close():
                    self._peers[effect.connection].close()
                case _:
                    self._node_effect(effect)
        self._set_timer()

    def _report(self, effect: Report | Close) -> None:
        if isinstance(effect, Close):
            if self._on_close is not None:
                self._on_close(effect)
            self.connections[effect.connection].close()
        elif self._on_report is not None:
            self._on_report(effect)

    def _apply_flow_control(self, effect: AwaitDrain | PauseReading | ResumeReading) -> None:
        connection = self.connections[effect.connection]
        match effect:
            case AwaitDrain():
                connection.await_drain()
            case PauseReading():
                connection.pause()
            case ResumeReading():
                connection.resume()

    def _node_effect(self, effect: Effect) -> None:
        if self._on_effect is not None:
            self._on_effect(effect, self._front.broker.metadata.topic_name)
        if isinstance(effect, BrokerStateChanged) and effect.state is BrokerState.RUNNING:
            for each in self.config.broker_listeners:
                task = self.loop.create_task(self._listen(each.name))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            self.running.set()
        elif isinstance(effect, Stopped) and not self.stopped.done():
            self.stopped.set_result(effect)

    def _set_timer(self) -> None:
        due = None if self.stopped.done() else self._front.next_deadline()
        self._timer.set(None if due is None else due - self._advanced + self._started_at)

    def _due(self) -> None:
        self._do(lambda: self._front.advance(self.now()))

    # -- connections to other nodes

    def _connect(self, effect: transport.Connect) -> None:
        if effect.port in self.unreachable:
            lost = transport.ConnectionLost(effect.connection, "unreachable")
            self.loop.call_soon(self.receive, lost)
        else:
            self._ports[effect.connection] = effect.port
            self._peers[effect.connection] = Socket(self, effect)

    def isolate(self, ports: Iterable[int]) -> None:
        """Close the connections to ports of other nodes, and make no new ones."""
        self.unreachable = frozenset(ports)
        for number, peer in list(self._peers.items()):
            if self._ports[number] in self.unreachable:
                peer.abort()

    def receive(self, event: transport.ShellEvent) -> None:
        """Handle an event of a connection to another node."""
        self.handle(event)

    def received(self, connection: int, data: bytes) -> None:
        """Handle bytes of another node."""
        self.handle(transport.BytesReceived(connection, data))

    def forget(self, socket: Socket) -> None:
        """Remove a connection to another node that has closed."""
        self._peers.pop(socket.number, None)
        self._ports.pop(socket.number, None)
