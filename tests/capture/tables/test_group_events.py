"""Tests the `group_events` table with handwritten and real captures."""

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
from tests.capture.written import CLIENT, Scenario, request
from tests.conftest import FIXTURES

ORDERS = uuid_text(bytes(range(16)))
REBALANCING = int(kafkawire.ErrorCode.REBALANCE_IN_PROGRESS)
UNKNOWN_MEMBER = int(kafkawire.ErrorCode.UNKNOWN_MEMBER_ID)
MEMBER_ID_REQUIRED = int(kafkawire.ErrorCode.MEMBER_ID_REQUIRED)

Rows = list[dict[str, Any]]


def events(path: Path) -> Rows:
    return [row for b in tables.read(path, "group_events") for row in b.to_pylist()]


def columns(found: Rows, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in found]


def assignment(*partitions: int) -> str:
    value = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="orders", partitions=list(partitions))]
    )
    return base64.b64encode(encode_versioned(value, 0)).decode()


def join(scenario: Scenario, member: str, generation: int, *members: str) -> Scenario:
    """Let a member join; with members, it is the leader."""
    scenario.request(
        "JoinGroup", 5, groupId="g", memberId=member, protocolType="consumer",
        protocols=[{"name": "range"}],
    )  # fmt: skip
    return scenario.respond(
        "JoinGroup", 5, generationId=generation, memberId=member, protocolName="range",
        leader=member, members=[{"memberId": one} for one in members],
    )  # fmt: skip


def sync(scenario: Scenario, member: str, generation: int, *partitions: int) -> Scenario:
    scenario.request("SyncGroup", 3, groupId="g", memberId=member, generationId=generation)
    return scenario.respond("SyncGroup", 3, assignment=assignment(*partitions))


def heartbeat(scenario: Scenario, member: str, generation: int, error: int = 0) -> Scenario:
    scenario.request("Heartbeat", 3, groupId="g", memberId=member, generationId=generation)
    return scenario.respond("Heartbeat", 3, errorCode=error)


def test_a_classic_group_from_its_first_member_to_its_last(tmp_path: Path) -> None:
    scenario = Scenario()
    join(scenario, "a", 1, "a")  # packets 3, 4
    sync(scenario, "a", 1, 0, 1)  # 5, 6
    heartbeat(scenario, "a", 1)
    heartbeat(scenario, "a", 1, REBALANCING)  # 9, 10
    join(scenario, "a", 2, "a", "b")  # 11, 12
    join(scenario, "b", 2)  # 13, 14
    sync(scenario, "a", 2, 0)  # 15, 16
    sync(scenario, "b", 2, 1)  # 17, 18
    scenario.request("LeaveGroup", 5, groupId="g", members=[{"memberId": "b", "reason": "bye"}])
    scenario.respond("LeaveGroup", 5, members=[{"memberId": "b"}])  # 19, 20
    heartbeat(scenario, "a", 2, UNKNOWN_MEMBER)  # 21, 22
    found = events(scenario.save(tmp_path / "group.pcap"))
    names = ("packet", "event", "member_id", "generation", "duration_ns")
    assert columns(found, *names) == [
        (3, "rebalance_started", "a", 1, None),
        (4, "joined", "a", 1, None),
        (6, "assigned", "a", 1, None),
        (6, "rebalance_ended", None, 1, 3_000_000),
        (10, "rebalance_started", None, 1, None),
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
    assert found[4]["client_id"] is None
    assert found[4]["reason"] == (
        "the cause is not in the capture; noticed in a Heartbeat response"
    )
    assert found[10]["reason"] == "bye"
    assert (found[11]["error"], found[11]["reason"]) == (
        "UNKNOWN_MEMBER_ID",
        "Heartbeat failed with UNKNOWN_MEMBER_ID",
    )
    assert {row["protocol"] for row in found} == {"classic"}


def test_a_member_that_is_not_in_the_new_generation_is_removed(tmp_path: Path) -> None:
    scenario = Scenario()
    join(scenario, "a", 1, "a", "b")
    join(scenario, "a", 2, "a")
    found = events(scenario.save(tmp_path / "removed.pcap"))
    (removed,) = [row for row in found if row["event"] == "removed"]
    assert columns([removed], "member_id", "reason") == [("b", "not in generation 2")]


def test_a_join_without_a_member_id_is_not_an_event(tmp_path: Path) -> None:
    scenario = Scenario()
    scenario.request("JoinGroup", 5, groupId="g", protocolType="consumer")
    scenario.respond("JoinGroup", 5, errorCode=MEMBER_ID_REQUIRED, memberId="a")
    assert events(scenario.save(tmp_path / "none.pcap")) == []


def test_a_request_without_a_response_is_not_an_event(tmp_path: Path) -> None:
    scenario = Scenario().send(CLIENT, request("LeaveGroup", 4, 1, groupId="g"))
    assert events(scenario.save(tmp_path / "none.pcap")) == []


def test_commits(tmp_path: Path) -> None:
    scenario = Scenario()
    partitions = [
        {"partitionIndex": 0, "committedOffset": 5},
        {"partitionIndex": 1, "committedOffset": 6},
    ]
    scenario.request(
        "OffsetCommit", 7, groupId="g", memberId="a", generationIdOrMemberEpoch=3,
        topics=[{"name": "orders", "partitions": partitions}],
    )  # fmt: skip
    responded = [{"partitionIndex": 0}, {"partitionIndex": 1, "errorCode": 25}]
    scenario.respond("OffsetCommit", 7, topics=[{"name": "orders", "partitions": responded}])
    (row,) = events(scenario.save(tmp_path / "commit.pcap"))
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
def test_a_group_with_a_heartbeat_protocol(
    tmp_path: Path, api: str, version: int, protocol: str
) -> None:
    scenario = Scenario()

    def beat(member: str, requested: int, responded: int, *partitions: int, error: int = 0) -> None:
        scenario.request(api, version, groupId="g", memberId=member, memberEpoch=requested)
        given = {"topicPartitions": [{"topicId": ORDERS, "partitions": list(partitions)}]}
        scenario.respond(
            api, version, memberId=member, memberEpoch=responded, errorCode=error,
            assignment=given if partitions else None,
        )  # fmt: skip

    beat("a", 0, 1, 0, 1)  # packets 3, 4
    beat("a", 1, 1)
    beat("b", 0, 2)  # 7, 8
    beat("a", 1, 2, 0)  # 9, 10
    beat("b", -1, -1)  # 11, 12
    beat("a", 2, 0, error=25)  # 13, 14
    found = events(scenario.save(tmp_path / "group.pcap"))
    names = ("packet", "event", "member_id", "generation", "duration_ns")
    assert columns(found, *names) == [
        (3, "rebalance_started", "a", 1, None),
        (4, "joined", "a", 1, None),
        (4, "assigned", "a", 1, None),
        (4, "rebalance_ended", None, 1, 1_000_000),
        (7, "rebalance_started", "b", 2, None),
        (8, "joined", "b", 2, None),
        *[(10, "revoked", "a", 2, None)] * (protocol == "consumer"),
        (10, "assigned", "a", 2, None),
        (10, "rebalance_ended", None, 2, 3_000_000),
        (12, "left", "b", -1, None),
        (14, "removed", "a", 2, None),
    ]
    assert {row["protocol"] for row in found} == {protocol}


def test_a_group_that_began_before_the_capture_does_not_rebalance(tmp_path: Path) -> None:
    scenario = Scenario()
    for requested, responded in ((5, 5), (5, 5), (5, 6)):
        scenario.request(
            "ConsumerGroupHeartbeat", 0, groupId="g", memberId="a", memberEpoch=requested
        )
        scenario.respond("ConsumerGroupHeartbeat", 0, memberId="a", memberEpoch=responded)
    found = events(scenario.save(tmp_path / "group.pcap"))
    assert columns(found, "packet", "event", "generation") == [
        (7, "rebalance_started", 6),
        (8, "rebalance_ended", 6),
    ]


# -- what causes a rebalance

A, B, C = 0, 1, 2
"""The connections of three members."""


class Group(Scenario):
    """A classic group: requests by name, responses when they come, on any connection."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[int, int] = {}

    def sent(self, who: int, name: str, version: int, **fields: Any) -> int:
        """Send a request; return its packet."""
        self.request(name, version, who, groupId="g", **fields)
        self.open[who] = self.last_request
        return len(self.packets)

    def responded(self, who: int, name: str, version: int, **fields: Any) -> None:
        self.last_request = self.open.pop(who)
        self.respond(name, version, who, **fields)

    def join(self, who: int, member: str, **fields: Any) -> int:
        version = fields.pop("version", 5)
        protocols = [{"name": "range", "metadata": fields.pop("metadata", "")}]
        return self.sent(
            who, "JoinGroup", version, memberId=member, protocolType="consumer",
            protocols=protocols, **fields,
        )  # fmt: skip

    def joined(self, who: int, member: str, generation: int, *members: str, **fields: Any) -> None:
        self.responded(
            who, "JoinGroup", fields.pop("version", 5), generationId=generation, memberId=member,
            protocolName="range", leader="a", members=[{"memberId": one} for one in members],
        )  # fmt: skip

    def synced(self, who: int, member: str, generation: int) -> None:
        self.sent(who, "SyncGroup", 3, memberId=member, generationId=generation)
        self.responded(who, "SyncGroup", 3)

    def beat(self, who: int, member: str, generation: int, error: int = 0) -> None:
        self.sent(who, "Heartbeat", 3, memberId=member, generationId=generation)
        self.responded(who, "Heartbeat", 3, errorCode=error)

    def formed(self, **fields: Any) -> Group:
        """Let a and b make generation 1."""
        self.join(A, "a", **fields)
        self.join(B, "b", **fields)
        self.joined(A, "a", 1, "a", "b")
        self.joined(B, "b", 1)
        self.synced(A, "a", 1)
        self.synced(B, "b", 1)
        self.beat(A, "a", 1)
        self.beat(B, "b", 1)
        return self

    def starts(self, tmp_path: Path) -> Rows:
        """Read the starts of rebalances but the first."""
        found = events(self.save(tmp_path / "group.pcap"))
        return [row for row in found if row["event"] == "rebalance_started"][1:]


CAUSE = ("packet", "member_id", "reason")


def test_a_new_member_causes_a_rebalance_before_others_notice(tmp_path: Path) -> None:
    """Its JoinGroup response waits for the others, whose heartbeat responses come first."""
    group = Group().formed()
    first = group.join(C, "")
    group.responded(C, "JoinGroup", 5, errorCode=MEMBER_ID_REQUIRED, memberId="c")
    sent = group.join(C, "c")
    group.beat(A, "a", 1, REBALANCING)
    group.beat(B, "b", 1, REBALANCING)
    group.join(A, "a")
    group.join(B, "b")
    group.joined(A, "a", 2, "a", "b", "c")
    group.joined(B, "b", 2)
    group.joined(C, "c", 2)
    for who, member in enumerate("abc"):
        group.synced(who, member, 2)
    (start,) = group.starts(tmp_path)
    assert first < sent
    assert columns([start], *CAUSE) == [(sent, "c", "a member joins")]
    assert (start["connection"], start["client"]) == (C, "10.0.0.1:50002")


def test_a_rebalance_lasts_from_its_cause(tmp_path: Path) -> None:
    group = Group().formed()
    sent = group.join(C, "c")
    group.beat(A, "a", 1, REBALANCING)
    group.join(A, "a")
    group.joined(A, "a", 2, "a", "c")
    group.joined(C, "c", 2)
    group.synced(A, "a", 2)
    group.synced(C, "c", 2)
    found = events(group.save(tmp_path / "group.pcap"))
    end = [row for row in found if row["event"] == "rebalance_ended"][-1]
    start = [row for row in found if row["event"] == "rebalance_started"][-1]
    assert start["packet"] == sent
    assert end["duration_ns"] == end["time_ns"] - start["time_ns"]


def test_a_join_that_fails_with_member_id_required_is_not_a_cause(tmp_path: Path) -> None:
    """A JoinGroup that fails with MEMBER_ID_REQUIRED is in flight; the LeaveGroup is the cause."""
    group = Group().formed()
    left = group.sent(B, "LeaveGroup", 5, members=[{"memberId": "b", "reason": "bye"}])
    group.responded(B, "LeaveGroup", 5, members=[{"memberId": "b"}])
    group.join(C, "")
    group.beat(A, "a", 1, REBALANCING)
    (start,) = group.starts(tmp_path)
    assert columns([start], *CAUSE) == [(left, "b", "a member leaves: bye")]


def test_a_member_that_leaves_causes_a_rebalance(tmp_path: Path) -> None:
    group = Group().formed()
    left = group.sent(B, "LeaveGroup", 1, memberId="b")
    group.beat(A, "a", 1, REBALANCING)  # before the response to the LeaveGroup
    group.responded(B, "LeaveGroup", 1)
    (start,) = group.starts(tmp_path)
    assert columns([start], *CAUSE) == [(left, "b", "a member leaves")]


def test_removing_members_causes_a_rebalance(tmp_path: Path) -> None:
    group = Group().formed()
    group.join(C, "c")
    group.responded(C, "JoinGroup", 5, errorCode=UNKNOWN_MEMBER, memberId="c")
    removed = [{"memberId": "b"}, {"memberId": "d"}]
    left = group.sent(C, "LeaveGroup", 5, members=removed)
    group.responded(C, "LeaveGroup", 5, members=removed)
    group.beat(A, "a", 1, REBALANCING)
    (start,) = group.starts(tmp_path)
    assert columns([start], *CAUSE) == [(left, None, "2 members leave")]


def static(group: Group) -> Group:
    """Form a group whose member b is static, and instance i."""
    group.join(A, "a")
    group.join(B, "", groupInstanceId="i")
    group.responded(
        A, "JoinGroup", 5, generationId=1, memberId="a", protocolName="range", leader="a",
        members=[{"memberId": "a"}, {"memberId": "b", "groupInstanceId": "i"}],
    )  # fmt: skip
    group.joined(B, "b", 1)
    group.synced(A, "a", 1)
    group.synced(B, "b", 1)
    group.beat(A, "a", 1)
    return group


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_member_that_is_removed_by_its_instance_id_is_named(version: int, tmp_path: Path) -> None:
    group = static(Group())
    removed = [{"memberId": "", "groupInstanceId": "i"}]
    sent = group.sent(C, "LeaveGroup", version, members=removed)
    group.responded(C, "LeaveGroup", version, members=removed)
    group.beat(A, "a", 1, REBALANCING)
    path = group.save(tmp_path / "group.pcap")
    *_, left, start = events(path)
    assert columns([left], "event", "member_id", "group_instance_id", "client_id") == [
        ("left", "b", "i", "tester")
    ]
    assert columns([start], "event", *CAUSE) == [
        ("rebalance_started", sent, "b", "a member leaves")
    ]


def test_a_member_whose_removal_failed_did_not_leave(tmp_path: Path) -> None:
    group = static(Group())
    members: list[dict[str, Any]] = [
        {"memberId": "", "groupInstanceId": "i"},
        {"memberId": "", "groupInstanceId": "j"},
    ]
    group.sent(C, "LeaveGroup", 5, members=members)
    members[1]["errorCode"] = UNKNOWN_MEMBER
    group.responded(C, "LeaveGroup", 5, members=members)
    *_, left, failed = events(group.save(tmp_path / "group.pcap"))
    names = "event", "member_id", "group_instance_id", "error"
    assert columns([left, failed], *names) == [
        ("left", "b", "i", None),
        ("removed", None, "j", "UNKNOWN_MEMBER_ID"),
    ]


def test_a_static_member_that_causes_a_rebalance_is_named(tmp_path: Path) -> None:
    """It joins without a member id; the response to the leader has its id first."""
    group = Group().formed()
    sent = group.join(C, "", groupInstanceId="k")
    group.join(A, "a")
    group.responded(
        A, "JoinGroup", 5, generationId=2, memberId="a", protocolName="range", leader="a",
        members=[{"memberId": "a"}, {"memberId": "c", "groupInstanceId": "k"}],
    )  # fmt: skip
    group.joined(C, "c", 2)
    (start,) = group.starts(tmp_path)
    assert columns([start], *CAUSE) == [(sent, "c", "a member joins")]


def test_leaving_an_empty_group_does_not_cause_the_next_rebalance(tmp_path: Path) -> None:
    group = Group().formed()
    for who, member in ((B, "b"), (A, "a")):
        group.sent(who, "LeaveGroup", 1, memberId=member)
        group.responded(who, "LeaveGroup", 1)
    sent = group.join(C, "c")
    group.joined(C, "c", 3, "c")
    (start,) = group.starts(tmp_path)
    assert columns([start], *CAUSE) == [(sent, "c", "a member joins")]


def test_a_leave_that_changes_nothing_is_not_a_cause(tmp_path: Path) -> None:
    """Later heartbeats were accepted: the group stayed stable."""
    group = Group().formed()
    group.sent(C, "LeaveGroup", 1, memberId="c")
    group.responded(C, "LeaveGroup", 1)
    group.beat(A, "a", 1)
    sent = group.join(B, "b", metadata="AAE=")
    group.beat(A, "a", 1, REBALANCING)
    (start,) = group.starts(tmp_path)
    assert columns([start], *CAUSE) == [(sent, "b", "a member rejoins with a new subscription")]


def test_a_leader_that_rejoins_causes_a_rebalance(tmp_path: Path) -> None:
    group = Group().formed()
    sent = group.join(A, "a", version=8, reason="metadata has changed")
    group.beat(B, "b", 1, REBALANCING)
    (start,) = group.starts(tmp_path)
    assert columns([start], *CAUSE) == [(sent, "a", "the leader rejoins: metadata has changed")]


def test_a_follower_that_rejoins_without_changes_is_not_a_cause(tmp_path: Path) -> None:
    group = Group().formed()
    group.join(B, "b")
    group.joined(B, "b", 1)  # returns the current generation
    group.beat(A, "a", 1, REBALANCING)
    (start,) = group.starts(tmp_path)
    assert (start["member_id"], start["client_id"]) == (None, None)
    assert "not in the capture" in start["reason"]


def test_a_session_timeout_causes_a_rebalance(tmp_path: Path) -> None:
    """No request shows it: the member without requests for its session timeout is the cause."""
    group = Group().formed(sessionTimeoutMs=6)
    for _ in range(3):
        group.beat(A, "a", 1)
    group.beat(A, "a", 1, REBALANCING)
    (start,) = group.starts(tmp_path)
    assert columns([start], "packet", "member_id", "client_id") == [
        (len(group.packets), "b", "tester")
    ]
    assert start["reason"] == "session timeout: last request of the member 0.0 s earlier"


def test_a_static_member_that_is_replaced(tmp_path: Path) -> None:
    group = Group()
    group.join(A, "a")
    group.join(B, "", groupInstanceId="i")
    group.joined(A, "a", 1, "a", "b")
    group.joined(B, "b", 1)
    group.synced(A, "a", 1)
    group.synced(B, "b", 1)
    sent = group.join(C, "", groupInstanceId="i", metadata="AAE=")
    group.beat(A, "a", 1, REBALANCING)
    (start,) = group.starts(tmp_path)
    assert columns([start], "packet", "group_instance_id", "reason") == [
        (sent, "i", "static member i is replaced")
    ]


def test_a_coordinator_that_moves(tmp_path: Path) -> None:
    group = Group().formed()
    group.beat(B, "b", 1, int(kafkawire.ErrorCode.NOT_COORDINATOR))
    sent = group.join(C, "c")
    group.beat(A, "a", 1, REBALANCING)
    (start,) = group.starts(tmp_path)
    assert columns([start], *CAUSE) == [(sent, "c", "a member joins after the coordinator moved")]


@pytest.mark.parametrize("api", ["ConsumerGroupHeartbeat", "ShareGroupHeartbeat"])
def test_a_leave_raises_the_epoch_of_other_members(api: str, tmp_path: Path) -> None:
    scenario = Scenario()
    left = 0
    for member, sent, epoch in (("a", 0, 1), ("b", 0, 2), ("a", 1, 2), ("b", -1, -1), ("a", 2, 3)):
        scenario.request(api, 0, groupId="g", memberId=member, memberEpoch=sent)
        left = len(scenario.packets) if sent < 0 else left
        scenario.respond(api, 0, memberId=member, memberEpoch=epoch)
    found = events(scenario.save(tmp_path / "group.pcap"))
    *_, last = [row for row in found if row["event"] == "rebalance_started"]
    assert columns([last], *CAUSE) == [(left, "b", "a member leaves")]


def test_a_raised_epoch_without_a_captured_cause(tmp_path: Path) -> None:
    scenario = Scenario()
    for sent, epoch in ((0, 1), (1, 1), (1, 2)):
        scenario.request("ConsumerGroupHeartbeat", 0, groupId="g", memberId="a", memberEpoch=sent)
        scenario.respond("ConsumerGroupHeartbeat", 0, memberId="a", memberEpoch=epoch)
    found = events(scenario.save(tmp_path / "group.pcap"))
    *_, last = [row for row in found if row["event"] == "rebalance_started"]
    assert (last["member_id"], last["reason"]) == (None, "the cause is not in the capture")


# -- recordings


def test_a_real_classic_rebalance() -> None:
    found = events(FIXTURES / "captures" / "ck-group-range.pcap")
    assert columns(found, "event", "client_id", "generation", "members") == [
        ("rebalance_started", "cons-A", 2, None),
        ("joined", "cons-A", 2, 1),
        ("assigned", "cons-A", 2, None),
        ("rebalance_ended", "cons-A", 2, 1),
        ("committed", "cons-A", 2, None),
        ("rebalance_started", "cons-B", 2, None),
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
    assert columns(found, "event", "client_id") == [
        ("rebalance_started", "c848-A"),
        ("joined", "c848-A"),
        ("assigned", "c848-A"),
        ("rebalance_ended", "c848-A"),
        ("committed", "c848-A"),
        ("rebalance_started", "c848-B"),
        ("joined", "c848-B"),
        ("assigned", "c848-B"),
        ("revoked", "c848-A"),
        ("assigned", "c848-A"),
        ("committed", "c848-A"),
        ("released", "c848-A"),
        ("rebalance_ended", "c848-A"),
        ("assigned", "c848-B"),
        ("left", "c848-B"),
        ("committed", "c848-A"),
        ("left", "c848-A"),
    ]
    assert {row["protocol"] for row in found} == {"consumer"}
    assert found[2]["partitions"][0]["topic"] == "t848"
    (revoked,), (released,) = (
        [row for row in found if row["event"] == name] for name in ("revoked", "released")
    )
    assert [each["partitions"] for each in revoked["partitions"]] == [[2]]
    assert released["partitions"] == revoked["partitions"]
    assert released["duration_ns"] == released["time_ns"] - revoked["time_ns"]
    assert found[-4]["reason"] == (
        "c848-A had to release 1 partition of these, as of 3.015 s earlier, and did after 0.000 s"
    )


def consumer(
    scenario: Scenario, member: str, epoch: int, owned: list[int] | None, *assigned: int
) -> None:
    """A heartbeat of a consumer group, one second after the last message."""
    topics = [{"topicId": ORDERS, "partitions": owned}]
    scenario.wait(1).request(
        "ConsumerGroupHeartbeat", 0, groupId="g", memberId=member, memberEpoch=epoch,
        topicPartitions=None if owned is None else topics,
    )  # fmt: skip
    given = {"topicPartitions": [{"topicId": ORDERS, "partitions": list(assigned)}]}
    scenario.respond(
        "ConsumerGroupHeartbeat", 0, memberId=member, memberEpoch=max(epoch, 1), assignment=given
    )


def test_partitions_are_handed_over_only_once_they_are_released(tmp_path: Path) -> None:
    scenario = Scenario()
    consumer(scenario, "a", 0, [], 0, 1, 2)
    consumer(scenario, "a", 1, [0, 1, 2], 0)
    consumer(scenario, "a", 1, [0, 1], 0)  # not yet 1
    consumer(scenario, "b", 0, [], 2)
    consumer(scenario, "a", 1, None, 0)  # nothing has changed
    consumer(scenario, "a", 1, [0], 0)
    consumer(scenario, "b", 1, [2], 1, 2)
    found = [row for row in events(scenario.save(tmp_path / "g.pcap")) if row["partitions"]]
    assert [
        (row["event"], row["member_id"], row["partitions"][0]["partitions"])
        for row in found
        if row["event"] != "assigned"
    ] == [("revoked", "a", [1, 2]), ("released", "a", [2]), ("released", "a", [1])]
    waits = [row["reason"] for row in found if row["reason"]]
    assert len(waits) == 2, "b waited for a twice"
    assert all(text.startswith("tester had to release 1 partition") for text in waits)
    seconds = [row["duration_ns"] // 10**9 for row in found if row["event"] == "released"]
    assert seconds == [1, 4]


def test_a_member_that_was_removed_has_nothing_to_release(tmp_path: Path) -> None:
    scenario = Scenario()
    consumer(scenario, "a", 0, [], 0, 1)
    consumer(scenario, "a", 1, [0, 1], 0)
    scenario.request("ConsumerGroupHeartbeat", 0, groupId="g", memberId="a", memberEpoch=1)
    scenario.respond("ConsumerGroupHeartbeat", 0, errorCode=UNKNOWN_MEMBER)
    consumer(scenario, "a", 0, [], 0)
    found = events(scenario.save(tmp_path / "g.pcap"))
    assert [row["event"] for row in found if row["event"] in ("revoked", "released")] == ["revoked"]


def test_tasks_of_streams_groups(tmp_path: Path) -> None:
    scenario = Scenario()

    def beat(member: str, epoch: int, owned: list[int], active: list[int], *standby: int) -> None:
        scenario.request(
            "StreamsGroupHeartbeat", 0, groupId="g", memberId=member, memberEpoch=epoch,
            activeTasks=[{"subtopologyId": "0", "partitions": owned}],
        )  # fmt: skip
        scenario.respond(
            "StreamsGroupHeartbeat", 0, memberId=member, memberEpoch=max(epoch, 1),
            activeTasks=[{"subtopologyId": "0", "partitions": active}],
            standbyTasks=[{"subtopologyId": "1", "partitions": list(standby)}], warmupTasks=[],
        )  # fmt: skip

    beat("a", 0, [], [0, 1], 4)
    beat("a", 1, [0, 1], [0])
    beat("a", 1, [0], [0], 5)
    beat("b", 0, [], [1], 0)
    found = [row for row in events(scenario.save(tmp_path / "streams.pcap")) if row["tasks"]]

    def tasks(type: str, subtopology: str, *partitions: int) -> dict[str, Any]:
        return {"type": type, "subtopology_id": subtopology, "partitions": list(partitions)}

    nothing = tasks("standby", "1")
    assert columns(found, "event", "member_id", "tasks") == [
        ("assigned", "a", [tasks("active", "0", 0, 1), tasks("standby", "1", 4)]),
        ("revoked", "a", [tasks("active", "0", 1)]),
        ("assigned", "a", [tasks("active", "0", 0), nothing]),
        ("released", "a", [tasks("active", "0", 1)]),
        ("assigned", "a", [tasks("active", "0", 0), tasks("standby", "1", 5)]),
        ("assigned", "b", [tasks("active", "0", 1), tasks("standby", "1", 0)]),
    ]
    assert "release 1 task of these" in found[-1]["reason"]
