"""Runs one client machine on the running event loop.

Everything happens on one loop, one event after the other; one timer serves the machine's next
deadline; `close` leaves no socket open.

    socket ─▶ BytesReceived ─▶ machine ─▶ Write, Connect, Close ─▶ socket
    timer  ─▶ advance       ─▶         ─▶ other effects ─▶ `on_effect` of the Producer, ...
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic

from ...client.client import Client, UserEffect, UserEvent
from ...client.failures import ClientFailed
from ...client.network.network import CloseNetwork
from ...client.network.oauthbearer import TokenProvider
from ...client.network.transport import (
    BytesReceived,
    Close,
    Connect,
    Disconnected,
    RequestToken,
    ShellEffect,
    ShellEvent,
    Write,
)
from ..sockets.readiness import Readiness
from ..sockets.socket import CLOSE_TIMEOUT_S, Socket
from .token_requests import TokenRequests

LOG: Final = logging.getLogger("kafkawire.client")


@dataclass(frozen=True, slots=True)
class DriverFailed:
    """Effect for the client's owner: the client failed; pending calls get this error."""

    error: ClientFailed


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the clock of a loop; that of asyncio's own without a function of Python."""
    own = getattr(type(loop), "time", None) is asyncio.BaseEventLoop.time
    return time.monotonic if own else loop.time


class Driver(Generic[UserEvent, UserEffect]):
    """A machine, its sockets and its timer.

    on_effect: called with each effect that is not for the network or a socket, in order; it must
    not call back.

    An exception that escapes the machine while it handles a socket or the timer loses effects:
    the client is closed, once, and each pending call fails; a retry would repeat the error with
    every reconnect, or leave calls pending for ever.
    """

    def __init__(
        self,
        client: Client[UserEvent, UserEffect],
        on_effect: Callable[[UserEffect | DriverFailed], None],
        tls: ssl.SSLContext | None = None,
        token_provider: TokenProvider | None = None,
    ) -> None:
        self.client = client
        self._on_effect = on_effect
        self._tls = tls
        self.loop = asyncio.get_running_loop()
        self.now = clock_of(self.loop)
        """The clock of the machines."""
        self.readiness = Readiness()
        self._sockets: dict[int, Socket] = {}
        self._token_provider = token_provider
        self._tokens = TokenRequests(self.receive)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None
        self._closed = False
        self._performing = False
        self._events: deque[UserEvent | ShellEvent] = deque()

    def start(self) -> None:
        """Start the timer; what is due at once is done."""
        self._wake()

    def handle(self, event: UserEvent | ShellEvent) -> None:
        """Pass the machine an event, and perform its effects.

        A transport may report that it is full from within a write: such an event waits until the
        previous effects are performed, or a later request could overtake an earlier one.
        """
        if self._closed:
            return
        if self._performing:
            self._events.append(event)
        else:
            self.perform(self.client.handle(event, self.now()))

    def received(self, connection: int, data: bytes) -> None:
        """Pass the machine bytes of a socket."""
        if not self.client.network.extend(connection, data):
            self.receive(BytesReceived(connection, data))

    def receive(self, event: ShellEvent) -> None:
        """Pass the machine a socket event; an exception closes the client."""
        try:
            self.handle(event)
        except Exception as error:  # noqa: BLE001 - has no caller
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Close everything after an unexpected error, and report it to the owner, once."""
        if self._closed:
            return
        LOG.error("unexpected error: closing the client", exc_info=error)
        self._closed = True
        self._events.clear()
        self._set_timer(None)
        self._tokens.close()
        for socket in list(self._sockets.values()):
            socket.abort()
        failure = ClientFailed(f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        self._on_effect(DriverFailed(failure))

    def perform(self, effects: Iterable[UserEffect | ShellEffect]) -> None:
        """Perform effects, then set the timer."""
        self._performing = True
        try:
            self._do(effects)
            deadline = self.client.next_deadline()
            if deadline is not None and deadline <= self.now():
                self._do(self.client.advance(self.now()))
                deadline = self.client.next_deadline()
            while self._events:
                self._do(self.client.handle(self._events.popleft(), self.now()))
                deadline = self.client.next_deadline()
        finally:
            self._performing = False
        self._set_timer(deadline)

    def _do(self, effects: Iterable[UserEffect | ShellEffect]) -> None:
        """Perform the effects on sockets, then those for the owner: the brokers need not wait."""
        others: list[UserEffect] = []
        for effect in effects:
            match effect:
                case Write():
                    self._sockets[effect.connection].write(effect.buffers)
                case Connect():
                    self._sockets[effect.connection] = Socket(
                        self, effect, self._tls, self.readiness
                    )
                case Close():
                    self._sockets[effect.connection].close(after_peer=effect.after_peer)
                case RequestToken():
                    assert self._token_provider is not None
                    self._tokens.start(effect, self._token_provider)
                case Disconnected():
                    LOG.info("%s: %s", effect.address, effect.detail)
                case _:
                    others.append(effect)
        for each in others:
            self._on_effect(each)

    def wake_by(self, deadline: float | None) -> None:
        """Advance the machine by then at the latest.

        For callers that passed one owner an event that only moved its own deadline.
        """
        if deadline is not None and (self._timer_at is None or deadline < self._timer_at):
            self._set_timer(deadline)

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Close all connections; on return no socket is open, even if cancelled.

        timeout_s: how long peers may take, and pending writes.
        """
        if not self._closed:
            self.perform(self.client.to_network(CloseNetwork(), self.now()))
            self._closed = True
            self._set_timer(None)
        self._tokens.close()
        try:
            ending = [socket.closed for socket in self._sockets.values()]
            if ending:
                await asyncio.wait(ending, timeout=timeout_s)
        finally:
            for socket in self._sockets.values():
                socket.abort()

    def forget(self, socket: Socket) -> None:
        """Remove a socket that has closed."""
        self._sockets.pop(socket.number, None)
        self._tokens.cancel(socket.number)

    def _wake(self) -> None:
        self._timer = self._timer_at = None
        try:
            self.perform(self.client.advance(self.now()))
        except Exception as error:  # noqa: BLE001 - has no caller
            self._fail(error)

    def _set_timer(self, deadline: float | None) -> None:
        if self._closed:
            deadline = None
        if deadline is not None and self._timer_at is not None and self._timer_at <= deadline:
            return  # it wakes too early once, and is set again: cheaper than once for each request
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = None if deadline is None else self.loop.call_at(deadline, self._wake)
