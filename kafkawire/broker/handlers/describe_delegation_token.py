"""DescribeDelegationToken: lists tokens with their secrets, from the metadata published last.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
v3   response +token_requester_principal_type +token_requester_principal_name │ tokens for another
     owner (KIP-373)
"""

from __future__ import annotations

from ...controller.operations.delegation_tokens import (
    REQUESTER_FROM,
    Principal,
    forget_requester,
    owners_and_renewers,
    secret_key,
    secret_of,
)
from ...messages.delegation_token_record import DelegationTokenRecord
from ...messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from ...messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..forwarding.principals import is_allowed
from ..network.connection import Connection
from ..request import Request

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: DescribeDelegationTokenRequest,
    connection: Connection,
    _now: float,
) -> DescribeDelegationTokenResponse:
    """Describe the tokens of owners and renewers; all tokens if the request names none."""
    key = secret_key(broker.settings.effective)
    if not is_allowed(request, connection.protocol, connection.authentication):
        return error_response(body, E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if key is None:
        return error_response(body, E.DELEGATION_TOKEN_AUTH_DISABLED)
    records = list(broker.image.delegation_tokens.values())
    if body.owners is not None:
        names = {str(Principal(each.principal_type, each.principal_name)) for each in body.owners}
        records = [each for each in records if names & owners_and_renewers(each)]
    tokens = [_described(each, key) for each in records]
    if request.version < REQUESTER_FROM:
        for each in tokens:
            forget_requester(each)
    return DescribeDelegationTokenResponse(tokens=tokens)


def error_response(
    _body: DescribeDelegationTokenRequest, error: ErrorCode
) -> DescribeDelegationTokenResponse:
    """Return a response with the error."""
    return DescribeDelegationTokenResponse(error_code=error)


def _described(record: DelegationTokenRecord, key: bytes) -> DescribedDelegationToken:
    owner, requester = Principal.parse(record.owner), Principal.parse(record.requester)
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=record.issue_timestamp,
        expiry_timestamp=record.expiration_timestamp,
        max_timestamp=record.max_timestamp,
        token_id=record.token_id,
        hmac=secret_of(record.token_id, key),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in map(Principal.parse, record.renewers)
        ],
    )
