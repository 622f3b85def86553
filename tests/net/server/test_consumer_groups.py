"""librdkafka's consumers with `group.protocol=consumer` at our brokers (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import confluent_kafka
import pytest

from kafkawire import ApiKey, to_json
from kafkawire.blocking import Admin
from kafkawire.client.consumer import TopicPartition
from kafkawire.client.failures import BrokerError
from kafkawire.net.fixture import ClusterFixture
from kafkawire.protocol.versioned import decode_versioned
from tests.cli.reports import run
from tests.interop.implementations import until

SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.min.heartbeat.interval.ms": "50",
}
COUNT = 40


@contextmanager
def consumer(bootstrap: str, topic: str = "t", **more: str) -> Iterator[confluent_kafka.Consumer]:
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "g",
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        **more,
    }
    found = confluent_kafka.Consumer(config)
    found.subscribe([topic])
    try:
        yield found
    finally:
        found.close()


def have(*counts: int, of: list[confluent_kafka.Consumer]) -> bool:
    for each in of:
        assert each.poll(0.02) is None
    return sorted(len(each.assignment()) for each in of) == sorted(counts)


@pytest.mark.kafka(topics={"t": 4, "order-1": 1, "order-2": 1}, settings=SETTINGS)
class TestConsumers:
    def test_partitions_move_as_consumers_come_and_go(self, kafka_broker: ClusterFixture) -> None:
        with ExitStack() as others, consumer(kafka_broker.bootstrap) as first:
            until(lambda: have(4, of=[first]))
            second = others.enter_context(consumer(kafka_broker.bootstrap))
            until(lambda: have(2, 2, of=[first, second]))
            third = others.enter_context(consumer(kafka_broker.bootstrap))
            until(lambda: have(1, 1, 2, of=[first, second, third]))
            others.close()
            until(lambda: have(4, of=[first]))
        apis = {each.request.api_key for each in kafka_broker.requests}
        assert ApiKey.CONSUMER_GROUP_HEARTBEAT in apis
        assert ApiKey.JOIN_GROUP not in apis

    def test_records_are_read_once_and_offsets_committed(
        self, kafka_broker: ClusterFixture
    ) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker.bootstrap})
        for at in range(COUNT):
            producer.produce("t", str(at).encode(), partition=at % 4)
        assert producer.flush(10) == 0
        with consumer(kafka_broker.bootstrap) as first:
            records = first.consume(COUNT, 10)
            assert sorted(int(each.value() or b"") for each in records) == list(range(COUNT))
        committed = kafka_broker.committed("g")
        assert committed == {TopicPartition("t", at): COUNT // 4 for at in range(4)}
        producer.produce("t", b"last", partition=0)
        assert producer.flush(10) == 0
        with consumer(kafka_broker.bootstrap) as again:
            assert [each.value() for each in again.consume(1, 10)] == [b"last"]

    def test_a_regular_expression(self, kafka_broker: ClusterFixture) -> None:
        with consumer(kafka_broker.bootstrap, "^order-.*") as first:
            until(lambda: have(2, of=[first]))
            assert {each.topic for each in first.assignment()} == {"order-1", "order-2"}

    def test_the_group_is_described_with_its_members(self, kafka_broker: ClusterFixture) -> None:
        """By the admin client as other groups are, and by the command."""
        with consumer(kafka_broker.bootstrap, **{"client.id": "billing"}) as first:
            until(lambda: have(4, of=[first]))
            with Admin({"bootstrap.servers": kafka_broker.bootstrap}) as admin:
                group = admin.describe_group("g")
                with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
                    admin.describe_group("none")
            shown = run("groups", "-b", kafka_broker.bootstrap, "--group", "g")
        assert (group.state, group.protocol) == ("Stable", "uniform")
        (member,) = group.members
        assert member.client_id == "billing"
        version, assignment = decode_versioned("ConsumerProtocolAssignment", member.assignment)
        (topic,) = to_json(assignment, version)["assignedPartitions"]
        assert (topic["topic"], sorted(topic["partitions"])) == ("t", [0, 1, 2, 3])
        assert shown.exit_code == 0, shown.output
        assert "Stable" in shown.stdout
