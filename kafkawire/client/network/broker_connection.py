"""All that goes to one broker for one purpose: a queue, and one connection at a time.

Law: requests leave in the order they came; when the connection ends, what is queued behind it
fails with it, to be asked again; a broker that failed is left alone for its backoff.

    Ask ─▶ queue ─▶ (connected, not full, not throttled) ─▶ connection
                └─▶ (no connection, no backoff) ─▶ Connect
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from ..requests import RETRIABLE, NoResponse, Reason, ResponseReceived, SendRequest
from .backoff import Backoff, Rng
from .cluster import Broker
from .connection import Connection
from .connection_states import CloseConnection, ConnectionSettings, Ended, Opened, State, Submit
from .negotiated_versions import Opening
from .transport import Connect

THROTTLE: Final = "throttle_time_ms"


class Purpose(Enum):
    """What a connection is for: a coordinator answers some requests late on purpose (JoinGroup),
    and a broker answers a connection's requests in order, so fetches must not stand behind them.
    """

    DATA = "data"
    COORDINATION = "coordination"


class BrokerConnectionKey(NamedTuple):
    """Names a line; brokers known by address only (bootstrap) have negative ids."""

    node: int
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request that is not sent yet."""

    ask: SendRequest
    deadline: float

    def end(self, reason: Reason, detail: str, retriable: bool | None = None) -> NoResponse:
        """Give up on it."""
        again = reason in RETRIABLE if retriable is None else retriable
        return NoResponse(self.ask, reason, again, detail, sent=False)


@dataclass(frozen=True, slots=True)
class BrokerConnectionClosed:
    """Effect: a line's connection is no more."""

    key: BrokerConnectionKey
    broker: Broker
    ended: Ended


class Numbers(Protocol):
    """Draws what a machine may not draw itself."""

    @property
    def rng(self) -> Rng: ...

    @property
    def nonce(self) -> Callable[[], str]: ...

    def connection(self) -> int:
        """Number the next connection."""
        ...


class BrokerConnection:
    """One broker and purpose."""

    def __init__(
        self,
        key: BrokerConnectionKey,
        broker: Broker,
        settings: ConnectionSettings,
        backoff: Backoff,
        idle_s: float,
        numbers: Numbers,
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
        self._numbers = numbers
        self._opening = Opening.NEWEST
        self._throttled_until = 0.0
        self._used_at = 0.0

    # What choosing a line looks at.

    @property
    def load(self) -> int:
        """Requests in flight and queued."""
        return len(self.queue) + (len(self.connection.in_flight) if self.connection else 0)

    @property
    def connecting(self) -> bool:
        return self.connection is not None and self.connection.state is not State.READY

    def ready(self, now: float) -> bool:
        """Whether a request given now would leave now."""
        connection = self.connection
        open_ = connection is not None and connection.can_send and not self.queue
        return open_ and now >= self._throttled_until

    def may_connect(self, now: float) -> bool:
        return self.connection is None and now >= self.not_before

    @property
    def free_at(self) -> float | None:
        """When a request may leave, or a connection begin; None where that is not known."""
        if self.connection is None:
            return self.not_before
        return self._throttled_until if self.connection.can_send else None

    @property
    def idle(self) -> bool:
        return self.load == 0 and not self.connecting

    # What happens.

    def put(self, waiting: QueuedRequest) -> None:
        """Queue a request; `pump` sends it."""
        self.queue.append(waiting)

    def pump(self, now: float) -> Iterator[object]:
        """Send what can be sent; connect where something waits for it."""
        while self.queue and self.connection is not None:
            if not self.connection.can_send or now < self._throttled_until:
                return
            waiting = self.queue.popleft()
            self._used_at = now
            yield from self._told(
                self.connection.handle(Submit(waiting.ask, waiting.deadline), now), now
            )
        if self.queue and self.may_connect(now):
            yield from self.connect(now)

    def connect(self, now: float) -> Iterator[object]:
        """Begin a connection."""
        self._used_at = now
        self.connection = Connection(
            self._numbers.connection(),
            self.key.node,
            self._settings,
            self._opening,
            now,
            nonce=self._numbers.nonce,
            rng=self._numbers.rng,
        )
        yield Connect(self.connection.number, self.key.node, self.broker.host, self.broker.port)

    def handle(self, event: object, now: float) -> Iterator[object]:
        """Take news of the connection."""
        if self.connection is not None:
            yield from self._told(self.connection.handle(event, now), now)

    def shut(self, reason: Reason, detail: str, now: float) -> Iterator[object]:
        """End the connection, and everything that waits.

        A connection may have ended in the same bytes that brought what this follows from: its news
        of that is on its way here.
        """
        if self.connection is not None and self.connection.state is not State.CLOSED:
            yield from self._told(self.connection.handle(CloseConnection(reason, detail), now), now)
        while self.queue:
            yield self.queue.popleft().end(reason, detail)

    def next_deadline(self) -> float | None:
        found = [waiting.deadline for waiting in self.queue]
        if self.connection is not None:
            deadline = self.connection.next_deadline()
            if deadline is not None:
                found.append(deadline)
            if self.queue and self.connection.can_send:
                found.append(self._throttled_until)
            if self.idle:
                found.append(self._used_at + self._idle_s)
        elif self.queue:
            found.append(self.not_before)
        return min(found, default=None)

    def advance(self, now: float) -> Iterator[object]:
        if self.connection is not None:
            if self.idle and now >= self._used_at + self._idle_s:
                yield from self.shut(Reason.DISCONNECTED, "not used for long", now)
                return
            yield from self._told(self.connection.advance(now), now)
        if any(waiting.deadline <= now for waiting in self.queue):
            waiting_still = deque[QueuedRequest]()
            for waiting in self.queue:
                if waiting.deadline <= now:
                    yield waiting.end(Reason.TIMED_OUT, f"not sent to {where(self.broker)} in time")
                else:
                    waiting_still.append(waiting)
            self.queue = waiting_still

    def _told(self, effects: Sequence[object], now: float) -> Iterator[object]:
        for effect in effects:
            match effect:
                case Opened():
                    self.failures, self.not_before = 0, 0.0
                case Ended():
                    yield from self._ended(effect, now)
                case ResponseReceived(message=message):
                    throttle_ms = getattr(message, THROTTLE, 0)
                    if throttle_ms > 0:  # KIP-219: the broker will not read before that anyway
                        self._throttled_until = now + throttle_ms / 1000
                    self._used_at = now
                    yield effect
                case _:
                    yield effect

    def _ended(self, ended: Ended, now: float) -> Iterator[object]:
        self.connection = None
        self._opening = ended.opening
        if not ended.deliberate:
            self.failures += 1
            self.not_before = now + self._backoff.after(self.failures, self._numbers.rng)
        retriable = ended.reason in RETRIABLE and not ended.fatal
        detail = f"{where(self.broker)}: {ended.detail}"
        while self.queue:
            yield self.queue.popleft().end(ended.reason, detail, retriable)
        yield BrokerConnectionClosed(self.key, self.broker, ended)


def where(broker: Broker) -> str:
    """Name a broker so that a user finds it."""
    return f"{broker.host}:{broker.port}"


def least_loaded(
    lines: Sequence[BrokerConnection], now: float, rng: Rng
) -> BrokerConnection | None:
    """Choose who gets a request that any broker can answer.

    First one that is connected with nothing in flight, then the connected one with least in flight,
    then one that is connecting, then one that may be connected to; never one in backoff. The search
    starts anywhere, so that clients spread.
    """
    if not lines:
        return None
    start = int(rng() * len(lines))
    turned = [*lines[start:], *lines[:start]]
    ready = [line for line in turned if line.ready(now)]
    if ready:
        return min(ready, key=lambda line: line.load)
    for line in turned:
        if line.connecting:
            return line
    for line in turned:
        if line.may_connect(now):
            return line
    return None
