"""Our clients and a real Apache Kafka 3.9: its newest versions of everything, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from kafkawire.blocking import Admin, Consumer, Producer, ShareConsumer
from kafkawire.client.failures import ClientError
from kafkawire.net.admin import TransactionListing
from tests.interop.implementations import until
from tests.real.broker import Broker, running
from tests.real.java import install

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

VERSION: Final = "3.9.1"
PARTITIONS: Final = 2
NEW_GROUPS: Final = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.initial.rebalance.delay.ms": "0",
}
"""Groups of KIP-848 are a preview in 3.9."""


@pytest.fixture(scope="module")
def kafka_3_9(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running(install(version=VERSION), tmp_path_factory.mktemp("3.9"), NEW_GROUPS) as broker:
        yield broker


@pytest.fixture
def here(kafka_3_9: Broker) -> dict[str, str]:
    return {"bootstrap.servers": kafka_3_9.bootstrap}


@pytest.fixture
def admin(here: dict[str, str]) -> Iterator[Admin]:
    with Admin(here) as admin:
        yield admin


def reading(here: dict[str, str], group: str, **more: str) -> Consumer:
    config = {**here, "group.id": group, "auto.offset.reset": "earliest"}
    return Consumer({**config, **{name.replace("_", "."): value for name, value in more.items()}})


def read(consumer: Consumer, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []

    def enough() -> bool:
        values.extend(record.value for record in consumer.poll(0.1))
        return len(values) >= count

    until(enough)
    return values


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_pipeline_of_transactions(here: dict[str, str], admin: Admin, protocol: str) -> None:
    """What is read is written once, with its offsets; what is aborted is invisible."""
    source, target = f"source-{protocol}", f"target-{protocol}"
    for topic in (source, target):
        admin.create_topic(topic, partitions=PARTITIONS)
    with Producer(here) as producer:
        for number in range(10):
            producer.deliver(source, b"%d" % number, partition=number % PARTITIONS)
    with (
        Producer({**here, "transactional.id": target}) as writer,
        reading(here, source, group_protocol=protocol, enable_auto_commit="false") as reader,
    ):
        reader.subscribe([source])
        values = read(reader, 10)
        writer.begin()
        writer.send(target, b"aborted", partition=0)
        writer.flush()
        writer.abort()
        with writer.transaction():
            for value in values:
                writer.send(target, value)
            writer.send_offsets(
                {where: reader.position(where) for where in reader.assignment()},
                reader.group_metadata(),
            )
    with reading(here, f"check-{protocol}", isolation_level="read_committed") as checking:
        checking.subscribe([target])
        assert sorted(value or b"" for value in read(checking, 10)) == [
            b"%d" % n for n in range(10)
        ]
    offsets = admin.group_offsets(source)
    assert {where: offset.offset for where, offset in offsets.items()} == {
        (source, partition): 5 for partition in range(PARTITIONS)
    }
    listings = [row for row in admin.list_transactions() if row.transactional_id == target]
    assert [row.state for row in listings] == ["CompleteCommit"]
    assert all(isinstance(row, TransactionListing) for row in listings)


def test_a_later_producer_fences_an_earlier_one(here: dict[str, str], admin: Admin) -> None:
    admin.create_topic("fenced", partitions=1)
    config = {**here, "transactional.id": "fenced"}
    with Producer(config) as zombie:
        zombie.begin()
        zombie.deliver("fenced", b"zombie", partition=0)
        with Producer(config) as writer, writer.transaction():
            writer.send("fenced", b"new", partition=0)
        with pytest.raises(ClientError, match=r"INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
            zombie.commit()
    with reading(here, "fenced", isolation_level="read_committed") as checking:
        checking.subscribe(["fenced"])
        assert read(checking, 1) == [b"new"]


def test_share_groups_are_not_offered(here: dict[str, str], admin: Admin) -> None:
    admin.create_topic("shared", partitions=1)
    with ShareConsumer({**here, "group.id": "shared"}) as consumer:
        consumer.subscribe(["shared"])
        with pytest.raises(ClientError, match=r"they need Apache Kafka 4\.2 or later"):
            consumer.poll(30)
    with pytest.raises(ClientError, match="STREAMS_GROUP_DESCRIBE: the broker supports no version"):
        admin.describe_streams_groups(["streams"])
