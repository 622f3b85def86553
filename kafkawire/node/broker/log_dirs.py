"""DescribeLogDirs and AlterReplicaLogDirs: what is in the log directories of a broker (KIP-113).

A directory that has failed is described by its error alone; nothing is moved from it or to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...messages import alter_replica_log_dirs_response as altered
from ...messages import describe_log_dirs_response as described
from ...messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from ...messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from ...messages.describe_log_dirs_request import DescribeLogDirsRequest
from ...messages.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from ...primitives import Message
from ...protocol import ErrorCode
from ...storage import (
    KafkaStorageError,
    LogManager,
    StorageError,
    TopicPartition,
    UnifiedLog,
)
from ...storage.directory_logs import DirectoryLogs

E = ErrorCode


def describe(
    logs: LogManager, body: DescribeLogDirsRequest, _now_ms: int
) -> DescribeLogDirsResponse:
    """Describe all directories, with the replicas of the request, or all."""
    named = {
        TopicPartition(topic.topic, index)
        for topic in body.topics or ()
        for index in topic.partitions
    }

    def is_wanted(partition: TopicPartition) -> bool:
        return body.topics is None or partition in named

    results = [_describe(logs, each, is_wanted) for each in logs.directories]
    return DescribeLogDirsResponse(results=results)


def _describe(
    logs: LogManager, directory: DirectoryLogs, is_wanted: Callable[[TopicPartition], bool]
) -> DescribeLogDirsResult:
    try:
        usage = directory.disk.usage()
    except KafkaStorageError:
        return DescribeLogDirsResult(error_code=E.KAFKA_STORAGE_ERROR, log_dir=directory.name)
    topics: dict[str, list[described.DescribeLogDirsPartition]] = {}
    for key, log in directory.logs.items():
        if is_wanted(key):
            lag = max(log.high_watermark - log.log_end_offset, 0)
            topics.setdefault(key.topic, []).append(_replica(key, log, lag))
    for key, future in directory.futures.items():
        current = logs.log(key) if key in logs else None
        if current is not None and is_wanted(key):
            lag = current.log_end_offset - future.log_end_offset
            topics.setdefault(key.topic, []).append(_replica(key, future, lag, is_future=True))
    return DescribeLogDirsResult(
        log_dir=directory.name,
        topics=[
            described.DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
        total_bytes=usage.total,
        usable_bytes=usage.usable,
    )


def _replica(
    key: TopicPartition, log: UnifiedLog, lag: int, *, is_future: bool = False
) -> described.DescribeLogDirsPartition:
    return described.DescribeLogDirsPartition(
        partition_index=key.partition,
        partition_size=log.size,
        offset_lag=lag,
        is_future_key=is_future,
    )


def alter(
    logs: LogManager, body: AlterReplicaLogDirsRequest, now_ms: int
) -> AlterReplicaLogDirsResponse:
    """Begin to move replicas to other directories; each moves while the broker goes on."""
    topics: dict[str, list[altered.AlterReplicaLogDirPartitionResult]] = {}
    for directory in body.dirs:
        for topic in directory.topics:
            results = topics.setdefault(topic.name, [])
            for index in topic.partitions:
                error = _move(logs, TopicPartition(topic.name, index), directory.path, now_ms)
                results.append(
                    altered.AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=error
                    )
                )
    return AlterReplicaLogDirsResponse(
        results=[
            altered.AlterReplicaLogDirTopicResult(topic_name=name, partitions=results)
            for name, results in topics.items()
        ]
    )


def _move(logs: LogManager, partition: TopicPartition, path: str, now_ms: int) -> ErrorCode:
    target = next((each for each in logs.directories if each.name == path), None)
    if target is None:
        return E.LOG_DIR_NOT_FOUND
    if target.offline:
        return E.KAFKA_STORAGE_ERROR
    if logs.directory_of(partition) is None:
        return E.REPLICA_NOT_AVAILABLE
    try:
        logs.move(partition, path, now_ms)
    except KafkaStorageError:
        return E.KAFKA_STORAGE_ERROR
    except StorageError:  # the name of the topic is too long for a future log
        return E.INVALID_TOPIC_EXCEPTION
    return E.NONE


OPERATIONS: Final[Mapping[type[Message], Callable[[LogManager, Any, int], Message]]] = {
    AlterReplicaLogDirsRequest: alter,
    DescribeLogDirsRequest: describe,
}
"""Request -> what responds to it."""
