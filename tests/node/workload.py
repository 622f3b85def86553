"""Producers, consumers and an administrator of a simulated cluster."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kafkawire.broker.topics import INTERNAL
from kafkawire.messages import alter_partition_reassignments_request as reassignments
from kafkawire.messages import create_partitions_request as partitions
from kafkawire.messages import incremental_alter_configs_request as configs
from kafkawire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.elect_leaders_request import ElectLeadersRequest
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.metadata import MetadataImage, PartitionRegistration, TopicIdPartition
from kafkawire.node.invariants import Violation, values
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode

from .checker import Checker
from .clients import batch, create_topic, fetch, fetched, produced
from .network import Callback

E = ErrorCode
MAIN: Final = "main"
EXTRA: Final = ("extra-0", "extra-1")
OUTPUT: Final = "output"
"""The topic that a pipeline writes."""
OF_OTHERS: Final = INTERNAL | {OUTPUT}
"""The topics that the producers here do not write."""
VERSIONS: Final[dict[type, int]] = {
    ProduceRequest: 13,
    DeleteRecordsRequest: 2,
    DeleteTopicsRequest: 6,
    ElectLeadersRequest: 2,
    configs.IncrementalAlterConfigsRequest: 1,
    partitions.CreatePartitionsRequest: 3,
    reassignments.AlterPartitionReassignmentsRequest: 0,
}
CONFIGS: Final = (
    ("min.insync.replicas", "3"),
    ("min.insync.replicas", "2"),
    ("flush.messages", "3"),
    ("segment.bytes", "1048576"),
    ("retention.ms", "604800000"),
)
PAUSE: Final = (0.03, 0.3)


class Cluster(Protocol):
    """What clients need of the simulation."""

    rng: random.Random
    now: float
    checker: Checker

    def image(self) -> MetadataImage | None:
        """The newest metadata that a running broker has published."""

    def at(self, when: float, action: Any) -> None: ...

    def call(self, target: int, version: int, body: Message, callback: Callback) -> None: ...

    def live(self) -> list[int]: ...

    def log(self, text: str) -> None: ...


@dataclass
class Producer:
    """A producer of one partition; one batch is in flight. number: its producer id, or -1."""

    key: TopicIdPartition
    name: bytes
    number: int = -1
    sent: int = 0
    acknowledged: int = 0
    last_offset: int = -1
    values: list[bytes] = field(default_factory=list)


@dataclass
class Consumer:
    """A consumer of one partition."""

    key: TopicIdPartition
    position: int = 0
    epoch: int = 0


class Workload:
    """The clients. running: whether producers go on."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.checker = cluster.checker
        self.rng = cluster.rng
        self.running = True
        self.producers: dict[TopicIdPartition, Producer] = {}
        self.consumers: dict[TopicIdPartition, Consumer] = {}
        self.counts: dict[str, int] = {}

    def registration(self, key: TopicIdPartition) -> PartitionRegistration | None:
        image = self.cluster.image()
        return None if image is None else image.partition(key)

    def target(self, key: TopicIdPartition) -> int | None:
        """Return the leader of a partition; now and then another broker."""
        live = self.cluster.live()
        found = self.registration(key)
        if found is None or not live:
            return None
        leads = found.leader in live and self.rng.random() < 0.95
        return found.leader if leads else self.rng.choice(live)

    def later(self, action: Any, *arguments: Any) -> None:
        """Do something after a pause."""
        self.cluster.at(self.cluster.now + self.rng.uniform(*PAUSE), lambda: action(*arguments))

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def follow(self) -> None:
        """Let clients of new partitions begin."""
        image = self.cluster.image()
        for topic, index, _ in image.partitions() if image is not None else ():
            key = TopicIdPartition(topic.topic_id, index)
            if key not in self.producers and topic.name not in OF_OTHERS:
                number = len(self.producers)
                name = b"p%d-" % number
                self.producers[key] = Producer(key, name, number if number % 2 == 0 else -1)
                self.consumers[key] = Consumer(key)
                self.produce(self.producers[key])
                self.consume(self.consumers[key])

    # -- producers

    def produce(self, producer: Producer) -> None:
        """Send the next batch, or the one that was not acknowledged again."""
        if not self.running:
            return
        target = self.target(producer.key)
        if target is None:
            self.later(self.produce, producer)
            return
        if not producer.values:
            count = self.rng.randint(1, 3)
            numbers = range(producer.sent, producer.sent + count)
            producer.values = [producer.name + b"%d" % number for number in numbers]
            producer.sent += count
        fields: dict[str, int] = {}
        if producer.number >= 0:
            base = producer.sent - len(producer.values)
            fields = {
                "producer_id": producer.number,
                "producer_epoch": 0,
                "base_sequence": base,
            }
        data = PartitionProduceData(
            index=producer.key.partition, records=batch(producer.values, **fields)
        )
        topic = TopicProduceData(topic_id=producer.key.topic_id, partition_data=[data])
        body = ProduceRequest(acks=-1, timeout_ms=1500, topic_data=[topic])
        self.cluster.call(
            target,
            VERSIONS[ProduceRequest],
            body,
            lambda body: self.produced(producer, target, body),
        )

    def produced(self, producer: Producer, target: int, body: Message | None) -> None:
        """Note what became of a batch; a former leader may not know the batches before it."""
        result = produced(body)
        error = None if result is None else E(result.error_code)
        self.count(f"produce {error.name if error is not None else 'lost'}")
        self.cluster.log(f"produce {producer.name!r} {error} {result and result.base_offset}")
        if error is E.NONE:
            self._acknowledged(producer, result.base_offset)
        elif error is E.OUT_OF_ORDER_SEQUENCE_NUMBER and target == self.checker.leader(
            producer.key
        ):
            raise Violation(f"producer {producer.name!r}: out of order after {producer.sent}")
        if error is E.NONE or producer.number < 0:
            producer.values = []
        self.later(self.produce, producer)

    def _acknowledged(self, producer: Producer, base: int) -> None:
        if base <= producer.last_offset:
            raise Violation(f"offset {base} after {producer.last_offset} of {producer.name!r}")
        for at, value in enumerate(producer.values):
            self.checker.promise(producer.key, base + at, value, "acknowledged")
        producer.last_offset = base + len(producer.values) - 1
        producer.acknowledged += len(producer.values)

    # -- consumers

    def consume(self, consumer: Consumer) -> None:
        """Fetch from the leader, in its epoch."""
        target, found = self.target(consumer.key), self.registration(consumer.key)
        if target is None or found is None:
            self.later(self.consume, consumer)
            return
        consumer.epoch = max(consumer.epoch, found.leader_epoch)
        body = fetch(consumer.key.topic_id, consumer.key.partition, consumer.position, 500)
        body.topics[0].partitions[0].current_leader_epoch = consumer.epoch
        self.cluster.call(target, 17, body, lambda body: self.consumed(consumer, body))

    def consumed(self, consumer: Consumer, body: Message | None) -> None:
        """Note the records that are consumed."""
        data = fetched(body)
        if data is not None and not data.error_code:
            self.count("fetch NONE")
            for offset, value in values(data.records):
                if offset >= consumer.position:
                    self.checker.promise(consumer.key, offset, value, "consumed")
                    consumer.position = offset + 1
        elif data is not None and data.error_code == E.OFFSET_OUT_OF_RANGE:
            deleted = self.checker.deleted.get(consumer.key, 0)
            if consumer.position >= deleted:
                raise Violation(f"position {consumer.position} is out of range")
            consumer.position = deleted
        self.later(self.consume, consumer)

    # -- the administrator

    def administer(self, kind: str) -> None:
        """Send a request of an administrator to any broker."""
        image, live = self.cluster.image(), self.cluster.live()
        if image is None or not live:
            return
        body = ADMIN[kind](self, image)
        if body is not None:
            version = VERSIONS.get(type(body), 7)
            self.cluster.call(self.rng.choice(live), version, body, lambda _: self.count(kind))

    def create(self, _image: MetadataImage) -> Message:
        return create_topic(self.rng.choice(EXTRA), 1, 3, min_insync_replicas="2")

    def delete(self, _image: MetadataImage) -> Message:
        return DeleteTopicsRequest(
            topics=[DeleteTopicState(name=self.rng.choice(EXTRA))], timeout_ms=1000
        )

    def grow(self, image: MetadataImage) -> Message | None:
        topic = image.topic(MAIN)
        if topic is None or len(topic.partitions) > 3:
            return None
        wanted = partitions.CreatePartitionsTopic(name=MAIN, count=len(topic.partitions) + 1)
        return partitions.CreatePartitionsRequest(topics=[wanted], timeout_ms=1000)

    def elect(self, _image: MetadataImage) -> Message:
        return ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000)

    def configure(self, _image: MetadataImage) -> Message:
        name, value = self.rng.choice(CONFIGS)
        change = configs.AlterableConfig(name=name, config_operation=0, value=value)
        resource = configs.AlterConfigsResource(
            resource_type=2, resource_name=MAIN, configs=[change]
        )
        return configs.IncrementalAlterConfigsRequest(resources=[resource])

    def reassign(self, image: MetadataImage) -> Message | None:
        topic = image.topic(MAIN)
        if topic is None:
            return None
        index = self.rng.choice(list(topic.partitions))
        replicas = self.rng.sample(sorted(image.brokers), 3) if len(image.brokers) >= 3 else None
        wanted = reassignments.ReassignablePartition(partition_index=index, replicas=replicas)
        named = reassignments.ReassignableTopic(name=MAIN, partitions=[wanted])
        return reassignments.AlterPartitionReassignmentsRequest(topics=[named], timeout_ms=1000)

    def delete_records(self, image: MetadataImage) -> Message | None:
        topic = image.topic(MAIN)
        if topic is None:
            return None
        key = TopicIdPartition(topic.topic_id, self.rng.choice(list(topic.partitions)))
        offset = self.consumers[key].position // 2 if key in self.consumers else 0
        self.checker.deleted[key] = max(self.checker.deleted.get(key, 0), offset)
        wanted = DeleteRecordsPartition(partition_index=key.partition, offset=offset)
        named = DeleteRecordsTopic(name=MAIN, partitions=[wanted])
        return DeleteRecordsRequest(topics=[named], timeout_ms=1500)


ADMIN: Final[dict[str, Any]] = {
    "create": Workload.create,
    "delete": Workload.delete,
    "grow": Workload.grow,
    "elect": Workload.elect,
    "configure": Workload.configure,
    "reassign": Workload.reassign,
    "delete records": Workload.delete_records,
}
"""Kind -> the request that it is."""
