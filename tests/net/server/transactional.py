"""A transactional producer, request by request, at any broker, for tests."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any, Final

from kafkawire import ErrorCode
from kafkawire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafkawire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kafkawire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkawire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kafkawire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafkawire.messages.consumer_group_heartbeat_request import TopicPartitions as OwnedPartitions
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.describe_transactions_request import DescribeTransactionsRequest
from kafkawire.messages.describe_transactions_response import DescribeTransactionsResponse
from kafkawire.messages.end_txn_request import EndTxnRequest
from kafkawire.messages.end_txn_response import EndTxnResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
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
from kafkawire.records import BatchBuilder
from tests.interop.implementations import until

from ...real.wire import Wire

E = ErrorCode
TOPIC: Final = "beside-transactions"
TIME_MS: Final = 1_700_000_000_000
TRANSIENT: Final = frozenset(
    {E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE}
)
PREPARED: Final = ("PrepareCommit", "PrepareAbort")


class Actor:
    """A producer that sends requests one by one. name: of its transactional id and group."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire = wire
        self.name = name
        self.producer_id = self.epoch = -1
        self.trace: list[Any] = []

    def step(self, *seen: Any) -> None:
        """Add what was seen to the trace."""
        shown = [E(each).name if isinstance(each, ErrorCode) else each for each in seen]
        self.trace.append(shown)

    def identity(self, **more: Any) -> dict[str, Any]:
        """The fields of a request that name the producer."""
        known = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        return {"transactional_id": self.name, **known, **more}

    def init(self, version: int = 5, timeout_ms: int = 60_000, **more: Any) -> None:
        """Begin, or bump the epoch; as soon as no transaction is in the way."""
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=timeout_ms, **more
        )
        found: list[InitProducerIdResponse] = []

        def done() -> bool:
            found.append(self.wire.exchange(request, version, InitProducerIdResponse))
            return E(found[-1].error_code) not in TRANSIENT

        until(done)
        response = found[-1]
        self.step("InitProducerId", E(response.error_code), response.producer_epoch)
        if not response.error_code:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch

    def add(self, *partitions: int, topic: str = TOPIC, version: int = 3, **more: Any) -> None:
        """Add partitions, as a client."""
        given = self.identity(**more)
        request = AddPartitionsToTxnRequest(
            **{f"v3_and_below_{key}": value for key, value in given.items()},
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[*partitions])],
        )
        response = self.wire.exchange(request, version, AddPartitionsToTxnResponse)
        errors = {
            each.partition_index: E(each.partition_error_code).name
            for found in response.results_by_topic_v3_and_below
            for each in found.results_by_partition
        }
        self.step("AddPartitionsToTxn", version, dict(sorted(errors.items())))

    def verify(self, *partitions: int, version: int = 5, only: bool = True, **more: Any) -> None:
        """Verify or add partitions, as a broker."""
        topics = [AddPartitionsToTxnTopic(name=TOPIC, partitions=[*partitions])]
        transaction = AddPartitionsToTxnTransaction(
            **self.identity(**more), verify_only=only, topics=topics
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        response = self.wire.exchange(request, version, AddPartitionsToTxnResponse)
        errors = {
            each.partition_index: E(each.partition_error_code).name
            for found in response.results_by_transaction
            for topic in found.topic_results
            for each in topic.results_by_partition
        }
        found = dict(sorted(errors.items()))
        self.step("verify", version, only, E(response.error_code), found)

    def send(self, partition: int, sequence: int = 0, version: int = 9, epoch: int = -1) -> None:
        """Produce a record."""
        builder = BatchBuilder(
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch < 0 else epoch,
            base_sequence=sequence,
            transactional=True,
        )
        builder.append(b"k", b"v", TIME_MS)
        data = PartitionProduceData(index=partition, records=builder.build())
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        response = self.wire.exchange(request, version, ProduceResponse)
        found = response.responses[0].partition_responses[0]
        self.step("Produce", version, E(found.error_code))

    def end(self, commit: bool, version: int = 3, **more: Any) -> None:
        """Commit or abort; wait until the markers are written."""
        request = EndTxnRequest(**self.identity(**more), committed=commit)
        response = self.wire.exchange(request, version, EndTxnResponse)
        error = E(response.error_code)
        self.step("EndTxn", version, commit, error, response.producer_epoch)
        if not error and version >= 5:
            self.epoch = response.producer_epoch
        until(lambda: self.described().transaction_state not in PREPARED)

    def described(self) -> Any:
        """Describe the transaction."""
        request = DescribeTransactionsRequest(transactional_ids=[self.name])
        return self.wire.exchange(request, 0, DescribeTransactionsResponse).transaction_states[0]

    def state(self) -> None:
        """Add the state of the transaction."""
        found = self.described()
        topics = {each.topic: sorted(each.partitions) for each in found.topics}
        self.step("state", E(found.error_code), found.transaction_state, topics)

    def add_group(self) -> None:
        """Add the group."""
        request = AddOffsetsToTxnRequest(**self.identity(), group_id=self.name)
        response = self.wire.exchange(request, 3, AddOffsetsToTxnResponse)
        self.step("AddOffsetsToTxn", E(response.error_code))

    def topic_id(self) -> bytes:
        """Return the id of the topic."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
        return self.wire.exchange(request, 12, MetadataResponse).topics[0].topic_id

    def heartbeat(self, member_id: str, epoch: int, *owned: int) -> list[int]:
        """Send the heartbeat of a consumer; return the partitions that it is to have, if any."""
        held = [OwnedPartitions(topic_id=self.topic_id(), partitions=[*owned])] if owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=held,
        )
        response = self.wire.exchange(request, 1, ConsumerGroupHeartbeatResponse)
        assigned = response.assignment
        partitions = [] if assigned is None else assigned.topic_partitions
        result = [index for topic in partitions for index in topic.partitions]
        self.step("ConsumerGroupHeartbeat", E(response.error_code), response.member_epoch, result)
        return result

    def commit_offset(
        self,
        offset: int,
        version: int = 3,
        topic_id: bytes = bytes(16),
        index: int = 0,
        **more: Any,
    ) -> None:
        """Commit an offset in the transaction."""
        partition = TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            **self.identity(),
            group_id=self.name,
            topics=[
                TxnOffsetCommitRequestTopic(name=TOPIC, topic_id=topic_id, partitions=[partition])
            ],
            **more,
        )
        response = self.wire.exchange(request, version, TxnOffsetCommitResponse)
        found = response.topics[0].partitions[0]
        self.step("TxnOffsetCommit", version, E(found.error_code))

    def committed(self, stable: bool) -> None:
        """Add the committed offset of the group."""
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id=self.name, topics=[topic])
        request = OffsetFetchRequest(groups=[group], require_stable=stable)
        response = self.wire.exchange(request, 8, OffsetFetchResponse)
        of_group = response.groups[0]
        if of_group.error_code:
            self.step("OffsetFetch", stable, E(of_group.error_code), -1)
            return
        found = of_group.topics[0].partitions[0]
        self.step("OffsetFetch", stable, E(found.error_code), found.committed_offset)


def prepared(wire: Wire, name: str) -> None:
    """Create the topic, and wait for both coordinators."""
    topic = CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)
    create = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    wire.exchange(create, 7, CreateTopicsResponse)

    def found(kind: int) -> bool:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
        response = wire.exchange(request, 4, FindCoordinatorResponse)
        return not response.coordinators[0].error_code

    for kind in (0, 1):
        until(partial(found, kind))
    attempts = count(1)
    until(lambda: _is_ready(Actor(wire, f"{name} probe {next(attempts)}")))


def _is_ready(probe: Actor) -> bool:
    """Whether a transaction of a probe can do everything: Kafka loads what it needs at first."""
    probe.init()
    probe.commit_offset(0, version=5)
    probe.send(0, version=12)
    errors = {each[-1] for each in probe.trace[1:]}
    probe.end(False, version=5)
    return errors == {"NONE"}
