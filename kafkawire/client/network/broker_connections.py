"""Keeps the connections to all brokers, and chooses among them.

One connection per broker and purpose; a connection id belongs to at most one of them.

    Broker, Purpose ─▶ to ─▶ BrokerConnection ◀─ by_id ◀─ connection id of an event
                              ▲ least_loaded
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...errors import LocalProtocolError
from ..cluster import Broker
from ..requests import Reason
from .backoff import Rng
from .broker_connection import (
    BrokerConnection,
    BrokerConnectionEffect,
    BrokerConnectionKey,
    Purpose,
    Randomness,
)
from .settings import NetworkSettings
from .transport import Connect


class BrokerConnections:
    """The broker connections of one network."""

    def __init__(self, settings: NetworkSettings, randomness: Randomness) -> None:
        self._settings = settings
        self._randomness = randomness
        self._by_key: dict[BrokerConnectionKey, BrokerConnection] = {}
        self._by_id: dict[int, BrokerConnection] = {}

    def __iter__(self) -> Iterator[BrokerConnection]:
        return iter(list(self._by_key.values()))

    def to(self, broker: Broker, purpose: Purpose) -> BrokerConnection:
        """Return the connection to a broker; a new one is not connected yet."""
        key = BrokerConnectionKey(broker.node_id, purpose)
        connection = self._by_key.get(key)
        if connection is None:
            settings = self._settings
            connection = self._by_key[key] = BrokerConnection(
                key,
                broker,
                settings.connection,
                settings.reconnect,
                settings.idle_s,
                self._randomness,
            )
        return connection

    def to_all(self, brokers: Iterable[Broker]) -> list[BrokerConnection]:
        """Return connections to these brokers, for the choice of the least loaded."""
        return [self.to(broker, Purpose.DATA) for broker in brokers]

    def by_id(self, number: int) -> BrokerConnection | None:
        """Return the broker connection with that connection id; None if it was closed."""
        return self._by_id.get(number)

    def on_connect(self, effect: Connect) -> None:
        """Remember whose connection attempt this is."""
        for purpose in Purpose:
            connection = self._by_key.get(BrokerConnectionKey(effect.node, purpose))
            if connection is not None and _has_id(connection, effect.connection):
                self._by_id[effect.connection] = connection
                return
        raise LocalProtocolError(f"connection {effect.connection} has no broker connection")

    def on_closed(self) -> None:
        """Forget the ids of connections that are closed."""
        self._by_id = {
            number: connection
            for number, connection in self._by_id.items()
            if _has_id(connection, number)
        }

    def prune(self, brokers: Mapping[int, Broker], now: float) -> Iterator[BrokerConnectionEffect]:
        """Close connections to brokers that moved or left; to bootstrap servers when idle."""
        for key, connection in list(self._by_key.items()):
            broker = brokers.get(key.node)
            moved = broker is not None and (broker.host, broker.port) != (
                connection.broker.host,
                connection.broker.port,
            )
            removed = broker is None and key.purpose is Purpose.DATA
            if moved or (removed and (key.node >= 0 or connection.load == 0)):
                del self._by_key[key]
                yield from connection.close(
                    Reason.DISCONNECTED, "the broker moved or left the cluster", now
                )


def _has_id(connection: BrokerConnection, number: int) -> bool:
    return connection.connection is not None and connection.connection.number == number


def least_loaded(
    candidates: Sequence[BrokerConnection], now: float, rng: Rng
) -> BrokerConnection | None:
    """Choose the least loaded node, as Kafka's NetworkClient does.

    First a connected one with nothing in flight, then the connected one with the fewest requests
    in flight, then one that is connecting, then one that may be connected to; never one in backoff.
    The search starts at a random broker, so that clients spread.
    """
    if not candidates:
        return None
    start = int(rng() * len(candidates))
    rotated = [*candidates[start:], *candidates[:start]]
    ready = [candidate for candidate in rotated if candidate.ready(now)]
    if ready:
        return min(ready, key=lambda candidate: candidate.load)
    for candidate in rotated:
        if candidate.connecting:
            return candidate
    for candidate in rotated:
        if candidate.may_connect(now):
            return candidate
    return None
