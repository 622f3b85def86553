"""A member of a classic group.

At most one of its requests is delayed; meanwhile its session does not expire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..requests import Join, Protocols


class DelayedRequest(NamedTuple):
    """A delayed JoinGroup or SyncGroup."""

    reply_to: int
    is_join: bool


@dataclass(slots=True)
class Member:
    """One member. assignment: from the leader; timeouts in seconds."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocols: Protocols
    assignment: bytes = b""
    delayed: DelayedRequest | None = None

    @classmethod
    def joining(cls, member_id: str, request: Join) -> Member:
        """Create a member from a JoinGroup."""
        return cls(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout,
            request.rebalance_timeout,
            request.protocols,
        )

    def update(self, request: Join) -> None:
        """Update it from a JoinGroup."""
        self.client_id, self.client_host = request.client_id, request.client_host
        self.session_timeout = request.session_timeout
        self.rebalance_timeout = request.rebalance_timeout
        self.protocols = request.protocols

    @property
    def size(self) -> int:
        """Bytes of its protocols, its assignment and its ids."""
        protocols = sum(len(name) + len(data) for name, data in self.protocols)
        ids = len(self.member_id) + len(self.group_instance_id or "") + len(self.client_id)
        return protocols + ids + len(self.assignment)

    @property
    def has_joined(self) -> bool:
        """Whether it has joined the rebalance in progress."""
        return self.delayed is not None and self.delayed.is_join

    def metadata(self, protocol: str | None) -> bytes:
        """Its metadata for a protocol; b"" if it does not support it."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """Vote for its preferred protocol among the candidates."""
        return next(name for name, _ in self.protocols if name in candidates)
