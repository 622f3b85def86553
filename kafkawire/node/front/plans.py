"""Completes the responses of a node's machines before a client gets them.

Law: a plan is data about one request: it has the part of the response that was made without the
machines, and what the client of that version and session expects.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

from ...broker.fetched import Fetched
from ...broker.replication.offsets import adapt
from ...broker.replication.producing import CURRENT_LEADER_FROM, RECORD_ERRORS_FROM
from ...broker.replication.reading import CURRENT_LEADER_FROM as FETCHED_LEADER_FROM
from ...broker.replication.reading import JOINED_BYTES, convert, is_included
from ...broker.replication.sessions import NO_SESSION, TOPIC_IDS_FROM, FetchContext
from ...messages.delete_records_response import DeleteRecordsResponse, DeleteRecordsTopicResult
from ...messages.fetch_request import FetchRequest, FetchTopic
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
from ...messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ...primitives import Message
from ...protocol import ErrorCode
from .metadata_cache import ImageMetadata

E = ErrorCode
MOVED: Final = frozenset({E.NOT_LEADER_OR_FOLLOWER, E.FENCED_LEADER_EPOCH})


class Plan(Protocol):
    """What becomes of a response."""

    def response(self, body: Message) -> Message | Fetched:
        """Return what the client gets."""


class AsItIs:
    """The client gets the response as it is."""

    def response(self, body: Message) -> Message | Fetched:
        """Return the response."""
        return body


@dataclass(slots=True)
class PlannedPartition:
    """A partition of a Produce. known: its response, if the machines do not get it."""

    index: int
    log_append_time_ms: int = -1
    known: PartitionProduceResponse | None = None


@dataclass(slots=True)
class ProducePlan:
    """A Produce: the partitions of each topic, in the order of the request."""

    version: int
    metadata: ImageMetadata
    topics: list[tuple[str, bytes, list[PlannedPartition]]]

    def response(self, body: Message) -> ProduceResponse:
        """Put the responses of the machines where the request has their partitions."""
        assert isinstance(body, ProduceResponse)
        rest = chain.from_iterable(topic.partition_responses for topic in body.responses)
        leaders: dict[int, ProduceEndpoint] = {}
        responses = []
        for name, topic_id, planned in self.topics:
            partitions = [
                each.known or self._adapted(each, name, topic_id, next(rest), leaders)
                for each in planned
            ]
            responses.append(
                TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=partitions)
            )
        return ProduceResponse(responses=responses, node_endpoints=list(leaders.values()))

    def _adapted(
        self,
        planned: PlannedPartition,
        name: str,
        topic_id: bytes,
        found: PartitionProduceResponse,
        leaders: dict[int, ProduceEndpoint],
    ) -> PartitionProduceResponse:
        if not found.error_code and planned.log_append_time_ms >= 0:
            found.log_append_time_ms = planned.log_append_time_ms
        if self.version < RECORD_ERRORS_FROM:
            found.error_message = None
        if found.error_code in MOVED and self.version >= CURRENT_LEADER_FROM:
            topics = self.metadata.topics
            topic = topics.get(name) if name else topics.by_id(topic_id)
            partition = None if topic is None else topic.partition(planned.index)
            if partition is not None:
                found.current_leader = ProduceLeader(
                    leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
                )
                endpoint = self.metadata.endpoint(partition.leader_id)
                if endpoint is not None:
                    node_id, host, port, rack = endpoint
                    leaders[node_id] = ProduceEndpoint(
                        node_id=node_id, host=host, port=port, rack=rack
                    )
        else:
            found.current_leader = ProduceLeader()
        return found


@dataclass(slots=True)
class FetchPlan:
    """A Fetch of a consumer, with its session. read_committed: its isolation level."""

    version: int
    metadata: ImageMetadata
    context: FetchContext
    read_committed: bool

    def response(self, body: Message) -> FetchResponse | Fetched:
        """Leave out what did not change in the session; do not copy large records."""
        assert isinstance(body, FetchResponse)
        context = self.context
        targets = {each.key: each for each in context.targets}
        batches: dict[int, list[bytes]] = {}
        leaders: dict[int, NodeEndpoint] = {}
        topics = []
        for topic in body.responses:
            included = []
            for data in topic.partitions:
                target = targets[topic.topic, topic.topic_id, data.partition_index]
                convert(data, target.requested, self.version)
                records = data.records or b""
                if not is_included(context, target, data, bool(records)):
                    continue
                self._adapt(data, topic, leaders)
                if len(records) > JOINED_BYTES:
                    data.records, batches[id(data)] = b"", [records]
                included.append(data)
            if included:
                topic.partitions = included
                topics.append(topic)
        response = FetchResponse(
            session_id=NO_SESSION if context.session is None else context.session.id,
            responses=topics,
            node_endpoints=list(leaders.values()),
        )
        return Fetched(response, batches) if batches else response

    def _adapt(
        self, data: PartitionData, topic: FetchableTopicResponse, leaders: dict[int, NodeEndpoint]
    ) -> None:
        if not self.read_committed:
            data.aborted_transactions = None
        found = self.metadata.topics.by_id(topic.topic_id)
        if self.version >= TOPIC_IDS_FROM and found is None:
            data.error_code = E.UNKNOWN_TOPIC_ID
        if data.error_code not in MOVED or self.version < FETCHED_LEADER_FROM:
            data.current_leader = LeaderIdAndEpoch()
            return
        partition = None if found is None else found.partition(data.partition_index)
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
    """A DeleteRecords. known: position of a topic in the request -> its result."""

    known: dict[int, DeleteRecordsTopicResult]

    def response(self, body: Message) -> DeleteRecordsResponse:
        """Put the results of the machines between those that are known."""
        assert isinstance(body, DeleteRecordsResponse)
        rest = iter(body.topics)
        count = len(self.known) + len(body.topics)
        return DeleteRecordsResponse(
            topics=[self.known.get(at) or next(rest) for at in range(count)]
        )


@dataclass(slots=True)
class OffsetsPlan:
    """A ListOffsets. known: (position of a topic, of its partition) -> the response."""

    version: int
    known: dict[tuple[int, int], ListOffsetsPartitionResponse]

    def response(self, body: Message) -> ListOffsetsResponse:
        """Replace the responses of partitions that were requested in a wrong way."""
        assert isinstance(body, ListOffsetsResponse)
        for each in chain.from_iterable(topic.partitions for topic in body.topics):
            adapt(each, self.version)
        for (topic, partition), response in self.known.items():
            body.topics[topic].partitions[partition] = response
        return body


def whole(body: FetchRequest, context: FetchContext) -> FetchRequest:
    """Return a Fetch of all partitions of a session, in their order, without the session."""
    topics: list[FetchTopic] = []
    last: tuple[str, bytes] | None = None
    for topic, topic_id, requested in context.targets:
        if last != (topic, topic_id):
            topics.append(FetchTopic(topic=topic, topic_id=topic_id, partitions=[]))
            last = topic, topic_id
        topics[-1].partitions.append(requested)
    return FetchRequest(
        max_wait_ms=body.max_wait_ms,
        min_bytes=body.min_bytes,
        max_bytes=body.max_bytes,
        isolation_level=body.isolation_level,
        topics=topics,
        rack_id=body.rack_id,
    )
