"""Reads the files of a broker's log directory: segments, indexes, snapshots, checkpoints.

A file is read in chunks and in constant memory; an error in its content is a `Finding` between
the rows, never an exception.

    from pathlib import Path
    from kafkawire.log import Finding, read, recognise

    file = recognise(Path("__consumer_offsets-12/00000000000000000000.log"))
    for found in read(file, file.log):
        print(found)
"""

from ..protocol.log_records import (
    LogPart,
    LogRecord,
    decode_control_record,
    decode_log_record,
    encode_log_message,
)
from ..protocol.log_types import InternalLog
from .files import FileKind, LogFile, recognise, walk
from .findings import Finding, Rule
from .indexes import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
from .producers import ProducerState
from .reading import BatchRow, RecordRow, Row, read, read_batches
from .segment import SegmentReader, StoredBatch
from .texts import LeaderEpoch, PartitionOffset, Property

__all__ = [
    "AbortedTransaction",
    "BatchRow",
    "FileKind",
    "Finding",
    "InternalLog",
    "LeaderEpoch",
    "LogFile",
    "LogPart",
    "LogRecord",
    "OffsetIndexEntry",
    "PartitionOffset",
    "ProducerState",
    "Property",
    "RecordRow",
    "Row",
    "Rule",
    "SegmentReader",
    "StoredBatch",
    "TimeIndexEntry",
    "decode_control_record",
    "decode_log_record",
    "encode_log_message",
    "read",
    "read_batches",
    "recognise",
    "walk",
]
