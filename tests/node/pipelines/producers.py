"""Transactional producers of a simulated cluster, of either protocol (KIP-98, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

from kafkawire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafkawire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkawire.messages.end_txn_request import EndTxnRequest
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkawire.metadata import TopicIdPartition
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode

from ..clients import batch, produced
from ..workload import MAIN, OUTPUT
from .checker import Outcome, PipelineChecker, Transaction
from .steps import RETRY_AFTER, Call, Cluster, Coordinator, Pause, Steps, leader

E = ErrorCode
TRANSACTION: Final = 1
TIMEOUT_MS: Final = 4_000
ATTEMPTS: Final = 8
STALL: Final = 0.05
LATE: Final = (0.0, 1.0)
"""How many seconds records are under way that arrive late."""


class TransactionProtocol(Enum):
    """The versions of requests. V2: Produce and TxnOffsetCommit add to the transaction."""

    V1 = {"produce": 11, "offsets": 4, "end": 4}  # noqa: RUF012 - the value of a member
    V2 = {"produce": 13, "offsets": 5, "end": 5}  # noqa: RUF012 - the value of a member


Succeeded = Generator[Pause | Call, Any, ErrorCode]


class Stall(NamedTuple):
    """A process that stands still before it sends a request.

    until: when it goes on; earlier if another one has its transactional id, and a transaction.
    """

    before: type[Message]
    until: float


class Producer:
    """A producer. name: of this one alone; others have had its transactional id."""

    def __init__(
        self, cluster: Cluster, checker: PipelineChecker, transactional_id: str, name: str
    ) -> None:
        self.cluster = cluster
        self.checker = checker
        self.transactional_id = transactional_id
        self.name = name
        self.coordinator = Coordinator(cluster, TRANSACTION, transactional_id)
        self.protocol = cluster.rng.choice(list(TransactionProtocol))
        self.counts: dict[str, int] = {}
        self.stall: Stall | None = None
        self._id = -1
        self.epoch = -1
        self._sequences: dict[TopicIdPartition, int] = {}

    def call(
        self,
        find: Callable[[], Generator[Pause | Call, Any, int | None]],
        version: int,
        body: Message,
        on_success: Callable[[Any], None] = lambda _: None,
    ) -> Succeeded:
        """Send a request until it succeeds, or fails with an error that lasts."""
        what, error = type(body).__name__.removesuffix("Request"), E.NETWORK_EXCEPTION
        since = self.cluster.now

        def sent(response: Any) -> None:
            if error_in(response) is not E.NONE:
                return
            is_first = isinstance(body, InitProducerIdRequest) and body.producer_id < 0
            if not is_first:
                self.checker.succeeds(self.transactional_id, self.name, since, what)
            if isinstance(body, InitProducerIdRequest):
                self.checker.initialised(self.transactional_id, self.name, self.cluster.now)
            on_success(response)

        if self.stall is not None and isinstance(body, self.stall.before):
            yield from self._stand_still(self.stall.until)
        for _ in range(ATTEMPTS):
            since = self.cluster.now
            response = yield Call((yield from find()), version, body, sent)
            error = error_in(response)
            count = f"{what} {error.name}"
            self.counts[count] = self.counts.get(count, 0) + 1
            if error is E.NONE:
                self._learn(body, response)
            if not error.retriable:
                return error
            self.coordinator.forget()
            yield Pause(RETRY_AFTER)
        return error

    def _stand_still(self, until: float) -> Steps:
        is_replaced = partial(self.checker.is_replaced, self.transactional_id, self.name)
        while self.cluster.now < until and not is_replaced():
            yield Pause(min(STALL, until - self.cluster.now + 0.001))

    def _learn(self, body: Message, response: Any) -> None:
        if isinstance(body, InitProducerIdRequest):
            self._id, self.epoch = response.producer_id, response.producer_epoch
            self._sequences.clear()
        elif isinstance(body, EndTxnRequest) and response.producer_id >= 0:
            if (self._id, self.epoch) != (response.producer_id, response.producer_epoch):
                self._sequences.clear()
            self._id, self.epoch = response.producer_id, response.producer_epoch

    def initialise(self) -> Succeeded:
        """Get an epoch; the transaction that is not ended is aborted."""
        body = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        return (yield from self.call(self.coordinator.find, 5, body))

    def fields(self) -> dict[str, Any]:
        """Return the fields that all requests of a transaction have."""
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self._id,
            "producer_epoch": self.epoch,
        }

    def add_partitions(self, indexes: list[int]) -> Succeeded:
        """Add partitions to the transaction, as clients before KIP-890 do."""
        body = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=OUTPUT, partitions=indexes)],
        )
        return (yield from self.call(self.coordinator.find, 3, body))

    def add_group(self, group_id: str) -> Succeeded:
        """Add a group to the transaction, as clients before KIP-890 do."""
        body = AddOffsetsToTxnRequest(group_id=group_id, **self.fields())
        return (yield from self.call(self.coordinator.find, 3, body))

    def produce_request(self, key: TopicIdPartition, values: list[bytes]) -> ProduceRequest:
        """Make the request that writes the next records to a partition."""
        records = batch(
            values,
            producer_id=self._id,
            producer_epoch=self.epoch,
            base_sequence=self._sequences.get(key, 0),
            transactional=True,
        )
        topic = TopicProduceData(
            partition_data=[PartitionProduceData(index=key.partition, records=records)],
            **(
                {"name": OUTPUT}
                if self.protocol is TransactionProtocol.V1
                else {"topic_id": key.topic_id}
            ),
        )
        return ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=1500, topic_data=[topic]
        )

    def produce(self, key: TopicIdPartition, values: list[bytes]) -> Succeeded:
        """Write records to a partition."""
        body = self.produce_request(key, values)

        def find() -> Generator[Pause | Call, Any, int | None]:
            return leader(self.cluster, key)
            yield

        version = self.protocol.value["produce"]
        error = yield from self.call(find, version, body)
        if error is E.NONE:
            self._sequences[key] = self._sequences.get(key, 0) + len(values)
        return error

    def produce_late(self, key: TopicIdPartition, values: list[bytes]) -> Steps:
        """Send records that arrive after a while, perhaps when their transaction has ended."""
        body = self.produce_request(key, values)
        yield Pause(self.cluster.rng.uniform(*LATE))
        yield Call(leader(self.cluster, key), self.protocol.value["produce"], body)

    def commit_offsets(
        self,
        transaction: Transaction,
        coordinator: Coordinator,
        member: Mapping[str, Any],
        offsets: Mapping[int, int],
    ) -> Succeeded:
        """Commit offsets of a group in the transaction. member: its group, id and epoch."""
        partitions = [
            TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=""
            )
            for index, offset in offsets.items()
        ]
        topic = TxnOffsetCommitRequestTopic(name=MAIN, partitions=partitions)
        body = TxnOffsetCommitRequest(topics=[topic], **self.fields(), **member)

        def find() -> Generator[Pause | Call, Any, int | None]:
            coordinator.forget()
            return (yield from coordinator.find())

        def committed(_response: Any) -> None:
            self.checker.commits_offsets(transaction, offsets, self.cluster.now)

        return (yield from self.call(find, self.protocol.value["offsets"], body, committed))

    def end(self, transaction: Transaction, outcome: Outcome) -> Succeeded:
        """Commit or abort."""
        body = EndTxnRequest(committed=outcome is Outcome.COMMITTED, **self.fields())
        since: list[float] = []

        def find() -> Generator[Pause | Call, Any, int | None]:
            node = yield from self.coordinator.find()
            since.append(self.cluster.now)
            return node

        def ended(_response: Any) -> None:
            self.checker.ended(transaction, outcome, since[0])

        return (yield from self.call(find, self.protocol.value["end"], body, ended))


def error_in(body: Any) -> ErrorCode:
    """Return the first error of a response."""
    if body is None:
        return E.NETWORK_EXCEPTION
    match type(body).__name__:
        case "ProduceResponse":
            errors = [produced(body).error_code]
        case "AddPartitionsToTxnResponse":
            errors = [
                partition.partition_error_code
                for topic in body.results_by_topic_v3_and_below
                for partition in topic.results_by_partition
            ]
        case "TxnOffsetCommitResponse":
            errors = [
                partition.error_code for topic in body.topics for partition in topic.partitions
            ]
        case _:
            errors = [body.error_code]
    return E(next((error for error in errors if error), 0))
