"""Workers of each group protocol: classic, consumer (KIP-848) and Streams (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkawire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkawire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from kafkawire.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from kafkawire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafkawire.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    Topology,
)
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.metadata import TopicIdPartition
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode
from kafkawire.protocol.versioned import encode_versioned, try_versioned

from ..groups.members import HEARTBEAT_EVERY, JOIN, LEFT
from ..workload import MAIN
from .steps import Call, Pause, Steps, play
from .workers import GROUP, Pipeline, Worker

E = ErrorCode
REBALANCE_TIMEOUT_MS: Final = 3_000
SUBTOPOLOGY: Final = "0"
CONSUMER: Final = "consumer"
"""The protocol type of consumers: their groups may migrate."""
ASSIGNOR: Final = "range"
EMBEDDED_VERSION: Final = 3
SUBSCRIPTION: Final = encode_versioned(
    ConsumerProtocolSubscription(topics=[MAIN]), EMBEDDED_VERSION
)


class ConsumerWorker(Worker):
    """A member of a consumer group."""

    version = 1

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


class StreamsWorker(Worker):
    """A member of a Streams group: it has a task for each partition."""

    version = 1

    def heartbeat_request(self, epoch: int) -> Message:
        """Make a heartbeat."""
        subtopology = Subtopology(subtopology_id=SUBTOPOLOGY, source_topics=[MAIN])
        indexes = sorted(key.partition for key in self.partitions)
        tasks = [TaskIds(subtopology_id=SUBTOPOLOGY, partitions=indexes)] if indexes else []
        return StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            process_id=self.member_id,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            topology=Topology(epoch=0, subtopologies=[subtopology]) if epoch == JOIN else None,
            active_tasks=tasks if epoch >= JOIN else None,
            standby_tasks=[] if epoch >= JOIN else None,
            warmup_tasks=[] if epoch >= JOIN else None,
        )

    def assignment(self, body: Any) -> set[TopicIdPartition] | None:
        """Return the active tasks in a response, if it has them."""
        image = self.cluster.image()
        topic = None if image is None else image.topic(MAIN)
        if body.active_tasks is None or topic is None:
            return None
        return {
            TopicIdPartition(topic.topic_id, index)
            for task in body.active_tasks
            for index in task.partitions
        }


class ClassicWorker(Worker):
    """A member of a classic group: with each rebalance it gives up all partitions."""

    version = 4

    def heartbeat_request(self, epoch: int) -> Message:
        """Make a heartbeat, or leave."""
        if epoch == LEFT:
            return LeaveGroupRequest(
                group_id=GROUP, members=[MemberIdentity(member_id=self.member_id)]
            )
        return HeartbeatRequest(group_id=GROUP, generation_id=epoch, member_id=self.member_id)

    def fetching(self) -> dict[str, Any]:
        """Return no fields: classic members are not checked."""
        return {}

    def heartbeat(self) -> None:
        """Be a member from now on."""
        self.member_id = ""
        play(self.cluster, self._membership())

    def _membership(self) -> Steps:
        while self.running:
            while self._in_transaction:
                yield Pause(0.05)
            self.lose()
            if (yield from self._join()):
                while self.running and (yield from self._is_member()):
                    yield Pause(HEARTBEAT_EVERY)
            yield Pause(0.1)

    def _exchange(self, version: int, request: Message) -> Steps:
        body = yield Call((yield from self.group_coordinator.find()), version, request)
        error = E.NETWORK_EXCEPTION if body is None else E(body.error_code)
        self.counts.add(f"{type(request).__name__} {error.name}")
        if error in (E.NETWORK_EXCEPTION, E.NOT_COORDINATOR):
            self.group_coordinator.forget()
        if error is E.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        return error, body

    def _indexes(self) -> list[int]:
        image = self.cluster.image()
        topic = None if image is None else image.topic(MAIN)
        return [] if topic is None else list(topic.partitions)

    def _join(self) -> Steps:
        """Join the group, and get an assignment; return whether it is a member."""
        self.is_full = True
        error, body = yield from self._exchange(
            9,
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=2_000,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self.member_id,
                protocol_type=CONSUMER,
                protocols=[JoinGroupRequestProtocol(name=ASSIGNOR, metadata=SUBSCRIPTION)],
            ),
        )
        if error is E.MEMBER_ID_REQUIRED:
            self.member_id = body.member_id
            return (yield from self._join())
        if error is not E.NONE:
            return False
        self.member_id, self.epoch = body.member_id, body.generation_id
        self._assigned_to = self._indexes()
        members = [each.member_id for each in body.members]
        error, body = yield from self._exchange(
            5,
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=self.epoch,
                member_id=self.member_id,
                protocol_type=CONSUMER,
                protocol_name=ASSIGNOR,
                assignments=[
                    SyncGroupRequestAssignment(
                        member_id=member,
                        assignment=assignment(self._assigned_to[index :: len(members)]),
                    )
                    for index, member in enumerate(members)
                ],
            ),
        )
        image = self.cluster.image()
        topic = None if image is None else image.topic(MAIN)
        if error is not E.NONE or topic is None or not body.assignment:
            return False
        reading = try_versioned(ConsumerProtocolAssignment.__name__, body.assignment)
        assert reading is not None
        self.assign(
            {
                TopicIdPartition(topic.topic_id, partition)
                for each in reading.value.assigned_partitions
                for partition in each.partitions
            }
        )
        return True

    def _is_member(self) -> Steps:
        """Send a heartbeat; return whether the generation is the current one."""
        if self._indexes() not in ([], self._assigned_to):
            return False
        error, _ = yield from self._exchange(self.version, self.heartbeat_request(self.epoch))
        return error in (E.NONE, E.NETWORK_EXCEPTION, E.NOT_COORDINATOR) or (
            error is E.COORDINATOR_LOAD_IN_PROGRESS
        )

    def leave(self, *, orderly: bool) -> None:
        """Go; if orderly, the coordinator gets to know."""
        super().leave(orderly=False)
        if orderly:
            self._works_until, self.producer.stall = self.cluster.now, None
            play(self.cluster, self._exchange(5, self.heartbeat_request(LEFT)))


def assignment(indexes: list[int]) -> bytes:
    """Encode partitions of the topic that is read as a leader of a classic group does."""
    topics = [AssignedTopic(topic=MAIN, partitions=indexes)] if indexes else []
    message = ConsumerProtocolAssignment(assigned_partitions=topics)
    return encode_versioned(message, EMBEDDED_VERSION)


def migrating(pipeline: Pipeline, member_id: str, slot: int) -> Worker:
    """Make a member of either protocol: the group migrates between them as they come and go."""
    worker = pipeline.cluster.rng.choice((ClassicWorker, ConsumerWorker))
    return worker(pipeline, member_id, slot)


WORKERS: Final[tuple[Callable[[Pipeline, str, int], Worker], ...]] = (
    ConsumerWorker,
    StreamsWorker,
    ClassicWorker,
    migrating,
)
"""By the number of the seed among those with pipelines."""
