"""Real clients produce and consume: every codec, all acks, groups of several members."""

from __future__ import annotations

from collections import Counter

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.join_group_request import JoinGroupRequest
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.leave_group_response import LeaveGroupResponse
from kafkawire.net.server_thread import ServerThread

from .clients import MAKES, Make, Member, until

pytestmark = pytest.mark.timeout(120)
CODECS = [(make, codec) for make in MAKES for codec in make.codecs]
STRATEGIES = [(make, strategy) for make in MAKES for strategy in make.strategies]


def named(case: object) -> str:
    return case.name if isinstance(case, Make) else str(case)


def values(count: int, prefix: str = "v") -> list[bytes]:
    return [f"{prefix}{at}".encode() * 20 for at in range(count)]


def all_seen(members: list[Member], count: int) -> bool:
    return len({each[:3] for member in members for each in list(member.seen)}) >= count


def settled(members: list[Member], topic: str, partitions: int) -> bool:
    """Whether the partitions are shared out, each to one, and everybody has some."""
    held = Counter(each for member in members for each in member.assigned)
    return dict(held) == {(topic, at): 1 for at in range(partitions)} and all(
        member.assigned for member in members
    )


@pytest.mark.parametrize(("make", "codec"), CODECS, ids=named)
@pytest.mark.kafka(topics={"t": 3})
def test_what_is_produced_with_a_codec_is_consumed(
    kafka_broker: ServerThread, make: Make, codec: str
) -> None:
    sent = values(200)
    went = make.produce(kafka_broker.bootstrap, "t", sent, codec=codec)
    member = make.member(kafka_broker.bootstrap, "t", "g")
    member.until(lambda: all_seen([member], len(sent)))
    member.leave()
    found = {(each.partition, each.offset): each.value for each in member.seen}
    assert [found[place] for place in went] == sent
    assert len(member.seen) == len(sent)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.kafka(topics={"t": 1})
def test_acks(kafka_broker: ServerThread, make: Make, acks: str) -> None:
    sent = values(50)
    went = make.produce(kafka_broker.bootstrap, "t", sent, acks=acks)
    member = make.member(kafka_broker.bootstrap, "t", "g")
    member.until(lambda: all_seen([member], len(sent)))
    member.leave()
    assert [each.value for each in member.seen] == sent
    assert went == ([(-1, -1)] * 50 if acks == "0" else [(0, at) for at in range(50)])


@pytest.mark.kafka(topics={"t": 1})
def test_idempotent(kafka_broker: ServerThread, make: Make) -> None:
    sent = values(100)
    # the answer to the first is lost on the way: the client sends it again
    fault = kafka_broker.fault("Produce", nth=1, action="disconnect", carried_out=True)
    make.produce(kafka_broker.bootstrap, "t", sent, idempotent=True)
    member = make.member(kafka_broker.bootstrap, "t", "g")
    member.until(lambda: all_seen([member], len(sent)))
    member.leave()
    assert fault.hit == 1
    assert [each.value for each in member.seen] == sent


@pytest.mark.kafka(brokers=3, topics={"t": 6})
@pytest.mark.parametrize(("make", "strategy"), STRATEGIES, ids=named)
def test_members_join_and_leave(kafka_broker: ServerThread, make: Make, strategy: str) -> None:
    bootstrap = kafka_broker.bootstrap
    members: list[Member] = []
    for _ in range(3):
        members.append(make.member(bootstrap, "t", "g", strategy=strategy))
        until(lambda: settled(members, "t", 6))
    make.produce(bootstrap, "t", values(120))
    until(lambda: all_seen(members, 120))
    gone = members.pop(0)
    gone.leave()
    until(lambda: settled(members, "t", 6))
    make.produce(bootstrap, "t", values(60, "later"))
    until(lambda: all_seen([*members, gone], 180))
    for member in members:
        member.leave()
    seen = Counter((each.partition, each.offset) for m in [*members, gone] for each in m.seen)
    # what was read and not committed before a rebalance may come again; nothing may be lost
    assert len(seen) == 180


def generations(server: ServerThread) -> list[tuple[str, int]]:
    """Who joined which generation, in order: instance and generation of each JoinGroup taken."""
    found = []
    for each in list(server.requests):
        asked, told = each.request.body, each.response
        if not (isinstance(asked, JoinGroupRequest) and isinstance(told, JoinGroupResponse)):
            continue
        if told.error_code == ErrorCode.NONE:
            found.append((asked.group_instance_id or "", told.generation_id))
    return found


@pytest.mark.kafka(topics={"t": 2})
def test_a_static_member_comes_back_and_nobody_notices(
    kafka_broker: ServerThread, make: Make
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


@pytest.mark.kafka(topics={"t": 1})
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_reset_policies(kafka_broker: ServerThread, make: Make, reset: str) -> None:
    bootstrap = kafka_broker.bootstrap
    make.produce(bootstrap, "t", values(10, "old"))
    member = make.member(bootstrap, "t", "g", reset=reset)
    # positioned: it has fetched from where it begins
    until(lambda: any(r.request.api_key.name == "FETCH" for r in kafka_broker.requests))
    make.produce(bootstrap, "t", values(10, "new"))
    expected = values(10, "new") if reset == "latest" else values(10, "old") + values(10, "new")
    member.until(lambda: all_seen([member], len(expected)))
    member.leave()
    assert [each.value for each in member.seen] == expected


@pytest.mark.kafka(topics={"t": 1})
def test_a_group_goes_on_where_it_committed(kafka_broker: ServerThread, make: Make) -> None:
    bootstrap = kafka_broker.bootstrap
    make.produce(bootstrap, "t", values(10, "first"))
    for batch in ("first", "second"):
        member = make.member(bootstrap, "t", "g")
        member.until(lambda member=member: all_seen([member], 10))  # type: ignore[misc]
        member.leave()
        assert [each.value for each in member.seen] == values(10, batch)
        make.produce(bootstrap, "t", values(10, "second"))


@pytest.mark.kafka(topics={"t": 4})
def test_members_of_different_makes_share_a_group(kafka_broker: ServerThread) -> None:
    bootstrap = kafka_broker.bootstrap
    members = [make.member(bootstrap, "t", "g") for make in MAKES]
    until(lambda: settled(members, "t", 4))
    MAKES[0].produce(bootstrap, "t", values(100))
    until(lambda: all_seen(members, 100))
    for member in members:
        member.leave()
    # read again, perhaps, where a rebalance came before a commit; but nothing is lost
    assert {each.value for m in members for each in m.seen} == set(values(100))
