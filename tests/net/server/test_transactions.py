"""Transactions of librdkafka and of Kafka's own clients at the fixture `kafka_cluster`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafkawire.broker.groups.coordinators import partition_for
from kafkawire.broker.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafkawire.net.nodes.cluster_thread import ClusterThread
from tests.interop.implementations import until
from tests.real.compiler import compiled
from tests.real.java import Installation

SECONDS = 60.0
PARTITIONS = 3
SOURCE = Path(__file__).with_name("Transactions.java")
pytestmark = pytest.mark.timeout(600)


def producer(
    cluster: ClusterThread, transactional_id: str = "x", timeout_ms: int = 60_000
) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "delivery.timeout.ms": timeout_ms,
            "log_level": 0,
        }
    )
    made.init_transactions(SECONDS)
    return made


@contextmanager
def consumer(cluster: ClusterThread, topic: str, group: str) -> Iterator[Consumer]:
    made = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    made.subscribe([topic])
    try:
        yield made
    finally:
        made.close()


def read(of: Consumer, count: int) -> list[bytes]:
    """Read records until there are that many."""
    found: list[bytes] = []

    def done() -> bool:
        message = of.poll(0.1)
        if message is not None and message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            found.append(value)
        return len(found) >= count

    until(done)
    return found


def send(of: Producer, topic: str, values: list[bytes]) -> None:
    of.begin_transaction()
    for each in values:
        of.produce(topic, each)
    assert of.flush(SECONDS) == 0


def test_records_are_consumed_transformed_and_produced_exactly_once(
    kafka_cluster: ClusterThread,
) -> None:
    first = producer(kafka_cluster)
    send(first, "in", [b"a", b"b"])
    first.commit_transaction(SECONDS)
    send(first, "in", [b"aborted"])
    first.abort_transaction(SECONDS)
    send(first, "in", [b"c"])
    first.commit_transaction(SECONDS)
    with consumer(kafka_cluster, "in", "g") as source:
        for commit in (False, True):
            values = read(source, 3)
            assert values == [b"a", b"b", b"c"]
            send(first, "out", [each + b"!" for each in values])
            positions = source.position(source.assignment())
            metadata = source.consumer_group_metadata()
            first.send_offsets_to_transaction(positions, metadata, SECONDS)
            if commit:
                first.commit_transaction(SECONDS)
            else:
                first.abort_transaction(SECONDS)
                [start] = source.committed([TopicPartition("in", 0)], SECONDS)
                assert start.offset < 0
                source.seek(TopicPartition("in", 0, 0))
        [end] = source.committed([TopicPartition("in", 0)], SECONDS)
        assert end.offset == positions[0].offset
    with consumer(kafka_cluster, "out", "h") as result:
        assert read(result, 3) == [b"a!", b"b!", b"c!"]
    send(first, "out", [b"zombie"])
    second = producer(kafka_cluster)
    with pytest.raises(KafkaException, match="fenced"):
        first.commit_transaction(SECONDS)
    send(second, "out", [b"last"])
    second.commit_transaction(SECONDS)
    with consumer(kafka_cluster, "out", "i") as result:
        assert read(result, 4) == [b"a!", b"b!", b"c!", b"last"]


@pytest.mark.parametrize("role", ["leader", "coordinator"])
def test_a_transaction_outlives_a_leader_and_a_coordinator(
    kafka_cluster: ClusterThread, role: str
) -> None:
    """Each is killed between the records and the end of a transaction."""
    writer = producer(kafka_cluster)
    send(writer, "t", [b"before"])
    writer.commit_transaction(SECONDS)
    where = TRANSACTIONS_TOPIC, partition_for("x", PARTITIONS)
    kafka_cluster.wait(lambda: len(kafka_cluster.isr(*where)) == PARTITIONS)
    send(writer, "t", [b"meanwhile"])
    victim = kafka_cluster.leader("t") if role == "leader" else kafka_cluster.leader(*where)
    kafka_cluster.kill(victim)
    writer.commit_transaction(SECONDS)
    send(writer, "t", [b"aborted"])
    writer.abort_transaction(SECONDS)
    send(writer, "t", [b"after"])
    writer.commit_transaction(SECONDS)
    with consumer(kafka_cluster, "t", "g") as reader:
        assert read(reader, 3) == [b"before", b"meanwhile", b"after"]


def test_a_group_and_its_offsets_outlive_their_coordinator(kafka_cluster: ClusterThread) -> None:
    writer = producer(kafka_cluster)
    send(writer, "t", [b"a", b"b"])
    writer.commit_transaction(SECONDS)
    where = OFFSETS_TOPIC, partition_for("g", PARTITIONS)
    with consumer(kafka_cluster, "t", "g") as reader:
        assert read(reader, 2) == [b"a", b"b"]
        writer.begin_transaction()
        positions = reader.position(reader.assignment())
        metadata = reader.consumer_group_metadata()
        writer.send_offsets_to_transaction(positions, metadata, SECONDS)
        kafka_cluster.wait(lambda: len(kafka_cluster.isr(*where)) == PARTITIONS)
        kafka_cluster.kill(kafka_cluster.leader(*where))
        writer.commit_transaction(SECONDS)
        [found] = reader.committed([TopicPartition("t", 0)], SECONDS)
        assert found.offset == positions[0].offset


@pytest.mark.kafka_cluster(brokers=1)
def test_a_transaction_that_takes_too_long_is_aborted(kafka_cluster: ClusterThread) -> None:
    slow = producer(kafka_cluster, timeout_ms=5000)
    send(slow, "t", [b"late"])
    kafka_cluster.advance(7.0)
    with pytest.raises(KafkaException, match="fenced"):
        slow.commit_transaction(SECONDS)
    quick = producer(kafka_cluster, "y")
    send(quick, "t", [b"in time"])
    quick.commit_transaction(SECONDS)
    with consumer(kafka_cluster, "t", "g") as reader:
        assert read(reader, 1) == [b"in time"]


def test_kafka_s_own_clients_have_transactions_of_version_2(
    kafka_cluster: ClusterThread, installation: Installation
) -> None:
    command = compiled(installation, SOURCE).command(SOURCE.stem, kafka_cluster.bootstrap)
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout.splitlines() == [
        "in [v0, v2]",
        "out [v0!, v2!]",
        "committed 8",
        "fenced ProducerFencedException",
        "then [last]",
        "state CompleteCommit",
        "listed 1",
        "producers 1",
    ], done.stderr
