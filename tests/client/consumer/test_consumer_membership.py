"""Membership of group.protocol=consumer: its tables, its scenarios, and a model with an arbitrary
coordinator.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkawire.client.cluster import Broker, Topic
from kafkawire.client.consumer import (
    ConsumerConfig,
    GroupFailed,
    GroupProtocol,
    SubscriptionPattern,
    TopicPartition,
)
from kafkawire.client.consumer.consumer_group.member_states import (
    LEGAL,
    MemberEffect,
    MemberEpochChanged,
    MemberEvent,
    MemberState,
    MetadataUpdated,
    Reconcile,
    Reconciled,
)
from kafkawire.client.consumer.consumer_group.membership import (
    HANDLERS,
    RECOVERIES,
    ConsumerGroupMembership,
)
from kafkawire.client.consumer.consumer_group.recovery import (
    ADVICE,
    OF_JOIN,
    RECOVERY,
    Recovery,
    recovery,
)
from kafkawire.client.consumer.group.member_states import (
    Busy,
    GroupRefused,
    JoinWanted,
    LeaveWanted,
    Left,
    PartitionsLost,
    Polled,
    Prepare,
    Prepared,
)
from kafkawire.client.consumer.group.membership import POLL_EXPIRED
from kafkawire.client.consumer.group.requests import Identity, JoinMetadata
from kafkawire.client.consumer.subscription import Subscription
from kafkawire.client.requests import (
    ForgetCoordinator,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
)
from kafkawire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafkawire.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkawire.protocol.error_code import ErrorCode
from tests.fuzzing import examples

from .test_subscription import View

E = ErrorCode
S = MemberState
ORDERS_ID, PARCELS_ID = b"o" * 16, b"p" * 16
ORDERS = [TopicPartition("orders", n) for n in range(4)]
PARCELS = [TopicPartition("parcels", 0)]
CONFIG = ConsumerConfig(
    group_id="g", group_protocol=GroupProtocol.CONSUMER, max_poll_interval_s=60.0
)
STATIC = replace(CONFIG, group_instance_id="one")
JOIN_METADATA = JoinMetadata(("orders",))
LEAVE_EPOCHS = [(CONFIG, -1), (STATIC, -2)]


class GroupMember:
    """A membership, with the test as coordinator and as what applies assignments."""

    def __init__(self, config: ConsumerConfig = CONFIG) -> None:
        self.view = View({"orders": Topic("orders", ORDERS_ID)}, {1: Broker(1, "h", 9092)})
        self.subscription = Subscription()
        self.subscription.subscribe(["orders"])
        self.membership = ConsumerGroupMembership(
            config, self.view, self.subscription, owner="consumer", rng=Random(0).random
        )
        self.now = 0.0
        self.requests: list[SendRequest] = []

    @property
    def state(self) -> MemberState:
        return self.membership.state

    def handle(self, event: MemberEvent | ResponseReceived | NoResponse) -> list[object]:
        return self._collect(self.membership.handle(event, self.now))

    def pass_time(self, seconds: float) -> list[object]:
        """Advance the time, deadline by deadline."""
        end, effects = self.now + seconds, list[object]()
        while (due := self.membership.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            effects += self._collect(self.membership.advance(self.now))
        self.now = end
        return effects

    def respond(
        self, epoch: int = 1, assigned: dict[bytes, list[int]] | None = None, **fields: object
    ) -> list[object]:
        """Respond to the oldest request."""
        assignment = None
        if assigned is not None:
            rows = [
                TopicPartitions(topic_id=key, partitions=value) for key, value in assigned.items()
            ]
            assignment = Assignment(topic_partitions=rows)
        given: dict[str, object] = {
            "member_epoch": epoch,
            "heartbeat_interval_ms": 5_000,
            "assignment": assignment,
            **fields,
        }
        message = ConsumerGroupHeartbeatResponse(**given)  # type: ignore[arg-type]
        return self.handle(ResponseReceived(self.requests.pop(0), 1, message, 1))

    def fail(self, reason: Reason = Reason.DISCONNECTED, *, sent: bool = True) -> list[object]:
        retriable = reason is Reason.DISCONNECTED
        return self.handle(NoResponse(self.requests.pop(0), reason, retriable, sent=sent, node=1))

    def message(self, version: int = 1) -> ConsumerGroupHeartbeatRequest:
        """The oldest request that was not responded to."""
        message = self.requests[0].body.build(version)
        assert isinstance(message, ConsumerGroupHeartbeatRequest)
        return message

    def owned(self) -> list[tuple[bytes, list[int]]] | None:
        rows = self.message().topic_partitions
        return None if rows is None else [(each.topic_id, each.partitions) for each in rows]

    def _collect(self, effects: list[MemberEffect]) -> list[object]:
        self.requests += [each for each in effects if isinstance(each, SendRequest)]
        return [*effects]

    # Ways into the group.

    def join(self) -> None:
        self.handle(Polled())
        self.handle(JoinWanted("a test"))
        self.handle(Prepared(JOIN_METADATA))

    def join_group(self, *partitions: int) -> None:
        """Join, own these partitions of `orders`, and acknowledge them."""
        self.join()
        self.respond(1, {ORDERS_ID: list(partitions)} if partitions else {})
        self.reconcile(*(ORDERS[n] for n in partitions))
        if self.requests:
            self.respond(1)
        assert self.membership.state is S.STABLE

    def reconcile(self, *owned: TopicPartition, complete: bool = True) -> list[object]:
        return self.handle(Reconciled(frozenset(owned), complete))


# Tables.


def test_handlers_are_total() -> None:
    assert set(HANDLERS) == set(get_args(MemberEvent))
    for event, row in HANDLERS.items():
        assert set(row) == set(MemberState), event
        assert all(callable(each) for each in row.values())


def test_every_state_is_reached_and_left() -> None:
    assert set(LEGAL) == set(MemberState)
    for state in MemberState:
        assert any(state in after for after in LEGAL.values()), state
        assert LEGAL[state] - {state}, state


def test_every_error_has_a_recovery() -> None:
    assert set(RECOVERIES) == set(Recovery)
    assert set(RECOVERY.values()) | {Recovery.FATAL} == set(Recovery)
    assert RECOVERY.keys() == OF_JOIN.keys()
    for code in ErrorCode:
        assert recovery(code, joining=True) in Recovery
        assert code not in ADVICE or recovery(code, joining=True) in (
            Recovery.FATAL,
            Recovery.WAIT_FOR_RELEASE,
        )
    assert recovery(12_345, joining=False) is Recovery.FATAL
    assert recovery(E.GROUP_AUTHORIZATION_FAILED, joining=False) is Recovery.FATAL
    assert recovery(E.GROUP_ID_NOT_FOUND, joining=False) is Recovery.REJOIN
    assert recovery(E.GROUP_ID_NOT_FOUND, joining=True) is Recovery.FATAL


# Scenarios.


def test_a_member_joins_only_during_a_poll() -> None:
    member = GroupMember()
    assert member.handle(JoinWanted("new")) == []
    assert member.handle(Polled()) == [Prepare()]
    assert not member.requests
    member.handle(Prepared(JOIN_METADATA))
    message = member.message()
    assert (message.member_epoch, message.topic_partitions) == (0, [])
    assert message.rebalance_timeout_ms == 60_000


def test_the_client_chooses_the_member_id_from_version_1_on() -> None:
    member = GroupMember()
    member.join()
    chosen = member.message(1).member_id
    assert len(chosen) == 22
    assert member.message(0).member_id == ""
    assert member.message(0).subscribed_topic_regex is None
    member.respond(1, {}, member_id="of-the-coordinator")
    member.reconcile()
    member.pass_time(5.0)
    assert member.message(0).member_id == member.message(1).member_id == "of-the-coordinator"
    member.requests.clear()
    member.handle(LeaveWanted("done"))
    assert member.requests[0].body.lowest == 0


def test_two_members_have_different_ids() -> None:
    one, two = (
        ConsumerGroupMembership(CONFIG, View(), Subscription(), owner="c", rng=Random(n).random)
        for n in range(2)
    )
    assert one.identity.member_id != two.identity.member_id


def test_a_pattern_needs_version_1() -> None:
    member = GroupMember()
    member.subscription.unsubscribe()
    member.subscription.subscribe(SubscriptionPattern("o.*"))
    member.join()
    assert member.message().subscribed_topic_regex == "o.*"
    assert member.message().subscribed_topic_names == []
    assert member.requests[0].body.lowest == 1
    (*_, refused) = member.fail(Reason.NO_VERSION)
    assert isinstance(refused, GroupRefused)
    assert "re.compile" in str(refused.error)


def test_an_assignment_is_revoked_acknowledged_and_added_in_this_order() -> None:
    member = GroupMember()
    member.join_group(0, 1)
    member.pass_time(5.0)
    assert member.respond(2, {ORDERS_ID: [1, 2]}) == [
        MemberEpochChanged(member.membership.identity),
        Reconcile((ORDERS[1], ORDERS[2])),
    ]
    assert member.state.name == "RECONCILING"
    member.reconcile(ORDERS[1], complete=False)  # orders-0 is revoked
    assert member.owned() == [(ORDERS_ID, [1])]
    member.reconcile(ORDERS[1], ORDERS[2])
    assert member.state.name == "ACKNOWLEDGING"
    member.respond(2)
    assert member.owned() == [(ORDERS_ID, [1, 2])]
    assert member.state.name == "ACKNOWLEDGING"
    member.respond(2)
    assert member.state.name == "STABLE"
    assert not member.requests


def test_an_assignment_waits_for_a_poll_with_heartbeats() -> None:
    member = GroupMember()
    member.join_group(0, 1)
    member.handle(Busy())
    member.pass_time(5.0)
    effects = member.respond(2, {ORDERS_ID: [0]})
    assert not any(isinstance(each, Reconcile) for each in effects)
    member.pass_time(5.0)
    assert member.owned() is None
    member.respond(2)
    assert member.handle(Polled()) == [Reconcile((ORDERS[0],))]


def test_a_newer_assignment_follows_the_one_that_is_applied() -> None:
    member = GroupMember()
    member.join_group(0)
    member.pass_time(5.0)
    member.respond(2, {ORDERS_ID: [0, 1]})
    member.pass_time(5.0)
    assert not any(isinstance(each, Reconcile) for each in member.respond(3, {ORDERS_ID: [2]}))
    effects = member.reconcile(ORDERS[0], ORDERS[1])
    assert Reconcile((ORDERS[2],)) in effects
    assert member.owned() == [(ORDERS_ID, [0, 1])]


def test_partitions_of_unknown_topics_wait_for_metadata() -> None:
    member = GroupMember()
    member.join_group(0)
    member.pass_time(5.0)
    effects = member.respond(2, {ORDERS_ID: [0, 1], PARCELS_ID: [0]})
    assert RequestMetadataUpdate() in effects
    assert Reconcile((ORDERS[0], ORDERS[1])) in effects
    member.reconcile(ORDERS[0], ORDERS[1])
    assert member.owned() == [(ORDERS_ID, [0, 1])]
    member.respond(2)
    assert member.state is S.RECONCILING
    assert member.handle(MetadataUpdated()) == [RequestMetadataUpdate()]
    member.view.topics["parcels"] = Topic("parcels", PARCELS_ID)
    assert member.handle(MetadataUpdated()) == [Reconcile((ORDERS[0], ORDERS[1], PARCELS[0]))]


def test_what_was_not_confirmed_is_sent_again() -> None:
    member = GroupMember()
    member.join_group(0)
    member.pass_time(5.0)
    assert member.owned() is None
    assert member.message().subscribed_topic_names is None
    member.fail()
    member.pass_time(0.2)
    assert member.owned() == [(ORDERS_ID, [0])]
    assert member.message().subscribed_topic_names == ["orders"]
    assert (member.message().member_epoch, member.message().rebalance_timeout_ms) == (1, 60_000)


def test_a_subscription_that_changes_is_sent_at_once_or_after_the_response() -> None:
    member = GroupMember()
    member.join_group(0)
    member.subscription.subscribe(["orders", "parcels"])
    member.handle(JoinWanted("more"))
    assert member.message().subscribed_topic_names == ["orders", "parcels"]
    member.subscription.subscribe(["parcels"])
    member.handle(JoinWanted("less"))
    assert len(member.requests) == 1
    member.respond(1)
    assert member.message().subscribed_topic_names == ["parcels"]


def test_not_coordinator_finds_the_coordinator_and_retries() -> None:
    member = GroupMember()
    member.join()
    assert member.respond(error_code=E.NOT_COORDINATOR) == [
        ForgetCoordinator(member.membership.coordinator)
    ]
    assert member.state is S.JOINING
    member.pass_time(0.2)
    assert member.message().member_epoch == 0


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND])
def test_a_member_that_was_removed_joins_again_with_the_same_id(code: ErrorCode) -> None:
    member = GroupMember()
    member.join_group(0)
    member_id = member.membership.identity.member_id
    member.handle(Busy())
    member.pass_time(5.0)
    ended, lost = member.respond(error_code=code, error_message="gone.")
    assert ended == MemberEpochChanged(Identity())
    assert isinstance(lost, PartitionsLost)
    assert "gone" in lost.reason
    assert "h:9092" in lost.reason
    assert member.pass_time(50.0) == []  # no heartbeats outside of the group
    assert member.handle(Polled()) == [Prepare()]
    member.handle(Prepared(JOIN_METADATA))
    assert (member.message().member_id, member.message().member_epoch) == (member_id, 0)
    assert member.owned() == []


def test_a_member_that_is_always_removed_backs_off() -> None:
    member = GroupMember()
    member.join()
    joins = 0
    while member.now < 60.0:
        if member.state is S.PREPARING:
            member.handle(Prepared(JOIN_METADATA))
        if member.requests:
            joins += 1
            assert joins < 1_000, "no backoff"
            member.respond(error_code=E.UNKNOWN_MEMBER_ID)
        else:
            due = member.membership.next_deadline()
            assert due is not None
            member.pass_time(due - member.now)
    assert joins <= 100


@pytest.mark.parametrize(
    ("config", "epoch"), [(CONFIG, -1), (STATIC, -2)], ids=["dynamic", "static"]
)
def test_leaving(config: ConsumerConfig, epoch: int) -> None:
    member = GroupMember(config)
    member.join_group(0)
    assert Left() not in member.handle(LeaveWanted("closed"))
    message = member.message()
    assert (message.member_epoch, message.instance_id) == (epoch, config.group_instance_id)
    assert member.respond(epoch) == [Left()]
    assert member.state is S.UNJOINED
    assert member.membership.next_deadline() is None
    assert member.handle(LeaveWanted("again")) == [Left()]


def test_a_member_that_has_no_response_yet_leaves_too() -> None:
    member = GroupMember()
    member.join()
    member.requests.clear()
    member.handle(LeaveWanted("closed"))
    assert member.message().member_epoch == -1
    assert member.requests[0].body.lowest == 1  # version 0 has no member id yet
    assert member.fail(Reason.NO_VERSION) == [Left()]


@pytest.mark.parametrize(
    ("config", "epoch"), [(CONFIG, -1), (STATIC, -2)], ids=["dynamic", "static"]
)
def test_a_member_leaves_after_max_poll_interval(config: ConsumerConfig, epoch: int) -> None:
    member = GroupMember(config)
    member.join_group(0)
    member.handle(Busy())
    effects: list[object] = []
    while member.now < 60.0:
        effects += member.pass_time(5.0)
        if member.state is S.STABLE:
            member.respond(1)
    assert PartitionsLost(POLL_EXPIRED) in effects
    member.requests = member.requests[-1:]
    assert member.message().member_epoch == epoch
    member.respond(epoch)
    assert member.state is S.REJOIN_NEEDED
    assert member.handle(Polled()) == [Prepare()]


def test_a_user_who_never_polls_again_after_the_join_leaves() -> None:
    member = GroupMember()
    member.handle(Polled())
    member.handle(JoinWanted("new"))
    member.handle(Busy())
    member.handle(Prepared(JOIN_METADATA))
    member.respond(1, {ORDERS_ID: [0]})
    member.pass_time(61.0)
    assert member.state is S.REJOIN_NEEDED


def test_an_instance_id_of_another_member_is_an_error() -> None:
    member = GroupMember(STATIC)
    member.join()
    (*_, refused) = member.respond(error_code=E.UNRELEASED_INSTANCE_ID)
    assert isinstance(refused, GroupRefused)
    assert member.state is S.FAILED
    assert member.handle(Polled()) == [Prepare()]


def test_an_instance_id_of_this_member_itself_is_waited_for_but_not_for_ever() -> None:
    member = GroupMember(STATIC)
    member.join()
    member.fail()
    failed: list[object] = []
    while member.now < 70.0 and not failed:
        member.pass_time(1.5)
        assert member.requests or member.now < 1.0
        effects = member.respond(error_code=E.UNRELEASED_INSTANCE_ID)
        failed = [each for each in effects if isinstance(each, GroupRefused)]
    assert failed
    assert CONFIG.default_api_timeout_s <= member.now < 65.0


def test_a_join_that_was_not_sent_holds_no_instance_id() -> None:
    member = GroupMember(STATIC)
    member.join()
    member.fail(sent=False)
    member.pass_time(0.2)
    member.respond(error_code=E.UNRELEASED_INSTANCE_ID)
    assert member.state is S.FAILED


def test_a_fenced_static_member_stays_out() -> None:
    member = GroupMember(STATIC)
    member.join_group(0)
    member.pass_time(5.0)
    *_, lost, refused = member.respond(error_code=E.FENCED_INSTANCE_ID)
    assert isinstance(lost, PartitionsLost)
    assert isinstance(refused, GroupRefused)
    assert not member.requests  # another member has its place: nothing to leave
    assert member.handle(Polled()) == [refused]
    assert member.handle(JoinWanted("the user subscribed again")) == [Prepare()]


def test_a_member_that_fails_leaves_its_partitions_to_others() -> None:
    member = GroupMember()
    member.join_group(0)
    member.pass_time(5.0)
    effects = member.respond(error_code=E.INVALID_REGULAR_EXPRESSION)
    assert member.message().member_epoch == -1
    refused = effects[-1]
    assert isinstance(refused, GroupRefused)
    assert isinstance(refused.error, GroupFailed)
    member.respond(-1)
    assert member.handle(Polled()) == [Prepare()]


def test_a_broker_without_such_groups_is_named() -> None:
    member = GroupMember()
    member.join()
    (*_, refused) = member.fail(Reason.NO_VERSION, sent=False)
    assert isinstance(refused, GroupRefused)
    for part in ("h:9092", "group.protocol=classic", "4.0"):
        assert part in str(refused.error)
    assert refused.error.code == E.UNSUPPORTED_VERSION


def test_a_response_to_an_outdated_request_is_ignored() -> None:
    member = GroupMember()
    member.join()
    stale = member.requests[0]
    member.handle(LeaveWanted("unsubscribed"))
    late = ConsumerGroupHeartbeatResponse(member_epoch=7)
    assert member.handle(ResponseReceived(stale, 1, late)) == []
    assert not member.membership.in_group


def test_an_interval_of_zero_is_no_busy_loop() -> None:
    member = GroupMember()
    member.join()
    member.respond(1, {}, heartbeat_interval_ms=0)
    due = member.membership.next_deadline()
    assert due is not None
    assert due > member.now


# A model.

ERRORS = st.sampled_from([*RECOVERY, E.FENCED_INSTANCE_ID, E.UNKNOWN_SERVER_ERROR])


class Coordinated(RuleBasedStateMachine):
    """A member and a coordinator that may respond anything, with a model of what it owns.

    Model: a member owns what Reconcile named since the last PartitionsLost; its heartbeats say
    nothing else, and have the last epoch.
    """

    @initialize(static=st.booleans())
    def begin(self, static: bool) -> None:
        self.member = GroupMember(STATIC if static else CONFIG)
        self.epoch = 0
        self.applying: tuple[TopicPartition, ...] | None = None
        self.kept: frozenset[TopicPartition] = frozenset()
        self.preparing = False

    def update(self, effects: list[object]) -> None:
        for each in effects:
            match each:
                case Prepare():
                    assert self.member.membership.polling
                    self.preparing = True
                case Reconcile(partitions=partitions):
                    assert self.member.membership.polling
                    assert self.applying is None, "two at once"
                    self.applying = partitions
                case PartitionsLost():
                    self.applying, self.kept = None, frozenset()
                case SendRequest():
                    self.check(each)

    def check(self, request: SendRequest) -> None:
        message = request.body.build(1)
        assert isinstance(message, ConsumerGroupHeartbeatRequest)
        if message.member_epoch == 0:
            assert message.topic_partitions == []
        if message.member_epoch > 0:
            assert message.member_epoch == self.epoch
            for topic in message.topic_partitions or []:
                owned = {TopicPartition("orders", n) for n in topic.partitions}
                assert owned == self.kept

    @rule()
    def want(self) -> None:
        self.update(self.member.handle(JoinWanted("whatever")))

    @rule()
    def poll(self) -> None:
        self.update(self.member.handle(Polled()))

    @rule()
    def be_busy(self) -> None:
        self.update(self.member.handle(Busy()))

    @precondition(lambda self: self.preparing)
    @rule()
    def prepared(self) -> None:
        self.preparing = False
        self.update(self.member.handle(Prepared(JOIN_METADATA)))

    @precondition(lambda self: self.applying is not None)
    @rule(complete=st.booleans())
    def reconcile(self, complete: bool) -> None:
        assert self.applying is not None
        target = frozenset(self.applying)
        self.kept = target if complete else self.kept & target
        if complete:
            self.applying = None
        self.update(self.member.reconcile(*self.kept, complete=complete))

    @rule(seconds=st.floats(0.1, 70.0))
    def pass_time(self, seconds: float) -> None:
        self.update(self.member.pass_time(seconds))

    @rule()
    def leave(self) -> None:
        self.preparing, self.applying, self.kept = False, None, frozenset()
        self.update(self.member.handle(LeaveWanted("done")))
        assert self.member.state is S.UNJOINED
        assert self.member.membership.next_deadline() is None

    @precondition(lambda self: self.member.requests)
    @rule(code=ERRORS)
    def refuse(self, code: ErrorCode) -> None:
        self.update(self.member.respond(error_code=code))

    @precondition(lambda self: self.member.requests)
    @rule(reason=st.sampled_from(list(Reason)))
    def be_silent(self, reason: Reason) -> None:
        self.update(self.member.fail(reason))

    @precondition(lambda self: self.member.requests)
    @rule(assigned=st.none() | st.sets(st.integers(0, 3)), later=st.booleans())
    def accept(self, assigned: set[int] | None, later: bool) -> None:
        self.epoch += later or not self.epoch
        rows = None if assigned is None else {ORDERS_ID: sorted(assigned)} if assigned else {}
        self.update(self.member.respond(self.epoch, rows))

    @rule()
    def change_metadata(self) -> None:
        self.update(self.member.handle(MetadataUpdated()))

    @invariant()
    def a_member_has_an_epoch_and_a_deadline(self) -> None:
        member = self.member.membership
        joined = member.state in (S.RECONCILING, S.ACKNOWLEDGING, S.STABLE)
        assert member.in_group == joined
        waits = member.state in (S.JOINING, S.RECONCILING, S.ACKNOWLEDGING, S.STABLE)
        assert not waits or self.member.requests or member.next_deadline() is not None


TestCoordinated = Coordinated.TestCase
TestCoordinated.settings = settings(
    max_examples=examples(50), stateful_step_count=40, deadline=None
)
