"""Checks batches that are to be appended, as far as a log itself must.

Batches are complete, fit into a segment, and their offsets follow the log end; those of a
leader were validated, those of another broker have their checksums verified.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import WireError
from ..protocol import ErrorCode
from ..records import Batch, RecordBatches
from .errors import AppendRejected
from .producer_entry import AppendOrigin, BatchMetadata


@dataclass(slots=True)
class LogAppendInfo:
    """What was appended. duplicate: the earlier batch, if there was one and nothing was done."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    duplicate: BatchMetadata | None = None


def read_batches(records: bytes, origin: AppendOrigin) -> list[Batch]:
    """Read the headers of batches; of another broker, verify their checksums. AppendRejected."""
    try:
        batches = list(RecordBatches(records))
        if origin is AppendOrigin.REPLICATION:
            for batch in batches:
                batch.verify()
    except WireError as error:
        raise AppendRejected(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if not batches or batches[-1].end < len(records):
        raise AppendRejected(ErrorCode.CORRUPT_MESSAGE, "incomplete record batch")
    return batches


def check_place(batches: list[Batch], size: int, end: int, segment_bytes: int) -> None:
    """Check that batches fit into a segment, and that their offsets follow. AppendRejected.

    size: of all batches. end: the log end offset.
    """
    if size > segment_bytes:
        raise AppendRejected(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes, segment.bytes is {segment_bytes}"
        )
    for batch in batches:
        if not end <= batch.base_offset <= batch.last_offset:
            raise AppendRejected(
                ErrorCode.INVALID_RECORD,
                f"offsets {batch.base_offset} to {batch.last_offset}, the log ends at {end}",
            )
        end = batch.last_offset + 1
