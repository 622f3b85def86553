"""Checks the request in an Envelope (KIP-590): as that of the client that a broker names in it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final

from ...errors import DecodeError, UnsupportedVersion
from ...messages.api_key import ApiKey
from ...messages.default_principal_data import DefaultPrincipalData
from ...messages.envelope_request import EnvelopeRequest
from ...messages.envelope_response import EnvelopeResponse
from ...primitives import Message
from ...protocol import ErrorCode, decode_frame, encode_frame
from ..forwarding.envelope import EnvelopePlan, opened
from ..request import Request
from ..security.authorizer import Caller
from ..security.permissions import Permission
from .access import Access, with_
from .checks import Check, Partly, Verdict, judge, whole

E = ErrorCode
SIZE: Final = 4
VERSION_BYTES: Final = 2
ChecksOf = Callable[[ApiKey], tuple[Check, ...]]


def envelope(checks_of: ChecksOf) -> Check:
    """Check the broker, then what its client may do. checks_of: returns the checks of an API."""

    def check(access: Access, body: EnvelopeRequest) -> Verdict:
        refusal = whole(Permission.CLUSTER_ACTION).judge(access, body)
        return refusal if refusal is not None else judge_inner(access, body, checks_of)

    return Check((Permission.CLUSTER_ACTION,), check)


def judge_inner(access: Access, body: EnvelopeRequest, checks_of: ChecksOf) -> Verdict:
    """Make the checks of the request in an Envelope."""
    inner = opened(access.request)
    if isinstance(inner, EnvelopeResponse):
        return inner
    caller = caller_of(body)
    if isinstance(caller, ErrorCode):
        return EnvelopeResponse(error_code=caller)
    if caller.principal in access.authorizer.super_users:
        return None
    as_client = access._replace(caller=caller, request=inner)
    verdict = judge(as_client, inner.body, checks_of(inner.api_key))
    if verdict is None:
        return None
    if isinstance(verdict, Message):
        return EnvelopePlan(inner).response(verdict, 0.0)
    return Partly(_with_inner(body, inner, verdict.body), _completed(inner, verdict))


def caller_of(body: EnvelopeRequest) -> Caller | ErrorCode:
    """Return the client whose request is in an Envelope."""
    data = body.request_principal or b""
    try:
        host = str(ip_address(body.client_host_address))
    except ValueError:
        return E.INVALID_REQUEST
    try:
        version = int.from_bytes(data[:VERSION_BYTES], "big")
        principal = DefaultPrincipalData.decode(data[VERSION_BYTES:], version)
    except (DecodeError, UnsupportedVersion):
        return E.PRINCIPAL_DESERIALIZATION_FAILURE
    return Caller(f"{principal.type}:{principal.name}", host)


def _with_inner(body: EnvelopeRequest, inner: Request, part: Message) -> EnvelopeRequest:
    """Put another request into an Envelope."""
    frame = encode_frame(part, inner.version, inner.correlation_id, client_id=inner.client_id)
    return with_(body, request_data=frame[SIZE:])


def _completed(inner: Request, verdict: Partly) -> Any:
    def complete(response: EnvelopeResponse) -> None:
        data = response.response_data
        if response.error_code or data is None:
            return
        frame = len(data).to_bytes(SIZE, "big") + data
        decoded = decode_frame(frame, response_to=(inner.api_key, inner.version))
        verdict.complete(decoded.body)
        plan = EnvelopePlan(inner)
        response.response_data = plan.response(decoded.body, 0.0).response_data

    return complete
