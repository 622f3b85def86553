"""The connections from one broker to another before 2.8: their effects and events.

A number of a connection is chosen by the cluster, never reused, and not that of a client.
"""

from __future__ import annotations

from typing import NamedTuple


class OpenBrokerConnection(NamedTuple):
    """Connect to a broker: raise `BrokerConnectionOpened`, or `BrokerConnectionClosed`."""

    connection: int
    node_id: int


class SendToBroker(NamedTuple):
    """Send a request frame to another broker."""

    connection: int
    data: bytes


class CloseBrokerConnection(NamedTuple):
    """Close a connection to another broker; no event follows."""

    connection: int


BrokerConnectionEffect = OpenBrokerConnection | SendToBroker | CloseBrokerConnection


class BrokerConnectionOpened(NamedTuple):
    """A connection to another broker is open: follows `OpenBrokerConnection`."""

    connection: int


class ReceivedFromBroker(NamedTuple):
    """Bytes arrived on a connection to another broker; they may be split anywhere."""

    connection: int
    data: bytes


class BrokerConnectionClosed(NamedTuple):
    """A connection to another broker was closed by that broker, or never opened."""

    connection: int


BrokerConnectionEvent = BrokerConnectionOpened | ReceivedFromBroker | BrokerConnectionClosed
