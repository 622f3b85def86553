"""Fetch: reads records.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ magic 1
v3   request +max_bytes │ limits are soft: the first batch is returned whole
v4   request +isolation_level; response +last_stable_offset +aborted_transactions │ magic 2
v5   request +log_start_offset; response +log_start_offset
v6   no new fields │ KAFKA_STORAGE_ERROR may be returned
v7   request +session_id +session_epoch +forgotten_topics_data; response +error_code
      +session_id
v8   no new fields │ throttled after the response
v9   request +current_leader_epoch
v10  no new fields │ zstd
v11  request +rack_id; response +preferred_read_replica
v12  request +cluster_id +last_fetched_epoch; response +diverging_epoch +current_leader
      +snapshot_id; flexible
v13  request +topic_id -topic; response +topic_id -topic
v14  no new fields │ OFFSET_MOVED_TO_TIERED_STORAGE may be returned
v15  request +replica_state -replica_id
v16  response +node_endpoints
v17  request +replica_directory_id
v18  request +high_watermark
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ...protocol import ErrorCode
from ...replication.fetch_params import READ_COMMITTED, Target, fetch_of, params_of, targets_of
from ...replication.fetching import MOVED
from ..broker import Broker
from ..fetch_sessions import NO_SESSION, TOPIC_IDS_FROM, FetchContext, requested
from ..forwarding import AsItIs
from ..log.conversion import AS_STORED_FROM, convert
from ..metadata_cache import MetadataCache
from ..network.connection import Connection
from ..quotas.throttling import Throttling
from ..request import Outcome, Request

E = ErrorCode
CURRENT_LEADER_FROM: Final = 16
LEADER_FIELD_FROM: Final = 12
"""Clients get current leaders from 16 on (KIP-951), followers wherever the field is."""


class WithoutLeaders:
    """A follower of a version without current leaders gets the response without them."""

    def response(self, body: FetchResponse, _now: float) -> FetchResponse:
        """Return the response."""
        for topic in body.responses:
            for partition in topic.partitions:
                partition.current_leader = LeaderIdAndEpoch()
        return body


def handle(
    broker: Broker, request: Request, body: FetchRequest, _connection: Connection, now: float
) -> FetchResponse | Outcome:
    """Read records, or delay the response; a consumer has a session, a follower has none."""
    version, params = request.version, params_of(body, request.version)
    if params.is_from_follower:
        return broker.machines.respond(
            request,
            lambda replicas, token: replicas.fetches.fetch(
                token, fetch_of(replicas.replicas, params, body, targets_of(body)), now
            ),
            AsItIs[FetchResponse]() if version >= LEADER_FIELD_FROM else WithoutLeaders(),
            now,
        )
    context = broker.sessions.resolve(body, version, now)
    if isinstance(context, ErrorCode):
        return FetchResponse(error_code=context)
    refused: Sequence[Target] = ()
    if broker.authorizer is not None:
        context, refused = _readable(broker, request, context)
    throttling = broker.throttling
    quota = throttling.most_fetched(request) if throttling.limits_fetch else None
    read_committed = body.isolation_level == READ_COMMITTED
    return broker.machines.respond(
        request,
        lambda replicas, token: replicas.fetches.fetch(
            token, fetch_of(replicas.replicas, params, body, context.targets, quota), now
        ),
        FetchPlan(request, broker.metadata, context, read_committed, quota, throttling, refused),
        now,
    )


def _readable(
    broker: Broker, request: Request, context: FetchContext
) -> tuple[FetchContext, Sequence[Target]]:
    """Divide the partitions of a session into those that its client may read, and the others."""
    from ..guards.fetches import readable  # imported only with an authorizer

    targets, refused = readable(broker, request, context.targets, lambda target: target[:2])
    return replace(context, targets=targets), refused


@dataclass(slots=True)
class FetchPlan:
    """A Fetch of a consumer, with its session.

    read_committed: its isolation level. quota: how many bytes its client may fetch; None for any.
    refused: partitions that it may not read.
    """

    request: Request
    metadata: MetadataCache
    context: FetchContext
    read_committed: bool
    quota: int | None
    throttling: Throttling
    refused: Sequence[Target] = ()

    def response(self, body: FetchResponse, now: float) -> FetchResponse:
        """Leave out what did not change in the session.

        A client that exceeds its quota gets nothing, and its session stays as it is.
        """
        session = self.context.session
        body.session_id = NO_SESSION if session is None else session.id
        if self.quota is not None or self.throttling.counts_time:
            throttle_ms = self.throttling.fetched(self.request, body, session is not None, now)
            if throttle_ms:
                return FetchResponse(throttle_time_ms=throttle_ms, session_id=body.session_id)
        if session is not None:
            self._leave_out_unchanged(body)
        if self.request.version < AS_STORED_FROM:
            self._convert(body)
        leaders: dict[int, NodeEndpoint] = {}
        for topic in body.responses:
            for data in topic.partitions:
                if not self.read_committed:
                    data.aborted_transactions = None
                if data.error_code:
                    self._adapt(data, topic.topic_id, leaders)
        body.node_endpoints = list(leaders.values())
        body.responses += self._refusals() if self.refused else ()
        return body

    def _refusals(self) -> list[FetchableTopicResponse]:
        """Return the responses of partitions that the client may not read."""
        return error_response(requested(self.refused), E.TOPIC_AUTHORIZATION_FAILED).responses

    def _convert(self, body: FetchResponse) -> None:
        """Convert the records for clients of old versions."""
        targets = {each.key: each for each in self.context.targets}
        for topic in body.responses:
            for data in topic.partitions:
                target = targets[topic.topic, topic.topic_id, data.partition_index]
                convert(data, target.requested, self.request.version)

    def _leave_out_unchanged(self, body: FetchResponse) -> None:
        context = self.context
        targets = {each.key: each for each in context.targets}
        topics: list[FetchableTopicResponse] = []
        for topic in body.responses:
            topic.partitions = [
                data
                for data in topic.partitions
                if context.includes(
                    targets[topic.topic, topic.topic_id, data.partition_index],
                    data,
                    bool(data.records),
                )
            ]
            if topic.partitions:
                topics.append(topic)
        body.responses = topics

    def _adapt(
        self, data: PartitionData, topic_id: bytes, leaders: dict[int, NodeEndpoint]
    ) -> None:
        version = self.request.version
        topic = self.metadata.topics.by_id(topic_id)
        if version >= TOPIC_IDS_FROM and topic is None:
            data.error_code = E.UNKNOWN_TOPIC_ID
        if data.error_code not in MOVED or version < CURRENT_LEADER_FROM:
            data.current_leader = LeaderIdAndEpoch()
            return
        partition = None if topic is None else topic.partition(data.partition_index)
        if partition is None:
            return
        data.current_leader = LeaderIdAndEpoch(
            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        )
        endpoint = self.metadata.endpoint(partition.leader_id)
        if endpoint is not None:
            node_id, host, port, rack = endpoint
            leaders[node_id] = NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)


def error_response(body: FetchRequest, error: ErrorCode) -> FetchResponse:
    """Return a response with the error for each partition."""
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=each.partition,
                        error_code=error,
                        high_watermark=-1,
                        records=b"",
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
