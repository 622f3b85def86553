"""The members of a consumer group (KIP-848): they consume, and commit their positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from kafkawire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkawire.metadata import TopicIdPartition
from kafkawire.node.invariants import values
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode

from ..checker import Checker
from ..clients import FETCH_VERSION, fetch, fetched
from ..network import Callback
from ..workload import MAIN
from . import members
from .consumer_checker import ConsumerChecker, Partitions
from .exchanges import Observer
from .members import JOIN, LEFT, Counts, Member

E = ErrorCode
GROUP: Final = "consuming"
OFFSETS_VERSION: Final = 10
"""Of OffsetCommit and OffsetFetch."""
REBALANCE_TIMEOUT_MS: Final = 3_000
POLL_EVERY: Final = (0.05, 0.4)
MAX_WAIT_MS: Final = 200


class Cluster(members.Cluster, Protocol):
    """What members of consumer groups need of the simulation, besides."""

    checker: Checker

    def call(self, target: int, version: int, body: Message, callback: Callback) -> None: ...

    def is_coordinator(self, node: int) -> bool:
        """Whether a node coordinates the groups in the newest epoch."""


@dataclass
class ConsumerGroup:
    """What the members have in common."""

    cluster: Cluster
    checker: ConsumerChecker
    counts: Counts = field(default_factory=Counts)


@dataclass
class Position:
    """Where a member is in a partition. offset: None until it has fetched the committed one."""

    offset: int | None = None
    committed: int = -1


class ConsumerMember(Member):
    """A member of a consumer group."""

    group_id, version = GROUP, 1

    def __init__(self, group: ConsumerGroup, member_id: str) -> None:
        super().__init__(group.cluster, group.counts, member_id)
        self.group = group
        self.cluster: Cluster = group.cluster
        self._positions: dict[TopicIdPartition, Position] = {}
        self.heartbeat()

    # -- membership

    def heartbeat_request(self, epoch: int) -> Message:
        """Make a heartbeat."""
        topics: dict[bytes, list[int]] = {}
        for key in sorted(self.partitions):
            topics.setdefault(key.topic_id, []).append(key.partition)
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=[MAIN] if self.is_full and epoch != LEFT else None,
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in topics.items()
            ],
        )

    def observer(self, node: int) -> Observer | None:
        """Return what takes note of the response that a node sends to the next heartbeat."""
        return partial(self._sent, node, self.epoch, self.cluster.now)

    def _sent(self, node: int, epoch: int, since: float, body: Any) -> None:
        checker = self.group.checker
        if body.error_code:
            return
        assignment = None if body.assignment is None else Partitions(members.assigned(body))
        if not self.cluster.is_coordinator(node):
            if assignment is not None:
                checker.shrunk(self.member_id, assignment)
            return
        if epoch == JOIN:
            checker.joined(self.member_id)
        checker.accepts(self.member_id, since, "heartbeat")
        if assignment is not None:
            checker.assigned(self.member_id, assignment, self.cluster.now)

    def assign(self, partitions: set[TopicIdPartition]) -> None:
        """Commit the positions of partitions to give up; begin with new ones."""
        for key in sorted(self.partitions - partitions):
            self._commit(key, self._positions.pop(key))
        added, self.partitions = partitions - self.partitions, partitions
        for key in sorted(added):
            self._positions[key] = Position()
            self._poll(key, self._positions[key])

    def lose(self) -> None:
        """Consume nothing: others may have the partitions."""
        self.partitions = set()
        self._positions.clear()

    def leave(self, *, orderly: bool) -> None:
        """Go; if orderly, with all positions committed."""
        if orderly:
            for key, position in self._positions.items():
                self._commit(key, position)
        super().leave(orderly=orderly)

    # -- records

    def _poll(self, key: TopicIdPartition, position: Position) -> None:
        """Fetch the committed offset, or records."""
        if self._positions.get(key) is not position:
            return
        image = self.cluster.image()
        partition = None if image is None else image.partition(key)
        if position.offset is None:
            self._fetch_offset(key, position)
        elif partition is not None and partition.leader in self.cluster.live():
            body = fetch(key.topic_id, key.partition, position.offset, MAX_WAIT_MS)
            respond = partial(self._fetched, key, position)
            self.cluster.call(partition.leader, FETCH_VERSION, body, respond)
        else:
            self._poll_later(key, position)

    def _poll_later(self, key: TopicIdPartition, position: Position) -> None:
        self.later(self.cluster.rng.uniform(*POLL_EVERY), partial(self._poll, key, position))

    def _fetched(self, key: TopicIdPartition, position: Position, body: Any) -> None:
        """Consume records, and commit the position after them."""
        if not self.running or self._positions.get(key) is not position:
            return
        assert position.offset is not None
        data = fetched(body)
        if data is not None and data.error_code == E.OFFSET_OUT_OF_RANGE:
            position.offset = max(position.offset, self.cluster.checker.deleted.get(key, 0))
        elif data is not None and not data.error_code:
            for offset, _ in values(data.records):
                if offset >= position.offset:
                    self.group.checker.consumed(key, offset)
                    position.offset = offset + 1
        self._commit(key, position)
        self._poll_later(key, position)

    # -- offsets

    def _fetch_offset(self, key: TopicIdPartition, position: Position) -> None:
        topic = OffsetFetchRequestTopics(topic_id=key.topic_id, partition_indexes=[key.partition])
        group = OffsetFetchRequestGroup(
            group_id=GROUP, member_id=self.member_id, member_epoch=self.epoch, topics=[topic]
        )
        since = self.cluster.now

        def sent(node: int, body: Any) -> None:
            if self.cluster.is_coordinator(node):
                for offset in _offsets(body):
                    self.group.checker.fetched(key, offset, since)

        def responded(body: Any) -> None:
            for offset in _offsets(body):
                position.offset = max(offset, 0)
                position.committed = offset
            self._poll_later(key, position)

        request = OffsetFetchRequest(groups=[group])
        if not self._exchange(request, sent, responded):
            self._poll_later(key, position)

    def _commit(self, key: TopicIdPartition, position: Position) -> None:
        offset, since = position.offset, self.cluster.now
        if offset is None or offset <= position.committed:
            return
        partition = OffsetCommitRequestPartition(
            partition_index=key.partition, committed_offset=offset
        )
        topic = OffsetCommitRequestTopic(topic_id=key.topic_id, partitions=[partition])
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[topic],
        )

        def sent(_node: int, body: Any) -> None:
            if _commit_error(body) is E.NONE:
                self.group.checker.accepts(self.member_id, since, "commit")
                self.group.checker.committed(key, offset, self.cluster.now)

        def responded(body: Any) -> None:
            error = _commit_error(body)
            self.counts.add(f"commit {error.name}")
            if error is E.NONE:
                position.committed = max(position.committed, offset)

        self._exchange(request, sent, responded)

    def _exchange(
        self,
        request: Message,
        sent: Callable[[int, Any], None],
        responded: Callback,
    ) -> bool:
        """Send a request to the coordinator, if there is one; return whether it is."""
        coordinator = self.coordinator
        if coordinator is None or not coordinator.is_open:
            return False
        observer = partial(sent, coordinator.server)
        coordinator.send(OFFSETS_VERSION, request, responded, observer=observer)
        return True


def _commit_error(body: Any) -> ErrorCode:
    if body is None:
        return E.NETWORK_EXCEPTION
    return E(body.topics[0].partitions[0].error_code)


def _offsets(body: Any) -> Iterable[int]:
    """Return the offset of an OffsetFetch response for one partition, unless it is an error."""
    if body is None or body.groups[0].error_code:
        return []
    return [
        partition.committed_offset
        for topic in body.groups[0].topics
        for partition in topic.partitions
        if not partition.error_code
    ]
