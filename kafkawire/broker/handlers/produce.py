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

from ...messages.produce_request import ProduceRequest
from ...messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import DELAYED, NO_RESPONSE, Outcome, Request

E = ErrorCode
ACKS: Final = frozenset({-1, 0, 1})
NO_OFFSET: Final = -1
RECORD_ERRORS_FROM: Final = 8
CURRENT_LEADER_FROM: Final = 10
TOPIC_IDS_FROM: Final = 13
MAGIC: Final = 2
MAGIC_AT: Final = 16
ATTRIBUTES_AT: Final = 22
TRANSACTIONAL_BIT: Final = 0x10
"""In the lower byte of the attributes, of magic 2."""


def handle(
    broker: Broker, request: Request, body: ProduceRequest, connection: Connection, now: float
) -> ProduceResponse | Outcome:
    """Append records; with acks=0 there is no response, but an error closes the connection."""
    if body.acks not in ACKS:
        return error_response(body, E.INVALID_REQUIRED_ACKS)
    response: ProduceResponse | Outcome
    if body.transactional_id is None and _is_transactional(body):
        response = error_response(body, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    else:
        response = broker.replicas.produce(request, body, now)
    if response is DELAYED or body.acks != 0:
        return response
    if isinstance(response, ProduceResponse):
        codes = [p.error_code for each in response.responses for p in each.partition_responses]
        if any(codes):
            error = ErrorCode(next(code for code in codes if code))
            broker.channel.close(connection, f"Produce with acks=0 failed: {error.name}")
    return NO_RESPONSE


def _is_transactional(body: ProduceRequest) -> bool:
    """Whether the first batch of any partition is part of a transaction."""
    return any(
        len(records) > ATTRIBUTES_AT
        and records[MAGIC_AT] >= MAGIC
        and records[ATTRIBUTES_AT] & TRANSACTIONAL_BIT
        for topic in body.topic_data
        for each in topic.partition_data
        for records in (each.records or b"",)
    )


def error_response(body: ProduceRequest, error: ErrorCode) -> ProduceResponse:
    """Return a response with the error for each partition."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=each.index, error_code=error, base_offset=NO_OFFSET
                    )
                    for each in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ]
    )
