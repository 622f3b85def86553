"""Record batches of magic 0, 1 and 2: reading, writing, compression, control records.

A records field is decoded on demand; errors have a path and an offset, and time and memory are
limited.

    RecordBatches(data) ─▶ Batch ─▶ Record objects, or Columns ─▶ Arrow
    BatchBuilder, MessageSetBuilder ─▶ bytes
"""

from .batch import Batch, TimestampType
from .batches import RecordBatches
from .builder import BatchBuilder, end_txn_batch
from .columns import Columns
from .compression.codecs import Compression
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
from .replaced_text import ReplacedText, text_bytes

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
    "ReplacedText",
    "TimestampType",
    "control_key",
    "control_record",
    "end_txn_batch",
    "end_txn_marker",
    "end_txn_value",
    "reencode",
    "text_bytes",
]
