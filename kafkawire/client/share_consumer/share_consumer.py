"""The share consumer: subscriptions, polls and acknowledgements in, records out.

A record is delivered while this member has acquired it, and acknowledged at most once, with
the next poll or commit. Only a poll fetches, and only once all delivered records are acknowledged.

    user ─▶ membership ─▶ assignment ─▶ leaders ─▶ acquired records ─▶ user
                                           └◀─ acknowledgements ◀─────────┘
"""

# over 300 lines: the one place that routes between all components

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...errors import LocalProtocolError, counted
from ..cluster import ClusterView
from ..consumer.events import Close, Closed, Done, Poll, Raise, StopPolling, Unsubscribe, Warn
from ..consumer.failures import ConsumerError, FetchFailed
from ..consumer.group.member import REQUEST_KEY as MEMBERSHIP
from ..consumer.group.member_states import Busy, GroupRefused, Left, Polled
from ..consumer.subscription_state import TOPIC_ERRORS
from ..network.backoff import Rng
from ..requests import (
    ClusterFailed,
    Machine,
    MetadataChanged,
    NoResponse,
    RequestMetadataUpdate,
    ResponseReceived,
    TrackTopics,
)
from . import events, leader, leaders, member_states, membership
from .acknowledgements import AcknowledgementsEnded, AcknowledgeType, SharePartition
from .checking import checked
from .commits import Commits
from .configuration import ShareConsumerConfig
from .events import ShareConsumerEffect, ShareConsumerEvent
from .leader import LeaderEffect
from .member_states import MemberEffect
from .record_states import RecordStates

Effect = ShareConsumerEffect | LeaderEffect | MemberEffect
Effects: TypeAlias = Sequence[Effect]


class ShareConsumer:
    """The share consumer machine. owner: its name in the client.

    member_id: a new UUID as text. rng: returns random numbers in [0, 1). polling: whether a poll
    waits for records or an error.
    """

    def __init__(
        self,
        config: ShareConsumerConfig,
        view: ClusterView,
        member_id: str,
        *,
        rng: Rng,
        owner: str = "share_consumer",
    ) -> None:
        self.config = config
        self.membership = membership.Membership(config, view, member_id, owner=owner, rng=rng)
        self.polling = False
        self.closed = False
        self._view = view
        self._owner = owner
        self._leaders = leaders.Leaders(config, view, member_id, owner=owner, rng=rng)
        self._machines: Mapping[str, Machine[ResponseReceived | NoResponse, Effect]] = {
            MEMBERSHIP: self.membership,
            leaders.REQUEST_KEY: self._leaders,
        }
        self._records = RecordStates()
        self._commits = Commits()
        self._errors: deque[Exception] = deque()
        self._assigned: frozenset[tuple[bytes, int]] = frozenset()
        self._reported: set[str] = set()
        self._max_records = config.max_poll_records
        self._leaving: list[Hashable] = []
        """The keys of calls of unsubscribe that wait until the member has left."""
        self._left_group = False
        self._subscribe_after: tuple[str, ...] = ()
        self._close_deadline: float | None = None

    # -- the machine

    def handle(self, event: ShareConsumerEvent, now: float) -> list[ShareConsumerEffect]:
        """Handle an event of the user or of the network.

        Raises LocalProtocolError for a call that is illegal in the current state, InvalidValue and
        OutOfRange for invalid values; then nothing has changed.
        """
        if self.closed:
            return []
        event = checked(event)
        handler = HANDLERS.get(type(event))
        if handler is None:
            raise LocalProtocolError(f"unknown event {type(event).__name__}")
        return self._route(handler(self, event, now), now)

    def next_deadline(self) -> float | None:
        if self.closed:
            return None
        times = [machine.next_deadline() for machine in self._machines.values()]
        times += [self._commits.next_deadline(), self._close_deadline]
        return min((time for time in times if time is not None), default=None)

    def advance(self, now: float) -> list[ShareConsumerEffect]:
        if self.closed:
            return []
        effects: list[Effect] = []
        for machine in self._machines.values():
            due = machine.next_deadline()
            if due is not None and due <= now:
                effects += machine.advance(now)
        if self._close_deadline is not None and self._close_deadline <= now:
            return [*self._route([*effects, *self._finish_close()], now)]
        return self._route(effects, now)

    # -- state

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics."""
        if self._leaders.closing:
            return frozenset(self._subscribe_after)
        return self.membership.topics

    @property
    def assignment(self) -> frozenset[SharePartition]:
        """The assigned partitions whose topics are known by name."""
        return self._leaders.assignment

    @property
    def acquisition_lock_timeout_s(self) -> float | None:
        """How long a delivered record is locked for this member; None before the first fetch."""
        return self._leaders.lock_timeout_s

    # -- subscribing

    def _subscribe(self, event: events.Subscribe, now: float) -> Effects:
        if not event.topics:
            raise LocalProtocolError("no topics to subscribe to: unsubscribe instead")
        if self._leaders.closing:
            self._subscribe_after = event.topics
            return []
        topics = frozenset(event.topics)
        self._reported.clear()
        return [
            TrackTopics(self._owner, topics),
            *self.membership.handle(member_states.SubscriptionChanged(topics), now),
        ]

    def _unsubscribe(self, event: Unsubscribe, now: float) -> Effects:
        self._leaving.append(event.key)
        return self._begin_leaving(now)

    def _close(self, event: Close, now: float) -> Effects:
        if self._close_deadline is not None:
            return []
        self._close_deadline = now + event.timeout_s
        return self._begin_leaving(now)

    def _begin_leaving(self, now: float) -> Effects:
        """Send acknowledgements and close the share sessions; `_leave` follows."""
        self._subscribe_after = ()
        self._take_marked(now + self.config.request_timeout_s)
        self._records.clear()
        self._errors.clear()
        self._leaders.closing = True
        return self._stop_polling(None, now)

    def _leave(self, now: float) -> Effects:
        """Leave the group once the sessions are closed."""
        if self._left_group or not (self._leaders.closing and self._leaders.settled):
            return []
        self._left_group = True
        return self.membership.handle(member_states.LeaveWanted(), now)

    def _on_left(self, _event: Left, now: float) -> Effects:
        if not self._leaders.closing:
            return []
        self._leaders.closing = self._left_group = False
        done = [Done(key) for key in self._leaving]
        self._leaving.clear()
        if self._close_deadline is not None:
            return [*done, *self._finish_close()]
        after, self._subscribe_after = self._subscribe_after, ()
        if after:
            return [*done, *self._subscribe(events.Subscribe(after), now)]
        return [*done, TrackTopics(self._owner, frozenset())]

    def _finish_close(self) -> list[ShareConsumerEffect]:
        self.closed = True
        return [Closed()]

    # -- polling

    def _poll(self, event: Poll, now: float) -> Effects:
        if not self.subscription:
            raise LocalProtocolError("subscribe to topics before polling")
        if self.config.explicit and self._records.unacknowledged:
            left = counted(self._records.unacknowledged, "delivered record")
            raise LocalProtocolError(
                f"{left} not acknowledged: acknowledge each before the next poll"
                " (share.acknowledgement.mode is explicit)"
            )
        self._accept_delivered()
        self._take_marked(now + self.config.default_api_timeout_s)
        self.polling = True
        self._max_records = event.max_records or self.config.max_poll_records
        return self.membership.handle(Polled(), now)

    def _stop_polling(self, _event: StopPolling | None, now: float) -> Effects:
        if not self.polling:
            return []
        self.polling = False
        return self.membership.handle(Busy(), now)

    def _return_records(self, event: events.ReturnRecords, _now: float) -> Effects:
        self._records.return_records(event.records)
        return []

    def _deliver(self, now: float) -> Effects:
        """Complete the poll with an error or with records, if possible."""
        if not self.polling:
            return []
        result: ShareConsumerEffect
        if self._errors:
            result = Raise(self._errors.popleft())
        else:
            self._records.drop_expired(now)
            if not self._records.buffered:
                return []
            try:
                result = events.Deliver(self._records.take(self._max_records))
            except FetchFailed as error:
                result = Raise(error)
        return [*self._stop_polling(None, now), result]

    # -- acknowledging

    def _acknowledge(self, event: events.Acknowledge, _now: float) -> Effects:
        if not self.config.explicit:
            raise LocalProtocolError(
                "acknowledge() requires share.acknowledgement.mode explicit; in implicit mode the"
                " next poll or commit accepts all delivered records"
            )
        self._records.mark(event.partition, event.offset, event.type)
        return []

    def _release(self, event: events.Release, _now: float) -> Effects:
        self._records.mark(event.partition, event.offset, AcknowledgeType.RELEASE)
        return []

    def _accept_delivered(self) -> None:
        if not self.config.explicit:
            self._records.mark_all(AcknowledgeType.ACCEPT)

    def _take_marked(self, deadline: float) -> None:
        """Let the leaders send the acknowledgements that the user has decided on."""
        self._leaders.acknowledge(
            self._commits.new(node, partition, ranges, deadline)
            for (node, partition), ranges in self._records.take_marked()
        )

    def _commit(self, event: events.Commit, now: float) -> Effects:
        deadline = now + event.timeout_s
        self._accept_delivered()
        self._take_marked(deadline)
        self._commits.commit(event.key, deadline)
        return []

    def _on_ended(self, event: AcknowledgementsEnded, now: float) -> Effects:
        each = event.acknowledgements
        if each.renews and event.error is None:
            timeout_s = self._leaders.lock_timeout_s
            self._records.renewed(each, None if timeout_s is None else now + timeout_s)
        elif each.renews:
            self._records.not_renewed(each)
        return self._commits.on_ended(event)

    # -- the leaders

    def _on_acquired(self, event: leader.RecordsAcquired, now: float) -> Effects:
        if self._leaders.closing:
            return []  # the end of the session releases them
        self._records.add(event.node, event.partition, event.items, event.lock_deadline)
        if event.ranges:
            deadline = now + self.config.default_api_timeout_s
            new = self._commits.new(event.node, event.partition, event.ranges, deadline)
            self._leaders.acknowledge([new])
        return []

    def _on_session_lost(self, event: leader.SessionLost, _now: float) -> Effects:
        self._records.drop_buffered(event.node)
        return []

    def _on_fetch_warning(self, event: leader.FetchWarning, _now: float) -> Effects:
        return [Warn(event.error)]

    def _on_refused(self, event: leader.FetchRefused | GroupRefused, _now: float) -> Effects:
        self._errors.append(event.error)
        return []

    # -- the group and the network

    def _on_assignment(self, event: member_states.AssignmentChanged, _now: float) -> Effects:
        self._assigned = event.partitions
        return self._resolve()

    def _resolve(self) -> Effects:
        """Find the names of the assigned topics; request metadata where it lacks one."""
        names = {topic_id: self._view.topic_name(topic_id) for topic_id, _ in self._assigned}
        self._leaders.assignment = frozenset(
            SharePartition(name, partition, topic_id)
            for topic_id, partition in self._assigned
            if (name := names[topic_id]) is not None
        )
        return [RequestMetadataUpdate()] if None in names.values() else []

    def _on_metadata_changed(self, _event: MetadataChanged, _now: float) -> Effects:
        for name in self.subscription - self._reported:
            topic = self._view.topics.get(name)
            if topic is not None and topic.error in TOPIC_ERRORS:
                self._reported.add(name)
                self._errors.append(ConsumerError(f"cannot read topic {name!r}", topic.error))
        self._leaders.on_metadata_changed()
        return self._resolve()

    def _on_cluster_failed(self, event: ClusterFailed, _now: float) -> Effects:
        self._errors.append(ConsumerError(f"{event.reason.value}: {event.detail}"))
        return []

    def _on_outcome(self, event: ResponseReceived | NoResponse, now: float) -> Effects:
        assert isinstance(event.request.key, tuple)
        return self._machines[event.request.key[0]].handle(event, now)

    # -- routing

    def _route(self, effects: Effects, now: float) -> list[ShareConsumerEffect]:
        """Route effects between components; returns those for the network and the user."""
        out: list[ShareConsumerEffect] = []
        self._dispatch(effects, out, now)
        while not self.closed:
            delivered = self._deliver(now)
            fetching = self.polling and not self._records.buffered
            sent = self._leaders.send(now, max_records=self._max_records if fetching else None)
            more: Effects = [*delivered, *sent, *self._leave(now)]
            if not more:
                break
            self._dispatch(more, out, now)
        return [*out, *self._commits.completed(now)]

    def _dispatch(self, effects: Effects, out: list[ShareConsumerEffect], now: float) -> None:
        pending: deque[Any] = deque(effects)  # the type of an effect decides who handles it
        while pending:
            effect = pending.popleft()
            handler = INTERNAL_HANDLERS.get(type(effect))
            if handler is None:
                out.append(effect)
            else:
                pending.extendleft(reversed(list(handler(self, effect, now))))


C = ShareConsumer
Handler: TypeAlias = Callable[[ShareConsumer, Any, float], Effects]

HANDLERS: Final[Mapping[type[ShareConsumerEvent], Handler]] = {
    events.Subscribe: C._subscribe,
    Unsubscribe: C._unsubscribe,
    Poll: C._poll,
    StopPolling: C._stop_polling,
    events.ReturnRecords: C._return_records,
    events.Acknowledge: C._acknowledge,
    events.Release: C._release,
    events.Commit: C._commit,
    Close: C._close,
    ResponseReceived: C._on_outcome,
    NoResponse: C._on_outcome,
    MetadataChanged: C._on_metadata_changed,
    ClusterFailed: C._on_cluster_failed,
}
"""Events from outside -> handler."""

INTERNAL_HANDLERS: Final[Mapping[type[LeaderEffect | MemberEffect], Handler]] = {
    member_states.AssignmentChanged: C._on_assignment,
    GroupRefused: C._on_refused,
    Left: C._on_left,
    leader.RecordsAcquired: C._on_acquired,
    leader.SessionLost: C._on_session_lost,
    leader.FetchRefused: C._on_refused,
    leader.FetchWarning: C._on_fetch_warning,
    AcknowledgementsEnded: C._on_ended,
}
"""Effects between components -> handler."""
