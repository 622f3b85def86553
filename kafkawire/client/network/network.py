"""The machine between those who ask and the brokers: which broker, which connection, when.

Law: every Ask ends in exactly one Answered, Unanswered or Sent; nothing waits for ever, since every
Ask has its deadline; no broker's mistake is another broker's trouble.

                    LEAST_LOADED ─▶ waits for a broker ──┐
    Ask ─▶ where? ─ Coordinator  ─▶ waits for a look-up ─┼─▶ line ─▶ connection ─▶ Write
                    node id, CONTROLLER ─────────────────┘
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from ...errors import LocalProtocolError
from ...messages.metadata_response import MetadataResponse
from ...protocol.error_code import ErrorCode
from ..requests import (
    CONTROLLER,
    LEAST_LOADED,
    ClusterFailed,
    Coordinator,
    ForgetCoordinator,
    MetadataChanged,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
    TrackTopics,
    UpdateLeader,
)
from .backoff import Rng
from .broker_connection import (
    BrokerConnection,
    BrokerConnectionClosed,
    BrokerConnectionKey,
    Purpose,
    QueuedRequest,
    least_loaded,
    where,
)
from .cluster import Broker
from .coordinators import Coordinators, Found
from .metadata import Metadata, told
from .metadata_updater import REFRESH, MetadataUpdater
from .settings import NetworkSettings
from .transport import (
    BytesReceived,
    Connect,
    ConnectionLost,
    ConnectionMade,
    ShellEvent,
    WritingPaused,
    WritingResumed,
)

OWN: Final = "network"
"""The owner of what the network itself asks."""


@dataclass(frozen=True, slots=True)
class CloseNetwork:
    """Event: end all connections, and everything that waits."""


class Randomness:
    """The lots, nonces and connection numbers of one network."""

    def __init__(self, rng: Rng, nonce: Callable[[], str]) -> None:
        self.rng = rng
        self.nonce = nonce
        self._numbers = count(1)

    def connection(self) -> int:
        return next(self._numbers)


class Network:
    """The machine.

    bootstrap: (host, port) of brokers to begin with. lot: draws from 0 up to 1. nonce: draws what
    SCRAM never uses twice.
    """

    def __init__(
        self,
        settings: NetworkSettings,
        bootstrap: Sequence[tuple[str, int]],
        *,
        rng: Rng,
        nonce: Callable[[], str],
    ) -> None:
        self.view = Metadata()
        self._settings = settings
        self._draws = Randomness(rng, nonce)
        self._bootstrap = {
            -1 - at: Broker(-1 - at, host, port) for at, (host, port) in enumerate(bootstrap)
        }
        self._bootstrapping = True
        self._closed = False
        self._lines: dict[BrokerConnectionKey, BrokerConnection] = {}
        self._by_connection: dict[int, BrokerConnection] = {}
        self._anywhere: deque[QueuedRequest] = deque()
        timeout_s = settings.connection.request_timeout_s
        self._coordinators = Coordinators(OWN, timeout_s, settings.retry, rng)
        self._refreshing = MetadataUpdater(
            OWN,
            max_age_s=settings.metadata_max_age_s,
            timeout_s=timeout_s,
            backoff=settings.retry,
            auto_create=settings.auto_create_topics,
            rng=rng,
        )

    def handle(self, event: object, now: float) -> list[object]:
        handler = HANDLERS.get(type(event))
        if handler is None:
            raise LocalProtocolError(f"a network does not know what {type(event).__name__} is")
        out: list[object] = []
        self._carry(handler(self, event, now), now, out)
        self._settle(now, out)
        return out

    def next_deadline(self) -> float | None:
        if self._closed:
            return None
        found = [line.next_deadline() for line in self._lines.values()]
        found += [self._refreshing.next_deadline(), self._coordinators.next_deadline()]
        found += [waiting.deadline for waiting in self._anywhere]
        if self._anywhere:
            lines = self._candidates()
            connecting = any(line.connecting for line in lines)  # then no other is connected to
            found += [
                line.free_at for line in lines if line.connection is not None or not connecting
            ]
        return min((at for at in found if at is not None), default=None)

    def advance(self, now: float) -> list[object]:
        if self._closed:
            return []
        out: list[object] = []
        for line in list(self._lines.values()):
            self._carry(line.advance(now), now, out)
        self._carry(self._coordinators.advance(now), now, out)
        late = [waiting for waiting in self._anywhere if waiting.deadline <= now]
        self._anywhere = deque(waiting for waiting in self._anywhere if waiting.deadline > now)
        detail = told("no broker could be reached", self.view.trouble)
        ended = (waiting.end(Reason.TIMED_OUT, detail) for waiting in late)
        self._carry(ended, now, out)
        self._settle(now, out)
        return out

    # Events.

    def _ask(self, ask: SendRequest, now: float) -> Iterator[object]:
        waiting = QueuedRequest(ask, now + ask.timeout_s)
        if self._closed:
            yield waiting.end(Reason.CLOSED, "the client is closed")
        elif ask.to is LEAST_LOADED:
            self._anywhere.append(waiting)
        elif ask.to is CONTROLLER:
            self._to_controller(waiting)
        elif isinstance(ask.to, Coordinator):
            broker = self._coordinators.get(ask.to)
            if broker is None:
                yield from self._coordinators.wait(ask.to, waiting)
            else:
                self._line(broker, Purpose.COORDINATION).put(waiting)
        else:
            yield from self._to_node(ask.to, waiting)

    def _to_node(self, node: object, waiting: QueuedRequest) -> Iterator[object]:
        broker = self.view.brokers.get(node) if isinstance(node, int) else None
        if broker is None:
            self._refreshing.want(frozenset())
            yield waiting.end(Reason.UNKNOWN_NODE, f"no broker {node} is known")
        else:
            self._line(broker, Purpose.DATA).put(waiting)

    def _to_controller(self, waiting: QueuedRequest) -> None:
        broker = self.view.brokers.get(self.view.controller_id)
        if broker is None:  # any broker passes such requests on where there is no telling (KRaft)
            self._anywhere.append(waiting)
        else:
            self._line(broker, Purpose.DATA).put(waiting)

    def _track(self, event: TrackTopics, _: float) -> Iterator[object]:
        self._refreshing.track(event.owner, event.topics, frozenset(self.view.topics))
        yield from ()

    def _want(self, event: RequestMetadataUpdate, _: float) -> Iterator[object]:
        self._refreshing.want(event.topics)
        yield from ()

    def _learn(self, event: UpdateLeader, _: float) -> Iterator[object]:
        if self.view.learn(event):
            yield MetadataChanged(frozenset({event.topic}))

    def _forget(self, event: ForgetCoordinator, _: float) -> Iterator[object]:
        self._coordinators.forget(event.coordinator)
        yield from ()

    def _of_connection(self, event: ShellEvent, now: float) -> Iterator[object]:
        line = self._by_connection.get(event.connection)
        if line is not None:  # else it was given up before the shell could know
            yield from line.handle(event, now)

    def _close(self, _: CloseNetwork, now: float) -> Iterator[object]:
        self._closed = True
        detail = Reason.CLOSED.value
        for line in list(self._lines.values()):
            yield from line.shut(Reason.CLOSED, detail, now)
        while self._anywhere:
            yield self._anywhere.popleft().end(Reason.CLOSED, detail)
        yield from self._coordinators.close(Reason.CLOSED, detail)

    # What its own parts say.

    def _carry(self, effects: Iterator[object], now: float, out: list[object]) -> None:
        """Take what is the network's own out of the effects; the rest is for others."""
        for effect in effects:
            match effect:
                case ResponseReceived() if effect.ask.owner == OWN:
                    self._carry(self._own_answered(effect, now), now, out)
                case NoResponse() if effect.ask.owner == OWN:
                    self._carry(self._own_unanswered(effect, now), now, out)
                case SendRequest():
                    self._carry(self._ask(effect, now), now, out)
                case Found(broker=broker, waiting=waiting):
                    line = self._line(broker, Purpose.COORDINATION)
                    for each in waiting:
                        line.put(each)
                case BrokerConnectionClosed():
                    self._carry(self._line_ended(effect), now, out)
                case Connect(connection=number, node=node):
                    self._by_connection[number] = self._connected_line(node, number)
                    out.append(effect)
                case _:
                    out.append(effect)

    def _connected_line(self, node: int, number: int) -> BrokerConnection:
        for purpose in Purpose:
            line = self._lines.get(BrokerConnectionKey(node, purpose))
            if line is not None and line.connection and line.connection.number == number:
                return line
        raise LocalProtocolError(f"connection {number} belongs to no line")

    def _own_answered(self, event: ResponseReceived, now: float) -> Iterator[object]:
        if event.ask.key != REFRESH:
            yield from self._coordinators.answered(event, now)
            return
        assert isinstance(event.message, MetadataResponse)
        response = event.message
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._bootstrapping = True
            self._refreshing.failed(now)
        elif not response.brokers:
            self._refreshing.failed(now)  # a broker that is starting knows nobody yet
        else:
            asked = self._refreshing.answered(now)
            changed = self.view.update(response, event.version, asked)
            if asked is not None:
                self.view.forget(asked)
            self._bootstrapping = False
            self.view.trouble = ""
            yield from self._prune(now)
            yield MetadataChanged(changed)

    def _own_unanswered(self, event: NoResponse, now: float) -> Iterator[object]:
        if event.ask.key != REFRESH:
            yield from self._coordinators.unanswered(event, now)
            return
        self._refreshing.failed(now)
        if not event.retriable and event.reason is not Reason.CLOSED:
            yield ClusterFailed(event.reason, event.detail)

    def _line_ended(self, effect: BrokerConnectionClosed) -> Iterator[object]:
        key, ended = effect.key, effect.ended
        self._by_connection = {
            number: line
            for number, line in self._by_connection.items()
            if line.connection is not None and line.connection.number == number
        }
        if key.purpose is Purpose.COORDINATION:
            self._coordinators.lost(key.node)
        if not ended.deliberate:
            self._refreshing.want(frozenset())
            self.view.trouble = f"{where(effect.broker)}: {ended.detail}"
        if ended.fatal:
            while self._anywhere:
                yield self._anywhere.popleft().end(ended.reason, ended.detail, retriable=False)

    def _prune(self, now: float) -> Iterator[object]:
        """Let go of brokers that moved or are gone; of bootstrap addresses when they are idle."""
        for key, line in list(self._lines.items()):
            known = self.view.brokers.get(key.node)
            moved = known is not None and (known.host, known.port) != (
                line.broker.host,
                line.broker.port,
            )
            gone = known is None and key.purpose is Purpose.DATA
            if moved or (gone and (key.node >= 0 or line.load == 0)):
                del self._lines[key]
                yield from line.shut(Reason.DISCONNECTED, "the broker is elsewhere now", now)

    # Who gets what.

    def _line(self, broker: Broker, purpose: Purpose) -> BrokerConnection:
        key = BrokerConnectionKey(broker.node_id, purpose)
        line = self._lines.get(key)
        if line is None:
            settings = self._settings
            line = self._lines[key] = BrokerConnection(
                key,
                broker,
                settings.connection,
                settings.reconnect,
                settings.idle_s,
                self._draws,
            )
        return line

    def _candidates(self) -> list[BrokerConnection]:
        """Lines to any broker, from which the least loaded is chosen."""
        brokers = self._bootstrap if self._bootstrapping else self.view.brokers
        return [self._line(broker, Purpose.DATA) for broker in brokers.values()]

    def _settle(self, now: float, out: list[object]) -> None:
        """Send what can be sent now."""
        if self._closed:
            return
        self._carry(iter(self._refreshing.advance(now)), now, out)
        while self._anywhere:
            lines = self._candidates()
            line = least_loaded(lines, now, self._draws.rng)
            if line is None:
                self._none_left(lines)
                break
            if not line.ready(now):
                if line.connection is None:
                    self._carry(line.connect(now), now, out)
                break
            line.put(self._anywhere.popleft())
            self._carry(line.pump(now), now, out)
        for line in list(self._lines.values()):
            if line.queue:
                self._carry(line.pump(now), now, out)

    def _none_left(self, lines: Sequence[BrokerConnection]) -> None:
        """Go back to the first addresses where every broker that is known has failed (KIP-899)."""
        if self._settings.rebootstrap and all(
            line.connection is None and line.failures for line in lines
        ):
            self._bootstrapping = True


N = Network

HANDLERS: Final[Mapping[type, Callable[..., Iterator[object]]]] = {
    SendRequest: N._ask,
    TrackTopics: N._track,
    RequestMetadataUpdate: N._want,
    UpdateLeader: N._learn,
    ForgetCoordinator: N._forget,
    ConnectionMade: N._of_connection,
    ConnectionLost: N._of_connection,
    BytesReceived: N._of_connection,
    WritingPaused: N._of_connection,
    WritingResumed: N._of_connection,
    CloseNetwork: N._close,
}
