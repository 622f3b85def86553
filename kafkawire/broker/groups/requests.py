"""What is asked of a group, and what it answers, as values: no version of any message.

Law: a request that may have to wait carries `reply_to`; its answer carries it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol import ErrorCode

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata), the preferred first."""


@dataclass(frozen=True, slots=True)
class Join:
    """A client wants to be a member, or takes part in a rebalance; timeouts in seconds.

    member_id: "" for a new one. requires_known_member_id: whether a new one must come back with the id it is given
    (v4+). supports_skip_assignment: whether a leader understands that it need not assign (v9+).
    """

    reply_to: int
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocol_type: str
    protocols: Protocols
    requires_known_member_id: bool = True
    supports_skip_assignment: bool = True


@dataclass(frozen=True, slots=True)
class Sync:
    """A member waits for its assignment; the leader brings everybody's."""

    reply_to: int
    member_id: str
    generation_id: int
    group_instance_id: str | None
    assignments: Mapping[str, bytes]
    protocol_type: str | None = None
    protocol_name: str | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A member is alive."""

    reply_to: int
    member_id: str
    generation_id: int
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """Members leave: (member id, group instance id or None) of each."""

    reply_to: int
    members: tuple[tuple[str, str | None], ...]


GroupRequest = Join | Sync | Heartbeat | Leave


class Joined(NamedTuple):
    """Answers a Join. members: (member id, instance, metadata), for the leader only."""

    reply_to: int
    error: ErrorCode
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[tuple[str, str | None, bytes], ...] = ()


class Synced(NamedTuple):
    """Answers a Sync."""

    reply_to: int
    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


class HeartbeatResult(NamedTuple):
    """Answers a Heartbeat."""

    reply_to: int
    error: ErrorCode


class Left(NamedTuple):
    """Answers a Leave, member by member."""

    reply_to: int
    error: ErrorCode
    members: tuple[ErrorCode, ...] = ()


class Store(NamedTuple):
    """Keep the group as it is now: generation, members, assignments."""


Effect = Joined | Synced | HeartbeatResult | Left | Store


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """Deadline: nothing was heard of a member for its session timeout."""

    member_id: str


@dataclass(frozen=True, slots=True)
class PendingExpired:
    """Deadline: a client never came back with the id it was given."""

    member_id: str


@dataclass(frozen=True, slots=True)
class JoinDue:
    """Deadline: the rebalance goes on with those who have joined."""


@dataclass(frozen=True, slots=True)
class SyncDue:
    """Deadline: who has not asked for its assignment is out."""


Deadline = SessionExpired | PendingExpired | JoinDue | SyncDue
