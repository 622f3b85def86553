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

from ..configs import broker_configs
from .bounds import DEFAULT_BOUNDS, SLICE_DEADLINES, Bounds
from .broker import Broker
from .configs import Settings
from .context import Context, Endpoint
from .controller.controller import Controller
from .controller.leadership import broker_started, broker_stopped, leader_moved
from .effects import Effect, Persisted
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
from .groups.coordinators import Coordinators
from .handlers import error_response
from .network.connection import Connection
from .network.connections import Connections
from .network.request_channel import RequestChannel
from .network.scheduler import RequestScheduler
from .releases import LATEST, NONCES_COMPARED_FROM, before, listed, offered
from .replication.appending import Appender
from .replication.reading import complete
from .replication.replica_manager import ReplicaManager
from .request_handler import RequestHandler
from .topics import Topics

if TYPE_CHECKING:
    from .security.server import Authentication, Users


class Cluster:
    """The cluster, driven by `handle`, `next_deadline` and `advance`.

    One call does the work of one time slice (`SLICE_REQUESTS`, `SLICE_BYTES`). While requests are
    queued `next_deadline` is in the past: the caller does its I/O between two calls, so the
    requests of one client do not delay others.

    epoch_ms: milliseconds since 1970 at `now` 0. new_uuid: returns 16 unique bytes. draw: returns a
    random number in [0, 1), for faults. passwords: user -> password, where `settings` enables SASL.
    load_seconds: how long a new coordinator loads. bounds: limits that no key of `settings` has.
    """

    def __init__(  # noqa: PLR0913 - options of one constructor, all but one by keyword
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
        self.topics = Topics([each.node_id for each in brokers], new_uuid, bounds)
        self.context = context = Context(
            cluster_id,
            release,
            offered(release),
            listed(release),
            {each.node_id: each for each in brokers},
            self.settings,
            bounds,
            self.topics,
            new_uuid,
            draw,
            epoch_ms,
            load_seconds,
        )
        self.connections = Connections(self.settings, bounds)
        self._scheduler = RequestScheduler(context)
        self.channel = RequestChannel(context, self.connections, self._scheduler, error_response)
        replicas = {node: ReplicaManager(context, self.channel, node) for node in context.endpoints}
        self.appender = Appender(context, replicas)
        self.groups = Coordinators(context, self.channel, self.appender)
        self.controller = Controller(context, self.appender, self.groups)
        self.brokers = {
            node: Broker(context, self.channel, each, self.appender, self.groups, self.controller)
            for node, each in replicas.items()
        }
        self._request_handler = RequestHandler(context, self.channel, self.brokers)
        self._passwords = dict(passwords or {})
        self._users: Users | None = None
        self._now = 0.0

    # -- the contract of every state machine

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        _HANDLERS[type(event)](self, event, now)
        return self._finish(now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`, None for never; a past time while requests are queued."""
        return self._now if self._scheduler else self.context.deadlines.next()

    def advance(self, now: float) -> list[Effect]:
        """Handle expired deadlines, then queued requests, for one time slice."""
        for _ in range(SLICE_DEADLINES):
            due = self.context.deadlines.pop_due(now)
            if due is None:
                break
            _DUE[type(due)](self, due, now)
        return self._finish(now)

    def restore(self, persisted: Iterable[Persisted], now: float) -> list[Effect]:
        """Restore an earlier cluster from its `Persist` and `Trim` effects, before anything else.

        Raises ValueError if they are inconsistent.
        """
        from .controller.restoring import restore  # imported only where needed

        restore(self.controller, persisted, now)
        return self._finish(now)

    def may_read(self, connection_id: int) -> bool:
        """Whether to read more from a client: not while too many bytes of it are buffered."""
        connection = self.connections.find(connection_id)
        return connection is None or connection.may_read

    @property
    def faults(self) -> list[Fault]:
        """The faults to inject."""
        return self.context.faults

    @faults.setter
    def faults(self, faults: list[Fault]) -> None:
        self.context.faults = faults

    @property
    def controller_id(self) -> int:
        """The node id reported as controller."""
        return self.context.controller_id

    # -- events

    def _connected(self, event: Connected, now: float) -> None:
        connection = Connection(event.connection, event.node_id, event.host, now)
        mechanisms = self.settings.items("sasl.enabled.mechanisms")
        if mechanisms:
            connection.authentication = self._authentication(mechanisms)
        reason = self.connections.add(connection)
        if not self.context.is_alive(event.node_id):
            reason = "the broker is down"
        if reason is not None:
            self.channel.close(connection, reason)
            return
        self._set_idle_deadline(connection)

    def _authentication(self, mechanisms: tuple[str, ...]) -> Authentication:
        from .security.server import Authentication, Users  # imported only with SASL

        if self._users is None:
            self._users = Users(self._passwords, self.context.new_uuid)
        return Authentication(
            mechanisms,
            self._users,
            lambda: self.context.new_uuid().hex(),
            lenient_nonce=before(self.context.release, NONCES_COMPARED_FROM),
        )

    def _received(self, event: Received, now: float) -> None:
        connection = self.connections.find(event.connection)
        if connection is None or connection.closing:
            return
        if not connection.buffer:
            connection.last_active = now
        self.connections.receive(connection, event.data)
        self._scheduler.received(connection)
        excess = self.connections.excess()
        if excess is not None:
            self.channel.close(*excess)

    def _unreadable(self, event: Unreadable, _now: float) -> None:
        connection = self.connections.find(event.connection)
        if connection is not None and not connection.closing:
            self.channel.close(connection, event.reason)

    def _drained(self, event: Drained, _now: float) -> None:
        connection = self.connections.find(event.connection)
        if connection is not None:
            connection.unsent, connection.draining = 0, False
            self._scheduler.resume(connection)

    def _disconnected(self, event: Disconnected, _now: float) -> None:
        connection = self.connections.remove(event.connection)
        if connection is not None:
            self.context.deadlines.cancel(IdleConnection(connection.id))
            self._request_handler.forget(connection)

    def _broker_stopped(self, event: BrokerStopped, now: float) -> None:
        for connection in self.connections.values():
            if connection.node_id == event.node_id and not connection.closing:
                self.channel.close(connection, "the broker stopped")
        self.brokers[event.node_id].replicas.restart()
        broker_stopped(self.controller, event.node_id, now)

    def _broker_started(self, event: BrokerStarted, now: float) -> None:
        broker_started(self.controller, event.node_id, now)

    def _leader_moved(self, event: LeaderMoved, now: float) -> None:
        leader_moved(self.controller, event, now)

    # -- deadlines

    def _idle(self, due: IdleConnection, now: float) -> None:
        connection = self.connections.find(due.connection)
        if connection is None or connection.closing:
            return
        if connection.busy is not None:
            connection.last_active = now  # the client waits for the broker
        # the deadline is not moved with each request, so it may be too early
        if not self._set_idle_deadline(connection, later_than=now):
            self.channel.close(connection, f"{connection.idle_reason} connections.max.idle.ms")

    def _set_idle_deadline(self, connection: Connection, later_than: float = -1.0) -> bool:
        """Set the deadline of an idle connection; return whether it lies after `later_than`."""
        max_idle = self.settings.seconds("connections.max.idle.ms")
        if max_idle < 0:
            return True
        due = connection.last_active + max_idle
        if due > later_than:
            self.context.deadlines.set(IdleConnection(connection.id), due)
        return due > later_than

    def _reply_due(self, due: ReplyDue, _now: float) -> None:
        self.channel.send_delayed(due.reply_to)

    def _fetch_expired(self, due: FetchExpired, now: float) -> None:
        request = self.channel.pending.get(due.reply_to)
        if request is not None:
            complete(self.brokers[request.node_id].replicas, due.reply_to, now)

    def _group_due(self, due: GroupDue, now: float) -> None:
        self.groups.due(due, now)

    def _offsets_due(self, _due: OffsetsDue, now: float) -> None:
        self.groups.expire_offsets(now)

    def _offsets_loaded(self, due: OffsetsLoaded, now: float) -> None:
        self.groups.load(due.partition, now)

    # -- after each event

    def _finish(self, now: float) -> list[Effect]:
        self._now = now
        self._scheduler.run(self._request_handler.process, now)
        return self.context.take_effects()


_HANDLERS: Final[Mapping[type[Event], Callable[..., None]]] = {
    Connected: Cluster._connected,
    Received: Cluster._received,
    Drained: Cluster._drained,
    Disconnected: Cluster._disconnected,
    Unreadable: Cluster._unreadable,
    BrokerStopped: Cluster._broker_stopped,
    BrokerStarted: Cluster._broker_started,
    LeaderMoved: Cluster._leader_moved,
}
_DUE: Final[Mapping[type[Deadline], Callable[..., None]]] = {
    IdleConnection: Cluster._idle,
    FetchExpired: Cluster._fetch_expired,
    ReplyDue: Cluster._reply_due,
    GroupDue: Cluster._group_due,
    OffsetsDue: Cluster._offsets_due,
    OffsetsLoaded: Cluster._offsets_loaded,
}
