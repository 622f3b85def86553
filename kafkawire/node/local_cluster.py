"""Runs the nodes of a cluster in one process, as one machine: their links are queues in memory.

What a node sends to another one arrives at the same time, in order. A node that is killed loses
what is not on its disks, and its connections; started again, it reads its disks.

    Connected, Received, ... ─▶ NodeFront of that node ─▶ Reply, Close, ... ─▶ the client
                                    └─ Connect, Write ─▶ Links ─▶ NodeFront of another node
"""

# over 300 lines: one machine, with what its nodes return for clients and for each other

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Final, NamedTuple, get_args

from ..broker import (
    Close,
    Connected,
    Disconnected,
    Fault,
    FlowControl,
    Received,
    Reply,
    Report,
)
from ..broker.deadlines import Deadlines
from ..client.network import transport
from ..metadata import MetadataImage
from .broker_connections import BrokerConnectionEffect
from .effects import Stopped
from .events import ShutdownRequested
from .front.front import Accepted, ClientEvent, NodeFront
from .front.front import Effect as FrontEffect
from .front.front import Event as FrontEvent
from .front.options import DEFAULT, FrontOptions
from .lifecycle import BrokerState
from .links import LinkEffect, Links, OfConnection, Queue
from .local_node import (
    Isolated,
    Killed,
    LocalNode,
    NodeEvent,
    NodeStarted,
    RunningNode,
    ShutDown,
)
from .node import Node
from .operator_requests import OperatorRequest, OperatorRequests, OperatorResponse
from .quorum.controller_server import Randomness

__all__ = [
    "CONTROLLER_ID",
    "ClusterEvent",
    "Effect",
    "Isolated",
    "Killed",
    "LocalCluster",
    "NodeEffect",
    "NodeStarted",
    "ShutDown",
]
CONTROLLER_ID: Final = 3000
"""The id of a node that is only a controller, as in the examples of Kafka."""


class NodeEffect(NamedTuple):
    """What a node reports, besides what is for a client: `Published`, `Stopped`, ..."""

    node_id: int
    effect: FrontEffect | BrokerConnectionEffect


ClusterEvent = Connected | ClientEvent | NodeEvent | OperatorRequest
ToNode = transport.Connect | transport.Write | transport.Close
Effect = OfConnection | Report | NodeEffect | OperatorResponse | LinkEffect


class LocalCluster:
    """The nodes of a cluster, driven by `handle`, `next_deadline` and `advance`.

    new_uuid: returns 16 random bytes. options: of each node. faults: to inject into requests of
    clients, of all nodes. observes_links: whether the effects have what nodes send each other.
    """

    def __init__(
        self,
        nodes: Iterable[LocalNode],
        rng: Randomness,
        new_uuid: Callable[[], bytes],
        options: FrontOptions = DEFAULT,
        *,
        observes_links: bool = False,
    ) -> None:
        self.nodes = {each.config.node_id: each for each in nodes}
        self.faults: list[Fault] = []
        self._rng = rng
        self._new_uuid = new_uuid
        self._options = options
        self._running: dict[int, RunningNode] = {}
        self._node_of: dict[int, int] = {}
        """Connection of a client -> its node."""
        self._queue: Queue = deque()
        self._effects: list[Effect] = []
        self._deadlines: Deadlines[int] = Deadlines()
        listeners = {
            (listener.host, listener.port): (node_id, listener.name)
            for node_id, node in self.nodes.items()
            for listener in node.config.node_listeners
        }
        numbers = count(-1, -1)  # negative: no number that the caller chooses
        self._links = Links(listeners, numbers, self._running, self._queue, observes_links)
        self._operator = OperatorRequests(numbers, self._queue)

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
        return [self.front(node_id).broker.metadata.image for node_id in self._reachable()]

    def is_published(self) -> bool:
        """Whether the replicas of these brokers have all that these know."""
        brokers = (self.front(each).machines.node.parts.broker for each in self._reachable())
        return all(each is None or not each.is_publishing for each in brokers)

    def _reachable(self) -> list[int]:
        """List the brokers that run and are not isolated."""
        return [
            node_id
            for node_id in self._running
            if self.nodes[node_id].config.is_broker and node_id not in self._links.isolated
        ]

    # -- the machine

    def start(self, now: float) -> list[Effect]:
        """Start all nodes."""
        for node_id in self.nodes:
            self._start(node_id, now)
        return self._finish(now)

    def handle(self, event: ClusterEvent, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out.

        Raises what `Node` raises if one cannot start, UnsupportedVersion for an OperatorRequest.
        """
        if isinstance(event, Received) and not self._queue:  # most are, and nothing is before it
            node_id = self._node_of.get(event.connection)
            if node_id is not None:
                self._handle_on(node_id, event, now)
        else:
            self._dispatch(event, now)
        return self._finish(now)

    def _dispatch(self, event: ClusterEvent, now: float) -> None:
        """Carry out an event of the operator, queue one for a node."""
        match event:
            case Connected():
                self._accept(event)
            case NodeStarted():
                self._start(event.node_id, now)
            case ShutDown():
                self._queue.append((event.node_id, ShutdownRequested()))
            case Killed():
                self._end(event.node_id, "the node was killed")
            case Isolated():
                self._links.isolate(event.node_ids)
            case OperatorRequest():
                self._operate(event)
            case Disconnected():
                self._client_event(event)
                node_id = self._node_of.pop(event.connection, None)
                if node_id is not None:
                    self._running[node_id].clients.discard(event.connection)
            case _:
                self._client_event(event)

    def _accept(self, event: Connected) -> None:
        running = self._running.get(event.node_id)
        if running is None:
            self._effects.append(Close(event.connection, f"node {event.node_id} does not run"))
            return
        running.clients.add(event.connection)
        self._node_of[event.connection] = event.node_id
        listener = event.listener or running.front.config.broker_listeners[-1].name
        self._queue.append((event.node_id, Accepted(listener, event.connection, event.host)))

    def _client_event(self, event: ClientEvent) -> None:
        """Queue an event of a connection, unless its node has ended."""
        node_id = self._node_of.get(event.connection)
        if node_id is not None:
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
                self._take(node_id, running.advance(now))
                self._set_deadline(node_id)
                self._run(now)  # so a heartbeat arrives before the session ends
        return self._finish(now)

    def _finish(self, now: float) -> list[Effect]:
        """Handle what is queued; return the effects."""
        if self._queue:
            self._run(now)
        effects, self._effects = self._effects, []
        if self._links.effects:
            effects += self._links.take_effects()
        return effects

    def _run(self, now: float) -> None:
        queue = self._queue
        while queue:
            node_id, event = queue.popleft()
            self._handle_on(node_id, event, now)

    def _handle_on(self, node_id: int, event: FrontEvent, now: float) -> None:
        """Let a node handle an event, if it runs."""
        running = self._running.get(node_id)
        if running is not None:
            effects = running.handle(event, now)
            if effects:
                self._take(node_id, effects)
            if node_id in self._running:
                self._deadlines.set(node_id, running.next_deadline())

    def _operate(self, request: OperatorRequest) -> None:
        """Send a request of the operator to a broker that reaches the others."""
        reachable = self._reachable()
        if reachable:
            self._operator.send(request, self.front(reachable[0]))
        else:
            self._effects.append(OperatorResponse(request.number, None))

    def _set_deadline(self, node_id: int) -> None:
        running = self._running.get(node_id)
        self._deadlines.set(node_id, None if running is None else running.next_deadline())

    # -- nodes

    def _start(self, node_id: int, now: float) -> None:
        local = self.nodes[node_id]
        node = Node(local.config, local.disks, self._rng, self._new_uuid, now)
        front = NodeFront(
            node, local.config, self._new_uuid, self._rng.random, self._options, self.faults
        )
        local.starts += 1
        running = self._running[node_id] = RunningNode(local, front)
        self._take(node_id, running.start(now))
        self._set_deadline(node_id)

    def _end(self, node_id: int, reason: str) -> None:
        """Close all connections of a node that has ended."""
        running = self._running.pop(node_id, None)
        if running is None:
            return
        self._deadlines.set(node_id, None)
        for connection in running.clients:
            del self._node_of[connection]
            self._effects.append(Close(connection, reason))
        self._effects += self._operator.end(node_id)
        self._links.end(node_id, reason)

    # -- effects of nodes

    def _take(self, node_id: int, effects: Iterable[FrontEffect]) -> None:
        clients, taken = self._node_of, self._effects
        for effect in effects:
            if isinstance(effect, Reply) and effect.connection in clients:  # most are
                taken.append(effect)
                continue
            take = _TAKE.get(type(effect))
            if take is not None:
                take(self, node_id, effect)
                continue
            self._report(node_id, effect)
            if isinstance(effect, Stopped):
                self._end(node_id, effect.failure or "the node has stopped")
                return

    def _report(self, node_id: int, effect: FrontEffect) -> None:
        """Add what a node reports to the effects."""
        self._effects.append(NodeEffect(node_id, effect))

    def _to_node(self, node_id: int, effect: ToNode) -> None:
        self._links.from_client(node_id, effect)

    def _on_request(self, _node_id: int, effect: Report) -> None:
        if effect.request.connection > 0:  # that of a client
            self._effects.append(effect)

    def _on_connection(self, _node_id: int, effect: OfConnection) -> None:
        number = effect.connection
        if number in self._node_of:
            self._effects.append(effect)
        elif number in self._links:
            self._links.from_server(effect)
        elif number in self._operator:
            self._effects += self._operator.handle(effect)


_TAKE: Final[Mapping[type, Callable[[LocalCluster, int, Any], None]]] = {
    **dict.fromkeys((Reply, Close, *get_args(FlowControl)), LocalCluster._on_connection),
    **dict.fromkeys((transport.Connect, transport.Write, transport.Close), LocalCluster._to_node),
    Report: LocalCluster._on_request,
}
"""What is done with the effects of a node that are for connections; others are reported."""
