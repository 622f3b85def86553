"""The configuration of one node, by Kafka's names in snake case; times in seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from ..broker.bounds import DEFAULT_BOUNDS, Bounds
from ..broker.releases import LATEST
from ..broker.security.protocols import SecurityProtocol
from ..messages.user_scram_credential_record import UserScramCredentialRecord
from ..raft import DEFAULT_TIMEOUTS, Endpoint, Timeouts, VoterSet
from ..replication import ReplicationConfig
from .logins import NO_LOGIN, Login


class ProcessRole(Enum):
    """What a process does: `process.roles`."""

    BROKER = "broker"
    CONTROLLER = "controller"


COMBINED: Final = frozenset(ProcessRole)
NO_VOTERS: Final = VoterSet(())
DEFAULT_REPLICATION: Final = ReplicationConfig()


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The settings of a node.

    listeners: where others reach it; the first that is not `controller_listener` is that of
    brokers. protocols: of listeners; others have the one that their name says.
    advertised: the listeners of brokers that are registered; None for all.
    voters: `controller.quorum.voters`; unused where the metadata log names the voters.
    bootstrap: `controller.quorum.bootstrap.servers`.
    release: what clients are offered; brokers have the newest versions for each other only on a
    listener that is not that of clients.
    static: the values of `server.properties` that topics and brokers inherit.
    epoch_ms: milliseconds since 1970 at `now` 0; what starts the node sets it.
    snapshot_bytes: `metadata.log.max.record.bytes.between.snapshots`.
    log_intervals: fields of `storage.LogManagerConfig`, in milliseconds.
    metadata_version: of a new cluster; None for that of the release.
    kraft_version: that clients are shown, of a cluster in memory; None for that of the quorum.
    zookeeper: whether brokers show a controller in ZooKeeper (`ZooKeeperCluster`).
    bounds: limits for which Kafka has no key.
    broker_login, controller_login: how the node connects to others.
    scram_credentials: those that a new cluster has (KIP-900).
    """

    node_id: int
    cluster_id: str
    roles: frozenset[ProcessRole] = COMBINED
    listeners: tuple[Endpoint, ...] = ()
    controller_listener: str = "CONTROLLER"
    voters: VoterSet = NO_VOTERS
    bootstrap: tuple[Endpoint, ...] = ()
    rack: str | None = None
    release: str = LATEST
    static: Mapping[str, str] = field(default_factory=dict)
    epoch_ms: int = 0
    quorum: Timeouts = DEFAULT_TIMEOUTS
    replication: ReplicationConfig = DEFAULT_REPLICATION
    log_intervals: Mapping[str, Any] = field(default_factory=dict)
    snapshot_bytes: int = 20 << 20
    session_timeout: float = 9.0
    heartbeat_interval: float = 2.0
    controlled_shutdown_timeout: float = 30.0
    request_timeout: float = 30.0
    retry_backoff: float = 0.1
    rebalance_interval: float | None = 300.0
    metadata_version: int | None = None
    kraft_version: int | None = None
    protocols: Mapping[str, SecurityProtocol] = field(default_factory=dict)
    advertised: frozenset[str] | None = None
    zookeeper: bool = False
    bounds: Bounds = DEFAULT_BOUNDS
    broker_login: Login = NO_LOGIN
    controller_login: Login = NO_LOGIN
    scram_credentials: tuple[UserScramCredentialRecord, ...] = ()

    @property
    def is_broker(self) -> bool:
        return ProcessRole.BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        return ProcessRole.CONTROLLER in self.roles

    @property
    def broker_listeners(self) -> tuple[Endpoint, ...]:
        """The listeners of clients and brokers."""
        return tuple(each for each in self.listeners if each.name != self.controller_listener)

    @property
    def registered_listeners(self) -> tuple[Endpoint, ...]:
        """The listeners of brokers that the cluster knows of."""
        names = self.advertised
        return tuple(each for each in self.broker_listeners if names is None or each.name in names)

    def protocol(self, listener: str) -> SecurityProtocol:
        """Return the security protocol of a listener."""
        protocol = self.protocols.get(listener)
        return SecurityProtocol.of_listener(listener) if protocol is None else protocol

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener on which brokers reach each other; "" for a controller."""
        return self.broker_listeners[0].name if self.broker_listeners else ""

    @property
    def controller_listeners(self) -> tuple[Endpoint, ...]:
        """The listener of controllers."""
        return tuple(each for each in self.listeners if each.name == self.controller_listener)

    @property
    def node_listeners(self) -> tuple[Endpoint, ...]:
        """The listeners on which other nodes connect."""
        return self.broker_listeners[:1] + self.controller_listeners

    def wall_ms(self, now: float) -> int:
        """Return the wall-clock time in milliseconds."""
        return self.epoch_ms + int(now * 1000)

    def time_of(self, wall_ms: int) -> float:
        """Return a time at which the wall clock shows these milliseconds: `wall_ms` truncates."""
        now = (wall_ms - self.epoch_ms) / 1000
        while self.wall_ms(now) < wall_ms:
            now = math.nextafter(now, math.inf)
        return now
