"""RenewDelegationToken: lets a token live longer, up to its maximum (KIP-48).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from typing import Final

from ...messages.renew_delegation_token_request import RenewDelegationTokenRequest
from ...messages.renew_delegation_token_response import RenewDelegationTokenResponse
from ...protocol import ErrorCode
from .delegation_tokens import change_token

handle: Final = change_token


def error_response(
    _body: RenewDelegationTokenRequest, error: ErrorCode
) -> RenewDelegationTokenResponse:
    """Return a response with the error."""
    return RenewDelegationTokenResponse(error_code=error)
