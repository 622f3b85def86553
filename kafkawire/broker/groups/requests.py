"""Requests and effects of a group, and its deadlines, independent of message versions.

A request carries `reply_to`; its response carries it back.
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
    """A client joins the group, or a member rejoins; timeouts in seconds.

    member_id: "" for a new member. requires_known_member_id: whether a new member must rejoin with
    its member id (v4+). supports_skip_assignment: whether a leader knows skip_assignment (v9+).
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
    """A member requests its assignment; the leader sends those of all members."""

    reply_to: int
    member_id: str
    generation_id: int
    group_instance_id: str | None
    assignments: Mapping[str, bytes]
    protocol_type: str | None = None
    protocol_name: str | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat of a member."""

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
    """Response to a Join. members: (member id, instance, metadata), for the leader only."""

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
    """Response to a Sync."""

    reply_to: int
    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


class HeartbeatResult(NamedTuple):
    """Response to a Heartbeat."""

    reply_to: int
    error: ErrorCode


class Left(NamedTuple):
    """Response to a Leave, with an error per member."""

    reply_to: int
    error: ErrorCode
    members: tuple[ErrorCode, ...] = ()


class Store(NamedTuple):
    """Persist the group: generation, members, assignments."""


Response = Joined | Synced | HeartbeatResult | Left
Effect = Response | Store


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """Deadline: the session timeout of a member has expired."""

    member_id: str


@dataclass(frozen=True, slots=True)
class PendingExpired:
    """Deadline: a pending member did not rejoin with its member id."""

    member_id: str


@dataclass(frozen=True, slots=True)
class JoinDue:
    """Deadline: the rebalance completes with the members that have joined."""


@dataclass(frozen=True, slots=True)
class SyncDue:
    """Deadline: members that have not sent SyncGroup are removed."""


Deadline = SessionExpired | PendingExpired | JoinDue | SyncDue
