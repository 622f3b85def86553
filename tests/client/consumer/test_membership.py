"""Membership: its tables, its stories, and a coordinator that plays every trick, as a model."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkawire.client.consumer import ASSIGNORS, ConsumerConfig, Member, TopicPartition
from kafkawire.client.consumer.failures import ConsumerError, GroupFailed
from kafkawire.client.consumer.group import requests as group_requests
from kafkawire.client.consumer.group.member_states import (
    EVENTS,
    LEGAL,
    AssignmentsComputed,
    Busy,
    ComputeAssignments,
    GroupRefused,
    JoinWanted,
    LeaveWanted,
    Left,
    MemberState,
    PartitionsAssigned,
    PartitionsLost,
    Polled,
    Prepare,
    Prepared,
)
from kafkawire.client.consumer.group.membership import (
    HANDLERS,
    POLL_EXPIRED,
    RECOVERIES,
    Membership,
)
from kafkawire.client.consumer.group.recovery import RECOVERY, Recovery, recovery
from kafkawire.client.consumer.group.requests import Identity, JoinMetadata
from kafkawire.client.requests import (
    ForgetCoordinator,
    NoResponse,
    Reason,
    ResponseReceived,
    SendRequest,
)
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.heartbeat_response import HeartbeatResponse
from kafkawire.messages.join_group_request import JoinGroupRequest
from kafkawire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kafkawire.messages.leave_group_request import LeaveGroupRequest
from kafkawire.messages.leave_group_response import LeaveGroupResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.protocol.error_code import ErrorCode

E = ErrorCode
S = MemberState
ORDERS = TopicPartition("orders", 0)
CONFIG = ConsumerConfig(
    group_id="g",
    assignors=(ASSIGNORS["range"],),
    heartbeat_interval_s=3.0,
    session_timeout_s=10.0,
    max_poll_interval_s=60.0,
)
JOIN_METADATA = JoinMetadata(("orders",))


class GroupMember:
    """A member with a coordinator's seat opposite it, filled by the test."""

    def __init__(self, config: ConsumerConfig = CONFIG) -> None:
        self.it = Membership(config, owner="consumer", rng=Random(0).random)
        self.now = 0.0
        self.asks: list[SendRequest] = []
        self.said: list[object] = []

    def handle(self, event: object) -> list[object]:
        return self._heard(self.it.handle(event, self.now))

    def pass_time(self, seconds: float) -> list[object]:
        """Let time pass, deadline by deadline."""
        end, heard = self.now + seconds, list[object]()
        while (due := self.it.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            heard += self._heard(self.it.advance(self.now))
        self.now = end
        return heard

    def answer(self, api: ApiKey, **fields: object) -> list[object]:
        """Answer the oldest open request of that kind."""
        ask = self.take(api)
        kinds = {
            ApiKey.JOIN_GROUP: JoinGroupResponse,
            ApiKey.SYNC_GROUP: SyncGroupResponse,
            ApiKey.HEARTBEAT: HeartbeatResponse,
            ApiKey.LEAVE_GROUP: LeaveGroupResponse,
        }
        return self.handle(ResponseReceived(ask, ask.body.highest, kinds[api](**fields)))

    def fail(self, api: ApiKey, reason: Reason = Reason.DISCONNECTED) -> list[object]:
        retriable = reason is not Reason.AUTHENTICATION_FAILED
        return self.handle(NoResponse(self.take(api), reason, retriable))

    def take(self, api: ApiKey) -> SendRequest:
        ask = next(each for each in self.asks if each.api is api)
        self.asks.remove(ask)
        return ask

    def asked(self, api: ApiKey) -> bool:
        return any(each.api is api for each in self.asks)

    def _heard(self, effects: list[object]) -> list[object]:
        self.asks += [each for each in effects if isinstance(each, SendRequest)]
        self.said += [each for each in effects if not isinstance(each, SendRequest)]
        return effects

    # Ways into the group.

    def prepare(self) -> None:
        self.handle(Polled())
        self.handle(JoinWanted("a test"))
        self.handle(Prepared(JOIN_METADATA))

    def join(self, generation: int = 1, leader: str = "other") -> list[object]:
        members = [JoinGroupResponseMember(member_id="me", metadata=said_by("me"))]
        return self.answer(
            ApiKey.JOIN_GROUP,
            generation_id=generation,
            member_id="me",
            leader=leader,
            protocol_name="range",
            members=members if leader == "me" else [],
        )

    def settle(self, generation: int = 1) -> list[object]:
        self.prepare()
        self.join(generation)
        return self.answer(ApiKey.SYNC_GROUP, assignment=group_requests.assignment([ORDERS]))


def said_by(_member: str) -> bytes:
    return group_requests.subscription(JOIN_METADATA, ASSIGNORS["range"], -1, "")


# Tables.


def test_handlers_are_total() -> None:
    assert set(HANDLERS) == set(EVENTS)
    for event, row in HANDLERS.items():
        assert set(row) == set(MemberState), event
        assert all(callable(each) for each in row.values())


def test_every_state_is_reached_and_left() -> None:
    assert set(LEGAL) == set(MemberState)
    for state in MemberState:
        assert any(state in after for after in LEGAL.values()), state
        assert LEGAL[state] - {state}, state


@pytest.mark.parametrize("api", RECOVERY)
def test_every_error_of_every_request_has_its_place(api: ApiKey) -> None:
    assert set(RECOVERIES) == set(Recovery)
    for code in ErrorCode:
        assert recovery(api, code) in Recovery
    assert recovery(api, 12_345) is Recovery.FATAL
    assert recovery(api, E.UNKNOWN_MEMBER_ID) is Recovery.NEW_MEMBER
    assert recovery(api, E.FENCED_INSTANCE_ID) is Recovery.FATAL
    assert recovery(api, E.GROUP_AUTHORIZATION_FAILED) is Recovery.FATAL


# Stories.


def test_a_member_joins_only_when_its_user_polls() -> None:
    seat = GroupMember()
    assert seat.handle(JoinWanted("new")) == []
    assert seat.handle(Polled()) == [Prepare()]
    assert not seat.asks
    seat.handle(Prepared(JOIN_METADATA))
    join = seat.take(ApiKey.JOIN_GROUP)
    message = join.body.build(9)
    assert isinstance(message, JoinGroupRequest)
    assert (message.reason, message.rebalance_timeout_ms) == ("new", 60_000)
    assert join.timeout_s > CONFIG.max_poll_interval_s


def test_the_member_id_that_a_broker_gives_is_taken_at_once() -> None:
    seat = GroupMember()
    seat.prepare()
    seat.answer(ApiKey.JOIN_GROUP, error_code=E.MEMBER_ID_REQUIRED, member_id="given")
    message = seat.asks[0].body.build(9)
    assert isinstance(message, JoinGroupRequest)
    assert message.member_id == "given"
    assert seat.it.state is S.PREPARING_REBALANCE


def test_the_leader_computes_for_all() -> None:
    seat = GroupMember()
    seat.prepare()
    (compute,) = seat.join(leader="me")
    assert isinstance(compute, ComputeAssignments)
    assert compute.members == (Member("me", ("orders",)),)
    assert not seat.asked(ApiKey.SYNC_GROUP)
    seat.handle(AssignmentsComputed(0, {"me": []}))  # of another generation
    assert not seat.asked(ApiKey.SYNC_GROUP)
    seat.handle(AssignmentsComputed(1, {"me": [ORDERS], "other": []}))
    message = seat.asks[0].body.build(5)
    assert isinstance(message, SyncGroupRequest)
    assert {each.member_id for each in message.assignments} == {"me", "other"}


def test_a_leader_that_is_told_to_skip_the_assignment_asks_for_its_own() -> None:
    seat = GroupMember()
    seat.prepare()
    seat.answer(
        ApiKey.JOIN_GROUP,
        generation_id=2,
        member_id="me",
        leader="me",
        protocol_name="range",
        skip_assignment=True,
    )
    assert seat.asked(ApiKey.SYNC_GROUP)


def test_heartbeats_go_on_while_the_user_is_busy() -> None:
    seat = GroupMember()
    assert seat.settle() == [PartitionsAssigned(1, (ORDERS,))]
    seat.handle(Busy())
    for _ in range(10):
        seat.pass_time(3.0)
        assert seat.answer(ApiKey.HEARTBEAT) == []
    assert seat.it.state is S.STABLE


def test_a_rebalance_waits_for_the_user_with_heartbeats() -> None:
    seat = GroupMember()
    seat.settle()
    seat.handle(Busy())
    seat.pass_time(3.0)
    assert seat.answer(ApiKey.HEARTBEAT, error_code=E.REBALANCE_IN_PROGRESS) == []
    assert seat.it.state is S.REJOIN_NEEDED
    seat.pass_time(3.0)
    assert seat.answer(ApiKey.HEARTBEAT, error_code=E.REBALANCE_IN_PROGRESS) == []
    assert seat.handle(Polled()) == [Prepare()]
    seat.handle(Prepared(JOIN_METADATA))
    message = seat.asks[0].body.build(9)
    assert isinstance(message, JoinGroupRequest)
    assert message.member_id == "me"


@pytest.mark.parametrize(
    ("code", "member_id"), [(E.ILLEGAL_GENERATION, "me"), (E.UNKNOWN_MEMBER_ID, "")]
)
def test_what_is_lost_is_lost_at_once(code: ErrorCode, member_id: str) -> None:
    seat = GroupMember()
    seat.settle()
    seat.handle(Busy())
    seat.pass_time(3.0)
    (lost,) = seat.answer(ApiKey.HEARTBEAT, error_code=code)
    assert isinstance(lost, PartitionsLost)
    assert seat.it.identity == Identity(-1, member_id)
    assert seat.pass_time(30.0) == []  # nobody heartbeats under a name that is refused
    assert seat.handle(Polled()) == [Prepare()]


def test_a_member_that_is_stuck_leaves_and_comes_back_with_a_poll() -> None:
    seat = GroupMember()
    seat.settle()
    seat.handle(Busy())
    heard: list[object] = []
    for _ in range(21):
        heard += seat.pass_time(3.0)
        if seat.asked(ApiKey.HEARTBEAT):
            seat.answer(ApiKey.HEARTBEAT)
    leave = seat.take(ApiKey.LEAVE_GROUP).body.build(5)
    assert isinstance(leave, LeaveGroupRequest)
    assert (leave.members[0].member_id, leave.members[0].reason) == ("me", POLL_EXPIRED)
    assert PartitionsLost(POLL_EXPIRED) in heard
    assert seat.it.state is S.REJOIN_NEEDED
    assert seat.handle(Polled()) == [Prepare()]


def test_a_static_member_says_no_goodbye() -> None:
    seat = GroupMember(ConsumerConfig(group_id="g", group_instance_id="one"))
    seat.settle()
    assert seat.handle(LeaveWanted("closed")) == [Left()]
    assert not seat.asks
    seat.prepare()
    assert seat.asks[0].body.lowest == 5  # no version before knows static members


def test_a_fenced_static_member_stays_out() -> None:
    seat = GroupMember(ConsumerConfig(group_id="g", group_instance_id="one"))
    seat.settle()
    seat.pass_time(3.0)
    lost, refused = seat.answer(ApiKey.HEARTBEAT, error_code=E.FENCED_INSTANCE_ID)
    assert isinstance(lost, PartitionsLost)
    assert isinstance(refused, GroupRefused)
    assert refused.error.code == E.FENCED_INSTANCE_ID
    assert seat.it.state is S.FAILED
    assert seat.handle(Polled()) == [refused]
    assert seat.handle(JoinWanted("the user subscribed again")) == [Prepare()]


def test_another_failure_is_tried_again_with_the_next_poll() -> None:
    seat = GroupMember()
    seat.prepare()
    heard = seat.answer(ApiKey.JOIN_GROUP, error_code=E.GROUP_AUTHORIZATION_FAILED)
    assert isinstance(heard[-1], GroupRefused)
    assert seat.handle(Polled()) == [Prepare()]


def test_a_coordinator_that_moved_is_looked_for_and_the_join_repeated() -> None:
    seat = GroupMember()
    seat.prepare()
    assert seat.answer(ApiKey.JOIN_GROUP, error_code=E.NOT_COORDINATOR) == [
        ForgetCoordinator(seat.it.coordinator)
    ]
    assert seat.it.state is S.REJOIN_NEEDED
    assert Prepare() in seat.pass_time(0.2)


def test_a_silent_coordinator_is_given_up_after_a_session() -> None:
    seat = GroupMember()
    seat.settle()
    assert ForgetCoordinator(seat.it.coordinator) in seat.pass_time(10.0)
    assert seat.it.state is S.STABLE


def test_an_answer_that_is_no_longer_ours_is_dropped() -> None:
    seat = GroupMember()
    seat.prepare()
    stale = seat.take(ApiKey.JOIN_GROUP)
    seat.handle(LeaveWanted("unsubscribed"))
    late = JoinGroupResponse(generation_id=7, member_id="me", protocol_name="range")
    assert seat.handle(ResponseReceived(stale, 9, late)) == []
    assert seat.it.identity == Identity()


def test_what_is_wanted_during_a_rebalance_is_done_after_it() -> None:
    seat = GroupMember()
    seat.prepare()
    seat.join()
    seat.handle(JoinWanted("subscribed to more"))
    heard = seat.answer(ApiKey.SYNC_GROUP, assignment=b"")
    assert heard == [PartitionsAssigned(1, ()), Prepare()]


def test_a_commit_that_was_refused_tells_of_the_membership_if_it_is_still_ours() -> None:
    seat = GroupMember()
    seat.settle()
    before = seat.it.identity
    assert (
        seat.it.on_commit_error(E.ILLEGAL_GENERATION, before._replace(generation_id=0), seat.now)
        == []
    )
    assert seat.it.on_commit_error(E.OFFSET_METADATA_TOO_LARGE, before, seat.now) == []
    assert seat.it.on_commit_error(E.REBALANCE_IN_PROGRESS, before, seat.now) == [Prepare()]


def test_assignments_that_cannot_be_read_are_a_failure() -> None:
    seat = GroupMember()
    seat.prepare()
    seat.join()
    heard = seat.answer(ApiKey.SYNC_GROUP, assignment=b"\x00")
    assert isinstance(heard[-1], GroupRefused)


# Everything at once.

ERRORS = st.sampled_from(
    [*RECOVERY[ApiKey.JOIN_GROUP], E.FENCED_INSTANCE_ID, E.UNKNOWN_SERVER_ERROR]
)


class Coordinated(RuleBasedStateMachine):
    """A member against a coordinator that may say anything, at any time; a model of what is ours.

    The model: partitions are ours from PartitionsAssigned until a Prepare is answered, or they are
    lost; a member heartbeats, if at all, as whom it last joined.
    """

    @initialize(static=st.booleans())
    def begin(self, static: bool) -> None:
        instance = "one" if static else None
        self.seat = GroupMember(
            ConsumerConfig(group_id="g", group_instance_id=instance, max_poll_interval_s=60.0)
        )
        self.generation = 0
        self.ours = False
        self.preparing = False

    def hear(self, effects: list[object]) -> None:
        for each in effects:
            match each:
                case Prepare():
                    assert self.seat.it.polling
                    self.preparing = True
                case PartitionsAssigned():
                    assert each.generation_id == self.generation
                    self.ours = True
                case PartitionsLost():
                    self.ours = False
                case GroupRefused(error=error):
                    assert isinstance(error, GroupFailed | ConsumerError)

    @rule()
    def want(self) -> None:
        self.hear(self.seat.handle(JoinWanted("whatever")))

    @rule()
    def poll(self) -> None:
        self.hear(self.seat.handle(Polled()))

    @rule()
    def be_busy(self) -> None:
        self.hear(self.seat.handle(Busy()))

    @precondition(lambda self: self.preparing)
    @rule()
    def prepared(self) -> None:
        self.preparing, self.ours = False, False
        self.hear(self.seat.handle(Prepared(JOIN_METADATA)))

    @rule(seconds=st.floats(0.1, 70.0))
    def pass_time(self, seconds: float) -> None:
        self.hear(self.seat.pass_time(seconds))

    @rule()
    def leave(self) -> None:
        self.ours = self.preparing = False
        self.hear(self.seat.handle(LeaveWanted("done")))
        assert self.seat.it.state is S.UNJOINED
        assert self.seat.it.next_deadline() is None

    @precondition(lambda self: self.seat.asks)
    @rule(data=st.data(), code=ERRORS)
    def refuse(self, data: st.DataObject, code: ErrorCode) -> None:
        ask = data.draw(st.sampled_from(self.seat.asks))
        self.hear(self.seat.answer(ask.api, error_code=code))

    @precondition(lambda self: self.seat.asks)
    @rule(data=st.data(), reason=st.sampled_from(list(Reason)))
    def be_silent(self, data: st.DataObject, reason: Reason) -> None:
        ask = data.draw(st.sampled_from(self.seat.asks))
        self.hear(self.seat.fail(ask.api, reason))

    @precondition(lambda self: self.seat.asked(ApiKey.JOIN_GROUP))
    @rule(leads=st.booleans())
    def accept(self, leads: bool) -> None:
        self.generation += 1
        self.hear(self.seat.join(self.generation, "me" if leads else "other"))

    @rule()
    def compute(self) -> None:
        self.hear(self.seat.handle(AssignmentsComputed(self.generation, {"me": [ORDERS]})))

    @precondition(lambda self: self.seat.asked(ApiKey.SYNC_GROUP))
    @rule()
    def assign(self) -> None:
        self.hear(
            self.seat.answer(ApiKey.SYNC_GROUP, assignment=group_requests.assignment([ORDERS]))
        )

    @precondition(lambda self: self.seat.asked(ApiKey.HEARTBEAT))
    @rule()
    def know(self) -> None:
        self.hear(self.seat.answer(ApiKey.HEARTBEAT))

    @invariant()
    def who_is_stable_is_in_the_group(self) -> None:
        it = self.seat.it
        if it.state in (S.STABLE, S.COMPLETING_REBALANCE):
            assert it.identity.member_id == "me"
            assert it.in_group
        if it.state in (S.UNJOINED, S.FAILED):
            assert not it.in_group

    @invariant()
    def what_is_ours_is_kept_alive(self) -> None:
        it = self.seat.it
        if self.ours:
            assert it.in_group
            waiting = it.state in (S.STABLE, S.REJOIN_NEEDED, S.PREPARING)
            assert not waiting or it.next_deadline() is not None

    @invariant()
    def a_member_that_wants_in_waits_for_something(self) -> None:
        """No state is a dead end: the user, a question or a deadline leads on."""
        it = self.seat.it
        if it.state is S.REJOIN_NEEDED:
            assert not it.polling or it.next_deadline() is not None
        if it.state is S.PREPARING:
            assert self.preparing
        if it.state is S.PREPARING_REBALANCE:
            assert self.seat.asked(ApiKey.JOIN_GROUP)


TestCoordinated = Coordinated.TestCase
TestCoordinated.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
