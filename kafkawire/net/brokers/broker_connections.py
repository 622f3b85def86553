"""The connections between the brokers of a cluster: sockets to its own listeners.

They are connections like those of clients, to whoever captures or records them; what is sent
on them, and when they are opened and closed, the cluster decides.

    OpenBrokerConnection ─▶ socket ─▶ BrokerConnectionOpened, ReceivedFromBroker
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ...broker import Endpoint
from ...node.broker_connections import (
    BrokerConnectionClosed,
    BrokerConnectionEvent,
    BrokerConnectionOpened,
    CloseBrokerConnection,
    OpenBrokerConnection,
    ReceivedFromBroker,
    SendToBroker,
)


class BrokerConnections:
    """The open connections, by number. handle: called with events."""

    def __init__(
        self, endpoints: Sequence[Endpoint], handle: Callable[[BrokerConnectionEvent], None]
    ) -> None:
        self._endpoints: Mapping[int, Endpoint] = {each.node_id: each for each in endpoints}
        self._handle = handle
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._open: dict[int, _BrokerConnection] = {}

    def perform(self, effect: object) -> None:
        """Carry out an effect between brokers; ignore others."""
        match effect:
            case OpenBrokerConnection():
                task = asyncio.get_running_loop().create_task(self._connect(effect))
                self._connecting[effect.connection] = task
            case SendToBroker():
                self._open[effect.connection].transport.write(effect.data)
            case CloseBrokerConnection():
                self._close(effect.connection)

    async def _connect(self, effect: OpenBrokerConnection) -> None:
        """Connect; the machine gets the outcome as an event."""
        number, endpoint = effect.connection, self._endpoints[effect.node_id]
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                lambda: _BrokerConnection(self, number), endpoint.host, endpoint.port
            )
        except OSError:
            del self._connecting[number]
            self._handle(BrokerConnectionClosed(number))
            return
        del self._connecting[number]
        if connection.transport.is_closing():
            self._handle(BrokerConnectionClosed(number))
            return
        self._open[number] = connection
        self._handle(BrokerConnectionOpened(number))

    def _close(self, number: int) -> None:
        connecting = self._connecting.pop(number, None)
        if connecting is not None:
            connecting.cancel()
        opened = self._open.pop(number, None)
        if opened is not None:
            opened.transport.close()

    def close(self) -> None:
        """Close all connections; no event follows."""
        for number in [*self._connecting, *self._open]:
            self._close(number)

    def received(self, number: int, data: bytes) -> None:
        """Handle bytes from a broker."""
        if number in self._open:
            self._handle(ReceivedFromBroker(number, data))

    def lost(self, number: int) -> None:
        """Handle the end of a connection that the other broker has closed."""
        if self._open.pop(number, None) is not None:
            self._handle(BrokerConnectionClosed(number))


class _BrokerConnection(asyncio.Protocol):
    """One connection to a broker."""

    transport: asyncio.Transport

    def __init__(self, owner: BrokerConnections, number: int) -> None:
        self._owner = owner
        self._number = number

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._owner.received(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._owner.lost(self._number)
