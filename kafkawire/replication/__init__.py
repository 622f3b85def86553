"""Replication: leaders and followers of partitions as machines without I/O.

A record is acknowledged to acks=all when every in-sync replica has it; a leader that is
elected from these has every acknowledged record.

    ReplicaManager.handle(event, now) -> effects    next_deadline()    advance(now)
"""

from .appending import Append
from .config import ReplicationConfig
from .effects import (
    CONTROLLER,
    AppendCompleted,
    AppendResult,
    CheckpointHighWatermarks,
    Effect,
    HighWatermarkAdvanced,
    IsrChanged,
    ReplicaChanged,
    Respond,
    SendRequest,
)
from .events import (
    Event,
    LogsFailed,
    MetadataPublished,
    Registered,
    RequestReceived,
    ResponseReceived,
    ThrottleChanged,
)
from .log.memory_log import MemoryLog
from .log.replica_log import (
    AbortedTransaction,
    AppendRejected,
    EpochEndOffset,
    LogAppendInfo,
    LogOffline,
    ReplicaLog,
    TimestampOffset,
    Validate,
    whole_batches,
)
from .partition import Partition
from .replica_manager import ReplicaManager
from .states import ISR_TRANSITIONS, REPLICA_TRANSITIONS, IsrState, ReplicaState

__all__ = [
    "CONTROLLER",
    "ISR_TRANSITIONS",
    "REPLICA_TRANSITIONS",
    "AbortedTransaction",
    "Append",
    "AppendCompleted",
    "AppendRejected",
    "AppendResult",
    "CheckpointHighWatermarks",
    "Effect",
    "EpochEndOffset",
    "Event",
    "HighWatermarkAdvanced",
    "IsrChanged",
    "IsrState",
    "LogAppendInfo",
    "LogOffline",
    "LogsFailed",
    "MemoryLog",
    "MetadataPublished",
    "Partition",
    "Registered",
    "ReplicaChanged",
    "ReplicaLog",
    "ReplicaManager",
    "ReplicaState",
    "ReplicationConfig",
    "RequestReceived",
    "Respond",
    "ResponseReceived",
    "SendRequest",
    "ThrottleChanged",
    "TimestampOffset",
    "Validate",
    "whole_batches",
]
