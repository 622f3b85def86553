"""Runs a machine with clients in asyncio: its listeners, connections, timer and clock.

The machine decides and the shell carries out, also when to read from a client and when to close its
connection. While requests are queued the machine's deadline is in the past, so sockets are
polled between its time slices. Where many sockets are readable at once, deadlines are handled
between them, too: a heartbeat does not wait for the requests of all clients.

    socket ─▶ Received ─▶ machine ─▶ Reply ─▶ socket
    one timer: next_deadline() ─▶ advance()
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from abc import abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...broker import (
    AwaitDrain,
    Close,
    Disconnected,
    PauseAccepting,
    PauseReading,
    Reply,
    Report,
    ResumeAccepting,
    ResumeReading,
)
from ...display import host_and_port
from ...protocol.json_form import uuid_text
from ..scoped import Scoped
from .acceptor import Acceptor
from .timer import Timer
from .transport import ClientEvent, Listener, ServerConnection

if TYPE_CHECKING:
    import random

    from .recording import Recording

BACKLOG: Final = 1024
"""Clients that may wait until they are accepted."""
MOST_LATE_SECONDS: Final = 0.05
"""How late a deadline may be handled because more sockets are readable."""
FLOW_CONTROL: Final[Mapping[type, Callable[[ServerConnection], None]]] = {
    AwaitDrain: ServerConnection.await_drain,
    PauseAccepting: ServerConnection.await_slot,
    ResumeAccepting: ServerConnection.take_slot,
    PauseReading: ServerConnection.pause,
    ResumeReading: ServerConnection.resume,
}
"""What effects of flow control do with the connection that they name."""


def bound(host: str, port: int) -> socket.socket:
    """Bind a socket of a listener. port 0: any. Raises OSError, whose filename is the address."""
    try:
        return socket.create_server((host, port), family=_family(host), backlog=BACKLOG)
    except OSError as error:
        # its number may be one of getaddrinfo, which os.strerror does not know
        reason = str(error.strerror).partition(" (while attempting")[0]
        raise OSError(error.errno, reason, host_and_port(host, port)) from None


def reserved(host: str, port: int) -> socket.socket:
    """Bind a socket that does not listen: clients are refused, and nobody is given the port.

    Raises OSError if another process listens there.
    """
    sock = socket.socket(_family(host))
    try:
        if os.name == "posix":  # what is left of connections does not prevent it
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def random_uuid(rng: random.Random) -> bytes:
    """Return a random UUID whose text does not begin with `-`, as an option of a command does."""
    while True:
        drawn = uuid.UUID(int=rng.getrandbits(128), version=4).bytes
        if not uuid_text(drawn).startswith("-"):
            return drawn


class Machine(Protocol):
    """What a shell needs of its machine, besides the events that it handles."""

    def next_deadline(self) -> float | None: ...
    def advance(self, now: float) -> Iterable[Any]: ...


@dataclass(frozen=True, slots=True)
class Observers:
    """Who observes the connections of clients.

    on_report: called with each request and its response. on_close: called with each connection that
    the broker closes, and the reason. recording: of the traffic.
    """

    on_report: Callable[[Report], None] | None = None
    on_close: Callable[[Close], None] | None = None
    recording: Recording | None = None


class Shell(Scoped):
    """The connections, the timer and the clock of a machine. Use it with `async with`.

    connections: those of clients, by number. `start_clock` comes first, then `machine` is set.
    """

    loop: asyncio.AbstractEventLoop
    machine: Machine

    def __init__(self, observers: Observers) -> None:
        self.observers = observers
        self.connections: dict[int, ServerConnection] = {}
        self._numbers = count(1)
        self._listening: dict[Listener, Acceptor] = {}
        self._timer = Timer(self._wake)
        self._started_at = 0.0
        self._advanced = 0.0

    # -- the machine

    @abstractmethod
    def handle(self, event: ClientEvent) -> None:
        """Pass an event to the machine and carry out its effects."""

    @abstractmethod
    def carry_out(self, effect: Any) -> None:
        """Carry out an effect that does not concern a connection of a client."""

    def start_clock(self) -> None:
        """Start the machine's time, on the running loop."""
        self.loop = asyncio.get_running_loop()
        self._started_at = self.loop.time()

    def now(self) -> float:
        """Return the machine's time in seconds since it started."""
        return self.loop.time() - self._started_at + self._advanced

    def advance(self, seconds: float) -> None:
        """Advance the machine's clock at once; expired deadlines are handled."""
        self._advanced += seconds
        self._wake()

    def run(self, work: Callable[[], Iterable[Any]]) -> None:
        """Let the machine do some work, and carry out the effects; then what is overdue."""
        self._carry_out_all(work())
        due = self.machine.next_deadline()
        now = self.now()
        if due is not None and now - due > MOST_LATE_SECONDS:
            self._carry_out_all(self.machine.advance(now))
            due = self.machine.next_deadline()
        self._timer.set(None if due is None else due - self._advanced + self._started_at)

    def _carry_out_all(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    self.connections[effect.connection].send(effect.buffers)
                case Report():
                    if self.observers.on_report is not None:
                        self.observers.on_report(effect)
                case Close():
                    if self.observers.on_close is not None:
                        self.observers.on_close(effect)
                    self.connections[effect.connection].close()
                case _ if type(effect) in FLOW_CONTROL:
                    FLOW_CONTROL[type(effect)](self.connections[effect.connection])
                case _:
                    self.carry_out(effect)

    def _wake(self) -> None:
        self.run(lambda: self.machine.advance(self.now()))

    # -- connections

    def opened(self, connection: ServerConnection) -> int:
        """Register a connection and return its number."""
        number = next(self._numbers)
        self.connections[number] = connection
        return number

    def is_open(self, number: int) -> bool:
        """Whether a connection is open."""
        return number in self.connections

    def lost(self, number: int) -> None:
        """Handle the end of a connection."""
        self.handle(Disconnected(number))
        del self.connections[number]

    def listen(self, listener: Listener, sock: socket.socket) -> None:
        """Listen on a socket that is bound, and accept its clients."""
        sock.listen(BACKLOG)
        self._listening[listener] = Acceptor(sock, partial(ServerConnection, self, listener))

    async def stop_listening(self, listeners: Iterable[Listener]) -> None:
        """Stop listening, where it does; all clients accepted before are in `connections` then."""
        stopping = [self._listening.pop(each) for each in listeners if each in self._listening]
        await asyncio.gather(*(each.stop() for each in stopping))

    async def abort_connections(self, listeners: Container[Listener]) -> None:
        """Close the connections of clients of these listeners at once."""
        while opened := [each for each in self.connections.values() if each.listener in listeners]:
            for each in opened:
                each.abort()
            await asyncio.sleep(0)

    async def close_connections(self) -> None:
        """Stop listening, and close all connections of clients at once."""
        await self.stop_listening(list(self._listening))
        await self.abort_connections([each.listener for each in self.connections.values()])
        self._timer.set(None)
