"""Metadata: returns brokers, topics, partitions and their leaders.

v0   the first
v1   response +rack +controller_id +is_internal │ no topics: null is all, empty is none;
      before, empty is all
v2   response +cluster_id
v3   response +throttle_time_ms
v4   request +allow_auto_topic_creation │ only from here on may a client forbid
      auto-creation
v5   response +offline_replicas
v6   no new fields │ throttled after the response
v7   response +leader_epoch
v8   request +include_cluster_authorized_operations +include_topic_authorized_operations;
      response +topic_authorized_operations +cluster_authorized_operations
v9   flexible
v10  request +topic_id; response +topic_id │ but an id, or no name, is INVALID_REQUEST
v11  request -include_cluster_authorized_operations; response -cluster_authorized_operations
v12  no new fields │ topics may be requested for by id
v13  response +error_code
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from ...configs.topic_names import topic_name_error
from ...messages.metadata_request import MetadataRequest
from ...messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..metadata_cache import PartitionMetadata, TopicMetadata
from ..network.connection import Connection
from ..request import UNTIL_METADATA, Request, Work
from ..security.operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from ..topics import INTERNAL, NO_LEADER

E = ErrorCode
NO_ID: Final = bytes(16)
NULL_IS_ALL_FROM: Final = 1
CLUSTER_OPERATIONS_TO: Final = 10
IDS_FROM: Final = 12
"""Topics may be requested by id; earlier versions have the field, but Kafka rejects it there."""


def handle(
    broker: Broker, request: Request, body: MetadataRequest, _connection: Connection, now: float
) -> MetadataResponse | Work[MetadataResponse]:
    """Describe the cluster; creates unknown topics where auto-creation is enabled."""
    if request.version < IDS_FROM and any(
        topic.name is None or topic.topic_id != NO_ID for topic in body.topics or []
    ):
        return error_response(body, E.INVALID_REQUEST)
    return _response(broker, body, request.version, now)


def _response(
    broker: Broker, body: MetadataRequest, version: int, now: float
) -> Work[MetadataResponse]:
    listener = [
        MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in broker.metadata.alive_endpoints()
    ]
    response = MetadataResponse(
        brokers=listener,
        cluster_id=broker.context.cluster_id,
        controller_id=broker.metadata.controller_id,
        topics=(yield from _topics(broker, body, version, now)),
    )
    if body.include_cluster_authorized_operations and version <= CLUSTER_OPERATIONS_TO:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if body.include_topic_authorized_operations:
        for topic in response.topics:
            if not topic.error_code:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    return response


def _topics(
    broker: Broker, body: MetadataRequest, version: int, now: float
) -> Generator[int, bool | None, list[MetadataResponseTopic]]:
    requested = body.topics
    if requested is None or (not requested and version < NULL_IS_ALL_FROM):
        rows = []
        for topic in list(broker.topics):
            rows.append(_described(topic))
            yield 1 + len(topic.partitions)
        return rows
    yield len(requested)
    ids = dict.fromkeys(one.topic_id for one in requested if one.topic_id != NO_ID)
    if ids:  # names are ignored then, as in Kafka
        rows = []
        for topic_id in ids:
            yield 1
            rows.append(_by_id(broker, topic_id))
        return rows
    names = dict.fromkeys(one.name for one in requested)
    if None in names:
        return error_response(body, E.UNKNOWN_SERVER_ERROR).topics
    return (yield from _named(broker, [name for name in names if name is not None], body, now))


def _named(
    broker: Broker, names: list[str], body: MetadataRequest, now: float
) -> Generator[int, bool | None, list[MetadataResponseTopic]]:
    topics, creation = broker.topics, broker.topic_creation
    most = topics.partition_count + broker.context.bounds.partitions_per_metadata
    rows: list[MetadataResponseTopic] = []
    creating: dict[int, str] = {}
    for name in names:
        yield 1
        planned = topics.partition_count + len(creating) * broker.settings.number("num.partitions")
        may_create = body.allow_auto_topic_creation and planned < most
        response = _by_name(broker, name, may_create, now)
        if may_create and creation.is_creating(name):
            creating[len(rows)] = name
        if may_create != body.allow_auto_topic_creation and _creatable(broker, response):
            response.error_code = E.LEADER_NOT_AVAILABLE  # the next Metadata creates it
        rows.append(response)
    while any(map(creation.is_creating, creating.values())):
        if not (yield UNTIL_METADATA):
            break
    for position, name in creating.items():
        rows[position] = _by_name(broker, name, False, now)
    return rows


def _creatable(broker: Broker, response: MetadataResponseTopic) -> bool:
    """Whether a topic is unknown and would be created by another Metadata."""
    enabled = broker.settings.flag("auto.create.topics.enable")
    unknown = response.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    return enabled and unknown and response.name not in INTERNAL


def _by_id(broker: Broker, topic_id: bytes) -> MetadataResponseTopic:
    topic = broker.topics.by_id(topic_id)
    if topic is not None:
        return _described(topic)
    return MetadataResponseTopic(error_code=E.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)


def _by_name(broker: Broker, name: str, may_create: bool, now: float) -> MetadataResponseTopic:
    find = broker.topic_creation.find_or_create_topic
    topic = find(name, now) if may_create else broker.topics.get(name)
    if topic is not None:
        return _described(topic)
    unknown = topic_name_error(name) is None
    error = E.UNKNOWN_TOPIC_OR_PARTITION if unknown else E.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=error, name=name)


def _described(topic: TopicMetadata) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(each) for each in topic.partitions],
    )


def _partition(partition: PartitionMetadata) -> MetadataResponsePartition:
    led = partition.leader_id != NO_LEADER
    return MetadataResponsePartition(
        error_code=E.NONE if led else E.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=partition.offline,
    )


def error_response(body: MetadataRequest, error: ErrorCode) -> MetadataResponse:
    """Return a response with the error for each topic."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=error, name=one.name or "", topic_id=one.topic_id)
            for one in body.topics or []
        ]
    )
