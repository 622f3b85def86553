"""A connection from one broker to another, and the requests that wait for it.

Requests are sent one at a time in the order of their arrival, as by Kafka's RequestSendThread:
one that gets no response is sent again on the next connection, before those after it.

    send ─▶ queue ─▶ (connected, none in flight) ─▶ SendToBroker ─▶ response ─▶ on_response
              ▲                                          │
              └── backoff ◀── connection lost, timeout ◀─┘
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ...errors import DecodeError
from ...messages import REGISTRY
from ...primitives import Message
from ...protocol import decode_frame, encode_frame
from ..broker_connections import CloseBrokerConnection, OpenBrokerConnection, SendToBroker
from .context import BrokerChannelDue, ZooKeeperContext

SIZE: Final = 4
BACKOFF: Final = 0.1
"""Seconds until a lost connection is opened again, as in Kafka."""
TIMEOUT: Final = "controller.socket.timeout.ms"


class Queued(NamedTuple):
    """A request that waits for its response. on_response: called with it."""

    message: Message
    version: int
    on_response: Callable[[Message, float], None] | None = None


class Numbers(Protocol):
    """Where channels and their connections get their numbers, never one twice."""

    def channel(self) -> int:
        """Return the number of a new channel."""

    def connection(self, channel: BrokerChannel, /) -> int:
        """Return the number of a new connection of a channel."""

    def forget(self, connection: int, /) -> None:
        """Forget a connection that is closed."""


class BrokerChannel:
    """The connection of the broker `source` to the broker `target`, opened with the first request.

    number: of the channel; each of its connections has a number of its own.
    """

    def __init__(
        self, context: ZooKeeperContext, numbers: Numbers, source: int, target: int
    ) -> None:
        self.number = numbers.channel()
        self.source = source
        self.target = target
        self.connection: int | None = None
        self._context = context
        self._numbers = numbers
        self._queue: deque[Queued] = deque()
        self._in_flight: tuple[int, int] | None = None
        self._correlation_id = 0
        self._connected = False
        self._buffer = bytearray()
        self._due = BrokerChannelDue(self.number)

    def __len__(self) -> int:
        """Return how many requests have no response yet."""
        return len(self._queue)

    def send(self, queued: Queued, now: float) -> None:
        """Queue a request."""
        self._queue.append(queued)
        self._pump(now)

    def clear(self) -> None:
        """Drop the requests that are not sent yet."""
        while len(self._queue) > (self._in_flight is not None):
            self._queue.pop()

    def _pump(self, now: float) -> None:
        """Send the next request, if it may be sent; connect first."""
        if not self._queue or self._in_flight is not None:
            return
        if self.connection is None:
            if self._due not in self._context.deadlines:
                self._connect(now)
        elif self._connected:
            self._write(self._queue[0], now)

    def _connect(self, now: float) -> None:
        self.connection = self._numbers.connection(self)
        self._context.emit(self.source, OpenBrokerConnection(self.connection, self.target))
        self._set_timeout(now)

    def _write(self, queued: Queued, now: float) -> None:
        assert self.connection is not None
        key = REGISTRY.get(type(queued.message).__name__).api_key
        assert key is not None
        frame = encode_frame(
            queued.message, queued.version, self._correlation_id, client_id=str(self.source)
        )
        self._in_flight = key, self._correlation_id
        self._correlation_id += 1
        self._context.emit(self.source, SendToBroker(self.connection, frame))
        self._set_timeout(now)

    def _set_timeout(self, now: float) -> None:
        self._context.deadlines.set(self._due, now + self._context.settings.seconds(TIMEOUT))

    # -- events of the connection

    def opened(self, now: float) -> None:
        """Send what waits for the connection."""
        self._connected = True
        self._context.deadlines.set(self._due, None)
        self._pump(now)

    def received(self, data: bytes, now: float) -> None:
        """Take the response to the request in flight, when it is complete."""
        self._buffer += data
        size = SIZE + int.from_bytes(self._buffer[:SIZE], "big")
        if len(self._buffer) < SIZE or len(self._buffer) < size or self._in_flight is None:
            return
        frame = bytes(self._buffer[:size])
        del self._buffer[:size]
        key, correlation_id = self._in_flight
        try:
            response = decode_frame(frame, response_to=(key, self._queue[0].version))
        except DecodeError:
            self._lose(now)
            return
        if response.correlation_id != correlation_id:
            self._lose(now)
            return
        queued = self._queue.popleft()
        self._in_flight = None
        self._context.deadlines.set(self._due, None)
        if queued.on_response is not None:
            assert isinstance(response.body, Message)
            queued.on_response(response.body, now)
        self._pump(now)

    def lost(self, now: float) -> None:
        """Connect again after a backoff, if requests wait."""
        self.connection = None
        self._forget_connection()
        self._context.deadlines.set(self._due, now + BACKOFF if self._queue else None)

    def due(self, now: float) -> None:
        """Connect, after a backoff; or close a connection that gives no response in time."""
        if self.connection is None:
            self._pump(now)
        else:
            self._lose(now)

    def _lose(self, now: float) -> None:
        self.close()
        self.lost(now)

    def close(self) -> None:
        """Close the connection."""
        if self.connection is not None:
            self._context.emit(self.source, CloseBrokerConnection(self.connection))
            self._numbers.forget(self.connection)
        self.connection = None
        self._forget_connection()
        self._context.deadlines.set(self._due, None)

    def _forget_connection(self) -> None:
        self._connected = False
        self._in_flight = None
        self._buffer.clear()
