"""Reads a records field: contiguous batches of any magic, without a count.

Batches are found by their lengths alone. A truncated last batch is dropped, as a fetch
response may end in one, and `cut_tail` is its number of bytes; any other fault is an error.

    (base offset: int64 │ length: int32 │ length bytes, magic in byte 16 of all)*  [a cut batch]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, final

from librt.strings import read_i32_be

from ..errors import InvalidLength, WireError
from .batch import Batch
from .columns import Columns
from .legacy import LOG_OVERHEAD
from .limits import DEFAULT_RECORD_LIMITS, Budget, RecordLimits
from .record import Record

SMALLEST_LENGTH: Final = 14
"""The shortest length of a batch: magic 0's, without key and value."""
TO_MAGIC: Final = 17
"""Bytes of a batch up to and including its magic."""


@final
class RecordBatches:
    """The batches in a records field; iterate over them, or over all their records.

    Batches are read on demand, and decompressed when their records are requested.

    limits: the limits of one call (`RecordLimits`).
    check_crcs: verify each batch's checksum before its records are read.
    strict: header keys that are not UTF-8 are errors; else they are `ReplacedText`.
    """

    def __init__(
        self,
        data: bytes,
        limits: RecordLimits = DEFAULT_RECORD_LIMITS,
        check_crcs: bool = True,
        strict: bool = False,
    ) -> None:
        if not isinstance(data, bytes):  # compiled code checks this itself
            raise TypeError(f"bytes object expected; got {type(data).__name__}")
        self.data: bytes = data
        self.limits: RecordLimits = limits
        self.check_crcs: bool = check_crcs
        self.strict: bool = strict

    def __iter__(self) -> Iterator[Batch]:
        """Yield each complete batch."""
        return self.batches()

    def batches(self, faults: list[WireError] | None = None) -> Iterator[Batch]:
        """Yield each complete batch.

        faults: a list to which faults of lengths and headers are appended; a batch with an invalid
            header is left out, one with an invalid length ends the field. None raises.
        """
        start = index = 0
        while True:
            try:
                end = batch_end(self.data, start, index)
            except WireError as error:
                if faults is None:
                    raise
                faults.append(error)
                return
            if end < 0:
                return
            try:
                batch = Batch(
                    self.data, start, end, index, self.limits, self.check_crcs, self.strict
                )
            except WireError as error:
                if faults is None:
                    raise
                faults.append(error)
            else:
                yield batch
            start = end
            index += 1

    def records(self, faults: list[WireError] | None = None) -> Iterator[Record]:
        """Iterate over the records of all batches, those of control batches too.

        faults: a list to which faults are appended, at most one per batch; the records before a
            fault in its batch and those of the next batches are still read. None raises the first.
            See `Batch.records`.
        """
        budget = Budget(self.limits)
        return chain.from_iterable(
            batch.records(budget, faults=faults) for batch in self.batches(faults)
        )

    def columns(self, faults: list[WireError] | None = None) -> Columns:
        """Decode all records into columns that point into the data; `to_arrow()` makes arrays.

        faults: as in `records`.
        """
        columns = Columns(self.data)
        budget = Budget(self.limits)
        for batch in self.batches(faults):
            batch.add_to(columns, budget, faults)
        return columns

    @property
    def cut_tail(self) -> int:
        """Bytes at the end that are not a complete batch."""
        start = index = 0
        while True:
            end = batch_end(self.data, start, index)
            if end < 0:
                return len(self.data) - start
            start = end
            index += 1


def batch_end(data: bytes, start: int, index: int) -> int:
    """Return the end of the batch at `start`; -1 if the batch is truncated."""
    left = len(data) - start
    if left < LOG_OVERHEAD:
        return -1
    length = int(read_i32_be(data, start + 8))
    if length < SMALLEST_LENGTH:
        raise InvalidLength(f"a batch length of {length}", f"batch[{index}]", start + 8)
    if left < TO_MAGIC or length > left - LOG_OVERHEAD:
        return -1
    return start + LOG_OVERHEAD + length
