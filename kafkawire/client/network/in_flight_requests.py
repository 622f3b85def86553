"""What was written on a connection, and what is due to come back.

Law: correlation ids count up from 0, and begin again behind the last; the first answer is to the
first request that has none, or the peer is wrong.

    write ─▶ expect ─▶ in flight ─┐
    feed ─▶ take ─▶ frame ────────┴▶ decoded
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ...errors import DecodeError, RemoteProtocolError
from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol.frame import decode_response_body, encode_frame
from ...protocol.header import decode_response_header
from ..requests import SendRequest
from .connection_states import ConnectionSettings, InFlight
from .frames import FrameBuffer
from .transport import Write

MOST_CORRELATION_ID: Final = 0x7FFF_FFFF


class InFlightRequests:
    """The frames of one connection, both ways. version: of the last request that has an answer."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.in_flight: deque[InFlight] = deque()
        self.version = 0
        self._settings = settings
        self._frames = FrameBuffer(settings.limits)
        self._correlation_id = 0

    def write(self, number: int, message: Message, version: int) -> Write:
        """Make the frame of a request; EncodeError where it cannot be said in that version."""
        correlation_id = self._correlation_id
        frame = encode_frame(message, version, correlation_id, client_id=self._settings.client_id)
        self._correlation_id = 0 if correlation_id == MOST_CORRELATION_ID else correlation_id + 1
        return Write(number, frame)

    def expect(self, ask: SendRequest | None, api: ApiKey, version: int, deadline: float) -> None:
        """Note that what was written last is to be answered."""
        last = (self._correlation_id - 1) % (MOST_CORRELATION_ID + 1)
        self.version = version
        self.in_flight.append(InFlight(ask, api, version, last, deadline))

    def feed(self, data: bytes) -> None:
        """Take bytes as they came."""
        self._frames.feed(data)

    def take(self) -> bytes | None:
        """Give the next whole frame; None until there is one."""
        return self._frames.take()

    def decoded(self, frame: bytes, asked: InFlight) -> tuple[Message, int]:
        """Read the answer to a request: what it says, in which version.

        Raises RemoteProtocolError where it is the answer to another one, or cannot be read.
        """
        where = f"the response to {asked.api.name} {asked.version}"
        try:
            head = decode_response_header(frame, asked.api, asked.version)
            if head.header.correlation_id != asked.correlation_id:
                came = head.header.correlation_id
                raise RemoteProtocolError(
                    f"correlation id {came} where {asked.correlation_id} is due ({where})"
                )
            # lenient: one text that is not UTF-8 is no reason to give up a connection
            return decode_response_body(
                asked.api,
                asked.version,
                frame,
                head.end,
                lenient=True,
                limits=self._settings.limits,
            )
        except DecodeError as error:
            raise RemoteProtocolError(f"{where}: {error}") from None
