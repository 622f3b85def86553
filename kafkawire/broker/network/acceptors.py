"""Accepts connections, one after the other at each listener, as Kafka's acceptors.

The first one waits while `max.connections` are open, or where more than
`max.connection.creation.rate` come (KIP-612); those behind it until it is accepted. The caller
reads nothing of them. The listener between brokers does not wait for the others: for a
connection to it, the least recently used one to another listener is closed.

    Connected ─▶ waiting ─▶ delay by the rate ─▶ slot ─▶ accepted

Both limits are of the listener, and of all listeners together: the slots are those of brokers, or
those of controllers; the rate is of both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from ..configs import Settings
from ..context import Context
from ..effects import PauseAccepting, ResumeAccepting
from ..events import AcceptDue
from .connection import Connection
from .connections import Connections
from .rates import Rate

MAX_CONNECTIONS: Final = "max.connections"
CREATION_RATE: Final = "max.connection.creation.rate"
WINDOW: Final = "quota.window.size.seconds"


@dataclass(slots=True)
class Acceptor:
    """The connections to one listener that wait, in order.

    rate: of connections that came first. due: when the first one may be accepted, if there is a
    slot.
    """

    rate: Rate
    waiting: deque[Connection] = field(default_factory=deque)
    due: float = 0.0


def new_rate(settings: Settings) -> Rate:
    """Return a rate of connections."""
    return Rate(settings.number("quota.window.num"), settings.number(WINDOW) * 1000)


@dataclass(slots=True)
class ConnectionQuotas:
    """What all listeners of a node share, those of brokers and those of controllers.

    protected: the listener between brokers, where others have another one. rate: of connections to
    the others. throttle_ms: counts a connection of an address; None where addresses have no quotas.
    """

    protected: str | None
    rate: Rate
    throttle_ms: Callable[[str, float], int] | None = None


class Acceptors:
    """The acceptors of all listeners.

    accepted: serves a connection that has its slot.
    """

    def __init__(
        self,
        context: Context,
        connections: Connections,
        accepted: Callable[[Connection, float], None],
        quotas: ConnectionQuotas,
    ) -> None:
        self._context = context
        self._settings = context.settings
        self._connections = connections
        self._accepted = accepted
        self._quotas = quotas
        self._by_listener: dict[str, Acceptor] = {}

    def add(self, connection: Connection, now: float) -> None:
        """Accept a connection, or let it wait."""
        listener = connection.listener
        acceptor = self._by_listener.get(listener)
        if acceptor is None:
            acceptor = self._by_listener[listener] = Acceptor(new_rate(self._settings))
        acceptor.waiting.append(connection)
        if len(acceptor.waiting) == 1:
            self._begin(listener, acceptor, now)
            self.accept(listener, now)
        if acceptor.waiting:
            connection.waiting = True
            self._context.emit(PauseAccepting(connection.id))

    def accept(self, listener: str, now: float) -> None:
        """Accept the connections to a listener that have a slot."""
        acceptor = self._by_listener[listener]
        while acceptor.waiting and acceptor.due <= now and self._has_slot(listener):
            connection = acceptor.waiting.popleft()
            if acceptor.waiting:
                self._begin(listener, acceptor, now)
            if connection.closing:  # it has ended meanwhile
                continue
            if connection.waiting:
                connection.waiting = False
                self._context.emit(ResumeAccepting(connection.id))
            self._accepted(connection, now)

    def look_again(self) -> None:
        """Let those that wait be accepted soon, if they may: a slot is free, or limits differ."""
        for listener, acceptor in self._by_listener.items():
            if acceptor.waiting:
                self._context.deadlines.set(AcceptDue(listener), acceptor.due)

    def excess(self) -> list[Connection]:
        """Return what to close where more connections than `max.connections` are open."""
        count = self._connections.open - self._settings.number(MAX_CONNECTIONS)
        return (
            self._connections.least_recently_used(count, self._quotas.protected)
            if count > 0
            else []
        )

    def _begin(self, listener: str, acceptor: Acceptor, now: float) -> None:
        """Count the first connection that waits, and delay it if there were too many."""
        settings, now_ms = self._settings, int(now * 1000)
        own = settings.own_of_listener(listener, CREATION_RATE)
        measured = [(acceptor.rate, inf if own is None else int(own))]
        if listener != self._quotas.protected:
            measured.append((self._quotas.rate, settings.number(CREATION_RATE)))
        longest_ms = settings.number(WINDOW) * 1000
        throttle_ms = 0
        for rate, most in measured:
            rate.record(1, now_ms)
            delay_ms = rate.throttle_ms(most, now_ms) if most else longest_ms
            throttle_ms = max(throttle_ms, min(delay_ms, longest_ms))
        acceptor.due = now + throttle_ms / 1000
        if throttle_ms:
            self._context.deadlines.set(AcceptDue(listener), acceptor.due)

    def _has_slot(self, listener: str) -> bool:
        """Whether a listener may have one more connection."""
        connections, settings = self._connections, self._settings
        own = settings.own_of_listener(listener, MAX_CONNECTIONS)
        if own is not None and connections.open_to(listener) >= int(own):
            return False
        if listener == self._quotas.protected:
            return True
        return connections.open < settings.number(MAX_CONNECTIONS)
