"""Pairs the responses of one connection with its in-flight requests.

Correlation ids count up from 0 and wrap after the last; a response belongs to the oldest
in-flight request, or the peer broke the protocol.

    write ─▶ expect ─▶ in flight ─┐
    frames ─▶ frame ──────────────┴▶ decode
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ...errors import DecodeError, RemoteProtocolError
from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol.frame import decode_response_body, encode_frame_buffers
from ...protocol.header import decode_response_header
from ..requests import SendRequest
from .connection_states import ConnectionSettings, InFlight
from .frames import FrameBuffer
from .transport import Write

MAX_CORRELATION_ID: Final = 0x7FFF_FFFF


class InFlightRequests:
    """The frames of one connection.

    version: of the last request that expects a response. frames: the received bytes.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self.in_flight: deque[InFlight] = deque()
        self.version = 0
        self._settings = settings
        self.frames = FrameBuffer(settings.limits)
        self._correlation_id = 0

    def write(self, number: int, message: Message, version: int) -> Write:
        """Encode a request; EncodeError if its version cannot represent it."""
        correlation_id = self._correlation_id
        client_id = self._settings.client_id
        frame = encode_frame_buffers(message, version, correlation_id, client_id=client_id)
        self._correlation_id = 0 if correlation_id == MAX_CORRELATION_ID else correlation_id + 1
        return Write(number, frame)

    def expect(
        self,
        request: SendRequest | None,
        api: ApiKey,
        version: int,
        deadline: float,
        sent_at: float = 0.0,
    ) -> None:
        """Register the last written request as in flight."""
        last = (self._correlation_id - 1) % (MAX_CORRELATION_ID + 1)
        self.version = version
        self.in_flight.append(InFlight(request, api, version, last, deadline, sent_at))

    def decode(self, frame: bytes, expected: InFlight) -> tuple[Message, int]:
        """Decode the response to a request; return the message and its version.

        Raises RemoteProtocolError for another correlation id, or a malformed response.
        """
        try:
            head = decode_response_header(frame, expected.api, expected.version)
            received, due = head.header.correlation_id, expected.correlation_id
            if received != due:
                detail = f"correlation id {received}, expected {due}"
                raise RemoteProtocolError(f"{_response_to(expected)}: {detail}")
            # lenient: one text that is not UTF-8 must not close the connection
            return decode_response_body(
                expected.api,
                expected.version,
                frame,
                head.end,
                lenient=True,
                limits=self._settings.limits,
            )
        except DecodeError as error:
            raise RemoteProtocolError(f"{_response_to(expected)}: {error}") from None


def _response_to(request: InFlight) -> str:
    return f"response to {request.api.name} {request.version}"
