"""What the table of `tests.interop` does not cover: a lost response, mixed implementations,
and what the broker saw of a static member that came back.
"""

from __future__ import annotations

from collections import Counter

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.join_group_request import JoinGroupRequest
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.leave_group_response import LeaveGroupResponse
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import IMPLEMENTATIONS, Implementation, Member, until

pytestmark = pytest.mark.timeout(600)


def values(count: int, prefix: str = "v") -> list[bytes]:
    return [f"{prefix}{at}".encode() * 20 for at in range(count)]


def all_seen(members: list[Member], count: int) -> bool:
    return len({each[:3] for member in members for each in list(member.seen)}) >= count


def settled(members: list[Member], topic: str, partitions: int) -> bool:
    """Whether each partition is assigned to one member, and each member has some."""
    held = Counter(each for member in members for each in member.assigned)
    return dict(held) == {(topic, at): 1 for at in range(partitions)} and all(
        member.assigned for member in members
    )


@pytest.mark.kafka(topics={"t": 1})
def test_idempotent(kafka_broker: ServerThread, make: Implementation) -> None:
    sent = values(100)
    # the response to the first is lost: the client retries
    fault = kafka_broker.fault("Produce", nth=1, action="disconnect", carried_out=True)
    make.produce(kafka_broker.bootstrap, "t", sent, idempotent=True)
    member = make.member(kafka_broker.bootstrap, "t", "g")
    member.until(lambda: all_seen([member], len(sent)))
    member.leave()
    assert fault.hit == 1
    assert [each.value for each in member.seen] == sent


def generations(server: ServerThread) -> list[tuple[str, int]]:
    """Who joined which generation, in order: instance and generation of each JoinGroup taken."""
    found = []
    for each in list(server.requests):
        request, response = each.request.body, each.response
        if not (isinstance(request, JoinGroupRequest) and isinstance(response, JoinGroupResponse)):
            continue
        if response.error_code == ErrorCode.NONE:
            found.append((request.group_instance_id or "", response.generation_id))
    return found


@pytest.mark.kafka(topics={"t": 2})
def test_a_static_member_restarts_without_a_rebalance(
    kafka_broker: ServerThread, make: Implementation
) -> None:
    bootstrap = kafka_broker.bootstrap
    members = [make.member(bootstrap, "t", "g", instance=name) for name in ("one", "two")]
    until(lambda: settled(members, "t", 2))
    had, other = set(members[0].assigned), members[1]
    before, changes = generations(kafka_broker), len(other.changes)
    last = max(generation for _, generation in before)
    members[0].leave()
    again = make.member(bootstrap, "t", "g", instance="one")
    until(lambda: again.assigned == had)
    make.produce(bootstrap, "t", values(40))
    until(lambda: all_seen([again, other], 40))
    assert generations(kafka_broker) == [*before, ("one", last)], "no rebalance: nobody else joins"
    assert not any(isinstance(r.response, LeaveGroupResponse) for r in list(kafka_broker.requests))
    assert len(other.changes) == changes
    for member in (again, other):
        member.leave()


@pytest.mark.kafka(topics={"t": 4})
def test_members_of_different_makes_share_a_group(kafka_broker: ServerThread) -> None:
    bootstrap = kafka_broker.bootstrap
    members = [make.member(bootstrap, "t", "g") for make in IMPLEMENTATIONS]
    until(lambda: settled(members, "t", 4))
    IMPLEMENTATIONS[0].produce(bootstrap, "t", values(100))
    until(lambda: all_seen(members, 100))
    for member in members:
        member.leave()
    # read again, perhaps, where a rebalance came before a commit; but nothing is lost
    assert {each.value for m in members for each in m.seen} == set(values(100))
