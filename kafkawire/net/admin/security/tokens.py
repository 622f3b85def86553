"""Delegation tokens: created, renewed, expired, described (KIP-48, KIP-373).

Times are in milliseconds since 1970, of the broker's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....client.arguments import text
from ....client.requests import LEAST_LOADED
from ....errors import InvalidValue
from ....messages.api_key import ApiKey
from ....messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from ....messages.create_delegation_token_response import CreateDelegationTokenResponse
from ....messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from ....messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from ....messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from ....messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from ....messages.renew_delegation_token_request import RenewDelegationTokenRequest
from ....messages.renew_delegation_token_response import RenewDelegationTokenResponse
from ..calls import CallRunner, check
from .values import DelegationToken

OWNER_FROM: Final = 3
"""CreateDelegationToken has an owner from this version on (KIP-373)."""


def principal(value: object, argument: str) -> tuple[str, str]:
    """Split `User:alice` into type and name. Raises InvalidValue."""
    kind, separator, name = text(value, argument).partition(":")
    if not (kind and separator and name):
        raise InvalidValue(f"{value!r}: expected TYPE:NAME, such as User:alice", argument)
    return kind, name


def _principal_text(kind: str, name: str) -> str:
    return f"{kind}:{name}" if kind or name else ""


async def create(
    calls: CallRunner, owner: str | None, renewers: Iterable[str], max_lifetime_ms: int
) -> DelegationToken:
    """Create a token."""
    of_owner = (None, None) if owner is None else principal(owner, "owner")
    allowed = [principal(renewer, f"renewers[{index}]") for index, renewer in enumerate(renewers)]
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.CREATE_DELEGATION_TOKEN,
        CreateDelegationTokenResponse,
        lambda version: CreateDelegationTokenRequest(
            owner_principal_type=of_owner[0] if version >= OWNER_FROM else "",
            owner_principal_name=of_owner[1] if version >= OWNER_FROM else "",
            renewers=[
                CreatableRenewers(principal_type=kind, principal_name=name)
                for kind, name in allowed
            ],
            max_lifetime_ms=max_lifetime_ms,
        ),
        lambda response: [response.error_code],
        lowest=0 if owner is None else OWNER_FROM,
    )
    check(response.error_code, "delegation token")
    return DelegationToken(
        response.token_id,
        _principal_text(response.principal_type, response.principal_name),
        _principal_text(
            response.token_requester_principal_type, response.token_requester_principal_name
        ),
        tuple(sorted(_principal_text(*renewer) for renewer in allowed)),
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
        response.hmac,
    )


async def renew(calls: CallRunner, hmac: bytes, period_ms: int) -> int:
    """Renew a token; return when it expires."""
    secret = _secret(hmac)
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.RENEW_DELEGATION_TOKEN,
        RenewDelegationTokenResponse,
        lambda _: RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms),
        lambda response: [response.error_code],
    )
    check(response.error_code, "delegation token")
    return response.expiry_timestamp_ms


async def expire(calls: CallRunner, hmac: bytes, period_ms: int) -> int:
    """Let a token expire; return when it does."""
    secret = _secret(hmac)
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ExpireDelegationTokenResponse,
        lambda _: ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms),
        lambda response: [response.error_code],
    )
    check(response.error_code, "delegation token")
    return response.expiry_timestamp_ms


def _secret(hmac: object) -> bytes:
    if not isinstance(hmac, bytes):
        raise InvalidValue(f"expected bytes, got {type(hmac).__name__}", "hmac")
    return hmac


async def describe(calls: CallRunner, owners: Iterable[str] | None) -> list[DelegationToken]:
    """Return tokens, by id; owners: None is all."""
    wanted = None
    if owners is not None:
        pairs = [principal(name, f"owners[{index}]") for index, name in enumerate(owners)]
        wanted = [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in pairs
        ]
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        DescribeDelegationTokenResponse,
        lambda _: DescribeDelegationTokenRequest(owners=wanted),
        lambda response: [response.error_code],
    )
    check(response.error_code, "delegation tokens")
    return sorted(map(_token, response.tokens))


def _token(row: DescribedDelegationToken) -> DelegationToken:
    renewers = (_principal_text(who.principal_type, who.principal_name) for who in row.renewers)
    return DelegationToken(
        row.token_id,
        _principal_text(row.principal_type, row.principal_name),
        _principal_text(row.token_requester_principal_type, row.token_requester_principal_name),
        tuple(sorted(renewers)),
        row.issue_timestamp,
        row.expiry_timestamp,
        row.max_timestamp,
        row.hmac,
    )
