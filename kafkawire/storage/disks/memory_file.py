"""A file of a disk in memory, which can share its bytes with other files.

A crash keeps the bytes that are durable; of the rest, by the random function, all, none, a
prefix, or a prefix and zeros. Batches are kept as they were appended, and once for all disks that
share bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final, final
from weakref import WeakValueDictionary

from ...records.batch import HEADER_BYTES

Choose = Callable[[int], int]
"""Returns a random number below its argument."""
NONE, ALL, PREFIX, ZEROS = range(4)
"""What a crash keeps of bytes that are not durable."""
LOSSES: Final = 4


SHARED_FROM: Final = 1024
"""The size from which on what is appended is kept as it is; less is copied into a buffer."""
BUFFER: Final = 1 << 16
"""The size of such a buffer at most, but for the last append."""
KEY: Final = HEADER_BYTES
"""Bytes by which equal appends are found: of a batch, its header."""


@final
class _Chunk:
    """Bytes of files. Those that are kept as they are never change: several files may have them."""

    __slots__ = ("__weakref__", "data")

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = data


@final
class SharedBytes:
    """What several disks in one process have alike: the batches of a leader and its followers.

    least: the size from which on what is appended is kept as it is, and shared.
    """

    def __init__(self, least: int = SHARED_FROM) -> None:
        self.least = least
        self._chunks: WeakValueDictionary[bytes, _Chunk] = WeakValueDictionary()

    def __deepcopy__(self, _memo: object) -> SharedBytes:
        return self

    def chunk(self, data: bytes) -> _Chunk:
        """Return a chunk with these bytes that a file has already, or a new one."""
        key = data[:KEY]
        chunk = self._chunks.get(key)
        if chunk is None or chunk.data != data:
            chunk = self._chunks[key] = _Chunk(data)
        return chunk


@final
class MemoryFile:
    """A file. synced: bytes that are durable; before: the durable content before a truncation."""

    def __init__(self) -> None:
        self.size = 0
        self.synced = 0
        self.before: bytes | None = None
        self.modified_ms = 0
        self._chunks: list[_Chunk] = []
        self._starts: list[int] = []

    def append(self, data: bytes, shared: SharedBytes | None) -> None:
        if len(data) >= (SHARED_FROM if shared is None else shared.least):
            self._add(_Chunk(data) if shared is None else shared.chunk(data))
            return
        last = self._chunks[-1].data if self._chunks else None
        if isinstance(last, bytearray) and len(last) < BUFFER:
            last += data
            self.size += len(data)
        elif data:
            self._add(_Chunk(bytearray(data)))

    def _add(self, chunk: _Chunk) -> None:
        self._starts.append(self.size)
        self._chunks.append(chunk)
        self.size += len(chunk.data)

    def read(self, position: int, end: int) -> bytes:
        """Read bytes; those of one append as they are kept, without a copy."""
        end = min(end, self.size)
        if position >= end:
            return b""
        starts = self._starts
        index = -1 if position >= starts[-1] else bisect_right(starts, position) - 1
        start, data = starts[index], self._chunks[index].data
        if end - start > len(data):
            return b"".join(self.parts(position, end))
        if isinstance(data, bytes):
            return data[position - start : end - start]
        return bytes(memoryview(data)[position - start : end - start])

    def parts(self, position: int, end: int) -> list[bytes | memoryview]:
        """Read bytes as they are kept: only those of small appends, which may grow, are copied."""
        end = min(end, self.size)
        index = bisect_right(self._starts, position) - 1
        parts: list[bytes | memoryview] = []
        while position < end:
            start, data = self._starts[index], self._chunks[index].data
            stop = min(end, start + len(data))
            if isinstance(data, bytearray):
                parts.append(bytes(memoryview(data)[position - start : stop - start]))
            elif (position, stop) == (start, start + len(data)):
                parts.append(data)
            else:
                parts.append(memoryview(data)[position - start : stop - start])
            position, index = stop, index + 1
        return parts

    def truncate(self, size: int) -> None:
        while self._starts and self._starts[-1] >= size:
            del self._starts[-1], self._chunks[-1]
        if self._starts and self.size > size:
            self._chunks[-1] = _Chunk(self._chunks[-1].data[: size - self._starts[-1]])
        self.size = min(self.size, size)

    def crashed(self, choose: Choose) -> None:
        if self.before is not None and choose(2) == 0:
            self.truncate(0)
            self.append(self.before, None)
        else:
            size = self.size
            loss = choose(LOSSES)
            if size > self.synced and loss != ALL:
                kept = self.synced if loss == NONE else self.synced + choose(size - self.synced)
                self.truncate(kept)
                if loss == ZEROS:
                    self.append(bytes(size - kept), None)
        self.sync()

    def sync(self) -> None:
        self.synced = self.size
        self.before = None
