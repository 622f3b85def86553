"""Makes the responses of replicas and of the controller those of a client.

A plan knows the client's version and session. It changes a response in place, and counts it against
the client's quotas.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Final

from ...broker.fetch_sessions import NO_SESSION, TOPIC_IDS_FROM, FetchContext
from ...broker.fetched import Fetched
from ...broker.handlers.list_offsets import EPOCH_FROM, NO_EPOCH
from ...broker.handlers.produce import CURRENT_LEADER_FROM, RECORD_ERRORS_FROM
from ...broker.log.conversion import AS_STORED_FROM, convert
from ...broker.metadata_cache import MetadataCache
from ...broker.request import Request
from ...messages.delete_records_response import DeleteRecordsResponse, DeleteRecordsTopicResult
from ...messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ...messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from ...messages.produce_response import LeaderIdAndEpoch as ProduceLeader
from ...messages.produce_response import NodeEndpoint as ProduceEndpoint
from ...messages.produce_response import PartitionProduceResponse, ProduceResponse
from ...protocol import ErrorCode
from ...replication.fetching import MOVED
from .quotas.throttling import Throttling

E = ErrorCode
FETCHED_LEADER_FROM: Final = 16
JOINED_BYTES: Final = 1 << 14
"""Records of a partition up to this size are joined: a copy costs less than a write of its own."""


@dataclass(slots=True)
class ProducePlan:
    """A Produce of a client."""

    request: Request
    metadata: MetadataCache
    throttling: Throttling

    def response(self, body: ProduceResponse, now: float) -> ProduceResponse:
        """Say what the client's version has of errors; throttle the client."""
        leaders: dict[int, ProduceEndpoint] = {}
        for topic in body.responses:
            for data in topic.partition_responses:
                if data.error_code:
                    self._adapt(data, topic.name, topic.topic_id, leaders)
        if leaders:
            body.node_endpoints = list(leaders.values())
        body.throttle_time_ms = self.throttling.produced(self.request, now)
        return body

    def _adapt(
        self,
        data: PartitionProduceResponse,
        name: str,
        topic_id: bytes,
        leaders: dict[int, ProduceEndpoint],
    ) -> None:
        version = self.request.version
        if version < RECORD_ERRORS_FROM:
            data.error_message, data.record_errors = None, []
        data.current_leader = ProduceLeader()
        if data.error_code not in MOVED or version < CURRENT_LEADER_FROM:
            return
        topics = self.metadata.topics
        topic = topics.get(name) if name else topics.by_id(topic_id)
        partition = None if topic is None else topic.partition(data.index)
        if partition is not None:
            data.current_leader = ProduceLeader(
                leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
            )
            endpoint = self.metadata.endpoint(partition.leader_id)
            if endpoint is not None:
                node_id, host, port, rack = endpoint
                leaders[node_id] = ProduceEndpoint(node_id=node_id, host=host, port=port, rack=rack)


@dataclass(slots=True)
class FetchPlan:
    """A Fetch of a consumer, with its session.

    read_committed: its isolation level. quota: how many bytes its client may fetch; None for any.
    """

    request: Request
    metadata: MetadataCache
    context: FetchContext
    read_committed: bool
    quota: int | None
    throttling: Throttling

    def response(self, body: FetchResponse, now: float) -> FetchResponse | Fetched:
        """Leave out what did not change in the session; do not copy large records.

        A client that exceeds its quota gets nothing, and its session stays as it is.
        """
        session = self.context.session
        body.session_id = NO_SESSION if session is None else session.id
        if self.quota is not None:
            throttle_ms = self.throttling.fetched(self.request, body, session is not None, now)
            if throttle_ms:
                return FetchResponse(throttle_time_ms=throttle_ms, session_id=body.session_id)
        if session is not None:
            self._leave_out_unchanged(body)
        if self.request.version < AS_STORED_FROM:
            self._convert(body)
        batches: dict[int, list[bytes]] = {}
        leaders: dict[int, NodeEndpoint] = {}
        for topic in body.responses:
            for data in topic.partitions:
                if not self.read_committed:
                    data.aborted_transactions = None
                if data.error_code:
                    self._adapt(data, topic.topic_id, leaders)
                records = data.records or b""
                if len(records) > JOINED_BYTES:
                    data.records, batches[id(data)] = b"", [records]
        body.node_endpoints = list(leaders.values())
        return Fetched(body, batches) if batches else body

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
        if data.error_code not in MOVED or version < FETCHED_LEADER_FROM:
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


@dataclass(slots=True)
class DeletionPlan:
    """A DeleteRecords. refused: position of a topic in the request -> its result."""

    refused: dict[int, DeleteRecordsTopicResult]

    def response(self, body: DeleteRecordsResponse, _now: float) -> DeleteRecordsResponse:
        """Put the refused topics where the request has them."""
        if self.refused:
            rest = iter(body.topics)
            count = len(self.refused) + len(body.topics)
            body.topics = [self.refused.get(number) or next(rest) for number in range(count)]
        return body


@dataclass(slots=True)
class OffsetsPlan:
    """A ListOffsets. refused: (position of a topic, of its partition) -> the response."""

    version: int
    refused: dict[tuple[int, int], ListOffsetsPartitionResponse]

    def response(self, body: ListOffsetsResponse, _now: float) -> ListOffsetsResponse:
        """Replace the responses of partitions that were requested in a wrong way."""
        if self.version < EPOCH_FROM:
            for each in chain.from_iterable(topic.partitions for topic in body.topics):
                each.leader_epoch = NO_EPOCH
        for (topic, partition), response in self.refused.items():
            body.topics[topic].partitions[partition] = response
        return body
