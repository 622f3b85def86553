"""Leadership: who decides, when responses leave, and what is forgotten."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest

from kafkawire import REGISTRY, ErrorCode
from kafkawire.controller import (
    Append,
    BecameLeader,
    Committed,
    ControllerConfig,
    Published,
    QuorumController,
    Renounce,
    RequestReceived,
    Resigned,
    Respond,
    SnapshotLoaded,
    partition_change,
)
from kafkawire.controller.operations.refusals import REFUSALS, refusal
from kafkawire.controller.operations.served import READS, WRITES
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.begin_transaction_record import BeginTransactionRecord
from kafkawire.messages.broker_registration_response import BrokerRegistrationResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest
from kafkawire.messages.feature_level_record import FeatureLevelRecord
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.messages.topic_record import TopicRecord

from .harness import CLUSTER, Harness, codes_of, registration
from .scale import filled

A = b"a" * 16


def controller() -> QuorumController:
    return QuorumController(ControllerConfig(CLUSTER), Random(1), lambda: A)


def led(next_offset: int = 1) -> tuple[QuorumController, int]:
    """A controller that committed its bootstrap, and its next offset."""
    made = controller()
    [append] = made.handle(BecameLeader(1, next_offset), 0.0)
    assert isinstance(append, Append)
    made.handle(Committed(append.base_offset, [each.message for each in append.records]), 0.0)
    return made, append.base_offset + len(append.records)


def test_every_request_has_a_refusal() -> None:
    assert set(REFUSALS) == set(WRITES) | set(READS)


@pytest.mark.parametrize("type", REFUSALS, ids=lambda type: type.__name__)
def test_a_standby_refuses_every_request(type: type) -> None:
    [effect] = controller().handle(RequestReceived(1, type(), 0), 0.0)
    assert isinstance(effect, Respond)
    expected = type.__name__.removesuffix("Request") + "Response"
    assert effect.response.__class__.__name__ == expected
    version = REGISTRY.get(expected).last
    assert effect.response.encode(version)


def test_a_request_to_brokers_is_the_callers_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="ProduceRequest is not a request that"):
        controller().handle(RequestReceived(1, ProduceRequest(), 12), 0.0)


def test_a_refusal_has_the_error_at_every_item() -> None:
    topics = [CreatableTopic(name="a"), CreatableTopic(name="b")]
    response = refusal(CreateTopicsRequest(topics=topics), ErrorCode.NOT_CONTROLLER)
    assert codes_of(response) == "CreateTopicsResponse [41, 41]"
    deleted = refusal(DeleteTopicsRequest(topic_names=["a"]), ErrorCode.NOT_CONTROLLER)
    assert codes_of(deleted) == "DeleteTopicsResponse [41]"


def test_a_response_waits_for_its_records() -> None:
    made, offset = led()
    [append] = made.handle(RequestReceived(7, registration(1), 4), 0.0)
    assert isinstance(append, Append)
    assert append.base_offset == offset
    assert 1 not in made.image.brokers
    assert 1 in made.newest.brokers
    again = made.handle(RequestReceived(8, DeleteTopicsRequest(), 5), 0.0)
    assert again == []  # it rests on what is not committed
    published, first, second = made.handle(
        Committed(offset, [each.message for each in append.records]), 0.0
    )
    assert isinstance(published, Published)
    assert list(published.delta.brokers) == [1]
    assert isinstance(first, Respond)
    assert first.request_id == 7
    assert first.response == BrokerRegistrationResponse(broker_epoch=offset)
    assert isinstance(second, Respond)
    assert second.request_id == 8
    assert made.image == made.newest


def test_who_resigns_forgets_what_is_not_committed() -> None:
    made, offset = led()
    made.handle(RequestReceived(7, registration(1), 4), 0.0)
    assert made.handle(Resigned(0), 0.0) == []  # of another epoch
    [respond] = made.handle(Resigned(1), 0.0)
    assert isinstance(respond, Respond)
    assert codes_of(respond.response) == "BrokerRegistrationResponse [41]"
    assert not made.newest.brokers
    assert made.next_deadline() is None
    made.handle(BecameLeader(3, offset + 1), 0.0)
    assert not made.newest.brokers
    assert made.handle(BecameLeader(2, offset + 9), 0.0) == []  # an epoch that is over


def test_a_new_leader_aborts_an_open_transaction() -> None:
    made = controller()
    made.handle(Committed(1, [BeginTransactionRecord(), TopicRecord(name="a", topic_id=A)]), 0.0)
    [append] = made.handle(BecameLeader(2, 3), 0.0)
    assert isinstance(append, Append)
    names = [type(each.message).__name__ for each in append.records]
    assert names[:2] == ["AbortTransactionRecord", "BeginTransactionRecord"]
    assert names[-1] == "EndTransactionRecord"
    made.handle(Committed(3, [each.message for each in append.records]), 0.0)
    assert made.image == made.newest
    assert not made.image.topics


def test_a_cluster_that_has_features_is_not_bootstrapped() -> None:
    made = controller()
    record = FeatureLevelRecord(name="metadata.version", feature_level=20)
    made.handle(Committed(0, [record]), 0.0)
    assert made.handle(BecameLeader(2, 3), 0.0) == []
    assert made.newest.features == {"metadata.version": 20}


def test_who_sees_records_of_others_renounces() -> None:
    made, offset = led()
    effects = made.handle(Committed(offset, [TopicRecord(name="a", topic_id=A)]), 0.0)
    assert isinstance(effects[1], Renounce)
    assert not made.is_active
    assert made.handle(BecameLeader(2, offset + 1), 0.0) == []
    assert made.is_active
    _, renounce = made.handle(SnapshotLoaded(50, [TopicRecord(name="b", topic_id=A)]), 0.0)
    assert isinstance(renounce, Renounce)
    assert list(made.image.topic_ids) == ["b"]


def test_a_new_leader_grants_new_sessions() -> None:
    harness = Harness()
    harness.start(1)
    harness.take(harness.controller.handle(BecameLeader(2, len(harness.log)), 100.0))
    harness.now = 108.0
    harness.advance(0.0)
    assert not harness.controller.image.brokers[1].fenced
    assert harness.controller.next_deadline() == 109.0
    harness.advance(1.0)
    assert harness.controller.image.brokers[1].fenced


def test_fencing_costs_what_the_broker_hosts() -> None:
    """Partitions that are built, not time, are counted: the rest of the cluster costs nothing."""
    counts = []
    for partitions, brokers in ((600, 6), (1200, 12), (1200, 6)):
        harness = filled(partitions, brokers)
        hosted = len(harness.controller.image.indexes.isr.of(1))
        harness.advance(8.0)
        for broker_id in range(2, brokers + 1):
            harness.heartbeat(broker_id)
        with patch.object(
            partition_change.PartitionChange, "build", autospec=True,
            side_effect=partition_change.PartitionChange.build,
        ) as built:  # fmt: skip
            harness.advance(1.5)
        assert harness.controller.image.brokers[1].fenced
        # brokers of other tests may be running in this process
        count = sum(
            each.args[0].state is harness.controller._state for each in built.call_args_list
        )
        assert count == hosted
        counts.append(count)
    assert abs(counts[0] - counts[1]) < 20
    assert abs(counts[2] - 2 * counts[0]) < 40
