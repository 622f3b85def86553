"""Requests of clients that a broker forwards in an Envelope (KIP-590), as a real Kafka does.

Our own brokers do so where the controller has to know the principal of the client.

What is in an Envelope is handled as if its client had sent it; the response goes back in one.
An Envelope in an Envelope, and what clients do not send to controllers, is an invalid request.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from ...controller.operations.delegation_tokens import Principal
from ...controller.operations.refusals import is_refused, refusal
from ...errors import DecodeError, RemoteProtocolError, UnsupportedVersion
from ...messages.api_key import ApiKey
from ...messages.default_principal_data import DefaultPrincipalData
from ...messages.envelope_request import EnvelopeRequest
from ...messages.envelope_response import EnvelopeResponse
from ...primitives import Message
from ...protocol import (
    ErrorCode,
    decode_request_body,
    decode_request_header,
    decode_response_body,
    decode_response_header,
    encode_frame,
    encode_versioned,
)
from ...protocol.error_code import error_of
from ..apis import FORWARDED
from ..request import Request
from .repairs import shorten_error_messages

WITH_PRINCIPAL: Final = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
"""APIs that the controller needs the principal for."""
MUTATIONS: Final = frozenset({ApiKey.CREATE_PARTITIONS, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS})
"""APIs for which it needs who the client is, where clients have quotas of them (KIP-599)."""
SIZE: Final = 4
"""The size in front of a frame, which an Envelope leaves out."""


@dataclass(frozen=True, slots=True)
class EnvelopePlan:
    """An Envelope: the request that is in it."""

    request: Request

    def response(self, body: Message, _now: float) -> EnvelopeResponse:
        """Put a response into an Envelope; a broker tries again elsewhere if it is refused."""
        if is_refused(self.request.body, body):
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        shorten_error_messages(body, self.request.version)
        frame = encode_frame(body, self.request.version, self.request.correlation_id)
        return EnvelopeResponse(response_data=frame[SIZE:])


def names_principal(body: Message) -> bool:
    """Whether an Envelope says whose request it has."""
    return isinstance(body, EnvelopeRequest) and bool(body.request_principal)


def opened(request: Request) -> Request | EnvelopeResponse:
    """Return the request in an Envelope; an error if it is invalid."""
    assert isinstance(request.body, EnvelopeRequest)
    data = request.body.request_data
    try:
        head = decode_request_header(data)
        header = head.header
        key, version = header.request_api_key, header.request_api_version
        if key not in FORWARDED:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        body = decode_request_body(key, version, data, head.end)
    except (DecodeError, UnsupportedVersion):
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    return request._replace(
        api_key=ApiKey(key),
        version=version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        body=body,
    )


@dataclass(frozen=True, slots=True)
class EnclosedPlan:
    """A request that was forwarded in an Envelope of this broker."""

    request: Request

    def response(self, body: EnvelopeResponse, _now: float) -> Message:
        """Take the response out of its Envelope. WireError for one that is invalid.

        Changes of topics have the error as if they were not in one: no controller has responded.
        """
        key, version = self.request.api_key, self.request.version
        if body.error_code and self.request.api_key in MUTATIONS:
            return refusal(self.request.body, error_of(body.error_code))
        if body.error_code or body.response_data is None:
            raise RemoteProtocolError(f"Envelope refused with error code {body.error_code}")
        head = decode_response_header(body.response_data, key, version)
        return decode_response_body(key, version, body.response_data, head.end).message


def enclosed(request: Request, principal: Principal) -> EnvelopeRequest:
    """Put a request into an Envelope. principal: of its client."""
    data = DefaultPrincipalData(type=principal.type, name=principal.name)
    frame = encode_frame(
        request.body, request.version, request.correlation_id, client_id=request.client_id
    )
    return EnvelopeRequest(
        request_data=frame[SIZE:],
        request_principal=encode_versioned(data, 0),
        client_host_address=_address(request.client_host),
    )


def _address(host: str) -> bytes:
    """Return the bytes of an IP address; of another host none."""
    try:
        return ip_address(host).packed
    except ValueError:
        return b""
