"""The members of a Streams group: what they send, what they say of themselves, what they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, NamedTuple

from ..consumer_groups.members import JOIN, NOT_SET, MemberState
from .configured import Status
from .tasks import NOTHING, Task, Tasks
from .topology import Pairs, Topology


class StreamsGroupState(Enum):
    """A state; its value is its name in ListGroups."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics are missing, or do not fit the topology."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class UserEndpoint(NamedTuple):
    """Where a member serves interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Member:
    """What a member said of itself. process_id: that of all members of an application process."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = NOT_SET
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: Pairs = ()

    def assigns_as(self, other: Member) -> bool:
        """Whether what the assignment depends on is the same."""
        return (self.topology_epoch, self.rack_id, self.client_tags, self.process_id) == (
            other.topology_epoch,
            other.rack_id,
            other.client_tags,
            other.process_id,
        )

    @property
    def size(self) -> int:
        """Characters of its texts."""
        texts = (self.instance_id, self.rack_id, self.client_id, self.client_host, self.process_id)
        host = "" if self.user_endpoint is None else self.user_endpoint.host
        tags = sum(len(key) + len(value) for key, value in self.client_tags)
        return sum(len(text or "") for text in texts) + len(host) + tags


NEW_MEMBER: Final = Member()


class StreamsHeartbeat(NamedTuple):
    """A StreamsGroupHeartbeat; None for what does not change.

    owned: the tasks that the member has. owned_subtopologies: those of each type of task, also
    without partitions. task_offsets, task_end_offsets: of the changelogs of tasks.
    endpoint_epoch: of the endpoints that the member knows.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NOT_SET
    topology: Topology | None = None
    owned: Tasks | None = None
    owned_subtopologies: tuple[frozenset[str], ...] = ()
    process_id: str | None = None
    user_endpoint: UserEndpoint | None = None
    client_tags: Pairs | None = None
    task_offsets: Mapping[Task, int] | None = None
    task_end_offsets: Mapping[Task, int] | None = None
    endpoint_epoch: int = 0
    shuts_down: bool = False
    client_id: str = ""
    client_host: str = ""
    version: int = 1

    @property
    def joins(self) -> bool:
        """Whether the member joins, so that the response has its tasks."""
        return self.member_epoch == JOIN

    def member(self, before: Member) -> Member:
        """Return what the member says of itself after this heartbeat."""
        sent: dict[str, Any] = {
            "instance_id": self.instance_id,
            "rack_id": self.rack_id,
            "process_id": self.process_id,
            "client_tags": self.client_tags,
            "user_endpoint": self.user_endpoint,
            "topology_epoch": None if self.topology is None else self.topology.epoch,
        }
        changed = {name: value for name, value in sent.items() if value is not None}
        if self.joins:
            changed["user_endpoint"] = self.user_endpoint
        if self.rebalance_timeout_ms != NOT_SET:
            changed["rebalance_timeout_ms"] = self.rebalance_timeout_ms
        return replace(before, client_id=self.client_id, client_host=self.client_host, **changed)


@dataclass(frozen=True, slots=True)
class Current:
    """What a member has now.

    epoch: which it has reached. previous_epoch: that of a member that missed the last response.
    assigned: the tasks that it may run. pending_revocation: those that it must give up first.
    since: the epochs since which it has the active tasks of both.
    """

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Tasks = NOTHING
    pending_revocation: Tasks = NOTHING
    since: Mapping[Task, int] = field(default_factory=dict, compare=False)

    def since_epoch(self, task: Task) -> int | None:
        """Return the epoch since which it has an active task; None if it does not have it."""
        if task not in self.assigned.active and task not in self.pending_revocation.active:
            return None
        return self.since.get(task, self.epoch)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has its target assignment of an epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


NEW: Final = Current()


class TaskOffsets(NamedTuple):
    """The offsets of the changelogs of tasks, as a member reported them, and their ends."""

    offsets: Mapping[Task, int]
    end_offsets: Mapping[Task, int]


NO_OFFSETS: Final = TaskOffsets({}, {})


class EndpointPartitions(NamedTuple):
    """The partitions of the tasks at an endpoint: topic -> partitions, in order."""

    endpoint: UserEndpoint
    active: Mapping[str, list[int]]
    standby: Mapping[str, list[int]]


class HeartbeatResult(NamedTuple):
    """The response to a heartbeat.

    assigned, endpoints: None if they have not changed. endpoint_epoch: of the endpoints.
    """

    member_id: str
    member_epoch: int
    assigned: Tasks | None = None
    status: tuple[Status, ...] = ()
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
