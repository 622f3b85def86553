"""A replica of a KRaft quorum: elections, replication, snapshots, changes of voters.

A sans-IO state machine over a log; see `client`.

    Quorum state ─▶ states (table) ─▶ voting, epochs ─▶ leading, membership │ following
"""

from .client import KafkaRaftClient
from .config import DEFAULT_TIMEOUTS, RaftConfig, Timeouts
from .control_batches import bootstrap_snapshot, snapshot_bytes
from .effects import (
    Appended,
    AppendFailed,
    BecameLeader,
    Committed,
    Effect,
    Fault,
    LeaderChanged,
    LoadSnapshot,
    LogEndMoved,
    Node,
    PersistQuorumState,
    Reply,
    Resigned,
    Send,
)
from .events import (
    Append,
    Event,
    RequestFailed,
    RequestReceived,
    Resign,
    ResponseReceived,
    SnapshotTaken,
)
from .log import MemoryLog, OffsetAndEpoch, ReplicatedLog, SnapshotId
from .quorum_state import ElectionState, read_quorum_state, write_quorum_state
from .states import TRANSITIONS, Cause, State, diagram
from .voters import Endpoint, KRaftVersionRange, ReplicaKey, Voter, VoterSet
from .wire import VERSIONS

__all__ = [
    "DEFAULT_TIMEOUTS",
    "TRANSITIONS",
    "VERSIONS",
    "Append",
    "AppendFailed",
    "Appended",
    "BecameLeader",
    "Cause",
    "Committed",
    "Effect",
    "ElectionState",
    "Endpoint",
    "Event",
    "Fault",
    "KRaftVersionRange",
    "KafkaRaftClient",
    "LeaderChanged",
    "LoadSnapshot",
    "LogEndMoved",
    "MemoryLog",
    "Node",
    "OffsetAndEpoch",
    "PersistQuorumState",
    "RaftConfig",
    "ReplicaKey",
    "ReplicatedLog",
    "Reply",
    "RequestFailed",
    "RequestReceived",
    "Resign",
    "Resigned",
    "ResponseReceived",
    "Send",
    "SnapshotId",
    "SnapshotTaken",
    "State",
    "Timeouts",
    "Voter",
    "VoterSet",
    "bootstrap_snapshot",
    "diagram",
    "read_quorum_state",
    "snapshot_bytes",
    "write_quorum_state",
]
