"""Delegation tokens (KIP-48): created, renewed and expired for the principal of a client.

Brokers send these requests in an Envelope, which names the principal. The secret of a token, its
HMAC, follows from its id and `delegation.token.secret.key`, and is in no log.

    Envelope (principal, request) ─▶ DelegationTokenRecord ─▶ Envelope (response)
"""

# over 300 lines: the life of a token, and the Envelopes with its requests and those of others

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final, NamedTuple

from ...errors import WireError
from ...messages.create_delegation_token_request import CreateDelegationTokenRequest
from ...messages.create_delegation_token_response import CreateDelegationTokenResponse
from ...messages.default_principal_data import DefaultPrincipalData
from ...messages.delegation_token_record import DelegationTokenRecord
from ...messages.describe_delegation_token_response import DescribedDelegationToken
from ...messages.envelope_request import EnvelopeRequest
from ...messages.envelope_response import EnvelopeResponse
from ...messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from ...messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from ...messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from ...messages.renew_delegation_token_request import RenewDelegationTokenRequest
from ...messages.renew_delegation_token_response import RenewDelegationTokenResponse
from ...metadata import MetadataImage
from ...metadata.versions import DELEGATION_TOKENS
from ...primitives import Message
from ...protocol import (
    ErrorCode,
    decode_request_body,
    decode_request_header,
    decode_versioned,
    encode_frame,
)
from ..state import ControllerState
from .assignments import Refused
from .change_topics import MUTATIONS, Work, charged

E = ErrorCode
SECRET_KEYS: Final = ("delegation.token.secret.key", "delegation.token.master.key")
"""The second is the name before 2.8, which 4.0 dropped."""
MAX_LIFETIME: Final = "delegation.token.max.lifetime.ms"
RENEWAL: Final = "delegation.token.expiry.time.ms"
EXPIRY_CHECK: Final = "delegation.token.expiry.check.interval.ms"
USER_TYPE: Final = "User"
REQUESTER_FROM: Final = 3
"""The version of CreateDelegationToken and DescribeDelegationToken whose response names who has
requested a token, besides its owner (KIP-373)."""
SIZE: Final = 4
"""The size in front of a frame, which an Envelope leaves out."""


class Principal(NamedTuple):
    """Who has sent a request, or owns or renews a token."""

    type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Parse `User:alice`."""
        type_, _, name = text.partition(":")
        return cls(type_, name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


def secret_key(static: Mapping[str, str]) -> bytes | None:
    """Return the key from which the secrets of tokens follow; None if tokens are disabled."""
    return next((static[key].encode() for key in SECRET_KEYS if static.get(key)), None)


def secret_of(token_id: str, key: bytes) -> bytes:
    """Return the secret of a token."""
    return hmac.digest(key, token_id.encode(), "sha512")


def owners_and_renewers(record: DelegationTokenRecord) -> frozenset[str]:
    """Return the principals, as `User:alice`, that may see, renew and expire a token."""
    return frozenset((record.owner, *record.renewers))


def is_expired(record: DelegationTokenRecord, wall_ms: int) -> bool:
    """Return whether a token has ended, whether or not it has been removed."""
    return min(record.max_timestamp, record.expiration_timestamp) < wall_ms


def enveloped(
    state: ControllerState, body: EnvelopeRequest, _version: int, now: float
) -> EnvelopeResponse | Work:
    """Decide on the request in an Envelope, for the principal that it names."""
    try:
        _, data = decode_versioned("DefaultPrincipalData", body.request_principal or b"")
    except WireError:
        return EnvelopeResponse(error_code=E.PRINCIPAL_DESERIALIZATION_FAILURE)
    assert isinstance(data, DefaultPrincipalData)
    principal = Principal(data.type, data.name)
    try:
        head = decode_request_header(body.request_data)
        header = head.header
        key, version = header.request_api_key, header.request_api_version
        request = decode_request_body(key, version, body.request_data, head.end)
        operation = OPERATIONS.get(type(request))
    except WireError:
        return EnvelopeResponse(error_code=E.INVALID_REQUEST)
    if type(request) in MUTATIONS:
        client = principal.name, header.client_id
        changed = charged(state, request, version, client, now)
        return _later(changed, version, header.correlation_id)
    if operation is None:
        return EnvelopeResponse(error_code=E.INVALID_REQUEST)
    response = _decided(state, request, operation, principal, state.config.wall_ms(now))
    if version < REQUESTER_FROM:
        forget_requester(response)
    return _envelope(response, version, header.correlation_id)


def _later(work: Work, version: int, correlation_id: int) -> Work:
    """Put the response into an Envelope when the work is done."""
    return _envelope((yield from work), version, correlation_id)


def _envelope(response: Message, version: int, correlation_id: int) -> EnvelopeResponse:
    return EnvelopeResponse(response_data=encode_frame(response, version, correlation_id)[SIZE:])


def _decided(
    state: ControllerState,
    request: Message,
    operation: Operation,
    principal: Principal,
    wall_ms: int,
) -> Message:
    key = secret_key(state.config.static)
    try:
        if key is None:
            raise Refused(E.DELEGATION_TOKEN_AUTH_DISABLED)
        if state.metadata_version < DELEGATION_TOKENS:
            raise Refused(E.UNSUPPORTED_VERSION)
        return operation(state, request, principal, wall_ms, key)
    except Refused as refused:
        return refusal_of(request, refused.error, principal)


def refusal_of(
    request: Message, error: ErrorCode, principal: Principal, timestamp_ms: int = 0
) -> Message:
    """Return the response to a request that is refused.

    principal: of its client. timestamp_ms: what stands for times; of a broker it is -1.
    """
    match request:
        case CreateDelegationTokenRequest():
            response = _created(owner_of(request, principal), principal)
            response.error_code = error
            response.issue_timestamp_ms = timestamp_ms
            response.expiry_timestamp_ms = timestamp_ms
            response.max_timestamp_ms = timestamp_ms
            return response
        case RenewDelegationTokenRequest():
            return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=timestamp_ms)
        case _:
            return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=timestamp_ms)


def forget_requester(response: Message | DescribedDelegationToken) -> None:
    """Remove what versions before `REQUESTER_FROM` lack."""
    if isinstance(response, CreateDelegationTokenResponse | DescribedDelegationToken):
        response.token_requester_principal_type = response.token_requester_principal_name = ""


def _created(owner: Principal, requester: Principal) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
    )


def owner_of(body: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Return the owner of a new token: who asks for it, unless the request names another."""
    if body.owner_principal_name:
        return Principal(body.owner_principal_type or "", body.owner_principal_name)
    return requester


def _lifetime(state: ControllerState, name: str, requested_ms: int) -> int:
    """Return how many milliseconds a token lives: no longer than is configured."""
    longest = int(state.broker_value(name))
    return min(longest, requested_ms) if requested_ms > 0 else longest


def create(
    state: ControllerState,
    body: CreateDelegationTokenRequest,
    requester: Principal,
    wall_ms: int,
    key: bytes,
) -> CreateDelegationTokenResponse:
    """Create a token."""
    renewers = [Principal(each.principal_type, each.principal_name) for each in body.renewers]
    if any(each.type != USER_TYPE for each in renewers):
        raise Refused(E.INVALID_PRINCIPAL_TYPE)
    owner = owner_of(body, requester)
    end = wall_ms + _lifetime(state, MAX_LIFETIME, body.max_lifetime_ms)
    record = DelegationTokenRecord(
        owner=str(owner),
        requester=str(requester),
        renewers=[str(each) for each in renewers],
        issue_timestamp=wall_ms,
        max_timestamp=end,
        expiration_timestamp=min(end, wall_ms + int(state.broker_value(RENEWAL))),
        token_id=urlsafe_b64encode(state.new_uuid()).decode().rstrip("="),
    )
    state.write(record)
    response = _created(owner, requester)
    response.issue_timestamp_ms = wall_ms
    response.expiry_timestamp_ms = record.expiration_timestamp
    response.max_timestamp_ms = end
    response.token_id = record.token_id
    response.hmac = secret_of(record.token_id, key)
    return response


def _token(image: MetadataImage, secret: bytes, key: bytes) -> DelegationTokenRecord:
    """Find the token that has a secret; raises Refused."""
    for token_id, record in image.delegation_tokens.items():
        if hmac.compare_digest(secret_of(token_id, key), secret):
            return record
    raise Refused(E.DELEGATION_TOKEN_NOT_FOUND)


def _check_owner(record: DelegationTokenRecord, principal: Principal) -> None:
    if str(principal) not in owners_and_renewers(record):
        raise Refused(E.DELEGATION_TOKEN_OWNER_MISMATCH)


def _check_time(record: DelegationTokenRecord, wall_ms: int) -> None:
    if is_expired(record, wall_ms):
        raise Refused(E.DELEGATION_TOKEN_EXPIRED)


def _write_end(state: ControllerState, record: DelegationTokenRecord, end: int) -> int:
    """Let a token end then, or when it may live no longer; return when that is."""
    renewed = copy(record)
    renewed.expiration_timestamp = min(record.max_timestamp, end)
    state.write(renewed)
    return renewed.expiration_timestamp


def renew(
    state: ControllerState,
    body: RenewDelegationTokenRequest,
    principal: Principal,
    wall_ms: int,
    key: bytes,
) -> RenewDelegationTokenResponse:
    """Let a token live longer."""
    record = _token(state.image, body.hmac, key)
    _check_time(record, wall_ms)
    _check_owner(record, principal)
    end = _write_end(state, record, wall_ms + _lifetime(state, RENEWAL, body.renew_period_ms))
    return RenewDelegationTokenResponse(expiry_timestamp_ms=end)


def expire(
    state: ControllerState,
    body: ExpireDelegationTokenRequest,
    principal: Principal,
    wall_ms: int,
    key: bytes,
) -> ExpireDelegationTokenResponse:
    """Change when a token ends; with a negative period it is removed."""
    record = _token(state.image, body.hmac, key)
    _check_owner(record, principal)
    if body.expiry_time_period_ms < 0:
        state.write(RemoveDelegationTokenRecord(token_id=record.token_id))
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=wall_ms)
    _check_time(record, wall_ms)
    end = _write_end(state, record, wall_ms + body.expiry_time_period_ms)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=end)


def remove_expired(state: ControllerState, now: float) -> None:
    """Remove the tokens that have ended."""
    wall_ms = state.config.wall_ms(now)
    for record in list(state.image.delegation_tokens.values()):
        if is_expired(record, wall_ms):
            state.write(RemoveDelegationTokenRecord(token_id=record.token_id))


def next_expiry_check(state: ControllerState, now: float) -> float | None:
    """Return when to call `remove_expired`; None where tokens are disabled."""
    if secret_key(state.config.static) is None:
        return None
    return now + int(state.broker_value(EXPIRY_CHECK)) / 1000


Operation = Callable[[ControllerState, Any, Principal, int, bytes], Message]
OPERATIONS: Final[Mapping[type[Message], Operation]] = {
    CreateDelegationTokenRequest: create,
    ExpireDelegationTokenRequest: expire,
    RenewDelegationTokenRequest: renew,
}
"""Request -> what decides on it."""
