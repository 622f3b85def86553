"""The state machine of one classic consumer group.

Check identity, renew the session, check the state, call the handler. The session is renewed
first, so that a member that receives REBALANCE_IN_PROGRESS does not expire.

    Join ─▶ delayed until all members have joined ─▶ Joined, with a leader
    Sync ─▶ delayed until the leader sends the assignments ─▶ Store, Synced
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ....protocol import ErrorCode
from ...deadlines import Deadlines
from ..requests import (
    Deadline,
    Effect,
    GroupRequest,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinDue,
    Leave,
    Left,
    PendingExpired,
    Response,
    SessionExpired,
    Store,
    Sync,
    SyncDue,
    Synced,
)
from . import joining
from .member import DelayedRequest, Member
from .metadata import GroupMetadata
from .states import GroupState, Kind

E, S, K = ErrorCode, GroupState, Kind


class Group(GroupMetadata):
    """One group. `next_deadline` returns when to call `advance`; time is monotonic seconds."""

    # -- the contract of every state machine

    def handle(self, request: GroupRequest, now: float) -> list[Effect]:
        """Handle a request; return its response and those of requests that it completes."""
        return _REQUESTS[type(request)](self, request, now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self.deadlines.next()

    def advance(self, now: float) -> list[Effect]:
        """Handle expired deadlines."""
        effects: list[Effect] = []
        while (due := self.deadlines.pop_due(now)) is not None:
            effects += _DUE[type(due)](self, due, now)
        return effects

    def commit_error(
        self, member_id: str, generation_id: int, group_instance_id: str | None, now: float
    ) -> ErrorCode:
        """Return the error of committing offsets; renews the session of a member."""
        if self.state is S.EMPTY and generation_id < 0:
            return E.NONE  # no members, only committed offsets
        if self.state is not S.DEAD:
            error = self._identity_error(member_id, generation_id, group_instance_id)
            if error:
                return error
            self.renew_session(self.members[member_id], now)
        return self.admits(K.COMMIT)

    def transactional_commit_error(
        self, member_id: str, generation_id: int, group_instance_id: str | None
    ) -> ErrorCode:
        """Return the error of committing offsets in a transaction (KIP-447).

        A client that names no member may always do so.
        """
        names_member = generation_id >= 0 or member_id != "" or group_instance_id is not None
        if self.state is S.DEAD:
            return self.admits(K.COMMIT)
        if not names_member or (self.state is S.EMPTY and generation_id < 0):
            return E.NONE
        return self._identity_error(member_id, generation_id, group_instance_id)

    def end(self, error: ErrorCode) -> list[Response]:
        """Fail all delayed requests: the group is deleted, or not of this type here any more."""
        responses: list[Response] = []
        for member in self.members:
            responses += self.release(member, error)
        self.move_to(S.DEAD, self.changed_at)
        self.deadlines = Deadlines()
        return responses

    # -- one handler per request

    def _join(self, request: Join, now: float) -> list[Effect]:
        return joining.join(self, request, now)

    def _sync(self, request: Sync, now: float) -> list[Effect]:
        error = self._member_error(request, K.SYNC, now)
        if not error and not self._is_our_protocol(request):
            error = E.INCONSISTENT_GROUP_PROTOCOL
        if error:
            return [Synced(request.reply_to, error)]
        member = self.members[request.member_id]
        self.pending_sync_members.discard(member.member_id)
        if not self.pending_sync_members:
            self.deadlines.cancel(SyncDue())
        if self.state is S.STABLE:
            return [self._synced(request.reply_to, member)]
        effects: list[Effect] = [
            *self.delay(member, DelayedRequest(request.reply_to, is_join=False))
        ]
        if member.member_id != self.members.leader:
            return effects
        for each in self.members:
            self.members.assign(each, request.assignments.get(each.member_id, b""))
        self.move_to(S.STABLE, now)
        effects.append(Store())
        return effects + self._complete_syncs(now)

    def _heartbeat(self, request: Heartbeat, now: float) -> list[Effect]:
        return [HeartbeatResult(request.reply_to, self._member_error(request, K.HEARTBEAT, now))]

    def _leave(self, request: Leave, now: float) -> list[Effect]:
        error = self.admits(K.LEAVE)
        if error:
            return [Left(request.reply_to, error, tuple(error for _ in request.members))]
        effects: list[Effect] = []
        errors = []
        for member_id, group_instance_id in request.members:
            errors.append(self._leave_member(member_id, group_instance_id, effects, now))
        return [Left(request.reply_to, E.NONE, tuple(errors)), *effects]

    def _leave_member(
        self, member_id: str, group_instance_id: str | None, effects: list[Effect], now: float
    ) -> ErrorCode:
        if member_id in self.pending_members and group_instance_id is None:
            effects += self._forget_pending(member_id, now)
            return E.NONE
        if group_instance_id is not None and member_id == "":
            member = self.members.instance(group_instance_id)
            member_id = "" if member is None else member.member_id
        error = self.members.identity_error(member_id, group_instance_id)
        if not error:
            effects += self.remove(member_id, now)
        return error

    # -- one handler per deadline

    def _session_expired(self, due: SessionExpired, now: float) -> list[Effect]:
        return self.remove(due.member_id, now)

    def _pending_expired(self, due: PendingExpired, now: float) -> list[Effect]:
        return self._forget_pending(due.member_id, now)

    def _join_due(self, _due: JoinDue, now: float) -> list[Effect]:
        return joining.join_due(self, now)

    def _sync_due(self, _due: SyncDue, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for member_id in list(self.pending_sync_members):
            if member_id in self.members:
                effects += self.remove(member_id, now)
        self.pending_sync_members.clear()
        return effects

    # -- checks

    def _member_error(self, request: Sync | Heartbeat, kind: Kind, now: float) -> ErrorCode:
        if self.state is not S.DEAD:
            error = self._identity_error(
                request.member_id, request.generation_id, request.group_instance_id
            )
            if error:
                return error
            self.renew_session(self.members[request.member_id], now)
        return self.admits(kind)

    def _identity_error(
        self, member_id: str, generation_id: int, group_instance_id: str | None
    ) -> ErrorCode:
        error = self.members.identity_error(member_id, group_instance_id)
        if not error and generation_id != self.generation_id:
            return E.ILLEGAL_GENERATION
        return error

    def _is_our_protocol(self, request: Sync) -> bool:
        return request.protocol_type in (None, self.protocol_type) and request.protocol_name in (
            None,
            self.protocol_name,
        )

    # -- steps shared by handlers

    def remove(self, member_id: str, now: float) -> list[Effect]:
        """Remove a member and rebalance."""
        self.deadlines.cancel(SessionExpired(member_id))
        self.pending_sync_members.discard(member_id)
        effects: list[Effect] = [*self.release(self.members.remove(member_id), E.UNKNOWN_MEMBER_ID)]
        if self.state in (S.STABLE, S.COMPLETING_REBALANCE):
            effects += joining.prepare(self, now)
        return effects + joining.complete_if_all_joined(self, now)

    def _forget_pending(self, member_id: str, now: float) -> list[Effect]:
        self.pending_members.discard(member_id)
        self.deadlines.cancel(PendingExpired(member_id))
        return joining.complete_if_all_joined(self, now)

    def _complete_syncs(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for member in self.members:
            if member.delayed is not None:
                effects.append(self._synced(member.delayed.reply_to, member))
                self.members.delay(member, None)
                self.renew_session(member, now)
        return effects

    def _synced(self, reply_to: int, member: Member) -> Synced:
        return Synced(reply_to, E.NONE, member.assignment, self.protocol_type, self.protocol_name)


_REQUESTS: Final[Mapping[type[GroupRequest], Callable[[Group, Any, float], list[Effect]]]] = {
    Join: Group._join,
    Sync: Group._sync,
    Heartbeat: Group._heartbeat,
    Leave: Group._leave,
}
_DUE: Final[Mapping[type[Deadline], Callable[[Group, Any, float], list[Effect]]]] = {
    SessionExpired: Group._session_expired,
    PendingExpired: Group._pending_expired,
    JoinDue: Group._join_due,
    SyncDue: Group._sync_due,
}
