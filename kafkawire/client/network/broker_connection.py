"""Manages the connection to one broker for one purpose: its queue, state and backoff.

Requests are sent in the order of their arrival; a disconnect fails the requests queued behind
the connection, and their owners retry; a broker that failed is not used during its backoff.

    SendRequest ─▶ queue ─▶ (connected, not full, not throttled) ─▶ connection
                        └─▶ (no connection, no backoff) ─▶ Connect
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Final, NamedTuple

from ..cluster import Broker, FinalizedFeatures
from ..requests import RETRIABLE, NoResponse, Outcome, Reason, ResponseReceived, SendRequest
from .backoff import Backoff, Rng
from .connection import Connection
from .connection_states import (
    CloseConnection,
    ConnectionClosed,
    ConnectionEffect,
    ConnectionReady,
    ConnectionSettings,
    State,
    Submit,
)
from .negotiated_versions import Opening
from .transport import Close, Connect, RequestToken, ShellEvent, Write

THROTTLE: Final = "throttle_time_ms"


class Purpose(Enum):
    """What a connection is for.

    A coordinator delays some responses (JoinGroup), and a broker responds to the requests of a
    connection in order, so fetches must not queue behind them.
    """

    DATA = "data"
    COORDINATION = "coordination"

    __hash__ = object.__hash__  # Enum's is a function of Python: twice a request


class BrokerConnectionKey(NamedTuple):
    """Identifies a broker connection; bootstrap servers have negative node ids."""

    node: int
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request that is not sent yet."""

    request: SendRequest
    deadline: float

    def fail(self, reason: Reason, detail: str, retriable: bool | None = None) -> NoResponse:
        """Make the NoResponse of this request."""
        can_retry = reason in RETRIABLE if retriable is None else retriable
        return NoResponse(self.request, reason, can_retry, detail, sent=False)


@dataclass(frozen=True, slots=True)
class BrokerConnectionClosed:
    """Effect: the connection to a broker was closed."""

    key: BrokerConnectionKey
    broker: Broker
    closed: ConnectionClosed


@dataclass(frozen=True, slots=True)
class FeaturesReported:
    """Effect: a broker reported the finalized features of the cluster."""

    features: FinalizedFeatures


BrokerConnectionEffect = (
    Connect | Write | Close | RequestToken | Outcome | BrokerConnectionClosed | FeaturesReported
)


class Randomness:
    """Random numbers, nonces and connection ids of one network."""

    def __init__(self, rng: Rng, nonce: Callable[[], str]) -> None:
        self.rng = rng
        self.nonce = nonce
        self._numbers = count(1)

    def connection(self) -> int:
        """Return the id of the next connection."""
        return next(self._numbers)


class BrokerConnection:
    """The connection to one broker for one purpose."""

    def __init__(
        self,
        key: BrokerConnectionKey,
        broker: Broker,
        settings: ConnectionSettings,
        backoff: Backoff,
        idle_s: float,
        randomness: Randomness,
    ) -> None:
        self.key = key
        self.broker = broker
        self.connection: Connection | None = None
        self.queue: deque[QueuedRequest] = deque()
        self.failures = 0
        self.not_before = 0.0
        self._settings = settings
        self._backoff = backoff
        self._idle_s = idle_s
        self._randomness = randomness
        self._opening = Opening.NEWEST
        self._throttled_until = 0.0
        self._used_at = 0.0

    # For the choice of a node.

    @property
    def load(self) -> int:
        """Requests in flight and queued."""
        return len(self.queue) + (len(self.connection.in_flight) if self.connection else 0)

    @property
    def connecting(self) -> bool:
        return self.connection is not None and self.connection.state is not State.READY

    def ready(self, now: float) -> bool:
        """Whether a request would be sent now."""
        connection = self.connection
        open_ = connection is not None and connection.can_send and not self.queue
        return open_ and now >= self._throttled_until

    def may_connect(self, now: float) -> bool:
        return self.connection is None and now >= self.not_before

    @property
    def free_at(self) -> float | None:
        """When a request may be sent, or a connection attempted; None if that is unknown."""
        if self.connection is None:
            return self.not_before
        return self._throttled_until if self.connection.can_send else None

    @property
    def idle(self) -> bool:
        return self.load == 0 and not self.connecting

    # Requests and events.

    def put(self, queued: QueuedRequest) -> None:
        """Queue a request; `pump` sends it."""
        self.queue.append(queued)

    def pump(self, now: float) -> Iterator[BrokerConnectionEffect]:
        """Send what can be sent; connect if requests are queued."""
        while self.queue and self.connection is not None:
            if not self.connection.can_send or now < self._throttled_until:
                return
            queued = self.queue.popleft()
            self._used_at = now
            yield from self._on_connection_effects(
                self.connection.handle(Submit(queued.request, queued.deadline), now), now
            )
        if self.queue and self.may_connect(now):
            yield from self.connect(now)

    def connect(self, now: float) -> Iterator[BrokerConnectionEffect]:
        """Start a connection attempt."""
        self._used_at = now
        self.connection = Connection(
            self._randomness.connection(),
            self.key.node,
            self._settings,
            self._opening,
            now,
            nonce=self._randomness.nonce,
            rng=self._randomness.rng,
        )
        yield Connect(self.connection.number, self.key.node, self.broker.host, self.broker.port)

    def handle(self, event: ShellEvent, now: float) -> Iterator[BrokerConnectionEffect]:
        """Handle an event of the connection."""
        if self.connection is not None:
            yield from self._on_connection_effects(self.connection.handle(event, now), now)

    def close(self, reason: Reason, detail: str, now: float) -> Iterator[BrokerConnectionEffect]:
        """Close the connection and fail all queued requests.

        The connection may already be closed by the same bytes that caused this call: its
        ConnectionClosed is on its way then.
        """
        if self.connection is not None and self.connection.state is not State.CLOSED:
            yield from self._on_connection_effects(
                self.connection.handle(CloseConnection(reason, detail), now), now
            )
        while self.queue:
            yield self.queue.popleft().fail(reason, detail)

    def next_deadline(self) -> float | None:
        deadlines = [queued.deadline for queued in self.queue]
        if self.connection is not None:
            deadline = self.connection.next_deadline()
            if deadline is not None:
                deadlines.append(deadline)
            if self.queue and self.connection.can_send:
                deadlines.append(self._throttled_until)
            if self.idle:
                deadlines.append(self._used_at + self._idle_s)
        elif self.queue:
            deadlines.append(self.not_before)
        return min(deadlines, default=None)

    def advance(self, now: float) -> Iterator[BrokerConnectionEffect]:
        if self.connection is not None:
            if self.idle and now >= self._used_at + self._idle_s:
                yield from self.close(Reason.DISCONNECTED, "connection idle", now)
                return
            yield from self._on_connection_effects(self.connection.advance(now), now)
        if any(queued.deadline <= now for queued in self.queue):
            remaining = deque[QueuedRequest]()
            for queued in self.queue:
                if queued.deadline <= now:
                    yield queued.fail(
                        Reason.TIMED_OUT, f"not sent to {self.broker.address} in time"
                    )
                else:
                    remaining.append(queued)
            self.queue = remaining

    def _on_connection_effects(
        self, effects: Sequence[ConnectionEffect], now: float
    ) -> Iterator[BrokerConnectionEffect]:
        for effect in effects:
            match effect:
                case ConnectionReady(features=features):
                    self.failures, self.not_before = 0, 0.0
                    yield FeaturesReported(features)
                case ConnectionClosed():
                    yield from self._on_closed(effect, now)
                case ResponseReceived(message=message):
                    throttle_ms = getattr(message, THROTTLE, 0)
                    if throttle_ms > 0:  # KIP-219: the broker mutes the connection until then
                        self._throttled_until = now + throttle_ms / 1000
                    self._used_at = now
                    yield effect
                case _:
                    yield effect

    def _on_closed(self, closed: ConnectionClosed, now: float) -> Iterator[BrokerConnectionEffect]:
        self.connection = None
        self._opening = closed.opening
        if not closed.deliberate:
            self.failures += 1
            self.not_before = now + self._backoff.after(self.failures, self._randomness.rng)
        retriable = closed.reason in RETRIABLE and not closed.fatal
        detail = f"{self.broker.address}: {closed.detail}"
        while self.queue:
            yield self.queue.popleft().fail(closed.reason, detail, retriable)
        yield BrokerConnectionClosed(self.key, self.broker, closed)
