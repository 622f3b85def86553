"""Connections of clients and nodes to nodes, over the links of a `Network`.

Bytes arrive late, whole and in order; on a link that is cut they wait until it is not. When a
process ends, its connections are closed, and the other ends get to know after a while.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kafkawire.broker import AwaitDrain, Close, Disconnected, Drained, Received, Reply
from kafkawire.client.network import transport
from kafkawire.node import Node
from kafkawire.node.front.front import Accepted, NodeFront
from kafkawire.node.parts import Parts
from kafkawire.primitives import Message

from ..network import CLIENT, REQUEST_TIMEOUT, Callback, Machine, Network, Process
from .exchanges import Exchanges

HOST: Final = "127.0.0.1"


class ServingNode(NodeFront):
    """A node with its clients."""

    @property
    def parts(self) -> Parts:
        """The parts of the node."""
        return self.machines.node.parts


class OfNode(NamedTuple):
    """A connection of a node to another. own: its number; each incarnation begins anew."""

    node: int
    incarnation: int
    own: int


@dataclass
class Connection:
    """A connection. number: at its server. own: its number at the node that connected.

    incarnations: those of the client's and of the server's process.
    """

    number: int
    client: int
    server: int
    incarnations: tuple[int, int]
    own: int = 0
    exchanges: Exchanges | None = None
    accepted: bool = False
    is_open: bool = True
    arrivals: dict[bool, float] = field(default_factory=dict)
    """Whether it is to the server -> when what was sent last arrives."""

    @property
    def of_node(self) -> OfNode:
        """Return what the node that connected calls it."""
        return OfNode(self.client, self.incarnations[0], self.own)


class ConnectedNetwork(Network):
    """Processes whose nodes serve clients."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.connections: dict[int, Connection] = {}
        self._of_nodes: dict[OfNode, Connection] = {}
        self._numbers = 0
        self._paused: dict[tuple[int, int], list[Callable[[], None]]] = {}
        """(node, incarnation) of a process that is paused -> what happens then, in order."""

    def _later(self, process: Process, action: Callable[[], None]) -> bool:
        """Put off what happens to a process that is paused, in order; return whether it is."""
        who = process.config.node_id, process.incarnation
        waiting = self._paused.get(who)
        if waiting is None and process.paused_until <= self.now:
            return False
        if waiting is None:
            self._paused[who] = waiting = []
            self.at(process.paused_until, lambda: self._resume(process, who))
        waiting.append(action)
        return True

    def _resume(self, process: Process, who: tuple[int, int]) -> None:
        if process.incarnation == who[1] and process.paused_until > self.now:
            self.at(process.paused_until, lambda: self._resume(process, who))
            return
        for action in self._paused.pop(who):
            if process.incarnation == who[1]:
                action()

    def machine(self, process: Process, rng: random.Random) -> Machine:
        """Make a node that serves clients."""

        def new_uuid() -> bytes:
            return rng.getrandbits(128).to_bytes(16, "big")

        node = Node(process.config, process.disks, rng, new_uuid, self.clock(process))
        return ServingNode(node, process.config, new_uuid, rng.random)

    # -- clients

    def connect(self, target: int, listener: str = "PLAINTEXT") -> Exchanges:
        """Connect a client to a node."""
        connection = self._open(CLIENT, target, 0)
        exchanges = connection.exchanges = Exchanges(
            self,
            target,
            lambda data: self.send(connection, data),
            lambda: self.close(connection),
        )
        self._accept(connection, listener)
        return exchanges

    def request(
        self,
        source: int,
        target: int,
        listener: str,
        version: int,
        body: Message,
        callback: Callback,
        timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        """Send a request of a client on a connection of its own."""
        assert source == CLIENT
        exchanges = self.connect(target, listener)

        def responded(response: Message | None) -> None:
            exchanges.close()
            callback(response)

        exchanges.send(version, body, responded, timeout)

    def send(self, connection: Connection, data: bytes) -> None:
        """Send bytes to the server of a connection."""
        self._to_server(connection, Received(connection.number, data))

    def close(self, connection: Connection) -> None:
        """Close a connection from the side of its client."""
        if connection.is_open:
            connection.is_open = False
            self._of_nodes.pop(connection.of_node, None)
            self._to_server(connection, Disconnected(connection.number))

    # -- nodes

    def on_effect(self, process: Process, effect: Any) -> None:
        """Carry out what a node wants from its connections."""
        id = process.config.node_id
        match effect:
            case Reply():
                self._reply(effect)
            case Close():
                self._closed_by_server(self.connections.get(effect.connection))
            case AwaitDrain():
                drained = self.connections.get(effect.connection)
                if drained is not None:
                    event = Drained(effect.connection)
                    self.at(self.now, lambda: self._serve(drained, event))
            case transport.Connect():
                target, listener = self._listeners[effect.host, effect.port]
                connection = self._open(id, target, effect.connection)
                self._of_nodes[connection.of_node] = connection
                self._accept(connection, listener)
            case transport.Write() | transport.Close():
                own = OfNode(id, process.incarnation, effect.connection)
                if own not in self._of_nodes:
                    return
                if isinstance(effect, transport.Write):
                    self.send(self._of_nodes[own], effect.data)
                else:
                    self.close(self._of_nodes[own])

    def ended(self, process: Process) -> None:
        """Close the connections of a process."""
        id = process.config.node_id
        for each in list(self.connections.values()):
            if each.client == id:
                self.close(each)
            if each.server == id:
                self._closed_by_server(each)

    def _open(self, client: int, server: int, own: int) -> Connection:
        self._numbers += 1
        incarnations = [
            self.processes[each].incarnation if each != CLIENT else 0 for each in (client, server)
        ]
        connection = Connection(self._numbers, client, server, tuple(incarnations), own)  # type: ignore[arg-type]
        self.connections[connection.number] = connection
        return connection

    def _accept(self, connection: Connection, listener: str) -> None:
        def arrive() -> None:
            process = self.processes[connection.server]
            connection.incarnations = connection.incarnations[0], process.incarnation
            if process.node is None:
                self._closed_by_server(connection)
                return
            connection.accepted = True
            self._serve(connection, Accepted(listener, connection.number, HOST))
            if connection.client != CLIENT:
                self._to_client(connection, transport.ConnectionMade(connection.own))

        self._deliver(connection, True, arrive)

    def _to_server(self, connection: Connection, event: Any) -> None:
        self._deliver(connection, True, lambda: self._serve(connection, event))

    def _serve(self, connection: Connection, event: Any) -> None:
        """Let the server of a connection handle an event, unless it has ended it."""
        process = self.processes[connection.server]
        if not connection.accepted or process.incarnation != connection.incarnations[1]:
            return
        if isinstance(event, Disconnected):
            connection.accepted = False
            self.connections.pop(connection.number, None)
        self.handle(process, event)

    def _to_client(self, connection: Connection, event: Any) -> None:
        """Let the client of a connection handle an event, unless it has closed it."""

        def arrive() -> None:
            if not connection.is_open:
                return
            if isinstance(event, transport.ConnectionLost):
                connection.is_open = False
                self._of_nodes.pop(connection.of_node, None)
            if connection.exchanges is not None:
                connection.exchanges.handle(event)
                return
            process = self.processes[connection.client]
            if process.incarnation == connection.incarnations[0]:
                self.handle(process, event)

        self._deliver(connection, False, arrive)

    def _reply(self, reply: Reply) -> None:
        connection = self.connections.get(reply.connection)
        if connection is None:
            return
        if connection.exchanges is not None:
            connection.exchanges.sent(reply.data)
        self._to_client(connection, transport.BytesReceived(connection.own, reply.data))

    def _closed_by_server(self, connection: Connection | None) -> None:
        if connection is None:
            return
        self.at(self.now, lambda: self._serve(connection, Disconnected(connection.number)))
        self.connections.pop(connection.number, None)
        self._to_client(connection, transport.ConnectionLost(connection.own, "closed"))

    def _deliver(self, connection: Connection, to_server: bool, action: Callable[[], None]) -> None:
        """Do something when what is sent now arrives."""
        ends = connection.client, connection.server
        source, target = ends if to_server else ends[::-1]
        begins = max(self.now, self.blocked.get((source, target), 0.0))
        arrives = max(begins + self.delay(source, target), connection.arrivals.get(to_server, 0.0))
        connection.arrivals[to_server] = arrives
        self.at(arrives, action)
