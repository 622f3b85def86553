"""Makes the requests that a replica sends.

A request is about the metadata partition alone, and names the cluster.
"""

from __future__ import annotations

from ..messages import (
    api_versions_request,
    begin_quorum_epoch_request,
    end_quorum_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    vote_request,
)
from ..primitives import Message
from .config import PARTITION, TOPIC, TOPIC_ID
from .log import SnapshotId
from .quorum import Quorum
from .voters import Voter


def vote(quorum: Quorum, voter: Voter, *, pre_vote: bool) -> Message:
    """Make a Vote request for one voter."""
    end = quorum.log.end
    partition = vote_request.PartitionData(
        partition_index=PARTITION,
        replica_epoch=quorum.epoch,
        replica_id=quorum.node_id,
        replica_directory_id=quorum.config.directory_id,
        voter_directory_id=voter.key.directory_id,
        last_offset_epoch=end.epoch,
        last_offset=end.offset,
        pre_vote=pre_vote,
    )
    topic = vote_request.TopicData(topic_name=TOPIC, partitions=[partition])
    return vote_request.VoteRequest(
        cluster_id=quorum.config.cluster_id, voter_id=voter.key.id, topics=[topic]
    )


def begin_quorum_epoch(quorum: Quorum, voter: Voter) -> Message:
    """Make a BeginQuorumEpoch request for one voter."""
    module = begin_quorum_epoch_request
    partition = module.PartitionData(
        partition_index=PARTITION,
        voter_directory_id=voter.key.directory_id,
        leader_id=quorum.node_id,
        leader_epoch=quorum.epoch,
    )
    return module.BeginQuorumEpochRequest(
        cluster_id=quorum.config.cluster_id,
        voter_id=voter.key.id,
        topics=[module.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            module.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in quorum.config.endpoints
        ],
    )


def end_quorum_epoch(quorum: Quorum) -> Message:
    """Make an EndQuorumEpoch request: the voters with the longest logs first."""
    module = end_quorum_epoch_request
    partition = module.PartitionData(
        partition_index=PARTITION,
        leader_id=quorum.node_id,
        leader_epoch=quorum.epoch,
        preferred_candidates=[
            module.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in quorum.successors
        ],
    )
    return module.EndQuorumEpochRequest(
        cluster_id=quorum.config.cluster_id,
        topics=[module.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            module.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in quorum.config.endpoints
        ],
    )


def fetch(quorum: Quorum) -> Message:
    """Make a Fetch request from where the log ends."""
    module = fetch_request
    end = quorum.log.end
    partition = module.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=quorum.epoch,
        fetch_offset=end.offset,
        last_fetched_epoch=end.epoch,
        partition_max_bytes=quorum.config.max_bytes,
        replica_directory_id=quorum.config.directory_id,
        high_watermark=quorum.high_watermark,
    )
    topic = module.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
    return module.FetchRequest(
        cluster_id=quorum.config.cluster_id,
        replica_state=module.ReplicaState(replica_id=quorum.node_id),
        max_wait_ms=int(quorum.timeouts.fetch_max_wait * 1000),
        min_bytes=0,
        max_bytes=quorum.config.max_bytes,
        topics=[topic],
    )


def fetch_snapshot(quorum: Quorum, id: SnapshotId, position: int) -> Message:
    """Make a FetchSnapshot request for the next part of a snapshot."""
    module = fetch_snapshot_request
    partition = module.PartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=quorum.epoch,
        snapshot_id=module.SnapshotId(end_offset=id.offset, epoch=id.epoch),
        position=position,
        replica_directory_id=quorum.config.directory_id,
    )
    return module.FetchSnapshotRequest(
        cluster_id=quorum.config.cluster_id,
        replica_id=quorum.node_id,
        max_bytes=quorum.config.max_bytes,
        topics=[module.TopicSnapshot(name=TOPIC, partitions=[partition])],
    )


def api_versions() -> Message:
    """Make an ApiVersions request, to see which kraft.version another replica supports."""
    return api_versions_request.ApiVersionsRequest(
        client_software_name="kafkawire-raft", client_software_version="1"
    )
