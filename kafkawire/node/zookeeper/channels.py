"""The channels between brokers, by number, and their connections.

An event of a connection that its channel has given up is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from ..broker_connections import (
    BrokerConnectionClosed,
    BrokerConnectionEvent,
    BrokerConnectionOpened,
    ReceivedFromBroker,
)
from .channel import BrokerChannel
from .context import BrokerChannelDue, ZooKeeperContext


class BrokerChannels:
    """All channels of a cluster: those of the controller, and of brokers that stop."""

    def __init__(self, context: ZooKeeperContext) -> None:
        self._context = context
        self._channels: dict[int, BrokerChannel] = {}
        self._connections: dict[int, BrokerChannel] = {}
        self._numbers = count(1)
        self._connection_numbers = count(1)

    def __len__(self) -> int:
        """Return the number of channels."""
        return len(self._channels)

    def add(self, source: int, target: int) -> BrokerChannel:
        """Return a new channel from one broker to another."""
        channel = BrokerChannel(self._context, self, source, target)
        self._channels[channel.number] = channel
        return channel

    def remove(self, channel: BrokerChannel) -> None:
        """Close a channel and drop its requests."""
        channel.close()
        del self._channels[channel.number]

    def channel(self) -> int:
        """Return the number of a new channel."""
        return next(self._numbers)

    def connection(self, channel: BrokerChannel) -> int:
        """Return the number of a new connection of a channel."""
        number = next(self._connection_numbers)
        self._connections[number] = channel
        return number

    def forget(self, connection: int) -> None:
        """Forget a connection that is closed."""
        del self._connections[connection]

    def handle(self, event: BrokerConnectionEvent, now: float) -> None:
        """Pass an event of a connection to its channel."""
        channel = self._connections.get(event.connection)
        if channel is not None:
            _HANDLERS[type(event)](self, channel, event, now)

    def _opened(self, channel: BrokerChannel, _event: BrokerConnectionOpened, now: float) -> None:
        channel.opened(now)

    def _received(self, channel: BrokerChannel, event: ReceivedFromBroker, now: float) -> None:
        channel.received(event.data, now)

    def _closed(self, channel: BrokerChannel, event: BrokerConnectionClosed, now: float) -> None:
        self.forget(event.connection)
        channel.lost(now)

    def due(self, due: BrokerChannelDue, now: float) -> None:
        """Handle the deadline of a channel."""
        channel = self._channels.get(due.channel)
        if channel is not None:
            channel.due(now)


Handler = Callable[[BrokerChannels, BrokerChannel, Any, float], None]
_HANDLERS: Final[Mapping[type[BrokerConnectionEvent], Handler]] = {
    BrokerConnectionOpened: BrokerChannels._opened,
    ReceivedFromBroker: BrokerChannels._received,
    BrokerConnectionClosed: BrokerChannels._closed,
}
