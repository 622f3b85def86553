"""AlterConfigs: replaces all configs of a resource; absent keys return to their defaults.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from ...messages.alter_configs_request import AlterConfigsRequest
from ...messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from ...protocol import ErrorCode
from .forwarding import handle

__all__ = ["error_response", "handle"]


def error_response(body: AlterConfigsRequest, error: ErrorCode) -> AlterConfigsResponse:
    """Return a response with the error for each resource."""
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=error.name,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in body.resources
        ]
    )
