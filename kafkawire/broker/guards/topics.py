"""Checks of topics that are created, deleted and described: names stay hidden without DESCRIBE."""

from __future__ import annotations

from typing import Any, Final

from ...messages.create_topics_request import CreateTopicsRequest
from ...messages.create_topics_response import CreateTopicsResponse
from ...messages.delete_topics_request import DeleteTopicsRequest
from ...messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from ...messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ...messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...messages.metadata_response import MetadataResponse, MetadataResponseTopic
from ...protocol import ErrorCode
from ..security.operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, AclResource, Operation
from ..security.permissions import Permission
from .access import NO_ID, Access, with_
from .checks import Check, Partly, Verdict, appends, each, operations, shown

E, P = ErrorCode, Permission
FAILED: Final = E.TOPIC_AUTHORIZATION_FAILED
UNKNOWN: Final = -1
IDS_FROM: Final = 12
CLUSTER_OPERATIONS_TO: Final = 10
NULL_IS_ALL_FROM: Final = 1

# -- Metadata


def _metadata(access: Access, body: MetadataRequest) -> Verdict:
    """Leave out topics that may not be described, or created."""
    version, topics = access.request.version, body.topics
    if topics is None or (not topics and version < NULL_IS_ALL_FROM):
        return DESCRIBED.judge(access, body)
    if version < IDS_FROM and any(one.name is None or one.topic_id != NO_ID for one in topics):
        return None  # not a valid request
    allowed, hidden = access.split(P.DESCRIBE_TOPIC, topics, access.topic_name)
    hidden = [*(one for one in allowed if not _may_create(access, body, one)), *hidden]
    allowed = [one for one in allowed if _may_create(access, body, one)]
    refused = [_refused(one) for one in hidden]
    if not refused:
        return None

    def complete(response: MetadataResponse) -> None:
        response.topics = [*(response.topics if allowed else ()), *refused]

    return Partly(with_(body, topics=allowed), complete)


DESCRIBED: Final = shown(P.DESCRIBE_TOPIC, "topics", "name")


def _refused(one: MetadataRequestTopic) -> MetadataResponseTopic:
    """Return a topic that may not be described: with its name or its id, as it was requested."""
    if one.topic_id != NO_ID:
        return MetadataResponseTopic(error_code=FAILED, name=None, topic_id=one.topic_id)
    return MetadataResponseTopic(error_code=FAILED, name=one.name)


def _may_create(access: Access, body: MetadataRequest, one: MetadataRequestTopic) -> bool:
    """Return whether a topic exists, is not created by a request, or may be."""
    broker, name = access.broker, one.name
    creates = body.allow_auto_topic_creation and broker.settings.flag("auto.create.topics.enable")
    if not creates or name is None or one.topic_id != NO_ID or name in broker.metadata.topics:
        return True
    return access.may(P.CREATE_IN_CLUSTER) or access.may(P.CREATE_TOPIC, name)


def _cluster_operations(access: Access, body: Any) -> Verdict:
    """Put in the authorized operations of the cluster; 0 for who may not describe it."""
    wanted = body.include_cluster_authorized_operations
    of_metadata = isinstance(body, MetadataRequest)
    if not wanted or (of_metadata and access.request.version > CLUSTER_OPERATIONS_TO):
        return None

    def complete(response: Any) -> None:
        response.cluster_authorized_operations = 0
        if access.may(P.DESCRIBE_CLUSTER):
            response.cluster_authorized_operations = access.operations(
                AclResource.CLUSTER, "kafka-cluster", CLUSTER_OPERATIONS
            )

    return Partly(body, complete)


CLUSTER: Final = Check((P.DESCRIBE_CLUSTER,), _cluster_operations)
METADATA: Final = (
    Check((P.DESCRIBE_TOPIC, P.CREATE_IN_CLUSTER, P.CREATE_TOPIC), _metadata),
    Check((), _cluster_operations),
    operations(
        "topics",
        "name",
        AclResource.TOPIC,
        TOPIC_OPERATIONS,
        "include_topic_authorized_operations",
    ),
)

# -- DescribeTopicPartitions


def _topic_partitions(access: Access, body: DescribeTopicPartitionsRequest) -> Verdict:
    """Describe those topics of all that may be described; show an error for each other one."""
    names = [one.name for one in body.topics]
    first = "" if body.cursor is None else body.cursor.topic_name
    wanted = names or [topic.name for topic in access.broker.metadata.topics]
    allowed, hidden = access.split(P.DESCRIBE_TOPIC, wanted, lambda name: name)
    refused = DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=FAILED, name=name)
            for name in hidden
            if names and name >= first
        ]
    )
    if not hidden:
        return None
    if not allowed:
        return refused
    part = with_(body, topics=[TopicRequest(name=name) for name in allowed])
    return Partly(part, appends(refused, "topics"))


TOPIC_PARTITIONS: Final = (
    Check((P.DESCRIBE_TOPIC,), _topic_partitions),
    operations("topics", "name", AclResource.TOPIC, TOPIC_OPERATIONS, None),
)

# -- CreateTopics, DeleteTopics


def _hide_configs(access: Access, body: CreateTopicsRequest) -> Verdict:
    """Leave out the configs of new topics that may not be described."""

    def complete(response: CreateTopicsResponse) -> None:
        for one in response.topics:
            if not one.error_code and not access.may(P.DESCRIBE_TOPIC_CONFIGS, one.name):
                one.num_partitions = one.replication_factor = UNKNOWN
                one.configs = []
                one.topic_config_error_code = FAILED

    return Partly(body, complete)


CREATE_TOPICS: Final = (
    Check((P.DESCRIBE_TOPIC_CONFIGS,), _hide_configs),
    each(P.CREATE_TOPIC, "topics", "topics", unless=P.CREATE_IN_CLUSTER),
)


def _delete_topics(access: Access, body: DeleteTopicsRequest) -> Verdict:
    """Refuse topics that may not be deleted; only who may describe one gets its name."""
    if access.may_in_cluster(Operation.DELETE):
        return None
    names, unnamed = access.split(P.DELETE_TOPIC, body.topic_names, lambda name: name)
    topics, refused = access.split(P.DELETE_TOPIC, body.topics, access.topic_name)
    if not unnamed and not refused:
        return None
    refusal = DeleteTopicsResponse(
        responses=[
            *(DeletableTopicResult(name=name, error_code=FAILED) for name in unnamed),
            *(
                DeletableTopicResult(
                    name=_visible(access, one), topic_id=one.topic_id, error_code=FAILED
                )
                for one in refused
            ),
        ]
    )
    for result in refusal.responses:
        result.error_message = FAILED.name
    if not names and not topics:
        return refusal
    return Partly(with_(body, topic_names=names, topics=topics), appends(refusal, "responses"))


def _visible(access: Access, one: Any) -> str | None:
    """Return the name of a topic if it was in the request, or may be described."""
    name = access.topic_name(one)
    if one.name is not None or name is None or access.may(P.DESCRIBE_TOPIC, name):
        return name
    return None


DELETE_TOPICS: Final = (Check((P.DELETE_TOPIC, P.DESCRIBE_TOPIC), _delete_topics),)
