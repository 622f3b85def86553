"""ExpireDelegationToken: changes when a token ends, or removes it (KIP-48).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from typing import Final

from ...messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from ...messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from ...protocol import ErrorCode
from .delegation_tokens import change_token

handle: Final = change_token


def error_response(
    _body: ExpireDelegationTokenRequest, error: ErrorCode
) -> ExpireDelegationTokenResponse:
    """Return a response with the error."""
    return ExpireDelegationTokenResponse(error_code=error)
