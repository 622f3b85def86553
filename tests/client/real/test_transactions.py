"""Our transactions at Kafka and at our nodes; librdkafka reads exactly what is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import confluent_kafka
import pytest

from kafkawire.client.config import Setting
from kafkawire.client.consumer import ConsumerRecord, TopicPartition
from kafkawire.client.failures import ProducerFenced, TransactionAbortable
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread
from tests.real.broker import Broker

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
SECONDS: Final = 100.0
READING: Final[dict[str, Setting]] = {
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
}


def producer(bootstrap: str, transactional_id: str, **config: Setting) -> Producer:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    here: dict[str, Setting] = {"bootstrap.servers": bootstrap, "linger.ms": 0, **settings}
    return Producer({**here, "transactional.id": transactional_id})


def committed(bootstrap: str, topic: str) -> list[Any]:
    """Read what librdkafka finds committed in the first partition."""
    reader = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    try:
        while True:
            message = reader.poll(SECONDS)
            assert message is not None, f"the end is not reached after {found}"
            error = message.error()
            if error is None:
                found.append(message.value())
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                return found
    finally:
        reader.close()


async def some_of_each(bootstrap: str, topic: str) -> list[bytes]:
    """Commit and abort transactions; return what is committed."""
    expected = []
    async with producer(bootstrap, f"{topic}-some") as writer:
        for number in range(20):
            await writer.begin()
            values = [b"%d-%d" % (number, at) for at in range(number % 4)]
            for value in values:
                await writer.send(topic, value, partition=0)
            if number % 3:
                await writer.flush()
                await writer.abort()
            else:
                await writer.commit()
                expected += values
    return expected


@pytest.mark.kafka(topics={"t": 1})
def test_librdkafka_reads_what_is_committed_at_a_node(kafka_broker: ServerThread) -> None:
    expected = asyncio.run(some_of_each(kafka_broker.bootstrap, "t"))
    assert committed(kafka_broker.bootstrap, "t") == expected


def test_librdkafka_reads_what_is_committed_at_kafka(
    kafka: Broker, topic: Callable[..., str]
) -> None:
    name = topic()
    expected = asyncio.run(some_of_each(kafka.bootstrap, name))
    assert committed(kafka.bootstrap, name) == expected


def test_records_are_read_processed_and_written_once_at_kafka(
    kafka: Broker, topic: Callable[..., str]
) -> None:
    """One attempt is aborted, one has a member that is gone, one a producer that is fenced."""
    source, target = topic(), topic()
    where = TopicPartition(source, 0)
    here: dict[str, Setting] = {"bootstrap.servers": kafka.bootstrap}

    async def transform(writer: Producer, reader: Consumer, *, member_is_gone: bool) -> None:
        reader.seek_to_beginning(where)
        records: list[ConsumerRecord] = []
        while len(records) < 3:
            records += await reader.poll()
        group = reader.group_metadata()
        if member_is_gone:
            group = group._replace(generation_id=group.generation_id + 7)
        async with writer.transaction():
            for record in records:
                await writer.send(target, (record.value or b"") + b"!", partition=0)
            await writer.flush()
            await writer.send_offsets({where: records[-1].offset + 1}, group)

    async def scenario() -> None:
        async with Producer(here) as filling:
            for value in (b"a", b"b", b"c"):
                await filling.deliver(source, value, partition=0)
        async with (
            producer(kafka.bootstrap, source) as zombie,
            producer(kafka.bootstrap, source) as writer,
            Consumer({**here, **READING, "group.id": source}) as reader,
        ):
            reader.subscribe([source])
            while not reader.assignment():
                await reader.poll(0.1)
            await zombie.begin()
            await zombie.deliver(target, b"zombie", partition=0)
            await writer.init_transactions()
            with pytest.raises(TransactionAbortable, match="ILLEGAL_GENERATION"):
                await transform(writer, reader, member_is_gone=True)
            with pytest.raises(ProducerFenced):
                await zombie.commit()
            assert (await reader.committed(where))[where] is None
            await transform(writer, reader, member_is_gone=False)
            end = (await reader.committed(where))[where]
            assert end is not None
            assert end.offset == 3

    asyncio.run(scenario())
    assert committed(kafka.bootstrap, target) == [b"a!", b"b!", b"c!"]
