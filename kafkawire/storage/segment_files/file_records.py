"""A file of record batches: appended, read from a position on, cut.

One chunk is in memory at a time, or one batch. Where no complete batch begins, reading raises
CorruptFile, which names the position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from ...errors import WireError
from ...records import Batch
from ...records.batch import HEADER_BYTES
from ...records.batches import SMALLEST_LENGTH
from ...records.legacy import LOG_OVERHEAD
from ..disks.disk import Disk
from ..errors import CorruptFile

LENGTH: Final = Struct(">i")
MAGIC: Final = 2
MAGIC_AT: Final = 16
FIRST_OFFSET: Final = Struct(">q15xi")
"""The base offset and the last offset delta, from the beginning of a batch of magic 2."""
CHUNK: Final = 1 << 16
"""Bytes that are read at a time."""
FIRST_CHUNK: Final = 1 << 12
"""Bytes of headers that are read first: as many as there are between two entries of an index."""


class StoredBatch(NamedTuple):
    """A batch in a segment. batch: with its records, or only its header."""

    position: int
    size: int
    batch: Batch


class ReadBatches(NamedTuple):
    """Whole batches. second: where the one after the first begins; last: where the last does."""

    data: bytes
    second: int
    last: int

    def next_offsets(self) -> dict[int, int]:
        """Return where the batches begin that follow the first and the last: offset -> position.

        None for old formats, whose headers do not have the number of their records.
        """
        positions = {}
        for start, end in {(0, self.second), (self.last, len(self.data))}:
            if self.data[start + MAGIC_AT] >= MAGIC:
                base, delta = FIRST_OFFSET.unpack_from(self.data, start)
                positions[base + delta + 1] = end
        return positions


class FileRecords:
    """The batches in a file."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self.size = disk.size(path) if disk.exists(path) else 0
        self._disk = disk

    def append(self, data: bytes) -> None:
        """Append batches."""
        self._disk.append(self.path, data)
        self.size += len(data)

    def truncate(self, size: int) -> None:
        """Cut the file."""
        self._disk.truncate(self.path, size)
        self.size = size

    def headers(self, position: int = 0) -> Iterator[StoredBatch]:
        """Yield the headers of batches from a position on. Raises CorruptFile."""
        chunk, start, size = b"", 0, FIRST_CHUNK
        while position < self.size:
            if position + HEADER_BYTES > start + len(chunk):
                start = position
                chunk = self._disk.read(self.path, start, min(size, self.size - start))
                size = min(2 * size, CHUNK)
            yield self._stored(chunk, position - start, position, whole=False)
            position += LENGTH.unpack_from(chunk, position - start + 8)[0] + LOG_OVERHEAD

    def batches(self, position: int = 0) -> Iterator[StoredBatch]:
        """Yield whole batches from a position on. Raises CorruptFile."""
        chunk, at = b"", 0
        while position < self.size:
            start = position - at
            need = _size(chunk, start) if len(chunk) >= start + LOG_OVERHEAD else CHUNK
            if start + need > len(chunk):
                at = position
                head = self._disk.read(self.path, at, LOG_OVERHEAD)
                need = max(CHUNK, _size(head, 0) if len(head) == LOG_OVERHEAD else 0)
                chunk = self._disk.read(self.path, at, min(need, self.size - at))
            stored = self._stored(chunk, position - at, position, whole=True)
            yield stored
            position += stored.size

    def _stored(self, chunk: bytes, start: int, position: int, *, whole: bool) -> StoredBatch:
        if len(chunk) - start < LOG_OVERHEAD + SMALLEST_LENGTH:
            raise CorruptFile(self.path, f"incomplete batch at byte {position}")
        size = _size(chunk, start)
        if size < LOG_OVERHEAD + SMALLEST_LENGTH or position + size > self.size:
            raise CorruptFile(self.path, f"invalid or incomplete batch at byte {position}")
        try:
            end = start + size if whole else min(start + size, len(chunk))
            return StoredBatch(position, size, Batch(chunk, start, end))
        except WireError as error:
            raise CorruptFile(self.path, f"batch at byte {position}: {error}") from None

    def read(self, position: int, end: int, max_bytes: int, at_least_one: bool) -> ReadBatches:
        """Read whole batches between two positions where batches begin, up to a size.

        at_least_one: read the first batch even if it is larger. Raises CorruptFile.
        """
        least = LOG_OVERHEAD if at_least_one else 0
        size = min(max(max_bytes, least), end - position)
        parts = self._disk.read_parts(self.path, position, size)
        batches = self._whole(parts, position)
        if at_least_one and not batches.data and sum(map(len, parts)) >= LOG_OVERHEAD:
            size = min(_size(b"".join(parts), 0), end - position)
            batches = self._whole(self._disk.read_parts(self.path, position, size), position)
        return batches

    def _whole(self, parts: Sequence[bytes | memoryview], position: int) -> ReadBatches:
        """Join the whole batches in parts of the file, without a copy of what is cut."""
        whole: list[bytes | memoryview] = []
        end = second = last = 0
        for part in parts:
            start = 0
            while len(part) - start >= LOG_OVERHEAD:
                size = _size(part, start)
                if size < LOG_OVERHEAD + SMALLEST_LENGTH:
                    raise CorruptFile(self.path, f"invalid batch at byte {position + end}")
                if start + size > len(part):
                    break
                last = end
                start += size
                end += size
                second = second or end
            whole.append(part[:start])
            if start < len(part) and len(whole) < len(parts):  # a batch is in several parts
                return self._whole([b"".join(parts)], position)
        return ReadBatches(b"".join(whole), second, last)

    def read_one(self, position: int, size: int) -> bytes:
        """Read a batch of that size; nothing if no such batch begins there."""
        data = self._disk.read(self.path, position, size)
        return data if len(data) == size == _size(data, 0) else b""


def _size(data: bytes | memoryview, start: int) -> int:
    return int(LENGTH.unpack_from(data, start + 8)[0]) + LOG_OVERHEAD
