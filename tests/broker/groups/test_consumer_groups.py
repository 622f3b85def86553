"""Consumer groups of KIP-848: members, epochs, assignments and those who are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.groups.consumer_groups.assignors import MemberSpec, range_, uniform
from kafkawire.broker.groups.consumer_groups.checks import (
    CommittingMember,
    Refusal,
    commit_error,
    invalid_request,
    transactional_commit_error,
)
from kafkawire.broker.groups.consumer_groups.group import ConsumerGroup, HeartbeatResult
from kafkawire.broker.groups.consumer_groups.members import (
    ConsumerGroupState,
    Current,
    HeartbeatRequest,
    MemberState,
)
from kafkawire.broker.groups.consumer_groups.metadata import GroupConfig
from kafkawire.broker.groups.consumer_groups.reconciliation import Target, reconciled
from kafkawire.broker.groups.consumer_groups.records import decode, encode
from kafkawire.log import InternalLog
from kafkawire.protocol.log_records import decode_log_record

from ..work import steps
from .consumer_group import NONE, Consumer, FakeTopics, partitions, settle, topic_id

E, S, M = ErrorCode, ConsumerGroupState, MemberState


def group_of(*ids: str, topics: FakeTopics) -> tuple[ConsumerGroup, list[Consumer]]:
    group = ConsumerGroup("g")
    consumers = [Consumer(group, topics, each) for each in ids]
    for each in consumers:
        each.heartbeat()
    settle(consumers)
    return group, consumers


P = partitions
TAKEN = P("t-3")
"""What another member has."""


@pytest.mark.parametrize(
    ("current", "target", "owned", "expected"),
    [
        pytest.param(
            Current(5, 4, M.STABLE, P("t-0")),
            Target(5, P("t-0")),
            None,
            Current(5, 4, M.STABLE, P("t-0")),
            id="nothing new",
        ),
        pytest.param(
            Current(5, 4, M.STABLE, P("t-0")),
            Target(6, P("t-0", "t-1")),
            None,
            Current(6, 5, M.STABLE, P("t-0", "t-1")),
            id="gets a free partition",
        ),
        pytest.param(
            Current(5, 4, M.STABLE, P("t-0", "t-1")),
            Target(6, P("t-0", "t-2")),
            None,
            Current(5, 5, M.UNREVOKED_PARTITIONS, P("t-0"), P("t-1")),
            id="revokes before it gets",
        ),
        pytest.param(
            Current(5, 5, M.UNREVOKED_PARTITIONS, P("t-0"), P("t-1")),
            Target(6, P("t-0", "t-2")),
            P("t-0", "t-1"),
            Current(5, 5, M.UNREVOKED_PARTITIONS, P("t-0"), P("t-1")),
            id="has not revoked",
        ),
        pytest.param(
            Current(5, 5, M.UNREVOKED_PARTITIONS, P("t-0"), P("t-1")),
            Target(6, P("t-0", "t-2")),
            P("t-0"),
            Current(6, 5, M.STABLE, P("t-0", "t-2")),
            id="has revoked",
        ),
        pytest.param(
            Current(5, 5, M.UNREVOKED_PARTITIONS, P("t-0", "t-4"), P("t-1")),
            Target(7, P("t-0")),
            P("t-0", "t-4"),
            Current(5, 5, M.UNREVOKED_PARTITIONS, P("t-0"), P("t-4")),
            id="has revoked, and has to revoke more",
        ),
        pytest.param(
            Current(5, 4, M.STABLE, P("t-0")),
            Target(6, P("t-0", "t-2", "t-3")),
            None,
            Current(6, 5, M.UNRELEASED_PARTITIONS, P("t-0", "t-2")),
            id="waits for another member",
        ),
        pytest.param(
            Current(6, 5, M.UNRELEASED_PARTITIONS, P("t-0")),
            Target(6, P("t-0", "t-3")),
            None,
            Current(6, 6, M.UNRELEASED_PARTITIONS, P("t-0")),
            id="still waits",
        ),
        pytest.param(
            Current(6, 5, M.UNRELEASED_PARTITIONS, P("t-0")),
            Target(6, P("t-0", "t-2")),
            None,
            Current(6, 6, M.STABLE, P("t-0", "t-2")),
            id="no longer waits",
        ),
        pytest.param(
            Current(5, 4, M.STABLE, P("t-0", "t-1")),
            Target(6, P("t-0")),
            P("t-0"),
            Current(6, 5, M.STABLE, P("t-0")),
            id="no longer has what it must revoke",
        ),
    ],
)
def test_reconciliation(
    current: Current, target: Target, owned: frozenset[tuple[bytes, int]] | None, expected: Current
) -> None:
    assert reconciled(current, target, owned, lambda each: each not in TAKEN) == expected


def test_partitions_move_to_a_second_member_when_the_first_has_revoked_them() -> None:
    topics = FakeTopics(t=4)
    group, (first,) = group_of("a", topics=topics)
    assert first.assigned == P("t-0", "t-1", "t-2", "t-3")
    assert (group.state, first.epoch) == (S.STABLE, 2)
    first.revokes = False
    second = Consumer(group, topics, "b")
    second.heartbeat()
    assert second.assigned == NONE
    assert group.state is S.RECONCILING
    first.heartbeat()
    assert first.assigned == P("t-0", "t-1")
    first.heartbeat()
    second.heartbeat()
    assert second.assigned == NONE
    assert first.epoch == 2
    first.revoke()
    first.heartbeat()
    second.heartbeat()
    assert second.assigned == P("t-2", "t-3")
    assert (first.epoch, second.epoch, group.state) == (3, 3, S.STABLE)


def test_who_leaves_gives_its_partitions_to_others() -> None:
    group, (first, second) = group_of("a", "b", topics=FakeTopics(t=4))
    assert second.leave() == HeartbeatResult("b", -1)
    assert group.state == S.ASSIGNING
    settle([first])
    assert first.assigned == P("t-0", "t-1", "t-2", "t-3")
    first.leave()
    assert group.population == 0
    assert group.state.value == "Empty"


def test_new_partitions_and_topics_are_assigned() -> None:
    topics = FakeTopics(t=1)
    group, (first,) = group_of("a", topics=topics)
    topics.set("t", 2)
    topics.set("other", 9)
    settle([first])
    assert first.assigned == P("t-0", "t-1")
    assert first.epoch == group.epoch == 3
    topics.set("other", 10)
    settle([first])
    assert group.epoch == 3, "it is not subscribed to that"


def test_an_epoch_begins_when_replicas_are_in_other_racks() -> None:
    topics = FakeTopics(t=1, u=1)
    group, (first,) = group_of("a", topics=topics)
    for topic, epoch in (("t", 3), ("t", 4), ("u", 4)):
        topics.move(topic, f"rack-{epoch}")
        settle([first])
        assert (group.epoch, first.epoch) == (epoch, epoch)


def test_a_member_whose_session_expires_is_removed() -> None:
    group, (first, second) = group_of("a", "b", topics=FakeTopics(t=2))
    first.heartbeat(now=40.0)
    assert group.next_deadline() == 45.0
    group.advance(second.topics, 45.0)
    assert list(group.subscriptions) == ["a"]
    assert second.heartbeat(now=46.0) == Refusal(
        E.UNKNOWN_MEMBER_ID, "Member b is not a member of group g."
    )


def test_a_member_that_does_not_revoke_is_removed() -> None:
    topics = FakeTopics(t=2)
    group, (first,) = group_of("a", topics=topics)
    group.config = GroupConfig(session_timeout=1000.0)
    first.revokes = False
    Consumer(group, topics, "b").heartbeat()
    first.heartbeat(now=10.0)
    group.advance(topics, 69.0)
    assert "a" in group.subscriptions
    group.advance(topics, 70.0)
    assert list(group.subscriptions) == ["b"]


# -- epochs


def test_an_epoch_that_is_not_its_own_fences_a_member() -> None:
    _, (first,) = group_of("a", topics=FakeTopics(t=1))
    first.epoch = 3
    refusal = first.heartbeat()
    assert isinstance(refusal, Refusal)
    assert refusal.error == E.FENCED_MEMBER_EPOCH
    assert "greater member epoch (3) than the one known by the group coordinator (2)" in (
        refusal.message
    )


def test_a_member_that_missed_the_response_may_go_on() -> None:
    topics = FakeTopics(t=1)
    group, (first,) = group_of("a", topics=topics)
    topics.set("t", 2)
    before = replace(first)
    assert first.heartbeat() == HeartbeatResult("a", 3, P("t-0", "t-1"))
    assert before.epoch == 2
    assert before.heartbeat() == HeartbeatResult("a", 3)
    assert before.heartbeat(full=True) == HeartbeatResult("a", 3, P("t-0", "t-1"))
    stale = replace(before, epoch=2, owned=P("t-7"))
    refusal = stale.heartbeat()
    assert isinstance(refusal, Refusal)
    assert refusal.error == E.FENCED_MEMBER_EPOCH
    assert group.epoch == 3


@pytest.mark.parametrize(("topic", "is_fenced"), [("t", False), ("u", True)])
def test_a_missed_response_and_a_topic_without_partitions(topic: str, is_fenced: bool) -> None:
    """An entry without partitions is within the assignment if the topic is assigned."""
    topics = FakeTopics(t=1, u=1)
    _, (first,) = group_of("a", topics=topics)
    topics.set("t", 2)
    before = replace(first)
    first.heartbeat()
    named = frozenset({topic_id(topic)})
    result = before.heartbeat(owned=frozenset(), owned_topics=named)
    assert isinstance(result, Refusal) == is_fenced
    if isinstance(result, Refusal):
        assert result.error == E.FENCED_MEMBER_EPOCH


def test_a_fenced_member_joins_again() -> None:
    _, (first,) = group_of("a", topics=FakeTopics(t=2))
    first.epoch = 0
    assert first.heartbeat() == HeartbeatResult("a", 2, P("t-0", "t-1"))


# -- static members


def test_a_static_member_comes_back_with_its_partitions() -> None:
    topics = FakeTopics(t=2)
    group = ConsumerGroup("g")
    first, other = (Consumer(group, topics, each, instance_id=f"i{each}") for each in "ab")
    first.heartbeat()
    other.heartbeat()
    settle([first, other])
    epoch = group.epoch
    assert first.leave(-2) == HeartbeatResult("a", -2)
    successor = Consumer(group, topics, "c", instance_id="ia")
    assert successor.heartbeat() == HeartbeatResult("c", epoch, first.assigned)
    assert (group.epoch, group.state) == (epoch, S.STABLE)
    assert list(group.subscriptions) == ["b", "c"]
    refusal = first.heartbeat()
    assert isinstance(refusal, Refusal)
    assert refusal.error == E.FENCED_INSTANCE_ID


def test_an_instance_id_in_use_is_refused() -> None:
    topics = FakeTopics(t=2)
    group = ConsumerGroup("g")
    Consumer(group, topics, "a", instance_id="i").heartbeat()
    refusal = Consumer(group, topics, "b", instance_id="i").heartbeat()
    assert refusal == Refusal(
        E.UNRELEASED_INSTANCE_ID,
        "Static member b with instance id i cannot join the group because the instance id is owned "
        "by a member.",
    )
    refusal = Consumer(group, topics, "b", instance_id="j", epoch=1).heartbeat()
    assert refusal == Refusal(E.UNKNOWN_MEMBER_ID, "Instance id j is unknown.")


def test_a_static_member_that_does_not_come_back_is_removed() -> None:
    topics = FakeTopics(t=2)
    group = ConsumerGroup("g")
    first = Consumer(group, topics, "a", instance_id="i")
    first.heartbeat()
    first.leave(-2)
    assert group.population == 1
    group.advance(topics, 45.0)
    assert group.state is S.EMPTY
    assert group.static_member("i") is None


# -- requests that are refused

JOIN = HeartbeatRequest("g", "m", 0, None, None, 1000, frozenset({"t"}), None, None, frozenset())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": P("t-0")}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"owned_topics": frozenset({bytes(16)})},
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_invalid_fields(fields: dict[str, object], message: str) -> None:
    assert invalid_request(JOIN, 1, ("uniform",)) is None
    invalid = JOIN._replace(**fields)  # type: ignore[arg-type]
    assert invalid_request(invalid, 1, ("uniform",)) == Refusal(E.INVALID_REQUEST, message)


def test_an_unknown_assignor_is_refused() -> None:
    invalid = JOIN._replace(server_assignor="sticky")
    assert invalid_request(invalid, 1, ("uniform", "range")) == Refusal(
        E.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range.",
    )


def test_a_member_that_joins_by_version_0_has_no_id_yet() -> None:
    assert invalid_request(JOIN._replace(member_id=""), 0, ("uniform",)) is None


def test_a_full_group_refuses_members() -> None:
    topics = FakeTopics(t=2)
    group, (first,) = group_of("a", topics=topics)
    group.config = GroupConfig(max_size=1)
    refusal = Consumer(group, topics, "b").heartbeat()
    assert isinstance(refusal, Refusal)
    assert refusal.error == E.GROUP_MAX_SIZE_REACHED
    assert isinstance(first.heartbeat(), HeartbeatResult)


def test_who_may_commit() -> None:
    group, _ = group_of("a", topics=FakeTopics(t=2))
    member = CommittingMember("g", "a", 2)
    assert commit_error(group, member, 9) == E.NONE
    assert commit_error(group, member, 8) == E.UNSUPPORTED_VERSION
    assert commit_error(group, member._replace(epoch=0), 9) == E.STALE_MEMBER_EPOCH
    assert commit_error(group, member._replace(member_id="x"), 9) == E.UNKNOWN_MEMBER_ID
    nobody = CommittingMember("g", "", -1)
    assert commit_error(group, nobody, 9) == E.UNKNOWN_MEMBER_ID
    assert commit_error(ConsumerGroup("h"), nobody, 8) == E.NONE
    assert transactional_commit_error(group, nobody) == E.NONE
    assert transactional_commit_error(group, member) == E.NONE
    stale = member._replace(epoch=0)
    assert transactional_commit_error(group, stale) == E.STALE_MEMBER_EPOCH


# -- assignors


def spec(member_id: str, *topics: str, has: frozenset[tuple[bytes, int]] = NONE) -> MemberSpec:
    return MemberSpec(member_id, None, frozenset(map(topic_id, topics)), has)


COUNTS = {topic_id("t"): 5, topic_id("u"): 5}


def test_uniform_divides_evenly_and_moves_little() -> None:
    before = uniform([spec("a", "t", "u"), spec("b", "t", "u")], COUNTS)
    assert {len(each) for each in before.values()} == {5}
    members = [spec(each, "t", "u", has=frozenset(before[each])) for each in "ab"]
    after = uniform([*members, spec("c", "t", "u")], COUNTS)
    assert sorted(map(len, after.values())) == [3, 3, 4]
    assert all(after[each] <= before[each] for each in "ab")


def test_uniform_with_different_subscriptions() -> None:
    assignment = uniform([spec("a", "t"), spec("b", "t", "u"), spec("c", "u")], COUNTS)
    assert sum(map(len, assignment.values())) == 10
    assert {topic for topic, _ in assignment["a"]} == {topic_id("t")}
    assert max(map(len, assignment.values())) - min(map(len, assignment.values())) <= 1


def test_uniform_evens_out_what_members_had() -> None:
    everything = frozenset((topic_id("t"), index) for index in range(5))
    assignment = uniform([spec("a", "t", has=everything), spec("b", "t", "u")], COUNTS)
    assert {len(each) for each in assignment.values()} == {5}


def test_range_gives_consecutive_partitions_with_the_same_indexes_of_topics() -> None:
    assignment = range_([spec("b", "t", "u"), spec("a", "t", "u")], COUNTS)
    assert assignment["a"] == P("t-0", "t-1", "t-2", "u-0", "u-1", "u-2")
    assert assignment["b"] == P("t-3", "t-4", "u-3", "u-4")
    has = {each: frozenset(assignment[each]) for each in "ab"}
    members = [spec(each, "t", "u", has=has[each]) for each in "ab"]
    after = range_([*members, spec("c", "t", "u")], COUNTS)
    assert {len(each) for each in after.values()} == {4, 2}
    assert all(after[each] <= has[each] for each in "ab")


def test_the_assignor_that_most_members_prefer() -> None:
    topics = FakeTopics(t=4, u=4)
    group = ConsumerGroup("g")
    names = frozenset({"t", "u"})
    consumers = [
        Consumer(group, topics, "a", names, assignor="range"),
        Consumer(group, topics, "b", names, assignor="range"),
        Consumer(group, topics, "c", names, assignor="uniform"),
    ]
    for each in consumers:
        each.heartbeat()
    assert group.assignor == "range"
    consumers[1].leave()
    consumers[0].leave()
    assert group.assignor == "uniform"


# -- time between assignments


def test_members_that_join_together_are_assigned_together() -> None:
    topics = FakeTopics(t=6)
    group = ConsumerGroup("g", GroupConfig(assignment_interval=1.0))
    consumers = [Consumer(group, topics, each) for each in "abc"]
    for each in consumers:
        each.heartbeat()
    assert group.assignment_epoch == 2
    assert group.epoch == 4
    assert group.state is S.ASSIGNING
    settle(consumers, now=1.0)
    assert [len(each.assigned) for each in consumers] == [2, 2, 2]
    assert group.assignment_epoch == 4


def settling(count: int) -> int:
    """Return the work until members that joined together have their partitions."""
    topics = FakeTopics(t=50)
    group = ConsumerGroup("g", GroupConfig(assignment_interval=1.0))
    consumers = [Consumer(group, topics, f"m{at}") for at in range(count)]

    def work() -> None:
        for each in consumers:
            each.heartbeat()
        settle(consumers, now=1.0)

    total = steps(work)
    assert group.state is S.STABLE
    return total


def test_a_thousand_members_settle_in_linear_work() -> None:
    settling(10)
    small, large = settling(100), settling(1000)
    assert large <= 13 * small, (small, large)


# -- regular expressions


def test_members_subscribe_by_regular_expression() -> None:
    topics = FakeTopics(**{"order-1": 1, "order-2": 1, "reorder": 1})
    group = ConsumerGroup("g")
    first = Consumer(group, topics, "a", frozenset(), regex="order-.*")
    first.heartbeat()
    assert first.assigned == P("order-1-0", "order-2-0")
    topics.set("order-3", 1)
    first.heartbeat(now=1.0)
    assert first.assigned == P("order-1-0", "order-2-0")
    settle([first], now=11.0)
    assert first.assigned == P("order-1-0", "order-2-0", "order-3-0")
    assert list(group.resolved) == ["order-.*"]
    epoch, changes = group.epoch, len(group.changes)
    topics.set("invoice", 1)
    first.heartbeat(now=30.0)
    assert (group.epoch, len(group.changes)) == (epoch, changes), "the same topics"
    first.leave()
    assert not group.resolved


def test_an_expression_matches_what_the_member_may_describe_for_whom_it_is_looked_up() -> None:
    topics = FakeTopics(seen=1, hidden=1)
    group = ConsumerGroup("g")
    guest = Consumer(group, topics, "a", frozenset(), regex=".*", describes=frozenset({"seen"}))
    admin = Consumer(group, topics, "b", frozenset(), regex=".*")
    settle([guest, admin])
    assert guest.assigned | admin.assigned == P("seen-0")
    settle([admin, guest], now=30.0)
    assert guest.assigned | admin.assigned == P("seen-0"), "no new topics"
    topics.set("new", 1)
    settle([admin, guest], now=60.0)
    assert guest.assigned | admin.assigned == P("seen-0", "hidden-0", "new-0")
    settle([guest, admin], now=600.0)
    assert guest.assigned | admin.assigned == P("seen-0", "hidden-0", "new-0")
    settle([guest, admin], now=661.0)
    assert guest.assigned | admin.assigned == P("seen-0"), "looked up for the guest"


def test_a_new_expression_is_looked_up_at_once_and_the_others_with_it_if_that_is_due() -> None:
    topics = FakeTopics(seen=1, hidden=1)
    group = ConsumerGroup("g")
    guest = Consumer(group, topics, "a", frozenset(), regex=".*", describes=frozenset({"seen"}))
    guest.heartbeat()
    Consumer(group, topics, "b", frozenset(), regex="h.*").heartbeat(now=1.0)
    assert {each: group.resolved[each].topics for each in group.resolved} == {
        ".*": {"seen"},
        "h.*": {"hidden"},
    }
    Consumer(group, topics, "c", frozenset({"seen"})).heartbeat(now=700.0)
    assert group.resolved[".*"].topics == {"seen", "hidden"}, "looked up for one without any"


@pytest.mark.parametrize("expression", ["(", "a{1001}", r"(a)\1", "(?=a)", "\ud800"])
def test_an_expression_that_re2_has_not_is_refused(expression: str) -> None:
    group = ConsumerGroup("g")
    refusal = Consumer(group, FakeTopics(t=1), "a", frozenset(), regex=expression).heartbeat()
    assert isinstance(refusal, Refusal)
    assert refusal.error == E.INVALID_REGULAR_EXPRESSION
    assert not group.subscriptions


def test_an_expression_that_others_backtrack_in_takes_no_time() -> None:
    topics = FakeTopics(**{"a" * 249: 1, "b": 1})
    first = Consumer(ConsumerGroup("g"), topics, "a", frozenset(), regex="(a|aa)+$b|(a*)*b")
    first.heartbeat()
    assert first.assigned == P("b-0")


def test_without_re2_expressions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(
        "kafkawire.broker.groups.consumer_groups.regular_expressions.import_module", missing
    )
    refusal = Consumer(ConsumerGroup("g"), FakeTopics(t=1), "a", frozenset(), regex="t").heartbeat()
    assert isinstance(refusal, Refusal)
    assert refusal.error == E.INVALID_REGULAR_EXPRESSION
    assert "kafkawire[re2]" in refusal.message


# -- records


def test_the_records_of_its_changes_restore_a_group() -> None:
    topics = FakeTopics(t=4, u=2)
    group = ConsumerGroup("g")
    consumers = [
        Consumer(group, topics, "a", assignor="range"),
        Consumer(group, topics, "b", frozenset({"t", "u"}), instance_id="i"),
        Consumer(group, topics, "c", frozenset(), regex="u"),
        Consumer(group, topics, "d"),
    ]
    for each in consumers:
        each.heartbeat()
    consumers[0].heartbeat()
    consumers[3].leave()
    consumers[1].leave(-2)
    restored = ConsumerGroup("g")
    for change in group.changes:
        for key, value in encode("g", change):
            read = decode_log_record(InternalLog.OFFSETS, key, value)
            assert read.key is not None
            assert read.key.message is not None
            decoded = decode(read.key.message, None if read.value is None else read.value.message)
            assert decoded is not None
            assert decoded[0] == "g"
            restored.apply(decoded[1])
    for attribute in (
        "epoch", "assignment_epoch", "assigned_at", "metadata_hash", "subscriptions", "current",
        "targets", "owners", "resolved", "state", "assignor", "size",
    ):  # fmt: skip
        assert getattr(restored, attribute) == getattr(group, attribute), attribute
    for member_id, current in group.current.items():
        assert restored.current[member_id].since == current.since
    assert restored.static_member("i") == "b"
