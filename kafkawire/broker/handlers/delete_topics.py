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

from ...messages.delete_topics_request import DeleteTopicsRequest
from ...messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from ...protocol import ErrorCode
from .forwarding import handle

__all__ = ["error_response", "handle"]


def error_response(body: DeleteTopicsRequest, error: ErrorCode) -> DeleteTopicsResponse:
    """Return a response with the error for each topic."""
    requested = [(name, bytes(16)) for name in body.topic_names]
    by_state = [(each.name, each.topic_id) for each in body.topics]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error, error_message=error.name
            )
            for name, topic_id in [*requested, *by_state]
        ]
    )
