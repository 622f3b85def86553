"""One node of a cluster: a broker, a controller, or both, over its disks.

Events in, effects out, decoded messages alone; see `node`. What is on the wire, and when a
response is late, is its caller's affair.

    handle(event, now) -> effects     next_deadline()     advance(now)
"""

from .broker.replica_log import StoredReplicaLog
from .config import COMBINED, NodeConfig, ProcessRole
from .effects import (
    BrokerRefused,
    BrokerStateChanged,
    Destination,
    DirectoryFailed,
    Effect,
    LogRecovered,
    LogSetAside,
    PartitionDamaged,
    Published,
    Respond,
    SegmentRolled,
    SendRequest,
    Stopped,
)
from .events import Event, RequestReceived, ResponseReceived, ShutdownRequested
from .lifecycle import TRANSITIONS, BrokerState
from .node import Node
from .quorum.metadata_log import KafkaMetadataLog

__all__ = [
    "COMBINED",
    "PartitionDamaged",
    "TRANSITIONS",
    "BrokerState",
    "BrokerRefused",
    "BrokerStateChanged",
    "Destination",
    "DirectoryFailed",
    "Effect",
    "Event",
    "KafkaMetadataLog",
    "LogRecovered",
    "LogSetAside",
    "SegmentRolled",
    "Node",
    "NodeConfig",
    "ProcessRole",
    "Published",
    "RequestReceived",
    "Respond",
    "ResponseReceived",
    "SendRequest",
    "ShutdownRequested",
    "Stopped",
    "StoredReplicaLog",
]
