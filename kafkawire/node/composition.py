"""Composes the nodes of a cluster in memory: which roles they have, who votes, on what disks.

One voter: what its controller decides is committed at once. It is the only broker, or, beside
several or with ZooKeeper, a node that is only a controller and outlives them. In combined mode,
each broker is a controller and votes. With ZooKeeper a smaller ISR bumps the leader epoch, as in
the controllers before KRaft.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Final

from ..broker import Bounds
from ..broker import Endpoint as BrokerEndpoint
from ..broker.bounds import DEFAULT_BOUNDS
from ..broker.releases import LATEST
from ..broker.security.listeners import listener_settings
from ..configs.features import KRAFT, formatted_level
from ..metadata.versions import EPOCH_BUMP_UNTIL
from ..raft import Endpoint, ReplicaKey, Voter, VoterSet
from ..storage import MemoryDisk, SharedBytes
from ..storage.formats import read_meta_properties
from .config import ProcessRole
from .local_cluster import CONTROLLER_ID
from .local_node import LocalNode
from .properties import (
    BROKER,
    Identity,
    broker_listeners,
    node_config,
)

CONTROLLER_PORT: Final = 9093
IN_MEMORY: Final = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1000",
    "controller.quorum.append.linger.ms": "0",
    "replica.fetch.backoff.ms": "50",
}
"""Defaults where all nodes are in one process: what fails is noticed soon."""
DIRECTORIES: Final = ("disk-1",)
Disks = Mapping[int, Mapping[str, MemoryDisk]]
"""The disks of each node by the names of their log directories."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """A cluster in memory. `nodes` makes its nodes.

    brokers: where clients reach them. epoch_ms: milliseconds since 1970 at `now` 0. properties:
    Kafka's keys. listener: the name of that of clients. directories: of each node. bounds: limits
    for which Kafka has no key. release: what clients are offered. zookeeper: for a
    `ZooKeeperCluster`. disks: of an earlier cluster, to begin with copies of them. combined:
    whether each broker is a controller, and votes.
    cluster_id: of a new cluster; disks of an earlier one have its id.
    listeners: those of each broker besides that of clients, where they have addresses outside.
    names: of the listeners of brokers, the one between them first; () for those that follow from
    `listener` and `release`. own: properties of each broker alone.
    """

    brokers: Sequence[BrokerEndpoint]
    epoch_ms: int
    properties: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str = field(kw_only=True)
    listener: str = BROKER
    directories: Sequence[str] = DIRECTORIES
    bounds: Bounds = DEFAULT_BOUNDS
    release: str = LATEST
    zookeeper: bool = False
    disks: Disks = field(default_factory=dict)
    combined: bool = False
    listeners: Mapping[int, Sequence[Endpoint]] = field(default_factory=dict)
    names: Sequence[str] = ()
    own: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def nodes(self) -> list[LocalNode]:
        """Make the nodes, the controller first. Raises ValueError for an invalid property."""
        combined = self.combined or (len(self.brokers) == 1 and not self.zookeeper)
        addresses = {each.node_id: self._addresses(each, combined) for each in self.brokers}
        if not combined:
            endpoint = Endpoint(self._controller, "controller", CONTROLLER_PORT)
            addresses = {CONTROLLER_ID: {self._controller: endpoint}} | addresses
        voters = VoterSet(
            tuple(
                Voter(ReplicaKey(node_id), (each[self._controller],))
                for node_id, each in addresses.items()
                if self._controller in each
            )
        )
        racks = {each.node_id: each.rack for each in self.brokers}
        shared = SharedBytes() if len(self.brokers) > 1 else None
        return [
            self._node(voters, node_id, [*each.values()], racks.get(node_id), shared)
            for node_id, each in addresses.items()
        ]

    @property
    def _controller(self) -> str:
        return listener_settings(self.properties).controller

    @property
    def _cluster_id(self) -> str:
        disks = (disk for of_node in self.disks.values() for disk in of_node.values())
        stored = (each.cluster_id for each in map(read_meta_properties, disks) if each is not None)
        return next(stored, self.cluster_id)

    def _addresses(self, broker: BrokerEndpoint, combined: bool) -> dict[str, Endpoint]:
        """Return the listeners of a broker by name; those without an address get one in memory."""
        names = tuple(self.names or broker_listeners(self.listener, self.release))
        names += (self._controller,) * combined
        addresses = {
            name: Endpoint(name, f"{name.lower()}-{broker.node_id}", broker.port) for name in names
        }
        outside = {each.name: each for each in self.listeners.get(broker.node_id, ())}
        clients = {self.listener: Endpoint(self.listener, broker.host, broker.port)}
        return addresses | outside | clients

    def _node(
        self,
        voters: VoterSet,
        node_id: int,
        listeners: list[Endpoint],
        rack: str | None,
        shared: SharedBytes | None,
    ) -> LocalNode:
        own = self.own.get(node_id, {})
        properties = {**self.properties, **own, **({"broker.rack": rack} if rack else {})}
        roles = {
            ProcessRole.BROKER: node_id != CONTROLLER_ID,
            ProcessRole.CONTROLLER: any(each.name == self._controller for each in listeners),
        }
        config = node_config(
            Identity(node_id, self._cluster_id),
            {**IN_MEMORY, **properties},
            voters,
            listeners,
            roles=frozenset(role for role, has in roles.items() if has),
            bounds=self.bounds,
            release=self.release,
        )
        config = replace(
            config,
            epoch_ms=self.epoch_ms,
            static=properties,  # DescribeConfigs does not return IN_MEMORY
            metadata_version=EPOCH_BUMP_UNTIL if self.zookeeper else None,
            kraft_version=formatted_level(KRAFT, self.release),
            zookeeper=self.zookeeper,
        )
        earlier = self.disks.get(node_id, {})
        return LocalNode(
            config,
            {
                name: deepcopy(earlier[name]) if name in earlier else MemoryDisk(shared=shared)
                for name in self.directories
            },
        )
