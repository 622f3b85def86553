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

from dataclasses import dataclass
from typing import Final

from ...messages.produce_request import ProduceRequest
from ...messages.produce_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ...protocol import ErrorCode
from ...records.validated import ValidatedBatch
from ...replication import Append, AppendRejected, AppendResult
from ...replication.fetching import MOVED
from ..broker import Broker
from ..log.validation import RecordsRejected, check
from ..metadata_cache import MetadataCache
from ..network.connection import Connection
from ..quotas.throttling import Throttling
from ..request import DELAYED, NO_RESPONSE, Outcome, Request
from ..topics import INTERNAL
from ..transactions.verification import Errors

E = ErrorCode
NONE: Final = E.NONE
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
        response = _produce(broker, request, body, now)
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
    for topic in body.topic_data:
        for each in topic.partition_data:
            records = each.records
            if records is None or len(records) <= ATTRIBUTES_AT or records[MAGIC_AT] < MAGIC:
                continue
            if records[ATTRIBUTES_AT] & TRANSACTIONAL_BIT:
                return True
    return False


def _produce(
    broker: Broker, request: Request, body: ProduceRequest, now: float
) -> ProduceResponse | Outcome:
    """Append records, those of a transaction after its coordinator has verified them."""
    refused = _refused(broker, body, request.version)
    if body.transactional_id is not None:

        def then(errors: Errors, now: float) -> None:
            _append_verified(broker, request, body, refused, errors, now)

        if broker.transactions.produced.verify(request.version, body, then, now):
            return DELAYED
    return append(broker, request, body, refused, now)


def _refused(broker: Broker, body: ProduceRequest, version: int) -> dict[int, AppendResult]:
    """Return the results of partitions that clients may not write; index -> result."""
    refused: dict[int, AppendResult] = {}
    index = 0
    for topic in body.topic_data:
        name, error = topic.name, NONE
        if version >= TOPIC_IDS_FROM:
            image = broker.metadata.image.topics.get(topic.topic_id)
            name, error = ("", E.UNKNOWN_TOPIC_ID) if image is None else (image.name, NONE)
        if name in INTERNAL and name in broker.metadata.topics:
            error = E.INVALID_TOPIC_EXCEPTION
        last = index + len(topic.partition_data)
        if error:
            refused |= dict.fromkeys(range(index, last), AppendResult(error))
        index = last
    return refused


def append(
    broker: Broker,
    request: Request,
    body: ProduceRequest,
    refused: dict[int, AppendResult],
    now: float,
) -> ProduceResponse | Outcome:
    """Append the records that are not refused. refused: index of a partition -> its result."""
    version, wall_ms = request.version, broker.context.wall_ms(now)
    transactional = body.transactional_id is not None

    def validate(topic: str, records: bytes) -> tuple[ValidatedBatch]:
        rules = broker.rules.of(topic)
        try:
            return (check(records, version, rules, wall_ms, transactional),)
        except RecordsRejected as reason:
            raise AppendRejected(
                reason.error, reason.message, reason.records, reason.content_checked
            ) from None

    how = Append(body.acks, body.timeout_ms / 1000, False, validate, refused)
    return broker.machines.respond(
        request,
        lambda replicas, token: replicas.appends.produce(token, body, how, now),
        ProducePlan(request, broker.metadata, broker.throttling),
        now,
    )


def _append_verified(
    broker: Broker,
    request: Request,
    body: ProduceRequest,
    refused: dict[int, AppendResult],
    errors: Errors,
    now: float,
) -> None:
    """Append those records of a transaction that its coordinator knows of."""
    if request.reply_to not in broker.channel.pending:
        return  # the client has disconnected; another request has the records again
    index = 0
    for topic in body.topic_data:
        name = topic.name or broker.metadata.topic_name(topic.topic_id)
        for each in topic.partition_data:
            error = errors.get((name, each.index))
            if error:
                refused.setdefault(index, AppendResult(error))
            index += 1
    response = append(broker, request, body, refused, now)
    if body.acks == 0:
        broker.channel.end(request.reply_to, now)
    elif not isinstance(response, Outcome):
        broker.channel.respond(request.reply_to, response, now)


@dataclass(slots=True)
class ProducePlan:
    """A Produce of a client."""

    request: Request
    metadata: MetadataCache
    throttling: Throttling

    def response(self, body: ProduceResponse, now: float) -> ProduceResponse:
        """Say what the client's version has of errors; throttle the client."""
        leaders: dict[int, NodeEndpoint] = {}
        for topic in body.responses:
            for data in topic.partition_responses:
                if data.error_code:
                    self._adapt(data, topic.name, topic.topic_id, leaders)
        if leaders:
            body.node_endpoints = list(leaders.values())
        if self.throttling.limits_produce:
            body.throttle_time_ms = self.throttling.produced(self.request, now)
        return body

    def _adapt(
        self,
        data: PartitionProduceResponse,
        name: str,
        topic_id: bytes,
        leaders: dict[int, NodeEndpoint],
    ) -> None:
        version = self.request.version
        if version < RECORD_ERRORS_FROM:
            data.error_message, data.record_errors = None, []
        data.current_leader = LeaderIdAndEpoch()
        if data.error_code not in MOVED or version < CURRENT_LEADER_FROM:
            return
        topics = self.metadata.topics
        topic = topics.get(name) if name else topics.by_id(topic_id)
        partition = None if topic is None else topic.partition(data.index)
        if partition is not None:
            data.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
            )
            endpoint = self.metadata.endpoint(partition.leader_id)
            if endpoint is not None:
                node_id, host, port, rack = endpoint
                leaders[node_id] = NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)


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
