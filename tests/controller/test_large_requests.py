"""Requests that create or delete many topics or partitions: in slices, whole, and bounded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import pytest

from kafkawire import ErrorCode
from kafkawire.controller import (
    BecameLeader,
    Committed,
    ControllerConfig,
    LogEndMoved,
    Renounce,
    Resigned,
)
from kafkawire.controller import state as states
from kafkawire.messages import create_topics_request as creating
from kafkawire.messages.abort_transaction_record import AbortTransactionRecord
from kafkawire.messages.begin_transaction_record import BeginTransactionRecord
from kafkawire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.end_transaction_record import EndTransactionRecord
from kafkawire.messages.no_op_record import NoOpRecord
from kafkawire.messages.remove_topic_record import RemoveTopicRecord
from kafkawire.metadata import loader, replay
from kafkawire.metadata.indexes import PartitionIndexes
from kafkawire.metadata.versions import TRANSACTIONS

from .harness import CLUSTER, Harness, codes_of

E = ErrorCode
SLICE: Final = 10
OLD: Final = {"metadata.version": TRANSACTIONS - 1}
TOO_MANY_RECORDS: Final = "Unable to perform excessively large batch operation."


def cluster(**config: Any) -> Harness:
    """Three brokers, and a controller with small slices."""
    harness = Harness(ControllerConfig(CLUSTER, **{"slice": SLICE, **config}))
    harness.start(1, 2, 3)
    return harness


def topic(name: str, partitions: int) -> creating.CreatableTopic:
    return creating.CreatableTopic(name=name, num_partitions=partitions, replication_factor=2)


def create(*topics: creating.CreatableTopic, validate_only: bool = False) -> Any:
    return creating.CreateTopicsRequest(topics=list(topics), validate_only=validate_only)


def grow(*counts: tuple[str, int]) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in counts
        ]
    )


def sizes(harness: Harness) -> dict[str, int]:
    """Return the number of partitions of each topic that is committed."""
    return {each.name: len(each.partitions) for each in harness.controller.image.topics.values()}


@contextmanager
def replays() -> Iterator[list[int]]:
    """Count the records that are applied to an image, in the last item."""
    counts = [0]

    def counted(*args: Any) -> None:
        counts[-1] += 1
        replay(*args)

    with patch.object(states, "replay", counted), patch.object(loader, "replay", counted):
        yield counts


@pytest.mark.parametrize("count", [3 * SLICE, 30 * SLICE])
def test_a_large_topic_is_created_in_slices_and_whole(count: int) -> None:
    harness = cluster()
    before = len(harness.log)
    with replays() as counts:
        number = harness.send(create(topic("a", count)), 7)
        while number not in harness.responses:
            assert not sizes(harness)
            counts.append(0)
            harness.advance(0.0)
    assert sizes(harness) == {"a": count}
    assert max(counts) <= 2 * SLICE, "each record is applied by the decision and by the commit"
    assert codes_of(harness.responses[number]).startswith("CreateTopicsResponse [0")
    written = [type(each.message) for each in harness.log[before:]]
    assert (written[0], written[-1]) == (BeginTransactionRecord, EndTransactionRecord)
    assert harness.controller.image == harness.controller.newest
    assert harness.controller.next_deadline() != harness.now, "nothing is left"


@pytest.mark.parametrize("bootstrap", [{}, OLD], ids=["transactions", "without"])
@pytest.mark.parametrize("slices", range(9))
def test_who_resigns_leaves_all_or_nothing(slices: int, bootstrap: dict[str, int]) -> None:
    """Two topics of 37 records, of which the same controller sees nothing in its next epoch."""
    harness = cluster(**({"bootstrap": bootstrap} if bootstrap else {}))
    number = harness.send(create(topic("a", 15), topic("b", 20)), 7)
    for _ in range(slices):
        harness.advance(0.0)
    done = number in harness.responses
    assert done == (slices >= 7)
    harness.take(harness.controller.handle(Resigned(1), harness.now))
    expected = 0 if done else E.NOT_CONTROLLER
    response = harness.responses[number]
    assert isinstance(response, CreateTopicsResponse)
    assert {each.error_code for each in response.topics} == {expected}
    assert harness.controller.advance(harness.now) == []
    harness.take(harness.controller.handle(BecameLeader(2, len(harness.log)), harness.now))
    assert sizes(harness) == ({"a": 15, "b": 20} if done else {})
    begun, ended, aborted = (
        sum(isinstance(each.message, type) for each in harness.log)
        for type in (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
    )
    assert begun == ended + aborted
    again = harness.exchange(create(topic("a", 15), topic("b", 20)), CreateTopicsResponse, 7)
    assert {each.error_code for each in again.topics} == {E.TOPIC_ALREADY_EXISTS if done else 0}


def test_what_a_large_request_is_decided_on_does_not_change() -> None:
    """Others wait, expired sessions too; a heartbeat that waits counts."""
    harness = cluster()
    number = harness.send(create(topic("a", 5 * SLICE)), 7)
    later = harness.send(create(topic("b", 1)), 7)
    harness.now += 8.0
    image = harness.controller.newest
    beats = [
        harness.send(
            BrokerHeartbeatRequest(
                broker_id=each,
                broker_epoch=image.brokers[each].epoch,
                current_metadata_offset=len(harness.log),
            )
        )
        for each in (1, 2)
    ]
    harness.now += 8.0
    while number not in harness.responses:
        assert not {later, *beats} & harness.responses.keys(), "one after the other"
        assert all(map(image.is_active, (1, 2, 3)))
        harness.advance(0.0)
    while later not in harness.responses:
        harness.advance(0.0)
    assert harness.responses.keys() >= {*beats}
    assert sizes(harness) == {"a": 5 * SLICE, "b": 1}
    assert [image.is_active(each) for each in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize("bootstrap", [{}, OLD], ids=["transactions", "without"])
def test_a_large_request_goes_on_after_records_of_the_quorum(bootstrap: dict[str, int]) -> None:
    harness = cluster(**({"bootstrap": bootstrap} if bootstrap else {}))
    number = harness.send(create(topic("a", 5 * SLICE)), 7)
    while number not in harness.responses:
        harness.log.append(harness.log[-1])  # in place of a record of the quorum
        harness.take(harness.controller.handle(LogEndMoved(1, len(harness.log)), harness.now))
        harness.advance(0.0)
    assert sizes(harness) == {"a": 5 * SLICE}


def test_records_of_others_are_seen_within_a_large_request() -> None:
    harness = cluster(bootstrap=OLD)
    harness.send(create(topic("a", 5 * SLICE)), 7)
    for _ in range(7):
        harness.advance(0.0)
    assert harness.controller.newest.topics
    effects = harness.controller.handle(Committed(len(harness.log), [NoOpRecord()]), 0.0)
    assert isinstance(effects[1], Renounce)


def test_partitions_are_added_in_slices_and_whole() -> None:
    harness = cluster()
    harness.exchange(create(topic("a", 1), topic("b", 2)), CreateTopicsResponse, 7)
    with replays() as counts:
        number = harness.send(grow(("a", 50), ("b", 60), ("c", 9)), 3)
        while number not in harness.responses:
            assert sizes(harness) == {"a": 1, "b": 2}
            counts.append(0)
            harness.advance(0.0)
    assert max(counts) <= 2 * SLICE
    assert sizes(harness) == {"a": 50, "b": 60}
    response = harness.responses[number]
    assert isinstance(response, CreatePartitionsResponse)
    codes = [each.error_code for each in response.results]
    assert codes == [0, 0, E.UNKNOWN_TOPIC_OR_PARTITION]


# -- DeleteTopics


def remove(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=each) for each in names])


@contextmanager
def removals() -> Iterator[list[int]]:
    """Count the partitions that are removed from indexes, in the last item."""
    counts = [0]
    original = PartitionIndexes.remove

    def counted(self: PartitionIndexes, *args: Any) -> None:
        counts[-1] += 1
        original(self, *args)

    with patch.object(PartitionIndexes, "remove", counted):
        yield counts


@pytest.mark.parametrize("partitions", [0, 2 * SLICE])
def test_many_topics_are_deleted_in_slices_and_whole(partitions: int) -> None:
    """Both in the number of topics and in that of their partitions."""
    harness = cluster()
    names = [f"t{at}" for at in range(9 * SLICE)]
    for name in names:
        harness.exchange(create(topic(name, 1 + partitions)), CreateTopicsResponse, 7)
    before = len(harness.log)
    with removals() as removed, replays() as replayed:
        number = harness.send(remove(*names), 6)
        while number not in harness.responses:
            assert len(sizes(harness)) == len(names)
            removed.append(0)
            replayed.append(0)
            harness.advance(0.0)
    assert not sizes(harness)
    assert max(replayed) <= 2 * SLICE
    assert max(removed) <= 2 * max(SLICE, 1 + partitions), "by the decision and by the commit"
    response = harness.responses[number]
    assert isinstance(response, DeleteTopicsResponse)
    assert [(each.name, each.error_code) for each in response.responses] == [
        (each, 0) for each in names
    ]
    written = [type(each.message) for each in harness.log[before:]]
    assert (written[0], written[-1]) == (BeginTransactionRecord, EndTransactionRecord)
    assert harness.controller.image == harness.controller.newest
    assert harness.controller.image.indexes.count == 0


def test_one_topic_is_deleted_by_one_record() -> None:
    """As in Kafka: its partitions go by implication."""
    harness = cluster()
    harness.exchange(create(topic("a", 5 * SLICE)), CreateTopicsResponse, 7)
    before = len(harness.log)
    response = harness.exchange(remove("a"), DeleteTopicsResponse, 6)
    assert [each.error_code for each in response.responses] == [0]
    assert [type(each.message) for each in harness.log[before:]] == [RemoveTopicRecord]
    assert not sizes(harness)


@pytest.mark.parametrize("slices", range(5))
def test_who_resigns_deletes_all_or_nothing(slices: int) -> None:
    harness = cluster()
    harness.exchange(create(topic("a", 15), topic("b", 20)), CreateTopicsResponse, 7)
    number = harness.send(remove("a", "b"), 6)
    for _ in range(slices):
        harness.advance(0.0)
    done = number in harness.responses
    assert done == (slices >= 3)
    harness.take(harness.controller.handle(Resigned(1), harness.now))
    response = harness.responses[number]
    assert isinstance(response, DeleteTopicsResponse)
    expected = 0 if done else E.NOT_CONTROLLER
    assert {each.error_code for each in response.responses} == {expected}
    harness.take(harness.controller.handle(BecameLeader(2, len(harness.log)), harness.now))
    assert sizes(harness) == ({} if done else {"a": 15, "b": 20})


def test_a_topic_is_deleted_once_by_a_request() -> None:
    harness = cluster()
    harness.exchange(create(topic("a", 1)), CreateTopicsResponse, 7)
    topic_id = next(iter(harness.controller.image.topics))
    body = remove("a", "a", "b")
    body.topics.append(DeleteTopicState(name=None, topic_id=topic_id))
    response = harness.exchange(body, DeleteTopicsResponse, 6)
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    codes = [each.error_code for each in response.responses]
    assert codes == [0, unknown, unknown, E.UNKNOWN_TOPIC_ID]
    assert not sizes(harness)


def test_one_request_deletes_so_many_topics() -> None:
    """As in Kafka, those beyond it have an error of their own."""
    harness = cluster(max_records_per_request=2)
    for name in "abc":
        harness.exchange(create(topic(name, 1)), CreateTopicsResponse, 7)
    response = harness.exchange(remove("a", "x", "b", "c"), DeleteTopicsResponse, 6)
    codes = [each.error_code for each in response.responses]
    assert codes == [0, E.UNKNOWN_TOPIC_OR_PARTITION, 0, E.UNKNOWN_SERVER_ERROR]
    assert sizes(harness) == {"c": 1}


# -- bounds


def refused(response: Any) -> tuple[set[int], set[str | None]]:
    """Return the errors of a response, and their messages."""
    items = response.topics if isinstance(response, CreateTopicsResponse) else response.results
    return {each.error_code for each in items}, {each.error_message for each in items}


def test_one_request_creates_so_many_partitions() -> None:
    harness = cluster(max_partitions_per_request=100)
    response = harness.exchange(create(topic("a", 50), topic("b", 51)), CreateTopicsResponse, 7)
    message = "Excessively large number of partitions per request."
    assert refused(response) == ({E.POLICY_VIOLATION}, {message})
    twice = harness.exchange(create(topic("a", 9), topic("a", 9)), CreateTopicsResponse, 7)
    assert [each.error_code for each in twice.topics] == [E.INVALID_REQUEST]
    assert not sizes(harness)


@pytest.mark.parametrize("validate_only", [False, True])
def test_one_request_writes_so_many_records(validate_only: bool) -> None:
    """As in Kafka, a topic of 10,000 partitions is one record too many."""
    harness = cluster(max_records_per_request=100)
    for topics in ([topic("a", 100)], [topic("a", 50), topic("b", 49)]):
        body = create(*topics, validate_only=validate_only)
        response = harness.exchange(body, CreateTopicsResponse, 7)
        assert refused(response) == ({E.POLICY_VIOLATION}, {TOO_MANY_RECORDS})
    assert not sizes(harness)
    body = create(topic("a", 50), topic("b", 48), validate_only=validate_only)
    assert refused(harness.exchange(body, CreateTopicsResponse, 7))[0] == {0}


def test_one_request_adds_so_many_partitions() -> None:
    harness = cluster(max_partitions_per_request=100)
    harness.exchange(create(topic("a", 1), topic("b", 1)), CreateTopicsResponse, 7)
    response = harness.exchange(grow(("a", 52), ("b", 51)), CreatePartitionsResponse, 3)
    message = "Excessively large number of additional partitions per request."
    assert refused(response) == ({E.POLICY_VIOLATION}, {message})
    response = harness.exchange(grow(("a", 9), ("a", 9)), CreatePartitionsResponse, 3)
    assert [each.error_code for each in response.results] == [0, E.INVALID_REQUEST]
    response = harness.exchange(grow(("a", 59), ("b", 51)), CreatePartitionsResponse, 3)
    assert refused(response)[0] == {0}
    assert sizes(harness) == {"a": 59, "b": 51}


def test_a_cluster_has_so_many_partitions() -> None:
    harness = cluster(max_partitions=100)
    harness.exchange(create(topic("a", 60)), CreateTopicsResponse, 7)
    response = harness.exchange(create(topic("b", 41)), CreateTopicsResponse, 7)
    assert refused(response)[0] == {E.POLICY_VIOLATION}
    assert refused(harness.exchange(grow(("a", 101)), CreatePartitionsResponse, 3))[0] == {
        E.POLICY_VIOLATION
    }
    assert sizes(harness) == {"a": 60}
