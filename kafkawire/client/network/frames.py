"""Splits the bytes of one connection into response frames.

A size is checked against the limit before anything is buffered for it; the buffer never
exceeds one frame and the bytes that came with its end. A received byte is copied once, into its
frame.
"""

from __future__ import annotations

from collections import deque

from ...errors import DecodeError, RemoteProtocolError
from ...primitives import Limits
from ...protocol.frame import SIZE, read_size


class FrameBuffer:
    """Buffers received bytes until a frame is complete."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._chunks: deque[bytes] = deque()
        self._start = 0  # in the first chunk
        self._length = 0
        self._needed = SIZE  # bytes without which no frame is complete

    def __len__(self) -> int:
        return self._length

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        if data:
            self._chunks.append(data)
            self._length += len(data)

    def extend(self, data: bytes) -> bool:
        """Append bytes to a frame that they do not complete: as `feed`, and `take` gives None.

        Does nothing and returns False for other bytes, and while the frame's size is unknown.
        """
        length = self._length + len(data)
        if self._needed == SIZE or length >= self._needed:
            return False
        self._chunks.append(data)
        self._length = length
        return True

    def whole(self, data: bytes) -> bytes | None:
        """Return the frame that received bytes are, without its size: as `feed` and `take`.

        Does nothing and returns None for bytes that are less than a frame, or more.
        """
        size = len(data) - SIZE
        if self._length or size < 0 or size > self._limits.max_frame_bytes:
            return None
        return data[SIZE:] if int.from_bytes(data[:SIZE], "big") == size else None

    def take(self) -> bytes | None:
        """Return the next complete frame without its size, or None.

        Raises RemoteProtocolError for an invalid size.
        """
        if self._length < self._needed:
            return None
        try:
            size = read_size(self._size_field(), self._limits)
        except DecodeError as error:
            raise RemoteProtocolError(str(error)) from None
        self._needed = SIZE + size
        if self._length < self._needed:
            return None
        self._length -= self._needed
        self._needed = SIZE
        self._cut(SIZE)
        return self._cut(size)

    def _size_field(self) -> bytes:
        """Return the first bytes without removing them."""
        start, end = self._start, self._start + SIZE
        if len(self._chunks[0]) < end:  # they are in several chunks
            self._chunks = deque([b"".join(self._chunks)])
        return self._chunks[0][start:end]

    def _cut(self, size: int) -> bytes:
        """Remove and return the first bytes."""
        parts: list[memoryview] = []
        while size:
            first, start = self._chunks[0], self._start
            end = start + size
            if end < len(first):
                self._start = end
                if not parts:
                    return first[start:end]
                parts.append(memoryview(first)[start:end])
                break
            parts.append(memoryview(first)[start:])
            size -= len(first) - start
            self._chunks.popleft()
            self._start = 0
        return b"".join(parts)
