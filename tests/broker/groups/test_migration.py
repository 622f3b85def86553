"""Groups with members that change their type, and members of both protocols in one group."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafkawire.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribeGroupsResponse
from kafkawire.messages.heartbeat_response import HeartbeatResponse
from kafkawire.messages.join_group_request import JoinGroupRequestProtocol
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.list_groups_response import ListGroupsResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.messages.sync_group_response import SyncGroupResponse
from tests.broker.harness import Harness
from tests.broker.members import Members, Offsets, commit, coordinator

from .migrating import (
    GROUP,
    PARTITIONS,
    REBALANCE_MS,
    SESSION_MS,
    TOPIC,
    Classic,
    Consumer,
    assignment,
    classic,
    consumer,
    settle,
    subscription,
)

E = ErrorCode
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}
POLICY = "group.consumer.migration.policy"


def cluster(settings: Mapping[str, str] = {}) -> Harness:
    return Harness(topics={TOPIC: PARTITIONS}, settings={**SETTINGS, **settings})


def kind(harness: Harness) -> str:
    client = coordinator(harness, GROUP)
    [group] = client.exchange(ListGroupsRequest(), 5, ListGroupsResponse).groups
    return group.group_type


def types(harness: Harness) -> dict[str, int]:
    """Member -> its type, of a consumer group."""
    request = ConsumerGroupDescribeRequest(group_ids=[GROUP])
    response = coordinator(harness, GROUP).exchange(request, 1, ConsumerGroupDescribeResponse)
    return {each.member_id: each.member_type for each in response.groups[0].members}


def both(harness: Harness, **more: object) -> tuple[Classic, Consumer]:
    """Let a classic group with a member be joined by a consumer."""
    first = classic(harness, **more)  # type: ignore[arg-type]
    settle(harness, [first])
    assert kind(harness) == "classic"
    second = consumer(harness, "b")
    settle(harness, [first, second])
    assert kind(harness) == "consumer"
    return first, second


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_group_is_upgraded_and_downgraded(cooperative: bool) -> None:
    harness = cluster()
    first, second = both(harness, cooperative=cooperative)
    assert types(harness) == {first.member_id: 0, "b": 1}
    assert {len(first.owned), len(second.owned)} == {2}
    generation = first.generation
    third = classic(harness, cooperative)
    settle(harness, [first, second, third])
    assert first.generation > generation
    second.leave()
    assert kind(harness) == "classic"
    settle(harness, [first, third])
    assert {len(first.owned), len(third.owned)} == {2}


def test_a_member_reads_on_while_its_group_changes_its_type() -> None:
    """A cooperative member keeps what it is to keep, and its id; what it must revoke waits."""
    harness = cluster()
    first = classic(harness, cooperative=True)
    settle(harness, [first])
    member_id = first.member_id
    second = consumer(harness, "b")
    second.act()
    assert second.owned == set()
    first.act()
    assert first.wants == "join"
    first.act()
    assert first.owned == set(range(PARTITIONS))
    first.act()
    assert len(first.owned) == 2
    second.act()
    assert second.owned == set(), "the other has not said yet that it has revoked"
    settle(harness, [first, second])
    assert first.member_id == member_id
    second.leave()
    assert first.owned
    settle(harness, [first])
    assert first.member_id == member_id


def test_what_a_member_reads_is_kept_over_two_changes_of_the_type() -> None:
    """A consumer came and left meanwhile; the next one waits for what the member still reads."""
    harness = Harness(topics={TOPIC: PARTITIONS}, settings=SETTINGS)
    old = classic(harness)
    settle(harness, [old])
    first = consumer(harness, "first")
    first.act()
    first.leave()
    second = consumer(harness, "second")
    for _ in range(3):
        second.act()
    assert old.owned == set(range(PARTITIONS))
    assert second.owned == set()
    settle(harness, [old, second])


def test_the_records_of_both_types_restore_a_group() -> None:
    harness = cluster()
    first, _ = both(harness)
    restored = harness.restored()
    assert types(restored) == {first.member_id: 0, "b": 1}
    again = Classic(
        coordinator(restored, GROUP), False, None, first.member_id, first.generation, first.owned
    )
    again.wants = "heartbeat"
    other = consumer(restored, "b")
    settle(restored, [again, other])
    assert again.member_id == first.member_id
    other.leave()
    settle(restored, [again])
    third = restored.restored()
    assert kind(third) == "classic"
    [group] = (
        coordinator(third, GROUP)
        .exchange(DescribeGroupsRequest(groups=[GROUP]), 5, DescribeGroupsResponse)
        .groups
    )
    assert [each.member_id for each in group.members] == [first.member_id]


@pytest.mark.parametrize(
    ("policy", "upgrades", "joins", "downgrades"),
    [
        ("bidirectional", True, True, True),
        ("UPGRADE", True, True, False),
        ("downgrade", False, True, True),
        ("Disabled", False, False, False),
    ],
)
def test_the_migration_policy(policy: str, upgrades: bool, joins: bool, downgrades: bool) -> None:
    harness = cluster({POLICY: policy})
    first = classic(harness)
    settle(harness, [first])
    second = consumer(harness, "b")
    response = second.act()
    if upgrades:
        assert response.error_code == E.NONE
    else:
        assert response.error_code == E.GROUP_ID_NOT_FOUND
        assert response.error_message == (
            "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
        )
        first.leave()
        assert second.act().error_code == E.NONE
    third = classic(harness)
    joined = third.act()
    assert isinstance(joined, JoinGroupResponse)
    assert (joined.error_code == E.MEMBER_ID_REQUIRED) is joins
    if joins:
        settle(harness, [second, third, *([first] if upgrades else [])])
        second.leave()
        assert kind(harness) == ("classic" if downgrades else "consumer")
        settle(harness, [third, *([first] if upgrades else [])])


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match=f"Invalid value upwards for configuration {POLICY}"):
        cluster({POLICY: "upwards"})


def with_assignment(harness: Harness, data: bytes, metadata: bytes = subscription()) -> None:
    """Let a member of a classic group be assigned these bytes."""
    client, member_id = coordinator(harness, GROUP), ""
    member = Classic(client)
    for _ in range(2):
        protocol = JoinGroupRequestProtocol(name="range", metadata=metadata)
        member.send_join(member_id=member_id, protocols=[protocol])
        member_id = client.receive(JoinGroupResponse).member_id
    share = SyncGroupRequestAssignment(member_id=member_id, assignment=data)
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=1,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[share],
    )
    assert client.exchange(request, 5, SyncGroupResponse).error_code == E.NONE


@pytest.mark.parametrize(
    ("data", "metadata", "message"),
    [
        (assignment([0], b"sticky"), subscription(), "an unsupported custom assignor is in use"),
        (b"\0\1\x7f", subscription(), "the embedded consumer protocol is malformed"),
        (assignment([0]), b"\0", "the embedded consumer protocol is malformed"),
    ],
)
def test_a_group_whose_protocol_is_not_the_consumers_stays(
    data: bytes, metadata: bytes, message: str
) -> None:
    harness = cluster()
    with_assignment(harness, data, metadata)
    response = consumer(harness, "b").act()
    assert response.error_code == E.GROUP_ID_NOT_FOUND
    assert message in (response.error_message or "")
    assert kind(harness) == "classic"


def test_a_refused_heartbeat_leaves_a_classic_group_as_it_is() -> None:
    harness = cluster({"group.consumer.max.size": "1"})
    first = classic(harness)
    settle(harness, [first])
    assert consumer(harness, "b").act().error_code == E.GROUP_MAX_SIZE_REACHED
    assert kind(harness) == "classic"
    first.act()
    assert first.wants == "heartbeat"
    assert kind(harness.restored()) == "classic"


def test_members_that_wait_in_a_rebalance_rejoin_the_upgraded_group() -> None:
    harness = cluster()
    first, second = classic(harness), classic(harness)
    settle(harness, [first])
    second.act()
    second.act()
    assert second.client.is_waiting(), "for the first one to rejoin"
    third = consumer(harness, "c")
    third.act()
    response = second.client.receive(JoinGroupResponse)
    assert response.error_code == E.REBALANCE_IN_PROGRESS
    settle(harness, [first, second, third])


def test_who_does_not_rejoin_or_sync_is_removed() -> None:
    harness = cluster()
    first, second = both(harness, cooperative=True)
    third = consumer(harness, "c")
    third.act()
    first.act()
    assert first.wants == "join"

    def beat(seconds: float) -> None:
        """Let the others go on, and the first one send heartbeats without rejoining."""
        for _ in range(int(seconds / 5)):
            harness.advance(5.0)
            second.act()
            third.act()
            first.send_heartbeat()
            first.client.receive(HeartbeatResponse)

    beat(REBALANCE_MS / 1000 - 5)
    assert first.member_id in types(harness)
    harness.advance(5.0)
    assert first.member_id not in types(harness)
    fourth = classic(harness)
    fourth.act()
    fourth.act()
    assert fourth.wants == "sync"
    assert fourth.member_id in types(harness)
    for _ in range(int(REBALANCE_MS / 5000)):
        harness.advance(5.0)
        second.act()
        third.act()
        if fourth.member_id in types(harness):
            fourth.send_heartbeat()
            fourth.client.receive(HeartbeatResponse)
    assert fourth.member_id not in types(harness)


def test_the_session_of_a_classic_member_is_its_own() -> None:
    harness = cluster()
    first, second = both(harness)
    harness.advance(SESSION_MS / 1000 + 1)
    assert types(harness) == {"b": 1}
    settle(harness, [second])
    del first


def test_a_classic_member_that_is_gone_when_its_group_is_upgraded_is_removed() -> None:
    harness = cluster()
    first = classic(harness)
    settle(harness, [first])
    second = consumer(harness, "b")
    second.act()
    assert len(types(harness)) == 2
    harness.advance(SESSION_MS / 1000 + 1)
    assert types(harness) == {"b": 1}


def test_the_last_consumers_session_ends() -> None:
    harness = cluster()
    first, _ = both(harness)
    for _ in range(12):
        first.act()
        harness.advance(4.0)
    assert kind(harness) == "classic"
    settle(harness, [first])


def test_a_static_member_changes_its_protocol() -> None:
    """Restarted with the other protocol, it gets what it had; the group follows at once."""
    harness = cluster()
    first = classic(harness, instance_id="i")
    settle(harness, [first])
    upgraded = consumer(harness, "b", instance_id="i")
    settle(harness, [upgraded])
    assert types(harness) == {"b": 1}
    first.act()
    assert first.member_id == "", "it is fenced"
    again = classic(harness, instance_id="i")
    again.act()
    assert kind(harness) == "classic"
    assert again.wants == "sync"
    again.act()
    assert again.owned == set(range(PARTITIONS)), "without a rebalance"


@pytest.mark.parametrize("version", [8, 9])
def test_who_may_commit_in_a_group_of_both(version: int) -> None:
    harness = cluster()
    first, second = both(harness)
    offsets: Offsets = {(TOPIC, 0): (7, -1, "m")}

    def errors(member_id: str, generation: int) -> set[int]:
        members = Members([(member_id, None)], generation)
        return commit(coordinator(harness, GROUP), GROUP, offsets, members, version)

    assert errors(first.member_id, first.generation) == {E.NONE}
    assert errors(first.member_id, first.generation + 1) == {E.ILLEGAL_GENERATION}
    expected = E.STALE_MEMBER_EPOCH if version == 9 else E.UNSUPPORTED_VERSION
    assert errors(second.member_id, second.epoch + 1) == {expected}


def test_a_group_of_classic_members_alone_assigns_what_one_leaves_behind() -> None:
    """Where they may not downgrade, no heartbeat of a consumer computes the assignment."""
    harness = cluster({POLICY: "upgrade"})
    first, second = both(harness)
    third = classic(harness)
    settle(harness, [first, second, third])
    second.leave()
    settle(harness, [first, third])
    third.leave()
    settle(harness, [first])
    assert first.owned == set(range(PARTITIONS))
    assert kind(harness) == "consumer"
