"""Deletes topics by name or by id.

Law: a topic that is named twice in one request is deleted once.
"""

from __future__ import annotations

from typing import Final

from ....messages.delete_topics_request import DeleteTopicsRequest
from ....messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from ....protocol import ErrorCode
from ...request import Request
from ...topics import Topic
from ..controller import Controller

E = ErrorCode
STATES_FROM: Final = 6


def delete_topics(
    controller: Controller, request: Request, body: DeleteTopicsRequest, now: float
) -> DeleteTopicsResponse:
    """Delete each topic."""
    if request.version >= STATES_FROM:
        requested = [(each.name, each.topic_id) for each in body.topics]
    else:
        requested = [(name, bytes(16)) for name in body.topic_names]
    found: dict[str, Topic] = {}
    responses = [_find(controller, *each, found) for each in requested]
    controller.delete_topics(list(found.values()), now)
    return DeleteTopicsResponse(responses=responses)


def _find(
    controller: Controller, name: str | None, topic_id: bytes, found: dict[str, Topic]
) -> DeletableTopicResult:
    """Find a topic to delete and add it to `found`; a duplicate is unknown."""
    topics = controller.topics
    if name is not None and topic_id != bytes(16):
        return _failed(name, topic_id, E.INVALID_REQUEST)
    topic = topics.by_id(topic_id) if name is None else topics.get(name)
    if topic is None or topic.name in found:
        unknown = E.UNKNOWN_TOPIC_ID if name is None else E.UNKNOWN_TOPIC_OR_PARTITION
        return _failed(name, topic_id, unknown)
    found[topic.name] = topic
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _failed(name: str | None, topic_id: bytes, error: ErrorCode) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error, error_message=error.name
    )
