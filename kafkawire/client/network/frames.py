"""Bytes of one connection in, whole response frames out.

Law: a size is compared with the limit before a byte is kept for it; what is held never exceeds one
frame and what came with its last bytes.
"""

from __future__ import annotations

from ...errors import DecodeError, RemoteProtocolError
from ...primitives import Limits
from ...protocol.frame import SIZE, read_size


class FrameBuffer:
    """Collects what a peer sends until it is a frame."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = bytearray()

    def __len__(self) -> int:
        return len(self._held)

    def feed(self, data: bytes) -> None:
        """Take bytes as they came."""
        self._held += data

    def take(self) -> bytes | None:
        """Give the next whole frame without its size, None until there is one.

        Raises RemoteProtocolError where the size cannot be one.
        """
        if len(self._held) < SIZE:
            return None
        try:
            size = read_size(bytes(self._held[:SIZE]), self._limits)
        except DecodeError as error:
            raise RemoteProtocolError(str(error)) from None
        if len(self._held) < SIZE + size:
            return None
        with memoryview(self._held) as held:
            frame = bytes(held[SIZE : SIZE + size])
        del self._held[: SIZE + size]
        return frame
