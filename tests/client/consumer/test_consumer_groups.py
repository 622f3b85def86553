"""Scenarios of members of groups with group.protocol=consumer and our brokers, without sockets."""

from __future__ import annotations

from collections import Counter

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.client.config import Setting
from kafkawire.client.consumer import (
    CommitFailed,
    GroupFailed,
    OffsetAndMetadata,
    SubscriptionPattern,
    TopicPartition,
    events,
)
from kafkawire.client.consumer.consumer_group.member_states import MemberState
from kafkawire.client.consumer.coordinator.rebalancing import (
    Acknowledge,
    AddPartitions,
    CommitConsumed,
    NotifyListener,
    RemovePartitions,
    reconciling,
)
from kafkawire.client.consumer.offsets.committing import CommitKind
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest
from kafkawire.protocol.error_code import ErrorCode
from tests.client.administering import create_partitions
from tests.client.simulation import Simulation

from .test_scenarios import CALM, ORDERS, write
from .users import User, covered

Change = events.Change
SESSION_S = 6.0
SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.session.timeout.ms": str(int(SESSION_S * 1000)),
    "group.consumer.min.session.timeout.ms": str(int(SESSION_S * 1000)),
}
CONFIG: dict[str, Setting] = {
    "group.id": "readers",
    "group.protocol": "consumer",
    "auto.offset.reset": "earliest",
    "max.poll.interval.ms": 20_000,
    "auto.commit.interval.ms": 1_000,
    "max.poll.records": 10,
}


def simulation(release: str | None = None, settings: dict[str, str] = SETTINGS) -> Simulation:
    """A simulation with a topic of four partitions, whose leaders are spread."""
    made = Simulation(1, brokers=2, conditions=CALM, release=release, settings=settings)
    one, two = made.brokers.ids
    made.create("orders", [[one, two], [two, one]] * 2)
    return made


def config(**more: Setting) -> dict[str, Setting]:
    return CONFIG | {name.replace("_", "."): value for name, value in more.items()}


def subscribed(it: Simulation, name: str, *topics: str, **more: Setting) -> User:
    user = User(it, name, config(**more), seed=len(it.news) * 10)
    user.subscribe(*(topics or ("orders",)))
    return user


def stable(*users: User) -> bool:
    return all(user.machine.membership.state is MemberState.STABLE for user in users)


def settle(it: Simulation, *users: User, partitions: list[TopicPartition] = ORDERS) -> None:
    """Let time pass until the members share these partitions fairly."""
    least = len(partitions) // len(users)

    def settled() -> bool:
        fair = min(len(each.assignment) for each in users) >= least
        return fair and covered(users, partitions) and stable(*users)

    it.run(settled)


def epoch(user: User) -> int:
    return user.machine.membership.identity.generation_id


def test_partitions_move_as_members_come_and_go_and_each_record_is_read_once() -> None:
    it = simulation()
    one = subscribed(it, "one")
    settle(it, one)
    for partition in range(4):
        write(it, 25, partition)
    two = subscribed(it, "two")
    settle(it, one, two)
    three = subscribed(it, "three")
    settle(it, one, two, three)
    for partition in range(4):
        write(it, 25, partition)
    two.close()
    it.run(lambda: two.closed)
    settle(it, one, three)
    users = one, two, three
    it.run(lambda: sum(len(each.read) for each in users) >= 200)
    it.pass_time(5.0)
    read = Counter((each.partition, each.offset) for user in users for each in user.read)
    assert read == Counter((partition, offset) for partition in range(4) for offset in range(50))
    changes = {change for user in users for change, _ in user.changes}
    assert changes == {Change.ASSIGNED, Change.REVOKED}


def test_only_partitions_that_move_are_revoked() -> None:
    it = simulation()
    one = subscribed(it, "one")
    settle(it, one)
    two = subscribed(it, "two")
    settle(it, one, two)
    moved = tuple(sorted(two.assignment))
    assert len(moved) == 2
    assert one.changes == [
        (Change.ASSIGNED, tuple(ORDERS)),
        (Change.REVOKED, moved),
        (Change.ASSIGNED, ()),
    ]
    # the second member first got nothing, and then what the first had given up
    assert [len(which) for _, which in two.changes] in ([0, 2], [0, 1, 1])


def test_a_revoked_partition_is_read_by_others_once_the_listener_has_returned() -> None:
    it = simulation()
    one = subscribed(it, "one")
    one.think_s = 4.0
    settle(it, one)
    two = subscribed(it, "two")
    seen: list[tuple[int, int]] = []
    while not two.assignment:
        seen.append((len(one.assignment), len(two.assignment)))
        assert not one.assignment & two.assignment
        it.pass_time(0.1)
    assert (4, 0) in seen


def test_heartbeats_have_what_has_changed() -> None:
    it = simulation()
    sent: list[ConsumerGroupHeartbeatRequest] = []
    it.on_report = lambda report: (
        sent.append(report.request.body)
        if isinstance(report.request.body, ConsumerGroupHeartbeatRequest)
        else None
    )
    one = subscribed(it, "one", client_rack="r1")
    settle(it, one)
    it.pass_time(5.5)
    joins, acknowledges, *alive = sent
    assert (joins.member_epoch, joins.subscribed_topic_names) == (0, ["orders"])
    assert (joins.topic_partitions, joins.rebalance_timeout_ms, joins.rack_id) == ([], 20_000, "r1")
    assert joins.member_id == one.machine.membership.identity.member_id
    assert acknowledges.topic_partitions is not None
    assert sum(len(each.partitions) for each in acknowledges.topic_partitions) == 4
    assert len(alive) == 5  # as the broker says, one a second
    for each in (acknowledges, *alive):
        assert (each.subscribed_topic_names, each.subscribed_topic_regex) == (None, None)
        assert (each.rebalance_timeout_ms, each.rack_id) == (-1, None)
    assert all(each.topic_partitions is None for each in alive)
    del sent[:]
    it.create("parcels", [[1]])
    one.send(events.Subscribe(("orders", "parcels"), has_listener=True))
    settle(it, one, partitions=[*ORDERS, TopicPartition("parcels", 0)])
    assert sent[0].subscribed_topic_names == ["orders", "parcels"]


def test_another_subscription_revokes_the_old_partitions() -> None:
    it = simulation()
    it.create("payments", [[1], [2]])
    one = subscribed(it, "one")
    settle(it, one)
    one.send(events.Subscribe(("payments",), has_listener=True))
    settle(it, one, partitions=[TopicPartition("payments", n) for n in range(2)])
    assert (Change.REVOKED, tuple(ORDERS)) in one.changes


def test_topics_and_partitions_that_are_created_later() -> None:
    it = simulation()
    one = subscribed(it, "one", "orders", "later")
    settle(it, one)
    more = create_partitions("orders", 6, [[1, 2], [2, 1]])
    assert not it.administer(more, CreatePartitionsResponse).results[0].error_code
    it.create("later", [[1]])
    all_partitions = [TopicPartition("orders", n) for n in range(6)]
    settle(it, one, partitions=[*all_partitions, TopicPartition("later", 0)])


def test_a_pattern_of_the_brokers_and_one_of_python() -> None:
    it = simulation()
    for name in ("order-1", "order-2", "other"):
        it.create(name, [[1]])
    one = User(it, "one", config(metadata_max_age_ms=1_000))
    one.send(events.Subscribe(SubscriptionPattern("order-[0-9]"), has_listener=True))
    one.poll()
    two = [TopicPartition("order-1", 0), TopicPartition("order-2", 0)]
    settle(it, one, partitions=two)
    it.create("order-3", [[1]])
    settle(it, one, partitions=[*two, TopicPartition("order-3", 0)])
    with pytest.raises(LocalProtocolError, match="unsubscribe"):
        one.send(events.Subscribe(("orders",)))
    one.send(events.Unsubscribe("gone"))
    it.run(lambda: "gone" in one.results and not one.assignment)
    one.send(events.Subscribe(("orders",), has_listener=True))
    settle(it, one)


def test_an_invalid_pattern_is_an_error_with_the_reason_of_the_broker() -> None:
    it = simulation()
    one = User(it, "one", config())
    one.send(events.Subscribe(SubscriptionPattern("order-(")))
    one.poll()
    it.run(lambda: bool(one.errors))
    one.stop()
    error = one.errors[0]
    assert isinstance(error, GroupFailed)
    assert error.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "order-(" in str(error)


def test_a_static_member_comes_back_to_what_it_had() -> None:
    it = simulation()
    one, two = subscribed(it, "one"), subscribed(it, "two", group_instance_id="two")
    settle(it, one, two)
    before, had = epoch(one), two.assignment
    two.close()
    it.run(lambda: two.closed)
    again = subscribed(it, "again", group_instance_id="two")
    it.run(lambda: stable(again) and again.assignment == had)
    it.pass_time(5.0)
    assert epoch(one) == before


def test_an_instance_id_of_another_member_is_refused_until_that_has_gone() -> None:
    it = simulation()
    one = subscribed(it, "one", group_instance_id="a")
    settle(it, one)
    two = subscribed(it, "two", group_instance_id="a")
    it.run(lambda: bool(two.errors))
    assert isinstance(two.errors[0], GroupFailed)
    assert two.errors[0].code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert "group.instance.id" in str(two.errors[0])
    assert covered([one], ORDERS)
    one.close()
    settle(it, two)


def test_a_static_member_whose_response_was_lost_waits_for_its_own_place() -> None:
    it = simulation()
    lost = Fault("ConsumerGroupHeartbeat", nth=1, action=Action.DISCONNECT, carried_out=True)
    it.trouble(lost)
    one = subscribed(it, "one", group_instance_id="a")
    settle(it, one)
    assert not one.errors


def test_a_user_who_stops_polling_leaves_and_joins_again() -> None:
    it = simulation()
    one, two = subscribed(it, "one"), subscribed(it, "two")
    settle(it, one, two)
    had = one.assignment
    one.stop()
    it.pass_time(15.0)
    assert one.assignment == had  # heartbeats go on
    it.run(lambda: covered([two], ORDERS))
    assert one.assignment == frozenset()
    one.polling = True
    one.poll()
    settle(it, one, two)
    assert (Change.LOST, tuple(sorted(had))) in one.changes


def test_a_member_that_crashed_is_removed_after_the_session_timeout_of_the_broker() -> None:
    it = simulation()
    one, two = subscribed(it, "one"), subscribed(it, "two")
    settle(it, one, two)
    began = it.now
    two.crash()
    settle(it, one)
    assert SESSION_S - 1.5 <= it.now - began <= SESSION_S + 3.0


@pytest.mark.parametrize(
    "error",
    [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND],
    ids=lambda each: each.name,
)
def test_a_member_that_is_fenced_loses_its_partitions_and_joins_again(error: ErrorCode) -> None:
    it = simulation()
    one = subscribed(it, "one")
    settle(it, one)
    member_id = one.machine.membership.identity.member_id
    it.trouble(Fault("ConsumerGroupHeartbeat", nth=1, action=Action.ERROR, error=error))
    it.run(lambda: one.changes[-1][0] is Change.LOST)
    settle(it, one)
    assert [change for change, _ in one.changes] == [Change.ASSIGNED, Change.LOST, Change.ASSIGNED]
    assert one.machine.membership.identity.member_id == member_id


def test_consumed_offsets_are_committed_before_partitions_are_revoked() -> None:
    it = simulation()
    one = subscribed(it, "one", auto_commit_interval_ms=1_000_000)
    for partition in range(4):
        write(it, 7, partition)
    it.run(lambda: len(one.read) == 28 and stable(one))
    two = subscribed(it, "two")
    settle(it, one, two)
    it.pass_time(3.0)
    assert two.read == []


def test_a_commit_with_an_old_epoch_is_sent_again_before_a_revocation() -> None:
    """Of the user it fails, as with Java's consumer."""
    it = simulation()
    one = subscribed(it, "one", auto_commit_interval_ms=1_000_000)
    write(it, 7)
    it.run(lambda: len(one.read) == 7 and stable(one))
    stale = ErrorCode.STALE_MEMBER_EPOCH
    it.trouble(Fault("OffsetCommit", nth=1, action=Action.ERROR, error=stale))
    offsets = {ORDERS[0]: OffsetAndMetadata(3)}
    one.send(events.Commit("mine", offsets, CommitKind.SYNC, 10.0))
    it.run(lambda: "mine" in one.results)
    done = one.results["mine"]
    assert isinstance(done, events.Done)
    assert isinstance(done.error, CommitFailed)
    assert done.error.code == stale
    it.trouble(Fault("OffsetCommit", nth=1, action=Action.ERROR, error=stale))
    one.close()
    it.run(lambda: one.closed)
    two = subscribed(it, "two")
    settle(it, two)
    it.pass_time(3.0)
    assert two.read == []  # the close committed


def test_committed_offsets_are_fetched_as_a_member() -> None:
    it = simulation()
    one = subscribed(it, "one")
    write(it, 5)
    stale = ErrorCode.STALE_MEMBER_EPOCH
    fetches: list[OffsetFetchRequest] = []
    it.on_report = lambda report: (
        fetches.append(report.request.body)
        if isinstance(report.request.body, OffsetFetchRequest)
        else None
    )
    it.trouble(Fault("OffsetFetch", nth=1, action=Action.ERROR, error=stale))
    it.run(lambda: len(one.read) == 5)
    assert not one.errors
    assert fetches
    for each in fetches:
        assert each.groups[0].member_id == one.machine.membership.identity.member_id
        assert each.groups[0].member_epoch > 0


def test_what_is_revoked_is_reported_before_anything_is_added() -> None:
    steps = reconciling((ORDERS[0],), (ORDERS[1],))
    assert [type(each) for each in steps] == [
        CommitConsumed,
        NotifyListener,
        RemovePartitions,
        Acknowledge,
        AddPartitions,
        NotifyListener,
        Acknowledge,
    ]
    assert [each.complete for each in steps if isinstance(each, Acknowledge)] == [False, True]


@pytest.mark.parametrize("release", ["3.6", "3.9"])
def test_a_broker_without_these_groups_is_named_with_what_to_do(release: str) -> None:
    it = simulation(release, {})
    one = subscribed(it, "one")
    it.run(lambda: bool(one.errors))
    one.stop()
    text = str(one.errors[0])
    assert "group.protocol=classic" in text
    assert "broker 1" in text or "broker 2" in text
    assert isinstance(one.errors[0], GroupFailed)
    assert one.errors[0].code == ErrorCode.UNSUPPORTED_VERSION
