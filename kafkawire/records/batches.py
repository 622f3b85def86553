"""A records field: batches back to back, of any magic, without a count.

Law: batches are found by their lengths alone. A batch that the data cuts off is dropped, as a fetch
response may end in one, and `cut_tail` says how many bytes that were; anything else that is wrong
is an error.

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
"""The least length of a batch: magic 0's, without key and value."""
TO_MAGIC: Final = 17
"""Bytes of a batch up to its magic and with it."""


@final
class RecordBatches:
    """The batches in a records field; iterate over them, or over all their records.

    Nothing is read before it is asked for, and nothing decompressed before records are.

    limits: what one call may cost (`RecordLimits`).
    check_crcs: verify each batch's checksum before its records are read.
    """

    def __init__(
        self,
        data: bytes,
        limits: RecordLimits = DEFAULT_RECORD_LIMITS,
        check_crcs: bool = True,
    ) -> None:
        if not isinstance(data, bytes):  # compiled code refuses by itself
            raise TypeError(f"bytes object expected; got {type(data).__name__}")
        self.data: bytes = data
        self.limits: RecordLimits = limits
        self.check_crcs: bool = check_crcs

    def __iter__(self) -> Iterator[Batch]:
        """Yield each whole batch."""
        return self.batches()

    def batches(self, faults: list[WireError] | None = None) -> Iterator[Batch]:
        """Yield each whole batch.

        faults: where what is wrong with a batch's length or header is appended; a batch whose
            header is wrong is left out, one whose length is wrong ends the field. None raises it.
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
                batch = Batch(self.data, start, end, index, self.limits, self.check_crcs)
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

        faults: where what is wrong is appended as it is met, at most one error for each batch; the
            records before it in its batch and those of the next batches are still read. None raises
            the first. See `Batch.records`.
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
        """Bytes at the end that belong to no whole batch."""
        start = index = 0
        while True:
            end = batch_end(self.data, start, index)
            if end < 0:
                return len(self.data) - start
            start = end
            index += 1


def batch_end(data: bytes, start: int, index: int) -> int:
    """Say where the batch at `start` ends, -1 if the data does not hold all of it."""
    left = len(data) - start
    if left < LOG_OVERHEAD:
        return -1
    length = int(read_i32_be(data, start + 8))
    if length < SMALLEST_LENGTH:
        raise InvalidLength(f"a batch length of {length}", f"batch[{index}]", start + 8)
    if left < TO_MAGIC or length > left - LOG_OVERHEAD:
        return -1
    return start + LOG_OVERHEAD + length
