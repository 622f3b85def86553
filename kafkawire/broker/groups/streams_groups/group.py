"""The state machine of one Streams group (KIP-1071).

Invariant: an active task has one member at a time, no task is assigned before all topics of the
topology exist, and epochs only grow.

    group epoch  >=  target assignment epoch  >=  member epochs
    (who is here, (computed by the assignor,     (what each member has)
    which topics)  at most every interval)
"""

from __future__ import annotations

from dataclasses import replace

from ..consumer_groups.changes import TargetEpochChanged
from ..consumer_groups.checks import Refusal
from ..consumer_groups.members import JOIN, LEAVE_STATIC, MemberState
from ..consumer_groups.metadata import RebalanceExpired, SessionExpired
from ..topics import Topics
from .assignor import Subtopologies, TaskMember, sticky
from .changes import (
    CurrentChanged,
    Deleted,
    EpochChanged,
    MemberChanged,
    TargetChanged,
    TopologyChanged,
)
from .checks import identity_refusal
from .configured import ConfiguredTopology, Status
from .endpoints import endpoints
from .members import NEW, NEW_MEMBER, NO_OFFSETS, Current, HeartbeatResult, Member, StreamsHeartbeat
from .metadata import InitialDelayOver, StreamsGroupMetadata
from .plan import Plan, plan_of
from .reconciliation import Reconciliation, Target
from .status import delayed, lasting_status, stale_status
from .tasks import NOTHING


class StreamsGroup(StreamsGroupMetadata):
    """One group. `next_deadline` returns when to call `advance`; time is monotonic seconds."""

    # -- the contract of every state machine

    def handle(
        self, request: StreamsHeartbeat, topics: Topics, now: float, wall_ms: int
    ) -> HeartbeatResult | Refusal:
        """Handle a heartbeat whose fields are valid. wall_ms: now, in milliseconds since 1970."""
        refusal = identity_refusal(self, request)
        if refusal is not None:
            return refusal
        if request.member_epoch < JOIN:
            return self._leave(request)
        plan = plan_of(self, request, topics)
        if isinstance(plan, Refusal):
            return plan
        return self._heartbeat(request, plan, topics, now, wall_ms)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self.deadlines.next()

    def advance(self, now: float, wall_ms: int) -> None:
        """Remove the members whose time is over; assign tasks after the initial delay."""
        while (due := self.deadlines.pop_due(now)) is not None:
            if isinstance(due, InitialDelayOver):
                if self.members and self.configured is not None:
                    self._assign(self.configured, wall_ms)
            elif due.member_id in self.members:
                self.remove(due.member_id)

    def loaded(self, now: float) -> None:
        """Let sessions and rebalance timeouts begin: another one has coordinated the group."""
        for member_id, member in self.members.items():
            self._renew_session(member_id, now)
            self._set_rebalance_deadline(member_id, member, self.current.get(member_id, NEW), now)

    def delete(self) -> None:
        """Delete a group without members."""
        assert not self.members
        self.change(Deleted())

    # -- members that go

    def _leave(self, request: StreamsHeartbeat) -> HeartbeatResult:
        member_id = request.member_id
        if request.shuts_down:
            self._shut_down(member_id)
        if request.member_epoch == LEAVE_STATIC and request.instance_id is not None:
            # it keeps its tasks for its successor, until its session expires
            current = self.current.get(member_id, NEW)
            left = replace(
                current,
                epoch=LEAVE_STATIC,
                pending_revocation=NOTHING,
                since=dict.fromkeys(current.assigned.active, 0),
            )
            self.change(CurrentChanged(member_id, left))
            self.deadlines.cancel(RebalanceExpired(member_id))
        else:
            self.remove(member_id)
        return HeartbeatResult(member_id, request.member_epoch)

    def remove(self, member_id: str) -> None:
        """Remove a member that left, or whose time is over."""
        self._remove(member_id)
        self.change(
            EpochChanged(self.epoch + 1, self.metadata_hash, self.validated_epoch, self.configs)
        )
        if not self.members:
            self.change(TargetEpochChanged(self.epoch, 0))

    def _remove(self, member_id: str) -> None:
        self.change(CurrentChanged(member_id, None))
        self.change(TargetChanged(member_id, None))
        self.change(MemberChanged(member_id, None))
        self.deadlines.cancel(SessionExpired(member_id))
        self.deadlines.cancel(RebalanceExpired(member_id))

    def _shut_down(self, member_id: str) -> None:
        if self.shut_down_by is None:
            self.shut_down_by = member_id

    # -- a heartbeat

    def _heartbeat(
        self, request: StreamsHeartbeat, plan: Plan, topics: Topics, now: float, wall_ms: int
    ) -> HeartbeatResult:
        member_id, was_empty = request.member_id, not self.members
        self._replace_static(request)
        before = self.current.get(member_id, NEW)
        former = self.members.get(member_id)
        member = request.member(former or NEW_MEMBER)
        assigns_anew = self._take_member(request, former, member)
        assigns_anew |= self._take_topology(plan, topics)
        self._take_offsets(request)
        validated = plan.topology.epoch if plan.configured.is_ready else -1
        configs = self.config.of_assignor
        if assigns_anew or validated != self.validated_epoch or configs != self.configs:
            self.change(EpochChanged(self.epoch + 1, plan.metadata_hash, validated, configs))
        if was_empty and self.config.initial_delay > 0 and not self._is_delayed:
            self.deadlines.set(InitialDelayOver(), now + self.config.initial_delay)
        status = [*stale_status(self, member), *self._assign_if_due(plan.configured, wall_ms)]
        after = self._reconciled(request, member, before)
        if after != before or member_id not in self.current:
            self.change(CurrentChanged(member_id, after))
            self._set_rebalance_deadline(member_id, member, after, now)
        self._renew_session(member_id, now)
        if request.shuts_down:
            self._shut_down(member_id)
        assigned_changed = after.assigned != before.assigned
        self._note_endpoint(former, member, assigned_changed)
        shown = self.endpoint_epoch != request.endpoint_epoch
        status += lasting_status(self, request, plan.configured, member)
        return HeartbeatResult(
            member_id,
            after.epoch,
            after.assigned if request.joins or assigned_changed else None,
            tuple(status),
            self.endpoint_epoch,
            endpoints(self, member_id, topics) if shown else None,
        )

    def _note_endpoint(self, former: Member | None, member: Member, assigned_changed: bool) -> None:
        """Take note that the partitions at an endpoint have changed, if they have."""
        endpoint = member.user_endpoint
        moved = endpoint != (former or NEW_MEMBER).user_endpoint
        if moved or (assigned_changed and endpoint is not None):
            self.endpoint_epoch += 1

    def _replace_static(self, request: StreamsHeartbeat) -> None:
        """Let a member that joins take the place of the static member with its instance id."""
        before, after = self.static_member(request.instance_id), request.member_id
        if before is None or not request.joins:
            return
        member, target = self.members[before], self.targets.get(before, NOTHING)
        current = replace(self.current.get(before, NEW), epoch=JOIN, previous_epoch=0)
        self._remove(before)
        self.change(MemberChanged(after, member))
        self.change(TargetChanged(after, target))
        self.change(CurrentChanged(after, current))

    def _take_member(
        self, request: StreamsHeartbeat, former: Member | None, member: Member
    ) -> bool:
        """Take over what a member says of itself; return whether tasks are assigned anew."""
        if member == former:
            return False
        self.change(MemberChanged(request.member_id, member))
        if request.instance_id is None:
            return True
        return not member.assigns_as(former or NEW_MEMBER)

    def _take_topology(self, plan: Plan, topics: Topics) -> bool:
        """Take over the topology; return whether its topics have changed."""
        changed = plan.metadata_hash != self.metadata_hash
        if self.topology is None:
            self.change(TopologyChanged(plan.topology))
        self.configured, self.hashed = plan.configured, topics.version
        return changed

    def _take_offsets(self, request: StreamsHeartbeat) -> None:
        sent = request.task_offsets, request.task_end_offsets
        if sent == (None, None):
            return
        before = self.offsets.get(request.member_id, NO_OFFSETS)
        self.offsets[request.member_id] = before._replace(
            offsets=before.offsets if sent[0] is None else sent[0],
            end_offsets=before.end_offsets if sent[1] is None else sent[1],
        )

    def _reconciled(self, request: StreamsHeartbeat, member: Member, current: Current) -> Current:
        tasks = NOTHING if self._is_delayed else self.targets.get(request.member_id, NOTHING)
        target = Target(self.assignment_epoch, tasks)
        return Reconciliation(current, target, request.owned, member.process_id, self).next()

    def _renew_session(self, member_id: str, now: float) -> None:
        self.deadlines.set(SessionExpired(member_id), now + self.config.session_timeout)

    def _set_rebalance_deadline(
        self, member_id: str, member: Member, current: Current, now: float
    ) -> None:
        revokes = current.state is MemberState.UNREVOKED_PARTITIONS
        timeout = member.rebalance_timeout_ms / 1000
        self.deadlines.set(RebalanceExpired(member_id), now + timeout if revokes else None)

    # -- the target assignment

    @property
    def _is_delayed(self) -> bool:
        """Whether a new group waits for more members."""
        return InitialDelayOver() in self.deadlines

    def _assign_if_due(self, topology: ConfiguredTopology, wall_ms: int) -> list[Status]:
        """Compute the target assignment of the group epoch, or return why it is delayed."""
        if self._is_delayed:
            return [delayed("initial rebalance delay")]
        if self.epoch <= self.assignment_epoch:
            return []
        interval_ms = int(self.config.assignment_interval * 1000)
        if self.assigned_at and 0 <= wall_ms - self.assigned_at < interval_ms:
            return [delayed("assignment interval")]
        self._assign(topology, wall_ms)
        return []

    def _assign(self, topology: ConfiguredTopology, wall_ms: int) -> None:
        assignment = {}
        if topology.is_ready and topology.tasks is not None and self.topology is not None:
            stateful = frozenset(
                each.subtopology_id for each in self.topology.subtopologies if each.is_stateful
            )
            members = [
                TaskMember(
                    member_id,
                    member.process_id,
                    self.current.get(member_id, NEW).assigned,
                    self.offsets.get(member_id, NO_OFFSETS).offsets,
                )
                for member_id, member in self.members.items()
            ]
            replicas = self.config.standby_replicas
            assignment = sticky(members, Subtopologies(topology.tasks, stateful), replicas)
        for member_id in self.members:
            tasks = assignment.get(member_id, NOTHING)
            if tasks != self.targets.get(member_id):
                self.change(TargetChanged(member_id, tasks))
        self.change(TargetEpochChanged(self.epoch, wall_ms))
