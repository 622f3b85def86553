"""Replicas in log directories (KIP-113): described, moved to another directory of their broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ...messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ...messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from ...messages.api_key import ApiKey
from .calls import CallRunner, check
from .cluster import log_dirs
from .reassignments import by_topic
from .values import ReplicaInfo


async def describe_replicas(calls: CallRunner, broker: int) -> list[ReplicaInfo]:
    """Describe the replicas of a broker."""
    return sorted(
        ReplicaInfo(
            topic.name,
            row.partition_index,
            directory.log_dir,
            row.partition_size,
            row.offset_lag,
            row.is_future_key,
        )
        for directory in await log_dirs(calls, broker)
        for topic in directory.topics
        for row in topic.partitions
    )


async def alter(calls: CallRunner, broker: int, paths: Mapping[tuple[str, int], str]) -> None:
    """Move replicas of a broker to directories. BrokerError for the first that is refused."""
    directories: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for partition, path in paths.items():
        directories[path].append(partition)
    rows = [
        AlterReplicaLogDir(
            path=path,
            topics=[
                AlterReplicaLogDirTopic(name=name, partitions=indexes)
                for name, indexes in by_topic(partitions).items()
            ],
        )
        for path, partitions in directories.items()
    ]
    response = await calls.call(
        broker,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        AlterReplicaLogDirsResponse,
        lambda _: AlterReplicaLogDirsRequest(dirs=rows),
        lambda response: [row.error_code for topic in response.results for row in topic.partitions],
    )
    for topic in response.results:
        for row in topic.partitions:
            check(row.error_code, f"{topic.topic_name}-{row.partition_index} of broker {broker}")
