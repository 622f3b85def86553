"""Runs one client machine on the running event loop.

Law: everything happens on one loop, one event after the other; the machine's next deadline is the
one timer; nothing is left open by `close`.

    socket ─▶ BytesReceived ─▶ machine ─▶ Write, Connect, Close ─▶ socket
    timer  ─▶ advance       ─▶         ─▶ what is left ─▶ `take` of the Producer, Consumer, ...
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ..client.client import Client
from ..client.failures import ClientFailed
from ..client.network.network import CloseNetwork
from ..client.network.transport import (
    BytesReceived,
    Close,
    Connect,
    ConnectionLost,
    ConnectionMade,
    Write,
    WritingPaused,
    WritingResumed,
)

LOG: Final = logging.getLogger("kafkawire.client")
LINGER_SECONDS: Final = 5.0
"""How long what was written may still flow after a connection is closed."""


@dataclass(frozen=True, slots=True)
class DriverFailed:
    """Effect for the client's owner: nothing more will come; whoever waits gets this error."""

    error: ClientFailed


class Driver:
    """A machine, its sockets and its timer.

    take: told of each effect that is neither the network's nor the socket's, in order; it must not
    call back.

    An exception that escapes the machine while it handles a socket or the timer has lost effects:
    the client is closed, once, and each waiting call fails; trying again would repeat the error
    with every reconnect, or leave calls without an end.
    """

    def __init__(
        self,
        client: Client,
        take: Callable[[object], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.client = client
        self._take = take
        self._tls = tls
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        """The time that the machines know."""
        self._wires: dict[int, Wire] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None
        self._closed = False
        self._performing = False
        self._events: deque[object] = deque()

    def start(self) -> None:
        """Begin: what is due at once is done."""
        self._wake()

    def handle(self, event: object) -> None:
        """Give the machine an event, and do what it says.

        A transport may report that it is full from within a write: such an event waits until all
        that was said before is done, or a later request could overtake an earlier one.
        """
        if self._closed:
            return
        if self._performing:
            self._events.append(event)
        else:
            self.perform(self.client.handle(event, self.now()))

    def receive(self, event: object) -> None:
        """Give the machine what a socket reports; an exception ends the client."""
        try:
            self.handle(event)
        except Exception as error:  # noqa: BLE001 - nobody is there to raise it to
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Close everything after an unexpected error, and say so to the owner, once."""
        if self._closed:
            return
        LOG.error("unexpected error: the client is closed", exc_info=error)
        self._closed = True
        self._events.clear()
        self._set_timer(None)
        for wire in list(self._wires.values()):
            wire.abort()
        failure = ClientFailed(f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        self._take(DriverFailed(failure))

    def perform(self, effects: Iterable[object]) -> None:
        """Do what the machine said, then set the timer."""
        self._performing = True
        try:
            self._do(effects)
            while self._events:
                self._do(self.client.handle(self._events.popleft(), self.now()))
        finally:
            self._performing = False
        self._set_timer(self.client.next_deadline())

    def _do(self, effects: Iterable[object]) -> None:
        for effect in effects:
            match effect:
                case Write(connection=number, data=data):
                    self._wires[number].write(data)
                case Connect():
                    self._wires[effect.connection] = Wire(self, effect, self._tls)
                case Close(connection=number):
                    self._wires[number].close()
                case _:
                    self._take(effect)

    def wake_by(self, deadline: float | None) -> None:
        """See to it that the machine is asked by then; for callers that have just told one owner
        something that only moves that owner's own deadline.
        """
        if deadline is not None and (self._timer_at is None or deadline < self._timer_at):
            self._set_timer(deadline)

    async def close(self) -> None:
        """End all connections; when this returns no socket is open, cancelled or not."""
        if not self._closed:
            self.perform(self.client.to_network(CloseNetwork(), self.now()))
            self._closed = True
            self._set_timer(None)
        try:
            ending = [wire.ended for wire in self._wires.values()]
            if ending:
                await asyncio.wait(ending, timeout=LINGER_SECONDS)
        finally:
            for wire in self._wires.values():
                wire.abort()

    def forget(self, wire: Wire) -> None:
        """Let go of a connection that has ended."""
        self._wires.pop(wire.number, None)

    def _wake(self) -> None:
        self._timer = self._timer_at = None
        try:
            self.perform(self.client.advance(self.now()))
        except Exception as error:  # noqa: BLE001 - nobody is there to raise it to
            self._fail(error)

    def _set_timer(self, deadline: float | None) -> None:
        if self._closed:
            deadline = None
        if deadline == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = None if deadline is None else self.loop.call_at(deadline, self._wake)


class Wire(asyncio.Protocol):
    """One socket, from the attempt to connect to its end; `ended` is done when it is gone."""

    def __init__(self, driver: Driver, connect: Connect, tls: ssl.SSLContext | None) -> None:
        self.number = connect.connection
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._driver = driver
        self._transport: asyncio.Transport | None = None
        self._told = False
        self._closing = False
        self._deadline: asyncio.TimerHandle | None = None
        self._attempt = asyncio.ensure_future(self._connect(connect, tls))

    def write(self, data: bytes) -> None:
        """Send; what the peer will never read, since it has gone, is dropped: the news of that is
        already on its way to the machine.
        """
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """End it, once what was written has flowed."""
        self._closing = True
        if self._transport is None:
            self._attempt.cancel()
        else:
            self._transport.close()
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(LINGER_SECONDS, self.abort)

    def abort(self) -> None:
        """End it now."""
        if self._transport is not None:
            self._transport.abort()
        else:
            self._attempt.cancel()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._closing:
            transport.abort()
        else:
            self._driver.receive(ConnectionMade(self.number))

    def data_received(self, data: bytes) -> None:
        if not self._closing:
            self._driver.receive(BytesReceived(self.number, data))

    def pause_writing(self) -> None:
        if not self._closing:
            self._driver.receive(WritingPaused(self.number))

    def resume_writing(self) -> None:
        if not self._closing:
            self._driver.receive(WritingResumed(self.number))

    def connection_lost(self, error: Exception | None) -> None:
        self._lost(str(error) if error else "the broker closed the connection")

    def _lost(self, reason: str, fatal: bool = False) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._driver.forget(self)
        if not self.ended.done():
            self.ended.set_result(None)
        if not self._closing:
            self._closing = True
            self._driver.receive(ConnectionLost(self.number, reason, fatal))

    async def _connect(self, connect: Connect, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        name = connect.host if tls is not None else None
        try:
            await loop.create_connection(
                lambda: self, connect.host, connect.port, ssl=tls, server_hostname=name
            )
        except ssl.SSLCertVerificationError as error:
            self._lost(f"the broker's certificate: {error.verify_message}", fatal=True)
        except (OSError, ValueError, OverflowError, asyncio.CancelledError) as error:
            # a broker may name a host or port that cannot be one; cancelled only by `close`
            self._lost(str(error) or type(error).__name__)
