"""Transactional producers of a node in virtual time, for tests."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkawire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafkawire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kafkawire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkawire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kafkawire.messages.describe_transactions_request import DescribeTransactionsRequest
from kafkawire.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from kafkawire.messages.end_txn_request import EndTxnRequest
from kafkawire.messages.end_txn_response import EndTxnResponse
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse, PartitionData
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.list_transactions_request import ListTransactionsRequest
from kafkawire.messages.list_transactions_response import ListTransactionsResponse
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkawire.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kafkawire.protocol import ErrorCode as E
from kafkawire.records import BatchBuilder, RecordBatches

from .front_harness import EPOCH_MS, NodeClient, NodeHarness

SETTINGS = {"transaction.state.log.num.partitions": "3"}
READ_COMMITTED = 1
TRANSACTION = 1
TIMEOUT_MS = 60_000


class Producer(NamedTuple):
    """A transactional producer: its connection, id and epoch."""

    client: NodeClient
    producer_id: int
    epoch: int

    def begin(self, *partitions: int) -> E:
        """Add partitions of the topic `t`, as clients before KIP-890 do."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[*partitions])],
        )
        response = self.client.exchange(request, 3, AddPartitionsToTxnResponse)
        topic = response.results_by_topic_v3_and_below[0]
        return E(topic.results_by_partition[0].partition_error_code)

    def send(self, value: bytes, partition: int = 0, sequence: int = 0, version: int = 9) -> E:
        """Produce one record."""
        request = self.record(value, partition, sequence)
        response = self.client.exchange(request, version, ProduceResponse)
        return E(response.responses[0].partition_responses[0].error_code)

    def record(self, value: bytes, partition: int = 0, sequence: int = 0) -> ProduceRequest:
        """Make a request with one record."""
        builder = BatchBuilder(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        builder.append(None, value, EPOCH_MS)
        data = PartitionProduceData(index=partition, records=builder.build())
        topic = TopicProduceData(name="t", partition_data=[data])
        return ProduceRequest(transactional_id="x", acks=-1, timeout_ms=1000, topic_data=[topic])

    def end(self, commit: bool, version: int = 3) -> E:
        """Commit or abort."""
        return E(self.ended(commit, version).error_code)

    def ended(self, commit: bool, version: int = 5) -> EndTxnResponse:
        """Commit or abort; return the response."""
        request = EndTxnRequest(
            transactional_id="x",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return self.client.exchange(request, version, EndTxnResponse)

    def commit_offset(
        self, offset: int, version: int = 3, partition_index: int = 0, **topic: Any
    ) -> E:
        """Commit an offset of the group `g` for a topic, else t, in the transaction."""
        partition = TxnOffsetCommitRequestPartition(
            partition_index=partition_index, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(**(topic or {"name": "t"}), partitions=[partition])
            ],
        )
        response = self.client.exchange(request, version, TxnOffsetCommitResponse)
        return E(response.topics[0].partitions[0].error_code)

    def add_group(self) -> E:
        """Add the group `g`."""
        request = AddOffsetsToTxnRequest(
            transactional_id="x",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id="g",
        )
        return E(self.client.exchange(request, 3, AddOffsetsToTxnResponse).error_code)


def find(harness: NodeHarness) -> E:
    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["x"])
    response = harness.client().exchange(request, 4, FindCoordinatorResponse)
    return E(response.coordinators[0].error_code)


def initialised(harness: NodeHarness) -> InitProducerIdResponse:
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=TIMEOUT_MS)
    return harness.client().exchange(request, 4, InitProducerIdResponse)


def started(harness: NodeHarness) -> Producer:
    """Let a producer begin; it tries again as long as a transaction of another one ends."""
    response = initialised(harness)
    while response.error_code == E.CONCURRENT_TRANSACTIONS:
        harness.advance(0.1)
        response = initialised(harness)
    assert response.error_code == E.NONE
    return Producer(harness.client(), response.producer_id, response.producer_epoch)


def fetched(harness: NodeHarness, partition: int = 0) -> PartitionData:
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_bytes=1 << 20,
        isolation_level=READ_COMMITTED,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )
    return harness.client().exchange(request, 12, FetchResponse).responses[0].partitions[0]


def visible(harness: NodeHarness, partition: int = 0) -> list[bytes | None]:
    """Return what a consumer with read_committed sees: it leaves out aborted transactions."""
    data = fetched(harness, partition)
    aborted = {each.producer_id: each.first_offset for each in data.aborted_transactions or []}
    found: list[bytes | None] = []
    for batch in RecordBatches(data.records or b""):
        if batch.control:
            aborted.pop(batch.producer_id, None)
        elif aborted.get(batch.producer_id, 1 << 62) > batch.base_offset:
            found += [each.value for each in batch.records()]
    return found


def committed_offset(harness: NodeHarness, stable: bool = True) -> tuple[E, int]:
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    request = OffsetFetchRequest(group_id="g", topics=[topic], require_stable=stable)
    response = harness.client().exchange(request, 7, OffsetFetchResponse)
    found = response.topics[0].partitions[0]
    return E(found.error_code), found.committed_offset


def commit(harness: NodeHarness, offset: int) -> E:
    """Commit an offset of the group `g` for t-0 without a transaction."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = OffsetCommitRequest(group_id="g", topics=[topic])
    response = harness.client().exchange(request, 8, OffsetCommitResponse)
    return E(response.topics[0].partitions[0].error_code)


def harness_with(settings: dict[str, str]) -> NodeHarness:
    harness = NodeHarness(SETTINGS | settings, topics={"t": 2})
    find(harness)
    harness.advance(1.0)
    return harness


def described(harness: NodeHarness, transactional_id: str) -> list[TransactionState]:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    response = harness.client().exchange(request, 0, DescribeTransactionsResponse)
    return response.transaction_states


def listed(harness: NodeHarness, **filters: Any) -> list[str]:
    request = ListTransactionsRequest(**filters)
    version = 2 if "transactional_id_pattern" in filters else 1
    response = harness.client().exchange(request, version, ListTransactionsResponse)
    return [each.transactional_id for each in response.transaction_states]
