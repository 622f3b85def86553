"""A cluster of brokers as one sans-IO state machine: takes events and the time, returns effects.

Law: nothing here reads a clock, opens a socket or uses a global random generator: `now` is
monotonic seconds; ids and random numbers come from functions passed in. The responses of a
connection are in the order of its requests.

    Received ─▶ frame ─▶ request ─▶ handler ─▶ response ─▶ Persist ..., Report, Reply
                                       └─▶ delayed operation ─▶ completed by an event or `advance`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..primitives import Message
from .bounds import DEFAULT_BOUNDS, SLICE_DEADLINES, UNSENT, Bounds
from .broker import Broker, Endpoint
from .configs import Settings, broker_configs
from .connection import Connection
from .connections import Connections
from .creation import Creation
from .deadlines import Deadlines
from .effects import AwaitDrain, Close, Effect, Persisted, Reply
from .events import (
    BrokerStarted,
    BrokerStopped,
    Connected,
    Deadline,
    Disconnected,
    Drained,
    Event,
    FetchExpired,
    GroupDue,
    IdleConnection,
    LeaderMoved,
    OffsetsDue,
    OffsetsLoaded,
    Received,
    ReplyDue,
    Unreadable,
)
from .faults import Fault
from .fetching.reading import check_and_complete, fetch_expired
from .groups.coordinators import Coordinators
from .leadership import broker_started, broker_stopped, leader_moved
from .log.appending import Appender
from .log.producer_ids import ProducerIds
from .releases import LATEST, NONCES_COMPARED_FROM, before, listed, offered
from .scheduler import RequestScheduler
from .serving import Serving
from .topics import Partition, Topics

if TYPE_CHECKING:
    from .security.server import Authentication, Users


class Cluster:
    """The cluster, driven by `handle`, `next_deadline` and `advance`.

    One call does the work of one time slice (`SLICE_REQUESTS`, `SLICE_BYTES`). While requests are
    queued `next_deadline` is in the past: the caller does its I/O between two calls, so the
    requests of one client do not delay others.

    epoch_ms: milliseconds since 1970 at `now` 0. new_uuid: returns 16 unique bytes. draw: returns a
    random number in [0, 1), for faults. passwords: user -> password, where `settings` enables SASL.
    load_seconds: how long a new coordinator loads its groups (COORDINATOR_LOAD_IN_PROGRESS).
    bounds: the limits for which `settings` has no key.
    """

    def __init__(
        self,
        brokers: Sequence[Endpoint],
        *,
        new_uuid: Callable[[], bytes],
        draw: Callable[[], float],
        epoch_ms: int = 0,
        settings: Mapping[str, str] | None = None,
        release: str = LATEST,
        cluster_id: str = "kafkawire",
        passwords: Mapping[str, str] | None = None,
        load_seconds: float = 0.0,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self.settings = Settings({} if settings is None else settings, broker_configs(release))
        self.bounds = bounds
        self.release = release
        self.offered = offered(release)
        self.listed = listed(release)
        self.cluster_id = cluster_id
        self.epoch_ms = epoch_ms
        self.new_uuid = new_uuid
        self.draw = draw
        self.load_seconds = load_seconds
        self.faults: list[Fault] = []
        self.effects: list[Effect] = []
        self.deadlines: Deadlines[Deadline] = Deadlines()
        self.connections = Connections(self.settings, bounds)
        self._passwords = dict(passwords or {})
        self._users: Users | None = None
        self.topics = Topics([each.node_id for each in brokers], new_uuid, bounds)
        self.creation = Creation(self)
        self.appender = Appender(self)
        self.brokers = {each.node_id: Broker(self, each) for each in brokers}
        self.groups = Coordinators(self)
        self.producer_ids = ProducerIds(
            self.creation.reserve_producer_ids, bounds.transactional_ids
        )
        self.serving = Serving(self)
        self.scheduler = RequestScheduler(self)
        self._now = 0.0

    # -- the contract of every state machine

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        _HANDLERS[type(event)](self, event, now)
        return self._finish(now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`, None for never; a past time while requests are queued."""
        return self._now if self.scheduler else self.deadlines.next()

    def advance(self, now: float) -> list[Effect]:
        """Handle expired deadlines, then queued requests, for one time slice."""
        for _ in range(SLICE_DEADLINES):
            due = self.deadlines.pop_due(now)
            if due is None:
                break
            _DUE[type(due)](self, due, now)
        return self._finish(now)

    def restore(self, persisted: Iterable[Persisted], now: float) -> list[Effect]:
        """Restore an earlier cluster from its `Persist` and `Trim` effects, before anything else.

        Raises ValueError if they are inconsistent.
        """
        from .restoring import restore  # imported only where needed

        restore(self, persisted, now)
        return self._finish(now)

    def wall_ms(self, now: float) -> int:
        """Return the wall-clock time in milliseconds since 1970."""
        return self.epoch_ms + int(now * 1000)

    def may_read(self, connection_id: int) -> bool:
        """Whether to read more from a client: not while too many bytes of it are buffered."""
        connection = self.connections.find(connection_id)
        return connection is None or connection.may_read

    # -- for handlers and inner state machines

    def emit(self, effect: Effect) -> None:
        """Add an effect to those that the current call returns."""
        self.effects.append(effect)

    def respond(self, reply_to: int, message: Message, now: float) -> None:
        """Respond to a delayed request; does nothing if its client has disconnected."""
        self.serving.respond(reply_to, message, now)

    def send(self, connection: Connection, data: bytes) -> None:
        """Send a frame."""
        if connection.closing:
            return
        self.emit(Reply(connection.id, data))
        connection.unsent += len(data)
        self.scheduler.sent += len(data)
        if connection.unsent > UNSENT:
            connection.draining = True
            self.emit(AwaitDrain(connection.id))

    def close(self, connection: Connection, reason: str) -> None:
        """Close a connection and drop its buffered requests."""
        self.connections.close(connection)
        self.emit(Close(connection.id, reason))

    def resume(self, connection: Connection) -> None:
        """Schedule a connection behind those that are queued."""
        self.scheduler.resume(connection)

    def is_alive(self, node_id: int) -> bool:
        """Whether a broker is up."""
        return node_id in self.topics.alive

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of the brokers that are up."""
        return [each.endpoint for each in self.brokers.values() if self.is_alive(each.node_id)]

    @property
    def controller_id(self) -> int:
        """The node id reported as controller: the lowest of those that are up."""
        return min(self.topics.alive, default=-1)

    def appended(self, partition: Partition, now: float) -> None:
        """Complete the delayed fetches of a partition that have enough data now."""
        for broker in self.brokers.values():
            check_and_complete(broker, partition.key, now)

    # -- events

    def _connected(self, event: Connected, now: float) -> None:
        connection = Connection(event.connection, event.node_id, event.host, now)
        mechanisms = self.settings.items("sasl.enabled.mechanisms")
        if mechanisms:
            connection.authentication = self._authentication(mechanisms)
        reason = self.connections.add(connection)
        if not self.is_alive(event.node_id):
            reason = "the broker is down"
        if reason is not None:
            self.close(connection, reason)
            return
        self._set_idle_deadline(connection)

    def _authentication(self, mechanisms: tuple[str, ...]) -> Authentication:
        from .security.server import Authentication, Users  # imported only with SASL

        if self._users is None:
            self._users = Users(self._passwords, self.new_uuid)
        return Authentication(
            mechanisms,
            self._users,
            lambda: self.new_uuid().hex(),
            lenient_nonce=before(self.release, NONCES_COMPARED_FROM),
        )

    def _received(self, event: Received, now: float) -> None:
        connection = self.connections.find(event.connection)
        if connection is None or connection.closing:
            return
        if not connection.buffer:
            connection.last_active = now
        self.connections.receive(connection, event.data)
        self.scheduler.received(connection)
        excess = self.connections.excess()
        if excess is not None:
            self.close(*excess)

    def _unreadable(self, event: Unreadable, _now: float) -> None:
        connection = self.connections.find(event.connection)
        if connection is not None and not connection.closing:
            self.close(connection, event.reason)

    def _drained(self, event: Drained, _now: float) -> None:
        connection = self.connections.find(event.connection)
        if connection is not None:
            connection.unsent, connection.draining = 0, False
            self.resume(connection)

    def _disconnected(self, event: Disconnected, _now: float) -> None:
        connection = self.connections.remove(event.connection)
        if connection is not None:
            self.deadlines.cancel(IdleConnection(connection.id))
            self.serving.forget(connection)

    # -- deadlines

    def _idle(self, due: IdleConnection, now: float) -> None:
        connection = self.connections.find(due.connection)
        if connection is None or connection.closing:
            return
        if connection.busy is not None:
            connection.last_active = now  # the client waits for the broker
        # the deadline is not moved with each request, so it may be too early
        if not self._set_idle_deadline(connection, later_than=now):
            self.close(connection, f"{connection.idle_reason} connections.max.idle.ms")

    def _set_idle_deadline(self, connection: Connection, later_than: float = -1.0) -> bool:
        """Set the deadline of an idle connection; return whether it lies after `later_than`."""
        max_idle = self.settings.seconds("connections.max.idle.ms")
        if max_idle < 0:
            return True
        due = connection.last_active + max_idle
        if due > later_than:
            self.deadlines.set(IdleConnection(connection.id), due)
        return due > later_than

    def _reply_due(self, due: ReplyDue, now: float) -> None:
        self.serving.send_delayed(due.reply_to, now)

    def _fetch_expired(self, due: FetchExpired, now: float) -> None:
        fetch_expired(self, due.reply_to, now)

    def _group_due(self, due: GroupDue, now: float) -> None:
        self.groups.due(due, now)

    def _offsets_due(self, _due: OffsetsDue, now: float) -> None:
        self.groups.expire_offsets(now)

    def _offsets_loaded(self, due: OffsetsLoaded, now: float) -> None:
        self.groups.load(due.partition, now)

    # -- after each event

    def _finish(self, now: float) -> list[Effect]:
        self._now = now
        self.scheduler.run(now)
        effects, self.effects = self.effects, []
        return effects


_HANDLERS: Final[Mapping[type, Callable[..., None]]] = {
    Connected: Cluster._connected,
    Received: Cluster._received,
    Drained: Cluster._drained,
    Disconnected: Cluster._disconnected,
    Unreadable: Cluster._unreadable,
    BrokerStopped: broker_stopped,
    BrokerStarted: broker_started,
    LeaderMoved: leader_moved,
}
_DUE: Final[Mapping[type, Callable[..., None]]] = {
    IdleConnection: Cluster._idle,
    FetchExpired: Cluster._fetch_expired,
    ReplyDue: Cluster._reply_due,
    GroupDue: Cluster._group_due,
    OffsetsDue: Cluster._offsets_due,
    OffsetsLoaded: Cluster._offsets_loaded,
}
