"""A member of a Streams group over the wire, and the topologies of tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkawire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafkawire.messages.streams_group_describe_response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)
from kafkawire.messages.streams_group_heartbeat_request import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kafkawire.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

from .harness import Client, Harness
from .members import coordinator

GROUP = "g"
AT_ONCE = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
"""Settings with which each change is assigned at once."""
Held = tuple[tuple[tuple[str, int], ...], ...]
"""The active, standby and warm-up tasks of a member: (subtopology, partition), in order."""


def word_count(epoch: int = 0, source: str = "t") -> Topology:
    """Return the topology of a word count: it repartitions what it reads, and counts that."""
    repartition = TopicInfo(
        name="g-counts-repartition",
        topic_configs=[KeyValue(key="cleanup.policy", value="delete")],
    )
    changelog = TopicInfo(
        name="g-counts-changelog",
        topic_configs=[KeyValue(key="cleanup.policy", value="compact")],
    )
    return Topology(
        epoch=epoch,
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=[source],
                repartition_sink_topics=[repartition.name],
            ),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[repartition],
                state_changelog_topics=[changelog],
            ),
        ],
    )


def task_ids(tasks: Iterable[tuple[str, int]]) -> list[TaskIds]:
    """Return tasks as a request has them."""
    return [TaskIds(subtopology_id=each, partitions=[index]) for each, index in tasks]


def tasks_in(items: Iterable[Any] | None) -> tuple[tuple[str, int], ...]:
    """Return the tasks in a response, in order."""
    return tuple(
        sorted((each.subtopology_id, at) for each in items or () for at in each.partitions)
    )


class StreamsMember:
    """A member that does what it is assigned: it reports the tasks that it has."""

    def __init__(self, harness: Harness, member_id: str, **fields: Any) -> None:
        self.harness = harness
        self.member_id = member_id
        self.fields = {"process_id": f"process of {member_id}", **fields}
        self.epoch = 0
        self.held: Held = ((), (), ())

    @property
    def client(self) -> Client:
        return coordinator(self.harness, GROUP)

    def exchange(
        self, epoch: int | None = None, version: int = 1, **fields: Any
    ) -> StreamsGroupHeartbeatResponse:
        """Send a heartbeat with its own epoch, or another one, and return the response."""
        epoch = self.epoch if epoch is None else epoch
        values: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": self.member_id,
            "member_epoch": epoch,
            **self.fields,
        }
        if epoch == 0:
            values |= {
                "rebalance_timeout_ms": 60_000,
                "topology": word_count(),
                "active_tasks": [],
                "standby_tasks": [],
                "warmup_tasks": [],
            }
        elif epoch > 0:
            names = ("active_tasks", "standby_tasks", "warmup_tasks")
            values |= {name: task_ids(tasks) for name, tasks in zip(names, self.held, strict=True)}
        request = StreamsGroupHeartbeatRequest(**{**values, **fields})
        return self.client.exchange(request, version, StreamsGroupHeartbeatResponse)

    def beat(self, epoch: int | None = None, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Send a heartbeat that is not refused, and take over the tasks in the response."""
        response = self.exchange(epoch, **fields)
        assert not response.error_code, response
        self.epoch = response.member_epoch
        if response.active_tasks is not None:
            self.held = (
                tasks_in(response.active_tasks),
                tasks_in(response.standby_tasks),
                tasks_in(response.warmup_tasks),
            )
        return response

    def join(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Join, and let the internal topics be created."""
        self.beat(0, **fields)
        self.harness.advance(1.0)
        return self.beat()


def settle(*members: StreamsMember) -> None:
    """Send heartbeats until no member gets other tasks or another epoch."""
    for _ in range(20):
        before = [(each.epoch, each.held) for each in members]
        for each in members:
            each.beat()
        if [(each.epoch, each.held) for each in members] == before:
            return
    raise AssertionError("the members do not settle")


def described(harness: Harness, group: str = GROUP, **fields: Any) -> DescribedGroup:
    """Describe a group."""
    request = StreamsGroupDescribeRequest(group_ids=[group], **fields)
    client = coordinator(harness, group)
    [result] = client.exchange(request, 1, StreamsGroupDescribeResponse).groups
    return result
