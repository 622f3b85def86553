"""Prepares what a node needs before it starts: its configuration, its sockets, its directory.

A port is bound before the node knows it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ...broker.configs import Settings
from ...broker.security.protocols import SecurityProtocol
from ...node import NodeConfig, ProcessRole
from ...node.front.options import FrontOptions
from ...raft import Endpoint, ReplicaKey, Timeouts, Voter, VoterSet
from ...replication import ReplicationConfig
from ...storage import FileDisk
from ...storage.formats import MetaProperties, read_meta_properties
from ..server_config import DEFAULT, ServerConfig
from ..shell import bound

if TYPE_CHECKING:
    import socket

CLUSTER_ID: Final = "kafkawire"
BROKER: Final = "PLAINTEXT"
CONTROLLER: Final = "CONTROLLER"
LOG_INTERVALS: Final = {
    "cleaner_backoff_ms": "log.cleaner.backoff.ms",
    "flush_offset_checkpoint_interval_ms": "log.flush.offset.checkpoint.interval.ms",
    "flush_scheduler_interval_ms": "log.flush.scheduler.interval.ms",
    "flush_start_offset_checkpoint_interval_ms": "log.flush.start.offset.checkpoint.interval.ms",
    "high_watermark_checkpoint_interval_ms": "replica.high.watermark.checkpoint.interval.ms",
    "producer_id_expiration_ms": "producer.id.expiration.ms",
    "replica_fetch_max_bytes": "replica.fetch.max.bytes",
    "retention_check_interval_ms": "log.retention.check.interval.ms",
}
"""Field of `storage.LogManagerConfig` -> its key."""
RACK_AWARE: Final = "RackAwareReplicaSelector"
LOG_DIRS: Final = "log.dirs"


class Controller(NamedTuple):
    """A voter of the quorum, and where it listens. port 0: any."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What a node is started with.

    node_id, cluster_id: None for those of the directory; in an empty one 1, and `CLUSTER_ID`.
    data_directories: the first has the metadata log, too. config: of one broker; its port is that
    of clients: where they have SASL or TLS, brokers reach each other on another, on any port.
    controllers: () for this node alone, on any port.
    """

    node_id: int | None
    data_directories: tuple[Path, ...]
    config: ServerConfig = DEFAULT
    controllers: tuple[Controller, ...] = ()
    cluster_id: str | None = None

    @property
    def client_listener(self) -> str:
        """The name of the listener of clients."""
        return client_listener(self.config)


class Identity(NamedTuple):
    """Which node of which cluster."""

    node_id: int
    cluster_id: str = CLUSTER_ID


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node that may be started. resources: what is open until it has stopped."""

    options: NodeOptions
    config: NodeConfig
    disks: Mapping[str, FileDisk]
    sockets: dict[str, socket.socket]
    resources: ExitStack


def prepare(options: NodeOptions) -> Prepared:
    """Read whose the directories are, and bind the ports. Raises OSError, CorruptFile."""
    served = options.config
    with ExitStack() as resources:
        disks = {str(each): FileDisk(each) for each in options.data_directories}
        identity = identity_of(options, disks[str(options.data_directories[0])])
        sockets = {}
        for name in dict.fromkeys((BROKER, options.client_listener)):
            port = next(iter(served.ports), 0) if name == options.client_listener else 0
            sockets[name] = bound(served.host, port)
            resources.callback(sockets[name].close)
        voters = []
        for each in options.controllers or (Controller(identity.node_id, served.host, 0),):
            port = each.port
            if each.node_id == identity.node_id:
                sockets[CONTROLLER] = bound(each.host, port)
                resources.callback(sockets[CONTROLLER].close)
                port = sockets[CONTROLLER].getsockname()[1]
            voters.append(each._replace(port=port))
        settings = {**served.settings, LOG_DIRS: ",".join(disks)}
        config = node_config(identity, settings, voters, sockets)
        return Prepared(options, config, disks, sockets, resources.pop_all())
    raise AssertionError("unreachable")


def client_listener(config: ServerConfig) -> str:
    """Return the name of the listener of clients: with SASL or TLS it is not that of brokers."""
    sasl = bool(config.settings.get("sasl.enabled.mechanisms"))
    return SecurityProtocol.with_(sasl=sasl, tls=config.tls is not None).name


def front_options(config: ServerConfig) -> FrontOptions:
    """Return what a node serves its clients with."""
    return FrontOptions(config.passwords, config.topics, config.bounds)


def identity_of(options: NodeOptions, disk: FileDisk) -> Identity:
    """Return the id and the cluster of a node: those of its directory, if it was used before."""
    meta = read_meta_properties(disk) or MetaProperties(CLUSTER_ID, 1, None)
    return Identity(
        meta.node_id if options.node_id is None else options.node_id,
        meta.cluster_id if options.cluster_id is None else options.cluster_id,
    )


def _voter(controller: Controller) -> Voter:
    endpoint = Endpoint(CONTROLLER, controller.host, controller.port)
    return Voter(ReplicaKey(controller.node_id), (endpoint,))


def node_config(
    identity: Identity,
    given: Mapping[str, str],
    controllers: Iterable[Controller],
    sockets: Mapping[str, socket.socket],
) -> NodeConfig:
    """Return the configuration of a node. given: Kafka's keys. sockets: of its listeners."""
    settings = Settings(given)
    roles = {ProcessRole.BROKER} | ({ProcessRole.CONTROLLER} if CONTROLLER in sockets else set())
    listeners = [Endpoint(name, *each.getsockname()[:2]) for name, each in sockets.items()]
    return NodeConfig(
        identity.node_id,
        identity.cluster_id,
        frozenset(roles),
        tuple(listeners),
        CONTROLLER,
        VoterSet(tuple(map(_voter, controllers))),
        rack=settings.text("broker.rack") or None,
        static=given,
        epoch_ms=int(time.time() * 1000),
        quorum=_timeouts(settings),
        replication=_replication(settings),
        log_intervals={field: settings.number(key) for field, key in LOG_INTERVALS.items()},
        snapshot_bytes=settings.number("metadata.log.max.record.bytes.between.snapshots"),
        rebalance_interval=(
            float(settings.number("leader.imbalance.check.interval.seconds"))
            if settings.flag("auto.leader.rebalance.enable")
            else None
        ),
        session_timeout=settings.seconds("broker.session.timeout.ms"),
        heartbeat_interval=settings.seconds("broker.heartbeat.interval.ms"),
    )


def _timeouts(settings: Settings) -> Timeouts:
    return Timeouts(
        election_timeout=settings.seconds("controller.quorum.election.timeout.ms"),
        fetch_timeout=settings.seconds("controller.quorum.fetch.timeout.ms"),
        election_backoff_max=settings.seconds("controller.quorum.election.backoff.max.ms"),
        request_timeout=settings.seconds("controller.quorum.request.timeout.ms"),
        retry_backoff=settings.seconds("controller.quorum.retry.backoff.ms"),
        append_linger=settings.seconds("controller.quorum.append.linger.ms"),
    )


def _replication(settings: Settings) -> ReplicationConfig:
    return ReplicationConfig(
        replica_lag_time_max=settings.seconds("replica.lag.time.max.ms"),
        replica_fetch_wait_max=settings.seconds("replica.fetch.wait.max.ms"),
        replica_fetch_backoff=settings.seconds("replica.fetch.backoff.ms"),
        replica_fetch_min_bytes=settings.number("replica.fetch.min.bytes"),
        replica_fetch_max_bytes=settings.number("replica.fetch.max.bytes"),
        replica_fetch_response_max_bytes=settings.number("replica.fetch.response.max.bytes"),
        fetch_max_bytes=settings.number("fetch.max.bytes"),
        rack_aware=settings.text("replica.selector.class").endswith(RACK_AWARE),
    )
