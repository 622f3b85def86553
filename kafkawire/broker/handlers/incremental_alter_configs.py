"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from values (KIP-339).

v0   the first
v1   flexible
"""

from __future__ import annotations

from ...messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from ...messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from ...protocol import ErrorCode
from .forwarding import handle

__all__ = ["error_response", "handle"]


def error_response(
    body: IncrementalAlterConfigsRequest, error: ErrorCode
) -> IncrementalAlterConfigsResponse:
    """Return a response with the error for each resource."""
    return IncrementalAlterConfigsResponse(
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
