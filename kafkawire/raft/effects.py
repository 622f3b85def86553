"""The effects that a replica returns to its caller.

Effects are carried out in order; `PersistQuorumState` precedes what depends on it, and is
durable before the next effect is carried out.
"""

from __future__ import annotations

from typing import NamedTuple

from ..primitives import Message
from ..protocol.error_code import ErrorCode
from .log import SnapshotId


class Node(NamedTuple):
    """Where to send a request. id: negative for a bootstrap server, whose id is unknown."""

    id: int
    host: str
    port: int


class Send(NamedTuple):
    """Send a request, in the newest version of it that both sides have (`VERSIONS`)."""

    correlation_id: int
    node: Node
    request: Message


class Reply(NamedTuple):
    """Send the response to a request, in the request's version."""

    reply_to: int
    response: Message


class PersistQuorumState(NamedTuple):
    """Write this text to the file `quorum-state`."""

    text: str


class LeaderChanged(NamedTuple):
    """The epoch has changed, or its leader is now known; None: unknown."""

    leader_id: int | None
    epoch: int


class BecameLeader(NamedTuple):
    """The replica leads, and all records before its epoch are committed: its owner may decide."""

    epoch: int
    epoch_start_offset: int


class Resigned(NamedTuple):
    """The replica no longer leads this epoch."""

    epoch: int


class Appended(NamedTuple):
    """Records are in the leader's log; they are committed once `Committed` is beyond them."""

    append_id: int
    last_offset: int


class LogEndMoved(NamedTuple):
    """The leader has appended control records, such as voters: its owner continues after them."""

    epoch: int
    end_offset: int


class AppendFailed(NamedTuple):
    """Records were not appended."""

    append_id: int
    error: ErrorCode


class Committed(NamedTuple):
    """All records before this offset, the high watermark, are committed."""

    offset: int


class LoadSnapshot(NamedTuple):
    """The log now begins at the end of this snapshot: replace the state by what it has."""

    snapshot_id: SnapshotId


class Fault(NamedTuple):
    """Another replica broke the protocol, or this one lost data: what it sent was not applied."""

    reason: str


Effect = (
    Send
    | Reply
    | PersistQuorumState
    | LeaderChanged
    | BecameLeader
    | Resigned
    | Appended
    | LogEndMoved
    | AppendFailed
    | Committed
    | LoadSnapshot
    | Fault
)
