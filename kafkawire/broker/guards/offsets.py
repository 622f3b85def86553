"""Checks of the offsets of groups: topics below groups, and refusals of their own form."""

from __future__ import annotations

from typing import Any, Final

from ...messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from ...messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ...messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from ...messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ...messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ...messages.offset_delete_request import OffsetDeleteRequest
from ...messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ...messages.offset_fetch_request import OffsetFetchRequest
from ...messages.offset_fetch_response import (
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ...messages.share_acknowledge_request import ShareAcknowledgeRequest
from ...messages.share_acknowledge_response import (
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from ...protocol import ErrorCode
from ..security.permissions import Permission
from .access import Access, with_
from .checks import Check, Partly, Verdict, each, judge, whole

E, P = ErrorCode, Permission
FAILED: Final = E.TOPIC_AUTHORIZATION_FAILED
NO_OFFSET: Final = -1
ERROR_AT_TOP_FROM: Final = 2
"""The version of OffsetFetch from which on the error of a group is at the top."""

# -- the responses of refused topics, where those of the API have their error at the top


def _offset_delete(body: OffsetDeleteRequest, error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=one.partition_index, error_code=error
                    )
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _alter_share(
    body: AlterShareGroupOffsetsRequest, error: ErrorCode
) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        responses=[
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                partitions=[
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=one.partition_index,
                        error_code=error,
                        error_message=error.name,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _delete_share(
    body: DeleteShareGroupOffsetsRequest, error: ErrorCode
) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        responses=[
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, error_code=error, error_message=error.name
            )
            for topic in body.topics
        ]
    )


def _acknowledge(body: ShareAcknowledgeRequest, error: ErrorCode) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(
        responses=[
            ShareAcknowledgeTopicResponse(
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=one.partition_index,
                        error_code=error,
                        error_message=error.name,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


OFFSET_DELETE: Final = (
    whole(P.DELETE_GROUP, "group_id"),
    each(P.READ_TOPIC, "topics", "topics", refuse=_offset_delete),
)
ALTER_SHARE_OFFSETS: Final = (
    whole(P.READ_GROUP, "group_id"),
    each(P.READ_TOPIC, "topics", "responses", "topic_name", refuse=_alter_share, keeps=True),
)
DELETE_SHARE_OFFSETS: Final = (
    whole(P.DELETE_GROUP, "group_id"),
    each(P.READ_TOPIC, "topics", "responses", "topic_name", refuse=_delete_share, keeps=True),
)
SHARE_ACKNOWLEDGE: Final = (
    whole(P.READ_GROUP, "group_id"),
    each(P.READ_TOPIC, "topics", "responses", refuse=_acknowledge, keeps=True),
)

# -- offsets of groups: topics of several groups


def _share_topic(topic: Any) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=NO_OFFSET,
                error_code=FAILED,
                error_message=FAILED.name,
            )
            for index in topic.partitions
        ],
    )


def _committed_topic(topic: Any) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=FAILED
            )
            for index in topic.partition_indexes
        ],
    )


def _name_of(access: Access, topic: Any) -> str | None:
    if hasattr(topic, "topic_name"):
        name: str = topic.topic_name
        return name
    return access.topic_name(topic)


def _topics_of_groups(access: Access, body: Any) -> Verdict:
    """Refuse topics of each group; of all topics, show those that may be described."""
    refused: dict[str, list[Any]] = {}
    groups = []
    for group in body.groups:
        allowed, hidden = access.split(
            P.DESCRIBE_TOPIC, group.topics or (), lambda topic: _name_of(access, topic)
        )
        refused[group.group_id] = hidden
        groups.append(with_(group, topics=allowed) if hidden else group)

    def complete(response: Any) -> None:
        refused_topic = _committed_topic if isinstance(body, OffsetFetchRequest) else _share_topic
        for group in response.groups:
            if not group.error_code:
                visible, _ = access.split(
                    P.DESCRIBE_TOPIC, group.topics, lambda topic: _name_of(access, topic)
                )
                topics = map(refused_topic, refused.get(group.group_id, ()))
                group.topics = [*visible, *topics]

    return Partly(with_(body, groups=groups), complete)


GROUPS_OFFSETS: Final = (
    each(P.DESCRIBE_GROUP, "groups", "groups", "group_id"),
    Check((P.DESCRIBE_TOPIC,), _topics_of_groups),
)


def _offset_fetch(access: Access, body: OffsetFetchRequest) -> Verdict:
    """Check each group, or in old versions the one group and its topics."""
    checks = GROUPS_OFFSETS if body.groups else ONE_GROUP
    return judge(access, body, checks)


def _topics_of_group(access: Access, body: OffsetFetchRequest) -> Verdict:
    allowed, hidden = access.split(P.DESCRIBE_TOPIC, body.topics or (), access.topic_name)
    refused: Any = access.refusal(with_(body, topics=hidden), FAILED)

    def complete(response: Any) -> None:
        if not response.error_code:
            visible, _ = access.split(P.DESCRIBE_TOPIC, response.topics, access.topic_name)
            response.topics = [*visible, *refused.topics]

    return Partly(with_(body, topics=allowed) if hidden else body, complete)


def _group(access: Access, body: OffsetFetchRequest) -> Verdict:
    """Check the one group: the error is at the top, or before that of each partition."""
    part = body if access.request.version < ERROR_AT_TOP_FROM else with_(body, topics=[])
    return whole(P.DESCRIBE_GROUP, "group_id").judge(access, part)


ONE_GROUP: Final = (
    Check((P.DESCRIBE_GROUP,), _group),
    Check((P.DESCRIBE_TOPIC,), _topics_of_group),
)
OFFSET_FETCH: Final = (Check((P.DESCRIBE_GROUP, P.DESCRIBE_TOPIC), _offset_fetch),)
