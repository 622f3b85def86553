"""Runs the nodes of a cluster in one process, as one machine: their links are queues in memory.

What a node sends to another one arrives at the same time, in order. A node that is killed loses
what is not on its disks, and its connections; started again, it reads its disks.

    Connected, Received, ... ─▶ NodeFront of that node ─▶ Reply, Close, ... ─▶ the client
                                    └─ Connect, Write ─▶ queue ─▶ NodeFront of another node
"""

# over 300 lines: one machine: nodes, their clients, and the connections between them

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..broker import (
    AwaitDrain,
    Close,
    Connected,
    Disconnected,
    Drained,
    Fault,
    PauseReading,
    Received,
    Reply,
    Report,
    ResumeReading,
    Unreadable,
)
from ..broker.deadlines import Deadlines
from ..broker.request import NODE_CLIENT_ID
from ..client.network import transport
from ..errors import UnsupportedVersion
from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..metadata import MetadataImage
from ..primitives import Message
from ..protocol import decode_frame, encode_frame
from ..storage import MemoryDisk
from .broker_connections import BrokerConnectionEffect
from .config import NodeConfig
from .controller_server import Randomness
from .effects import Stopped
from .events import ShutdownRequested
from .front.front import Accepted, Event, NodeFront
from .front.front import Effect as FrontEffect
from .front.options import DEFAULT, FrontOptions
from .lifecycle import BrokerState
from .node import Node

CONTROLLER_ID: Final = 3000
"""The id of a node that is only a controller, as in the examples of Kafka."""
HOST: Final = "127.0.0.1"
"""The address that nodes have for each other."""
ADMINISTRATOR: Final = f"{NODE_CLIENT_ID}administrator"
"""The client id of requests that this process makes."""
Address = tuple[str, int]


class NodeStarted(NamedTuple):
    """A node starts, with what its disks have."""

    node_id: int


class ShutDown(NamedTuple):
    """A node shall stop in order: others lead its partitions before it stops."""

    node_id: int


class Killed(NamedTuple):
    """The process of a node ends at once."""

    node_id: int


class NodeEffect(NamedTuple):
    """What a node reports, besides what is for a client: `Published`, `Stopped`, ..."""

    node_id: int
    effect: FrontEffect | BrokerConnectionEffect


ClientEvent = Connected | Received | Drained | Disconnected | Unreadable
ClusterEvent = ClientEvent | NodeStarted | ShutDown | Killed
OfConnection = Reply | Close | AwaitDrain | PauseReading | ResumeReading
Effect = OfConnection | Report | NodeEffect


@dataclass(frozen=True, slots=True)
class LocalNode:
    """A node that may run. disks: name of a log directory -> its disk, which survives the node."""

    config: NodeConfig
    disks: Mapping[str, MemoryDisk]


@dataclass(slots=True)
class _Pipe:
    """A connection between two nodes. connection: its number at the client; `number` at the server.

    Both are open until one side closes it.
    """

    number: int
    client: int
    connection: int
    server: int


@dataclass(slots=True)
class _Running:
    """A node that runs. clients: the connections of its clients."""

    front: NodeFront
    clients: set[int] = field(default_factory=set)


class LocalCluster:
    """The nodes of a cluster, driven by `handle`, `next_deadline` and `advance`.

    new_uuid: returns 16 random bytes. options: of each node. faults: to inject into requests of
    clients, of all nodes. isolated: the nodes that reach no others; `cut` closes their connections.
    """

    def __init__(
        self,
        nodes: Iterable[LocalNode],
        rng: Randomness,
        new_uuid: Callable[[], bytes],
        options: FrontOptions = DEFAULT,
    ) -> None:
        self.nodes = {each.config.node_id: each for each in nodes}
        self.faults: list[Fault] = []
        self.isolated: set[int] = set()
        self._rng = rng
        self._new_uuid = new_uuid
        self._options = options
        self._running: dict[int, _Running] = {}
        self._node_of: dict[int, int] = {}
        """Connection of a client -> its node."""
        self._pipes: dict[int, _Pipe] = {}
        self._number_of: dict[tuple[int, int], int] = {}
        """(node, connection at the client) -> the number of the pipe."""
        self._count = 0
        self._administrators: dict[int, bytearray] = {}
        """Connection of an administrator in this process -> what it has received."""
        self._queue: deque[tuple[int, Event]] = deque()
        self._effects: list[Effect] = []
        self._deadlines: Deadlines[int] = Deadlines()
        self._listeners: dict[Address, tuple[int, str]] = {
            (listener.host, listener.port): (node_id, listener.name)
            for node_id, node in self.nodes.items()
            for listener in node.config.listeners
        }

    # -- what it has

    @property
    def running(self) -> list[int]:
        """The ids of the nodes that run."""
        return list(self._running)

    def front(self, node_id: int) -> NodeFront:
        """Return the machine of a node that runs."""
        return self._running[node_id].front

    @property
    def fronts(self) -> Mapping[int, NodeFront]:
        """The machines of the nodes that run, by id."""
        return {node_id: each.front for node_id, each in self._running.items()}

    def is_active(self, node_id: int) -> bool:
        """Return whether a broker runs, and has been unfenced since it was started."""
        running = self._running.get(node_id)
        broker = None if running is None else running.front.machines.node.parts.broker
        return broker is not None and broker.lifecycle.state is BrokerState.RUNNING

    def image(self) -> MetadataImage:
        """Return the newest metadata of a broker that runs and is not isolated."""
        return max(self.images(), key=lambda image: image.offset, default=MetadataImage())

    def images(self) -> list[MetadataImage]:
        """Return what each broker that runs and is not isolated knows."""
        return [
            each.front.broker.metadata.image
            for node_id, each in self._running.items()
            if self.nodes[node_id].config.is_broker and node_id not in self.isolated
        ]

    # -- the machine

    def start(self, now: float) -> list[Effect]:
        """Start all nodes."""
        for node_id in self.nodes:
            self._start(node_id, now)
        return self._finish(now)

    def handle(self, event: ClusterEvent, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        match event:
            case Connected():
                self._accept(event)
            case NodeStarted():
                self._start(event.node_id, now)
            case ShutDown():
                self._queue.append((event.node_id, ShutdownRequested()))
            case Killed():
                self._end(event.node_id, "the node was killed")
            case _:
                self._client_event(event)
        return self._finish(now)

    def _accept(self, event: Connected) -> None:
        running = self._running.get(event.node_id)
        if running is None:
            self._effects.append(Close(event.connection, f"node {event.node_id} does not run"))
            return
        running.clients.add(event.connection)
        self._node_of[event.connection] = event.node_id
        listener = event.listener or self._client_listener(event.node_id)
        self._queue.append((event.node_id, Accepted(listener, event.connection, event.host)))

    def _client_event(self, event: Received | Drained | Disconnected | Unreadable) -> None:
        """Queue an event of a connection, unless its node has ended."""
        node_id = self._node_of.get(event.connection)
        if node_id is None:
            return
        if isinstance(event, Disconnected):
            del self._node_of[event.connection]
            self._running[node_id].clients.discard(event.connection)
        self._queue.append((node_id, event))

    def next_deadline(self) -> float | None:
        """Return when to call `advance`; a past time while a node has requests queued."""
        return self._deadlines.next()

    def advance(self, now: float) -> list[Effect]:
        """Let each node whose deadline has expired do what is due, for one time slice."""
        due = []
        while (node_id := self._deadlines.pop_due(now)) is not None:
            due.append(node_id)
        for node_id in due:
            running = self._running.get(node_id)
            if running is not None:
                self._take(node_id, running.front.advance(now))
                self._set_deadline(node_id)
                self._run(now)  # so a heartbeat arrives before the session ends
        return self._finish(now)

    def _finish(self, now: float) -> list[Effect]:
        """Handle what is queued; return the effects."""
        self._run(now)
        effects, self._effects = self._effects, []
        return effects

    def _run(self, now: float) -> None:
        while self._queue:
            node_id, event = self._queue.popleft()
            running = self._running.get(node_id)
            if running is not None:
                self._take(node_id, running.front.handle(event, now))
                self._set_deadline(node_id)

    def administer(self, body: Message, now: float) -> Message:
        """Let the cluster handle a request of an administrator in this process.

        Returns the response; what else it leads to is among the next effects. Raises
        UnsupportedVersion for an API that the brokers do not offer, TimeoutError if there is no
        response at this time.
        """
        node_id = next(each for each in self._running if self.nodes[each].config.is_broker)
        key = ApiKey(REGISTRY.get(type(body).__name__).api_key or 0)
        offered = self.front(node_id).broker.broker.apis.served.get(key)
        if offered is None:
            raise UnsupportedVersion(f"{key.name} is not offered by this release")
        self._count -= 1
        number = self._count
        received = self._administrators[number] = bytearray()
        listener = self.nodes[node_id].config.inter_broker_listener
        self._queue.append((node_id, Accepted(listener, number, HOST)))
        frame = encode_frame(body, offered.last, 0, client_id=ADMINISTRATOR)
        self._queue.append((node_id, Received(number, frame)))
        self._run(now)
        while not received and (due := self.next_deadline()) is not None and due <= now:
            self._effects += self.advance(now)
        del self._administrators[number]
        self._queue.append((node_id, Disconnected(number)))
        if not received:
            raise TimeoutError(f"no response to {key.name}")
        response = decode_frame(bytes(received), response_to=(key, offered.last)).body
        assert response is not None
        return response

    def _set_deadline(self, node_id: int) -> None:
        running = self._running.get(node_id)
        self._deadlines.set(node_id, None if running is None else running.front.next_deadline())

    # -- nodes

    def _start(self, node_id: int, now: float) -> None:
        config, disks = self.nodes[node_id].config, self.nodes[node_id].disks
        node = Node(config, disks, self._rng, self._new_uuid, now)
        front = NodeFront(
            node, config, self._new_uuid, self._rng.random, self._options, self.faults
        )
        self._running[node_id] = _Running(front)
        self._take(node_id, front.start(now))
        self._set_deadline(node_id)

    def _end(self, node_id: int, reason: str) -> None:
        """Close all connections of a node that has ended."""
        running = self._running.pop(node_id)
        self._deadlines.set(node_id, None)
        for connection in running.clients:
            del self._node_of[connection]
            self._effects.append(Close(connection, reason))
        for pipe in list(self._pipes.values()):
            if node_id in (pipe.client, pipe.server):
                self._close(pipe, reason)

    def _client_listener(self, node_id: int) -> str:
        return self.nodes[node_id].config.broker_listeners[-1].name

    # -- effects of nodes

    def _take(self, node_id: int, effects: Iterable[FrontEffect]) -> None:
        for effect in effects:
            match effect:
                case Reply() | Close() | AwaitDrain() | PauseReading() | ResumeReading():
                    self._on_connection(effect)
                case transport.Connect() | transport.Write() | transport.Close():
                    self._to_node(node_id, effect)
                case Report():
                    if effect.request.connection > 0:  # that of a client
                        self._effects.append(effect)
                case _:
                    self._report(node_id, effect)
                    if isinstance(effect, Stopped):
                        self._end(node_id, effect.failure or "the node has stopped")
                        return

    def _report(self, node_id: int, effect: FrontEffect) -> None:
        """Add what a node reports to the effects."""
        self._effects.append(NodeEffect(node_id, effect))

    def _on_connection(self, effect: OfConnection) -> None:
        pipe = self._pipes.get(effect.connection)
        administrator = self._administrators.get(effect.connection)
        if pipe is not None:
            self._to_client_node(pipe, effect)
        elif administrator is not None:
            if isinstance(effect, Reply):
                administrator += effect.data
        elif effect.connection in self._node_of:
            self._effects.append(effect)

    def _to_node(
        self, node_id: int, effect: transport.Connect | transport.Write | transport.Close
    ) -> None:
        if isinstance(effect, transport.Connect):
            self._connect(node_id, effect)
            return
        number = self._number_of.get((node_id, effect.connection))
        if number is None:
            return  # closed by the other node meanwhile
        pipe = self._pipes[number]
        if isinstance(effect, transport.Write):
            self._queue.append((pipe.server, Received(number, effect.data)))
        else:
            self._close(pipe, "closed by the other node")

    # -- connections between nodes

    def cut(self) -> None:
        """Close the connections between isolated nodes and others."""
        for pipe in list(self._pipes.values()):
            if self._is_cut(pipe.client, pipe.server):
                self._close(pipe, "isolated")

    def _is_cut(self, one: int, other: int) -> bool:
        return one != other and not self.isolated.isdisjoint((one, other))

    def _connect(self, node_id: int, effect: transport.Connect) -> None:
        server = self._listeners.get((effect.host, effect.port))
        if server is None or server[0] not in self._running or self._is_cut(node_id, server[0]):
            lost = transport.ConnectionLost(effect.connection, "connection refused")
            self._queue.append((node_id, lost))
            return
        self._count -= 1  # negative: no number that the caller chooses
        pipe = _Pipe(self._count, node_id, effect.connection, server[0])
        self._pipes[pipe.number] = pipe
        self._number_of[node_id, effect.connection] = pipe.number
        self._queue.append((pipe.server, Accepted(server[1], pipe.number, HOST)))
        self._queue.append((node_id, transport.ConnectionMade(effect.connection)))

    def _to_client_node(self, pipe: _Pipe, effect: OfConnection) -> None:
        """Carry out what the server of a pipe does.

        It never has more than one request to read, so pausing changes nothing.
        """
        match effect:
            case Reply():
                event = transport.BytesReceived(pipe.connection, effect.data)
                self._queue.append((pipe.client, event))
            case AwaitDrain():
                self._queue.append((pipe.server, Drained(pipe.number)))
            case Close():
                self._close(pipe, effect.reason)

    def _close(self, pipe: _Pipe, reason: str) -> None:
        """Close a pipe; both nodes, if they run, see that."""
        del self._pipes[pipe.number]
        del self._number_of[pipe.client, pipe.connection]
        self._queue.append((pipe.server, Disconnected(pipe.number)))
        self._queue.append((pipe.client, transport.ConnectionLost(pipe.connection, reason)))
