"""librdkafka's consumers of both protocols in one group at our brokers (KIP-848)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupType
from confluent_kafka.admin import AdminClient

from kafkawire.client.consumer import TopicPartition
from kafkawire.net.fixture import ClusterFixture
from tests.interop.implementations import until

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.min.heartbeat.interval.ms": "50",
}
PARTITIONS = 4
CONSUMER = {"group.protocol": "consumer"}
EAGER = {"partition.assignment.strategy": "range"}
COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}

REJOINING = (
    confluent_kafka.KafkaError.ILLEGAL_GENERATION,
    confluent_kafka.KafkaError.REBALANCE_IN_PROGRESS,
)
"""The errors of a commit after which a member joins again."""


@dataclass
class Reader:
    """A consumer, and how often it has read and committed each record, by partition and offset.

    uncommitted: what it has read since. refused: whether the last commit was: the coordinator has
    begun another generation, which the member does not know yet. If it begins at its committed
    offsets then, it reads them again.
    """

    consumer: confluent_kafka.Consumer
    read: Counter[tuple[int, int]] = field(default_factory=Counter)
    uncommitted: set[tuple[int, int]] = field(default_factory=set)
    refused: bool = False

    def poll(self) -> None:
        """Read what is there, and commit it."""
        for record in self.consumer.consume(10, 0.02):
            assert record.error() is None
            key = record.partition() or 0, record.offset() or 0
            assert self.refused or key not in self.uncommitted
            self.uncommitted.add(key)
        if not self.uncommitted:
            return
        try:
            self.consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() not in REJOINING:
                raise
            self.refused = True
            return
        assigned = self.assigned  # what was revoked is read by its next owner
        self.read.update(key for key in self.uncommitted if key[0] in assigned or not self.refused)
        self.uncommitted.clear()
        self.refused = False

    @property
    def assigned(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}


@contextmanager
def reader(bootstrap: str, config: dict[str, str]) -> Iterator[Reader]:
    classic = {} if config is CONSUMER else {"heartbeat.interval.ms": 50}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **classic,
            **config,
        }
    )
    consumer.subscribe(["t"])
    try:
        yield Reader(consumer)
    finally:
        consumer.close()


class Load:
    """Records that are produced while consumers come and go."""

    def __init__(self, bootstrap: str) -> None:
        self.producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        self.count = 0

    def settle(self, readers: list[Reader]) -> None:
        """Produce and read until each reader has its share of the partitions."""

        def settled() -> bool:
            self.producer.produce("t", b"v", partition=self.count % PARTITIONS)
            self.count += 1
            for each in readers:
                each.poll()
            assigned = [each.assigned for each in readers]
            together = sorted(index for each in assigned for index in each)
            return all(assigned) and together == list(range(PARTITIONS))

        until(settled)

    def finish(self, readers: list[Reader], every: list[Reader]) -> None:
        """Read to the end; each record has been read once."""
        assert self.producer.flush(10) == 0

        def total() -> Counter[tuple[int, int]]:
            return sum((each.read for each in every), Counter())

        def all_read() -> bool:
            for each in readers:
                each.poll()
            return total().total() >= self.count

        until(all_read)
        assert set(total().values()) == {1}
        assert total().total() == self.count


@pytest.mark.kafka(topics={"t": PARTITIONS}, settings=SETTINGS)
@pytest.mark.parametrize("classic", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
def test_a_group_migrates_to_the_consumer_protocol_and_back(
    kafka_broker: ClusterFixture, classic: dict[str, str]
) -> None:
    """One of the classic protocol, others of the consumer protocol; then the classic one again."""
    load, every = Load(kafka_broker.bootstrap), []

    def kind() -> object:
        admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
        [group] = admin.list_consumer_groups().result().valid
        return group.type

    with ExitStack() as stay, ExitStack() as first_stays, ExitStack() as leave:

        def come(stack: ExitStack, config: dict[str, str]) -> Reader:
            every.append(stack.enter_context(reader(kafka_broker.bootstrap, config)))
            return every[-1]

        first = come(first_stays, classic)
        load.settle([first])
        assert kind() is ConsumerGroupType.CLASSIC
        second = come(leave, CONSUMER)
        load.settle([first, second])
        third = come(stay, classic)
        load.settle([first, second, third])
        assert kind() is ConsumerGroupType.CONSUMER
        first_stays.close()
        load.settle([second, third])
        leave.close()
        load.settle([third])
        assert kind() is ConsumerGroupType.CLASSIC
        load.finish([third], every)
    ends = {TopicPartition("t", at): 0 for at in range(PARTITIONS)}
    assert kafka_broker.committed("g").keys() == ends.keys()
    assert sum(kafka_broker.committed("g").values()) == load.count
