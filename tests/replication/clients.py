"""The clients of a simulated cluster: producers, consumers, a transaction coordinator."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kafkawire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkawire.messages.list_offsets_response import ListOffsetsResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.metadata import TopicIdPartition
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode
from kafkawire.records import BatchBuilder, RecordBatches, end_txn_batch
from kafkawire.replication import AppendResult, ReplicaLog

from .checker import Violation, records
from .plan import Fault
from .simulated import MIN_ISR, QUIET, TOPIC, TOPIC_ID, SimulatedCluster

E = ErrorCode
CLIENT: Final = 100
FETCH_VERSION: Final = 13
PRODUCE_VERSION: Final = 11


def batch(values: list[bytes], producer_id: int = -1) -> bytes:
    """Build a batch; one of a producer is transactional."""
    epoch = 0 if producer_id >= 0 else -1
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=epoch, transactional=producer_id >= 0
    )
    for value in values:
        builder.append(None, value, 1_700_000_000_000)
    return builder.build()


class Consumer:
    """A consumer of all partitions, one after the other."""

    def __init__(self, number: int, isolation: int, rack: str) -> None:
        self.number = number
        self.isolation = isolation
        self.rack = rack
        self.positions: Counter[TopicIdPartition] = Counter()
        self.epochs: dict[TopicIdPartition, int] = {}
        self.preferred: dict[TopicIdPartition, int] = {}


class Cluster(SimulatedCluster):
    """A simulated with clients. outcomes: how often what happened."""

    def simulate(self) -> None:
        """Run, and check that everything caught up at the end."""
        self.counts: Counter[str] = Counter()
        self.seen: Counter[TopicIdPartition] = Counter()
        self.values = 0
        self.every(0.25, self.produce)
        self.every(0.9, self.look_up_end)
        consumers = [Consumer(0, 0, "rack1"), Consumer(1, 1, "")]
        for consumer in consumers:
            self.every(0.5, lambda consumer=consumer: self.consume(consumer))  # type: ignore[misc]
        if self.setup.transactions:
            self.every(0.6, self.transact)
        self.run()
        self.check_end()
        for consumer in consumers:
            for key in self.keys:
                end = max(log.log_end_offset for log in self.logs(key).values())
                if consumer.positions[key] < end - 40:  # the last fetches may be on their way
                    raise Violation(f"no progress: consumer at {consumer.positions[key]} of {end}")

    def logs(self, key: TopicIdPartition) -> dict[int, ReplicaLog]:
        return {node.id: node.logs[key] for node in self.nodes if key in node.logs}

    def target(self, key: TopicIdPartition) -> int:
        """Return the leader, or once in a while another broker."""
        leader = self.controller.partitions[key].registration.leader
        if leader < 0 or self.rng.random() < 0.1:
            return self.rng.randrange(len(self.nodes))
        return leader

    # -- producers

    def next_values(self) -> list[bytes]:
        count = self.rng.randint(1, 3)
        self.values += count
        return [b"v%d" % each for each in range(self.values - count, self.values)]

    def produce(self) -> None:
        """Produce a batch, mostly with acks=all."""
        if self.now >= QUIET:
            return
        key, made = self.rng.choice(self.keys), self.next_values()
        acks = -1 if self.rng.random() < 0.8 else 1
        data = PartitionProduceData(index=key.partition, records=batch(made))
        topic = TopicProduceData(name=TOPIC, topic_id=TOPIC_ID, partition_data=[data])
        body = ProduceRequest(acks=acks, timeout_ms=1500, topic_data=[topic])

        def done(response: Message | None) -> None:
            if not isinstance(response, ProduceResponse):
                return
            (result,) = response.responses[0].partition_responses
            self.counts[f"produce {acks} {E(result.error_code).name}"] += 1
            self.log(f"produced {made[0]!r} {result.error_code} {result.base_offset}")
            if acks == -1 and not result.error_code:
                self.acknowledged(key, result.base_offset, made)

        self.request(CLIENT, self.target(key), PRODUCE_VERSION, body, done)

    def acknowledged(self, key: TopicIdPartition, base: int, made: list[bytes]) -> None:
        replicas = len(self.controller.partitions[key].registration.replicas)
        for offset, value in enumerate(made, base):
            self.checker.acknowledged(
                key,
                offset,
                value,
                self.logs(key),
                min(MIN_ISR, replicas),
            )

    def inject(self, fault: Fault) -> None:
        super().inject(fault)
        if fault.kind == "delete records":
            key = self.keys[fault.broker % len(self.keys)]
            self.delete(key, self.seen[key])

    def delete(self, key: TopicIdPartition, offset: int) -> None:
        """Delete records that were consumed."""
        self.checker.deleted[key] = max(self.checker.deleted.get(key, 0), offset)
        each = DeleteRecordsPartition(partition_index=key.partition, offset=offset)
        topic = DeleteRecordsTopic(name=TOPIC, partitions=[each])
        body = DeleteRecordsRequest(timeout_ms=2000, topics=[topic])
        self.request(CLIENT, self.target(key), 2, body, lambda response: self.log(f"{response}"))

    # -- consumers

    def look_up_end(self) -> None:
        """Ask for the latest offset: it is not before what anybody saw."""
        key = self.rng.choice(self.keys)
        registration, seen = self.controller.partitions[key].registration, self.seen[key]
        each = ListOffsetsPartition(
            partition_index=key.partition,
            current_leader_epoch=registration.leader_epoch,
            timestamp=-1,
        )
        body = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[each])]
        )

        def done(response: Message | None) -> None:
            if isinstance(response, ListOffsetsResponse):
                (found,) = response.topics[0].partitions
                self.counts[f"latest {E(found.error_code).name}"] += 1
                if not found.error_code and found.offset < seen:
                    raise Violation(f"latest offset {found.offset}, but {seen} was consumed")

        self.request(CLIENT, self.target(key), 7, body, done)

    def consume(self, consumer: Consumer) -> None:
        """Fetch from the leader or the preferred read replica."""
        key = self.rng.choice(self.keys)
        position = consumer.positions[key]
        target = consumer.preferred.get(key, self.target(key))
        body = FetchRequest(
            isolation_level=consumer.isolation,
            max_wait_ms=self.rng.choice((0, 300)),
            min_bytes=self.rng.choice((1, 200)),
            rack_id=consumer.rack,
            topics=[
                FetchTopic(
                    topic=TOPIC,
                    topic_id=TOPIC_ID,
                    partitions=[
                        FetchPartition(
                            partition=key.partition,
                            fetch_offset=position,
                            last_fetched_epoch=consumer.epochs.get(key, -1),
                            partition_max_bytes=4000,
                        )
                    ],
                )
            ],
        )

        def done(response: Message | None) -> None:
            if isinstance(response, FetchResponse) and consumer.positions[key] == position:
                self.fetched(consumer, key, response)
            elif response is None:
                consumer.preferred.pop(key, None)

        self.request(CLIENT + consumer.number, target, FETCH_VERSION, body, done)

    def fetched(self, consumer: Consumer, key: TopicIdPartition, response: FetchResponse) -> None:
        (data,) = response.responses[0].partitions
        position = consumer.positions[key]
        self.counts[f"fetch {E(data.error_code).name}"] += 1
        if data.error_code or data.diverging_epoch.epoch >= 0:
            consumer.preferred.pop(key, None)
            deleted = self.checker.deleted.get(key, 0)
            if data.error_code == E.OFFSET_OUT_OF_RANGE and position < deleted:
                consumer.positions[key] = deleted
            return
        if data.preferred_read_replica >= 0:
            self.counts["preferred read replica"] += 1
            consumer.preferred[key] = data.preferred_read_replica
            return
        raw = data.records or b""
        if consumer.isolation:
            aborted = [
                (each.producer_id, each.first_offset) for each in data.aborted_transactions or []
            ]
            self.checker.committed(raw, position, aborted)
        for offset, value in records(raw, position):
            self.checker.promise(key, offset, value, f"consumer {consumer.number}")
            consumer.positions[key] = offset + 1
            self.seen[key] = max(self.seen[key], offset + 1)
        for each in RecordBatches(raw):
            consumer.epochs[key] = each.partition_leader_epoch

    # -- transactions

    def transact(self) -> None:
        """Write a transaction to one partition, and end it."""
        if self.now >= QUIET:
            return
        producer = len(self.checker.outcomes)
        self.checker.outcomes[producer] = "open"
        key, made = self.rng.choice(self.keys), self.next_values()
        wants = self.rng.random() < 0.6

        def written(result: AppendResult) -> None:
            if not result.error:
                self.acknowledged(key, result.base_offset, made)
            self.at(self.now + self.rng.uniform(0, 2), lambda: decide(result.error == E.NONE))

        def decide(complete: bool) -> None:
            if self.checker.outcomes[producer] == "open":
                commits = wants and complete
                self.checker.outcomes[producer] = "committed" if commits else "aborted"
                self.counts[f"transaction {self.checker.outcomes[producer]}"] += 1
                self.end(key, producer, commits)

        node = self.leader(key)
        if node is not None:
            self.append(node, (key, batch(made, producer)), written)
        self.at(self.now + 3.0, lambda: decide(complete=False))

    def end(self, key: TopicIdPartition, producer: int, commits: bool) -> None:
        """Write the marker, until it is acknowledged."""
        done: list[bool] = []

        def written(result: AppendResult) -> None:
            if not result.error:
                done.append(True)

        def attempt() -> None:
            if done:
                return
            node = self.leader(key)
            if node is not None and self.now >= node.paused_until:
                marker = end_txn_batch(
                    commits,
                    producer_id=producer,
                    producer_epoch=0,
                    coordinator_epoch=0,
                    timestamp=1_700_000_000_000,
                )
                self.append(node, (key, marker), written)
            self.at(self.now + 1.0, attempt)

        attempt()
