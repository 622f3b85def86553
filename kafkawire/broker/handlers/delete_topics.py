"""DeleteTopics: deletes topics by name or by id.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response
v3   no new fields │ TOPIC_DELETION_DISABLED may be returned
v4   flexible
v5   response +error_message
v6   request +topics -topic_names; response +topic_id
"""

from __future__ import annotations

from typing import Final

from ...messages.delete_topics_request import DeleteTopicsRequest
from ...messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request
from ..topics import Topic

E = ErrorCode
STATES_FROM: Final = 6


def handle(
    broker: Broker, request: Request, body: DeleteTopicsRequest, _connection: Connection, now: float
) -> DeleteTopicsResponse:
    """Delete each topic."""
    if request.version >= STATES_FROM:
        requested = [(each.name, each.topic_id) for each in body.topics]
    else:
        requested = [(name, bytes(16)) for name in body.topic_names]
    found: dict[str, Topic] = {}
    responses = [_find(broker, *each, found) for each in requested]
    broker.controller.delete_topics(list(found.values()), now)
    return DeleteTopicsResponse(responses=responses)


def _find(
    broker: Broker, name: str | None, topic_id: bytes, found: dict[str, Topic]
) -> DeletableTopicResult:
    """Find a topic to delete and add it to `found`; a duplicate is unknown."""
    topics = broker.topics
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


def error_response(body: DeleteTopicsRequest, error: ErrorCode) -> DeleteTopicsResponse:
    """Return a response with the error for each topic."""
    requested = [(name, bytes(16)) for name in body.topic_names]
    by_state = [(each.name, each.topic_id) for each in body.topics]
    return DeleteTopicsResponse(
        responses=[_failed(name, topic_id, error) for name, topic_id in [*requested, *by_state]]
    )
