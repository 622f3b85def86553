"""Handles a Produce: appends records to the partitions that a broker leads.

Law: each partition has its own result; what one rejects, the others do not notice.
"""

from __future__ import annotations

from typing import Final

from ...messages.produce_request import PartitionProduceData, ProduceRequest
from ...messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ...protocol import ErrorCode
from ..log.validation import RecordsRejected
from ..topics import INTERNAL
from .appending import NO_OFFSET, Appender
from .replica_manager import ReplicaManager

E = ErrorCode
RECORD_ERRORS_FROM: Final = 8
CURRENT_LEADER_FROM: Final = 10
TOPIC_IDS_FROM: Final = 13


def produce(
    replicas: ReplicaManager, appender: Appender, body: ProduceRequest, version: int, now: float
) -> ProduceResponse:
    """Append the records of each partition."""
    responses = []
    leaders: dict[int, NodeEndpoint] = {}
    for topic in body.topic_data:
        name: str | None = topic.name
        if version >= TOPIC_IDS_FROM:
            found = replicas.topics.by_id(topic.topic_id)
            name = None if found is None else found.name
        partitions = [
            _produce(replicas, appender, name, data, body.acks, version, now, leaders)
            for data in topic.partition_data
        ]
        responses.append(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
            )
        )
    return ProduceResponse(responses=responses, node_endpoints=list(leaders.values()))


def _produce(
    replicas: ReplicaManager,
    appender: Appender,
    name: str | None,
    data: PartitionProduceData,
    acks: int,
    version: int,
    now: float,
    leaders: dict[int, NodeEndpoint],
) -> PartitionProduceResponse:
    if name is None:
        return failed(data.index, E.UNKNOWN_TOPIC_ID)
    partition, error = replicas.led(name, data.index)
    if partition is not None and name in INTERNAL:
        return failed(data.index, E.INVALID_TOPIC_EXCEPTION)
    if partition is None or error:
        response = failed(data.index, error)
        if partition is not None and version >= CURRENT_LEADER_FROM:
            response.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
            )
            leader = replicas.leader_endpoint(partition)
            if leader is not None:
                node_id, host, port, rack = leader
                leaders[node_id] = NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
        return response
    try:
        appended = appender.produce(partition, data.records, version, acks, now)
    except RecordsRejected as reason:
        response = rejected(data.index, reason, version)
        if reason.content_checked:
            response.log_start_offset = partition.log.log_start_offset
        return response
    return PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )


def failed(index: int, error: ErrorCode) -> PartitionProduceResponse:
    """Return the response of a partition with an error."""
    return PartitionProduceResponse(index=index, error_code=error, base_offset=NO_OFFSET)


def rejected(index: int, reason: RecordsRejected, version: int) -> PartitionProduceResponse:
    """Return the response of a partition whose records are rejected."""
    response = failed(index, reason.error)
    if version >= RECORD_ERRORS_FROM:
        response.error_message = reason.message
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in reason.records
        ]
    return response
