"""Reads files of record batches: segments, and snapshots of the metadata log.

One batch is in memory at a time. A batch with a wrong checksum is reported and read as far as
possible; after an invalid length, reading continues at the next valid batch.

    (base offset: int64 | length: int32 | length bytes)*  [zero bytes: preallocated]
                                                          [incomplete batch: being written]
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from ..errors import WireError
from ..records import DEFAULT_RECORD_LIMITS, Batch, ControlType, Record, RecordLimits
from ..records.batches import SMALLEST_LENGTH, TO_MAGIC
from ..records.legacy import LOG_OVERHEAD
from .files import FileKind, LogFile
from .findings import Finding, Rule
from .resync import Resynchronisation, pieces

LENGTH: Final = Struct(">i")
LARGEST_MAGIC: Final = 2
CHUNK: Final = 1 << 20
"""Number of bytes read at a time."""


class StoredBatch(NamedTuple):
    """A batch and its position.

    crc_valid: None if not checked. records: of a corrupt batch, those before the error; a finding
    describes the error.
    """

    position: int
    batch: Batch
    crc_valid: bool | None
    records: list[Record]

    @property
    def base_offset(self) -> int:
        """The first offset; of a compressed message of magic 0 or 1, its first record's."""
        if self.batch.magic == LARGEST_MAGIC:
            return self.batch.base_offset
        return self.records[0].offset if self.records else self.batch.last_offset


class SegmentReader:
    """Reads a file of record batches; iterate it once.

    verify: check checksums and offsets, not only what reading requires. headers: read only headers
    of batches, without records, and report what a crash leaves: zero bytes at the end, and an
    incomplete last batch, also of a segment that the broker may still be writing.
    """

    def __init__(
        self,
        file: LogFile,
        stream: BinaryIO,
        *,
        verify: bool = True,
        limits: RecordLimits = DEFAULT_RECORD_LIMITS,
        headers: bool = False,
    ) -> None:
        self._headers = headers
        self._file = file
        self._stream = stream
        self._verify = verify
        self._limits = limits
        self._size = os.fstat(stream.fileno()).st_size
        self._resynchronisation = Resynchronisation(stream, self._size)
        self._position = 0
        self._count = 0
        self._last_offset: int | None = None

    def __iter__(self) -> Iterator[StoredBatch | Finding]:
        last: StoredBatch | None = None
        while self._position < self._size:
            position = self._position
            head = self._read(position, TO_MAGIC)
            if not any(head) and self._is_zero_from(position):
                if self._headers:
                    yield self._zero_tail(position)
                break
            problem = self._problem(position, head)
            if problem is not None:
                yield from self._skip(problem)
                continue
            for row in self._batch(position, LENGTH.unpack_from(head, 8)[0] + LOG_OVERHEAD):
                if isinstance(row, StoredBatch):
                    if last is None:
                        yield from self._snapshot_header(row)
                    last = row
                yield row
        yield from self._snapshot_footer(last)

    # -- positions in the file

    def _read(self, position: int, size: int) -> bytes:
        self._stream.seek(position)
        return self._stream.read(size)

    def _is_zero_from(self, position: int) -> bool:
        return all(piece.count(0) == len(piece) for piece in pieces(self._stream, position))

    def _problem(self, position: int, head: bytes) -> Finding | None:
        """Return why there is no complete batch here; None if there may be one."""
        left = self._size - position
        if len(head) >= LOG_OVERHEAD:
            (length,) = LENGTH.unpack_from(head, 8)
            if length < SMALLEST_LENGTH:
                return self._finding(position, Rule.BATCH_LENGTH, f"invalid batch length {length}")
            if length + LOG_OVERHEAD <= left:
                return None
        rule = Rule.ACTIVE_TAIL if self._file.is_active else Rule.CUT
        if self._headers:
            rule = Rule.TORN_TAIL
        text = f"incomplete batch at the end of the file: {left} bytes{self._after()}"
        return self._finding(position, rule, text)

    def _zero_tail(self, position: int) -> Finding:
        left = self._size - position
        text = f"zeros to the end of the file: {left} bytes{self._after()}"
        return self._finding(position, Rule.ZERO_TAIL, text)

    def _after(self) -> str:
        """Name the last offset before a torn tail."""
        if not self._headers or self._last_offset is None:
            return ""
        return f", after offset {self._last_offset}"

    def _skip(self, problem: Finding) -> Iterator[Finding]:
        """Continue at the next valid batch, or end."""
        start = problem.position
        next_start = self._resynchronisation.next_batch(start + 1, self._next_offset())
        if next_start is None:
            self._position = self._size
            if problem.rule is Rule.BATCH_LENGTH:
                skipped = f"; remaining {self._size - start} bytes skipped"
                problem = problem._replace(text=problem.text + skipped)
            yield problem
            return
        self._position = next_start
        tail = problem.rule in (Rule.ACTIVE_TAIL, Rule.TORN_TAIL)
        rule = Rule.BATCH_LENGTH if tail else problem.rule
        text = f"{problem.text}; {next_start - start} bytes skipped, next batch at {next_start}"
        yield problem._replace(rule=rule, text=text)

    def _next_offset(self) -> int:
        if self._last_offset is not None:
            return self._last_offset + 1
        return self._file.base_offset or 0

    def _can_begin(self, position: int) -> bool:
        """Whether the file ends there, or a batch may start."""
        if position == self._size:
            return True
        head = self._read(position, TO_MAGIC)
        return len(head) < TO_MAGIC or (
            self._problem(position, head) is None and head[TO_MAGIC - 1] <= LARGEST_MAGIC
        )

    # -- one batch

    def _batch(self, position: int, size: int) -> Iterator[StoredBatch | Finding]:
        index = self._count
        self._count += 1
        self._position = position + size
        if size > self._limits.max_batch_bytes:
            text = f"a batch of {size} bytes, more than the {self._limits.max_batch_bytes} allowed"
            yield self._finding(position, Rule.BATCH_SIZE, text)
            return
        data = self._read(position, size)
        try:
            batch = Batch(data, 0, len(data), index, self._limits, self._verify)
        except WireError as error:
            yield self._finding(position, Rule.BATCH_HEADER, str(error))
            return
        if self._verify and not batch.crc_valid:
            text = f"checksum mismatch: computed {batch.compute_crc():08x}, stored {batch.crc:08x}"
            if not self._can_begin(position + size):  # then the length may be wrong, too
                yield from self._skip(self._finding(position, Rule.CRC, text))
                return
            yield self._finding(position, Rule.CRC, text)
            batch.check_crcs = False
            yield from self._records(StoredBatch(position, batch, False, []))
            return
        if batch.magic == LARGEST_MAGIC:
            batch.check_crcs = False  # checked above; wrapped messages have their own checksums
        yield from self._records(StoredBatch(position, batch, True if self._verify else None, []))

    def _records(self, stored: StoredBatch) -> Iterator[StoredBatch | Finding]:
        errors: list[WireError] = []
        if not self._headers:
            stored = stored._replace(records=stored.batch.records(faults=errors))
        yield stored
        for error in errors:
            yield self._finding(stored.position, Rule.RECORDS, str(error))
        if self._verify:
            yield from self._offsets(stored)
        if stored.crc_valid is not False:
            self._last_offset = stored.batch.last_offset

    def _offsets(self, stored: StoredBatch) -> Iterator[Finding]:
        base, last = stored.base_offset, stored.batch.last_offset
        if self._last_offset is not None and base <= self._last_offset:
            text = f"base offset {base} after offset {self._last_offset}"
            yield self._finding(stored.position, Rule.OFFSET_ORDER, text)
        segment = self._file.base_offset if self._file.kind is FileKind.SEGMENT else None
        if segment is not None and base < segment:
            text = f"offset {base} in a segment with base offset {segment}"
            yield self._finding(stored.position, Rule.SEGMENT_OFFSET, text)
        before = base - 1
        for record in stored.records:
            if not before < record.offset <= last:
                text = f"record offset {record.offset} after {before}, in a batch of {base}-{last}"
                yield self._finding(stored.position, Rule.RECORD_OFFSETS, text)
                return
            before = record.offset
        if last < base:
            text = f"base offset {base} after last offset {last}"
            yield self._finding(stored.position, Rule.RECORD_OFFSETS, text)

    def _finding(self, position: int, rule: Rule, text: str) -> Finding:
        return Finding(self._file.path, position, rule, text)

    # -- a snapshot of the metadata log

    def _snapshot_header(self, first: StoredBatch) -> Iterator[Finding]:
        if self._is_snapshot and not _is_control(first, ControlType.SNAPSHOT_HEADER, 0):
            yield self._finding(0, Rule.SNAPSHOT_HEADER, "snapshot header missing")

    def _snapshot_footer(self, last: StoredBatch | None) -> Iterator[Finding]:
        if self._is_snapshot and (
            last is None or not _is_control(last, ControlType.SNAPSHOT_FOOTER, -1)
        ):
            text = "snapshot footer missing"
            yield self._finding(self._size, Rule.SNAPSHOT_FOOTER, text)

    @property
    def _is_snapshot(self) -> bool:
        checked = self._verify and not self._headers
        return checked and self._file.kind is FileKind.METADATA_SNAPSHOT


def _is_control(stored: StoredBatch, type: ControlType, index: int) -> bool:
    """Whether the record at an index of the batch is a control record of that type."""
    if not stored.batch.control or not stored.records:
        return False
    key = stored.records[index].key
    return key is not None and key[2:4] == type.to_bytes(2, "big")
