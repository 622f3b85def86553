"""The share groups' side of a broker that leads partitions: sessions, fetches, acknowledgements.

Invariant: what a member has acquired is released when its session ends, also by disconnecting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ..context import Context
from ..events import ShareFetchExpired, SharePartitionDue
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..share_coordinator.persister import Persister
from ..share_coordinator.state import ShareKey
from .acknowledging import Done, acknowledge
from .config import ShareConfig
from .dead_letters import DeadLetters
from .fetching import ShareFetches, Waiting
from .partition import AcknowledgementBatch
from .partitions import SharePartitions
from .sessions import Member, ShareSession, ShareSessions

E = ErrorCode
SESSIONS: Final = "group.share.max.share.sessions"
Acknowledgements = Mapping[TopicIdPartition, Sequence[AcknowledgementBatch] | ErrorCode]


class Shares:
    """The share sessions and share partitions of a broker."""

    def __init__(
        self,
        context: Context,
        metadata: MetadataCache,
        machines: Machines,
        persister: Persister,
        dead_letters: DeadLetters,
    ) -> None:
        self._context = context
        self.partitions = SharePartitions(
            context, metadata, machines, persister, dead_letters, self._changed
        )
        self.fetches = ShareFetches(context, self.partitions)
        self._sessions: ShareSessions | None = None

    @property
    def sessions(self) -> ShareSessions:
        """The sessions of members."""
        if self._sessions is None:
            slots = self._context.settings.number(SESSIONS)
            self._sessions = ShareSessions(slots, self._context.bounds.session_partitions)
        return self._sessions

    def config(self, group_id: str) -> ShareConfig:
        """Return the settings of a group."""
        return self.partitions.config(group_id)

    # -- requests

    def open(self, member: Member, connection: int, now: float) -> ShareSession | ErrorCode:
        """Open a session; the member keeps what it has acquired in the one before."""
        former = self.sessions.close(member)
        if former is not None:
            self.fetches.close(former, now)
        return self.sessions.open(member, connection)

    def acknowledge(
        self, member: Member, acknowledgements: Acknowledgements, done: Done, now: float
    ) -> None:
        """Acknowledge records of a member; `done` gets the error of each partition."""
        acknowledge(self.partitions, member, acknowledgements, done, now)

    def fetch(self, waiting: Waiting, now: float) -> None:
        """Fetch records, unless the session has ended meanwhile."""
        if self.sessions.is_open(waiting.session):
            self.fetches.fetch(waiting, now)
        else:
            waiting.then({}, now)

    def close(self, session: ShareSession, done: Done, now: float) -> None:
        """End a session; `done` is called when what the member had is released."""
        member, errors = session.member, dict[TopicIdPartition, ErrorCode]()
        if self.sessions.is_open(session):
            self.sessions.close(member)
        self.fetches.close(session, now)
        keys = self.partitions.of_group(member.group_id)
        left = len(keys)

        def released(_error: ErrorCode, now: float) -> None:
            nonlocal left
            left -= 1
            if not left:
                done(errors, now)

        for key in keys:
            self.partitions.release(key, member.member_id, released, now)
        if not self.sessions.has_group(member.group_id):
            self.partitions.forget_group(member.group_id)
        if not keys:
            done(errors, now)

    def disconnected(self, connection: int, now: float) -> None:
        """End the sessions of a client that disconnected."""
        if self._sessions is None:
            return
        for member in self._sessions.of_connection(connection):
            session = self._sessions.get(member)
            if session is not None:
                self.close(session, lambda _errors, _now: None, now)

    # -- what changes

    def _changed(self, key: ShareKey, now: float) -> None:
        self.fetches.check(key, now)

    def published(self, now: float) -> None:
        """Follow the metadata."""
        self.partitions.published(now)

    def committed(self, key: TopicIdPartition, now: float) -> None:
        """Go on with the requests that wait for records of a partition."""
        for each in self.partitions.of_partition(key):
            self.fetches.check(each, now)

    def partition_due(self, due: SharePartitionDue, now: float) -> None:
        """Release the records whose acquisition locks have ended."""
        self.partitions.due(due, now)

    def fetch_expired(self, due: ShareFetchExpired, now: float) -> None:
        """Respond to a request whose time is over."""
        self.fetches.expire(due, now)
