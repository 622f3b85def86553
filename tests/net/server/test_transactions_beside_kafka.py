"""The same requests about transactions to a real Apache Kafka and to a node: the same errors.

Law: a step is what a client sees of it: the error, and epochs relative to the first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafkawire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kafkawire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkawire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
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
from kafkawire.messages.list_transactions_request import ListTransactionsRequest
from kafkawire.messages.list_transactions_response import ListTransactionsResponse
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
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.records import BatchBuilder
from tests.interop.implementations import until

from ...real.broker import Broker
from ...real.wire import Wire

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

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
            found.append(self.wire.ask(request, version, InitProducerIdResponse))
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
        response = self.wire.ask(request, version, AddPartitionsToTxnResponse)
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
        response = self.wire.ask(request, version, AddPartitionsToTxnResponse)
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
        response = self.wire.ask(request, version, ProduceResponse)
        found = response.responses[0].partition_responses[0]
        self.step("Produce", version, E(found.error_code))

    def end(self, commit: bool, version: int = 3, **more: Any) -> None:
        """Commit or abort; wait until the markers are written."""
        request = EndTxnRequest(**self.identity(**more), committed=commit)
        response = self.wire.ask(request, version, EndTxnResponse)
        error = E(response.error_code)
        self.step("EndTxn", version, commit, error, response.producer_epoch)
        if not error and version >= 5:
            self.epoch = response.producer_epoch
        until(lambda: self.described().transaction_state not in PREPARED)

    def described(self) -> Any:
        """Describe the transaction."""
        request = DescribeTransactionsRequest(transactional_ids=[self.name])
        return self.wire.ask(request, 0, DescribeTransactionsResponse).transaction_states[0]

    def state(self) -> None:
        """Add the state of the transaction."""
        found = self.described()
        topics = {each.topic: sorted(each.partitions) for each in found.topics}
        self.step("state", E(found.error_code), found.transaction_state, topics)

    def add_group(self) -> None:
        """Add the group."""
        request = AddOffsetsToTxnRequest(**self.identity(), group_id=self.name)
        response = self.wire.ask(request, 3, AddOffsetsToTxnResponse)
        self.step("AddOffsetsToTxn", E(response.error_code))

    def commit_offset(self, offset: int, version: int = 3, **more: Any) -> None:
        """Commit an offset in the transaction."""
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            **self.identity(),
            group_id=self.name,
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
            **more,
        )
        response = self.wire.ask(request, version, TxnOffsetCommitResponse)
        found = response.topics[0].partitions[0]
        self.step("TxnOffsetCommit", version, E(found.error_code))

    def committed(self, stable: bool) -> None:
        """Add the committed offset of the group."""
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id=self.name, topics=[topic])
        request = OffsetFetchRequest(groups=[group], require_stable=stable)
        response = self.wire.ask(request, 8, OffsetFetchResponse)
        of_group = response.groups[0]
        if of_group.error_code:
            self.step("OffsetFetch", stable, E(of_group.error_code), -1)
            return
        found = of_group.topics[0].partitions[0]
        self.step("OffsetFetch", stable, E(found.error_code), found.committed_offset)


def version_1(actor: Actor) -> None:
    actor.init()
    actor.state()
    for commit in (True, False):
        actor.end(commit)
    actor.send(0)
    actor.send(0, version=11)
    actor.add(0, 7)
    actor.add(0, topic="missing")
    actor.add(0)
    actor.add(0)
    actor.send(0)
    actor.send(1)
    actor.state()
    actor.end(True)
    actor.state()
    for commit in (True, False):
        actor.end(commit)
    actor.send(0, 1)
    actor.add(1)
    actor.send(1)
    actor.end(False)
    for commit in (True, False):
        actor.end(commit)
    actor.state()


def identities(actor: Actor) -> None:
    actor.init()
    for more in ({"producer_id": 1 << 40}, {"producer_epoch": 5}, {"transactional_id": "unknown"}):
        for version in (1, 3):
            actor.add(0, version=version, **more)
            actor.end(True, version=version, **more)
        actor.verify(0, **more)
    actor.verify(0, version=4)
    actor.verify(0, version=5)
    actor.verify(0, only=False)
    actor.verify(0, 1)
    actor.end(False)
    actor.verify(0)


def fencing(actor: Actor) -> None:
    actor.init()
    actor.add(0)
    actor.send(0)
    old = Actor(actor.wire, actor.name)
    old.producer_id, old.epoch, old.trace = actor.producer_id, actor.epoch, actor.trace
    actor.init()
    old.send(0, 1)
    for version in (1, 3):
        old.add(0, version=version)
        old.end(True, version=version)
    old.add_group()
    old.commit_offset(1)
    actor.init(version=3, producer_id=old.producer_id, producer_epoch=old.epoch)
    actor.init(version=4, producer_id=old.producer_id, producer_epoch=old.epoch)
    mine = {"producer_id": actor.producer_id, "producer_epoch": actor.epoch}
    actor.init(**mine)
    actor.init(**mine)
    actor.init(producer_id=1 << 40, producer_epoch=0)
    actor.state()


def version_2(actor: Actor) -> None:
    actor.init()
    actor.end(True, version=5)
    actor.end(False, version=5)
    actor.state()
    actor.send(0, version=12)
    actor.state()
    before = actor.epoch
    actor.end(True, version=5)
    actor.send(0, 1, version=12, epoch=before)
    actor.end(True, version=5, producer_epoch=before)
    actor.end(False, version=5, producer_epoch=before)
    actor.end(True, version=5)
    actor.send(0, version=12)
    actor.end(True, version=5, producer_epoch=before)
    actor.end(False, version=5)
    actor.state()


def offsets(actor: Actor) -> None:
    actor.init()
    actor.commit_offset(1)
    actor.commit_offset(1, version=4)
    actor.add_group()
    actor.commit_offset(1, generation_id_or_member_epoch=1, member_id="m")
    actor.commit_offset(1)
    for stable in (True, False):
        actor.committed(stable)
    actor.end(True)
    actor.committed(True)
    actor.commit_offset(2, version=5)
    actor.committed(True)
    actor.commit_offset(2, member_id="m", generation_id_or_member_epoch=0)
    actor.end(False, version=5)
    actor.committed(True)


def mistakes(actor: Actor) -> None:
    actor.init(timeout_ms=0)
    actor.init(timeout_ms=1 << 30)
    actor.init(producer_id=5, producer_epoch=5)
    name, actor.name = actor.name, ""
    actor.init()
    actor.state()
    actor.add(0)
    actor.end(True)
    actor.name = f"{name} unknown"
    actor.state()
    actor.end(True)
    request = ListTransactionsRequest(state_filters=["Ongoing", "Unknown"])
    found = actor.wire.ask(request, 1, ListTransactionsResponse)
    actor.step("ListTransactions", E(found.error_code), found.unknown_state_filters)


SCENARIOS: Final = (version_1, identities, fencing, version_2, offsets, mistakes)


def prepared(wire: Wire, name: str) -> None:
    """Create the topic, and wait for both coordinators."""
    topic = CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)
    create = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    wire.ask(create, 7, CreateTopicsResponse)

    def found(kind: int) -> bool:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
        response = wire.ask(request, 4, FindCoordinatorResponse)
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


def seen(port: int, scenario: Callable[[Actor], None]) -> list[Any]:
    """Return the trace of a scenario."""
    with Wire(port) as wire:
        prepared(wire, scenario.__name__)
        actor = Actor(wire, f"beside {scenario.__name__}")
        scenario(actor)
        return actor.trace


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_node_responds_as_kafka(kafka: Broker, scenario: Callable[[Actor], None]) -> None:
    with ClusterThread(nodes=1) as cluster:
        ours = seen(int(cluster.bootstrap.rpartition(":")[2]), scenario)
    assert ours == seen(kafka.port, scenario)
