"""CreatePartitions: adds partitions to topics.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
v3   no new fields │ THROTTLING_QUOTA_EXCEEDED may be returned
"""

from __future__ import annotations

from ...messages.create_partitions_request import CreatePartitionsRequest
from ...messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ...protocol import ErrorCode
from .forwarding import handle

__all__ = ["error_response", "handle"]


def error_response(body: CreatePartitionsRequest, error: ErrorCode) -> CreatePartitionsResponse:
    """Return a response with the error for each topic."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=error.name)
            for topic in body.topics
        ]
    )
