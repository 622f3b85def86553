"""Transactions of a node's clients, in virtual time."""

from __future__ import annotations

import pytest

from kafkawire.broker import Disconnected
from kafkawire.broker.transactions.verification import Then
from kafkawire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kafkawire.messages.describe_producers_response import DescribeProducersResponse
from kafkawire.messages.list_transactions_request import ListTransactionsRequest
from kafkawire.messages.list_transactions_response import ListTransactionsResponse
from kafkawire.messages.produce_request import (
    ProduceRequest,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.messages.transaction_log_value import TransactionLogValue
from kafkawire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafkawire.messages.write_txn_markers_response import WriteTxnMarkersResponse
from kafkawire.protocol import ErrorCode as E
from kafkawire.protocol.log_records import decode_log_record
from kafkawire.protocol.log_types import InternalLog
from kafkawire.records import RecordBatches

from ..broker.consumer import coordinator
from .front_harness import EPOCH_MS, NodeHarness
from .transactional import (
    SETTINGS,
    TIMEOUT_MS,
    commit,
    committed_offset,
    described,
    fetched,
    find,
    harness_with,
    initialised,
    listed,
    started,
    visible,
)


@pytest.fixture
def harness() -> NodeHarness:
    harness = NodeHarness(SETTINGS, topics={"t": 2})
    coordinator(harness.client())
    harness.advance(1.0)
    find(harness)
    harness.advance(1.0)
    return harness


def test_a_transaction_is_visible_when_it_commits(harness: NodeHarness) -> None:
    producer = started(harness)
    assert producer.begin(0, 1) == E.NONE
    assert producer.send(b"a") == E.NONE
    assert producer.send(b"b", 1) == E.NONE
    assert (visible(harness), fetched(harness).last_stable_offset) == ([], 0)
    assert producer.end(True) == E.NONE
    harness.advance(0.1)
    assert (visible(harness), visible(harness, 1)) == ([b"a"], [b"b"])
    assert fetched(harness).last_stable_offset == 2
    assert producer.end(True) == E.NONE, "a repeated EndTxn has its result"
    assert producer.end(False) == E.INVALID_TXN_STATE


def test_an_aborted_transaction_is_left_out(harness: NodeHarness) -> None:
    producer = started(harness)
    for value, committed in ((b"a", False), (b"b", True)):
        assert producer.begin(0) == E.NONE
        assert producer.send(value, sequence=0 if value == b"a" else 1) == E.NONE
        assert producer.end(committed) == E.NONE
        harness.advance(0.1)
    assert visible(harness) == [b"b"]


def test_a_new_producer_fences_the_one_before(harness: NodeHarness) -> None:
    old = started(harness)
    assert old.begin(0) == E.NONE
    assert old.send(b"lost") == E.NONE
    new = started(harness)
    assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 2)
    assert old.send(b"zombie", sequence=1) == E.INVALID_PRODUCER_EPOCH
    assert old.begin(1) == E.PRODUCER_FENCED
    assert old.end(True) == E.PRODUCER_FENCED
    assert old.end(True, version=1) == E.INVALID_PRODUCER_EPOCH
    assert new.begin(0) == E.NONE
    assert new.send(b"kept") == E.NONE
    assert new.end(True) == E.NONE
    harness.advance(0.1)
    assert visible(harness) == [b"kept"]


def test_a_partition_that_has_a_later_epoch_refuses_an_earlier_one_itself(
    harness: NodeHarness,
) -> None:
    old = started(harness)
    assert old.begin(0) == E.NONE
    assert old.send(b"a") == E.NONE
    initialised(harness)
    harness.advance(0.1)
    for partition, error in ((0, E.INVALID_PRODUCER_EPOCH), (1, E.INVALID_PRODUCER_ID_MAPPING)):
        request = old.record(b"b", partition, sequence=1)
        request.transactional_id = "unknown"
        response = old.client.exchange(request, 9, ProduceResponse)
        assert response.responses[0].partition_responses[0].error_code == error


def test_a_transaction_that_takes_too_long_is_aborted(harness: NodeHarness) -> None:
    producer = started(harness)
    assert producer.begin(0) == E.NONE
    assert producer.send(b"late") == E.NONE
    harness.advance(TIMEOUT_MS / 1000 + 11.0)
    assert producer.end(True) == E.PRODUCER_FENCED
    assert visible(harness) == []
    data = fetched(harness)
    assert data.last_stable_offset == data.high_watermark == 2


@pytest.mark.parametrize(("version", "error"), [(9, E.INVALID_TXN_STATE), (12, E.NONE)])
def test_a_leader_verifies_what_it_did_not_know_of_or_adds_it(
    harness: NodeHarness, version: int, error: E
) -> None:
    producer = started(harness)
    assert producer.send(b"a", version=version) == error
    assert producer._replace(epoch=7).send(b"a", 1, version=version) == E.INVALID_PRODUCER_EPOCH
    assert producer.end(True) == (E.INVALID_TXN_STATE if error else E.NONE)
    harness.advance(0.1)
    assert visible(harness) == ([] if error else [b"a"])


def test_verification_can_be_turned_off() -> None:
    harness = harness_with({"transaction.partition.verification.enable": "false"})
    assert started(harness).send(b"a") == E.NONE
    assert fetched(harness).last_stable_offset == 0


def test_epochs_of_transactions_version_2(harness: NodeHarness) -> None:
    producer = started(harness)
    for number in range(3):
        assert producer.send(b"%d" % number, version=12) == E.NONE
        ended = producer.ended(True)
        assert (ended.error_code, ended.producer_epoch) == (E.NONE, producer.epoch + 1)
        harness.advance(0.1)
        late = producer.send(b"zombie", sequence=1, version=12)
        assert late == E.INVALID_PRODUCER_EPOCH
        producer = producer._replace(epoch=ended.producer_epoch)
    assert visible(harness) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_a_transaction_are_pending_until_it_ends(
    harness: NodeHarness, commit: bool
) -> None:
    producer = started(harness)
    assert producer.commit_offset(5) == E.INVALID_TXN_STATE, "the group was not added"
    assert producer.add_group() == E.NONE
    assert producer.commit_offset(5) == E.NONE
    assert committed_offset(harness) == (E.UNSTABLE_OFFSET_COMMIT, -1)
    assert committed_offset(harness, stable=False) == (E.NONE, -1)
    assert producer.end(commit) == E.NONE
    harness.advance(0.1)
    assert committed_offset(harness) == (E.NONE, 5 if commit else -1)


def test_offsets_of_version_2_add_the_group(harness: NodeHarness) -> None:
    producer = started(harness)
    assert producer.commit_offset(5, version=5) == E.NONE
    assert producer.ended(True).error_code == E.NONE
    harness.advance(0.1)
    assert committed_offset(harness) == (E.NONE, 5)
    assert producer.commit_offset(6, version=5) == E.INVALID_PRODUCER_EPOCH


def test_topics_of_offsets_are_named_by_their_ids(harness: NodeHarness) -> None:
    topic = harness.topic("t")
    assert topic is not None
    producer = started(harness)
    assert producer.commit_offset(5, 6, topic_id=topic.topic_id) == E.NONE
    assert producer.commit_offset(5, 6, topic_id=bytes(range(16))) == E.UNKNOWN_TOPIC_ID
    unknown = producer.commit_offset(5, 6, 7, topic_id=topic.topic_id)
    assert unknown == E.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.ended(True).error_code == E.NONE
    harness.advance(0.1)
    assert committed_offset(harness) == (E.NONE, 5)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_goes_on_after_a_restart(harness: NodeHarness, commit: bool) -> None:
    producer = started(harness)
    assert producer.begin(0) == E.NONE
    assert producer.send(b"a") == E.NONE
    assert producer.add_group() == E.NONE
    assert producer.commit_offset(5) == E.NONE
    harness.restart()
    producer = producer._replace(client=harness.client())
    assert visible(harness) == []
    assert committed_offset(harness) == (E.UNSTABLE_OFFSET_COMMIT, -1)
    assert producer.send(b"b", sequence=1) == E.NONE
    assert producer.end(commit) == E.NONE
    harness.advance(0.2)
    harness.restart()
    assert visible(harness) == ([b"a", b"b"] if commit else [])
    assert committed_offset(harness) == (E.NONE, 5 if commit else -1)


def test_offsets_that_are_committed_later_stay(harness: NodeHarness) -> None:
    producer = started(harness)
    assert producer.add_group() == E.NONE
    assert producer.commit_offset(5) == E.NONE
    assert commit(harness, 9) == E.NONE
    assert producer.end(True) == E.NONE
    harness.advance(0.1)
    assert committed_offset(harness) == (E.NONE, 9)
    harness.restart()
    assert committed_offset(harness) == (E.NONE, 9)


def test_transactions_are_listed_and_described(harness: NodeHarness) -> None:
    started(harness)
    producer = started(harness)
    assert producer.epoch == 1
    assert producer.begin(1) == E.NONE
    assert producer.send(b"a", 1) == E.NONE
    [found] = described(harness, "x")
    assert (found.transaction_state, found.producer_id) == ("Ongoing", producer.producer_id)
    assert [(each.topic, each.partitions) for each in found.topics] == [("t", [1])]
    assert (found.producer_epoch, found.transaction_timeout_ms) == (producer.epoch, TIMEOUT_MS)
    wall_ms = EPOCH_MS + int(harness.now * 1000)
    assert wall_ms - 1000 < found.transaction_start_time_ms <= wall_ms
    [missing] = described(harness, "y")
    assert missing.error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    assert listed(harness) == ["x"]
    assert listed(harness, state_filters=["Ongoing"]) == ["x"]
    assert listed(harness, state_filters=["Empty"]) == []
    assert listed(harness, producer_id_filters=[producer.producer_id + 1]) == []
    harness.advance(1.0)
    assert listed(harness, duration_filter=500) == ["x"]
    assert listed(harness, duration_filter=5000) == []
    for pattern, expected in (("x", ["x"]), ("", ["x"]), (".*", ["x"]), ("y|xx", [])):
        assert listed(harness, transactional_id_pattern=pattern) == expected
    request = ListTransactionsRequest(transactional_id_pattern="(")
    response = harness.client().exchange(request, 2, ListTransactionsResponse)
    assert response.error_code == E.INVALID_REGULAR_EXPRESSION
    topic = TopicRequest(name="t", partition_indexes=[0, 1, 2])
    producers = harness.client().exchange(
        DescribeProducersRequest(topics=[topic]), 0, DescribeProducersResponse
    )
    first, second, third = producers.topics[0].partitions
    assert first.active_producers == []
    [entry] = second.active_producers
    assert (entry.producer_id, entry.current_txn_start_offset) == (producer.producer_id, 0)
    assert third.error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_states_that_do_not_exist_are_listed(harness: NodeHarness) -> None:
    request = ListTransactionsRequest(state_filters=["Ongoing", "Going"])
    response = harness.client().exchange(request, 1, ListTransactionsResponse)
    assert response.unknown_state_filters == ["Going"]


def test_markers_of_another_coordinator_are_written(harness: NodeHarness) -> None:
    producer = started(harness)
    assert producer.begin(0) == E.NONE
    assert producer.send(b"a") == E.NONE
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0, 7])
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=True,
        coordinator_epoch=9,
        topics=[topic],
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    response = harness.client().exchange(request, 1, WriteTxnMarkersResponse)
    errors = [each.error_code for each in response.markers[0].topics[0].partitions]
    assert errors == [E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert visible(harness) == [b"a"]
    marker.coordinator_epoch = 8
    response = harness.client().exchange(request, 1, WriteTxnMarkersResponse)
    error = response.markers[0].topics[0].partitions[0].error_code
    assert error == E.TRANSACTION_COORDINATOR_FENCED


def test_partitions_that_do_not_exist_are_not_added(harness: NodeHarness) -> None:
    producer = started(harness)
    assert producer.begin(0, 7) == E.OPERATION_NOT_ATTEMPTED
    assert producer.begin(7, 0) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.end(True) == E.INVALID_TXN_STATE


def test_the_log_of_transactions_is_that_of_kafka(harness: NodeHarness) -> None:
    producer = started(harness)
    assert producer.begin(0) == E.NONE
    assert producer.end(True) == E.NONE
    harness.advance(0.1)
    topic = harness.cluster.topics.get("__transaction_state")
    assert topic is not None
    assert topic.configs["cleanup.policy"] == "compact"
    states = []
    for key, replica in harness.front.machines.node.partitions.items():
        if key.topic_id == topic.topic_id:
            log = replica.log
            data = log.read(0, 1 << 20, log.log_end_offset, True)
            for record in RecordBatches(data).records():
                read = decode_log_record(InternalLog.TRANSACTIONS, record.key, record.value)
                assert read.value is not None
                assert isinstance(read.value.message, TransactionLogValue)
                states.append(read.value.message.transaction_status)
    assert states == [0, 1, 2, 4], "Empty, Ongoing, PrepareCommit, CompleteCommit"


def test_a_client_may_disconnect_while_its_records_are_verified(
    harness: NodeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = started(harness)
    found: list[Then] = []
    produced = harness.front.broker.transactions.produced

    def verify(_version: int, _body: ProduceRequest, then: Then, _now: float) -> bool:
        found.append(then)
        return True

    monkeypatch.setattr(produced, "verify", verify)
    producer.client.send(producer.record(b"a"), 9)
    assert len(found) == 1
    harness.handle(Disconnected(producer.client.number))
    found[0]({}, harness.now)
    assert fetched(harness).high_watermark == 0
