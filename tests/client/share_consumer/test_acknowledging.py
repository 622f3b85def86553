"""Acknowledgements: when they are sent, how they end, commits."""

from __future__ import annotations

import pytest

from kafkawire.client.consumer import TopicPartition
from kafkawire.client.consumer.events import Close, Poll, Unsubscribe
from kafkawire.client.requests import Reason, UpdateLeader
from kafkawire.client.share_consumer import (
    AcknowledgementMode,
    AcknowledgeType,
    SharePartition,
    events,
)
from kafkawire.client.share_consumer.acknowledgements import GAP
from kafkawire.client.share_consumer.records import decode
from kafkawire.errors import InvalidValue, LocalProtocolError, OutOfRange
from kafkawire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from kafkawire.messages.share_acknowledge_response import (
    LeaderIdAndEpoch,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kafkawire.messages.share_fetch_request import ShareFetchRequest
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.protocol.error_code import ErrorCode

from .scripted import (
    ACKNOWLEDGE,
    ACQUIRE,
    HEARTBEAT,
    ORDERS_ID,
    Scripted,
    acquired,
    batch,
    fetch_response,
    heartbeat,
    partition,
)

A, E = AcknowledgeType, ErrorCode
FIRST = TopicPartition("orders", 0)


def acknowledge(it: Scripted, offset: int, kind: AcknowledgeType = A.ACCEPT) -> None:
    it.handle(events.Acknowledge(FIRST, offset, kind))


def ranges(message: ShareAcknowledgeRequest | ShareFetchRequest) -> list[tuple[int, int, int]]:
    """Return the acknowledgements of a request."""
    return [
        (each.first_offset, each.last_offset, each.acknowledge_types[0])
        for topic in message.topics
        for of_partition in topic.partitions
        for each in of_partition.acknowledgement_batches
    ]


def with_records(
    number: int = 3, mode: AcknowledgementMode = AcknowledgementMode.EXPLICIT
) -> Scripted:
    """A member to which so many records were delivered."""
    it = Scripted(mode)
    it.join(0)
    it.poll(partition(0, number - 1))
    assert len(it.delivered) == number
    return it


def test_an_explicit_acknowledgement_of_each_type_goes_with_the_next_fetch() -> None:
    it = with_records(4)
    acknowledge(it, 0)
    acknowledge(it, 1, A.RELEASE)
    acknowledge(it, 2, A.REJECT)
    acknowledge(it, 3, A.REJECT)
    assert not it.sent(ACKNOWLEDGE)
    message = it.poll(partition(acknowledge_error_code=0))
    assert message.share_session_epoch == 1
    assert ranges(message) == [(0, 0, A.ACCEPT), (1, 1, A.RELEASE), (2, 3, A.REJECT)]
    assert it.outcomes == [((0, 0, 1), 0), ((1, 1, 2), 0), ((2, 3, 3), 0)]


def test_the_last_acknowledgement_of_a_record_counts() -> None:
    it = with_records(1)
    acknowledge(it, 0, A.REJECT)
    acknowledge(it, 0, A.ACCEPT)
    assert ranges(it.poll(partition())) == [(0, 0, A.ACCEPT)]


def test_a_poll_with_unacknowledged_records_is_an_error_and_sends_nothing() -> None:
    it = with_records(2)
    acknowledge(it, 0)
    with pytest.raises(LocalProtocolError, match="1 delivered record"):
        it.handle(Poll())
    assert not it.sent(ACQUIRE)
    acknowledge(it, 1)
    assert ranges(it.poll(partition())) == [(0, 1, A.ACCEPT)]


def test_what_was_not_delivered_cannot_be_acknowledged() -> None:
    it = with_records(2)
    with pytest.raises(LocalProtocolError, match="offset 2 of orders-0"):
        acknowledge(it, 2)
    acknowledge(it, 0)
    it.handle(events.Commit("c", 10.0))
    with pytest.raises(LocalProtocolError, match="offset 0"):
        acknowledge(it, 0)
    with pytest.raises(InvalidValue):
        it.handle(events.Acknowledge(FIRST, 1, 1))  # type: ignore[arg-type]
    with pytest.raises(OutOfRange):
        acknowledge(it, -1)


def test_implicit_mode_accepts_what_was_delivered_before_the_poll() -> None:
    it = with_records(3, AcknowledgementMode.IMPLICIT)
    with pytest.raises(LocalProtocolError, match="explicit"):
        acknowledge(it, 0)
    assert ranges(it.poll(partition())) == [(0, 2, A.ACCEPT)]


def test_returned_records_are_not_accepted() -> None:
    it = with_records(3, AcknowledgementMode.IMPLICIT)
    it.handle(events.ReturnRecords(it.delivered[1:]))
    it.handle(events.Commit("c", 10.0))
    assert ranges(it.acknowledged()) == [(0, 0, A.ACCEPT)]
    it.handle(Poll())
    assert [each.offset for each in it.delivered] == [0, 1, 2, 1, 2]


def test_a_commit_sends_acknowledgements_at_once_and_has_a_result_per_partition() -> None:
    it = Scripted(AcknowledgementMode.IMPLICIT)
    it.join(0, 1)
    it.handle(Poll())
    it.fetched(partition(0, 1))
    it.fetched(partition(5, 5, index=1), to=2)
    it.handle(Poll())
    it.handle(events.Commit("c", 10.0))
    assert [each.to for each in it.sent(ACKNOWLEDGE)] == [1, 2]
    assert it.acknowledged().share_session_epoch == 1
    assert it.result("c") is None
    it.acknowledged(E.INVALID_RECORD_STATE, to=2)
    assert it.result("c") == {"orders-0": 0, "orders-1": E.INVALID_RECORD_STATE}


def test_a_commit_of_nothing_is_immediate() -> None:
    it = Scripted()
    it.join(0)
    it.handle(events.Commit("c", 10.0))
    assert it.result("c") == {}


def test_a_commit_waits_for_acknowledgements_that_were_sent_before() -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(Poll())
    it.handle(events.Commit("c", 10.0))
    assert it.result("c") is None
    it.fetched(partition())
    assert it.result("c") == {"orders-0": 0}


def test_a_commit_ends_at_its_deadline() -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(events.Commit("c", 2.0))
    it.pass_time(1.9)
    assert it.result("c") is None
    it.pass_time(0.2)
    assert it.result("c") == {"orders-0": E.REQUEST_TIMED_OUT}


def test_one_request_is_in_flight_and_the_rest_follows_together() -> None:
    it = with_records(3)
    for offset in range(3):
        acknowledge(it, offset)
        it.handle(events.Commit(offset, 10.0))
    assert len(it.sent(ACKNOWLEDGE)) == 1
    assert ranges(it.acknowledged()) == [(0, 0, A.ACCEPT)]
    assert ranges(it.acknowledged()) == [(1, 1, A.ACCEPT), (2, 2, A.ACCEPT)]
    assert [it.result(key) for key in range(3)] == [{"orders-0": 0}] * 3


@pytest.mark.parametrize("code", [E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS])
def test_an_acknowledgement_that_may_succeed_later_is_sent_again(code: ErrorCode) -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(events.Commit("c", 10.0))
    it.acknowledged(code)
    assert not it.sent(ACKNOWLEDGE)
    it.pass_time(0.2)
    message = it.acknowledged()
    assert (ranges(message), message.share_session_epoch) == ([(0, 0, A.ACCEPT)], 2)
    assert it.result("c") == {"orders-0": 0}


def test_retries_end_at_the_deadline() -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(events.Commit("c", 0.05))
    it.acknowledged(E.COORDINATOR_NOT_AVAILABLE)
    it.pass_time(5.0)
    assert not it.sent(ACKNOWLEDGE)
    assert it.result("c") == {"orders-0": E.REQUEST_TIMED_OUT}
    assert it.outcomes == [((0, 0, 1), E.REQUEST_TIMED_OUT)]


def test_a_leader_that_has_moved_fails_acknowledgements_and_is_taken() -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(events.Commit("c", 10.0))
    request, _ = it.pop(ACKNOWLEDGE, ShareAcknowledgeRequest)
    moved = PartitionData(
        partition_index=0,
        error_code=E.NOT_LEADER_OR_FOLLOWER,
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=9),
    )
    topic = ShareAcknowledgeTopicResponse(topic_id=ORDERS_ID, partitions=[moved])
    it.respond(request, ShareAcknowledgeResponse(responses=[topic]))
    assert it.result("c") == {"orders-0": E.NOT_LEADER_OR_FOLLOWER}
    assert UpdateLeader("orders", 0, 2, 9) in it.effects


@pytest.mark.parametrize(
    ("reason", "code"),
    [(Reason.DISCONNECTED, E.NETWORK_EXCEPTION), (Reason.TIMED_OUT, E.REQUEST_TIMED_OUT)],
)
def test_without_a_response_acknowledgements_fail_and_are_not_repeated(
    reason: Reason, code: ErrorCode
) -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(Poll())
    it.fail(it.pop(ACQUIRE, ShareFetchRequest)[0], reason)
    assert it.outcomes == [((0, 0, 1), code)]
    it.pass_time(1.0)
    message = it.fetched()
    assert (message.share_session_epoch, ranges(message)) == (0, [])


def test_acknowledgements_are_not_sent_in_a_session_that_is_not_open() -> None:
    it = with_records(2)
    acknowledge(it, 0)
    it.handle(events.Commit("c", 10.0))
    it.fail(it.pop(ACKNOWLEDGE, ShareAcknowledgeRequest)[0])
    acknowledge(it, 1)
    it.handle(events.Commit("d", 10.0))
    assert not it.sent(ACKNOWLEDGE)
    assert it.result("d") == {"orders-0": E.SHARE_SESSION_NOT_FOUND}


def test_a_response_without_an_outcome_is_a_failure() -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.poll()
    assert it.outcomes == [((0, 0, 1), E.INVALID_RECORD_STATE)]


def test_a_response_to_acknowledgements_without_an_outcome_is_a_failure() -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(events.Commit("c", 10.0))
    request, _ = it.pop(ACKNOWLEDGE, ShareAcknowledgeRequest)
    it.respond(request, ShareAcknowledgeResponse())
    assert it.result("c") == {"orders-0": E.INVALID_RECORD_STATE}


def test_what_waits_longer_than_its_commit_is_not_sent() -> None:
    it = with_records(2)
    acknowledge(it, 0)
    it.handle(events.Commit("first", 10.0))
    acknowledge(it, 1)
    it.handle(events.Commit("second", 1.0))
    it.pass_time(1.1)
    assert it.outcomes == [((1, 1, 1), E.REQUEST_TIMED_OUT)]
    it.acknowledged()
    assert not it.sent(ACKNOWLEDGE)
    assert it.result("first") == {"orders-0": 0}


def test_an_error_of_a_partition_is_not_hidden_by_a_later_success() -> None:
    it = with_records(2)
    acknowledge(it, 0)
    it.handle(events.Commit("first", 10.0))
    acknowledge(it, 1)
    it.handle(events.Commit("second", 10.0))
    it.acknowledged(E.INVALID_RECORD_STATE)
    it.acknowledged()
    assert it.result("second") == {"orders-0": E.INVALID_RECORD_STATE}


def test_an_error_of_a_whole_response_fails_its_acknowledgements() -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(Poll())
    request, _ = it.pop(ACQUIRE, ShareFetchRequest)
    it.respond(request, fetch_response(error_code=E.SHARE_SESSION_NOT_FOUND))
    assert it.outcomes == [((0, 0, 1), E.SHARE_SESSION_NOT_FOUND)]


def test_gaps_are_acknowledged_and_are_none_of_the_user_s_business() -> None:
    it = Scripted()
    it.join(0)
    gaps = partition(0, 1)
    gaps.acquired_records = [acquired(0, 5)]
    it.poll(gaps)
    it.handle(events.Commit("c", 10.0))
    assert it.result("c") == {}
    assert ranges(it.acknowledged(E.INVALID_RECORD_STATE)) == [(2, 5, GAP)]
    assert it.outcomes == []


def test_acknowledgements_of_a_partition_that_is_no_longer_fetched_are_sent_alone() -> None:
    it = with_records(1)
    it.view.lead(0, 2)
    it.metadata_changed()
    acknowledge(it, 0)
    it.handle(Poll())
    assert ranges(it.acknowledged()) == [(0, 0, A.ACCEPT)]
    assert it.outcomes == [((0, 0, 1), 0)]


# Renewing.


def test_a_renewed_record_is_returned_by_the_next_poll() -> None:
    it = with_records(3)
    acknowledge(it, 0)
    acknowledge(it, 1, A.RENEW)
    acknowledge(it, 2, A.RENEW)
    it.handle(Poll())
    plain = it.acknowledged()
    assert (ranges(plain), plain.is_renew_ack) == ([(0, 0, A.ACCEPT)], False)
    request, renewing = it.pop(ACKNOWLEDGE, ShareAcknowledgeRequest)
    assert (ranges(renewing), renewing.is_renew_ack) == ([(1, 2, A.RENEW)], True)
    assert request.body.lowest == 2
    topic = ShareAcknowledgeTopicResponse(
        topic_id=ORDERS_ID, partitions=[PartitionData(partition_index=0)]
    )
    it.respond(
        request, ShareAcknowledgeResponse(responses=[topic], acquisition_lock_timeout_ms=45_000)
    )
    assert [each.offset for each in it.delivered] == [0, 1, 2, 1, 2]
    assert it.machine.acquisition_lock_timeout_s == 45.0
    acknowledge(it, 1)
    acknowledge(it, 2, A.RELEASE)
    assert ranges(it.poll(partition())) == [(1, 1, A.ACCEPT), (2, 2, A.RELEASE)]


def test_a_record_whose_renewal_failed_is_lost() -> None:
    it = with_records(1)
    acknowledge(it, 0, A.RENEW)
    it.handle(events.Commit("c", 10.0))
    it.acknowledged(E.INVALID_RECORD_STATE)
    assert it.result("c") == {"orders-0": E.INVALID_RECORD_STATE}
    with pytest.raises(LocalProtocolError):
        acknowledge(it, 0)
    it.poll()
    assert len(it.delivered) == 1
    assert not it.machine._records._records


def test_a_broker_that_cannot_renew_keeps_the_session() -> None:
    it = with_records(2)
    acknowledge(it, 0, A.RENEW)
    acknowledge(it, 1)
    it.handle(events.Commit("c", 10.0))
    it.acknowledged()
    it.fail(it.pop(ACKNOWLEDGE, ShareAcknowledgeRequest)[0], Reason.NO_VERSION)
    assert it.result("c") == {"orders-0": E.UNSUPPORTED_VERSION}
    assert it.poll(partition()).share_session_epoch == 2


# Leaving.


def test_closing_sends_what_is_acknowledged_and_nothing_else() -> None:
    it = with_records(3)
    acknowledge(it, 0)
    acknowledge(it, 1, A.RENEW)
    it.handle(Close(30.0))
    message = it.acknowledged()
    assert message.share_session_epoch == -1
    assert ranges(message) == [(0, 0, A.ACCEPT)]
    assert sorted(it.outcomes) == [((0, 0, 1), 0), ((1, 1, 4), E.SHARE_SESSION_NOT_FOUND)]


def test_an_acknowledgement_that_fails_at_close_is_not_sent_again() -> None:
    it = with_records(1)
    acknowledge(it, 0)
    it.handle(Close(30.0))
    it.acknowledged(E.COORDINATOR_NOT_AVAILABLE)
    assert it.outcomes == [((0, 0, 1), E.COORDINATOR_NOT_AVAILABLE)]
    assert not it.sent(ACKNOWLEDGE)


def test_what_comes_while_the_sessions_are_closed_is_not_delivered_later() -> None:
    it = Scripted()
    it.join(0)
    it.poll()
    it.handle(Unsubscribe("done"))
    it.fetched(partition(0, 3))
    it.acknowledged()
    request, _ = it.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
    it.respond(request, heartbeat(-1, assignment=None))
    it.join(0)
    it.handle(Poll())
    assert not it.delivered


def test_closing_in_implicit_mode_accepts_nothing_more() -> None:
    it = with_records(3, AcknowledgementMode.IMPLICIT)
    it.handle(Close(30.0))
    assert ranges(it.acknowledged()) == []


def test_closing_waits_for_the_request_in_flight() -> None:
    it = Scripted()
    it.join(0)
    it.poll()
    it.handle(Close(30.0))
    assert not it.sent(ACKNOWLEDGE)
    it.fetched(partition(0, 3))
    message = it.acknowledged()
    assert (message.share_session_epoch, ranges(message)) == (-1, [])
    assert not it.delivered


# Deliveries of the same record.


def test_a_record_that_is_acquired_again_replaces_the_earlier_delivery() -> None:
    it = with_records(2)
    it.handle(events.ReturnRecords(it.delivered))
    again = decode(SharePartition(*FIRST, ORDERS_ID), batch(1, 1), [acquired(1, 1, count=2)])
    it.machine._records.add(1, SharePartition(*FIRST, ORDERS_ID), again.items, None)
    it.handle(Poll())
    delivered = [(each.offset, each.delivery_count) for each in it.delivered]
    assert delivered == [(0, 1), (1, 1), (0, 1), (1, 2)]
