"""One broker of the cluster: its fetch sessions, its purgatory, and look-ups for handlers.

Law: a broker serves only the partitions it leads, and only at their current leader epoch (KIP-320).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..protocol import ErrorCode
from .fetching.purgatory import FetchPurgatory
from .fetching.sessions import Sessions
from .request import Request
from .topics import NO_LEADER, OFFSETS_TOPIC, Partition, Topic

if TYPE_CHECKING:
    from .cluster import Cluster
    from .groups.coordinator import Coordinator

E = ErrorCode
NO_EPOCH: Final = -1


class Endpoint(NamedTuple):
    """Where a broker listens."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class Lookup(NamedTuple):
    """A partition and the error of accessing it on this broker."""

    partition: Partition | None
    error: ErrorCode


class Broker:
    """One node of the cluster."""

    def __init__(self, cluster: Cluster, endpoint: Endpoint) -> None:
        self.cluster = cluster
        self.endpoint = endpoint
        self.sessions = Sessions(
            cluster.settings.number("max.incremental.fetch.session.cache.slots"),
            cluster.new_uuid,
            cluster.bounds.session_partitions,
        )
        self.fetch_purgatory = FetchPurgatory()

    @property
    def node_id(self) -> int:
        return self.endpoint.node_id

    def led(self, topic: str, index: int, leader_epoch: int = NO_EPOCH) -> Lookup:
        """Find a partition led by this broker; `leader_epoch` is the epoch known to the client."""
        partition = self.cluster.topics.partition(topic, index)
        if partition is None:
            return Lookup(None, E.UNKNOWN_TOPIC_OR_PARTITION)
        if leader_epoch != NO_EPOCH and leader_epoch < partition.leader_epoch:
            return Lookup(partition, E.FENCED_LEADER_EPOCH)
        if leader_epoch > partition.leader_epoch:
            return Lookup(partition, E.UNKNOWN_LEADER_EPOCH)
        if partition.leader_id != self.node_id:
            return Lookup(partition, E.NOT_LEADER_OR_FOLLOWER)
        return Lookup(partition, E.NONE)

    def coordinator(self, group_id: str) -> Coordinator | ErrorCode:
        """Return the coordinator of a group, if this broker is its coordinator."""
        if group_id == "":
            return E.INVALID_GROUP_ID
        topic = self.cluster.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return E.COORDINATOR_NOT_AVAILABLE
        partition = topic.partitions[self.cluster.groups.partition_of(group_id)]
        if partition.leader_id == NO_LEADER:
            return E.COORDINATOR_NOT_AVAILABLE
        if partition.leader_id != self.node_id:
            return E.NOT_COORDINATOR
        return self.cluster.groups.of(partition.index)

    def coordinators(self) -> list[Coordinator] | ErrorCode:
        """Return the coordinators on this broker, or an error while one of them is loading."""
        topic: Topic | None = self.cluster.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return []
        mine = [each.index for each in topic.partitions if each.leader_id == self.node_id]
        found = []
        for coordinator in map(self.cluster.groups.of, mine):
            if isinstance(coordinator, ErrorCode):
                return coordinator
            found.append(coordinator)
        return found

    def drop(self, request: Request) -> None:
        """Drop the delayed operation of a client that disconnected."""
        self.fetch_purgatory.forget(request.reply_to)
