"""Membership in one classic consumer group, as the member sees it.

Law: a member joins only while its user is in a poll, with what it read committed and what it must
give up given up; from then on it heartbeats, whatever the user does. An answer to a question that
is no longer ours is dropped.

    UNJOINED ─▶ REJOIN_NEEDED ─▶ PREPARING ─▶ PREPARING_REBALANCE ─▶ COMPLETING_REBALANCE ─▶ STABLE
                (until a poll)   (commit,     (JoinGroup sent)       (SyncGroup sent)          │
                      ▲           revoke)                                                      │
                      └────────── rebalance in progress, fenced, poll interval exceeded ◀──────┘
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ....errors import WireError
from ....messages.api_key import ApiKey
from ....protocol.error_code import ErrorCode
from ...network.backoff import Backoff, Rng
from ...requests import ForgetCoordinator, NoResponse, ResponseReceived, SendRequest
from ..assignors import Assignments
from ..configuration import ConsumerConfig
from ..failures import ConsumerError, GroupFailed
from . import requests as say
from .member import Effects, GroupMember
from .member_states import (
    EVENTS,
    TABLE,
    AssignmentsComputed,
    Busy,
    ComputeAssignments,
    GroupRefused,
    HeartbeatDue,
    Joined,
    JoinWanted,
    LeaveWanted,
    Left,
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
from .recovery import Recovery, recovery
from .requests import Identity, Offer
from .responses import read_answer

S = MemberState

JOIN_GRACE_S: Final = 5.0
"""How much longer than the rebalance itself we wait for the answer to a JoinGroup."""
POLL_EXPIRED: Final = "the time between two polls exceeded max.poll.interval.ms"
SUSPICIOUS: Final = frozenset({Recovery.REJOIN, Recovery.NEW_GENERATION, Recovery.NEW_MEMBER})
"""What the error of a commit may mean for the membership."""


def blamed(name: str, error: Exception) -> GroupFailed:
    """Make the error for an assignor whose own code raised."""
    made = GroupFailed(f"the assignor {name!r} failed: {error!r}")
    made.__cause__ = error
    return made


class Membership(GroupMember):
    """One member of a group. lot: draws from 0 up to 1, for backoff."""

    def __init__(self, config: ConsumerConfig, *, owner: str, rng: Rng) -> None:
        super().__init__(config, owner=owner)
        self.reason = ""
        self.polling = False
        self.error: ConsumerError | None = None
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._assignors = say.named(config.assignors)
        self._offer = Offer(())
        self._protocol = ""
        self._again = ""  # why to join again once this rebalance is over
        self._failures = 0

    # -- the contract

    def handle(self, event: object, now: float) -> Effects:
        """Take in an event of this module, or the answer to one of our requests."""
        if isinstance(event, ResponseReceived | NoResponse):
            if not self._counts(event):
                return []
            if event.request.api is ApiKey.LEAVE_GROUP:
                return [Left()]
            return self.handle(read_answer(event, self._assignors), now)
        return HANDLERS[type(event)][self.state](self, event, now)

    def advance(self, now: float) -> Effects:
        effects: Effects = []
        for due, at in sorted(self._deadlines.items(), key=lambda item: item[1]):
            if at <= now and self._deadlines.get(due) == at:
                del self._deadlines[due]
                effects += self.handle(due(), now)
        return effects

    def suspect(self, code: int, sent_as: Identity, now: float) -> Effects:
        """Take in what a commit's error says of our membership; nothing if we are others now."""
        what = recovery(ApiKey.HEARTBEAT, code)
        telling = what in SUSPICIOUS or code == ErrorCode.FENCED_INSTANCE_ID
        if sent_as != self.identity or not telling:
            return []
        error = GroupFailed(f"group {self.group_id!r} refused a commit", code)
        return self.handle(Refused(ApiKey.OFFSET_COMMIT, what, error), now)

    # -- joining

    def _want(self, event: JoinWanted, now: float) -> Effects:
        self.reason = event.reason
        self._failures = 0
        self._become(S.REJOIN_NEEDED)
        return self._try(event, now)

    def _later(self, event: JoinWanted, _now: float) -> Effects:
        self._again = event.reason
        return []

    def _why(self, event: JoinWanted, _now: float) -> Effects:
        self.reason = event.reason
        return []

    def _polled(self, event: Polled, now: float) -> Effects:
        self._here(event, now)
        return self._try(event, now)

    def _here(self, _event: object, _now: float) -> Effects:
        self.polling = True
        self._deadlines.pop(PollExpired, None)
        return []

    def _away(self, _event: Busy, _now: float) -> Effects:
        self.polling = False
        return []

    def _busy(self, _event: Busy, now: float) -> Effects:
        if self.polling:
            self._deadlines[PollExpired] = now + self.config.max_poll_interval_s
        self.polling = False
        return []

    def _try(self, _event: object, _now: float) -> Effects:
        """Begin to join, if the user is there and no backoff runs."""
        if not self.polling or RetryDue in self._deadlines:
            return []
        self._become(S.PREPARING)
        return [Prepare()]

    def _prepared(self, event: Prepared, now: float) -> Effects:
        self._become(S.PREPARING_REBALANCE)
        self._offer = event.offer
        return self._join(now)

    def _join(self, _now: float) -> Effects:
        self._drop(HeartbeatDue, SessionExpired)
        self._current.pop(ApiKey.HEARTBEAT, None)
        try:
            body = say.join(self.config, self.identity, self._offer, self.reason)
        except Exception as error:  # noqa: BLE001 - the user's own assignor: their poll raises it
            names = ", ".join(each.name for each in self.config.assignors)
            return self._fatal(blamed(names, error))
        rebalance = self.config.max_poll_interval_s + JOIN_GRACE_S
        return [self._ask(ApiKey.JOIN_GROUP, body, max(self.config.request_timeout_s, rebalance))]

    def _joined(self, event: Joined, now: float) -> Effects:
        response = event.response
        self._become(S.COMPLETING_REBALANCE)
        self.identity = self.identity._replace(
            generation_id=response.generation_id, member_id=response.member_id
        )
        self._alive(now)
        self._deadlines[HeartbeatDue] = now + self.config.heartbeat_interval_s
        self._protocol = response.protocol_name or ""
        leads = response.leader == response.member_id and not response.skip_assignment
        if not leads:
            return [self._sync({})]
        assignor = self._assignors[self._protocol]
        try:
            members = say.members_of(response, assignor)
        except WireError as error:
            return self._fatal(GroupFailed(f"a member's subscription cannot be read: {error}"))
        except Exception as error:  # noqa: BLE001 - the user's own assignor: their poll raises it
            return self._fatal(blamed(assignor.name, error))
        return [ComputeAssignments(response.generation_id, assignor, members)]

    def _computed(self, event: AssignmentsComputed, _now: float) -> Effects:
        if event.generation_id != self.identity.generation_id:
            return []
        return [self._sync(event.assignments)]

    def _sync(self, assignments: Assignments) -> SendRequest:
        body = say.sync(self.group_id, self.identity, self._protocol, assignments)
        return self._ask(ApiKey.SYNC_GROUP, body, self.config.max_poll_interval_s + JOIN_GRACE_S)

    def _synced(self, event: Synced, now: float) -> Effects:
        try:
            partitions = say.assigned(event.response.assignment)
        except WireError as error:
            return self._fatal(GroupFailed(f"our assignment cannot be read: {error}"))
        self._become(S.STABLE)
        self._failures = 0
        effects: Effects = [PartitionsAssigned(self.identity.generation_id, partitions)]
        again, self._again = self._again, ""
        return effects + (self._want(JoinWanted(again), now) if again else [])

    # -- staying

    def _beat(self, _event: object, now: float) -> Effects:
        self._deadlines[HeartbeatDue] = now + self.config.heartbeat_interval_s
        if ApiKey.HEARTBEAT in self._current:
            return []
        body = say.heartbeat(self.group_id, self.identity)
        timeout = min(self.config.request_timeout_s, self.config.session_timeout_s)
        return [self._ask(ApiKey.HEARTBEAT, body, timeout)]

    def _known(self, _event: object, now: float) -> Effects:
        if self.in_group:
            self._alive(now)
        return []

    def _silent(self, _event: object, now: float) -> Effects:
        self._alive(now)
        return [ForgetCoordinator(self.coordinator)]

    def _expired(self, _event: object, _now: float) -> Effects:
        """Leave, so that others need not wait: the user is stuck (KIP-62)."""
        effects = self._farewell(POLL_EXPIRED)
        self._lose_name()
        self.reason = POLL_EXPIRED
        self._become(S.REJOIN_NEEDED)
        return [*effects, PartitionsLost(POLL_EXPIRED)]

    # -- what goes wrong

    def _refused(self, event: Refused, now: float) -> Effects:
        return RECOVERIES[event.what](self, event, now)

    def _take_id(self, event: Refused, now: float) -> Effects:
        self.identity = self.identity._replace(member_id=event.member_id)
        return self._join(now)

    def _retry(self, event: Refused, now: float) -> Effects:
        if event.api not in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
            return []  # the next heartbeat is due soon enough
        self._failures += 1
        self._deadlines[RetryDue] = now + self._backoff.after(self._failures, self._rng)
        self._become(S.REJOIN_NEEDED)
        if self.in_group:  # the user may be away for long: what we hold must not expire
            self._alive(now)
            self._deadlines.setdefault(HeartbeatDue, now + self.config.heartbeat_interval_s)
        return []

    def _find(self, event: Refused, now: float) -> Effects:
        return [ForgetCoordinator(self.coordinator), *self._retry(event, now)]

    def _rejoin(self, event: Refused, now: float) -> Effects:
        """Join again; what is about to join, or is at it, hears nothing new."""
        if self.state is not S.STABLE and event.api is not ApiKey.SYNC_GROUP:
            return []
        self.reason = "the group is rebalancing"
        self._become(S.REJOIN_NEEDED)
        return self._try(event, now)

    def _start_over(self, event: Refused, now: float) -> Effects:
        effects = self._lose(event)
        if self.state is S.PREPARING:
            return effects
        self.reason = str(event.error)
        self._become(S.REJOIN_NEEDED)
        return effects + self._try(event, now)

    def _lose(self, event: Refused) -> Effects:
        self._lose_generation()
        if event.what is Recovery.NEW_MEMBER:
            self._lose_name()
        return [PartitionsLost(str(event.error))]

    def _fail(self, event: Refused, _now: float) -> Effects:
        return self._fatal(event.error)

    def _fatal(self, error: ConsumerError) -> Effects:
        lost: Effects = [PartitionsLost(str(error))]
        self._lose_name()
        self.error = error
        self._become(S.FAILED)
        return [*lost, GroupRefused(error)]

    def _repolled(self, event: Polled, now: float) -> Effects:
        """Try again with the next poll, but never as a static member that another one replaced."""
        assert self.error is not None
        self._here(event, now)
        if self.error.code == ErrorCode.FENCED_INSTANCE_ID:
            return [GroupRefused(self.error)]
        self._become(S.REJOIN_NEEDED)
        return self._try(event, now)

    # -- leaving

    def _leave(self, event: LeaveWanted, _now: float) -> Effects:
        effects = self._farewell(event.reason)
        self._lose_name()
        self._again, self._failures = "", 0
        self._drop(*self._deadlines)
        if self.state is not S.UNJOINED:
            self._become(S.UNJOINED)
        return effects or [Left()]

    # -- nothing

    def _ignore(self, _event: object, _now: float) -> Effects:
        return []


M = Membership
Handler: TypeAlias = Callable[[Membership, object, float], Effects]

RECOVERIES: Final[Mapping[Recovery, Callable[[Membership, Refused, float], Effects]]] = {
    Recovery.TAKE_ID: M._take_id,
    Recovery.RETRY: M._retry,
    Recovery.FIND: M._find,
    Recovery.REJOIN: M._rejoin,
    Recovery.NEW_GENERATION: M._start_over,
    Recovery.NEW_MEMBER: M._start_over,
    Recovery.FATAL: M._fail,
}


def _handlers(table: str) -> Mapping[type, Mapping[MemberState, Handler]]:
    rows = {name: cells for name, *cells in (line.split() for line in table.split("\n")[2:-1])}
    return {
        event: {
            state: M._ignore if cell == "-" else getattr(M, f"_{cell}")
            for state, cell in zip(MemberState, rows[event.__name__], strict=True)
        }
        for event in EVENTS
    }


HANDLERS: Final = _handlers(TABLE)
"""Event -> state -> what to do: total."""
