"""Restored clusters: whatever was committed is found again.

The model is a dict of what each group committed. A coordinator that moved, and a cluster that
starts from copies of the disks, say the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkawire import ErrorCode
from kafkawire.broker.topics import OFFSETS_TOPIC
from kafkawire.configs import ResourceType
from kafkawire.log import InternalLog
from kafkawire.messages.delete_groups_request import DeleteGroupsRequest
from kafkawire.messages.delete_groups_response import DeleteGroupsResponse
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribeGroupsResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.list_groups_response import ListGroupsResponse
from kafkawire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkawire.messages.offset_delete_response import OffsetDeleteResponse
from tests.fuzzing import examples

from ..real.dump import dump
from ..real.java import Installation
from .fetches import fetched
from .harness import EPOCH_MS, Client, Harness
from .log.test_log import batch, produce
from .members import Committed, Members, Offsets, come, commit, committed, coordinator, leave

E = ErrorCode
GROUPS = ("g", "h", "readers", "polygenelubricants")
PARTITIONS = (("t", 0), ("t", 1), ("u", 0))
RETENTION_S = 2_400
SETTINGS = {
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "group.initial.rebalance.delay.ms": "1000",
    "offsets.topic.num.partitions": "3",
    "offsets.retention.minutes": str(RETENTION_S // 60),
}


def described(harness: Harness, group: str) -> tuple[Any, ...]:
    """What a group is; one that is only its name is like none."""
    requested = DescribeGroupsRequest(groups=[group])
    [found] = coordinator(harness, group).exchange(requested, 5, DescribeGroupsResponse).groups
    if not found.protocol_type and not found.members and not committed(harness, group):
        return ()
    members = sorted(
        (m.member_id, m.group_instance_id, m.client_id, m.member_metadata, m.member_assignment)
        for m in found.members
    )
    return found.group_state, found.protocol_type, found.protocol_data, members


def everything(harness: Harness) -> dict[str, tuple[Offsets, tuple[Any, ...]]]:
    return {group: (committed(harness, group), described(harness, group)) for group in GROUPS}


class OffsetsMachine(RuleBasedStateMachine):
    """Groups come, commit, delete and go on two brokers that come and go themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness(2, settings=SETTINGS)
        for name, count in (("t", 2), ("u", 1)):
            self.harness.create_topic(name, count, 2)
        self.model: dict[str, dict[tuple[str, int], tuple[Committed, float | None]]] = {
            group: {} for group in GROUPS
        }
        self.members = {group: Members() for group in GROUPS}
        coordinator(self.harness, "g")

    @property
    def wall_ms(self) -> float:
        return EPOCH_MS + self.harness.now * 1000

    # -- what happens

    @rule(
        group=st.sampled_from(GROUPS),
        where=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True),
        offset=st.integers(0, 2**40),
        leader_epoch=st.integers(-1, 3),
        metadata=st.sampled_from(["", "m", "\N{SNOWMAN}" * 9]),
        version=st.sampled_from([0, 2, 4, 5, 6, 8, 9]),
        retention_ms=st.sampled_from([-1, 60_000]),
    )
    def commits(
        self,
        group: str,
        where: list[tuple[str, int]],
        offset: int,
        leader_epoch: int,
        metadata: str,
        version: int,
        retention_ms: int,
    ) -> None:
        members = self.members[group]
        if members.ids and version < 1:
            return
        expires = retention_ms >= 0 and 2 <= version <= 4
        epoch = leader_epoch if version >= 6 else -1
        given: Offsets = {each: (offset + each[1], epoch, metadata) for each in where}
        client = coordinator(self.harness, group)
        assert commit(client, group, given, members, version, retention_ms) == {E.NONE}
        until = self.wall_ms + retention_ms if expires else None
        self.model[group] |= {each: (value, until) for each, value in given.items()}

    @rule(group=st.sampled_from(GROUPS), where=st.sampled_from(PARTITIONS))
    def deletes_an_offset(self, group: str, where: tuple[str, int]) -> None:
        one = OffsetDeleteRequestPartition(partition_index=where[1])
        topic = OffsetDeleteRequestTopic(name=where[0], partitions=[one])
        request = OffsetDeleteRequest(group_id=group, topics=[topic])
        response = coordinator(self.harness, group).exchange(request, 0, OffsetDeleteResponse)
        if not response.error_code and not response.topics[0].partitions[0].error_code:
            self.model[group].pop(where, None)

    @rule(group=st.sampled_from(GROUPS))
    def deletes_a_group(self, group: str) -> None:
        request = DeleteGroupsRequest(groups_names=[group])
        response = coordinator(self.harness, group).exchange(request, 2, DeleteGroupsResponse)
        if not response.results[0].error_code:
            self.model[group].clear()

    @rule(group=st.sampled_from(GROUPS), static=st.lists(st.booleans(), min_size=1, max_size=3))
    def members_come(self, group: str, static: list[bool]) -> None:
        if not self.members[group].ids:
            self.members[group] = come(self.harness, group, static)
            self.whoever_was_silent_is_out()

    @rule(group=st.sampled_from(GROUPS))
    def members_leave(self, group: str) -> None:
        if self.members[group].ids:
            leave(self.harness, group, self.members[group])
            self.members[group] = Members()

    @rule(seconds=st.sampled_from([1.0, 61.0, 121.0]))
    def time_passes(self, seconds: float) -> None:
        self.harness.advance(seconds)
        self.whoever_was_silent_is_out()

    def whoever_was_silent_is_out(self) -> None:
        """And the rest of its group goes as well, so that groups are stable or empty."""
        for group, members in self.members.items():  # whoever was silent is out, or says so
            found = described(self.harness, group)
            left = {each[0] for each in found[3]} if found else set()
            rest = [each for each in members.ids if each[0] in left]
            if len(rest) < len(members.ids):
                if rest:
                    leave(self.harness, group, Members(rest))
                self.members[group] = Members()

    @rule(partition=st.integers(0, 2), node=st.integers(1, 2))
    def coordinator_moves(self, partition: int, node: int) -> None:
        if node in self.harness.alive:
            self.harness.move_leader(OFFSETS_TOPIC, partition, node)

    @precondition(lambda self: len(self.harness.alive) == 2)
    @rule(node=st.integers(1, 2))
    def broker_stops(self, node: int) -> None:
        self.harness.stop_broker(node)

    @precondition(lambda self: len(self.harness.alive) == 1)
    @rule()
    def broker_starts(self) -> None:
        [alive] = self.harness.alive
        self.harness.start_broker(3 - alive)

    @rule()
    def cluster_is_built_again(self) -> None:
        """Continue in the restored cluster."""
        self.harness = self.harness.restored()

    # -- the laws

    @invariant()
    def what_was_committed_is_there(self) -> None:
        for group, offsets in self.model.items():
            found = committed(self.harness, group)
            for where, (value, until) in list(offsets.items()):
                if until is not None and until <= self.wall_ms and where not in found:
                    del offsets[where]  # expired, and looked for
                else:
                    assert found.pop(where) == value
            assert found == {}

    @rule()
    def a_cluster_built_again_says_the_same(self) -> None:
        reported = everything(self.harness)
        assert {found[0] for _, found in reported.values() if found} <= {"Stable", "Empty"}
        assert everything(self.harness.restored()) == reported

    def teardown(self) -> None:
        """Offsets expire when they would have: the log says since when nobody has used them."""
        again = self.harness.restored()
        again.advance(RETENTION_S + 1000.0 + 700.0)  # members are silent, the offsets checked
        assert all(committed(again, group) == {} for group in GROUPS)
        for partition in range(3):
            coordinator = again.groups(again.leader_of(OFFSETS_TOPIC, partition)).of(partition)
            assert not isinstance(coordinator, ErrorCode)
            assert not coordinator.groups


OffsetsMachine.TestCase.settings = settings(max_examples=examples(3), stateful_step_count=15)
TestOffsets = pytest.mark.fuzz(OffsetsMachine.TestCase)


def committed_and_left() -> Harness:
    """Two brokers; broker 1 coordinates `g`, a member of which committed 7 and left."""
    harness = Harness(
        2, settings={**SETTINGS, "offsets.topic.num.partitions": "1"}, load_seconds=2.0
    )
    harness.create_topic("t", 2, 2)
    coordinator(harness, "g")
    harness.move_leader(OFFSETS_TOPIC, 0, 1)
    harness.advance(2.0)
    members = come(harness, "g", [False, True])
    assert commit(coordinator(harness, "g"), "g", {("t", 0): (7, -1, "")}, members) == {E.NONE}
    leave(harness, "g", members)
    return harness


def test_a_coordinator_that_still_reads_says_so() -> None:
    harness = committed_and_left()
    old = coordinator(harness, "g")
    harness.move_leader(OFFSETS_TOPIC, 0, 2)
    new = coordinator(harness, "g")
    assert (old.node_id, new.node_id) == (1, 2)
    for _ in range(2):
        assert commit(old, "g", {("t", 0): (8, -1, "")}) == {E.NOT_COORDINATOR}
        assert commit(new, "g", {("t", 0): (8, -1, "")}) == {E.COORDINATOR_LOAD_IN_PROGRESS}
        listed = new.exchange(ListGroupsRequest(), 4, ListGroupsResponse)
        assert (listed.error_code, listed.groups) == (E.COORDINATOR_LOAD_IN_PROGRESS, [])
        harness.advance(0.9)
    harness.advance(0.3)
    assert committed(harness, "g") == {("t", 0): (7, -1, "")}
    listed = new.exchange(ListGroupsRequest(), 4, ListGroupsResponse)
    assert [each.group_id for each in listed.groups] == ["g"]
    assert commit(new, "g", {("t", 0): (8, -1, "")}) == {E.NONE}
    assert commit(old, "g", {("t", 0): (9, -1, "")}) == {E.NOT_COORDINATOR}
    assert committed(harness, "g") == {("t", 0): (8, -1, "")}


def test_a_move_while_it_reads_begins_anew() -> None:
    harness = committed_and_left()
    harness.move_leader(OFFSETS_TOPIC, 0, 2)
    harness.advance(1.9)
    harness.move_leader(OFFSETS_TOPIC, 0, 1)
    harness.advance(1.9)
    client = coordinator(harness, "g")
    assert commit(client, "g", {("t", 0): (8, -1, "")}) == {E.COORDINATOR_LOAD_IN_PROGRESS}
    harness.advance(0.2)
    assert committed(harness, "g") == {("t", 0): (7, -1, "")}


def test_offsets_expire_when_they_would_have() -> None:
    harness = committed_and_left()
    harness.advance(RETENTION_S - 1000.0)
    again = harness.restored()
    for each in (harness, again):
        each.advance(2.0)  # one that starts reads for so long
        assert committed(each, "g") == {("t", 0): (7, -1, "")}
        each.advance(1000.0 + 600.0 + 5.0)
        assert committed(each, "g") == {}


def test_kafkas_own_tool_reads_what_is_persisted(
    installation: Installation, tmp_path: Path
) -> None:
    harness = committed_and_left()
    commit(coordinator(harness, "g"), "g", {("t", 1): (5, -1, "m")}, version=4, retention_ms=1000)
    harness.advance(1300.0)  # the second is expired: a tombstone
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(fetched(coordinator(harness, "g"), OFFSETS_TOPIC))
    dumped = dump(installation, [path], InternalLog.OFFSETS)[path]
    assert {batch.values["isvalid"] for batch in dumped.batches} == {"true"}
    content: Any = [record.content for batch in dumped.batches for record in batch.records]
    reported = [(part[1]["data"], part[3] and part[3]["data"]) for part in content]
    joined, committed, left, expiring, deleted = reported
    assert [each["groupInstanceId"] for each in joined[1]["members"]] == [None, "i1"]
    assert joined[1]["members"][0]["subscription"]["topics"] == ["t", "u"]
    of_0, of_1 = ({"group": "g", "topic": "t", "partition": at} for at in (0, 1))
    assert (committed[0], committed[1]["offset"]) == (of_0, 7)
    assert (left[1]["generation"], left[1]["members"]) == (2, [])
    assert (expiring[0], expiring[1]["offset"], expiring[1]["metadata"]) == (of_1, 5, "m")
    assert deleted == (of_1, None)


def test_the_rest_of_a_cluster_is_built_again() -> None:
    """Topics that came, grew, were configured, moved and went; ids, settings, leaders."""
    harness = Harness(3)
    harness.create_topic("deleted", 2, 2)
    harness.delete_topics("deleted")
    harness.create_topic("t", 2, 2, cleanup_policy="compact,delete", retention_ms="5")
    harness.alter_configs(ResourceType.TOPIC, "t", {"retention.ms": "6", "cleanup.policy": None})
    harness.alter_configs(ResourceType.BROKER, "", {"message.max.bytes": "7000"})
    for _ in range(9):
        assert (
            produce(harness.client(harness.leader_of("t")), batch(b"x" * 50)).error_code == E.NONE
        )
    first = producer_id(harness.client())
    harness.stop_broker(harness.leader_of("t", 1))
    stopped, leader = harness.partition("t", 0), harness.leader_of("t", 0)
    was = fetched(harness.client(leader))
    again = harness.restored()
    assert [each.name for each in again.broker().topics] == ["t"]
    topic, before = again.topic("t"), harness.topic("t")
    assert topic is not None
    assert before is not None
    assert topic.configs == {"retention.ms": "6"}
    assert topic.topic_id == before.topic_id
    assert again.partition("t", 0).replicas == stopped.replicas
    assert fetched(again.client(again.leader_of("t", 0))) == was
    assert again.broker().settings.number("message.max.bytes") == 7000
    assert producer_id(again.client()) > first
    assert again.leader_of("t", 1) == harness.leader_of("t", 1)


def producer_id(client: Client) -> int:
    request = InitProducerIdRequest(transactional_id=None)
    return client.exchange(request, 4, InitProducerIdResponse).producer_id
