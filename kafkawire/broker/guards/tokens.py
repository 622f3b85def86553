"""Checks of delegation tokens: for whom they are created, and whose are shown (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Any, Final

from ...messages.create_delegation_token_request import CreateDelegationTokenRequest
from ...messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from ...protocol import ErrorCode
from ..security.permissions import Permission
from .access import Access
from .checks import Check, Partly, Verdict

P = Permission


def _create(access: Access, body: CreateDelegationTokenRequest) -> Verdict:
    """Check a token for another owner; everybody creates tokens for themselves."""
    owner = f"{body.owner_principal_type}:{body.owner_principal_name}"
    own = not body.owner_principal_name or owner == access.caller.principal
    if own or access.may(P.CREATE_USER_TOKENS, owner):
        return None
    return access.refusal(body, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)


def _describe(access: Access, body: Any) -> Verdict:
    """Show owners and renewers their tokens, others what they may describe."""

    def is_shown(token: DescribedDelegationToken) -> bool:
        owner = f"{token.principal_type}:{token.principal_name}"
        renewers = {f"{each.principal_type}:{each.principal_name}" for each in token.renewers}
        return (
            access.caller.principal in {owner, *renewers}
            or access.may(P.DESCRIBE_TOKEN, token.token_id)
            or access.may(P.DESCRIBE_USER_TOKENS, owner)
        )

    def complete(response: DescribeDelegationTokenResponse) -> None:
        response.tokens = [each for each in response.tokens if is_shown(each)]

    return Partly(body, complete)


CREATE_TOKEN: Final = (Check((P.CREATE_USER_TOKENS,), _create),)
DESCRIBE_TOKENS: Final = (Check((P.DESCRIBE_TOKEN, P.DESCRIBE_USER_TOKENS), _describe),)
