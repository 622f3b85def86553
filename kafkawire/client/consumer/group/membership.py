"""Membership in one classic consumer group, as the member sees it.

A member joins only while its user is in a poll, after its offsets are committed and the
partitions it must give up are revoked. From then on it sends heartbeats, whatever the user does.
Responses to outdated requests are ignored.

    UNJOINED ─▶ REJOIN_NEEDED ─▶ PREPARING ─▶ PREPARING_REBALANCE ─▶ COMPLETING_REBALANCE ─▶ STABLE
                (until a poll)   (commit,     (JoinGroup sent)       (SyncGroup sent)          │
                      ▲           revoke)                                                      │
                      └────────── rebalance in progress, fenced, poll interval exceeded ◀──────┘
"""

# over 300 lines: one state machine, all handlers of its table

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ....errors import WireError
from ....messages.api_key import ApiKey
from ....protocol.error_code import ErrorCode
from ...network.backoff import Backoff, Rng
from ...requests import ForgetCoordinator, NoResponse, ResponseReceived, SendRequest
from ..assignors import Assignments
from ..configuration import ConsumerConfig
from ..failures import ConsumerError, GroupFailed
from . import requests as group_requests
from .member import Effects, GroupMember
from .member_states import (
    AssignmentsComputed,
    Busy,
    ComputeAssignments,
    GroupRefused,
    HeartbeatDue,
    HeartbeatResponded,
    Joined,
    JoinWanted,
    LeaveWanted,
    Left,
    MemberEvent,
    MemberState,
    PartitionsAssigned,
    PartitionsLost,
    Polled,
    PollExpired,
    Prepare,
    Prepared,
    Refused,
    RetryDue,
    SessionExpired,
    Synced,
)
from .polling import Rows
from .recovery import Recovery, recovery
from .requests import Identity, JoinMetadata
from .responses import read_response

S = MemberState

JOIN_GRACE_S: Final = 5.0
"""Added to the rebalance timeout: how long to wait for a JoinGroup or SyncGroup response."""
JOINS_AT_ONCE: Final = 3
"""Rebalances and new identities in a row without a backoff: joins that lead to a join."""
POLL_EXPIRED: Final = "the time between two polls exceeded max.poll.interval.ms"
MEMBERSHIP_ERRORS: Final = frozenset(
    {Recovery.REJOIN, Recovery.NEW_GENERATION, Recovery.NEW_MEMBER}
)
"""Recoveries that a failed commit may start."""


def assignor_error(name: str, error: Exception) -> GroupFailed:
    """Return the error for an assignor that raised an exception."""
    failed = GroupFailed(f"the assignor {name!r} failed: {error!r}")
    failed.__cause__ = error
    return failed


class Membership(GroupMember):
    """The member of a group. rng: returns random numbers in [0, 1), for backoff."""

    def __init__(self, config: ConsumerConfig, *, owner: str, rng: Rng) -> None:
        super().__init__(config, owner=owner)
        self.reason = ""
        self.error: ConsumerError | None = None
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._assignors = group_requests.named(config.assignors)
        self._join_metadata = JoinMetadata(())
        self._protocol = ""
        self._rejoin_reason = ""  # why to rejoin after this rebalance; empty: do not
        self._failures = 0

    # -- the contract

    def handle(self, event: MemberEvent | ResponseReceived | NoResponse, now: float) -> Effects:
        """Handle a member event (`member_states`) or the response to a request."""
        if isinstance(event, ResponseReceived | NoResponse):
            if not self._is_current(event):
                return []
            if event.request.api is ApiKey.LEAVE_GROUP:
                return [Left()]
            return self.handle(read_response(event, self.group_id, self._assignors), now)
        return HANDLERS[type(event)][self.state](self, event, now)

    def on_commit_error(self, code: int, sent_as: Identity, now: float) -> Effects:
        """Handle the error of a commit, if it concerns the membership and the current identity."""
        action = recovery(ApiKey.HEARTBEAT, code)
        relevant = action in MEMBERSHIP_ERRORS or code == ErrorCode.FENCED_INSTANCE_ID
        if sent_as != self.identity or not relevant:
            return []
        error = GroupFailed(f"group {self.group_id!r} refused a commit", code)
        return self.handle(Refused(ApiKey.OFFSET_COMMIT, action, error), now)

    # -- joining

    def _on_join_wanted(self, event: JoinWanted, now: float) -> Effects:
        self.reason = event.reason
        self._failures = 0
        self._transition(S.REJOIN_NEEDED)
        return self._prepare_to_join(event, now)

    def _rejoin_later(self, event: JoinWanted, _now: float) -> Effects:
        self._rejoin_reason = event.reason
        return []

    def _update_reason(self, event: JoinWanted, _now: float) -> Effects:
        self.reason = event.reason
        return []

    def _on_poll(self, event: Polled, now: float) -> Effects:
        self._poll_started(event, now)
        return self._prepare_to_join(event, now)

    def _prepare_to_join(self, _event: MemberEvent, _now: float) -> Effects:
        """Start to join if the user is polling and no backoff is pending."""
        if not self.polling or RetryDue in self._deadlines:
            return []
        self._transition(S.PREPARING)
        return [Prepare()]

    def _on_prepared(self, event: Prepared, now: float) -> Effects:
        self._transition(S.PREPARING_REBALANCE)
        self._join_metadata = event.join_metadata
        return self._send_join(now)

    def _send_join(self, _now: float) -> Effects:
        self._clear_deadlines(HeartbeatDue, SessionExpired)
        self._current.pop(ApiKey.HEARTBEAT, None)
        try:
            body = group_requests.join(self.config, self.identity, self._join_metadata, self.reason)
        except Exception as error:  # noqa: BLE001 - a user's assignor: poll() raises it
            names = ", ".join(each.name for each in self.config.assignors)
            return self._fail(assignor_error(names, error))
        rebalance = self.config.max_poll_interval_s + JOIN_GRACE_S
        return [
            self._request(ApiKey.JOIN_GROUP, body, max(self.config.request_timeout_s, rebalance))
        ]

    def _on_joined(self, event: Joined, now: float) -> Effects:
        response = event.response
        self._transition(S.COMPLETING_REBALANCE)
        self.identity = self.identity._replace(
            generation_id=response.generation_id, member_id=response.member_id
        )
        self.joined_as = self.identity
        self._reset_session_timer(now)
        self._deadlines[HeartbeatDue] = now + self.config.heartbeat_interval_s
        self._protocol = response.protocol_name or ""
        is_leader = response.leader == response.member_id
        if not is_leader or response.skip_assignment:
            return [self._send_sync({})]
        assignor = self._assignors[self._protocol]
        try:
            members = group_requests.decode_members(response, assignor)
        except WireError as error:
            return self._fail(GroupFailed(f"malformed subscription of a group member: {error}"))
        except Exception as error:  # noqa: BLE001 - a user's assignor: poll() raises it
            return self._fail(assignor_error(assignor.name, error))
        return [ComputeAssignments(response.generation_id, assignor, members)]

    def _on_assignments_computed(self, event: AssignmentsComputed, _now: float) -> Effects:
        if event.generation_id != self.identity.generation_id:
            return []
        return [self._send_sync(event.assignments)]

    def _send_sync(self, assignments: Assignments) -> SendRequest:
        body = group_requests.sync(self.group_id, self.identity, self._protocol, assignments)
        return self._request(
            ApiKey.SYNC_GROUP, body, self.config.max_poll_interval_s + JOIN_GRACE_S
        )

    def _on_synced(self, event: Synced, now: float) -> Effects:
        try:
            partitions = group_requests.decode_assignment(event.response.assignment)
        except WireError as error:
            return self._fail(GroupFailed(f"malformed assignment: {error}"))
        self._transition(S.STABLE)
        self._failures = 0
        effects: Effects = [PartitionsAssigned(self.identity.generation_id, partitions)]
        reason, self._rejoin_reason = self._rejoin_reason, ""
        return effects + (self._on_join_wanted(JoinWanted(reason), now) if reason else [])

    # -- heartbeats

    def _send_heartbeat(self, _event: HeartbeatDue, now: float) -> Effects:
        self._deadlines[HeartbeatDue] = now + self.config.heartbeat_interval_s
        if ApiKey.HEARTBEAT in self._current:
            return []
        body = group_requests.heartbeat(self.group_id, self.identity)
        timeout = min(self.config.request_timeout_s, self.config.session_timeout_s)
        return [self._request(ApiKey.HEARTBEAT, body, timeout)]

    def _on_heartbeat_response(self, _event: HeartbeatResponded, now: float) -> Effects:
        if self.in_group:
            self._reset_session_timer(now)
        return []

    def _on_session_expired(self, _event: SessionExpired, now: float) -> Effects:
        self._reset_session_timer(now)
        return [ForgetCoordinator(self.coordinator)]

    def _on_poll_expired(self, _event: PollExpired, _now: float) -> Effects:
        """Leave the group: the user has stopped polling (KIP-62)."""
        effects = self._leave_request(POLL_EXPIRED)
        self._reset_member_id()
        self.reason = POLL_EXPIRED
        self._transition(S.REJOIN_NEEDED)
        return [*effects, PartitionsLost(POLL_EXPIRED)]

    # -- errors

    def _on_error(self, event: Refused, now: float) -> Effects:
        return RECOVERIES[event.action](self, event, now)

    def _take_member_id(self, event: Refused, now: float) -> Effects:
        self.identity = self.identity._replace(member_id=event.member_id)
        if self._must_wait(now):
            self._transition(S.REJOIN_NEEDED)
            return []
        return self._send_join(now)

    def _retry_later(self, event: Refused, now: float) -> Effects:
        if event.api not in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
            return []  # the next heartbeat is the retry
        self._failures += 1
        self._deadlines[RetryDue] = now + self._backoff.after(self._failures, self._rng)
        self._transition(S.REJOIN_NEEDED)
        if self.in_group:  # the user may be busy for long: keep the session alive
            self._reset_session_timer(now)
            self._deadlines.setdefault(HeartbeatDue, now + self.config.heartbeat_interval_s)
        return []

    def _find_coordinator(self, event: Refused, now: float) -> Effects:
        return [ForgetCoordinator(self.coordinator), *self._retry_later(event, now)]

    def _rejoin(self, event: Refused, now: float) -> Effects:
        """Rejoin, unless a join is under way already."""
        if self.state is not S.STABLE and event.api is not ApiKey.SYNC_GROUP:
            return []
        self.reason = "the group is rebalancing"
        self._must_wait(now)
        self._transition(S.REJOIN_NEEDED)
        return self._prepare_to_join(event, now)

    def _lose_assignment_and_rejoin(self, event: Refused, now: float) -> Effects:
        effects = self._lose_assignment(event)
        if self.state is S.PREPARING:
            return effects
        self.reason = str(event.error)
        self._must_wait(now)
        self._transition(S.REJOIN_NEEDED)
        return effects + self._prepare_to_join(event, now)

    def _must_wait(self, now: float) -> bool:
        """Count a join that did not succeed; start a backoff if several in a row did not."""
        self._failures += 1
        extra = self._failures - JOINS_AT_ONCE
        if extra > 0:
            self._deadlines[RetryDue] = now + self._backoff.after(extra, self._rng)
        return extra > 0

    def _lose_assignment(self, event: Refused) -> Effects:
        self._reset_generation()
        if event.action is Recovery.NEW_MEMBER:
            self._reset_member_id()
        return [PartitionsLost(str(event.error))]

    def _on_fatal(self, event: Refused, _now: float) -> Effects:
        return self._fail(event.error)

    def _fail(self, error: ConsumerError) -> Effects:
        lost: Effects = [PartitionsLost(str(error))]
        self._reset_member_id()
        self.error = error
        self._transition(S.FAILED)
        return [*lost, GroupRefused(error)]

    def _retry_failed(self, event: Polled, now: float) -> Effects:
        """Rejoin with the next poll, except as a fenced static member."""
        assert self.error is not None
        self._poll_started(event, now)
        if self.error.code == ErrorCode.FENCED_INSTANCE_ID:
            return [GroupRefused(self.error)]
        self._transition(S.REJOIN_NEEDED)
        return self._prepare_to_join(event, now)

    # -- leaving

    def _on_leave_wanted(self, event: LeaveWanted, _now: float) -> Effects:
        effects = self._leave_request(event.reason)
        self._reset_member_id()
        self._rejoin_reason, self._failures = "", 0
        self._clear_deadlines(*self._deadlines)
        if self.state is not S.UNJOINED:
            self._transition(S.UNJOINED)
        return effects or [Left()]


M = Membership
Handler: TypeAlias = Callable[[Membership, Any, float], Effects]
Row: TypeAlias = Mapping[MemberState, Handler]

RECOVERIES: Final[Mapping[Recovery, Callable[[Membership, Refused, float], Effects]]] = {
    Recovery.TAKE_MEMBER_ID: M._take_member_id,
    Recovery.RETRY: M._retry_later,
    Recovery.FIND_COORDINATOR: M._find_coordinator,
    Recovery.REJOIN: M._rejoin,
    Recovery.NEW_GENERATION: M._lose_assignment_and_rejoin,
    Recovery.NEW_MEMBER: M._lose_assignment_and_rejoin,
    Recovery.FATAL: M._on_fatal,
}


_row: Final = Rows[MemberState, Handler](S, M._ignore)
"""Makes rows of `HANDLERS`; states that a row does not list ignore the event."""

_REBALANCING: Final = (S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE)
_JOINED: Final = (S.REJOIN_NEEDED, S.PREPARING, S.COMPLETING_REBALANCE, S.STABLE)
_ACTIVE: Final = (S.REJOIN_NEEDED, S.PREPARING, *_REBALANCING, S.STABLE)

# fmt: off
HANDLERS: Final[Mapping[type[MemberEvent], Row]] = {
    JoinWanted:          _row((M._on_join_wanted, (S.UNJOINED, S.STABLE, S.FAILED)),
                              (M._update_reason, (S.REJOIN_NEEDED, S.PREPARING)),
                              (M._rejoin_later, _REBALANCING)),
    Polled:              _row((M._poll_started, (S.UNJOINED, S.PREPARING, *_REBALANCING, S.STABLE)),
                              (M._on_poll, (S.REJOIN_NEEDED,)),
                              (M._retry_failed, (S.FAILED,))),
    Busy:                _row((M._poll_ended, (S.UNJOINED, S.FAILED)),
                              (M._start_poll_timer, _ACTIVE)),
    Prepared:            _row((M._on_prepared, (S.PREPARING,))),
    Joined:              _row((M._on_joined, (S.PREPARING_REBALANCE,))),
    AssignmentsComputed: _row((M._on_assignments_computed, (S.COMPLETING_REBALANCE,))),
    Synced:              _row((M._on_synced, (S.COMPLETING_REBALANCE,))),
    HeartbeatResponded:  _row((M._on_heartbeat_response, _JOINED)),
    Refused:             _row((M._on_error, _ACTIVE)),
    HeartbeatDue:        _row((M._send_heartbeat, _JOINED)),
    SessionExpired:      _row((M._on_session_expired, _JOINED)),
    PollExpired:         _row((M._on_poll_expired, _ACTIVE)),
    RetryDue:            _row((M._prepare_to_join, (S.REJOIN_NEEDED,))),
    LeaveWanted:         _row((M._on_leave_wanted, tuple(S))),
}
"""Event -> state -> handler, for every event in every state."""
# fmt: on
