"""AssignReplicasToDirs (KIP-858): a broker says in which log directories its replicas are.

A replica in a directory that the broker has not registered as online leaves the ISR.
"""

from __future__ import annotations

from ...messages import assign_replicas_to_dirs_response as responses
from ...messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from ...messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from ...metadata import TopicIdPartition
from ...metadata.versions import DIRECTORIES
from ...protocol import ErrorCode
from ..partition_change import PartitionTarget, change_partition, leave_isr
from ..state import ControllerState

E = ErrorCode


def assign_replicas_to_dirs(
    state: ControllerState, body: AssignReplicasToDirsRequest, _version: int, _now: float
) -> AssignReplicasToDirsResponse:
    """Record the directory of each replica."""
    if state.metadata_version < DIRECTORIES:
        return AssignReplicasToDirsResponse(error_code=E.UNSUPPORTED_VERSION)
    broker = state.broker(body.broker_id, body.broker_epoch)
    if broker is None:
        return AssignReplicasToDirsResponse(error_code=E.STALE_BROKER_EPOCH)
    offline: dict[TopicIdPartition, None] = {}
    response = AssignReplicasToDirsResponse()
    for directory in body.directories:
        topics = []
        for topic in directory.topics:
            rows = []
            for each in topic.partitions:
                key = TopicIdPartition(topic.topic_id, each.partition_index)
                error = _assign(state, key, body.broker_id, directory.id)
                if not error and not broker.has_online_directory(directory.id):
                    offline[key] = None
                rows.append(
                    responses.PartitionData(partition_index=key.partition, error_code=error)
                )
            topics.append(responses.TopicData(topic_id=topic.topic_id, partitions=rows))
        response.directories.append(responses.DirectoryData(id=directory.id, topics=topics))
    leave_isr(state, list(offline), body.broker_id)
    return response


def _assign(
    state: ControllerState, at: TopicIdPartition, broker_id: int, directory: bytes
) -> ErrorCode:
    if at.topic_id not in state.image.topics:
        return E.UNKNOWN_TOPIC_ID
    partition = state.image.partition(at)
    if partition is None:
        return E.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return E.NOT_LEADER_OR_FOLLOWER
    change_partition(state, at, PartitionTarget(directory=(broker_id, directory)))
    return E.NONE
