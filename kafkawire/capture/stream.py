"""One direction of a connection: bytes not yet consumed, and which packet each of them came with.

Law: positions count from the first byte given; a byte leaves by `take`, never silently.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple


class Mark(NamedTuple):
    """The packet that brought the bytes up to `end` (a stream position), and when."""

    end: int
    packet: int
    time_ns: int


class Stream:
    """Bytes of one direction.

    in_step: whether `position` is known to be where a frame begins. skip: bytes of a broken frame
    still to come. skipped: those that came, up to the packet `last`. need: how many bytes must be
    held before looking again is worth it.
    """

    def __init__(self, *, in_step: bool) -> None:
        self.in_step = in_step
        self.position = 0
        self.skip = 0
        self.skipped = 0
        self.last = Mark(0, 0, 0)
        self.need = 1
        self.held = 0
        self._chunks: list[bytes] = []
        self._marks: list[Mark] = []

    def add(self, data: bytes, packet: int, time_ns: int) -> None:
        """Put bytes behind those held."""
        self._chunks.append(data)
        self.held += len(data)
        self._marks.append(Mark(self.position + self.held, packet, time_ns))

    @property
    def ready(self) -> bool:
        return self.held >= self.need

    def peek(self) -> bytes:
        """Look at all bytes held."""
        if len(self._chunks) > 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0] if self._chunks else b""

    def take(self, size: int) -> bytes:
        """Consume the first `size` bytes held; size is not more than are held."""
        data = self.peek()
        self._chunks = [data[size:]] if size < len(data) else []
        self.held -= size
        self.position += size
        self.need = 1
        return data if size == len(data) else data[:size]

    def mark(self, size: int) -> Mark:
        """Find the packet that brought the byte at `size - 1` of those held; forget the packets
        before it.
        """
        at = bisect_left(self._marks, self.position + size, key=lambda mark: mark.end)
        at = min(at, len(self._marks) - 1)
        del self._marks[:at]
        return self._marks[0]
