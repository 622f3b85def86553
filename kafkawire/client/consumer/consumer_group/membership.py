"""Membership in a group with `group.protocol=consumer` (KIP-848), as the member sees it.

A member joins, gives up partitions and takes new ones only while its user is in a poll; what
it gives up is committed and revoked before the coordinator hears of it. Heartbeats are sent
whatever the user does, one at a time. Responses to outdated requests are ignored.

    UNJOINED ─▶ REJOIN_NEEDED ─▶ PREPARING ─▶ JOINING ─▶ RECONCILING ─▶ ACKNOWLEDGING ─▶ STABLE
                (until a poll)   (listener)   (epoch 0)  (revoke, add)  (owned partitions   │
                      ▲                                       ▲          are sent)          │
                      │                                       └──── another assignment ◀────┤
                      └──────── removed by the coordinator, poll interval exceeded ◀────────┘
"""

# over 300 lines: one state machine, all handlers of its table

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ....protocol.error_code import ErrorCode
from ...requests import (
    NoResponse,
    RequestMetadataUpdate,
    ResponseReceived,
)
from ..group.member import REQUEST_KEY
from ..group.member_states import (
    Busy,
    GroupRefused,
    HeartbeatDue,
    JoinWanted,
    LeaveWanted,
    Left,
    Polled,
    PollExpired,
    Prepare,
    Prepared,
    RetryDue,
)
from ..group.membership import JOINS_AT_ONCE, POLL_EXPIRED
from ..group.polling import Rows
from ..group.requests import Identity
from .heartbeats import JOIN, heartbeat
from .member import ConsumerGroupMember, Effects
from .member_states import (
    HeartbeatResponded,
    MemberEpochChanged,
    MemberEvent,
    MemberState,
    MetadataUpdated,
    Reconcile,
    Reconciled,
    Refused,
)
from .recovery import Recovery
from .responses import read_response
from .target import Resolved, Target

S = MemberState

SHORTEST_INTERVAL_S: Final = 0.01
"""The time between two heartbeats at least, whatever the coordinator says."""


class ConsumerGroupMembership(ConsumerGroupMember):
    """The member of a group, and what it does about each event."""

    # -- the contract

    def handle(self, event: MemberEvent | ResponseReceived | NoResponse, now: float) -> Effects:
        """Handle a member event (`member_states`) or the response to a heartbeat."""
        if not isinstance(event, ResponseReceived | NoResponse):
            return HANDLERS[type(event)][self.state](self, event, now)
        if event.request.key == self._leaving:
            self._leaving = None
            self._registered &= isinstance(event, NoResponse)
            return [Left()]
        if self._in_flight is None or self._in_flight[0] != event.request.key:
            return []
        (_, fields), self._in_flight = self._in_flight, None
        joining = not self.in_group
        result = read_response(event, self.group_id, fields, self._view, joining=joining)
        return self.handle(result, now)

    def on_commit_error(self, _code: int, _sent_as: Identity, _now: float) -> Effects:
        """Do nothing: the next heartbeat says whether the member is still in the group."""
        return []

    def on_metadata_changed(self, now: float) -> Effects:
        """Look up topic ids again that were unknown."""
        return self.handle(MetadataUpdated(), now)

    # -- joining

    def _on_join_wanted(self, event: JoinWanted, now: float) -> Effects:
        self.reason = event.reason
        self._failures = 0
        self._transition(S.REJOIN_NEEDED)
        return self._prepare_to_join(event, now)

    def _on_subscription_changed(self, _event: JoinWanted, now: float) -> Effects:
        return self._send_changes(now)

    def _on_poll(self, event: Polled, now: float) -> Effects:
        self._poll_started(event, now)
        return self._prepare_to_join(event, now)

    def _prepare_to_join(self, _event: MemberEvent, _now: float) -> Effects:
        """Start to join if the user is polling and no backoff is pending."""
        if not self.polling or RetryDue in self._deadlines:
            return []
        self._transition(S.PREPARING)
        return [Prepare()]

    def _on_prepared(self, _event: Prepared, now: float) -> Effects:
        self._transition(S.JOINING)
        if not self.polling:  # the user has left the poll meanwhile
            self._deadlines[PollExpired] = now + self.config.max_poll_interval_s
        return self._send_heartbeat(now)

    # -- heartbeats

    def _send_heartbeat(self, _now: float) -> Effects:
        """Send a heartbeat, unless one is in flight, whose response is followed by the changes."""
        if self._in_flight is not None:
            return []
        self._deadlines.pop(HeartbeatDue, None)
        fields = self._fields()
        body = heartbeat(
            self.group_id,
            self.identity,
            self.identity.generation_id if self.in_group else JOIN,
            fields,
            self._confirmed,
            id_from_coordinator=self._id_from_coordinator,
        )
        request = self._request(body)
        self._in_flight = (REQUEST_KEY, self._serial), fields
        return [request]

    def _send_changes(self, now: float) -> Effects:
        """Send what the coordinator does not have yet, unless a retry or a response is due."""
        if self._confirmed is None or self._fields() == self._confirmed:
            return []
        return self._send_heartbeat(now)

    def _on_heartbeat_due(self, _event: HeartbeatDue, now: float) -> Effects:
        return self._send_heartbeat(now)

    def _on_heartbeat_response(self, event: HeartbeatResponded, now: float) -> Effects:
        response = event.response
        self._confirmed, self._failures = event.fields, 0
        self._registered, self._release_deadline = True, None
        interval = response.heartbeat_interval_ms / 1000
        self._deadlines[HeartbeatDue] = now + max(interval, SHORTEST_INTERVAL_S)
        if response.member_id and response.member_id != self.identity.member_id:
            self._id_from_coordinator = True
            self.identity = self.identity._replace(member_id=response.member_id)
        effects: Effects = []
        identity = self.identity._replace(generation_id=response.member_epoch)
        if identity != self.joined_as or not self.in_group:
            self.identity = self.joined_as = identity
            effects.append(MemberEpochChanged(identity))
        if response.assignment is not None:
            self._target = Target.of(response.assignment)
        return effects + self._update(now)

    # -- the assignment

    def _update(self, now: float) -> Effects:
        """Go on to what follows from the target, the metadata, and what is owned and confirmed."""
        resolved = self._resolve()
        effects: Effects = [] if resolved.complete else [RequestMetadataUpdate()]
        if self._reconciling:
            return effects + self._send_changes(now)
        if resolved.partitions != self._owned:
            self._enter(S.RECONCILING)
            return effects + self._begin_reconciliation(resolved) + self._send_changes(now)
        confirmed = self._confirmed is not None and self._confirmed.owned == self._fields().owned
        if not confirmed:
            self._enter(S.ACKNOWLEDGING)
        else:
            self._enter(S.STABLE if resolved.complete else S.RECONCILING)
        return effects + self._send_changes(now)

    def _begin_reconciliation(self, resolved: Resolved) -> Effects:
        if not self.polling:
            return []
        self._reconciling = True
        return [Reconcile(tuple(sorted(resolved.partitions)))]

    def _on_poll_in_group(self, event: Polled, now: float) -> Effects:
        self._poll_started(event, now)
        return self._update(now)

    def _on_metadata(self, _event: MetadataUpdated, now: float) -> Effects:
        return self._update(now)

    def _on_reconciled(self, event: Reconciled, now: float) -> Effects:
        self._owned = event.owned
        if event.complete:
            self._reconciling = False
            return self._update(now)
        return self._send_changes(now)

    # -- errors

    def _on_error(self, event: Refused, now: float) -> Effects:
        self._confirmed = None
        self._registered |= event.lost
        return RECOVERIES[event.action](self, event, now)

    def _wait_for_release(self, event: Refused, now: float) -> Effects:
        """Retry, for a while, if a response to this member was lost; else another has its place."""
        if self._release_deadline is None:
            self._release_deadline = now + self.config.default_api_timeout_s
        if not self._registered or now >= self._release_deadline:
            return self._on_fatal(event, now)
        return self._retry(event, now)

    def _rejoin(self, event: Refused, now: float) -> Effects:
        self._registered &= event.error.code == ErrorCode.FENCED_MEMBER_EPOCH
        self._failures += 1
        extra = self._failures - JOINS_AT_ONCE
        if extra > 0:
            self._deadlines[RetryDue] = now + self._backoff.after(extra, self._rng)
        effects = self._lose(str(event.error))
        self._transition(S.REJOIN_NEEDED)
        return effects + self._prepare_to_join(event, now)

    def _on_fatal(self, event: Refused, _now: float) -> Effects:
        effects: Effects = []
        if self.in_group and event.error.code != ErrorCode.FENCED_INSTANCE_ID:
            effects = self._leave_request()
        effects += self._lose(str(event.error))
        self.error = event.error
        self._transition(S.FAILED)
        return [*effects, GroupRefused(event.error)]

    def _retry_failed(self, event: Polled, now: float) -> Effects:
        """Rejoin with the next poll, except as a fenced static member."""
        assert self.error is not None
        self._poll_started(event, now)
        if self.error.code == ErrorCode.FENCED_INSTANCE_ID:
            return [GroupRefused(self.error)]
        self._transition(S.REJOIN_NEEDED)
        return self._prepare_to_join(event, now)

    def _on_poll_expired(self, _event: PollExpired, _now: float) -> Effects:
        """Leave the group: the user has stopped polling (KIP-62)."""
        effects = self._leave_request()
        effects += self._lose(POLL_EXPIRED)
        self.reason = POLL_EXPIRED
        self._transition(S.REJOIN_NEEDED)
        return effects

    # -- leaving

    def _on_leave_wanted(self, _event: LeaveWanted, _now: float) -> Effects:
        effects = self._leave_request() if self.state in _MEMBER else []
        effects += self._reset()
        self._failures, self._release_deadline = 0, None
        self._deadlines.clear()
        if self.state is not S.UNJOINED:
            self._transition(S.UNJOINED)
        return effects if self._leaving is not None else [*effects, Left()]


M = ConsumerGroupMembership
Handler: TypeAlias = Callable[[ConsumerGroupMembership, Any, float], Effects]
Row: TypeAlias = Mapping[MemberState, Handler]

Recover: TypeAlias = Callable[[ConsumerGroupMembership, Refused, float], Effects]

RECOVERIES: Final[Mapping[Recovery, Recover]] = {
    Recovery.RETRY: M._retry,
    Recovery.FIND_COORDINATOR: M._find_coordinator,
    Recovery.REJOIN: M._rejoin,
    Recovery.WAIT_FOR_RELEASE: M._wait_for_release,
    Recovery.FATAL: M._on_fatal,
}


_row: Final = Rows[MemberState, Handler](S, M._ignore)
"""Makes rows of `HANDLERS`; states that a row does not list ignore the event."""

_JOINED: Final = (S.RECONCILING, S.ACKNOWLEDGING, S.STABLE)
_MEMBER: Final = (S.JOINING, *_JOINED)
_OUT: Final = (S.UNJOINED, S.REJOIN_NEEDED, S.PREPARING, S.FAILED)

# fmt: off
HANDLERS: Final[Mapping[type[MemberEvent], Row]] = {
    JoinWanted:         _row((M._on_join_wanted, (S.UNJOINED, S.FAILED)),
                             (M._on_subscription_changed, _MEMBER)),
    Polled:             _row((M._poll_started, (S.UNJOINED, S.PREPARING, S.JOINING)),
                             (M._on_poll, (S.REJOIN_NEEDED,)),
                             (M._on_poll_in_group, _JOINED),
                             (M._retry_failed, (S.FAILED,))),
    Busy:               _row((M._poll_ended, _OUT),
                             (M._start_poll_timer, _MEMBER)),
    Prepared:           _row((M._on_prepared, (S.PREPARING,))),
    HeartbeatResponded: _row((M._on_heartbeat_response, _MEMBER)),
    Refused:            _row((M._on_error, _MEMBER)),
    Reconciled:         _row((M._on_reconciled, (S.RECONCILING,))),
    MetadataUpdated:    _row((M._on_metadata, (S.RECONCILING,))),
    HeartbeatDue:       _row((M._on_heartbeat_due, _MEMBER)),
    PollExpired:        _row((M._on_poll_expired, _MEMBER)),
    RetryDue:           _row((M._prepare_to_join, (S.REJOIN_NEEDED,))),
    LeaveWanted:        _row((M._on_leave_wanted, tuple(S))),
}
"""Event -> state -> handler, for every event in every state."""
# fmt: on
