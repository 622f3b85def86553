"""Classic groups over the wire: joins, rebalances, sessions, coordinators."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.groups.coordinators import partition_for
from kafkawire.broker.groups.java_collections import java_hash
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest
from kafkawire.messages.sync_group_response import SyncGroupResponse
from tests.broker.consumer import (
    AT_ONCE,
    GROUP,
    RANGE,
    REBALANCE,
    SESSION,
    Consumer,
    committed,
    coordinator,
    described,
    stable,
)
from tests.broker.harness import Harness

E = ErrorCode


@pytest.fixture
def harness() -> Harness:
    harness = Harness(topics={"t": 1}, settings=AT_ONCE)
    coordinator(harness.client())
    return harness


def test_the_hash_is_javas() -> None:
    assert java_hash("") == 0
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hash("\N{GRINNING FACE}") == 1772899
    assert partition_for("polygenelubricants", 50) == 0


def test_a_first_member_is_given_an_id_then_leads(harness: Harness) -> None:
    one = Consumer(harness)
    one._join(RANGE, 9, "consumer")
    requested = one.client.receive(JoinGroupResponse)
    assert requested.error_code == E.MEMBER_ID_REQUIRED
    assert requested.member_id.startswith("tester-")
    one.member_id = requested.member_id
    one.joins()
    joined = one.is_in()
    assert (joined.generation_id, joined.leader) == (1, one.member_id)
    assert [(each.member_id, each.metadata) for each in joined.members] == [(one.member_id, b"r")]
    one.syncs(**{one.member_id: b"everything"})
    assert one.assigned() == b"everything"
    assert described(one.client).group_state == "Stable"


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_no_member_id_is_required(harness: Harness, version: int) -> None:
    one = Consumer(harness)
    one.joins(version=version)
    assert one.is_in().member_id


def test_the_first_rebalance_waits_for_more(harness: Harness) -> None:
    harness = Harness(topics={"t": 1}, settings={"group.initial.rebalance.delay.ms": "3000"})
    coordinator(harness.client())
    one, two = Consumer(harness), Consumer(harness)
    one.joins()
    harness.advance(2.0)
    two.joins()
    harness.advance(2.0)  # the second came within the delay: it is extended
    assert one.client.is_waiting()
    assert two.client.is_waiting()
    harness.advance(2.5)
    assert one.is_in().generation_id == two.is_in().generation_id == 1
    assert one.leads
    assert not two.leads


def test_the_first_rebalance_waits_no_longer_than_a_rebalance_may() -> None:
    """However many come, each within the delay of the one before."""
    harness = Harness(topics={"t": 1}, settings={"group.initial.rebalance.delay.ms": "3000"})
    coordinator(harness.client())
    first = Consumer(harness)
    first.joins()
    waited = 0.0
    while first.client.is_waiting():
        assert waited < REBALANCE
        Consumer(harness).joins(version=3)
        harness.advance(2.0)
        waited += 2.0
    assert waited == REBALANCE
    assert first.is_in().generation_id == 1


def test_a_second_member_makes_the_first_join_again(harness: Harness) -> None:
    one, two = Consumer(harness), Consumer(harness)
    stable(one)
    two.joins()
    assert two.client.is_waiting()
    assert one.beats() == E.REBALANCE_IN_PROGRESS
    one.joins()
    assert one.is_in().generation_id == two.is_in().generation_id == 2
    assert one.leads, "who led before and joins again leads on"


def test_a_member_with_heartbeats_is_not_removed_while_others_are_slow(harness: Harness) -> None:
    one, two = Consumer(harness), Consumer(harness)
    stable(one)
    two.joins()
    for _ in range(5):
        harness.advance(SESSION - 1)
        assert one.beats() == E.REBALANCE_IN_PROGRESS
    one.joins()
    assert one.is_in().generation_id == two.is_in().generation_id


def test_a_member_without_heartbeats_is_removed(harness: Harness) -> None:
    one, two = Consumer(harness), Consumer(harness)
    stable(one, two)
    harness.advance(SESSION - 1)
    assert two.beats() == E.NONE
    harness.advance(2)
    assert two.beats() == E.REBALANCE_IN_PROGRESS
    two.joins()
    assert len(two.is_in().members) == 1
    assert one.beats() == E.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_rejoin_in_time_is_removed(harness: Harness) -> None:
    one, two, three = Consumer(harness), Consumer(harness), Consumer(harness)
    stable(one, two)
    three.joins()
    two.joins()
    for _ in range(int(REBALANCE // 5)):
        harness.advance(5)
        if three.client.is_waiting():
            assert one.beats() == E.REBALANCE_IN_PROGRESS  # alive, and yet it does not join
    assert {two.is_in().generation_id, three.is_in().generation_id} == {three.generation_id}
    assert one.beats() == E.UNKNOWN_MEMBER_ID


def test_a_new_member_is_not_waited_for_longer_than_five_minutes(harness: Harness) -> None:
    """Its client may be gone: a member whose join is delayed sends no heartbeats."""
    one, two = Consumer(harness), Consumer(harness)
    one.rebalance = two.rebalance = 900.0
    stable(one)
    two.joins()
    for _ in range(33):
        harness.advance(SESSION - 1)
        assert one.beats() == E.REBALANCE_IN_PROGRESS
    assert two.client.is_waiting()
    harness.advance(SESSION - 1)
    assert two.client.receive(JoinGroupResponse).error_code == E.UNKNOWN_MEMBER_ID


def test_a_member_that_never_syncs_is_removed(harness: Harness) -> None:
    one, two = Consumer(harness), Consumer(harness)
    stable(one, two)
    for consumer in (one, two):
        consumer.joins()
    if one.early_response is None:
        one.is_in()
    two.is_in()
    two.syncs()
    for _ in range(int(REBALANCE // 5) + 1):
        harness.advance(5)
        one.beats()
    response = two.client.receive(SyncGroupResponse)
    assert response.error_code == E.REBALANCE_IN_PROGRESS
    assert one.beats() == E.UNKNOWN_MEMBER_ID


def test_a_pending_member_expires(harness: Harness) -> None:
    one, ghost = Consumer(harness), Consumer(harness)
    stable(one)
    ghost._join(RANGE, 9, "consumer")
    ghost.member_id = ghost.client.receive(JoinGroupResponse).member_id
    harness.advance(SESSION / 2)
    assert one.beats() == E.NONE
    harness.advance(SESSION / 2 + 1)
    ghost._join(RANGE, 9, "consumer")
    assert ghost.client.receive(JoinGroupResponse).error_code == E.UNKNOWN_MEMBER_ID


def test_leaving_rebalances_and_an_empty_group_is_empty(harness: Harness) -> None:
    one, two = Consumer(harness), Consumer(harness)
    stable(one, two)
    assert two.disconnect() == E.NONE
    assert one.beats() == E.REBALANCE_IN_PROGRESS
    one.joins()
    one.is_in()
    assert one.disconnect() == E.NONE
    assert described(one.client).group_state == "Empty"
    assert one.disconnect() == E.UNKNOWN_MEMBER_ID


def test_an_assignment_for_another_protocol_is_rejected(harness: Harness) -> None:
    one = Consumer(harness)
    one.joins()
    one.is_in()
    for kind, name in (("consumer", "sticky"), ("connect", "range")):
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=one.generation_id,
            member_id=one.member_id,
            protocol_type=kind,
            protocol_name=name,
        )
        response = one.client.exchange(request, 5, SyncGroupResponse)
        assert response.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    one.syncs()
    assert one.assigned() == b""


def test_protocols_must_have_one_in_common(harness: Harness) -> None:
    one = Consumer(harness)
    one.joins([("range", b"1"), ("sticky", b"2")])
    one.is_in()
    for protocols, kind in (([("other", b"")], "consumer"), (RANGE, "connect")):
        two = Consumer(harness)
        two._join(protocols, 9, kind)
        assert two.client.receive(JoinGroupResponse).error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_most_votes_win_among_what_all_have(harness: Harness) -> None:
    one, two = Consumer(harness), Consumer(harness)
    one.joins([("a", b"1"), ("b", b"2"), ("c", b"3")])
    one.is_in()
    two.joins([("b", b"4"), ("a", b"5")])
    one.joins([("c", b"6"), ("b", b"7"), ("a", b"8")])
    assert one.is_in().protocol_name == two.is_in().protocol_name == "b"


def test_a_session_timeout_out_of_range_is_rejected(harness: Harness) -> None:
    one = Consumer(harness)
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=1,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    response = one.client.exchange(request, 9, JoinGroupResponse)
    assert response.error_code == E.INVALID_SESSION_TIMEOUT


def test_a_group_has_no_more_members_than_it_may() -> None:
    harness = Harness(topics={"t": 1}, settings={**AT_ONCE, "group.max.size": "1"})
    coordinator(harness.client())
    one, two = Consumer(harness), Consumer(harness)
    stable(one)
    two._join(RANGE, 9, "consumer")
    assert two.client.receive(JoinGroupResponse).error_code == E.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("how", ["moved", "stopped"])
def test_a_group_survives_its_coordinator(how: str) -> None:
    settings = {**AT_ONCE, "offsets.topic.num.partitions": "1"}
    harness = Harness(3, topics={"t": 1}, settings=settings)
    first = coordinator(harness.client())
    one, waiting = Consumer(harness, node_id=first), Consumer(harness, node_id=first)
    stable(one)
    assert one.commits(42) == E.NONE
    waiting.joins()
    assert waiting.client.is_waiting()
    if how == "moved":
        other = first % 3 + 1
        harness.move_leader("__consumer_offsets", 0, other)
        assert waiting.client.receive(JoinGroupResponse).error_code == E.NOT_COORDINATOR
        assert one.beats() == E.NOT_COORDINATOR
    else:
        harness.stop_broker(first)
        assert one.client.closed == "the node has stopped"
    other = next(node for node in (1, 2, 3) if node != first)
    other = coordinator(harness.client(other))
    assert other != first
    moved = Consumer(harness, node_id=other)
    moved.member_id, moved.generation_id = one.member_id, one.generation_id
    assert moved.beats() == E.NONE, "the member is known where the group is now"
    assert committed(moved.client) == 42
    group = described(moved.client)
    assert (group.group_state, len(group.members)) == ("Stable", 1)
    assert group.members[0].member_assignment == one.member_id.encode()
    harness.advance(SESSION + 1)
    assert described(moved.client).group_state == "Empty"
