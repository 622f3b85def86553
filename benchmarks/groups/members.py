"""Measures what 100,000 members of consumer groups (KIP-848) cost one broker, in virtual time.

The members are in groups of GROUP, all of a topic that has as many partitions. All join, and
send heartbeats every INTERVAL_S, until each has one partition and no response says anything new;
then they go on for STEADY_ROUNDS. Requests are encoded and decoded as on a connection, and the
broker writes the groups to `__consumer_offsets`. A figure is CPU time a member or a heartbeat, of
the broker and of what plays the members together.
"""

from __future__ import annotations

from time import process_time
from typing import Final

from kafkawire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from tests.broker.harness import Harness

from ..measure import Figure, figure

TOPIC: Final = "shared"
GROUP: Final = 100
"""Members of a group."""
SIZES: Final = (1_000, 10_000, 100_000)
"""Members of a broker."""
INTERVAL_S: Final = 5.0
STEADY_ROUNDS: Final = 3
MOST_ROUNDS: Final = 20
"""Heartbeats of a member within which its group settles."""
VERSION: Final = 1
FIND_VERSION: Final = 6


class Group:
    """The members of a group, on one connection."""

    def __init__(self, harness: Harness, number: int) -> None:
        self._name = f"group-{number}"
        self._client = harness.client()
        self._epochs = [0] * GROUP
        self._owned: list[list[TopicPartitions]] = [[] for _ in range(GROUP)]
        self._changed = set(range(GROUP))
        """Members whose next heartbeat says what they have."""

    def beat(self) -> None:
        """Send a heartbeat of each member."""
        for member in range(GROUP):
            self._beat(member)

    def _beat(self, member: int) -> None:
        epoch = self._epochs[member]
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._name,
            member_id=f"{self._name}-{member}",
            member_epoch=epoch,
            rebalance_timeout_ms=-1 if epoch else 60_000,
            subscribed_topic_names=None if epoch else [TOPIC],
            topic_partitions=self._owned[member] if member in self._changed else None,
        )
        response = self._client.exchange(request, VERSION, ConsumerGroupHeartbeatResponse)
        assert not response.error_code, response
        self._changed.discard(member)
        if response.assignment is not None:
            self._changed.add(member)
            self._owned[member] = [
                TopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions)
                for topic in response.assignment.topic_partitions
            ]
        elif response.member_epoch != epoch:
            self._changed.add(member)
        self._epochs[member] = response.member_epoch

    @property
    def is_settled(self) -> bool:
        """Whether the last responses had no news, and each member has a partition of its own."""
        owned = [index for topics in self._owned for topic in topics for index in topic.partitions]
        return not self._changed and sorted(owned) == list(range(GROUP))


def measure(members: int) -> tuple[float, float]:
    """Return the CPU time until groups settle, in ms a member, and of a heartbeat then, in ms."""
    harness = Harness(topics={TOPIC: GROUP}, release="4.4")
    request = FindCoordinatorRequest(coordinator_keys=["group-0"])
    harness.client().exchange(request, FIND_VERSION, FindCoordinatorResponse)
    groups = [Group(harness, number) for number in range(members // GROUP)]
    start = process_time()
    for _ in range(MOST_ROUNDS):
        if all(group.is_settled for group in groups):
            break
        _beat(harness, groups)
    assert all(group.is_settled for group in groups)
    settled = process_time()
    for _ in range(STEADY_ROUNDS):
        _beat(harness, groups)
    steady = process_time() - settled
    return (settled - start) / members * 1e3, steady / STEADY_ROUNDS / members * 1e3


def _beat(harness: Harness, groups: list[Group]) -> None:
    for group in groups:
        group.beat()
    harness.advance(INTERVAL_S)


def run(rounds: int) -> list[Figure]:
    """Measure; milliseconds of CPU time."""
    figures = []
    for members in SIZES:
        values = [measure(members) for _ in range(rounds)]
        for index, case in enumerate(("a member settles", "a heartbeat")):
            name = f"{members:,} members: {case}"
            taken = [each[index] for each in values]
            figures.append(figure("group-members", name, "kafkawire", "ms", taken))
    return figures
