"""The producer's machine: records in, exactly one delivery report for each out.

The delivery reports of a partition come in the order of its records.

    Send ─▶ partition ─▶ open batch ─▶ queue ─▶ in flight ─▶ Delivered | Failed
            (key, or     (linger,      (per      │
             sticky)      batch size)   leader)  └─▶ retry, in order (retries, splits, new epoch)
"""

from .configuration import PRODUCER_KEYS, ProducerSettings, producer_settings
from .events import (
    Abandon,
    Appended,
    BeginTransaction,
    Blocked,
    Cancel,
    CloseProducer,
    Delivered,
    EndTransaction,
    Failed,
    Failure,
    Flush,
    Flushed,
    InitTransactions,
    ProducerClosed,
    Send,
    SendOffsets,
    TransactionDone,
    TransactionFailed,
    TransactionOffset,
)
from .producer import Producer
from .serializing import ProducerRecord

__all__ = [
    "PRODUCER_KEYS",
    "Abandon",
    "Appended",
    "BeginTransaction",
    "Blocked",
    "Cancel",
    "CloseProducer",
    "Delivered",
    "EndTransaction",
    "Failed",
    "Failure",
    "Flush",
    "Flushed",
    "InitTransactions",
    "Producer",
    "ProducerClosed",
    "ProducerRecord",
    "ProducerSettings",
    "Send",
    "SendOffsets",
    "TransactionDone",
    "TransactionFailed",
    "TransactionOffset",
    "producer_settings",
]
