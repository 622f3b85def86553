"""Composes the nodes of a cluster in memory: which roles they have, who votes, on what disks.

The quorum has one voter, so that what its controller decides is committed at once: the only broker,
or, beside several or with ZooKeeper, a node that is only a controller and outlives them. With
ZooKeeper a smaller ISR bumps the leader epoch, as in the controllers before KRaft.
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
from ..metadata.versions import EPOCH_BUMP_UNTIL
from ..raft import Endpoint, ReplicaKey, Voter, VoterSet
from ..storage import MemoryDisk
from .config import ProcessRole
from .local_cluster import CONTROLLER_ID, LocalNode
from .properties import CLUSTER_ID, CONTROLLER, REPLICATION, Identity, node_config

BROKER: Final = "PLAINTEXT"
"""The name of the listener of clients without SASL and TLS."""
CONTROLLER_AT: Final = Endpoint(CONTROLLER, "controller", 9093)
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
    for which Kafka has no key. release: what clients are offered. disks: of an earlier cluster, to
    begin with copies of them.
    """

    brokers: Sequence[BrokerEndpoint]
    epoch_ms: int
    properties: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str = CLUSTER_ID
    listener: str = BROKER
    directories: Sequence[str] = DIRECTORIES
    bounds: Bounds = DEFAULT_BOUNDS
    release: str = LATEST
    zookeeper: bool = False
    disks: Disks = field(default_factory=dict)

    def nodes(self) -> list[LocalNode]:
        """Make the nodes, the controller first. Raises ValueError for an invalid property."""
        alone = len(self.brokers) == 1 and not self.zookeeper
        controller = self.brokers[0].node_id if alone else CONTROLLER_ID
        voters = VoterSet((Voter(ReplicaKey(controller), (CONTROLLER_AT,)),))
        nodes = [] if alone else [self._node(voters, CONTROLLER_ID, [CONTROLLER_AT])]
        for broker in self.brokers:
            listeners = [Endpoint(self.listener, broker.host, broker.port)]
            if (self.listener, self.release) != (BROKER, LATEST):  # brokers use no SASL, and newer
                address = f"replication-{broker.node_id}"
                listeners.insert(0, Endpoint(REPLICATION, address, broker.port))
            if alone:
                listeners.append(CONTROLLER_AT)
            nodes.append(self._node(voters, broker.node_id, listeners, broker.rack))
        return nodes

    def _node(
        self, voters: VoterSet, node_id: int, listeners: list[Endpoint], rack: str | None = None
    ) -> LocalNode:
        roles = set()
        if CONTROLLER_AT in listeners:
            roles.add(ProcessRole.CONTROLLER)
        if node_id != CONTROLLER_ID:
            roles.add(ProcessRole.BROKER)
        properties = {**self.properties, **({"broker.rack": rack} if rack else {})}
        config = node_config(
            Identity(node_id, self.cluster_id),
            {**IN_MEMORY, **properties},
            voters,
            listeners,
            self.epoch_ms,
            roles=frozenset(roles),
            bounds=self.bounds,
            release=self.release,
        )
        config = replace(
            config,
            static=properties,  # DescribeConfigs does not return IN_MEMORY
            metadata_version=EPOCH_BUMP_UNTIL if self.zookeeper else None,
        )
        earlier = self.disks.get(node_id, {})
        return LocalNode(
            config,
            {
                name: deepcopy(earlier[name]) if name in earlier else MemoryDisk()
                for name in self.directories
            },
        )
