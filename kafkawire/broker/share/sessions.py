"""The share sessions of a broker: which partitions a member fetches from it (KIP-932).

Invariant: a member has one session; its requests have consecutive epochs.

    epoch 0    a new session          epoch n    what changed since n - 1
    epoch -1   close the session
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...metadata import TopicIdPartition
from ...protocol import ErrorCode

E = ErrorCode
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
LAST_EPOCH: Final = 2**31 - 1


class Member(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class ShareSession:
    """The partitions that a member fetches. epoch: of its next request.

    partitions: each with whether a response has had it.
    """

    member: Member
    connection: int
    epoch: int = 1
    partitions: dict[TopicIdPartition, bool] = field(default_factory=dict)

    def update(
        self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
    ) -> None:
        """Add and remove the partitions of a request."""
        for key in added:
            self.partitions.setdefault(key, False)
        for key in forgotten:
            self.partitions.pop(key, None)

    def advance(self) -> None:
        """Move to the next epoch; it wraps around to 1."""
        self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1

    def in_turn(self) -> list[TopicIdPartition]:
        """Return its partitions; each request begins with another one."""
        keys = list(self.partitions)
        first = self.epoch % len(keys) if keys else 0
        return keys[first:] + keys[:first]


class ShareSessions:
    """The sessions by member. most_partitions: of one session."""

    def __init__(self, slots: int, most_partitions: int) -> None:
        self._slots = slots
        self._most_partitions = most_partitions
        self._sessions: dict[Member, ShareSession] = {}
        self._by_group: dict[str, int] = {}
        self._by_connection: dict[int, set[Member]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, member: Member, connection: int) -> ShareSession | ErrorCode:
        """Open a session in place of the one that the member may have."""
        self.close(member)
        if len(self._sessions) >= self._slots:
            return E.SHARE_SESSION_LIMIT_REACHED
        session = self._sessions[member] = ShareSession(member, connection)
        self._by_group[member.group_id] = self._by_group.get(member.group_id, 0) + 1
        self._by_connection.setdefault(connection, set()).add(member)
        return session

    def get(self, member: Member) -> ShareSession | None:
        """Return the session of a member."""
        return self._sessions.get(member)

    def is_open(self, session: ShareSession) -> bool:
        """Whether a session has not ended."""
        return self._sessions.get(session.member) is session

    def find(self, member: Member, epoch: int, connection: int) -> ShareSession | ErrorCode:
        """Return a member's session for a request with an epoch, which is checked.

        It is that of the connection of its last request.
        """
        session = self._sessions.get(member)
        if session is None:
            return E.SHARE_SESSION_NOT_FOUND
        if epoch != FINAL_EPOCH:
            if epoch == INITIAL_EPOCH or epoch != session.epoch:
                return E.INVALID_SHARE_SESSION_EPOCH
            session.advance()
        self._leave(session)
        session.connection = connection
        self._by_connection.setdefault(connection, set()).add(member)
        return session

    def _leave(self, session: ShareSession) -> None:
        """Forget that a session is one of its connection."""
        members = self._by_connection[session.connection]
        members.discard(session.member)
        if not members:
            del self._by_connection[session.connection]

    def update(
        self,
        session: ShareSession,
        added: Iterable[TopicIdPartition],
        forgotten: Iterable[TopicIdPartition],
    ) -> ErrorCode:
        """Add and remove partitions; a session with too many is closed."""
        session.update(added, forgotten)
        if len(session.partitions) <= self._most_partitions:
            return E.NONE
        self.close(session.member)
        return E.SHARE_SESSION_LIMIT_REACHED

    def close(self, member: Member) -> ShareSession | None:
        """Close a session, if there is one; return it."""
        session = self._sessions.pop(member, None)
        if session is None:
            return None
        self._by_group[member.group_id] -= 1
        if not self._by_group[member.group_id]:
            del self._by_group[member.group_id]
        self._leave(session)
        return session

    def of_connection(self, connection: int) -> list[Member]:
        """Return the members whose sessions were opened on a connection."""
        return list(self._by_connection.get(connection, ()))

    def has_group(self, group_id: str) -> bool:
        """Whether a group has sessions here."""
        return group_id in self._by_group
