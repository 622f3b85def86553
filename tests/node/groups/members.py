"""The members of a group with heartbeats (KIP-848, KIP-932): they come, and go."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.metadata import MetadataImage, TopicIdPartition
from kafkawire.node.invariants import Violation
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode

from .exchanges import Exchanges, Observer

E = ErrorCode
FIND_VERSION: Final = 4
HEARTBEAT_EVERY: Final = 0.5
JOIN: Final = 0
LEFT: Final = -1
REMOVED: Final = frozenset({E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND})
"""Errors after which a member joins again."""
NEXT_MEMBER: Final = (0.5, 2.5)
MOST: Final = 3


class Cluster(Protocol):
    """What members need of the simulation."""

    rng: random.Random
    now: float

    def image(self) -> MetadataImage | None: ...

    def at(self, when: float, action: Any) -> None: ...

    def connect(self, target: int, listener: str = "PLAINTEXT") -> Exchanges: ...

    def live(self) -> list[int]: ...


class Counts(dict[str, int]):
    """How often something happened."""

    def add(self, what: str) -> None:
        """Count it once more."""
        self[what] = self.get(what, 0) + 1


class Member(ABC):
    """A member. epoch: of its next heartbeat. partitions: those that it has."""

    group_id: ClassVar[str]
    version: ClassVar[int]
    """Of its heartbeats."""

    def __init__(self, cluster: Cluster, counts: Counts, member_id: str) -> None:
        self.cluster = cluster
        self.counts = counts
        self.member_id = member_id
        self.epoch = JOIN
        self.partitions: set[TopicIdPartition] = set()
        self.running = True
        self.is_full = True
        """Whether the next heartbeat has all: the coordinator may not know it."""
        self.coordinator: Exchanges | None = None

    @abstractmethod
    def heartbeat_request(self, epoch: int) -> Message:
        """Make a heartbeat. epoch: `LEFT` to leave."""

    def assignment(self, body: Any) -> set[TopicIdPartition] | None:
        """Return the assignment in a response to a heartbeat, if it has one."""
        return None if body.assignment is None else assigned(body)

    def observer(self, _node: int) -> Observer | None:
        """Return what takes note of the response that a node sends to the next heartbeat."""
        return None

    @abstractmethod
    def assign(self, partitions: set[TopicIdPartition]) -> None:
        """Take over an assignment."""

    @abstractmethod
    def lose(self) -> None:
        """Give up all partitions: the coordinator has removed the member."""

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something after a while, unless the member has gone."""
        self.cluster.at(self.cluster.now + seconds, lambda: self.running and action())

    def heartbeat(self) -> None:
        """Send heartbeats from now on, to the coordinator once there is one."""
        if self.coordinator is None or not self.coordinator.is_open:
            self._find_coordinator()
            return
        request = self.heartbeat_request(self.epoch)
        self.is_full = True  # unless its response arrives
        observer = self.observer(self.coordinator.server)
        self.coordinator.send(self.version, request, self._responded, observer=observer)

    def _find_coordinator(self) -> None:
        self.later(HEARTBEAT_EVERY, self.heartbeat)
        live = self.cluster.live()
        if not live:
            return
        exchanges = self.cluster.connect(self.cluster.rng.choice(live))
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id])

        def located(body: Any) -> None:
            exchanges.close()
            coordinator = None if body is None else body.coordinators[0]
            if self.running and coordinator is not None and not coordinator.error_code:
                self.coordinator = self.cluster.connect(coordinator.node_id)

        exchanges.send(FIND_VERSION, request, located)

    def _responded(self, body: Any) -> None:
        if not self.running:
            return
        error = E.NETWORK_EXCEPTION if body is None else E(body.error_code)
        self.counts.add(f"heartbeat {error.name}")
        if error is E.UNSUPPORTED_VERSION:
            raise Violation(f"{self.member_id}: the cluster has no groups of its kind")
        if error is E.NONE:
            self.epoch, self.is_full = body.member_epoch, False
            partitions = self.assignment(body)
            if partitions is not None:
                self.assign(partitions)
        elif error in REMOVED:
            self.epoch = JOIN
            self.lose()
        elif self.coordinator is not None:
            self.coordinator.close()
        self.later(HEARTBEAT_EVERY, self.heartbeat)

    def leave(self, *, orderly: bool) -> None:
        """Go; if orderly, the coordinator gets to know."""
        self.running = False
        if self.coordinator is None or not self.coordinator.is_open:
            return
        if orderly:
            coordinator = self.coordinator
            request = self.heartbeat_request(LEFT)
            coordinator.send(self.version, request, lambda _: coordinator.close())
        else:
            self.coordinator.close()


def assigned(body: Any) -> set[TopicIdPartition]:
    """Return the partitions of a response to a heartbeat that has an assignment."""
    return {
        TopicIdPartition(topic.topic_id, index)
        for topic in body.assignment.topic_partitions
        for index in topic.partitions
    }


M = TypeVar("M", bound=Member)


class Members(Generic[M]):
    """The members of a group. new: makes one with an id."""

    def __init__(self, cluster: Cluster, new: Callable[[str], M]) -> None:
        self._cluster = cluster
        self._new = new
        self.members: list[M] = []
        self._is_settled = False
        self._numbers = 0

    def come_and_go(self) -> None:
        """Let members come or go from now on; one at least stays."""
        if self._is_settled and self.members:
            return
        rng = self._cluster.rng
        if len(self.members) <= 1 or (len(self.members) < MOST and rng.random() < 0.5):
            self.come()
        else:
            self.go()
        self._cluster.at(self._cluster.now + rng.uniform(*NEXT_MEMBER), self.come_and_go)

    def come(self) -> None:
        """Let a member come."""
        self._numbers += 1
        self.members.append(self._new(f"member-{self._numbers}"))

    def go(self) -> None:
        """Let a member go."""
        rng = self._cluster.rng
        self.members.pop(rng.randrange(len(self.members))).leave(orderly=rng.random() < 0.5)

    def settle(self) -> None:
        """Let members stay."""
        self._is_settled = True

    def partitions(self) -> set[TopicIdPartition]:
        """Return what they have."""
        return {key for member in self.members for key in member.partitions}
