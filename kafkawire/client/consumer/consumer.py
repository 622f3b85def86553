"""The consumer: subscriptions and polls in, records out.

Every component is a machine or a table of its own; this one routes events and effects between
them. Effects that no component handles are for the network or the user.

    user ─▶ subscription ─▶ membership ─▶ steps ─▶ positions ─▶ fetcher ─▶ user
                               │            │          │  └▶ leaders (ListOffsets, epochs)
                               └── network ─┴ commits ─┴─ committed
"""

# over 300 lines: the one place that routes between all components

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ...errors import LocalProtocolError
from ..cluster import ClusterView
from ..group_metadata import ConsumerGroupMetadata
from ..network.backoff import Rng
from ..requests import ClusterFailed, MetadataChanged, NoResponse, ResponseReceived
from . import events
from .checking import checked
from .components import ComponentEffect, Components, Effect, Effects
from .configuration import ConsumerConfig
from .consumer_group import member_states as consumer_group
from .coordinator import rebalancing
from .coordinator.assignment import Assignment
from .coordinator.commits import STEP, USER, Commits
from .coordinator.leadership import Leadership
from .delivery import Delivery
from .events import ConsumerEffect, ConsumerEvent
from .failures import ConsumerError
from .group import member_states
from .offsets import committed, committing
from .offsets import leader_requests as leaders
from .offsets.partition_state import PartitionWarning, PositionFailed
from .partitions import TopicPartition
from .queries import OffsetQueries
from .subscription import Mode
from .subscription_state import CLOSING, SUBSCRIPTION_HANDLERS, SubscriptionState


class Consumer:
    """The consumer machine. owner: its name in the client.

    rng: returns random numbers in [0, 1). clock_ms: returns milliseconds since the epoch. polling:
    whether a poll waits for records or an error.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        view: ClusterView,
        *,
        rng: Rng,
        clock_ms: Callable[[], int],
        owner: str = "consumer",
    ) -> None:
        components = Components.make(config, view, rng=rng, clock_ms=clock_ms, owner=owner)
        self.config = config
        self.subscription = components.subscription
        self.positions = components.positions
        self.membership = components.membership
        self._components = components
        self._machines = components.machines
        self._commits = Commits(components)
        self._assignment = Assignment(components, self._commits)
        self._leadership = Leadership(components)
        self._subscription_state = SubscriptionState(
            components, self._assignment, self._commits, self._leadership, owner
        )
        self._view = view
        self._owner = owner
        self.polling = False
        self._delivery = Delivery(components)
        self._queries = OffsetQueries(components)
        self.closed = False

    # -- the machine

    def handle(self, event: ConsumerEvent, now: float) -> list[ConsumerEffect]:
        """Handle an event of the user or of the network.

        Raises LocalProtocolError for a call that is illegal in the current state, InvalidValue and
        OutOfRange for invalid values; then nothing has changed.
        """
        if self.closed:
            return []
        event = checked(event)
        subscription_handler = SUBSCRIPTION_HANDLERS.get(type(event))
        handler = HANDLERS.get(type(event))
        if subscription_handler is not None:
            effects = subscription_handler(self._subscription_state, event, now)
        elif handler is not None:
            effects = handler(self, event, now)
        else:
            raise LocalProtocolError(f"unknown event {type(event).__name__}")
        return self._route(effects, now)

    def next_deadline(self) -> float | None:
        if self.closed:
            return None
        times = [machine.next_deadline() for machine in self._machines.values()]
        if self.polling and self._commits.auto_commit:
            times.append(self._commits.due_at)
        return min(
            (at for at in [*times, self._assignment.close_deadline] if at is not None), default=None
        )

    def advance(self, now: float) -> list[ConsumerEffect]:
        if self.closed:
            return []
        effects: list[Effect] = []
        for machine in self._machines.values():
            due = machine.next_deadline()
            if due is not None and due <= now:
                effects += machine.advance(now)
        if self.polling:
            effects += self._commits.auto_commit_if_due(now)
        if self._assignment.close_deadline is not None and self._assignment.close_deadline <= now:
            effects += self._finish_close()
        return self._route(effects, now)

    # -- state

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self.positions)

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """The member in its group; LocalProtocolError without a group.

        A member that was expelled has its last generation: with none, its offsets were accepted.
        """
        if self.config.group_id is None:
            raise LocalProtocolError("a group requires group.id")
        if not self.subscription.in_group:
            return ConsumerGroupMetadata(self.config.group_id)
        return ConsumerGroupMetadata(self.config.group_id, *self.membership.joined_as)

    @property
    def settled(self) -> bool:
        """Whether no rebalance is pending, which records would wait for."""
        return not self._assignment.steps

    # -- polling

    def _poll(self, event: events.Poll, now: float) -> Effects:
        if self.subscription.mode is Mode.NONE:
            raise LocalProtocolError("subscribe to topics or assign partitions before polling")
        self.polling = True
        self._delivery.begin(event)
        self.positions.retry_failed()
        effects = self._commits.auto_commit_if_due(now)
        return [*effects, *self.membership.handle(member_states.Polled(), now)]

    def _stop_polling(self, _event: events.StopPolling | None, now: float) -> Effects:
        if not self.polling:
            return []
        self.polling = False
        return self.membership.handle(member_states.Busy(), now)

    def _deliver(self, now: float) -> Effects:
        """Complete the poll with an error or with records, if possible."""
        if not self.polling or self._assignment.steps:
            return []
        result = self._delivery.next()
        return [] if result is None else [*self._stop_polling(None, now), result]

    # -- committing

    def _on_committed(self, event: committing.Committed, now: float) -> Effects:
        reports = self._commits.on_committed(event)
        assert isinstance(event.commit.key, tuple)
        origin, key = event.commit.key
        if origin == USER:
            return [*reports, events.Done(key, event.error)]
        effects = [*reports, *([] if event.error is None else [events.Warn(event.error)])]
        if origin == STEP:
            effects += self._assignment.on_committed(key, now)
        return effects

    def _on_commit_refused(self, event: committing.CommitRefused, now: float) -> Effects:
        return self.membership.on_commit_error(event.code, event.identity, now)

    # -- queries

    def _get_committed(self, event: events.GetCommitted, now: float) -> Effects:
        return self._queries.get_committed(event, now)

    def _get_offsets(self, event: events.GetOffsets, now: float) -> Effects:
        return self._queries.get_offsets(event, now)

    def _get_position(self, event: events.GetPosition, _now: float) -> Effects:
        self._subscription_state.check_assigned([event.partition])
        self._queries.get_position(event)
        return []

    def _cancel_get_position(self, event: events.CancelGetPosition, _now: float) -> Effects:
        self._queries.cancel(event)
        return []

    # -- the group

    def _on_prepare(self, _event: member_states.Prepare, _now: float) -> Effects:
        self._leadership.end()
        self._assignment.prepare()
        return []

    def _on_compute_assignments(
        self, event: member_states.ComputeAssignments, now: float
    ) -> Effects:
        self._leadership.begin(event)
        return [*self._subscription_state.track(), *self._leadership.run(now)]

    def _on_assigned(self, event: member_states.PartitionsAssigned, _now: float) -> Effects:
        self._assignment.on_assigned(event)
        return []

    def _on_reconcile(self, event: consumer_group.Reconcile, _now: float) -> Effects:
        self._assignment.on_reconcile(event)
        return []

    def _on_member_epoch(self, event: consumer_group.MemberEpochChanged, _now: float) -> Effects:
        self._components.committing.on_member_epoch(event.identity)
        self._components.committed.on_member_epoch(event.identity)
        return []

    def _on_lost(self, event: member_states.PartitionsLost, _now: float) -> Effects:
        self._leadership.end()
        return self._assignment.on_lost(event)

    def _on_left(self, _event: member_states.Left, now: float) -> Effects:
        return self._assignment.on_left(now)

    def _on_group_refused(self, event: member_states.GroupRefused, _now: float) -> Effects:
        self._delivery.errors.append(event.error)
        return []

    # -- closing

    def _close(self, event: events.Close, now: float) -> Effects:
        if self._assignment.close_deadline is not None:
            return []
        self._assignment.close_deadline = now + event.timeout_s
        self.polling = False
        if not self.membership.unjoined:
            self._assignment.leave(CLOSING)
        else:
            self._assignment.steps.add(rebalancing.CommitConsumed())
        self._assignment.steps.add(rebalancing.FinishClose())
        return []

    def _finish_close(self) -> list[ConsumerEffect]:
        effects = self._components.fetcher.close()
        self.closed = True
        return [*effects, events.Closed()]

    # -- the network

    def _on_response(self, event: ResponseReceived | NoResponse, now: float) -> Effects:
        assert isinstance(event.request.key, tuple)
        return self._machines[event.request.key[0]].handle(event, now)

    def _on_metadata_changed(self, event: MetadataChanged, now: float) -> Effects:
        self.positions.on_metadata_changed()
        self._components.fetcher.on_metadata_changed(now)
        effects: list[Effect] = [
            *self._components.leaders.handle(event, now),
            *self._leadership.run(now),
            *self.membership.on_metadata_changed(now),
        ]
        self._delivery.errors += self._subscription_state.topic_errors()
        reason = ""
        if self.subscription.match(self._view):
            reason = "the topics that match the pattern have changed"
        elif self._leadership.metadata_changed:
            reason = "the partition counts of the group's topics have changed"
        if reason and self.subscription.in_group:
            self._leadership.end()
            effects += self.membership.handle(member_states.JoinWanted(reason), now)
        return effects

    def _on_cluster_failed(self, event: ClusterFailed, _now: float) -> Effects:
        self._delivery.errors.append(ConsumerError(f"{event.reason.value}: {event.detail}"))
        return []

    # -- routing

    def _route(self, effects: Effects, now: float) -> list[ConsumerEffect]:
        """Route effects between components; returns those for the network and the user."""
        out: list[ConsumerEffect] = []
        self._dispatch(effects, out, now)
        while self._assignment.steps.pending:
            self._dispatch(self._assignment.run(now), out, now)
        if self._assignment.ended and not self.closed:
            out += self._finish_close()
        while not self.closed:
            more: Effects = [
                *self.positions.requests(),
                *self._components.fetcher.fetch(now),
                *self._deliver(now),
            ]
            if not more:
                break
            self._dispatch(more, out, now)
        return [*out, *self._queries.completed()]

    def _dispatch(self, effects: Effects, out: list[ConsumerEffect], now: float) -> None:
        pending: deque[Any] = deque(effects)  # the type of an effect decides who handles it
        while pending:
            effect = pending.popleft()
            handler = INTERNAL_HANDLERS.get(type(effect))
            if handler is None:
                out.append(effect)
            else:
                pending.extendleft(reversed(handler(self, effect, now)))

    def _fetch_committed(self, event: committed.FetchCommitted, now: float) -> Effects:
        return self._components.committed.handle(event, now)

    def _committed_fetched(self, event: committed.CommittedFetched, _now: float) -> Effects:
        return self._queries.committed_fetched(event)

    def _leaders_responded(self, event: leaders.LeadersResponded, _now: float) -> Effects:
        return self._queries.leaders_responded(event)

    def _request_from_leaders(self, event: leaders.RequestFromLeaders, now: float) -> Effects:
        return self._components.leaders.handle(event, now)

    def _on_partition_warning(self, event: PartitionWarning, _now: float) -> Effects:
        return [events.Warn(event.error)]

    def _on_position_failed(self, event: PositionFailed, _now: float) -> Effects:
        self._delivery.errors.append(event.error)
        return []


C = Consumer
Handler: TypeAlias = Callable[[Consumer, Any, float], Effects]

HANDLERS: Final[Mapping[type[ConsumerEvent], Handler]] = {
    events.Poll: C._poll,
    events.StopPolling: C._stop_polling,
    events.ReturnRecords: lambda consumer, event, now: consumer._delivery.return_records(
        event, now
    ),
    events.ReturnColumns: lambda consumer, event, now: consumer._delivery.return_columns(
        event, now
    ),
    events.ListenerDone: lambda consumer, event, now: consumer._assignment.on_listener_done(
        event, now
    ),
    events.Commit: lambda consumer, event, now: consumer._commits.commit(event, now),
    events.GetCommitted: C._get_committed,
    events.GetOffsets: C._get_offsets,
    events.GetPosition: C._get_position,
    events.CancelGetPosition: C._cancel_get_position,
    events.Close: C._close,
    ResponseReceived: C._on_response,
    NoResponse: C._on_response,
    MetadataChanged: C._on_metadata_changed,
    ClusterFailed: C._on_cluster_failed,
}
"""Events from outside -> handler."""

INTERNAL_HANDLERS: Final[Mapping[type[ComponentEffect], Handler]] = {
    member_states.Prepare: C._on_prepare,
    member_states.ComputeAssignments: C._on_compute_assignments,
    member_states.PartitionsAssigned: C._on_assigned,
    consumer_group.Reconcile: C._on_reconcile,
    consumer_group.MemberEpochChanged: C._on_member_epoch,
    member_states.PartitionsLost: C._on_lost,
    member_states.GroupRefused: C._on_group_refused,
    member_states.Left: C._on_left,
    committing.Committed: C._on_committed,
    committing.CommitRefused: C._on_commit_refused,
    committed.FetchCommitted: C._fetch_committed,
    committed.CommittedFetched: C._committed_fetched,
    leaders.RequestFromLeaders: C._request_from_leaders,
    leaders.LeadersResponded: C._leaders_responded,
    PartitionWarning: C._on_partition_warning,
    PositionFailed: C._on_position_failed,
}
"""Effects between components -> handler."""
