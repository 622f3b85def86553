"""Splits the bytes of one connection into response frames.

Law: a size is checked against the limit before anything is buffered for it; the buffer never
exceeds one frame and the bytes that came with its end.
"""

from __future__ import annotations

from ...errors import DecodeError, RemoteProtocolError
from ...primitives import Limits
from ...protocol.frame import SIZE, read_size


class FrameBuffer:
    """Buffers received bytes until a frame is complete."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._buffer = bytearray()

    def __len__(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        self._buffer += data

    def take(self) -> bytes | None:
        """Return the next complete frame without its size, or None.

        Raises RemoteProtocolError for an invalid size.
        """
        if len(self._buffer) < SIZE:
            return None
        try:
            size = read_size(bytes(self._buffer[:SIZE]), self._limits)
        except DecodeError as error:
            raise RemoteProtocolError(str(error)) from None
        if len(self._buffer) < SIZE + size:
            return None
        with memoryview(self._buffer) as view:
            frame = bytes(view[SIZE : SIZE + size])
        del self._buffer[: SIZE + size]
        return frame
