"""One broker of the cluster: what it alone knows, and what handlers ask of it.

Law: a broker answers for the partitions it leads; the epoch a client believes in must be the
partition's own (KIP-320).
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
    """A partition as this broker finds it; `error` says why it may not be used."""

    partition: Partition | None
    error: ErrorCode


class Broker:
    """One node. `cluster` is what all of them share."""

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
        """Find a partition that this broker leads, in the epoch that the client knows."""
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
        """Find a group's coordinator, if this broker is it."""
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
        """Give the coordinators that are on this broker, if all of them know their groups."""
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
        """Forget what was parked for a client that went."""
        self.fetch_purgatory.forget(request.reply_to)
