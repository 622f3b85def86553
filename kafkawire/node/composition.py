"""Composes the nodes of a cluster in memory: which roles they have, who votes, on what disks.

The quorum has one voter, so that what its controller decides is committed at once: the only broker,
or, beside several, a node that is only a controller and outlives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..broker import Bounds
from ..broker import Endpoint as BrokerEndpoint
from ..broker.bounds import DEFAULT_BOUNDS
from ..broker.releases import LATEST
from ..raft import Endpoint, ReplicaKey, Voter, VoterSet
from ..storage import MemoryDisk
from .config import ProcessRole
from .local_cluster import CONTROLLER_ID, LocalNode
from .properties import CLUSTER_ID, CONTROLLER, Identity, node_config

BROKER: Final = "PLAINTEXT"
"""The name of the listener of clients without SASL and TLS."""
REPLICATION: Final = "REPLICATION"
"""The name of the listener of brokers where they do not use that of clients."""
CONTROLLER_AT: Final = Endpoint(CONTROLLER, "controller", 9093)
IN_MEMORY: Final = {"controller.quorum.append.linger.ms": "0"}
DIRECTORIES: Final = ("disk-1",)


def in_memory(
    brokers: Sequence[BrokerEndpoint],
    properties: Mapping[str, str],
    epoch_ms: int,
    *,
    cluster_id: str = CLUSTER_ID,
    listener: str = BROKER,
    directories: Iterable[str] = DIRECTORIES,
    bounds: Bounds = DEFAULT_BOUNDS,
    release: str = LATEST,
) -> list[LocalNode]:
    """Return the nodes of a cluster in memory, the controller first.

    brokers: where clients reach them. properties: Kafka's keys. epoch_ms: milliseconds since 1970
    at `now` 0. listener: the name of that of clients. bounds: limits for which Kafka has no key.
    release: what clients are offered. Raises ValueError for a property that is not valid.
    """
    alone = len(brokers) == 1
    voter = brokers[0].node_id if alone else CONTROLLER_ID
    voters = VoterSet((Voter(ReplicaKey(voter), (CONTROLLER_AT,)),))
    shared = IN_MEMORY | dict(properties)

    def node(node_id: int, listeners: Sequence[Endpoint], rack: str | None = None) -> LocalNode:
        own = shared | ({"broker.rack": rack} if rack else {})
        is_voter = node_id == voter
        roles = {ProcessRole.CONTROLLER} if is_voter else set()
        roles |= {ProcessRole.BROKER} if node_id != CONTROLLER_ID else set()
        if is_voter:
            listeners = (*listeners, CONTROLLER_AT)
        config = node_config(
            Identity(node_id, cluster_id),
            own,
            voters,
            listeners,
            epoch_ms,
            roles=frozenset(roles),
            bounds=bounds,
            release=release,
        )
        return LocalNode(config, {name: MemoryDisk() for name in directories})

    nodes = [] if alone else [node(CONTROLLER_ID, ())]
    for each in brokers:
        listeners = [Endpoint(listener, each.host, each.port)]
        if (listener, release) != (BROKER, LATEST):  # brokers have no SASL, and newer versions
            listeners.insert(0, Endpoint(REPLICATION, f"replication-{each.node_id}", each.port))
        nodes.append(node(each.node_id, listeners, each.rack))
    return nodes
