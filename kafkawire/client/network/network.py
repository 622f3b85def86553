"""Routes requests to brokers: which broker, which connection, when.

Every SendRequest ends in exactly one ResponseReceived, NoResponse or Sent, by its deadline; a
failing broker does not affect requests to others.

                       LEAST_LOADED ─▶ waits for a broker ──┐
    SendRequest ─▶ to? Coordinator  ─▶ waits for a lookup ──┼─▶ broker connection ─▶ Write
                       node id, CONTROLLER ─────────────────┘
"""

# over 300 lines: one machine, routing of every request

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ...errors import LocalProtocolError
from ...messages.metadata_response import MetadataResponse
from ...protocol.error_code import ErrorCode
from ..cluster import Broker
from ..requests import (
    CONTROLLER,
    LEAST_LOADED,
    ClusterFailed,
    Coordinator,
    ForgetCoordinator,
    MetadataChanged,
    NoResponse,
    OwnerEffect,
    OwnerEvent,
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
    FeaturesReported,
    Purpose,
    QueuedRequest,
    Randomness,
)
from .broker_connections import BrokerConnections, least_loaded
from .coordinators import Coordinators, Found
from .metadata import Metadata, with_cause
from .metadata_updater import REFRESH, MetadataUpdater
from .settings import NetworkSettings
from .transport import (
    BytesReceived,
    Connect,
    ConnectionLost,
    ConnectionMade,
    Disconnected,
    ShellEffect,
    ShellEvent,
    TokenFailed,
    TokenReceived,
    WritingPaused,
    WritingResumed,
)

OWN: Final = "network"
"""The owner of the network's own requests."""


@dataclass(frozen=True, slots=True)
class CloseNetwork:
    """Event: close all connections, and fail everything that waits."""


NetworkEvent = OwnerEffect | ShellEvent | CloseNetwork
NetworkEffect = OwnerEvent | ShellEffect
PartEffect = NetworkEffect | SendRequest | Found | BrokerConnectionClosed | FeaturesReported
"""Effects of the network and its parts, before it has handled its own."""


class Network:
    """The machine.

    bootstrap: (host, port) of the bootstrap servers. rng: returns numbers from 0 up to 1. nonce:
    returns SCRAM nonces, never the same twice.
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
        self._randomness = Randomness(rng, nonce)
        self._bootstrap = {
            -1 - at: Broker(-1 - at, host, port) for at, (host, port) in enumerate(bootstrap)
        }
        self._bootstrapping = True
        self._closed = False
        self._connections = BrokerConnections(settings, self._randomness)
        self._unassigned: deque[QueuedRequest] = deque()
        self._bootstrap_deadline: float | None = None
        timeout_s = settings.connection.request_timeout_s
        self._coordinators = Coordinators(OWN, timeout_s, settings.retry, rng)
        self._metadata_updater = MetadataUpdater(
            OWN,
            max_age_s=settings.metadata_max_age_s,
            timeout_s=timeout_s,
            backoff=settings.retry,
            auto_create=settings.auto_create_topics,
            rng=rng,
        )

    def handle(self, event: NetworkEvent, now: float) -> list[NetworkEffect]:
        handler = HANDLERS.get(type(event))
        if handler is None:
            raise LocalProtocolError(f"unknown event {type(event).__name__}")
        out: list[NetworkEffect] = []
        self._dispatch(handler(self, event, now), now, out)
        self._send_ready(now, out)
        return out

    def extend(self, connection: int, data: bytes) -> bool:
        """Handle BytesReceived if the bytes only continue a frame: as `handle`, but faster.

        Does nothing and returns False for all others.
        """
        connection_found = self._connections.by_id(connection)
        if connection_found is None or connection_found.connection is None:
            return False
        return connection_found.connection.frames.extend(data)

    def next_deadline(self) -> float | None:
        if self._closed:
            return None
        deadlines = [each.next_deadline() for each in self._connections]
        deadlines += [self._metadata_updater.next_deadline(), self._coordinators.next_deadline()]
        deadlines += [queued.deadline for queued in self._unassigned]
        deadlines.append(self._bootstrap_deadline)
        if self._unassigned:
            candidates = self._candidates()
            connecting = any(each.connecting for each in candidates)  # no second attempt meanwhile
            deadlines += [
                each.free_at for each in candidates if each.connection is not None or not connecting
            ]
        return min((at for at in deadlines if at is not None), default=None)

    def advance(self, now: float) -> list[NetworkEffect]:
        if self._closed:
            return []
        out: list[NetworkEffect] = []
        for each in self._connections:
            self._dispatch(each.advance(now), now, out)
        self._dispatch(self._coordinators.advance(now), now, out)
        late = [queued for queued in self._unassigned if queued.deadline <= now]
        self._unassigned = deque(queued for queued in self._unassigned if queued.deadline > now)
        detail = with_cause("no broker reachable", self.view.last_error)
        closed = (queued.fail(Reason.TIMED_OUT, detail) for queued in late)
        self._dispatch(closed, now, out)
        if self._bootstrap_deadline is not None and self._bootstrap_deadline <= now:
            self._dispatch(self._on_bootstrap_timeout(now), now, out)
        self._send_ready(now, out)
        return out

    # Events.

    def _send(self, request: SendRequest, now: float) -> Iterator[PartEffect]:
        queued = QueuedRequest(request, now + request.timeout_s)
        if self._closed:
            yield queued.fail(Reason.CLOSED, "the client is closed")
        elif request.to is LEAST_LOADED:
            self._unassigned.append(queued)
        elif request.to is CONTROLLER:
            self._to_controller(queued)
        elif isinstance(request.to, Coordinator):
            broker = self._coordinators.get(request.to)
            if broker is None:
                yield from self._coordinators.wait(request.to, queued)
            else:
                self._connections.to(broker, Purpose.COORDINATION).put(queued)
        else:
            yield from self._to_node(request.to, queued)

    def _to_node(self, node: int, queued: QueuedRequest) -> Iterator[PartEffect]:
        broker = self.view.brokers.get(node)
        if broker is None:
            self._metadata_updater.request_update(frozenset())
            yield queued.fail(Reason.UNKNOWN_NODE, f"no broker with id {node}")
        else:
            self._connections.to(broker, Purpose.DATA).put(queued)

    def _to_controller(self, queued: QueuedRequest) -> None:
        broker = self.view.brokers.get(self.view.controller_id)
        if broker is None:  # any broker forwards such requests if the controller is hidden (KRaft)
            self._unassigned.append(queued)
        else:
            self._connections.to(broker, Purpose.DATA).put(queued)

    def _track(self, event: TrackTopics, _: float) -> Iterator[PartEffect]:
        self._metadata_updater.track(event.owner, event.topics, frozenset(self.view.topics))
        yield from ()

    def _request_metadata_update(
        self, event: RequestMetadataUpdate, _: float
    ) -> Iterator[PartEffect]:
        self._metadata_updater.request_update(event.topics)
        yield from ()

    def _update_leader(self, event: UpdateLeader, _: float) -> Iterator[PartEffect]:
        if self.view.update_leader(event):
            yield MetadataChanged(frozenset({event.topic}))

    def _forget_coordinator(self, event: ForgetCoordinator, _: float) -> Iterator[PartEffect]:
        self._coordinators.forget(event.coordinator)
        yield from ()

    def _on_transport_event(self, event: ShellEvent, now: float) -> Iterator[PartEffect]:
        broker_connection = self._connections.by_id(event.connection)
        if broker_connection is not None:  # else it was closed already
            yield from broker_connection.handle(event, now)

    def _close(self, _: CloseNetwork, now: float) -> Iterator[PartEffect]:
        self._closed = True
        detail = Reason.CLOSED.value
        for each in self._connections:
            yield from each.close(Reason.CLOSED, detail, now)
        while self._unassigned:
            yield self._unassigned.popleft().fail(Reason.CLOSED, detail)
        yield from self._coordinators.close(Reason.CLOSED, detail)

    # Effects of the network's parts.

    def _dispatch(
        self, effects: Iterator[PartEffect], now: float, out: list[NetworkEffect]
    ) -> None:
        """Handle the network's own effects; append the others to `out`."""
        for effect in effects:
            match effect:
                case ResponseReceived() if effect.request.owner == OWN:
                    self._dispatch(self._on_own_response(effect, now), now, out)
                case NoResponse() if effect.request.owner == OWN:
                    self._dispatch(self._on_own_failure(effect, now), now, out)
                case SendRequest():
                    self._dispatch(self._send(effect, now), now, out)
                case Found(broker=broker, queued=queued):
                    broker_connection = self._connections.to(broker, Purpose.COORDINATION)
                    for each in queued:
                        broker_connection.put(each)
                case BrokerConnectionClosed():
                    self._dispatch(self._on_broker_connection_closed(effect, now), now, out)
                case FeaturesReported(features=features):
                    self.view.update_features(features)
                case Connect():
                    self._start_bootstrap_timeout(now)
                    self._connections.on_connect(effect)
                    out.append(effect)
                case _:
                    out.append(effect)

    def _on_own_response(self, event: ResponseReceived, now: float) -> Iterator[PartEffect]:
        if event.request.key != REFRESH:
            yield from self._coordinators.on_response(event, now)
            return
        assert isinstance(event.message, MetadataResponse)
        response = event.message
        required = response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED
        if required and self._settings.rebootstrap:  # else as any response, as Java's client
            self._bootstrapping = True
            self._metadata_updater.on_failure(now)
        elif not response.brokers:
            self._metadata_updater.on_failure(now)  # a broker that is starting lists none yet
        else:
            requested = self._metadata_updater.on_response(now)
            changed = self.view.update(response, event.version, requested)
            self._metadata_updater.on_update(bool(changed), now)
            if requested is not None:
                self.view.forget(requested)
            self._bootstrapping = False
            self._bootstrap_deadline = None
            self.view.last_error = ""
            yield from self._connections.prune(self.view.brokers, now)
            yield MetadataChanged(changed)

    def _on_own_failure(self, event: NoResponse, now: float) -> Iterator[PartEffect]:
        if event.request.key != REFRESH:
            yield from self._coordinators.on_failure(event, now)
            return
        self._metadata_updater.on_failure(now)
        if not event.retriable and event.reason is not Reason.CLOSED:
            yield ClusterFailed(event.reason, event.detail)

    def _on_broker_connection_closed(
        self, effect: BrokerConnectionClosed, now: float
    ) -> Iterator[PartEffect]:
        key, closed = effect.key, effect.closed
        self._connections.on_closed()
        if key.purpose is Purpose.COORDINATION:
            self._coordinators.on_disconnect(key.node)
        if not closed.deliberate:
            self._metadata_updater.request_update(frozenset())
            address = effect.broker.address
            self.view.last_error = f"{address}: {closed.detail}"
            yield Disconnected(address, closed.detail)
            most = self._settings.bootstrap_attempts
            is_limited = self._bootstrap_deadline is not None
            if is_limited and all(each.failures >= most for each in self._candidates()):
                self._bootstrap_deadline = now
        if closed.fatal:
            while self._unassigned:
                yield self._unassigned.popleft().fail(closed.reason, closed.detail, retriable=False)

    def _start_bootstrap_timeout(self, now: float) -> None:
        """Limit how long the bootstrap servers are tried, until there is metadata."""
        timeout_s = self._settings.bootstrap_timeout_s
        if timeout_s is not None and self._bootstrap_deadline is None and not self.view.brokers:
            self._bootstrap_deadline = now + timeout_s

    def _on_bootstrap_timeout(self, now: float) -> Iterator[PartEffect]:
        """Fail what waits for a broker, unless one is connected and merely slow."""
        self._bootstrap_deadline = None
        if any(each.connection and not each.connecting for each in self._connections):
            self._start_bootstrap_timeout(now)
            return
        cause = self.view.last_error or "no connection in time"
        detail = with_cause("no broker reachable", cause)
        yield ClusterFailed(Reason.DISCONNECTED, detail)
        while self._unassigned:
            yield self._unassigned.popleft().fail(Reason.DISCONNECTED, detail, retriable=False)

    @property
    def connections(self) -> list[BrokerConnection]:
        """The connections to brokers that are open, or being opened."""
        return [each for each in self._connections if each.connection is not None]

    # Choice of connections.

    def _candidates(self) -> list[BrokerConnection]:
        """Return connections to all brokers, for the choice of the least loaded."""
        brokers = self._bootstrap if self._bootstrapping else self.view.brokers
        return self._connections.to_all(brokers.values())

    def _send_ready(self, now: float, out: list[NetworkEffect]) -> None:
        """Send what can be sent now."""
        if self._closed:
            return
        updates = self._metadata_updater.advance(now)
        if updates:
            self._dispatch(iter(updates), now, out)
        while self._unassigned:
            candidates = self._candidates()
            broker_connection = least_loaded(candidates, now, self._randomness.rng)
            if broker_connection is None:
                self._maybe_rebootstrap(candidates)
                break
            if not broker_connection.ready(now):
                if broker_connection.connection is None:
                    self._dispatch(broker_connection.connect(now), now, out)
                break
            broker_connection.put(self._unassigned.popleft())
            self._dispatch(broker_connection.pump(now), now, out)
        for each in self._connections:
            if each.queue:
                self._dispatch(each.pump(now), now, out)

    def _maybe_rebootstrap(self, candidates: Sequence[BrokerConnection]) -> None:
        """Go back to the bootstrap servers if every known broker has failed (KIP-899)."""
        if self._settings.rebootstrap and all(
            broker_connection.connection is None and broker_connection.failures
            for broker_connection in candidates
        ):
            self._bootstrapping = True


N = Network

Handler: TypeAlias = Callable[[Network, Any, float], Iterator[PartEffect]]

HANDLERS: Final[Mapping[type[NetworkEvent], Handler]] = {
    SendRequest: N._send,
    TrackTopics: N._track,
    RequestMetadataUpdate: N._request_metadata_update,
    UpdateLeader: N._update_leader,
    ForgetCoordinator: N._forget_coordinator,
    ConnectionMade: N._on_transport_event,
    ConnectionLost: N._on_transport_event,
    BytesReceived: N._on_transport_event,
    WritingPaused: N._on_transport_event,
    WritingResumed: N._on_transport_event,
    TokenReceived: N._on_transport_event,
    TokenFailed: N._on_transport_event,
    CloseNetwork: N._close,
}
