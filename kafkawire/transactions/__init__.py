"""The transaction coordinator of a broker (KIP-98, 360, 890), without I/O.

Requests in, results and markers out; what must survive is a record of `__transaction_state`.
"""

from .config import TransactionConfig
from .coordinator import TransactionCoordinator
from .markers import MarkerRequest, TransactionMarkers
from .requests import (
    AddPartitions,
    CoordinatorLog,
    Effect,
    EndTransaction,
    InitProducerId,
    ProducerIdNeeded,
    Request,
    Result,
    VerifyPartitions,
    WriteMarkers,
)
from .states import TRANSITIONS, TransactionState, Trigger
from .transaction import EPOCH_BUMPED, NONE, TopicPartition, Transaction

__all__ = [
    "EPOCH_BUMPED",
    "NONE",
    "TRANSITIONS",
    "AddPartitions",
    "CoordinatorLog",
    "Effect",
    "EndTransaction",
    "InitProducerId",
    "MarkerRequest",
    "ProducerIdNeeded",
    "Request",
    "Result",
    "TopicPartition",
    "Transaction",
    "TransactionConfig",
    "TransactionCoordinator",
    "TransactionMarkers",
    "TransactionState",
    "Trigger",
    "VerifyPartitions",
    "WriteMarkers",
]
