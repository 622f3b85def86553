"""The life of groups as the `group_events` table tells it: stories by hand, and real recordings."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

import kafkawire
from kafkawire.capture import tables
from kafkawire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from kafkawire.protocol import encode_versioned
from kafkawire.protocol.json_form import uuid_text
from tests.conftest import FIXTURES

from .written import CLIENT, Story, request

ORDERS = uuid_text(bytes(range(16)))
REBALANCING = int(kafkawire.ErrorCode.REBALANCE_IN_PROGRESS)
UNKNOWN_MEMBER = int(kafkawire.ErrorCode.UNKNOWN_MEMBER_ID)
MEMBER_ID_REQUIRED = int(kafkawire.ErrorCode.MEMBER_ID_REQUIRED)

Rows = list[dict[str, Any]]


def events(path: Path) -> Rows:
    return [row for b in tables.read(path, "group_events") for row in b.to_pylist()]


def told(found: Rows, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in found]


def assignment(*partitions: int) -> str:
    value = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="orders", partitions=list(partitions))]
    )
    return base64.b64encode(encode_versioned(value, 0)).decode()


def joins(story: Story, member: str, generation: int, *members: str) -> Story:
    """A member joins; told members, it is the leader."""
    story.asks(
        "JoinGroup", 5, groupId="g", memberId=member, protocolType="consumer",
        protocols=[{"name": "range"}],
    )  # fmt: skip
    return story.answers(
        "JoinGroup", 5, generationId=generation, memberId=member, protocolName="range",
        leader=member, members=[{"memberId": one} for one in members],
    )  # fmt: skip


def syncs(story: Story, member: str, generation: int, *partitions: int) -> Story:
    story.asks("SyncGroup", 3, groupId="g", memberId=member, generationId=generation)
    return story.answers("SyncGroup", 3, assignment=assignment(*partitions))


def beats(story: Story, member: str, generation: int, error: int = 0) -> Story:
    story.asks("Heartbeat", 3, groupId="g", memberId=member, generationId=generation)
    return story.answers("Heartbeat", 3, errorCode=error)


def test_a_classic_group_from_its_first_member_to_its_last(tmp_path: Path) -> None:
    story = Story()
    joins(story, "a", 1, "a")  # packets 3, 4
    syncs(story, "a", 1, 0, 1)  # 5, 6
    beats(story, "a", 1)
    beats(story, "a", 1, REBALANCING)  # 9, 10
    joins(story, "a", 2, "a", "b")  # 11, 12
    joins(story, "b", 2)  # 13, 14
    syncs(story, "a", 2, 0)  # 15, 16
    syncs(story, "b", 2, 1)  # 17, 18
    story.asks("LeaveGroup", 5, groupId="g", members=[{"memberId": "b", "reason": "bye"}])
    story.answers("LeaveGroup", 5, members=[{"memberId": "b"}])  # 19, 20
    beats(story, "a", 2, UNKNOWN_MEMBER)  # 21, 22
    found = events(story.save(tmp_path / "group.pcap"))
    names = ("packet", "event", "member_id", "generation", "duration_ns")
    assert told(found, *names) == [
        (3, "rebalance_started", "a", 1, None),
        (4, "joined", "a", 1, None),
        (6, "assigned", "a", 1, None),
        (6, "rebalance_ended", None, 1, 3_000_000),
        (10, "rebalance_started", "a", 1, None),
        (12, "joined", "a", 2, None),
        (14, "joined", "b", 2, None),
        (16, "assigned", "a", 2, None),
        (18, "assigned", "b", 2, None),
        (18, "rebalance_ended", None, 2, 8_000_000),
        (20, "left", "b", 2, None),
        (22, "removed", "a", 2, None),
    ]
    assert [row["partitions"] for row in found if row["event"] == "assigned"] == [
        [{"topic": "orders", "topic_id": None, "partitions": partitions}]
        for partitions in ([0, 1], [0], [1])
    ]
    assert found[4]["reason"] == "Heartbeat answered REBALANCE_IN_PROGRESS"
    assert found[10]["reason"] == "bye"
    assert (found[11]["error"], found[11]["reason"]) == (
        "UNKNOWN_MEMBER_ID",
        "Heartbeat answered UNKNOWN_MEMBER_ID",
    )
    assert {row["protocol"] for row in found} == {"classic"}


def test_a_member_that_is_not_in_the_new_generation_is_removed(tmp_path: Path) -> None:
    story = Story()
    joins(story, "a", 1, "a", "b")
    joins(story, "a", 2, "a")
    found = events(story.save(tmp_path / "gone.pcap"))
    (gone,) = [row for row in found if row["event"] == "removed"]
    assert told([gone], "member_id", "reason") == [("b", "not in generation 2")]


def test_asking_for_a_member_id_is_no_event(tmp_path: Path) -> None:
    story = Story()
    story.asks("JoinGroup", 5, groupId="g", protocolType="consumer")
    story.answers("JoinGroup", 5, errorCode=MEMBER_ID_REQUIRED, memberId="a")
    assert events(story.save(tmp_path / "none.pcap")) == []


def test_a_request_without_an_answer_tells_nothing(tmp_path: Path) -> None:
    story = Story().sends(CLIENT, request("LeaveGroup", 4, 1, groupId="g"))
    assert events(story.save(tmp_path / "none.pcap")) == []


def test_commits(tmp_path: Path) -> None:
    story = Story()
    partitions = [
        {"partitionIndex": 0, "committedOffset": 5},
        {"partitionIndex": 1, "committedOffset": 6},
    ]
    story.asks(
        "OffsetCommit", 7, groupId="g", memberId="a", generationIdOrMemberEpoch=3,
        topics=[{"name": "orders", "partitions": partitions}],
    )  # fmt: skip
    answered = [{"partitionIndex": 0}, {"partitionIndex": 1, "errorCode": 25}]
    story.answers("OffsetCommit", 7, topics=[{"name": "orders", "partitions": answered}])
    (row,) = events(story.save(tmp_path / "commit.pcap"))
    assert (row["event"], row["generation"], row["error_code"]) == ("committed", 3, 25)
    orders = {"topic": "orders", "topic_id": None}
    assert row["offsets"] == [
        {**orders, "partition": 0, "offset": 5, "error_code": 0},
        {**orders, "partition": 1, "offset": 6, "error_code": 25},
    ]


@pytest.mark.parametrize(
    ("api", "version", "protocol"),
    [("ConsumerGroupHeartbeat", 0, "consumer"), ("ShareGroupHeartbeat", 0, "share")],
)
def test_a_group_that_only_heartbeats(
    tmp_path: Path, api: str, version: int, protocol: str
) -> None:
    story = Story()

    def beat(member: str, asked: int, answered: int, *partitions: int, error: int = 0) -> None:
        story.asks(api, version, groupId="g", memberId=member, memberEpoch=asked)
        given = {"topicPartitions": [{"topicId": ORDERS, "partitions": list(partitions)}]}
        story.answers(
            api, version, memberId=member, memberEpoch=answered, errorCode=error,
            assignment=given if partitions else None,
        )  # fmt: skip

    beat("a", 0, 1, 0, 1)  # packets 3, 4
    beat("a", 1, 1)
    beat("b", 0, 2)  # 7, 8
    beat("a", 1, 2, 0)  # 9, 10
    beat("b", -1, -1)  # 11, 12
    beat("a", 2, 0, error=25)  # 13, 14
    found = events(story.save(tmp_path / "group.pcap"))
    names = ("packet", "event", "member_id", "generation", "duration_ns")
    assert told(found, *names) == [
        (3, "rebalance_started", "a", 1, None),
        (4, "joined", "a", 1, None),
        (4, "assigned", "a", 1, None),
        (4, "rebalance_ended", None, 1, 1_000_000),
        (7, "rebalance_started", "b", 2, None),
        (8, "joined", "b", 2, None),
        (10, "assigned", "a", 2, None),
        (10, "rebalance_ended", None, 2, 3_000_000),
        (12, "left", "b", -1, None),
        (14, "removed", "a", 2, None),
    ]
    assert {row["protocol"] for row in found} == {protocol}


def test_a_group_seen_from_the_middle_of_its_life_does_not_rebalance(tmp_path: Path) -> None:
    story = Story()
    for asked, answered in ((5, 5), (5, 5), (5, 6)):
        story.asks("ConsumerGroupHeartbeat", 0, groupId="g", memberId="a", memberEpoch=asked)
        story.answers("ConsumerGroupHeartbeat", 0, memberId="a", memberEpoch=answered)
    found = events(story.save(tmp_path / "group.pcap"))
    assert told(found, "packet", "event", "generation") == [
        (7, "rebalance_started", 6),
        (8, "rebalance_ended", 6),
    ]


# -- recordings


def test_a_real_classic_rebalance() -> None:
    found = events(FIXTURES / "captures" / "ck-group-range.pcap")
    assert told(found, "event", "client_id", "generation", "members") == [
        ("rebalance_started", "cons-A", 2, None),
        ("joined", "cons-A", 2, 1),
        ("assigned", "cons-A", 2, None),
        ("rebalance_ended", "cons-A", 2, 1),
        ("committed", "cons-A", 2, None),
        ("rebalance_started", "cons-A", 2, None),
        ("failed", "cons-A", 2, None),
        ("joined", "cons-A", 3, 2),
        ("joined", "cons-B", 3, None),
        ("assigned", "cons-A", 3, None),
        ("assigned", "cons-B", 3, None),
        ("rebalance_ended", "cons-B", 3, 2),
        ("left", "cons-B", 3, None),
        ("left", "cons-A", 3, None),
    ]


def test_a_real_kip_848_group() -> None:
    found = events(FIXTURES / "captures" / "ck-848.pcap")
    assert told(found, "event", "client_id") == [
        ("rebalance_started", "c848-A"),
        ("joined", "c848-A"),
        ("assigned", "c848-A"),
        ("rebalance_ended", "c848-A"),
        ("committed", "c848-A"),
        ("rebalance_started", "c848-B"),
        ("joined", "c848-B"),
        ("assigned", "c848-B"),
        ("assigned", "c848-A"),
        ("committed", "c848-A"),
        ("rebalance_ended", "c848-A"),
        ("assigned", "c848-B"),
        ("left", "c848-B"),
        ("committed", "c848-A"),
        ("left", "c848-A"),
    ]
    assert {row["protocol"] for row in found} == {"consumer"}
    assert found[2]["partitions"][0]["topic"] == "t848"
