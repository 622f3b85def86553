"""ControlledShutdown: a broker that is to stop has the controller move its leaders away.

v0   the first
v1   no new fields
v2   request +broker_epoch │ KIP-380
v3   flexible
"""

from __future__ import annotations

from ....messages.controlled_shutdown_request import ControlledShutdownRequest
from ....messages.controlled_shutdown_response import ControlledShutdownResponse
from ....protocol import ErrorCode
from ..forwarding import handle

__all__ = ["error_response", "handle"]


def error_response(
    _body: ControlledShutdownRequest, error: ErrorCode
) -> ControlledShutdownResponse:
    """Return a response with the error."""
    return ControlledShutdownResponse(error_code=error)
