"""The member of a share group: heartbeats, fencing, leaving, errors."""

from __future__ import annotations

import pytest

from kafkawire.client.cluster import Topic
from kafkawire.client.consumer import GroupFailed
from kafkawire.client.consumer.events import Close, Closed, Done, Poll, Raise, Unsubscribe
from kafkawire.client.requests import (
    Coordinator,
    CoordinatorKind,
    ForgetCoordinator,
    Reason,
    RequestMetadataUpdate,
    TrackTopics,
)
from kafkawire.client.share_consumer import AcknowledgementMode, SharePartition, events
from kafkawire.client.share_consumer.member_states import MemberState
from kafkawire.errors import InvalidValue, LocalProtocolError
from kafkawire.messages.share_fetch_request import ShareFetchRequest
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkawire.protocol.error_code import ErrorCode

from .scripted import (
    ACKNOWLEDGE,
    ACQUIRE,
    HEARTBEAT,
    MEMBER_ID,
    ORDERS_ID,
    Scripted,
    heartbeat,
    partition,
)

E = ErrorCode
COORDINATOR = Coordinator(CoordinatorKind.GROUP, "g")


def beat(it: Scripted) -> ShareGroupHeartbeatRequest:
    """Return the heartbeat in flight, after a response without an assignment."""
    request, message = it.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
    it.respond(request, heartbeat(max(message.member_epoch, 1), assignment=None))
    return message


def refuse(it: Scripted, code: ErrorCode, text: str | None = None) -> None:
    request, _ = it.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
    it.respond(request, ShareGroupHeartbeatResponse(error_code=code, error_message=text))


def test_a_member_joins_with_its_own_id_and_learns_its_assignment() -> None:
    it = Scripted()
    message = it.join(0, 1)
    assert (message.group_id, message.member_id, message.member_epoch) == ("g", MEMBER_ID, 0)
    assert message.subscribed_topic_names == ["orders"]
    assert TrackTopics("share_consumer", frozenset({"orders"})) in it.effects
    assert it.machine.assignment == {
        SharePartition("orders", 0, ORDERS_ID),
        SharePartition("orders", 1, ORDERS_ID),
    }
    assert it.machine.membership.state is MemberState.STABLE


def test_heartbeats_follow_the_interval_of_the_broker_and_repeat_nothing() -> None:
    it = Scripted()
    it.join(0)
    it.pass_time(4.9)
    assert not it.sent(HEARTBEAT)
    it.pass_time(0.2)
    message = beat(it)
    assert (message.member_epoch, message.subscribed_topic_names) == (1, None)
    assert it.machine.assignment


@pytest.mark.parametrize("interval_ms", [0, -5])
def test_an_interval_of_nothing_does_not_keep_the_member_busy(interval_ms: int) -> None:
    it = Scripted()
    it.handle(events.Subscribe(("orders",)))
    for _ in range(3):
        request, _ = it.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
        it.respond(request, heartbeat(1, heartbeat_interval_ms=interval_ms))
        assert not it.sent(HEARTBEAT)
        it.pass_time(0.1)


def test_unsubscribing_forgets_errors_that_were_not_raised() -> None:
    it = Scripted()
    it.handle(events.Subscribe(("orders",)))
    refuse(it, E.GROUP_AUTHORIZATION_FAILED)
    it.handle(Unsubscribe("done"))
    it.join(0)
    it.handle(Poll())
    assert not it.kinds(Raise)


def test_a_new_subscription_is_sent_at_once() -> None:
    it = Scripted()
    it.join(0)
    it.handle(events.Subscribe(("orders", "payments")))
    assert beat(it).subscribed_topic_names == ["orders", "payments"]


def test_a_new_subscription_waits_for_the_heartbeat_in_flight() -> None:
    it = Scripted()
    it.join(0)
    it.pass_time(5.1)
    it.handle(events.Subscribe(("payments",)))
    assert len(it.sent(HEARTBEAT)) == 1
    beat(it)
    assert beat(it).subscribed_topic_names == ["payments"]


@pytest.mark.parametrize("code", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_its_assignment_and_joins_again(code: ErrorCode) -> None:
    it = Scripted()
    it.join(0)
    it.pass_time(5.1)
    refuse(it, code)
    assert not it.machine.assignment
    request, message = it.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
    assert (message.member_id, message.member_epoch) == (MEMBER_ID, 0)
    assert message.subscribed_topic_names == ["orders"]
    it.respond(request, heartbeat(7, 0))
    assert it.machine.membership.epoch == 7
    assert it.machine.assignment


def test_a_member_that_is_fenced_again_and_again_backs_off() -> None:
    it = Scripted()
    it.join(0)
    it.pass_time(5.1)
    for _ in range(4):
        refuse(it, E.FENCED_MEMBER_EPOCH)
    assert not it.sent(HEARTBEAT)
    it.pass_time(1.0)
    assert len(it.sent(HEARTBEAT)) == 1


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_has_moved_is_found_again(code: ErrorCode) -> None:
    it = Scripted()
    it.join(0)
    it.pass_time(5.1)
    refuse(it, code)
    assert ForgetCoordinator(COORDINATOR) in it.effects
    it.pass_time(1.0)
    message = beat(it)
    assert (message.member_epoch, message.subscribed_topic_names) == (1, ["orders"])


def test_a_heartbeat_without_a_response_is_sent_again_with_everything() -> None:
    it = Scripted()
    it.join(0)
    it.pass_time(5.1)
    it.fail(it.sent(HEARTBEAT)[0])
    it.requests.clear()
    it.pass_time(1.0)
    assert beat(it).subscribed_topic_names == ["orders"]
    assert it.machine.assignment


def test_the_next_poll_joins_again_after_a_fatal_error() -> None:
    it = Scripted()
    it.handle(events.Subscribe(("orders",)))
    refuse(it, E.GROUP_AUTHORIZATION_FAILED, "not allowed")
    assert not it.sent(HEARTBEAT)
    it.handle(Poll())
    (raised,) = [each.error for each in it.effects if isinstance(each, Raise)]
    assert isinstance(raised, GroupFailed)
    assert raised.code == E.GROUP_AUTHORIZATION_FAILED
    assert "'g'" in str(raised)
    assert "not allowed" in str(raised)
    assert len(it.sent(HEARTBEAT)) == 1


def test_share_groups_that_are_off_are_named_with_the_broker_and_the_remedy() -> None:
    it = Scripted()
    it.handle(events.Subscribe(("orders",)))
    refuse(it, E.UNSUPPORTED_VERSION)
    it.handle(Poll())
    (raised,) = [each.error for each in it.effects if isinstance(each, Raise)]
    assert "b1:9092" in str(raised)
    assert "share.version" in str(raised)


def test_a_broker_without_the_api_is_an_error_with_the_remedy() -> None:
    it = Scripted()
    it.handle(events.Subscribe(("orders",)))
    it.fail(it.sent(HEARTBEAT)[0], Reason.NO_VERSION)
    it.handle(Poll())
    (raised,) = [each.error for each in it.effects if isinstance(each, Raise)]
    assert "share.version" in str(raised)
    assert "why" in str(raised)


def test_topics_are_named_once_the_metadata_has_them() -> None:
    it = Scripted()
    topic = it.view.topics.pop("orders")
    it.join(0)
    assert not it.machine.assignment
    assert RequestMetadataUpdate() in it.effects
    it.view.topics["orders"] = topic
    it.metadata_changed()
    assert it.machine.assignment == {SharePartition("orders", 0, ORDERS_ID)}


def test_a_topic_that_was_created_again_is_another_partition() -> None:
    it = Scripted()
    it.join(0)
    it.poll()
    it.pass_time(5.1)
    new = b"n" * 16
    request, _ = it.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
    listed = Assignment(topic_partitions=[TopicPartitions(topic_id=new, partitions=[0])])
    before = it.view.topics["orders"]
    it.view.topics["orders"] = Topic("orders", new, partitions=before.partitions)
    it.respond(request, heartbeat(2, assignment=listed))
    it.fetched()  # the response to the fetch that was in flight
    _, message = it.pop(ACQUIRE, ShareFetchRequest)
    assert [each.topic_id for each in message.topics] == [new]
    assert [each.topic_id for each in message.forgotten_topics_data] == [ORDERS_ID]


def test_a_member_that_does_not_poll_leaves_until_the_next_poll() -> None:
    it = Scripted(AcknowledgementMode.IMPLICIT)
    it.join(0)
    it.poll(partition(0, 0))
    for _ in range(59):
        it.pass_time(5.0)
        beat(it)
    it.pass_time(5.0)
    requests = [each.body.build(1) for each in it.sent(HEARTBEAT)]
    assert [each.member_epoch for each in requests if hasattr(each, "member_epoch")][-1] == -1
    assert it.machine.membership.state is MemberState.STALE
    assert not it.machine.assignment
    (left,) = it.sent(HEARTBEAT)
    it.requests.clear()
    it.handle(Poll())
    it.respond(left, heartbeat(-1, assignment=None))  # too late to matter
    assert it.machine.membership.state.value == "Joining"
    assert beat(it).member_epoch == 0


def test_closing_ends_the_sessions_and_then_leaves() -> None:
    it = Scripted()
    it.join(0)
    it.poll(partition(0, 1))
    it.handle(Close(30.0))
    assert not it.sent(HEARTBEAT)
    assert it.acknowledged().share_session_epoch == -1
    request, message = it.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
    assert message.member_epoch == -1
    assert not it.kinds(Closed)
    it.respond(request, heartbeat(-1, assignment=None))
    assert it.kinds(Closed)
    assert it.machine.next_deadline() is None


def test_closing_does_not_wait_longer_than_its_timeout() -> None:
    it = Scripted()
    it.join(0)
    it.poll(partition(0, 1))
    it.handle(Close(3.0))
    it.pass_time(2.9)
    assert not it.kinds(Closed)
    it.pass_time(0.2)
    assert it.kinds(Closed)


def test_closing_without_a_group_is_immediate() -> None:
    it = Scripted()
    it.handle(Close(3.0))
    assert it.kinds(Closed)
    assert not it.requests


def test_unsubscribing_leaves_and_a_new_subscription_joins_again() -> None:
    it = Scripted()
    it.join(0)
    it.poll(partition(0, 1))
    it.handle(Unsubscribe("done"))
    with pytest.raises(LocalProtocolError, match="subscribe"):
        it.handle(Poll())
    it.handle(events.Subscribe(("orders",)))
    it.acknowledged()
    beat(it)
    assert Done("done") in it.effects
    request, message = it.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
    assert (message.member_epoch, message.subscribed_topic_names) == (0, ["orders"])
    it.respond(request, heartbeat(9, 0))
    assert it.poll().share_session_epoch == 0
    assert not it.sent(ACKNOWLEDGE)


def test_calls_with_invalid_values_change_nothing() -> None:
    it = Scripted()
    with pytest.raises(LocalProtocolError, match="subscribe"):
        it.handle(Poll())
    with pytest.raises(LocalProtocolError, match="no topics"):
        it.handle(events.Subscribe(()))
    with pytest.raises(InvalidValue):
        it.handle(events.Subscribe((1,)))  # type: ignore[arg-type]
    assert not it.requests
