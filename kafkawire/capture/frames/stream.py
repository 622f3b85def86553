"""Buffers the unconsumed bytes of one direction, and the packet of each byte.

Law: positions count from the first byte added; bytes are removed by `take` only.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be
from mypy_extensions import mypyc_attr

SIZE: Final = 4
"""Bytes of the size in front of a frame."""


@final
@mypyc_attr(acyclic=True)
class Mark:
    """The packet of the bytes up to `end` (a stream position), and its time."""

    def __init__(self, end: int, packet: int, time_ns: int) -> None:
        self.end: int = end
        self.packet: int = packet
        self.time_ns: int = time_ns


@final
@mypyc_attr(acyclic=True)
class Stream:
    """Buffered bytes of one direction.

    in_sync: whether a frame is known to begin at `position`. skip: bytes of an incomplete frame
    still to be skipped. skipped: bytes skipped of it, up to the packet `last`. need: the number of
    held bytes to wait for before the next attempt.
    """

    def __init__(self, in_sync: bool) -> None:
        self.in_sync: bool = in_sync
        self.position: int = 0
        self.skip: int = 0
        self.skipped: int = 0
        self.last: Mark | None = None
        self.need: int = 1
        self.held: int = 0
        self._data: bytes = b""
        self._at: int = 0
        self._more: list[bytes] = []
        self._marks: list[Mark] = []

    def add(self, data: bytes, packet: int, time_ns: int) -> None:
        """Append bytes."""
        if self.held:
            self._more.append(data)
        else:
            self._data = data
            self._at = 0
        self.held += len(data)
        self._marks.append(Mark(self.position + self.held, packet, time_ns))

    @property
    def ready(self) -> bool:
        return self.held >= self.need

    @property
    def at_frame_start(self) -> bool:
        """Whether a frame is known to begin at the next byte."""
        return self.in_sync and not self.held and not self.skip

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to report."""
        return not self.held and not self.skipped

    def peek(self) -> bytes:
        """Return all held bytes without consuming them."""
        if self._more:
            self._data = b"".join([self._data[self._at :], *self._more])
            self._more = []
            self._at = 0
        elif self._at:
            self._data = self._data[self._at :]
            self._at = 0
        return self._data

    def size(self) -> int:
        """Read the int32 at the start of the held bytes, of which there are at least four."""
        if self._more and len(self._data) - self._at < 4:
            self.peek()
        return int(read_i32_be(self._data, self._at))

    def take(self, size: int) -> bytes:
        """Consume the first `size` held bytes; `size` is at most `held`."""
        if self._more and len(self._data) - self._at < size:
            self.peek()
        start = self._at
        taken = self._data[start : start + size]
        self.held -= size
        self.position += size
        self.need = 1
        if self.held:
            self._at = start + size
            if self._at == len(self._data):
                self._data = self._more.pop(0)
                self._at = 0
        else:
            self._data = b""
            self._at = 0
        return taken

    def skip_held(self) -> None:
        """Consume the held bytes of the frame that is being skipped."""
        size = min(self.skip, self.held)
        self.last = self.mark(size)
        self.take(size)
        self.skip -= size
        self.skipped += size

    def partial_frame(self) -> tuple[int, int] | None:
        """Return the size of the incomplete frame at the start, and how many bytes it lacks."""
        if not self.in_sync or self.held < SIZE or self.skip:
            return None
        size = self.size()
        return size, SIZE + size - self.held

    def mark(self, size: int) -> Mark:
        """Return the packet of the held byte at `size - 1`; drop the packets before it."""
        marks = self._marks
        wanted = self.position + size
        at = 0
        last = len(marks) - 1
        while at < last and marks[at].end < wanted:
            at += 1
        if at:
            del marks[:at]
        return marks[0]
