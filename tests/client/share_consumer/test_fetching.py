"""Share sessions with the leaders, what is fetched and when, errors of leaders."""

from __future__ import annotations

import pytest

from kafkawire.client.cluster import Broker
from kafkawire.client.consumer import FetchFailed, TopicPartition
from kafkawire.client.consumer.events import Poll, Raise, StopPolling, Warn
from kafkawire.client.requests import Reason, RequestMetadataUpdate, UpdateLeader
from kafkawire.client.share_consumer import (
    AcknowledgementMode,
    AcknowledgeType,
    AcquireMode,
    events,
)
from kafkawire.client.share_consumer.acknowledgements import SharePartition
from kafkawire.client.share_consumer.sessions import MAX_EPOCH, ShareSession
from kafkawire.messages.share_fetch_request import ShareFetchRequest
from kafkawire.messages.share_fetch_response import LeaderIdAndEpoch, NodeEndpoint
from kafkawire.protocol.error_code import ErrorCode

from .scripted import (
    ACKNOWLEDGE,
    ACQUIRE,
    LOCK_S,
    MEMBER_ID,
    ORDERS_ID,
    Scripted,
    acquired,
    fetch_response,
    partition,
)

E = ErrorCode
IMPLICIT = AcknowledgementMode.IMPLICIT


def added(message: ShareFetchRequest) -> list[int]:
    return [each.partition_index for topic in message.topics for each in topic.partitions]


def forgotten(message: ShareFetchRequest) -> list[int]:
    return [each for topic in message.forgotten_topics_data for each in topic.partitions]


def raised(it: Scripted) -> list[Exception]:
    return [each.error for each in it.effects if isinstance(each, Raise)]


def test_nothing_is_fetched_without_a_poll_and_each_leader_once() -> None:
    it = Scripted()
    it.join(0, 1)
    assert not it.sent(ACQUIRE)
    it.handle(Poll())
    assert [each.to for each in it.sent(ACQUIRE)] == [1, 2]
    it.handle(StopPolling())
    it.handle(Poll())
    assert len(it.sent(ACQUIRE)) == 2


def test_the_first_fetch_opens_a_session_and_the_next_has_only_changes() -> None:
    it = Scripted()
    it.view.lead(1, 1)
    it.join(0, 1)
    first = it.poll()
    assert (first.group_id, first.member_id) == ("g", MEMBER_ID)
    assert (first.share_session_epoch, added(first)) == (0, [0, 1])
    second = it.fetched()
    assert (second.share_session_epoch, added(second), forgotten(second)) == (1, [], [])
    it.view.lead(1, 2)
    it.metadata_changed()
    it.fetched()  # was in flight
    third = it.fetched()
    assert (third.share_session_epoch, added(third), forgotten(third)) == (3, [], [1])
    assert added(it.fetched(to=2)) == [1]


def test_a_partition_that_is_only_acknowledged_is_forgotten_at_once() -> None:
    """A broker adds the partitions of acknowledgements to the session."""
    session = ShareSession()
    first, second = (SharePartition("orders", index, ORDERS_ID) for index in range(2))
    session.next_fetch([first, second])
    session.on_response()
    for acknowledged in ([], [first], [first, second]):
        change = session.next_fetch([second], acknowledged)
        assert (change.to_add, change.to_forget) == ((), (first,))
        session.on_response()
    assert session.next_fetch([second]).to_forget == ()


def test_epochs_wrap_to_one() -> None:
    session = ShareSession()
    session.on_response()
    session.epoch = MAX_EPOCH
    session.on_response()
    assert session.epoch == 1


def test_limits_are_those_of_the_poll_and_of_the_configuration() -> None:
    it = Scripted(acquire=AcquireMode.RECORD_LIMIT)
    it.join(0)
    it.handle(Poll(7))
    request, message = it.pop(ACQUIRE, ShareFetchRequest)
    assert (message.max_records, message.batch_size, message.share_acquire_mode) == (7, 7, 1)
    assert (message.max_wait_ms, message.min_bytes, message.max_bytes) == (500, 1, 52_428_800)
    assert request.body.lowest == 2
    early = Scripted()
    early.join(0)
    early.handle(Poll())
    (request,) = early.sent(ACQUIRE)
    oldest = request.body.build(0)
    assert isinstance(oldest, ShareFetchRequest)
    assert oldest.topics[0].partitions[0].partition_max_bytes == 52_428_800


def test_a_poll_returns_at_most_its_maximum_and_the_rest_without_a_fetch() -> None:
    it = Scripted(IMPLICIT)
    it.join(0)
    it.handle(Poll(3))
    it.fetched(partition(0, 4))
    assert [each.offset for each in it.delivered] == [0, 1, 2]
    it.handle(Poll(3))
    assert [each.offset for each in it.delivered] == [0, 1, 2, 3, 4]
    assert not it.sent(ACQUIRE)
    assert len(it.sent(ACKNOWLEDGE)) == 1


def test_records_that_come_after_a_poll_are_for_the_next() -> None:
    it = Scripted(IMPLICIT)
    it.join(0)
    it.handle(Poll())
    it.handle(StopPolling())
    it.fetched(partition(0, 1))
    assert not it.delivered
    it.handle(Poll())
    assert len(it.delivered) == 2


def test_buffered_records_whose_lock_may_have_expired_are_dropped() -> None:
    it = Scripted(IMPLICIT)
    it.join(0)
    it.handle(Poll())
    it.handle(StopPolling())
    it.fetched(partition(0, 1))
    it.now += LOCK_S + 0.1
    it.handle(Poll())
    assert not it.delivered
    it.fetched(partition(0, 1, count=2))
    assert [each.delivery_count for each in it.delivered] == [2, 2]


@pytest.mark.parametrize("code", [E.SHARE_SESSION_NOT_FOUND, E.INVALID_SHARE_SESSION_EPOCH])
def test_a_lost_session_is_opened_anew_at_once(code: ErrorCode) -> None:
    it = Scripted()
    it.join(0)
    it.poll()
    request, _ = it.pop(ACQUIRE, ShareFetchRequest)
    it.respond(request, fetch_response(error_code=code))
    again = it.fetched()
    assert (again.share_session_epoch, added(again)) == (0, [0])
    assert not raised(it)


def test_a_session_that_is_lost_again_and_again_waits() -> None:
    it = Scripted()
    it.join(0)
    it.handle(Poll())
    for _ in range(2):
        request, _ = it.pop(ACQUIRE, ShareFetchRequest)
        it.respond(request, fetch_response(error_code=E.SHARE_SESSION_NOT_FOUND))
    assert not it.sent(ACQUIRE)
    it.pass_time(1.0)
    assert len(it.sent(ACQUIRE)) == 1


def test_a_broker_without_room_for_sessions_is_tried_again_later() -> None:
    it = Scripted()
    it.join(0)
    it.handle(Poll())
    request, _ = it.pop(ACQUIRE, ShareFetchRequest)
    it.respond(request, fetch_response(error_code=E.SHARE_SESSION_LIMIT_REACHED))
    assert not it.sent(ACQUIRE)
    it.pass_time(1.0)
    assert it.fetched().share_session_epoch == 0


def test_without_a_response_the_session_and_buffered_records_are_lost() -> None:
    it = Scripted(IMPLICIT)
    it.join(0)
    it.handle(Poll(1))
    it.fetched(partition(0, 2))
    it.handle(Poll(1))  # offset 1, and acknowledges offset 0
    it.fail(it.sent(ACKNOWLEDGE)[0])
    it.requests.clear()
    it.handle(Poll())
    assert [each.offset for each in it.delivered] == [0, 1]
    it.pass_time(1.0)
    assert it.fetched(partition(2, 2, count=2)).share_session_epoch == 0
    assert [each.offset for each in it.delivered] == [0, 1, 2]


def test_a_leader_that_has_moved_is_taken_from_the_response() -> None:
    it = Scripted()
    it.join(0)
    it.handle(Poll())
    moved = partition(
        error_code=int(E.NOT_LEADER_OR_FOLLOWER),
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=6),
    )
    request, _ = it.pop(ACQUIRE, ShareFetchRequest)
    response = fetch_response(moved)
    response.node_endpoints = [NodeEndpoint(node_id=2, host="b2", port=9092)]
    it.respond(request, response)
    assert UpdateLeader("orders", 0, 2, 6, (Broker(2, "b2", 9092),)) in it.effects
    it.view.lead(0, 2)
    it.metadata_changed()
    assert added(it.fetched(to=2)) == [0]


@pytest.mark.parametrize("code", [E.UNKNOWN_TOPIC_ID, E.FENCED_LEADER_EPOCH])
def test_outdated_metadata_is_updated(code: ErrorCode) -> None:
    it = Scripted()
    it.join(0)
    it.poll(partition(error_code=int(code)))
    assert RequestMetadataUpdate(frozenset({"orders"})) in it.effects
    assert not raised(it)


def test_a_partition_that_keeps_failing_is_a_warning_and_others_go_on() -> None:
    it = Scripted()
    it.view.lead(1, 1)
    it.join(0, 1)
    it.handle(Poll())
    for _ in range(3):
        it.fetched(partition(error_code=int(E.COORDINATOR_LOAD_IN_PROGRESS)))
        it.pass_time(2.0)
        it.fetched()  # it was without the partition
    assert len(it.kinds(Warn)) == 1
    it.fetched(partition(0, 0, index=1))
    assert len(it.delivered) == 1


def test_an_error_of_a_partition_is_raised_by_the_poll() -> None:
    it = Scripted()
    it.join(0)
    it.poll(partition(error_code=int(E.TOPIC_AUTHORIZATION_FAILED), error_message="no"))
    (error,) = raised(it)
    assert isinstance(error, FetchFailed)
    assert (error.code, str(error).count("orders-0")) == (E.TOPIC_AUTHORIZATION_FAILED, 1)
    it.handle(Poll())
    it.pass_time(1.0)
    assert added(it.fetched()) == []


def test_an_error_of_a_whole_response_is_raised_by_the_poll() -> None:
    it = Scripted()
    it.join(0)
    it.handle(Poll())
    request, _ = it.pop(ACQUIRE, ShareFetchRequest)
    it.respond(request, fetch_response(error_code=E.GROUP_AUTHORIZATION_FAILED))
    (error,) = raised(it)
    assert isinstance(error, FetchFailed)
    assert error.code == E.GROUP_AUTHORIZATION_FAILED


def test_a_version_that_the_broker_lacks_is_raised_by_the_poll() -> None:
    it = Scripted(acquire=AcquireMode.RECORD_LIMIT)
    it.join(0)
    it.handle(Poll())
    it.fail(it.pop(ACQUIRE, ShareFetchRequest)[0], Reason.NO_VERSION)
    (error,) = raised(it)
    assert "unsupported version why" in str(error)


def test_corrupt_records_are_raised_in_their_place_and_rejected() -> None:
    it = Scripted()
    it.join(0)
    good, bad = partition(0, 1), partition(2, 3)
    assert good.records
    assert bad.records
    good.records += bad.records[:-2] + bytes([bad.records[-2] ^ 1]) + bad.records[-1:]
    good.acquired_records = [acquired(0, 3)]
    it.poll(good)
    assert [each.offset for each in it.delivered] == [0, 1]
    for record in it.delivered:
        where = TopicPartition(record.topic, record.partition)
        it.handle(events.Acknowledge(where, record.offset, AcknowledgeType.ACCEPT))
    rejected = it.acknowledged().topics[0].partitions[0].acknowledgement_batches
    assert [(each.first_offset, each.last_offset) for each in rejected] == [(2, 3)]
    assert rejected[0].acknowledge_types == [AcknowledgeType.REJECT]
    it.handle(Poll())
    (error,) = raised(it)
    assert "corrupt" in str(error)


def test_responses_without_records_and_without_waiting_are_paced() -> None:
    it = Scripted()
    it.join(0)
    it.handle(Poll())
    for _ in range(11):
        it.fetched(partition())
    assert not it.sent(ACQUIRE)
    it.pass_time(0.2)
    assert len(it.sent(ACQUIRE)) == 1


def test_partitions_and_topics_that_were_not_requested_are_ignored() -> None:
    it = Scripted()
    it.join(0)
    it.poll(partition(0, 1, index=5))
    assert not it.delivered


def test_a_partition_without_a_leader_waits_for_metadata() -> None:
    it = Scripted()
    it.view.lead(0, -1)
    it.join(0)
    it.handle(Poll())
    assert RequestMetadataUpdate(frozenset({"orders"})) in it.effects
    assert not it.sent(ACQUIRE)
    it.view.lead(0, 2)
    it.metadata_changed()
    assert len(it.sent(ACQUIRE, 2)) == 1
