"""Membership in one share group, as the member sees it (KIP-932).

A member makes its own id and keeps it; its epoch is the coordinator's. One heartbeat is in
flight at a time, and each has what the coordinator may not have: after a failure, everything.

    UNSUBSCRIBED ─▶ JOINING ─▶ STABLE ─▶ LEAVING ─▶ UNSUBSCRIBED
                    (epoch 0)   │   │    (epoch -1)
                      ▲  fenced │   └▶ STALE, until the next poll: max.poll.interval.ms exceeded
                      └─────────┘
"""

# over 300 lines: one state machine, all handlers of its table

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ...messages.api_key import ApiKey
from ...messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from ...messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from ...protocol.error_code import ErrorCode
from ..cluster import ClusterView
from ..consumer.consumer_group.heartbeating import HeartbeatingMember
from ..consumer.consumer_group.recovery import Recovery
from ..consumer.failures import GroupFailed
from ..consumer.group.member_states import (
    Busy,
    GroupRefused,
    HeartbeatDue,
    Left,
    Polled,
    PollExpired,
)
from ..consumer.group.polling import Rows
from ..network.backoff import Rng
from ..requests import NoResponse, Reason, ResponseReceived, Same, SendRequest
from .configuration import ShareConsumerConfig
from .member_states import (
    LEGAL,
    AssignmentChanged,
    HeartbeatResponded,
    LeaveWanted,
    MemberEffect,
    MemberEvent,
    MemberState,
    Refused,
    SubscriptionChanged,
    recovery,
)

Effects: TypeAlias = list[MemberEffect]
S = MemberState

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
HIGHEST_VERSION: Final = 1
REJOINS_AT_ONCE: Final = 3
"""Joins in a row, each after the member was fenced, without a backoff."""
NO_SHARE_GROUPS: Final = (
    "{where} has no share groups: they need Apache Kafka 4.2 or later, where the feature"
    " share.version is 1 (kafka-features.sh upgrade --feature share.version=1)"
)


class Membership(HeartbeatingMember[ShareConsumerConfig]):
    """The member of a share group. rng: returns random numbers in [0, 1), for backoff.

    member_id: its own, a UUID as Kafka writes it. epoch: that of its next heartbeat.
    """

    api = ApiKey.SHARE_GROUP_HEARTBEAT

    def __init__(
        self,
        config: ShareConsumerConfig,
        view: ClusterView,
        member_id: str,
        *,
        owner: str,
        rng: Rng,
    ) -> None:
        super().__init__(config, config.group_id, owner=owner, rng=rng)
        self.state = S.UNSUBSCRIBED
        self.member_id = member_id
        self.epoch = JOIN_EPOCH
        self.topics: frozenset[str] = frozenset()
        self._view = view
        self._in_flight: int | None = None
        """The serial of the heartbeat whose response counts."""
        self._sent_topics: frozenset[str] | None = None
        """The subscription that the coordinator has; None if that is not sure."""
        self._rejoins = 0

    # -- the contract

    def handle(self, event: MemberEvent | ResponseReceived | NoResponse, now: float) -> Effects:
        """Handle a member event (`member_states`) or the response to a heartbeat."""
        if isinstance(event, ResponseReceived | NoResponse):
            return self._on_outcome(event, now)
        return HANDLERS[type(event)][self.state](self, event, now)

    def _on_outcome(self, event: ResponseReceived | NoResponse, now: float) -> Effects:
        assert isinstance(event.request.key, tuple)
        if event.request.key[1] != self._in_flight:
            return []
        self._in_flight = None
        return self.handle(self._read(event), now)

    def _read(self, event: ResponseReceived | NoResponse) -> HeartbeatResponded | Refused:
        group = self.config.group_id
        if isinstance(event, NoResponse):
            action = Recovery.RETRY if event.retriable else Recovery.FATAL
            reason = f"share group {group!r}: {event.reason.value} {event.detail}".rstrip()
            if event.reason is Reason.NO_VERSION:
                reason = f"{NO_SHARE_GROUPS.format(where='the broker')}: {event.detail}"
            return Refused(action, GroupFailed(reason, event.code))
        response = event.message
        assert isinstance(response, ShareGroupHeartbeatResponse)
        code = response.error_code
        if code == ErrorCode.NONE:
            return HeartbeatResponded(response)
        reason = f"share group {group!r} refused this member"
        if code == ErrorCode.UNSUPPORTED_VERSION:
            reason = NO_SHARE_GROUPS.format(where=self._broker(event.node))
        elif response.error_message:
            reason = f"{reason}: {response.error_message}"
        if code == ErrorCode.GROUP_ID_NOT_FOUND:
            reason = f"{reason.rstrip('.')}: set another group.id, which no other type of group has"
        return Refused(recovery(code), GroupFailed(reason, code))

    def _broker(self, node: int) -> str:
        """Name a broker."""
        broker = self._view.brokers.get(node)
        return "the broker" if broker is None else f"broker {broker.address}"

    def _transition(self, state: MemberState) -> None:
        assert state in LEGAL[self.state], f"from {self.state.value} to {state.value}"
        self.state = state

    # -- joining

    def _join(self, now: float) -> Effects:
        """Send a heartbeat with epoch 0; an earlier one no longer counts."""
        self._transition(S.JOINING)
        self.epoch = JOIN_EPOCH
        self._in_flight = None
        self._sent_topics = None
        return self._heartbeat(now)

    def _on_subscribed(self, event: SubscriptionChanged, now: float) -> Effects:
        self.topics = event.topics
        self._failures = self._rejoins = 0
        return self._join(now)

    def _on_subscription_changed(self, event: SubscriptionChanged, now: float) -> Effects:
        """Send the new topics at once, or after the heartbeat in flight."""
        self.topics = event.topics
        return self._send_if_changed(now)

    def _subscribe_later(self, event: SubscriptionChanged, _now: float) -> Effects:
        self.topics = event.topics
        return []

    def _rejoin(self, event: Polled, now: float) -> Effects:
        self._poll_started(event, now)
        return self._join(now)

    # -- heartbeats

    def _heartbeat(self, _now: float) -> Effects:
        self._deadlines.pop(HeartbeatDue, None)
        joins, changed = self.epoch == JOIN_EPOCH, self.topics != self._sent_topics
        self._sent_topics = self.topics
        return [
            self._heartbeat_request(
                ShareGroupHeartbeatRequest(
                    rack_id=self.config.client_rack if joins else None,
                    subscribed_topic_names=sorted(self.topics) if joins or changed else None,
                ),
                self.epoch,
            )
        ]

    def _heartbeat_request(self, message: ShareGroupHeartbeatRequest, epoch: int) -> SendRequest:
        message.group_id = self.group_id
        message.member_id = self.member_id
        message.member_epoch = epoch
        request = self._request(Same(message, 0, HIGHEST_VERSION))
        self._in_flight = self._serial
        return request

    def _on_heartbeat_due(self, _event: HeartbeatDue, now: float) -> Effects:
        return self._heartbeat(now) if self._in_flight is None else []

    def _on_response(self, event: HeartbeatResponded, now: float) -> Effects:
        response = event.response
        if self.state is S.JOINING:
            self._transition(S.STABLE)
        self.epoch = response.member_epoch
        self._failures = self._rejoins = 0
        interval_s = max(response.heartbeat_interval_ms / 1000, self.config.retry_backoff_s)
        self._deadlines[HeartbeatDue] = now + interval_s
        effects: Effects = []
        if response.assignment is not None:
            effects.append(
                AssignmentChanged(
                    frozenset(
                        (topic.topic_id, partition)
                        for topic in response.assignment.topic_partitions
                        for partition in topic.partitions
                    )
                )
            )
        return effects + self._send_if_changed(now)

    def _send_if_changed(self, now: float) -> Effects:
        if self._in_flight is None and self.topics != self._sent_topics:
            return self._heartbeat(now)
        return []

    # -- errors

    def _on_refused(self, event: Refused, now: float) -> Effects:
        self._sent_topics = None
        return RECOVERIES[event.action](self, event, now)

    def _on_fenced(self, event: Refused, now: float) -> Effects:
        self.epoch = JOIN_EPOCH
        self._transition(S.JOINING)
        self._rejoins += 1
        lost: Effects = [AssignmentChanged(frozenset())]
        if self._rejoins > REJOINS_AT_ONCE:
            return lost + self._retry(event, now)
        return lost + self._heartbeat(now)

    def _on_fatal(self, event: Refused, _now: float) -> Effects:
        self.error = event.error
        self._transition(S.FATAL)
        self._deadlines.clear()
        return [AssignmentChanged(frozenset()), GroupRefused(event.error)]

    # -- polling

    def _on_poll_expired(self, _event: PollExpired, _now: float) -> Effects:
        """Leave the group until the next poll: the user has stopped polling."""
        self._transition(S.STALE)
        self._deadlines.clear()
        leave = self._heartbeat_request(ShareGroupHeartbeatRequest(), LEAVE_EPOCH)
        self._in_flight = None
        return [leave, AssignmentChanged(frozenset())]

    # -- leaving

    def _on_leave_wanted(self, _event: LeaveWanted, _now: float) -> Effects:
        self.topics = frozenset()
        self._deadlines.clear()
        self._transition(S.LEAVING)
        leave = self._heartbeat_request(ShareGroupHeartbeatRequest(), LEAVE_EPOCH)
        return [AssignmentChanged(frozenset()), leave]

    def _leave_silently(self, _event: LeaveWanted, _now: float) -> Effects:
        """End a membership that the coordinator does not have."""
        self.topics = frozenset()
        self._deadlines.clear()
        if self.state is not S.UNSUBSCRIBED:
            self._transition(S.UNSUBSCRIBED)
        return [Left()]

    def _on_left(self, _event: HeartbeatResponded | Refused, now: float) -> Effects:
        if self.topics:  # subscribed again meanwhile
            return [Left(), *self._join(now)]
        self._transition(S.UNSUBSCRIBED)
        return [Left()]


M = Membership
Handler: TypeAlias = Callable[[Membership, Any, float], Effects]
Row: TypeAlias = Mapping[MemberState, Handler]

RECOVERIES: Final[Mapping[Recovery, Callable[[Membership, Refused, float], Effects]]] = {
    Recovery.RETRY: M._retry,
    Recovery.FIND_COORDINATOR: M._find_coordinator,
    Recovery.REJOIN: M._on_fenced,
    Recovery.WAIT_FOR_RELEASE: M._on_fatal,  # a member of a share group has no instance id
    Recovery.FATAL: M._on_fatal,
}


_row: Final = Rows[MemberState, Handler](S, M._ignore)
"""Makes rows of `HANDLERS`; states that a row does not list ignore the event."""

_MEMBER: Final = (S.JOINING, S.STABLE)
_OUTSIDE: Final = (S.UNSUBSCRIBED, S.STALE, S.FATAL)

# fmt: off
HANDLERS: Final[Mapping[type[MemberEvent], Row]] = {
    SubscriptionChanged: _row((M._on_subscribed, (S.UNSUBSCRIBED, S.FATAL)),
                              (M._on_subscription_changed, _MEMBER),
                              (M._subscribe_later, (S.STALE, S.LEAVING))),
    Polled:              _row((M._poll_started, (S.UNSUBSCRIBED, *_MEMBER, S.LEAVING)),
                              (M._rejoin, (S.STALE, S.FATAL))),
    Busy:                _row((M._poll_ended, (*_OUTSIDE, S.LEAVING)),
                              (M._start_poll_timer, _MEMBER)),
    HeartbeatResponded:  _row((M._on_response, _MEMBER), (M._on_left, (S.LEAVING,))),
    Refused:             _row((M._on_refused, _MEMBER), (M._on_left, (S.LEAVING,))),
    HeartbeatDue:        _row((M._on_heartbeat_due, _MEMBER)),
    PollExpired:         _row((M._on_poll_expired, _MEMBER)),
    LeaveWanted:         _row((M._on_leave_wanted, _MEMBER), (M._leave_silently, _OUTSIDE)),
}
"""Event -> state -> handler, for every event in every state."""
# fmt: on
