"""Membership: its tables, its scenarios, and a model with an arbitrary coordinator."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkawire.client.consumer import ASSIGNORS, ConsumerConfig, Member, TopicPartition
from kafkawire.client.consumer.failures import ConsumerError, GroupFailed
from kafkawire.client.consumer.group import requests as group_requests
from kafkawire.client.consumer.group.member_states import (
    LEGAL,
    AssignmentsComputed,
    Busy,
    ComputeAssignments,
    GroupRefused,
    JoinWanted,
    LeaveWanted,
    Left,
    MemberEffect,
    MemberEvent,
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
from tests.fuzzing import examples

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
    """A membership, with the test as coordinator."""

    def __init__(self, config: ConsumerConfig = CONFIG) -> None:
        self.membership = Membership(config, owner="consumer", rng=Random(0).random)
        self.now = 0.0
        self.requests: list[SendRequest] = []
        self.effects: list[object] = []

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

    def respond(self, api: ApiKey, **fields: object) -> list[object]:
        """Respond to the oldest request of that kind."""
        request = self.pop_request(api)
        kinds = {
            ApiKey.JOIN_GROUP: JoinGroupResponse,
            ApiKey.SYNC_GROUP: SyncGroupResponse,
            ApiKey.HEARTBEAT: HeartbeatResponse,
            ApiKey.LEAVE_GROUP: LeaveGroupResponse,
        }
        return self.handle(ResponseReceived(request, request.body.highest, kinds[api](**fields)))

    def fail(self, api: ApiKey, reason: Reason = Reason.DISCONNECTED) -> list[object]:
        retriable = reason is not Reason.AUTHENTICATION_FAILED
        return self.handle(NoResponse(self.pop_request(api), reason, retriable))

    def pop_request(self, api: ApiKey) -> SendRequest:
        request = next(each for each in self.requests if each.api is api)
        self.requests.remove(request)
        return request

    def has_request(self, api: ApiKey) -> bool:
        return any(each.api is api for each in self.requests)

    def _collect(self, effects: list[MemberEffect]) -> list[object]:
        self.requests += [each for each in effects if isinstance(each, SendRequest)]
        self.effects += [each for each in effects if not isinstance(each, SendRequest)]
        return [*effects]

    # Ways into the group.

    def prepare(self) -> None:
        self.handle(Polled())
        self.handle(JoinWanted("a test"))
        self.handle(Prepared(JOIN_METADATA))

    def rejoin(self) -> None:
        """Let a member that prepares a rebalance join."""
        if self.membership.state is S.PREPARING:
            self.handle(Prepared(JOIN_METADATA))

    def join(self, generation: int = 1, leader: str = "other") -> list[object]:
        members = [JoinGroupResponseMember(member_id="me", metadata=subscription_of("me"))]
        return self.respond(
            ApiKey.JOIN_GROUP,
            generation_id=generation,
            member_id="me",
            leader=leader,
            protocol_name="range",
            members=members if leader == "me" else [],
        )

    def join_group(self, generation: int = 1) -> list[object]:
        self.prepare()
        self.join(generation)
        return self.respond(ApiKey.SYNC_GROUP, assignment=group_requests.assignment([ORDERS]))


def subscription_of(_member: str) -> bytes:
    return group_requests.subscription(JOIN_METADATA, ASSIGNORS["range"], -1, "")


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


@pytest.mark.parametrize("api", RECOVERY)
def test_every_error_has_a_recovery(api: ApiKey) -> None:
    assert set(RECOVERIES) == set(Recovery)
    for code in ErrorCode:
        assert recovery(api, code) in Recovery
    assert recovery(api, 12_345) is Recovery.FATAL
    assert recovery(api, E.UNKNOWN_MEMBER_ID) is Recovery.NEW_MEMBER
    assert recovery(api, E.FENCED_INSTANCE_ID) is Recovery.FATAL
    assert recovery(api, E.GROUP_AUTHORIZATION_FAILED) is Recovery.FATAL


# Scenarios.


def test_a_member_joins_only_during_a_poll() -> None:
    member = GroupMember()
    assert member.handle(JoinWanted("new")) == []
    assert member.handle(Polled()) == [Prepare()]
    assert not member.requests
    member.handle(Prepared(JOIN_METADATA))
    join = member.pop_request(ApiKey.JOIN_GROUP)
    message = join.body.build(9)
    assert isinstance(message, JoinGroupRequest)
    assert (message.reason, message.rebalance_timeout_ms) == ("new", 60_000)
    assert join.timeout_s > CONFIG.max_poll_interval_s


def test_the_member_id_of_the_broker_is_used_at_once() -> None:
    member = GroupMember()
    member.prepare()
    member.respond(ApiKey.JOIN_GROUP, error_code=E.MEMBER_ID_REQUIRED, member_id="given")
    message = member.requests[0].body.build(9)
    assert isinstance(message, JoinGroupRequest)
    assert message.member_id == "given"
    assert member.membership.state is S.PREPARING_REBALANCE


def test_the_leader_computes_assignments() -> None:
    member = GroupMember()
    member.prepare()
    (compute,) = member.join(leader="me")
    assert isinstance(compute, ComputeAssignments)
    assert compute.members == (Member("me", ("orders",)),)
    assert not member.has_request(ApiKey.SYNC_GROUP)
    member.handle(AssignmentsComputed(0, {"me": []}))  # of another generation
    assert not member.has_request(ApiKey.SYNC_GROUP)
    member.handle(AssignmentsComputed(1, {"me": [ORDERS], "other": []}))
    message = member.requests[0].body.build(5)
    assert isinstance(message, SyncGroupRequest)
    assert {each.member_id for each in message.assignments} == {"me", "other"}


def test_a_leader_with_skip_assignment_sends_no_assignments() -> None:
    member = GroupMember()
    member.prepare()
    member.respond(
        ApiKey.JOIN_GROUP,
        generation_id=2,
        member_id="me",
        leader="me",
        protocol_name="range",
        skip_assignment=True,
    )
    assert member.has_request(ApiKey.SYNC_GROUP)


def test_heartbeats_continue_while_the_user_is_busy() -> None:
    member = GroupMember()
    assert member.join_group() == [PartitionsAssigned(1, (ORDERS,))]
    member.handle(Busy())
    for _ in range(10):
        member.pass_time(3.0)
        assert member.respond(ApiKey.HEARTBEAT) == []
    assert member.membership.state is S.STABLE


def test_a_rebalance_waits_for_the_user_with_heartbeats() -> None:
    member = GroupMember()
    member.join_group()
    member.handle(Busy())
    member.pass_time(3.0)
    assert member.respond(ApiKey.HEARTBEAT, error_code=E.REBALANCE_IN_PROGRESS) == []
    assert member.membership.state is S.REJOIN_NEEDED
    member.pass_time(3.0)
    assert member.respond(ApiKey.HEARTBEAT, error_code=E.REBALANCE_IN_PROGRESS) == []
    assert member.handle(Polled()) == [Prepare()]
    member.handle(Prepared(JOIN_METADATA))
    message = member.requests[0].body.build(9)
    assert isinstance(message, JoinGroupRequest)
    assert message.member_id == "me"


@pytest.mark.parametrize(
    ("code", "member_id"), [(E.ILLEGAL_GENERATION, "me"), (E.UNKNOWN_MEMBER_ID, "")]
)
def test_partitions_are_lost_at_once(code: ErrorCode, member_id: str) -> None:
    member = GroupMember()
    member.join_group()
    member.handle(Busy())
    member.pass_time(3.0)
    (lost,) = member.respond(ApiKey.HEARTBEAT, error_code=code)
    assert isinstance(lost, PartitionsLost)
    assert member.membership.identity == Identity(-1, member_id)
    assert member.pass_time(30.0) == []  # no heartbeats with a refused member id
    assert member.handle(Polled()) == [Prepare()]


def test_a_member_leaves_after_max_poll_interval_and_rejoins_with_a_poll() -> None:
    member = GroupMember()
    member.join_group()
    member.handle(Busy())
    effects: list[object] = []
    for _ in range(21):
        effects += member.pass_time(3.0)
        if member.has_request(ApiKey.HEARTBEAT):
            member.respond(ApiKey.HEARTBEAT)
    leave = member.pop_request(ApiKey.LEAVE_GROUP).body.build(5)
    assert isinstance(leave, LeaveGroupRequest)
    assert (leave.members[0].member_id, leave.members[0].reason) == ("me", POLL_EXPIRED)
    assert PartitionsLost(POLL_EXPIRED) in effects
    assert member.membership.state is S.REJOIN_NEEDED
    assert member.handle(Polled()) == [Prepare()]


def test_a_static_member_sends_no_leave_group() -> None:
    member = GroupMember(ConsumerConfig(group_id="g", group_instance_id="one"))
    member.join_group()
    assert member.handle(LeaveWanted("closed")) == [Left()]
    assert not member.requests
    member.prepare()
    assert member.requests[0].body.lowest == 5  # earlier versions have no static members


def test_a_fenced_static_member_stays_out() -> None:
    member = GroupMember(ConsumerConfig(group_id="g", group_instance_id="one"))
    member.join_group()
    member.pass_time(3.0)
    lost, refused = member.respond(ApiKey.HEARTBEAT, error_code=E.FENCED_INSTANCE_ID)
    assert isinstance(lost, PartitionsLost)
    assert isinstance(refused, GroupRefused)
    assert refused.error.code == E.FENCED_INSTANCE_ID
    assert member.membership.state is S.FAILED
    assert member.handle(Polled()) == [refused]
    assert member.handle(JoinWanted("the user subscribed again")) == [Prepare()]


def test_other_failures_are_retried_with_the_next_poll() -> None:
    member = GroupMember()
    member.prepare()
    effects = member.respond(ApiKey.JOIN_GROUP, error_code=E.GROUP_AUTHORIZATION_FAILED)
    assert isinstance(effects[-1], GroupRefused)
    assert member.handle(Polled()) == [Prepare()]


def test_not_coordinator_finds_the_coordinator_and_retries() -> None:
    member = GroupMember()
    member.prepare()
    assert member.respond(ApiKey.JOIN_GROUP, error_code=E.NOT_COORDINATOR) == [
        ForgetCoordinator(member.membership.coordinator)
    ]
    assert member.membership.state is S.REJOIN_NEEDED
    assert Prepare() in member.pass_time(0.2)


def test_the_coordinator_is_forgotten_after_a_session_timeout() -> None:
    member = GroupMember()
    member.join_group()
    assert ForgetCoordinator(member.membership.coordinator) in member.pass_time(10.0)
    assert member.membership.state is S.STABLE


def test_a_response_to_an_outdated_request_is_ignored() -> None:
    member = GroupMember()
    member.prepare()
    stale = member.pop_request(ApiKey.JOIN_GROUP)
    member.handle(LeaveWanted("unsubscribed"))
    late = JoinGroupResponse(generation_id=7, member_id="me", protocol_name="range")
    assert member.handle(ResponseReceived(stale, 9, late)) == []
    assert member.membership.identity == Identity()


def test_a_join_wanted_during_a_rebalance_follows_it() -> None:
    member = GroupMember()
    member.prepare()
    member.join()
    member.handle(JoinWanted("subscribed to more"))
    effects = member.respond(ApiKey.SYNC_GROUP, assignment=b"")
    assert effects == [PartitionsAssigned(1, ()), Prepare()]


def test_commit_errors_concern_only_the_current_identity() -> None:
    member = GroupMember()
    member.join_group()
    before = member.membership.identity
    assert (
        member.membership.on_commit_error(
            E.ILLEGAL_GENERATION, before._replace(generation_id=0), member.now
        )
        == []
    )
    assert member.membership.on_commit_error(E.OFFSET_METADATA_TOO_LARGE, before, member.now) == []
    assert member.membership.on_commit_error(E.REBALANCE_IN_PROGRESS, before, member.now) == [
        Prepare()
    ]


def test_a_malformed_assignment_is_an_error() -> None:
    member = GroupMember()
    member.prepare()
    member.join()
    effects = member.respond(ApiKey.SYNC_GROUP, assignment=b"\x00")
    assert isinstance(effects[-1], GroupRefused)


# A model.

ERRORS = st.sampled_from(
    [*RECOVERY[ApiKey.JOIN_GROUP], E.FENCED_INSTANCE_ID, E.UNKNOWN_SERVER_ERROR]
)


class Coordinated(RuleBasedStateMachine):
    """A member and a coordinator that may respond anything, with a model of the assignment.

    Model: partitions are assigned from PartitionsAssigned until Prepared, or until they are lost; a
    member sends heartbeats, if at all, with its last identity.
    """

    @initialize(static=st.booleans())
    def begin(self, static: bool) -> None:
        instance = "one" if static else None
        self.member = GroupMember(
            ConsumerConfig(group_id="g", group_instance_id=instance, max_poll_interval_s=60.0)
        )
        self.generation = 0
        self.assigned = False
        self.preparing = False

    def update(self, effects: list[object]) -> None:
        for each in effects:
            match each:
                case Prepare():
                    assert self.member.membership.polling
                    self.preparing = True
                case PartitionsAssigned():
                    assert each.generation_id == self.generation
                    self.assigned = True
                case PartitionsLost():
                    self.assigned = False
                case GroupRefused(error=error):
                    assert isinstance(error, GroupFailed | ConsumerError)

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
        self.preparing, self.assigned = False, False
        self.update(self.member.handle(Prepared(JOIN_METADATA)))

    @rule(seconds=st.floats(0.1, 70.0))
    def pass_time(self, seconds: float) -> None:
        self.update(self.member.pass_time(seconds))

    @rule()
    def leave(self) -> None:
        self.assigned = self.preparing = False
        self.update(self.member.handle(LeaveWanted("done")))
        assert self.member.membership.state is S.UNJOINED
        assert self.member.membership.next_deadline() is None

    @precondition(lambda self: self.member.requests)
    @rule(data=st.data(), code=ERRORS)
    def refuse(self, data: st.DataObject, code: ErrorCode) -> None:
        request = data.draw(st.sampled_from(self.member.requests))
        self.update(self.member.respond(request.api, error_code=code))

    @precondition(lambda self: self.member.requests)
    @rule(data=st.data(), reason=st.sampled_from(list(Reason)))
    def be_silent(self, data: st.DataObject, reason: Reason) -> None:
        request = data.draw(st.sampled_from(self.member.requests))
        self.update(self.member.fail(request.api, reason))

    @precondition(lambda self: self.member.has_request(ApiKey.JOIN_GROUP))
    @rule(leads=st.booleans())
    def accept(self, leads: bool) -> None:
        self.generation += 1
        self.update(self.member.join(self.generation, "me" if leads else "other"))

    @rule()
    def compute(self) -> None:
        self.update(self.member.handle(AssignmentsComputed(self.generation, {"me": [ORDERS]})))

    @precondition(lambda self: self.member.has_request(ApiKey.SYNC_GROUP))
    @rule()
    def assign(self) -> None:
        self.update(
            self.member.respond(ApiKey.SYNC_GROUP, assignment=group_requests.assignment([ORDERS]))
        )

    @precondition(lambda self: self.member.has_request(ApiKey.HEARTBEAT))
    @rule()
    def know(self) -> None:
        self.update(self.member.respond(ApiKey.HEARTBEAT))

    @invariant()
    def who_is_stable_is_in_the_group(self) -> None:
        it = self.member.membership
        if it.state in (S.STABLE, S.COMPLETING_REBALANCE):
            assert it.identity.member_id == "me"
            assert it.in_group
        if it.state in (S.UNJOINED, S.FAILED):
            assert not it.in_group

    @invariant()
    def what_is_ours_is_kept_alive(self) -> None:
        it = self.member.membership
        if self.assigned:
            assert it.in_group
            waiting = it.state in (S.STABLE, S.REJOIN_NEEDED, S.PREPARING)
            assert not waiting or it.next_deadline() is not None

    @invariant()
    def a_member_that_wants_in_waits_for_something(self) -> None:
        """No state is a dead end: the user, a response or a deadline leads on."""
        it = self.member.membership
        if it.state is S.REJOIN_NEEDED:
            assert not it.polling or it.next_deadline() is not None
        if it.state is S.PREPARING:
            assert self.preparing
        if it.state is S.PREPARING_REBALANCE:
            assert self.member.has_request(ApiKey.JOIN_GROUP)


TestCoordinated = pytest.mark.fuzz(Coordinated.TestCase)
TestCoordinated.settings = settings(
    max_examples=examples(50), stateful_step_count=40, deadline=None
)
