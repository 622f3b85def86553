"""The markers of transactions: sent to leaders until each partition has them."""

from __future__ import annotations

import pytest

from kafkawire.messages.write_txn_markers_request import WriteTxnMarkersRequest
from kafkawire.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kafkawire.protocol import ErrorCode as E
from kafkawire.transactions import EPOCH_BUMPED, TopicPartition, TransactionMarkers, WriteMarkers
from kafkawire.transactions.markers import BACKOFF, NO_LEADER

A, B, C = ("t", 0), ("t", 1), ("u", 0)


def marker(*partitions: TopicPartition, name: str = "x", index: int = 0) -> WriteMarkers:
    number = ord(name)
    return WriteMarkers(index, name, number, 3, True, 5, EPOCH_BUMPED, frozenset(partitions))


class Leaders:
    """The leaders of partitions, and what is sent to them."""

    def __init__(self) -> None:
        self.markers = TransactionMarkers()
        self.leader: dict[TopicPartition, int | None] = {A: 1, B: 1, C: 2}
        self.now = 0.0

    def due(self) -> dict[int, list[TopicPartition]]:
        """Return the partitions of the requests that are due, by broker."""
        requests = self.markers.requests(self.leader.__getitem__, self.now)
        self.sent = {each.broker_id: each.body for each in requests}
        return {key: sorted(partitions(body)) for key, body in self.sent.items()}

    def respond(self, broker_id: int, errors: dict[TopicPartition, E] | None = None) -> None:
        """Let a broker respond: no error where there is none given."""
        response = response_to(self.sent[broker_id], errors or {})
        self.markers.response(broker_id, response, self.now)


def partitions(body: WriteTxnMarkersRequest) -> list[TopicPartition]:
    return [
        (topic.name, index)
        for each in body.markers
        for topic in each.topics
        for index in topic.partition_indexes
    ]


def response_to(
    body: WriteTxnMarkersRequest, errors: dict[TopicPartition, E]
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=each.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=errors.get((topic.name, index), E.NONE),
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in body.markers
        ]
    )


@pytest.fixture
def leaders() -> Leaders:
    return Leaders()


def test_each_leader_gets_its_partitions(leaders: Leaders) -> None:
    made = marker(A, B, C)
    leaders.markers.add(made)
    assert leaders.due() == {1: [A, B], 2: [C]}
    [sent] = leaders.sent[2].markers
    assert (sent.producer_id, sent.producer_epoch, sent.coordinator_epoch) == (ord("x"), 3, 5)
    assert (sent.transaction_result, sent.transaction_version) == (True, EPOCH_BUMPED)
    leaders.respond(1)
    assert leaders.markers.take_done() == []
    leaders.respond(2)
    assert leaders.markers.take_done() == [made]
    assert leaders.markers.take_done() == []


@pytest.mark.parametrize(
    "error",
    [
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
        None,
    ],
)
def test_a_marker_is_sent_again_to_the_leader_of_then(leaders: Leaders, error: E | None) -> None:
    made = marker(A, B)
    leaders.markers.add(made)
    leaders.due()
    if error is None:
        leaders.markers.response(1, None, leaders.now)
    else:
        leaders.respond(1, {A: error})
    assert leaders.due() == {}, "not before the backoff"
    assert leaders.markers.next_deadline() == BACKOFF
    leaders.leader[A] = 2
    leaders.now = BACKOFF
    assert leaders.due() == ({1: [B], 2: [A]} if error is None else {2: [A]})
    for each in leaders.sent:
        leaders.respond(each)
    assert leaders.markers.take_done() == [made]


def test_a_marker_waits_for_a_leader(leaders: Leaders) -> None:
    leaders.leader[A] = NO_LEADER
    leaders.markers.add(marker(A))
    for _ in range(3):
        assert leaders.due() == {}
        leaders.now += BACKOFF
    leaders.leader[A] = 2
    assert leaders.due() == {2: [A]}


def test_a_deleted_partition_needs_no_marker(leaders: Leaders) -> None:
    made = marker(A, C)
    leaders.markers.add(made)
    leaders.leader[C] = None
    assert leaders.due() == {1: [A]}
    leaders.respond(1)
    assert leaders.markers.take_done() == [made]


def test_a_partition_with_a_later_epoch_needs_no_marker(leaders: Leaders) -> None:
    made = marker(A)
    leaders.markers.add(made)
    leaders.due()
    leaders.respond(1, {A: E.INVALID_PRODUCER_EPOCH})
    assert leaders.markers.take_done() == [made]


def test_a_fenced_coordinator_does_not_go_on(leaders: Leaders) -> None:
    leaders.markers.add(marker(A, B))
    leaders.due()
    leaders.respond(1, {A: E.TRANSACTION_COORDINATOR_FENCED})
    leaders.now = 1.0
    assert (leaders.due(), leaders.markers.take_done(), len(leaders.markers)) == ({}, [], 0)


def test_an_unloaded_coordinator_has_no_markers(leaders: Leaders) -> None:
    kept = marker(A, name="y", index=1)
    leaders.markers.add(marker(A))
    leaders.markers.add(kept)
    leaders.markers.drop(0)
    assert leaders.due() == {1: [A]}
    leaders.respond(1)
    assert leaders.markers.take_done() == [kept]


def test_a_broker_has_one_request_in_flight_with_all_that_is_due(leaders: Leaders) -> None:
    names = "abcd"
    leaders.markers.add(marker(A, name="x"))
    assert leaders.due() == {1: [A]}
    first = leaders.sent[1]
    for name in names:
        leaders.markers.add(marker(A, B, name=name))
    assert leaders.due() == {}
    leaders.markers.response(1, response_to(first, {}), leaders.now)
    assert leaders.due() == {1: [A, A, A, A, B, B, B, B]}
    assert len(leaders.sent[1].markers) == len(names)
    leaders.respond(1)
    assert len(leaders.markers.take_done()) == 1 + len(names)


def test_a_transaction_without_partitions_needs_no_markers(leaders: Leaders) -> None:
    made = marker()
    leaders.markers.add(made)
    assert leaders.markers.take_done() == [made]
