"""The partitions that one broker leads, its fetch sessions and its delayed fetches.

Law: a broker serves only the partitions it leads, and only at their current leader epoch (KIP-320).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...protocol import ErrorCode
from ..context import Context, Endpoint
from ..metadata import ClusterMetadata
from ..network.request_channel import RequestChannel
from ..topics import Partition
from .purgatory import FetchPurgatory
from .sessions import Sessions

E = ErrorCode
NO_EPOCH: Final = -1


class Lookup(NamedTuple):
    """A partition and the error of accessing it on this broker."""

    partition: Partition | None
    error: ErrorCode


class ReplicaManager:
    """The replicas of one broker, as clients see them."""

    def __init__(
        self, context: Context, channel: RequestChannel, metadata: ClusterMetadata, node_id: int
    ) -> None:
        self.context = context
        self.channel = channel
        self.metadata = metadata
        self.node_id = node_id
        self.topics = metadata.topics
        self.restart()

    def restart(self) -> None:
        """Drop fetch sessions and delayed fetches: the broker stopped."""
        self.sessions = Sessions(
            self.context.settings.number("max.incremental.fetch.session.cache.slots"),
            self.context.new_uuid,
            self.context.bounds.session_partitions,
        )
        self.fetch_purgatory = FetchPurgatory()

    def led(self, topic: str, index: int, leader_epoch: int = NO_EPOCH) -> Lookup:
        """Find a partition led by this broker; `leader_epoch` is the epoch known to the client."""
        partition = self.topics.partition(topic, index)
        if partition is None:
            return Lookup(None, E.UNKNOWN_TOPIC_OR_PARTITION)
        if leader_epoch != NO_EPOCH and leader_epoch < partition.leader_epoch:
            return Lookup(partition, E.FENCED_LEADER_EPOCH)
        if leader_epoch > partition.leader_epoch:
            return Lookup(partition, E.UNKNOWN_LEADER_EPOCH)
        if partition.leader_id != self.node_id:
            return Lookup(partition, E.NOT_LEADER_OR_FOLLOWER)
        return Lookup(partition, E.NONE)

    def leader_endpoint(self, partition: Partition) -> Endpoint | None:
        """Return the endpoint of a partition's leader, None if it has none."""
        return self.metadata.endpoint(partition.leader_id)
