"""Requests of clients that a broker forwards in an Envelope (KIP-590), as a real Kafka does.

What is in an Envelope is handled as if its client had sent it; the response goes back in one.
An Envelope in an Envelope, and what clients do not send to controllers, is an invalid request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...controller.operations.refusals import is_refused
from ...errors import DecodeError, UnsupportedVersion
from ...messages.api_key import ApiKey
from ...messages.envelope_request import EnvelopeRequest
from ...messages.envelope_response import EnvelopeResponse
from ...primitives import Message
from ...protocol import ErrorCode, decode_request_body, decode_request_header, encode_frame
from ..apis import FORWARDED
from ..request import Request

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
        frame = encode_frame(body, self.request.version, self.request.correlation_id)
        return EnvelopeResponse(response_data=frame[SIZE:])


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
