"""Passes objects from one process to another in memory that both share.

Objects are freed in the order in which they were put. Large buffers are pickled out of band,
so that they are copied once into the memory and once out of it. So are pieces of bytes, which are
joined there.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from mmap import mmap
from typing import Any, NamedTuple


class Apart(NamedTuple):
    """An object, and pieces of bytes that are put behind it, one after the other."""

    value: object
    pieces: list[bytes]


class Joined(NamedTuple):
    """An object that was put with pieces, and the bytes of these."""

    value: Any
    pieces: bytes


class Pickled(NamedTuple):
    """A pickle, the buffers that it refers to, and the pieces behind it."""

    parts: Sequence[bytes | memoryview]
    pieces: list[bytes] | None = None

    @property
    def size(self) -> int:
        """The bytes of all parts and pieces."""
        return sum(map(len, self.parts)) + sum(map(len, self.pieces or ()))


def pickled(value: object) -> Pickled:
    """Pickle an object."""
    pieces: list[bytes] | None = None
    if isinstance(value, Apart):
        value, pieces = value
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, 5, buffer_callback=buffers.append)
    return Pickled([text, *(buffer.raw() for buffer in buffers)], pieces)


def unpickled(parts: Sequence[bytes]) -> Any:
    """Unpickle an object."""
    return pickle.loads(parts[0], buffers=parts[1:])


class Span(NamedTuple):
    """Where the parts of an object lie, and then its pieces, if it was put with some."""

    start: int
    end: int
    sizes: list[int]
    has_pieces: bool = False


class SharedMemory:
    """Memory of a fixed size that is shared with the processes forked later."""

    def __init__(self, size: int) -> None:
        self._memory = mmap(-1, size)
        self._size = size
        self._used: deque[tuple[int, int]] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether all objects have been freed."""
        return not self._used

    def put(self, value: Pickled) -> Span | None:
        """Copy an object into free memory; None if there is not enough."""
        span = self._allocate(value.size)
        if span is None:
            return None
        self._used.append(span)
        start, end = span
        position = start
        for part in value.parts:
            self._memory[position : position + len(part)] = part
            position += len(part)
        if value.pieces is not None:
            self._memory.seek(position)
            deque(map(self._memory.write, value.pieces), maxlen=0)
        return Span(start, end, [len(part) for part in value.parts], value.pieces is not None)

    def put_nothing(self) -> None:
        """Put an object without bytes: `free` frees it in its turn."""
        self._used.append((0, 0))

    def value(self, span: Span) -> Any:
        """Unpickle an object; one that was put with pieces is Joined."""
        position = span.start
        parts = []
        for size in span.sizes:
            parts.append(self._memory[position : position + size])
            position += size
        value = unpickled(parts)
        return Joined(value, self._memory[position : span.end]) if span.has_pieces else value

    def free(self) -> None:
        """Free the oldest object. Only the process that puts objects calls this."""
        self._used.popleft()

    def close(self) -> None:
        """Close the memory."""
        self._memory.close()

    def _allocate(self, size: int) -> tuple[int, int] | None:
        """Find free memory behind the newest object or at the start."""
        if not self._used:
            start, limit = 0, self._size
        else:
            oldest, newest = self._used[0], self._used[-1]
            start, limit = newest[1], self._size if newest >= oldest else oldest[0]
            if start + size > limit and limit == self._size:
                start, limit = 0, oldest[0]
        return (start, start + size) if start + size <= limit else None
