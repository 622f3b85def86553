"""Reads the configuration of a node from Kafka's keys, as in `server.properties`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..broker.bounds import DEFAULT_BOUNDS, Bounds
from ..broker.configs import Settings
from ..broker.releases import LATEST, before
from ..broker.security.listeners import listener_settings
from ..broker.security.protocols import SecurityProtocol
from ..broker.security.settings import check_security
from ..raft import Endpoint, Timeouts, VoterSet
from ..replication import ReplicationConfig
from .config import NodeConfig, ProcessRole
from .logins import BROKER_MECHANISM, CONTROLLER_MECHANISM, login

BROKER: Final = "PLAINTEXT"
"""The name of the listener of clients without SASL and TLS, and of brokers."""
REPLICATION: Final = "REPLICATION"
"""The listener between brokers of an older release: it has the newest versions."""
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
ELR_FROM: Final = "4.0"
"""The first release with eligible leader replicas (KIP-966)."""
RACK_AWARE: Final = "RackAwareReplicaSelector"


class Identity(NamedTuple):
    """Which node of which cluster."""

    node_id: int
    cluster_id: str


def broker_listeners(client: str, release: str) -> tuple[str, ...]:
    """Return the names of the listeners of a broker, the one between brokers first.

    client: the name of that of clients. The one between brokers has no SASL and no TLS.
    """
    between = BROKER if release == LATEST else REPLICATION
    return tuple(dict.fromkeys((between, client)))


def node_config(
    identity: Identity,
    properties: Mapping[str, str],
    voters: VoterSet,
    listeners: Sequence[Endpoint],
    *,
    roles: frozenset[ProcessRole] | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
    release: str = LATEST,
) -> NodeConfig:
    """Return the configuration of a node, whose clock has not started.

    properties: Kafka's keys with their values. roles: None for those that the listeners suggest: a
    controller has one of its own. bounds: limits for which Kafka has no key. release: what clients
    are offered. Raises ValueError for a key or a value that is not valid.
    """
    settings = Settings(properties)
    check_security(properties)
    of_listeners = listener_settings(properties)
    controller, advertised = of_listeners.controller, of_listeners.advertised
    if roles is None:
        is_controller = any(each.name == controller for each in listeners)
        roles = frozenset(ProcessRole) if is_controller else frozenset({ProcessRole.BROKER})
    protocols = of_listeners.protocols
    between = next((each.name for each in listeners if each.name != controller), "")
    return NodeConfig(
        identity.node_id,
        identity.cluster_id,
        roles,
        tuple(listeners),
        controller,
        voters,
        rack=settings.text("broker.rack") or None,
        static=properties,
        quorum=_timeouts(settings),
        replication=_replication(settings, release),
        log_intervals={field: settings.number(key) for field, key in LOG_INTERVALS.items()},
        snapshot_bytes=settings.number("metadata.log.max.record.bytes.between.snapshots"),
        rebalance_interval=(
            float(settings.number("leader.imbalance.check.interval.seconds"))
            if settings.flag("auto.leader.rebalance.enable")
            else None
        ),
        session_timeout=settings.seconds("broker.session.timeout.ms"),
        heartbeat_interval=settings.seconds("broker.heartbeat.interval.ms"),
        protocols=protocols,
        # that between brokers, the first, may be one that no key names
        advertised=None if advertised is None else frozenset((*advertised, listeners[0].name)),
        bounds=bounds,
        release=release,
        broker_login=login(properties, between, _protocol(protocols, between), BROKER_MECHANISM),
        controller_login=login(
            properties, controller, _protocol(protocols, controller), CONTROLLER_MECHANISM
        ),
    )


def _protocol(protocols: Mapping[str, SecurityProtocol], listener: str) -> SecurityProtocol:
    """Return the protocol of a listener that nodes reach each other on."""
    return protocols.get(listener, SecurityProtocol.PLAINTEXT)


def _timeouts(settings: Settings) -> Timeouts:
    return Timeouts(
        election_timeout=settings.seconds("controller.quorum.election.timeout.ms"),
        fetch_timeout=settings.seconds("controller.quorum.fetch.timeout.ms"),
        election_backoff_max=settings.seconds("controller.quorum.election.backoff.max.ms"),
        request_timeout=settings.seconds("controller.quorum.request.timeout.ms"),
        retry_backoff=settings.seconds("controller.quorum.retry.backoff.ms"),
        append_linger=settings.seconds("controller.quorum.append.linger.ms"),
    )


def _replication(settings: Settings, release: str) -> ReplicationConfig:
    return ReplicationConfig(
        replica_lag_time_max=settings.seconds("replica.lag.time.max.ms"),
        replica_fetch_wait_max=settings.seconds("replica.fetch.wait.max.ms"),
        replica_fetch_backoff=settings.seconds("replica.fetch.backoff.ms"),
        replica_fetch_min_bytes=settings.number("replica.fetch.min.bytes"),
        replica_fetch_max_bytes=settings.number("replica.fetch.max.bytes"),
        replica_fetch_response_max_bytes=settings.number("replica.fetch.response.max.bytes"),
        fetch_max_bytes=settings.number("fetch.max.bytes"),
        eligible_leader_replicas=not before(release, ELR_FROM),
        rack_aware=settings.text("replica.selector.class").endswith(RACK_AWARE),
    )
