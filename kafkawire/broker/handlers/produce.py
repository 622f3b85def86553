"""Produce: appends records to partitions that this broker leads.

v0   the first
v1   response +throttle_time_ms
v2   response +log_append_time_ms │ magic 1
v3   request +transactional_id │ magic 2, one batch per partition
v4   no new fields │ KAFKA_STORAGE_ERROR may be returned
v5   response +log_start_offset
v6   no new fields │ throttled after the response
v7   no new fields │ zstd
v8   response +record_errors +error_message
v9   flexible
v10  response +current_leader +node_endpoints
v11  no new fields │ errors of transactions (KIP-890)
v12  no new fields │ transactions V2 (KIP-890)
v13  request +topic_id -name; response +topic_id -name
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
from ..broker import Broker
from ..log.validation import RecordsRejected
from ..network.connection import Connection
from ..request import NO_RESPONSE, Outcome, Request
from ..topics import INTERNAL

E = ErrorCode
ACKS: Final = frozenset({-1, 0, 1})
NO_OFFSET: Final = -1
RECORD_ERRORS_FROM: Final = 8
CURRENT_LEADER_FROM: Final = 10
TOPIC_IDS_FROM: Final = 13


def handle(
    broker: Broker, request: Request, body: ProduceRequest, connection: Connection, now: float
) -> ProduceResponse | Outcome:
    """Append records; with acks=0 there is no response, but an error closes the connection."""
    if body.acks not in ACKS:
        return error_response(body, E.INVALID_REQUIRED_ACKS)
    responses = []
    leaders: dict[int, NodeEndpoint] = {}
    for topic in body.topic_data:
        name: str | None = topic.name
        if request.version >= TOPIC_IDS_FROM:
            found = broker.topics.by_id(topic.topic_id)
            name = None if found is None else found.name
        partitions = [
            _produce(broker, name, data, body.acks, request.version, now, leaders)
            for data in topic.partition_data
        ]
        responses.append(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
            )
        )
    if body.acks == 0:
        failed = [p.error_code for each in responses for p in each.partition_responses]
        if any(failed):
            error = ErrorCode(next(code for code in failed if code))
            broker.channel.close(connection, f"Produce with acks=0 failed: {error.name}")
        return NO_RESPONSE
    return ProduceResponse(responses=responses, node_endpoints=list(leaders.values()))


def _produce(
    broker: Broker,
    name: str | None,
    data: PartitionProduceData,
    acks: int,
    version: int,
    now: float,
    leaders: dict[int, NodeEndpoint],
) -> PartitionProduceResponse:
    if name is None:
        return _failed(data.index, E.UNKNOWN_TOPIC_ID)
    partition, error = broker.replicas.led(name, data.index)
    if partition is not None and name in INTERNAL:
        return _failed(data.index, E.INVALID_TOPIC_EXCEPTION)
    if partition is None or error:
        failed = _failed(data.index, error)
        if partition is not None and version >= CURRENT_LEADER_FROM:
            failed.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
            )
            leader = broker.replicas.leader_endpoint(partition)
            if leader is not None:
                node_id, host, port, rack = leader
                leaders[node_id] = NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
        return failed
    try:
        appended = broker.appender.produce(partition, data.records, version, acks, now)
    except RecordsRejected as rejected:
        failed = _rejected(data.index, rejected, version)
        if rejected.content_checked:
            failed.log_start_offset = partition.log.log_start_offset
        return failed
    return PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )


def _failed(index: int, error: ErrorCode) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=error, base_offset=NO_OFFSET)


def _rejected(index: int, rejected: RecordsRejected, version: int) -> PartitionProduceResponse:
    failed = _failed(index, rejected.error)
    if version >= RECORD_ERRORS_FROM:
        failed.error_message = rejected.message
        failed.record_errors = [
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in rejected.records
        ]
    return failed


def error_response(body: ProduceRequest, error: ErrorCode) -> ProduceResponse:
    """Return a response with the error for each partition."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(each.index, error) for each in topic.partition_data],
            )
            for topic in body.topic_data
        ]
    )
