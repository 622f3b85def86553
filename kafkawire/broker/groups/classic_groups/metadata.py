"""The state of one classic consumer group, as Kafka's GroupMetadata.

The state changes only by legal transitions; at most one request of a member is delayed.
"""

from __future__ import annotations

from collections.abc import Callable

from ....protocol import ErrorCode
from ...deadlines import Deadlines
from ..requests import Deadline, Joined, Response, SessionExpired, Synced
from .member import DelayedRequest, Member
from .members import Members
from .states import ADMISSION, LEGAL, GroupState, Kind

E, S = ErrorCode, GroupState


class GroupMetadata:
    """The members, generation and protocol of a group, its delayed requests and deadlines.

    new_member_id: makes a member id from a client id. initial_delay: seconds that the first
    rebalance waits for more members. changed_at: time of the last state change. pending_members:
    ids of clients that must rejoin with them. pending_sync_members: members without SyncGroup.
    """

    def __init__(
        self,
        group_id: str,
        *,
        new_member_id: Callable[[str], str],
        initial_delay: float = 3.0,
        max_size: int = 2**31 - 1,
        now: float = 0.0,
    ) -> None:
        self.group_id = group_id
        self.state = S.EMPTY
        self.changed_at = now
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.members = Members()
        self.pending_members: set[str] = set()
        self.pending_sync_members: set[str] = set()
        self.new_member_id = new_member_id
        self.initial_delay = initial_delay
        self.max_size = max_size
        self.initial = False
        self.initial_remaining = 0.0
        self.new_member_added = False
        self.deadlines: Deadlines[Deadline] = Deadlines()

    @property
    def population(self) -> int:
        """Number of members, pending members included."""
        return len(self.members) + len(self.pending_members)

    @property
    def size(self) -> int:
        """Bytes of all members."""
        return self.members.size

    @property
    def unused(self) -> bool:
        """Whether it never had a member and has no pending member."""
        return self.state is S.EMPTY and not self.generation_id and not self.population

    def admits(self, kind: Kind) -> ErrorCode:
        """Return the error of a kind of request in the current state."""
        return ADMISSION[self.state][kind]

    def renew_session(self, member: Member, now: float) -> None:
        """Renew a member's session; it has none while a request of it is delayed."""
        if member.delayed is None:
            self.deadlines.set(SessionExpired(member.member_id), now + member.session_timeout)

    def delay(self, member: Member, delayed: DelayedRequest) -> list[Response]:
        """Delay a request; an earlier delayed one fails with REBALANCE_IN_PROGRESS."""
        effects = self.release(member, E.REBALANCE_IN_PROGRESS)
        self.members.delay(member, delayed)
        self.deadlines.cancel(SessionExpired(member.member_id))
        return effects

    def release(self, member: Member, error: ErrorCode) -> list[Response]:
        """Complete a member's delayed request, if any, with an error."""
        delayed = self.members.delay(member, None)
        if delayed is None:
            return []
        if delayed.is_join:
            return [Joined(delayed.reply_to, error, member.member_id)]
        return [Synced(delayed.reply_to, error)]

    def move_to(self, state: GroupState, now: float) -> None:
        """Change the state, if the transition is legal."""
        if state not in LEGAL[self.state]:
            raise AssertionError(f"{self.state.value} -> {state.value} is not a legal transition")
        self.state = state
        self.changed_at = now
