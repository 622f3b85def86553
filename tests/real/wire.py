"""A connection to a broker: sends requests, decodes responses strictly.

Only the response to the request is read; every wait has a timeout.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

import kafkawire
from kafkawire import Frame, Message

HOST: Final = "127.0.0.1"
RESPONSE_SECONDS: Final = 100.0
CLIENT_ID: Final = "kafkawire-tests"

M = TypeVar("M", bound=Message)


class RawResponse(NamedTuple):
    """A response: the frame's bytes, size included, and the decoded frame."""

    data: bytes
    frame: Frame


class Wire:
    """A blocking connection over a plain socket, one request at a time."""

    def __init__(
        self, port: int, seconds: float = RESPONSE_SECONDS, client_id: str = CLIENT_ID
    ) -> None:
        self.client_id = client_id
        self.socket = socket.create_connection((HOST, port), timeout=seconds)
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, request: Message, version: int) -> RawResponse:
        """Send a request and decode its response.

        Raises ConnectionError if the broker closes the connection, TimeoutError, and what
        `decode_frame` raises.
        """
        self.correlation_id += 1
        api_key = kafkawire.REGISTRY.get(type(request).__name__).api_key
        assert api_key is not None
        self.socket.sendall(
            kafkawire.encode_frame(request, version, self.correlation_id, client_id=self.client_id)
        )
        data = self.receive()
        frame = kafkawire.decode_frame(data, response_to=(api_key, version))
        assert frame.correlation_id == self.correlation_id
        return RawResponse(data, frame)

    def receive(self) -> bytes:
        """Return the next response, its size included."""
        size = self._read(4)
        return size + self._read(int.from_bytes(size, "big"))

    def exchange(self, request: Message, version: int, expected: type[M]) -> M:
        """Send a request and return the body of its response."""
        body = self.send(request, version).frame.body
        assert isinstance(body, expected)
        return body

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            read = self.socket.recv(size - len(data))
            if not read:
                raise ConnectionError("the broker closed the connection")
            data += read
        return bytes(data)
