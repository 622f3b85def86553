"""Record batches of magic 0, 1 and 2: reading, writing, compression, control records.

Law: a records field is bytes until somebody asks; then what is wrong with it is an error with a
path and an offset, and what it may cost is bounded.

    RecordBatches(data) ─▶ Batch ─▶ Record objects, or Columns ─▶ Arrow
    BatchBuilder, MessageSetBuilder ─▶ bytes
"""

from .batch import Batch, TimestampType
from .batches import RecordBatches
from .builder import BatchBuilder, end_txn_batch
from .columns import Columns
from .compression import Compression
from .control import (
    ControlRecord,
    ControlType,
    EndTxnMarker,
    control_key,
    control_record,
    end_txn_marker,
    end_txn_value,
)
from .limits import DEFAULT_RECORD_LIMITS, Budget, RecordLimits
from .message_set import MessageSetBuilder
from .record import Headers, Record
from .reencoding import reencode

__all__ = [
    "DEFAULT_RECORD_LIMITS",
    "Batch",
    "BatchBuilder",
    "Budget",
    "Columns",
    "Compression",
    "ControlRecord",
    "ControlType",
    "EndTxnMarker",
    "Headers",
    "MessageSetBuilder",
    "Record",
    "RecordBatches",
    "RecordLimits",
    "TimestampType",
    "control_key",
    "control_record",
    "end_txn_batch",
    "end_txn_marker",
    "end_txn_value",
    "reencode",
]
