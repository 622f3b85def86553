"""Reads requests and responses between replicas, and makes the responses.

A request is checked here once: its cluster, and that it is about the metadata partition alone.
Fields that a version does not have are not set.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ..messages import (
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    fetch_response,
    fetch_snapshot_response,
    vote_response,
)
from ..primitives import Message
from ..protocol.error_code import ErrorCode
from .config import PARTITION, TOPIC, TOPIC_ID
from .effects import Node
from .log import OffsetAndEpoch, SnapshotId
from .quorum import Quorum

VERSIONS: Final[dict[str, tuple[int, int]]] = {
    "VoteRequest": (0, 2),
    "BeginQuorumEpochRequest": (0, 1),
    "EndQuorumEpochRequest": (0, 1),
    "FetchRequest": (12, 18),
    "FetchSnapshotRequest": (0, 1),
    "DescribeQuorumRequest": (0, 2),
    "AddRaftVoterRequest": (0, 1),
    "RemoveRaftVoterRequest": (0, 0),
    "UpdateRaftVoterRequest": (0, 0),
    "ApiVersionsRequest": (3, 4),
}
"""The versions of each request that a replica sends and receives."""
ENDPOINTS_FROM: Final = {"FetchRequest": 16}
"""The first version whose response has the leader's endpoint, where it is not 1."""
TOPIC_IDS_FROM: Final = 13
NO_LEADER: Final = -1


class QuorumResponse(NamedTuple):
    """What every response of a quorum says: an error, the epoch, and the leader if known."""

    error: ErrorCode | int
    epoch: int
    leader: Node | None
    partition: Any


def leader_id(quorum: Quorum) -> int:
    """Return the leader's id for a response; -1 if it is unknown."""
    return NO_LEADER if quorum.leader_id is None else quorum.leader_id


def endpoint(quorum: Quorum, module: Any, request: str, version: int) -> list[Any]:
    """List the leader's endpoint for a response, where its version has that."""
    node = quorum.leader_node
    if node is None or not node.host or version < ENDPOINTS_FROM.get(request, 1):
        return []
    return [module.NodeEndpoint(node_id=node.id, host=node.host, port=node.port)]


def is_for_this_quorum(quorum: Quorum, request: Any) -> bool:
    """Whether the cluster id of a request is ours, or not given."""
    ours, theirs = quorum.config.cluster_id, getattr(request, "cluster_id", None)
    return ours is None or theirs is None or ours == theirs


def only_partition(message: Any) -> Any:
    """Return the metadata partition of a request or response; None if there are others or none."""
    topics = message.responses if hasattr(message, "responses") else message.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    name = getattr(topic, "topic_name", None) or getattr(topic, "name", "")
    if hasattr(topic, "topic_id"):
        is_metadata = topic.topic == TOPIC or topic.topic_id == TOPIC_ID
    else:
        is_metadata = name == TOPIC
    index = getattr(
        partition,
        "partition_index",
        getattr(partition, "partition", getattr(partition, "index", 0)),
    )
    return partition if is_metadata and index == PARTITION else None


def checked(quorum: Quorum, request: Any) -> tuple[Any, ErrorCode]:
    """Return the partition that a request is about, or why it is refused as a whole."""
    if not is_for_this_quorum(quorum, request):
        return None, ErrorCode.INCONSISTENT_CLUSTER_ID
    partition = only_partition(request)
    return partition, ErrorCode.INVALID_REQUEST if partition is None else ErrorCode.NONE


def new_vote_response(quorum: Quorum, version: int, error: ErrorCode, granted: bool) -> Message:
    """Make a Vote response."""
    partition = vote_response.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        leader_id=leader_id(quorum),
        leader_epoch=quorum.epoch,
        vote_granted=granted,
    )
    return vote_response.VoteResponse(
        topics=[vote_response.TopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=endpoint(quorum, vote_response, "VoteRequest", version),
    )


def new_epoch_response(quorum: Quorum, request: Message, version: int, error: ErrorCode) -> Message:
    """Make a BeginQuorumEpoch or EndQuorumEpoch response."""
    begins = isinstance(request, begin_quorum_epoch_request.BeginQuorumEpochRequest)
    module: Any = begin_quorum_epoch_response if begins else end_quorum_epoch_response
    make = module.BeginQuorumEpochResponse if begins else module.EndQuorumEpochResponse
    partition = module.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        leader_id=leader_id(quorum),
        leader_epoch=quorum.epoch,
    )
    message: Message = make(
        topics=[module.TopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=endpoint(quorum, module, type(request).__name__, version),
    )
    return message


def new_fetch_response(
    quorum: Quorum,
    version: int,
    *,
    error: ErrorCode = ErrorCode.NONE,
    records: bytes = b"",
    high_watermark: int | None = None,
    diverging: OffsetAndEpoch | None = None,
    snapshot: SnapshotId | None = None,
) -> Message:
    """Make a Fetch response."""
    module = fetch_response
    partition = module.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        high_watermark=-1 if high_watermark is None else high_watermark,
        log_start_offset=quorum.log.start_offset,
        current_leader=module.LeaderIdAndEpoch(
            leader_id=leader_id(quorum), leader_epoch=quorum.epoch
        ),
        aborted_transactions=None,
        records=records,
    )
    if diverging is not None:
        partition.diverging_epoch = module.EpochEndOffset(
            epoch=diverging.epoch, end_offset=diverging.offset
        )
    if snapshot is not None:
        partition.snapshot_id = module.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
    topic = module.FetchableTopicResponse(partitions=[partition])
    if version >= TOPIC_IDS_FROM:
        topic.topic_id = TOPIC_ID
    else:
        topic.topic = TOPIC
    return module.FetchResponse(
        responses=[topic],
        node_endpoints=endpoint(quorum, module, "FetchRequest", version),
    )


def new_snapshot_response(
    quorum: Quorum,
    version: int,
    id: SnapshotId,
    *,
    error: ErrorCode = ErrorCode.NONE,
    size: int = 0,
    position: int = 0,
    data: bytes = b"",
) -> Message:
    """Make a FetchSnapshot response."""
    module = fetch_snapshot_response
    partition = module.PartitionSnapshot(
        index=PARTITION,
        error_code=error,
        snapshot_id=module.SnapshotId(end_offset=id.offset, epoch=id.epoch),
        current_leader=module.LeaderIdAndEpoch(
            leader_id=leader_id(quorum), leader_epoch=quorum.epoch
        ),
        size=size,
        position=position,
        unaligned_records=data,
    )
    return module.FetchSnapshotResponse(
        topics=[module.TopicSnapshot(name=TOPIC, partitions=[partition])],
        node_endpoints=endpoint(quorum, module, "FetchSnapshotRequest", version),
    )


def read_response(quorum: Quorum, response: Any) -> QuorumResponse:
    """Read what every response of a quorum says."""
    if response.error_code:
        return QuorumResponse(response.error_code, -1, None, None)
    partition = only_partition(response)
    if partition is None:
        return QuorumResponse(ErrorCode.INVALID_REQUEST, -1, None, None)
    leader = getattr(partition, "current_leader", partition)
    return QuorumResponse(
        partition.error_code,
        leader.leader_epoch,
        leader_node(quorum, leader.leader_id, response.node_endpoints),
        partition,
    )


def leader_node(quorum: Quorum, id: int, endpoints: Any) -> Node | None:
    """Return where a leader listens: as a message says, else as the voter set does."""
    if id < 0:
        return None
    for each in endpoints:
        if getattr(each, "node_id", id) == id:
            return Node(id, each.host, each.port)
    voter = quorum.voters.find(id)
    if voter is None or not voter.endpoints:
        return None
    return Node(id, voter.endpoints[0].host, voter.endpoints[0].port)
