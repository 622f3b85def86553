"""The state of one Streams group, and how its changes make it.

Invariant: a group changes only by `apply`, also when it is loaded; so the records of its changes
restore it. What the members report of offsets and endpoints is not logged, as in Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...deadlines import Deadlines
from ..consumer_groups.changes import TargetEpochChanged
from ..consumer_groups.members import INITIAL_EPOCH
from ..consumer_groups.metadata import RebalanceExpired, SessionExpired, count_each
from .changes import (
    Change,
    CurrentChanged,
    Deleted,
    EpochChanged,
    MemberChanged,
    TargetChanged,
    TopologyChanged,
)
from .configured import ConfiguredTopology
from .members import NEW, Current, Member, StreamsGroupState, TaskOffsets
from .tasks import Task, Tasks
from .topology import Pairs, Topology

S = StreamsGroupState
NO_EPOCH: Final = -1
STANDBY_REPLICAS: Final = "num.standby.replicas"
RACK_TAGS: Final = "rack.aware.assignment.tags"


class StreamsGroupConfig(NamedTuple):
    """The settings of a group; times in seconds.

    initial_delay: how long a new group waits for more members. assignment_interval: the least time
    between two target assignments. rack_tags: keys of client tags that each member should have.
    """

    session_timeout: float = 45.0
    heartbeat_interval: float = 5.0
    assignment_interval: float = 0.0
    initial_delay: float = 0.0
    standby_replicas: int = 0
    rack_tags: tuple[str, ...] = ()
    max_size: int = 2**31 - 1

    @property
    def of_assignor(self) -> Pairs:
        """What an assignment depends on, as its record has it."""
        tags = ((RACK_TAGS, ",".join(self.rack_tags)),) if self.rack_tags else ()
        return ((STANDBY_REPLICAS, str(self.standby_replicas)), *tags)


DEFAULT_CONFIG: Final = StreamsGroupConfig()


@dataclass(frozen=True, slots=True)
class InitialDelayOver:
    """Deadline: a new group has waited for more members."""


Deadline = SessionExpired | RebalanceExpired | InitialDelayOver


class StreamsGroupMetadata:
    """One group. `changes` holds those that are not yet logged.

    epoch, assignment_epoch: of the group and of its target assignment. assigned_at: when that was
    computed, in milliseconds since 1970. validated_epoch: of the topology whose topics fit, -1 for
    none. configs: those of the last assignment. configured: None before the first heartbeat here.
    endpoint_epoch: rises when the partitions at endpoints change. shut_down_by: the member that
    requested that all shut down.
    """

    def __init__(self, group_id: str, config: StreamsGroupConfig = DEFAULT_CONFIG) -> None:
        self.group_id = group_id
        self.config = config
        self.epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.validated_epoch = NO_EPOCH
        self.configs: Pairs = ()
        self.assignment_epoch = INITIAL_EPOCH
        self.assigned_at = 0
        self.topology: Topology | None = None
        self.members: dict[str, Member] = {}
        self.current: dict[str, Current] = {}
        self.targets: dict[str, Tasks] = {}
        self.changes: list[Change] = []
        self.deadlines: Deadlines[Deadline] = Deadlines()
        self.configured: ConfiguredTopology | None = None
        self.hashed = -1
        """The version of the topics whose hash is `metadata_hash`; -1 if it must be compared."""
        self.offsets: dict[str, TaskOffsets] = {}
        self.endpoint_epoch = 0
        self.shut_down_by: str | None = None
        self._size = 0
        self._static: dict[str, str] = {}
        self._active: dict[Task, str] = {}
        self._standby: Counter[tuple[Task, str]] = Counter()
        self._warmup: Counter[tuple[Task, str]] = Counter()
        self._stable: Counter[int] = Counter()
        """Epoch -> the members that are reconciled to it."""

    # -- what it is

    @property
    def population(self) -> int:
        """Number of members."""
        return len(self.members)

    @property
    def size(self) -> int:
        """Characters of what the members said of themselves, and of the topology."""
        return self._size + (0 if self.topology is None else self.topology.size)

    @property
    def state(self) -> StreamsGroupState:
        """Its state, which follows from the epochs."""
        if not self.members:
            return S.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return S.NOT_READY
        if self.epoch > self.assignment_epoch:
            return S.ASSIGNING
        settled = self._stable[self.assignment_epoch] == len(self.members)
        return S.STABLE if settled else S.RECONCILING

    @property
    def source_topics(self) -> frozenset[str]:
        """The topics that members read; none without members."""
        if self.topology is None or not self.members:
            return frozenset()
        return frozenset(self.topology.by_source)

    def static_member(self, instance_id: str | None) -> str | None:
        """Return the member id of a static member."""
        return None if instance_id is None else self._static.get(instance_id)

    def member_epoch(self, member_id: str) -> int:
        """Return the epoch of a member."""
        return self.current.get(member_id, NEW).epoch

    def since_epoch(self, member_id: str, topic: str, partition: int) -> int | None:
        """Return since which epoch a member reads a partition; None if it does not."""
        subtopology = None if self.topology is None else self.topology.by_source.get(topic)
        if subtopology is None:
            return None
        return self.current.get(member_id, NEW).since_epoch((subtopology, partition))

    # -- which processes have a task

    def active_process(self, task: Task) -> str | None:
        """Return the process that runs a task."""
        return self._active.get(task)

    def has_standby(self, task: Task, process_id: str) -> bool:
        """Whether a process has a standby task."""
        return self._standby[task, process_id] > 0

    def has_warmup(self, task: Task, process_id: str) -> bool:
        """Whether a process has a warm-up task."""
        return self._warmup[task, process_id] > 0

    # -- changes

    def change(self, change: Change) -> None:
        """Apply a change, which the coordinator will log."""
        self.apply(change)
        self.changes.append(change)

    def forget_unlogged(self) -> None:
        """Forget what is not logged of the heartbeat that created the group, as Kafka does."""
        self.offsets.clear()
        self.endpoint_epoch = 0
        self.shut_down_by = None

    def apply(self, change: Change) -> None:
        """Apply a change: a new one, or one of the log."""
        match change:
            case EpochChanged():
                self.epoch, self.metadata_hash, self.validated_epoch, self.configs = change
            case TopologyChanged(topology):
                self.topology, self.configured, self.hashed = topology, None, -1
            case TargetEpochChanged():
                self.assignment_epoch, self.assigned_at = change
            case TargetChanged(member_id, None):
                self.targets.pop(member_id, None)
            case TargetChanged(member_id, tasks):
                assert tasks is not None
                self.targets[member_id] = tasks
            case MemberChanged(member_id, member):
                self._apply_member(member_id, member)
            case CurrentChanged(member_id, current):
                self._apply_current(member_id, current)
            case Deleted():
                self.epoch = self.assignment_epoch = INITIAL_EPOCH
                self.topology = self.configured = None

    def _apply_member(self, member_id: str, after: Member | None) -> None:
        before, current = self.members.get(member_id), self.current.get(member_id, NEW)
        if before is not None:
            self._size -= before.size
            self._hold(current, before.process_id, -1)
            if self._static.get(before.instance_id or "") == member_id:
                del self._static[before.instance_id or ""]
        if after is None:
            self.members.pop(member_id, None)
            self.offsets.pop(member_id, None)
            if not self.members:
                self.shut_down_by = None
            return
        self._size += after.size
        self.members[member_id] = after
        self._hold(current, after.process_id, 1)
        if after.instance_id is not None:
            self._static[after.instance_id] = member_id

    def _apply_current(self, member_id: str, after: Current | None) -> None:
        before = self.current.pop(member_id, None) if after is None else self.current.get(member_id)
        member = self.members.get(member_id)
        for current, sign in ((before, -1), (after, 1)):
            if current is None:
                continue
            if current.is_reconciled_to(current.epoch):
                count_each(self._stable, (current.epoch,), sign)
            if member is not None:
                self._hold(current, member.process_id, sign)
        if after is not None:
            self.current[member_id] = after

    def _hold(self, current: Current, process_id: str, sign: int) -> None:
        """Take note that a process has the tasks of a member, or that it no longer has them."""
        tasks = current.assigned.union(current.pending_revocation)
        for task in tasks.active:
            if sign > 0:
                self._active[task] = process_id
            elif self._active.get(task) == process_id:
                del self._active[task]
        self._hold_copies(self._standby, tasks.standby, process_id, sign)
        self._hold_copies(self._warmup, tasks.warmup, process_id, sign)

    def _hold_copies(
        self,
        copies: Counter[tuple[Task, str]],
        tasks: Iterable[Task],
        process_id: str,
        sign: int,
    ) -> None:
        count_each(copies, ((task, process_id) for task in tasks), sign)
