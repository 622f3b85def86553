"""A cluster of brokers as one sans-IO state machine: takes events and the time, returns effects.

Law: nothing here reads a clock, opens a socket or uses a global random generator: `now` is
monotonic seconds; ids and random numbers come from functions passed in. The responses of a
connection are in the order of its requests.

    Received ─▶ frame ─▶ request ─▶ handler ─▶ response ─▶ Persist ..., Report, Reply
                                       └─▶ delayed operation ─▶ completed by an event or `advance`
"""

# over 300 lines: one machine: events, deadlines and what they lead to

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ..configs import broker_configs
from .apis import cluster_apis
from .bounds import DEFAULT_BOUNDS, SLICE_DEADLINES, Bounds
from .broker import Broker
from .configs import Settings
from .context import Context, Endpoint
from .controller.controller import Controller
from .controller.forwarding import LocalForwarding
from .controller.leadership import broker_started, broker_stopped, leader_moved
from .effects import Effect, Persisted
from .events import (
    BrokerChannelDue,
    BrokerConnectionClosed,
    BrokerConnectionOpened,
    BrokerStarted,
    BrokerStopped,
    ClusterStarted,
    CommitExpired,
    Connected,
    ControlledShutdownDue,
    Deadline,
    Disconnected,
    Drained,
    Event,
    FetchExpired,
    GroupDue,
    IdleConnection,
    LeaderMoved,
    MetadataAwaited,
    MutedUntil,
    OffsetsDue,
    OffsetsLoaded,
    Received,
    ReceivedFromBroker,
    ReplyDue,
    ShutdownRequested,
    Unreadable,
    ZooKeeperDeadline,
    ZooKeeperEvent,
)
from .faults import Fault
from .groups.coordinators import Coordinators
from .handlers import error_response
from .metadata import ClusterMetadata
from .network.socket_server import SocketServer
from .releases import LATEST
from .replication.appending import Appender
from .replication.local_replicas import LocalReplicas
from .replication.offsets_log import OffsetsLog
from .replication.reading import complete
from .replication.replica_manager import ReplicaManager
from .request_handler import RequestHandler
from .topics import Topics


class Cluster:
    """The cluster, driven by `handle`, `next_deadline` and `advance`.

    One call does the work of one time slice (`SLICE_REQUESTS`, `SLICE_BYTES`). While requests are
    queued, `next_deadline` is in the past: the caller does its I/O between two calls.

    epoch_ms: milliseconds since 1970 at `now` 0. new_uuid: returns 16 unique bytes. draw: returns a
    random number in [0, 1), for faults. passwords: user -> password, where `settings` enables SASL.
    load_seconds: how long a new coordinator loads. bounds: limits that no key of `settings` has.
    zookeeper: brokers before 2.8 elect a controller and connect to each other when started.
    """

    # over 40 lines: composition: a line per part
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
        zookeeper: bool = False,
    ) -> None:
        self.settings = Settings({} if settings is None else settings, broker_configs(release))
        self.topics = Topics([each.node_id for each in brokers], new_uuid, bounds)
        self.metadata = ClusterMetadata(brokers, self.topics)
        if zookeeper:  # imported only where needed
            from .zookeeper.cluster import ZooKeeperCluster

        self._apis = cluster_apis(release, zookeeper)
        self.context = context = Context(
            cluster_id,
            release,
            self.settings,
            bounds,
            new_uuid,
            draw,
            epoch_ms,
            load_seconds,
        )
        self.server = SocketServer(context, error_response, passwords or {})
        self.connections = self.server.connections
        self.channel = self.server.channel
        self.replicas = {
            each.node_id: ReplicaManager(context, self.channel, self.metadata, each.node_id)
            for each in brokers
        }
        self.appender = Appender(context, self.topics, self.replicas)
        offsets_log = OffsetsLog(self.topics, self.appender)
        self.groups = Coordinators(context, self.channel, offsets_log)
        self.zookeeper = ZooKeeperCluster(context, self.metadata) if zookeeper else None
        elected = None if self.zookeeper is None else self.zookeeper.controller
        self.controller = Controller(context, self.metadata, self.appender, self.groups, elected)
        self.brokers = {each.node_id: self._broker(each) for each in brokers}
        self._request_handler = RequestHandler(
            context, self.channel, lambda connection: self.brokers[connection.node_id]
        )
        self._now = 0.0

    def _broker(self, endpoint: Endpoint) -> Broker:
        return Broker(
            self._apis,
            self.context,
            self.channel,
            endpoint,
            self.metadata,
            LocalReplicas(self.replicas[endpoint.node_id], self.appender),
            LocalForwarding(self.controller),
            self.controller,
            self.controller,
            self.groups,
            control=None if self.zookeeper is None else self.zookeeper.control[endpoint.node_id],
        )

    # -- the contract of every state machine

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        _HANDLERS[type(event)](self, event, now)
        return self._finish(now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`, None for never; a past time while requests are queued."""
        return self._now if self.server.queue else self.context.deadlines.next()

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
        return self.server.may_read(connection_id)

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
        return self.metadata.controller_id

    # -- events

    def _connected(self, event: Connected, now: float) -> None:
        alive = self.metadata.is_alive(event.node_id)
        self.server.connected(event, None if alive else "the broker is down", now)

    def _received(self, event: Received, now: float) -> None:
        self.server.received(event, now)

    def _unreadable(self, event: Unreadable, _now: float) -> None:
        self.server.unreadable(event)

    def _drained(self, event: Drained, _now: float) -> None:
        self.server.drained(event)

    def _disconnected(self, event: Disconnected, _now: float) -> None:
        self.server.disconnected(event, self._request_handler.forget)

    def _broker_stopped(self, event: BrokerStopped, now: float) -> None:
        self.server.close_all(event.node_id, "the broker stopped")
        self.replicas[event.node_id].restart()
        if self.zookeeper is not None:
            self.zookeeper.broker_stopped(event.node_id)
        broker_stopped(self.controller, event.node_id, now)

    def _broker_started(self, event: BrokerStarted, now: float) -> None:
        broker_started(self.controller, event.node_id, now)

    def _leader_moved(self, event: LeaderMoved, now: float) -> None:
        leader_moved(self.controller, event, now)

    def _between_brokers(self, event: ZooKeeperEvent, now: float) -> None:
        if self.zookeeper is not None:
            self.zookeeper.handle(event, now)

    # -- deadlines

    def _idle(self, due: IdleConnection, now: float) -> None:
        self.server.idle(due, now)

    def _muted_until(self, due: MutedUntil, _now: float) -> None:
        self.channel.unmute(due.connection)

    def _reply_due(self, due: ReplyDue, _now: float) -> None:
        self.channel.send_delayed(due.reply_to)

    def _fetch_expired(self, due: FetchExpired, now: float) -> None:
        request = self.channel.pending.get(due.reply_to)
        if request is not None:
            complete(self.replicas[request.node_id], due.reply_to, now)

    def _metadata_awaited(self, due: MetadataAwaited, now: float) -> None:
        self._request_handler.metadata_awaited(due, now)

    def _group_due(self, due: GroupDue, now: float) -> None:
        self.groups.due(due, now)

    def _offsets_due(self, _due: OffsetsDue, now: float) -> None:
        self.groups.expire_offsets(now)

    def _offsets_loaded(self, due: OffsetsLoaded, now: float) -> None:
        self.groups.load(due.partition, now)

    def _commit_expired(self, due: CommitExpired, now: float) -> None:
        self.groups.deferred.expire(due.reply_to, now)

    def _zookeeper_due(self, due: ZooKeeperDeadline, now: float) -> None:
        if self.zookeeper is not None:
            self.zookeeper.due(due, now)

    # -- after each event

    def _finish(self, now: float) -> list[Effect]:
        self._now = now
        self.server.run(self._request_handler.process, now)
        return self.context.take_effects()


_HANDLERS: Final[Mapping[type[Event], Callable[[Cluster, Any, float], None]]] = {
    Connected: Cluster._connected,
    Received: Cluster._received,
    Drained: Cluster._drained,
    Disconnected: Cluster._disconnected,
    Unreadable: Cluster._unreadable,
    BrokerStopped: Cluster._broker_stopped,
    BrokerStarted: Cluster._broker_started,
    LeaderMoved: Cluster._leader_moved,
    ClusterStarted: Cluster._between_brokers,
    ShutdownRequested: Cluster._between_brokers,
    BrokerConnectionOpened: Cluster._between_brokers,
    ReceivedFromBroker: Cluster._between_brokers,
    BrokerConnectionClosed: Cluster._between_brokers,
}
_DUE: Final[Mapping[type[Deadline], Callable[[Cluster, Any, float], None]]] = {
    IdleConnection: Cluster._idle,
    MutedUntil: Cluster._muted_until,
    MetadataAwaited: Cluster._metadata_awaited,
    FetchExpired: Cluster._fetch_expired,
    ReplyDue: Cluster._reply_due,
    GroupDue: Cluster._group_due,
    OffsetsDue: Cluster._offsets_due,
    OffsetsLoaded: Cluster._offsets_loaded,
    CommitExpired: Cluster._commit_expired,
    BrokerChannelDue: Cluster._zookeeper_due,
    ControlledShutdownDue: Cluster._zookeeper_due,
}
