"""The state machine of one consumer group (KIP-848).

Invariant: a partition has one member at a time, and epochs only grow.

    group epoch  >=  target assignment epoch  >=  member epochs
    (who is here, (computed by an assignor,     (what each member has)
    which topics)  at most every interval)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from ....protocol import ErrorCode
from ..topics import Topics, metadata_hash, partition_counts, topic_ids
from . import changes, checks
from .assignors import ASSIGNORS, MemberSpec
from .checks import Refusal
from .members import (
    JOIN,
    LEAVE_STATIC,
    NOTHING,
    Current,
    HeartbeatRequest,
    MemberState,
    Partitions,
    Subscription,
    TopicPartition,
)
from .metadata import DEADLINES, ConsumerGroupMetadata, RebalanceExpired, SessionExpired
from .reconciliation import Target, reconciled
from .regular_expressions import matching, pattern_error

E = ErrorCode
NO_SUBSCRIPTION: Final = Subscription()
NEW: Final = Current()
MIN_REFRESH_MS: Final = 10_000
"""The least time after which regular expressions are looked up again."""
REFRESH_MS: Final = 600_000
"""The time after which they are looked up again without new topics: the default of Kafka's internal
`group.consumer.regex.refresh.interval.ms`.
"""


class HeartbeatResult(NamedTuple):
    """The response to a heartbeat. assigned: None if it has not changed."""

    member_id: str
    member_epoch: int
    assigned: Partitions | None = None


class ConsumerGroup(ConsumerGroupMetadata):
    """One group. `next_deadline` returns when to call `advance`; time is monotonic seconds."""

    # -- the contract of every state machine

    def handle(
        self,
        request: HeartbeatRequest,
        topics: Topics,
        now: float,
        wall_ms: int,
    ) -> HeartbeatResult | Refusal:
        """Handle a heartbeat whose fields are valid. wall_ms: now, in milliseconds since 1970."""
        refusal = checks.identity_refusal(self, request) or self._regex_refusal(request)
        if refusal is not None:
            return refusal
        if request.member_epoch < JOIN:
            return self._leave(request, topics)
        if request.member_epoch == JOIN:
            self.replace_static(request)
        return self.reconcile(request, topics, now, wall_ms)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self.deadlines.next()

    def advance(self, topics: Topics, now: float) -> None:
        """Remove the members whose time is over."""
        while (due := self.deadlines.pop_due(now)) is not None:
            if due.member_id in self.subscriptions:
                self.remove((due.member_id,), topics)

    def loaded(self, now: float) -> None:
        """Let sessions and rebalance timeouts begin: another one has coordinated the group."""
        for member_id, subscription in self.subscriptions.items():
            self.renew_session(member_id, now)
            current = self.current.get(member_id, NEW)
            self._set_rebalance_deadline(member_id, subscription, current, now)

    def delete(self) -> None:
        """Delete a group without members."""
        assert not self.subscriptions
        self.change(changes.Deleted())

    def renew_session(self, member_id: str, now: float) -> None:
        """Let the session of a member begin anew."""
        self.deadlines.set(SessionExpired(member_id), now + self.session_timeout(member_id))

    # -- a heartbeat

    def _leave(self, request: HeartbeatRequest, topics: Topics) -> HeartbeatResult:
        member_id = request.member_id
        if request.member_epoch == LEAVE_STATIC:
            # it keeps its partitions for its successor, until its session expires
            current = replace(self.current.get(member_id, NEW), pending_revocation=NOTHING)
            self.change(changes.CurrentChanged(member_id, replace(current, epoch=LEAVE_STATIC)))
            self.deadlines.cancel(RebalanceExpired(member_id))
        else:
            self.remove((member_id,), topics)
        return HeartbeatResult(member_id, request.member_epoch)

    def replace_static(self, request: HeartbeatRequest) -> None:
        """Let a member that joins take the place of the static member with its instance id."""
        before, after = self.static_member(request.instance_id), request.member_id
        if before is None:
            return
        subscription, target = self.subscriptions[before], self.targets.get(before, NOTHING)
        current = replace(self.current.get(before, NEW), epoch=JOIN, previous_epoch=0)
        if before != after:
            self._remove(before)
            self.change(changes.SubscriptionChanged(after, subscription))
            self.change(changes.TargetChanged(after, target))
        self.change(changes.CurrentChanged(after, current))

    def reconcile(
        self,
        request: HeartbeatRequest,
        topics: Topics,
        now: float,
        wall_ms: int,
        assigns: bool = True,
    ) -> HeartbeatResult:
        """Handle the heartbeat or the JoinGroup of a member that may send it.

        assigns: whether it may compute a target assignment.
        """
        member_id = request.member_id
        before = self.current.get(member_id, NEW)
        self._subscribe(request, topics, wall_ms)
        if assigns and self.epoch > self.assignment_epoch and self._may_assign(wall_ms):
            self._assign(topics, wall_ms)
        target = Target(self.assignment_epoch, self.targets.get(member_id, NOTHING))
        after = reconciled(before, target, request.owned, self._is_free)
        if after != before or member_id not in self.current:
            self.change(changes.CurrentChanged(member_id, after))
            self._set_rebalance_deadline(member_id, self.subscriptions[member_id], after, now)
        self.renew_session(member_id, now)
        changed = request.is_full or after.assigned != before.assigned
        return HeartbeatResult(member_id, after.epoch, after.assigned if changed else None)

    def _subscribe(self, request: HeartbeatRequest, topics: Topics, wall_ms: int) -> None:
        """Take over what a member says of itself; a change of topics is a new group epoch."""
        subscription = self.subscriptions.get(request.member_id)
        before = subscription or NO_SUBSCRIPTION
        after = before.updated(request)
        if subscription is None or after != before:
            self.change(changes.SubscriptionChanged(request.member_id, after))
            self._drop_regex(before.topic_regex)
        self._resolve(request, topics, wall_ms)
        if self._metadata_changed(topics) or not after.subscribes_as(before):
            self._bump(topics)

    def _metadata_changed(self, topics: Topics) -> bool:
        """Whether the topics that the group is subscribed to have changed."""
        checked = topics.version, self.revision
        if checked == self.hashed:
            return False
        if metadata_hash(topics, self.topic_names) != self.metadata_hash:
            return True
        self.hashed = checked
        return False

    def _bump(self, topics: Topics) -> None:
        self.change(changes.EpochChanged(self.epoch + 1, metadata_hash(topics, self.topic_names)))
        self.hashed = topics.version, self.revision

    # -- regular expressions

    def _regex_refusal(self, request: HeartbeatRequest) -> Refusal | None:
        expression = request.topic_regex
        if not expression or expression in self.resolved:
            return None
        reason = pattern_error(expression)
        if reason is None:
            return None
        return Refusal(
            E.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}.",
        )

    def _resolve(self, request: HeartbeatRequest, topics: Topics, wall_ms: int) -> None:
        """Look up the topics of a member's new expression, or of all when that is due.

        Members share what an expression matches. As in Kafka, those are the topics that the member
        may describe whose heartbeat it was looked up for, whoever has sent the expression.
        """
        if request.classic is not None:
            return
        expression = self.subscriptions[request.member_id].topic_regex
        last = next(iter(self.resolved.values()), None)
        if last is not None and _is_stale(last, topics, wall_ms):
            due = list(self.regexes)
        else:
            due = [expression] if expression and expression not in self.resolved else []
        for each in due:
            matched = filter(request.may_describe, matching(each, topics.names()))
            self._set_resolved(each, changes.Resolved(frozenset(matched), topics.version, wall_ms))

    def _set_resolved(self, expression: str, resolved: changes.Resolved) -> None:
        before = self.resolved.get(expression)
        if before is None or before.topics != resolved.topics:
            self.change(changes.RegexResolved(expression, resolved))
        else:
            self.resolved[expression] = resolved  # the same topics: nothing to log

    def _drop_regex(self, expression: str) -> None:
        if expression in self.resolved and expression not in self.regexes:
            self.change(changes.RegexResolved(expression, None))

    # -- the target assignment

    def _may_assign(self, wall_ms: int) -> bool:
        interval_ms = int(self.config.assignment_interval * 1000)
        elapsed = wall_ms - self.assigned_at
        return not self.assignment_epoch or not 0 <= elapsed < interval_ms

    def _assign(self, topics: Topics, wall_ms: int) -> None:
        """Compute the target assignment of the group epoch."""
        specs = [
            MemberSpec(
                member_id,
                subscription.instance_id,
                topic_ids(topics, self.names_of(subscription)),
                self.targets.get(member_id, NOTHING),
            )
            for member_id, subscription in self.subscriptions.items()
        ]
        assignment = ASSIGNORS[self.assignor](specs, partition_counts(topics, self.topic_names))
        for member_id in self.subscriptions:
            partitions = frozenset(assignment.get(member_id, ()))
            if partitions != self.targets.get(member_id):
                self.change(changes.TargetChanged(member_id, partitions))
        self.change(changes.TargetEpochChanged(self.epoch, wall_ms))

    def _is_free(self, partition: TopicPartition) -> bool:
        return partition not in self.owners

    def _set_rebalance_deadline(
        self, member_id: str, subscription: Subscription, current: Current, now: float
    ) -> None:
        # one of the classic protocol has deadlines for its next JoinGroup and SyncGroup
        revokes = current.state is MemberState.UNREVOKED_PARTITIONS and subscription.classic is None
        timeout = subscription.rebalance_timeout_ms / 1000
        self.deadlines.set(RebalanceExpired(member_id), now + timeout if revokes else None)

    # -- members that go

    def remove(self, member_ids: Iterable[str], topics: Topics) -> None:
        """Remove members that left, or whose time is over."""
        for member_id in member_ids:
            expression = self.subscriptions[member_id].topic_regex
            self._remove(member_id)
            self._drop_regex(expression)
        if self.downgrades:
            return  # the generation of the classic group begins with this epoch
        self._bump(topics)
        if not self.subscriptions:
            self.change(changes.TargetEpochChanged(self.epoch, 0))

    def dissolve(self) -> None:
        """Remove all members, and delete the group: it becomes a classic one."""
        for member_id in list(self.subscriptions):
            self._remove(member_id)
        for expression in list(self.resolved):
            self.change(changes.RegexResolved(expression, None))
        self.delete()

    def _remove(self, member_id: str) -> None:
        self.change(changes.CurrentChanged(member_id, None))
        self.change(changes.TargetChanged(member_id, None))
        self.change(changes.SubscriptionChanged(member_id, None))
        for deadline in DEADLINES:
            self.deadlines.cancel(deadline(member_id))


def _is_stale(resolved: changes.Resolved, topics: Topics, wall_ms: int) -> bool:
    elapsed = wall_ms - resolved.timestamp
    if 0 <= elapsed < MIN_REFRESH_MS:
        return False
    return resolved.version < topics.created or not 0 <= elapsed <= REFRESH_MS
