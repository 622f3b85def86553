"""The state machine of one share group (KIP-932).

Invariant: only partitions whose state is initialized are assigned, and epochs only grow. A
partition may have several members: there is nothing to revoke first.

    group epoch  >=  target assignment epoch  >=  member epochs
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..consumer_groups.assignors import MemberSpec
from ..consumer_groups.changes import (
    CurrentChanged,
    Deleted,
    EpochChanged,
    SubscriptionChanged,
    TargetChanged,
    TargetEpochChanged,
)
from ..consumer_groups.checks import Refusal
from ..consumer_groups.group import HeartbeatResult
from ..consumer_groups.members import JOIN, NOTHING, Current, Partitions
from ..topics import Topics, metadata_hash, partition_counts, topic_ids
from .assignor import simple
from .checks import identity_refusal
from .members import ShareHeartbeat, StatePartitions, StatePartitionsChanged
from .metadata import NEW, NO_SUBSCRIPTION, SessionExpired, ShareGroupMetadata


class ShareGroup(ShareGroupMetadata):
    """One group. `next_deadline` returns when to call `advance`; time is monotonic seconds."""

    # -- the contract of every state machine

    def handle(
        self, request: ShareHeartbeat, topics: Topics, now: float, wall_ms: int
    ) -> HeartbeatResult | Refusal:
        """Handle a heartbeat whose fields are valid. wall_ms: now, in milliseconds since 1970."""
        refusal = identity_refusal(self, request)
        if refusal is not None:
            return refusal
        if request.member_epoch < JOIN:
            self.remove(request.member_id, topics)
            return HeartbeatResult(request.member_id, request.member_epoch)
        return self._heartbeat(request, topics, now, wall_ms)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self.deadlines.next()

    def advance(self, topics: Topics, now: float) -> None:
        """Remove the members whose time is over."""
        while (due := self.deadlines.pop_due(now)) is not None:
            if due.member_id in self.subscriptions:
                self.remove(due.member_id, topics)

    def loaded(self, now: float) -> None:
        """Let sessions begin: another broker has coordinated the group.

        What was being initialized is requested again, as nobody waits for that any more.
        """
        for member_id in self.subscriptions:
            self.deadlines.set(SessionExpired(member_id), now + self.config.session_timeout)
        self.state_partitions = replace(self.state_partitions, initializing=NOTHING)

    def create(self, topics: Topics) -> None:
        """Create a group that nobody has joined."""
        self.change(EpochChanged(self.epoch, metadata_hash(topics, ())))
        self.change(TargetEpochChanged(self.epoch, 0))

    def delete(self) -> None:
        """Delete a group without members."""
        assert not self.subscriptions
        if self.state_partitions != StatePartitions():
            self.change(StatePartitionsChanged(None))
        self.change(Deleted())

    # -- a heartbeat

    def _heartbeat(
        self, request: ShareHeartbeat, topics: Topics, now: float, wall_ms: int
    ) -> HeartbeatResult:
        member_id = request.member_id
        before = self.current.get(member_id, NEW)
        former = self.subscriptions.get(member_id)
        subscription = request.subscription(former or NO_SUBSCRIPTION)
        subscribes_anew = former is None or not subscription.subscribes_as(former)
        if subscription != former:
            self.change(SubscriptionChanged(member_id, subscription))
        if subscribes_anew or self._metadata_changed(topics) or self._assignable_changed(topics):
            self.bump(topics)
        if self.epoch > self.assignment_epoch and self._may_assign(wall_ms):
            self._assign(topics, wall_ms)
        after = self._reconciled(member_id, before)
        if after != before or member_id not in self.current:
            self.change(CurrentChanged(member_id, after))
        self.deadlines.set(SessionExpired(member_id), now + self.config.session_timeout)
        changed = request.is_full or after.assigned != before.assigned
        return HeartbeatResult(member_id, after.epoch, after.assigned if changed else None)

    def _metadata_changed(self, topics: Topics) -> bool:
        """Whether the topics that the group is subscribed to have changed."""
        if topics.version == self.hashed:
            return False
        if metadata_hash(topics, self.topic_names) != self.metadata_hash:
            return True
        self.hashed = topics.version
        return False

    def bump(self, topics: Topics) -> None:
        """Move to the next group epoch."""
        self.change(EpochChanged(self.epoch + 1, metadata_hash(topics, self.topic_names)))
        self.hashed = topics.version

    def _reconciled(self, member_id: str, current: Current) -> Current:
        if current.epoch == self.assignment_epoch:
            return current
        assigned = self.targets.get(member_id, NOTHING)
        return Current(self.assignment_epoch, current.epoch, assigned=assigned)

    # -- the target assignment

    def assignable(self, topics: Topics) -> Partitions:
        """Return the partitions that members are subscribed to and whose state is initialized."""
        return self._subscribed(topics) & self.state_partitions.initialized

    def _subscribed(self, topics: Topics) -> Partitions:
        return _partitions(topics, self.topic_names)

    def _assignable_changed(self, topics: Topics) -> bool:
        """Whether the state of partitions was initialized since the target was computed."""
        if self.epoch > self.assignment_epoch:
            return False
        assigned = frozenset[tuple[bytes, int]]().union(*self.targets.values())
        return not self.assignable(topics) <= assigned

    def _may_assign(self, wall_ms: int) -> bool:
        interval_ms = int(self.config.assignment_interval * 1000)
        elapsed = wall_ms - self.assigned_at
        return not self.assignment_epoch or not 0 <= elapsed < interval_ms

    def _assign(self, topics: Topics, wall_ms: int) -> None:
        """Compute the target assignment of the group epoch."""
        specs = [
            MemberSpec(
                member_id,
                None,
                topic_ids(topics, subscription.topic_names),
                self.targets.get(member_id, NOTHING),
            )
            for member_id, subscription in self.subscriptions.items()
        ]
        assignment = simple(specs, self.assignable(topics))
        for member_id in self.subscriptions:
            partitions = frozenset(assignment.get(member_id, ()))
            if partitions != self.targets.get(member_id):
                self.change(TargetChanged(member_id, partitions))
        self.change(TargetEpochChanged(self.epoch, wall_ms))

    # -- the state of partitions

    def uninitialized(self, topics: Topics) -> Partitions:
        """Return the partitions that members are subscribed to and that have no state yet."""
        states = self.state_partitions
        return self._subscribed(topics) - states.initialized - states.initializing

    @property
    def topics_with_state(self) -> frozenset[bytes]:
        """The topics that have state, are to have it, or whose deletion is not confirmed."""
        states = self.state_partitions
        return frozenset(each[0] for each in states.initialized | states.initializing).union(
            states.deleting
        )

    def partitions_with_state(self, of: frozenset[bytes], topics: Topics) -> Partitions:
        """Return the partitions whose state a deletion of topics is to delete.

        Of a topic whose deletion is not confirmed, e.g. as the group had another coordinator, this
        is each partition: share coordinators delete what there is.
        """
        states = self.state_partitions
        unconfirmed = filter(None, map(topics.name, of & states.deleting))
        return _partitions(topics, unconfirmed).union(
            each for each in states.initialized | states.initializing if each[0] in of
        )

    def initializing(self, partitions: Partitions) -> None:
        """Take note that the state of partitions is requested."""
        states = self.state_partitions
        self._states(replace(states, initializing=states.initializing | partitions))

    def initialized(
        self, done: Iterable[tuple[bytes, int]], failed: Iterable[tuple[bytes, int]]
    ) -> None:
        """Take note that partitions have their state, but those that could not get it.

        One whose topic was deleted meanwhile is not initialized any more.
        """
        states = self.state_partitions
        initialized = states.initializing & frozenset(done) - frozenset(failed)
        self._states(
            replace(
                states,
                initializing=states.initializing - frozenset(done),
                initialized=states.initialized | initialized,
            )
        )

    def deleting(self, deleted: frozenset[bytes]) -> None:
        """Take note that the state of topics is to be deleted: they have none from now on."""
        states = self.state_partitions
        self._states(
            StatePartitions(
                frozenset(each for each in states.initializing if each[0] not in deleted),
                frozenset(each for each in states.initialized if each[0] not in deleted),
                states.deleting | deleted,
            )
        )

    def deleted(self, deleted: frozenset[bytes]) -> None:
        """Take note that the state of topics is deleted."""
        states = self.state_partitions
        self._states(replace(states, deleting=states.deleting - deleted))

    def topics_deleted(self, deleted: frozenset[bytes]) -> None:
        """Forget deleted topics, whose state the share coordinators delete by themselves."""
        self.deleting(deleted)
        self.deleted(deleted)

    def _states(self, after: StatePartitions) -> None:
        if after != self.state_partitions:
            self.change(StatePartitionsChanged(after))

    # -- members that go

    def remove(self, member_id: str, topics: Topics) -> None:
        """Remove a member that left, or whose time is over."""
        self.change(CurrentChanged(member_id, None))
        self.change(TargetChanged(member_id, None))
        self.change(SubscriptionChanged(member_id, None))
        self.deadlines.cancel(SessionExpired(member_id))
        self.bump(topics)
        if not self.subscriptions:
            self.change(TargetEpochChanged(self.epoch, 0))


def _partitions(topics: Topics, names: Iterable[str]) -> Partitions:
    """Return the partitions of the topics that exist."""
    return frozenset(
        (topic_id, index)
        for topic_id, count in partition_counts(topics, names).items()
        for index in range(count)
    )
