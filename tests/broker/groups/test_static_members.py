"""Static members over the wire (KIP-345): they return without a rebalance, or are fenced."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.join_group_response import JoinGroupResponse
from tests.broker.consumer import (
    AT_ONCE,
    REBALANCE,
    SESSION,
    Consumer,
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


def test_a_static_member_rejoins_without_a_rebalance(harness: Harness) -> None:
    one, two = Consumer(harness, "one"), Consumer(harness, "two")
    stable(one, two)
    generation = one.generation_id
    again = Consumer(harness, "one")
    again.joins()
    response = again.is_in()
    assert response.generation_id == generation
    assert response.member_id != one.member_id
    assert two.beats() == E.NONE
    again.syncs()
    assert again.assigned() == one.member_id.encode(), "what it had before"
    assert one.beats() == E.FENCED_INSTANCE_ID
    assert response.skip_assignment == again.leads


def test_a_static_member_that_is_replaced_while_it_joins_is_fenced(harness: Harness) -> None:
    one, two = Consumer(harness, "one"), Consumer(harness, "two")
    stable(one, two)
    one.joins([("range", b"new")])  # a rebalance, as it is the leader
    assert one.client.is_waiting()
    again = Consumer(harness, "one")
    again.joins()
    assert one.client.receive(JoinGroupResponse).error_code == E.FENCED_INSTANCE_ID
    two.joins()
    assert again.is_in().generation_id == two.is_in().generation_id == one.generation_id + 1


def test_a_static_member_that_comes_back_with_fewer_protocols_rebalances(harness: Harness) -> None:
    one = Consumer(harness, "one")
    one.joins([("range", b"r"), ("roundrobin", b"r")])
    assert one.is_in().protocol_name == "range"
    one.syncs(**{one.member_id: b"all"})
    assert one.assigned() == b"all"
    again = Consumer(harness, "one")
    again.joins([("roundrobin", b"r")])
    response = again.is_in()
    assert (response.generation_id, response.protocol_name) == (one.generation_id + 1, "roundrobin")


def test_a_static_member_that_is_replaced_before_it_synced_must_sync_too(harness: Harness) -> None:
    one, two = Consumer(harness, "one"), Consumer(harness, "two")
    stable(one)
    two.joins()
    one.joins()
    one.is_in()
    two.is_in()
    one.syncs()
    assert one.assigned() == b""
    again = Consumer(harness, "two")
    again.joins()
    assert again.is_in().generation_id == one.generation_id
    for _ in range(int(REBALANCE // SESSION) + 2):
        harness.advance(SESSION - 1)
        error = again.beats()
        one.beats()
    assert error == E.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_comes_back_need_not_assign(harness: Harness) -> None:
    one = Consumer(harness, "one")
    stable(one)
    new, old = Consumer(harness, "one"), Consumer(harness, "one")
    new.joins(version=9)
    response = new.is_in()
    assert (response.skip_assignment, response.leader) == (True, response.member_id)
    assert len(response.members) == 1
    old.joins(version=8)
    response = old.is_in()
    assert response.leader == new.member_id, "it does not know itself for the leader"
    assert response.members == []


def test_a_static_member_stays_while_it_is_away(harness: Harness) -> None:
    one, two = Consumer(harness, "one"), Consumer(harness)
    stable(one, two)
    one.client.disconnect()
    harness.advance(SESSION - 1)
    assert two.beats() == E.NONE
    harness.advance(2)  # its session is over
    assert two.beats() == E.REBALANCE_IN_PROGRESS


def test_members_that_are_silent_together_are_out_together(harness: Harness) -> None:
    """The session of a member does not begin anew because that of another one has expired."""
    one, two = Consumer(harness, "one"), Consumer(harness)
    stable(one, two)
    harness.advance(SESSION + 1)
    group = described(harness.client())
    assert (group.group_state, group.members) == ("Empty", [])
