"""The consumer: what the user wants in, records out.

Law: every part is a machine or a table of its own; here is only who tells whom. What one part says
to another never leaves; what is left is for the network or the user.

    user ─▶ subscription ─▶ membership ─▶ steps ─▶ positions ─▶ fetcher ─▶ user
                               │            │          │  └▶ leaders (ListOffsets, epochs)
                               └── network ─┴ commits ─┴─ committed
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ...errors import LocalProtocolError
from ..network.backoff import Rng
from ..network.cluster import ClusterView
from ..requests import ClusterFailed, MetadataChanged, NoResponse, ResponseReceived
from . import events
from .checking import checked
from .components import Components
from .configuration import ConsumerConfig
from .failures import ConsumerError, FetchFailed
from .group import member_states, rebalancing
from .group.assignment import Assignment
from .group.leadership import Leadership
from .group.member_states import MemberState
from .offsets import committed, committing
from .offsets import leader_requests as leaders
from .offsets.commits import STEP, USER, Commits
from .offsets.partition_state import PositionFailed
from .offsets.queries import OffsetQueries
from .partitions import TopicPartition
from .subscription import Mode
from .subscription_state import CLOSING, WISHES, SubscriptionState

Effects: TypeAlias = list[object]


class Consumer:
    """The machine; `owner` is its name in the client.

    lot: draws from 0 up to 1. clock_ms: tells milliseconds since the epoch.
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
        parts = Components.make(config, view, rng=rng, clock_ms=clock_ms, owner=owner)
        self.config = config
        self.subscription = parts.subscription
        self.positions = parts.positions
        self.membership = parts.membership
        self._parts = parts
        self._machines = parts.machines
        self._commits = Commits(parts)
        self._ours = Assignment(parts, self._commits)
        self._leadership = Leadership(parts)
        self._subscriptions = SubscriptionState(
            parts, self._ours, self._commits, self._leadership, owner
        )
        self._view = view
        self._owner = owner
        self._polling = False
        self._most = config.max_poll_records
        self._errors: deque[Exception] = deque()
        self._questions = OffsetQueries(parts)
        self.closed = False

    # -- the contract

    def handle(self, event: object, now: float) -> Effects:
        """Take an event of the user or of the network.

        Raises LocalProtocolError where the user asks for what is not possible now, InvalidValue
        and OutOfRange for values of a wrong type or out of range; then nothing has changed.
        """
        if self.closed:
            return []
        event = checked(event)
        wish, handler = WISHES.get(type(event)), HANDLERS.get(type(event))
        if wish is not None:
            effects = wish(self._subscriptions, event, now)
        elif handler is not None:
            effects = handler(self, event, now)
        else:
            raise LocalProtocolError(f"a consumer does not know what {type(event).__name__} is")
        return self._go_on(effects, now)

    def next_deadline(self) -> float | None:
        if self.closed:
            return None
        times = [part.next_deadline() for part in self._machines.values()]
        if self._polling and self._commits.by_itself:
            times.append(self._commits.due_at)
        return min((at for at in [*times, self._ours.close_by] if at is not None), default=None)

    def advance(self, now: float) -> Effects:
        if self.closed:
            return []
        effects: Effects = []
        for part in self._machines.values():
            due = part.next_deadline()
            if due is not None and due <= now:
                effects += part.advance(now)
        if self._polling:
            effects += self._commits.if_due(now)
        if self._ours.close_by is not None and self._ours.close_by <= now:
            effects += self._end()
        return self._go_on(effects, now)

    # -- what can be asked without waiting

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are ours."""
        return frozenset(self.positions)

    @property
    def settled(self) -> bool:
        """Whether nothing is under way that records must wait for."""
        return not self._ours.steps

    # -- reading

    def _poll(self, event: events.Poll, now: float) -> Effects:
        if self.subscription.mode is Mode.NONE:
            raise LocalProtocolError("subscribe to topics or assign partitions before polling")
        self._polling = True
        self._most = event.most or self.config.max_poll_records
        self.positions.try_again()
        effects = self._commits.if_due(now)
        return effects + self.membership.handle(member_states.Polled(), now)

    def _stop_polling(self, _event: object, now: float) -> Effects:
        if not self._polling:
            return []
        self._polling = False
        return self.membership.handle(member_states.Busy(), now)

    def _give_back(self, event: events.ReturnRecords, _now: float) -> Effects:
        self._parts.fetcher.fetch_buffer.give_back(event.records)
        return []

    def _deliver(self, now: float) -> Effects:
        """End the poll with an error or with records, if there is either."""
        if not self._polling or self._ours.steps:
            return []
        answer: object
        if self._errors:
            answer = events.Raise(self._errors.popleft())
        else:
            try:
                records = self._parts.fetcher.fetch_buffer.take(self._most)
            except FetchFailed as error:
                answer = events.Raise(error)
            else:
                if not records:
                    return []
                answer = events.Deliver(records)
        return [*self._stop_polling(None, now), answer]

    # -- committing

    def _commit(self, event: events.Commit, now: float) -> Effects:
        return self._commits.commit(event, now)

    def _committed_told(self, event: committing.Committed, now: float) -> Effects:
        self._commits.told(event)
        assert isinstance(event.commit.key, tuple)
        who, key = event.commit.key
        if who == USER:
            return [events.Done(key, event.error)]
        effects: Effects = [] if event.error is None else [events.Warn(event.error)]
        return effects + (self._ours.committed(key, now) if who == STEP else [])

    def _commit_refused(self, event: committing.CommitRefused, now: float) -> Effects:
        return self.membership.suspect(event.code, event.identity, now)

    # -- asking

    def _ask_committed(self, event: events.GetCommitted, now: float) -> Effects:
        return self._questions.ask_committed(event, now)

    def _ask_offsets(self, event: events.GetOffsets, now: float) -> Effects:
        return self._questions.ask_offsets(event, now)

    def _ask_position(self, event: events.GetPosition, _now: float) -> Effects:
        self._subscriptions.must_have([event.partition])
        self._questions.ask_position(event)
        return []

    def _withdraw(self, event: events.Withdraw, _now: float) -> Effects:
        self._questions.withdraw(event)
        return []

    # -- the group

    def _prepare(self, _event: object, _now: float) -> Effects:
        self._leadership.end()
        self._ours.prepare()
        return []

    def _compute(self, event: member_states.ComputeAssignments, now: float) -> Effects:
        self._leadership.begin(event)
        return self._subscriptions.track() + self._leadership.go_on(now)

    def _assigned(self, event: member_states.PartitionsAssigned, _now: float) -> Effects:
        self._ours.adopt(event)
        return []

    def _lost(self, event: member_states.PartitionsLost, _now: float) -> Effects:
        self._leadership.end()
        return self._ours.lost(event)

    def _left(self, _event: object, now: float) -> Effects:
        return self._ours.left(now)

    def _refused(self, event: member_states.GroupRefused, _now: float) -> Effects:
        self._errors.append(event.error)
        return []

    def _listener_done(self, event: events.ListenerDone, now: float) -> Effects:
        return self._ours.listener_done(event, now)

    # -- closing

    def _close(self, event: events.Close, now: float) -> Effects:
        if self._ours.close_by is not None:
            return []
        self._ours.close_by = now + event.timeout_s
        self._polling = False
        if self.membership.state is not MemberState.UNJOINED:
            self._ours.leave(CLOSING)
        else:
            self._ours.steps.add(rebalancing.CommitRead())
        self._ours.steps.add(rebalancing.End())
        return []

    def _end(self) -> Effects:
        effects = self._parts.fetcher.close()
        self.closed = True
        return [*effects, events.Closed()]

    # -- the network

    def _network(self, event: ResponseReceived | NoResponse, now: float) -> Effects:
        assert isinstance(event.request.key, tuple)
        return self._machines[event.request.key[0]].handle(event, now)

    def _metadata(self, event: MetadataChanged, now: float) -> Effects:
        self.positions.look_around()
        self._parts.fetcher.look_around(now)
        effects = self._parts.leaders.handle(event, now) + self._leadership.go_on(now)
        self._errors += self._subscriptions.refused()
        reason = ""
        if self.subscription.match(self._view):
            reason = "other topics match the pattern"
        elif self._leadership.outdated:
            reason = "the group's topics have other partitions"
        if reason and self.subscription.in_group:
            self._leadership.end()
            effects += self.membership.handle(member_states.JoinWanted(reason), now)
        return effects

    def _cluster_failed(self, event: ClusterFailed, _now: float) -> Effects:
        self._errors.append(ConsumerError(f"{event.reason.value}: {event.detail}"))
        return []

    # -- who tells whom

    def _go_on(self, effects: Effects, now: float) -> Effects:
        """Carry what parts say to each other, until only what others must hear is left."""
        out: Effects = []
        self._carry(effects, out, now)
        while self._ours.steps.pending:
            self._carry(self._ours.go_on(now), out, now)
        if self._ours.ended and not self.closed:
            out += self._end()
        while not self.closed:
            more = self.positions.wanted() + self._parts.fetcher.fetch(now) + self._deliver(now)
            if not more:
                break
            self._carry(more, out, now)
        return out + self._questions.answered()

    def _carry(self, effects: Effects, out: Effects, now: float) -> None:
        left = deque(effects)
        while left:
            effect = left.popleft()
            handler = INSIDE.get(type(effect))
            if handler is None:
                out.append(effect)
            else:
                left.extendleft(reversed(handler(self, effect, now)))

    def _fetch_committed(self, event: committed.FetchCommitted, now: float) -> Effects:
        return self._parts.committed.handle(event, now)

    def _committed_fetched(self, event: committed.CommittedFetched, _now: float) -> Effects:
        return self._questions.committed_fetched(event)

    def _leaders_answered(self, event: leaders.LeadersResponded, _now: float) -> Effects:
        return self._questions.leaders_answered(event)

    def _ask_leaders(self, event: leaders.RequestFromLeaders, now: float) -> Effects:
        return self._parts.leaders.handle(event, now)

    def _position_failed(self, event: PositionFailed, _now: float) -> Effects:
        self._errors.append(event.error)
        return []


C = Consumer
Handler: TypeAlias = Callable[..., Effects]

HANDLERS: Final[Mapping[type, Handler]] = {
    events.Poll: C._poll,
    events.StopPolling: C._stop_polling,
    events.ReturnRecords: C._give_back,
    events.ListenerDone: C._listener_done,
    events.Commit: C._commit,
    events.GetCommitted: C._ask_committed,
    events.GetOffsets: C._ask_offsets,
    events.GetPosition: C._ask_position,
    events.Withdraw: C._withdraw,
    events.Close: C._close,
    ResponseReceived: C._network,
    NoResponse: C._network,
    MetadataChanged: C._metadata,
    ClusterFailed: C._cluster_failed,
}
"""What comes from outside -> what to do."""

INSIDE: Final[Mapping[type, Handler]] = {
    member_states.Prepare: C._prepare,
    member_states.ComputeAssignments: C._compute,
    member_states.PartitionsAssigned: C._assigned,
    member_states.PartitionsLost: C._lost,
    member_states.GroupRefused: C._refused,
    member_states.Left: C._left,
    committing.Committed: C._committed_told,
    committing.CommitRefused: C._commit_refused,
    committed.FetchCommitted: C._fetch_committed,
    committed.CommittedFetched: C._committed_fetched,
    leaders.RequestFromLeaders: C._ask_leaders,
    leaders.LeadersResponded: C._leaders_answered,
    PositionFailed: C._position_failed,
}
"""What one part says to another -> who hears it."""
