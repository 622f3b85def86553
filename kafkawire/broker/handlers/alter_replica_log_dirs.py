"""AlterReplicaLogDirs: moves replicas to other log directories of this broker (KIP-113).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from ...messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from ...messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ...protocol import ErrorCode
from .forwarding import handle

__all__ = ["error_response", "handle"]


def error_response(
    body: AlterReplicaLogDirsRequest, error: ErrorCode
) -> AlterReplicaLogDirsResponse:
    """Return a response with the error for each partition."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                    for index in topic.partitions
                ],
            )
            for directory in body.dirs
            for topic in directory.topics
        ]
    )
