"""The connections between the nodes of a cluster in one process: queues in memory.

What a node sends to another one arrives at the same time, in order, unless one of them is isolated.

    Connect, Write, Close ─▶ Link ─▶ Accepted, Received, Disconnected      (client to server)
    BytesReceived, ConnectionLost ◀─ Link ◀─ Reply, Close                  (server to client)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..broker import (
    AwaitDrain,
    Close,
    Disconnected,
    Drained,
    FlowControl,
    Received,
    Reply,
)
from ..client.network import transport
from .front.front import Accepted, Event

HOST: Final = "127.0.0.1"
"""The address that nodes have for each other."""
Address = tuple[str, int]
OfConnection = Reply | Close | FlowControl
Queue = deque[tuple[int, Event]]
"""Nodes, and the events that they are to handle."""


class LinkOpened(NamedTuple):
    """A node has connected to another one. number: of the connection; address: of the listener."""

    number: int
    address: Address


class LinkCarried(NamedTuple):
    """Bytes that one node sent to another one. to_server: whether the one that connected did."""

    number: int
    to_server: bool
    data: bytes


class LinkClosed(NamedTuple):
    """The connection between two nodes is closed."""

    number: int


LinkEffect = LinkOpened | LinkCarried | LinkClosed


@dataclass(slots=True)
class _Link:
    """A connection between two nodes. connection: its number at the client; `number` at the server.

    Both are open until one side closes it.
    """

    number: int
    client: int
    connection: int
    server: int


class Links:
    """The connections between nodes. What arrives is put into `queue`.

    listeners: address -> node and name. numbers: of connections at their servers. running: the
    nodes that run. isolated: the nodes that reach no others; `isolate` changes it. observed:
    whether there are effects.
    """

    def __init__(
        self,
        listeners: Mapping[Address, tuple[int, str]],
        numbers: Iterator[int],
        running: Container[int],
        queue: Queue,
        observed: bool,
    ) -> None:
        self.isolated: frozenset[int] = frozenset()
        self.effects: list[LinkEffect] = []
        """What connections have carried, if they are observed; `take_effects` takes it."""
        self._listeners = listeners
        self._numbers = numbers
        self._running = running
        self._queue = queue
        self._observed = observed
        self._links: dict[int, _Link] = {}
        self._number_of: dict[tuple[int, int], int] = {}
        """(node, connection at the client) -> the number of the link."""

    def __contains__(self, number: object) -> bool:
        return number in self._links

    def from_client(
        self, node_id: int, effect: transport.Connect | transport.Write | transport.Close
    ) -> None:
        """Carry out what the client of a connection does."""
        if isinstance(effect, transport.Connect):
            self._connect(node_id, effect)
            return
        number = self._number_of.get((node_id, effect.connection))
        if number is None:
            return  # closed by the other node meanwhile
        link = self._links[number]
        if isinstance(effect, transport.Write):
            data = effect.data
            self._queue.append((link.server, Received(number, data)))
            self._observe(LinkCarried(number, True, data))
        else:
            self._close(link, "closed by the other node")

    def from_server(self, effect: OfConnection) -> None:
        """Carry out what the server of a connection does.

        It never has more than one request to read, so pausing changes nothing.
        """
        link = self._links[effect.connection]
        match effect:
            case Reply():
                for buffer in effect.buffers:
                    event = transport.BytesReceived(link.connection, buffer)
                    self._queue.append((link.client, event))
                if self._observed:
                    self._observe(LinkCarried(link.number, False, effect.data))
            case AwaitDrain():
                self._queue.append((link.server, Drained(link.number)))
            case Close():
                self._close(link, effect.reason)

    def _connect(self, node_id: int, effect: transport.Connect) -> None:
        address = (effect.host, effect.port)
        server, listener = self._listeners.get(address, (-1, ""))
        if server not in self._running or self._is_cut(node_id, server):
            lost = transport.ConnectionLost(effect.connection, "connection refused")
            self._queue.append((node_id, lost))
            return
        link = _Link(next(self._numbers), node_id, effect.connection, server)
        self._links[link.number] = link
        self._number_of[node_id, effect.connection] = link.number
        self._observe(LinkOpened(link.number, address))
        self._queue.append((server, Accepted(listener, link.number, HOST)))
        self._queue.append((node_id, transport.ConnectionMade(effect.connection)))

    def take_effects(self) -> list[LinkEffect]:
        """Return what connections have carried since the last call, if they are observed."""
        effects, self.effects = self.effects, []
        return effects

    # -- the end of connections

    def isolate(self, nodes: frozenset[int]) -> None:
        """Let these nodes reach no others, and only these."""
        self.isolated = nodes
        for link in list(self._links.values()):
            if self._is_cut(link.client, link.server):
                self._close(link, "isolated")

    def _is_cut(self, one: int, other: int) -> bool:
        return one != other and not self.isolated.isdisjoint((one, other))

    def end(self, node_id: int, reason: str) -> None:
        """Close all connections of a node that has ended."""
        for link in list(self._links.values()):
            if node_id in (link.client, link.server):
                self._close(link, reason)

    def _close(self, link: _Link, reason: str) -> None:
        """Close a connection; both nodes, if they run, see that."""
        del self._links[link.number]
        del self._number_of[link.client, link.connection]
        self._queue.append((link.server, Disconnected(link.number)))
        self._queue.append((link.client, transport.ConnectionLost(link.connection, reason)))
        self._observe(LinkClosed(link.number))

    def _observe(self, effect: LinkEffect) -> None:
        if self._observed:
            self.effects.append(effect)
