"""Restored clusters: whatever was committed is found again.

The model is a dict of what each group committed; the laws are that a coordinator which moved, a
cluster built again, and one built from a compacted `__consumer_offsets` all say the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkawire import ErrorCode
from kafkawire.broker import Persist, Persisted, Trim
from kafkawire.broker.topics import OFFSETS_TOPIC
from kafkawire.log import InternalLog
from kafkawire.messages.delete_groups_request import DeleteGroupsRequest
from kafkawire.messages.delete_groups_response import DeleteGroupsResponse
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribeGroupsResponse
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.list_groups_response import ListGroupsResponse
from kafkawire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkawire.messages.offset_delete_response import OffsetDeleteResponse
from kafkawire.records import Batch, BatchBuilder
from tests.fuzzing import examples

from ..real.dump import dump
from ..real.java import Installation
from .harness import EPOCH_MS, Harness
from .log.test_log import batch, produce
from .members import Committed, Members, Offsets, come, commit, committed, coordinator, leave

E = ErrorCode
GROUPS = ("g", "h", "readers", "polygenelubricants")
PARTITIONS = (("t", 0), ("t", 1), ("u", 0))
RETENTION_S = 36_000
SETTINGS = {
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


def compacted(persisted: Iterable[Persisted]) -> list[Persisted]:
    """What Kafka's cleaner leaves of `__consumer_offsets`: of each key the last, and where it was.

    Tombstones go as well, as they do after `delete.retention.ms`.
    """
    whole = list(persisted)
    last: dict[tuple[int, bytes | None], int] = {}
    for each in whole:
        for record in _records(each):
            last[each.partition, record.key] = record.offset
    made: list[Persisted] = []
    for each in whole:
        if not isinstance(each, Persist) or each.topic != OFFSETS_TOPIC:
            made.append(each)
            continue
        for record in _records(each):
            if last[each.partition, record.key] == record.offset and record.value is not None:
                builder = BatchBuilder(base_offset=record.offset, partition_leader_epoch=0)
                builder.append(record.key, record.value, record.timestamp)
                made.append(each._replace(batch=builder.build()))
    return made


def _records(effect: Persisted) -> list[Any]:
    if not isinstance(effect, Persist) or effect.topic != OFFSETS_TOPIC:
        return []
    return list(Batch(effect.batch, 0, len(effect.batch)).records())


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

    @rule(seconds=st.sampled_from([1.0, 61.0, 605.0]))
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
        """Continue in the restored cluster; it appends to what was persisted."""
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

    @invariant()
    def a_cluster_built_again_says_the_same(self) -> None:
        reported = everything(self.harness)
        assert {found[0] for _, found in reported.values() if found} <= {"Stable", "Empty"}
        assert everything(self.harness.restored()) == reported
        assert everything(self.harness.restored(compacted(self.harness.persisted))) == reported

    @invariant()
    def and_forgets_the_same(self) -> None:
        """Offsets expire when they would have: the log says since when nobody has used them."""
        again = self.harness.restored()
        again.advance(2 * RETENTION_S)
        assert all(committed(again, group) == {} for group in GROUPS)
        for partition in again.cluster.topics.get(OFFSETS_TOPIC).partitions:  # type: ignore[union-attr]
            assert not again.cluster.groups._of(partition.index).groups


OffsetsMachine.TestCase.settings = settings(max_examples=examples(8), stateful_step_count=15)
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
        assert committed(each, "g") == {("t", 0): (7, -1, "")}
        each.advance(1000.0 + 600.0 + 5.0)
        assert committed(each, "g") == {}


def test_kafkas_own_tool_reads_what_is_persisted(
    installation: Installation, tmp_path: Path
) -> None:
    harness = committed_and_left()
    commit(coordinator(harness, "g"), "g", {("t", 1): (5, -1, "m")}, version=4, retention_ms=1000)
    harness.advance(1300.0)  # the second is expired: a tombstone
    batches = [
        each.batch
        for each in harness.persisted
        if isinstance(each, Persist) and each.topic == OFFSETS_TOPIC
    ]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(batches))
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
    """Topics that came, grew, were configured, trimmed, moved and went; ids, settings, leaders."""
    harness = Harness(3, settings={"log.retention.bytes": "200"})
    harness.create_topic("deleted", 2, 2)
    deleted = harness.topic("deleted")
    assert deleted is not None
    harness.cluster.controller.delete_topics([deleted], 0.0)
    harness.create_topic("t", 1, 2, cleanup_policy="compact", retention_ms="5")
    topic = harness.topic("t")
    assert topic is not None
    harness.cluster.controller.create_partitions(topic, [[3, 1]], 0.0)
    harness.cluster.controller.alter_topic_configs(topic, {"retention.ms": "6"}, 0.0)
    harness.cluster.controller.alter_broker_configs({"num.partitions": "7"}, 0.0)
    first = [harness.cluster.controller.producer_ids.new(0.0) for _ in range(1001)][-1]
    harness.advance(0.0)
    for _ in range(9):
        produce(harness.client(harness.leader_of("t")), batch(b"x" * 50))
    harness.stop_broker(harness.leader_of("t", 1))
    again = harness.restored()
    found = again.cluster.topics
    assert [each.name for each in found] == ["t"]
    was, now = harness.partition("t", 0), found.partition("t", 0)
    assert was is not None
    assert now is not None
    assert (was.log, was.producers) == (now.log, now.producers)
    assert was.log.log_start_offset > 0, "retention dropped what it must"
    assert found.get("t").configs == {"retention.ms": "6"}  # type: ignore[union-attr]
    assert found.get("t").topic_id == topic.topic_id  # type: ignore[union-attr]
    assert again.cluster.settings.number("num.partitions") == 7
    assert again.cluster.controller.producer_ids.new(0.0) > first
    moved = found.partition("t", 1)
    assert moved is not None
    assert (moved.leader_id, moved.leader_epoch, moved.isr) == (1, 1, [3, 1])


def test_a_cluster_of_other_brokers_has_leaders() -> None:
    harness = Harness(3)
    harness.create_topic("t", 3, 2)
    smaller = Harness(2)
    smaller._take(smaller.cluster.restore(harness.persisted, 0.0))
    led = [each for each in smaller.cluster.topics.partitions() if each.leader_id in (1, 2)]
    assert len(led) == 3
    assert any(each.leader_epoch for each in led), "what broker 3 led"
    # and what changed by that is persisted after the rest
    whole = smaller.restored([*harness.persisted, *smaller.persisted])
    assert list(whole.cluster.topics.partitions()) == list(smaller.cluster.topics.partitions())


def test_inconsistent_effects_are_rejected() -> None:
    harness = Harness(topics={"t": 1})
    produce(harness.client(), batch(b"a"))
    *metadata, data = harness.persisted
    assert isinstance(data, Persist)
    for effects, reason in (
        ([data], "never created"),
        ([*metadata, data, data], "duplicate offset"),
        ([*metadata, data._replace(topic="__cluster_metadata")], "offset 0"),
        ([Trim("u", 0, 0, 0)], "never created"),
    ):
        with pytest.raises(ValueError, match=reason):
            Harness().cluster.restore(effects, 0.0)
