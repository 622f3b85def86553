"""Keys and values of other types: functions of the user make bytes of them, and of bytes."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any, ClassVar, NamedTuple, assert_type

import pytest

from kafkawire.blocking import Consumer as BlockingConsumer
from kafkawire.blocking import Producer as BlockingProducer
from kafkawire.blocking import ShareConsumer as BlockingShareConsumer
from kafkawire.client.config import Setting
from kafkawire.client.consumer import ConsumerRecord, TopicPartition
from kafkawire.client.consumer.failures import DeserializationFailed
from kafkawire.client.failures import SerializationFailed
from kafkawire.client.share_consumer import AcknowledgeType
from kafkawire.errors import InvalidRecordValue, InvalidValue
from kafkawire.net.admin import Admin
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread
from kafkawire.net.share_consumer import ShareConsumer
from kafkawire.records import Headers, TimestampType
from kafkawire.values import (
    Schema,
    SchemaKey,
    SchemaType,
    Subject,
    ValueDecoder,
    ValueFormat,
    deserializer,
    serializer,
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 1})]
WHERE = TopicPartition("t", 0)


class Order(NamedTuple):
    """A value of these tests."""

    amount: int


def to_bytes(topic: str, headers: Headers, order: Order) -> bytes:
    return json.dumps([topic, len(headers), order.amount]).encode()


def to_order(topic: str, headers: Headers, data: bytes) -> Order:
    read_topic, number, amount = json.loads(data)
    assert (read_topic, number) == (topic, len(headers))
    return Order(amount)


def text_to_bytes(_topic: str, headers: Headers, text: str) -> bytes:
    assert type(headers) is tuple  # also where the user has a list
    return text.encode()


def to_text(_topic: str, _headers: Headers, data: bytes) -> str:
    return data.decode()


def reading(broker: ServerThread, **more: Setting) -> dict[str, Setting]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    here = {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
    return {**here, "auto.offset.reset": "earliest", "enable.auto.commit": False, **given}


async def write(broker: ServerThread, *values: bytes | None) -> None:
    async with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for value in values:
            await producer.send("t", value)


def test_keys_and_values_have_the_types_of_the_functions(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        here = {"bootstrap.servers": kafka_broker.bootstrap}
        async with Producer(here, key_serializer=text_to_bytes, value_serializer=to_bytes) as one:
            await one.deliver("t", Order(7), key="alice", headers=(("h", b""),))
            await one.deliver("t", None, key="bob")
        assert_type(one, Producer[str, Order])
        functions = reading(kafka_broker)
        async with Consumer(
            functions, key_deserializer=to_text, value_deserializer=to_order
        ) as consumer:
            assert_type(consumer, Consumer[str, Order])
            consumer.assign([WHERE])
            first = await anext(consumer)
            assert_type(first.value, Order | None)
            assert (first.key, first.value, first.headers) == ("alice", Order(7), (("h", b""),))
            second = await anext(consumer)
            assert (second.key, second.value) == ("bob", None)
        async with Consumer(functions, value_deserializer=to_order) as other:
            assert_type(other, Consumer[bytes, Order])
            other.assign([WHERE])
            assert [(each.key, each.value) for each in await other.poll()] == [
                (b"alice", Order(7)),
                (b"bob", None),
            ]

    asyncio.run(scenario())


def test_without_functions_keys_and_values_are_bytes() -> None:
    assert_type(Consumer({"bootstrap.servers": "h:1"}), Consumer[bytes, bytes])
    assert_type(Producer({"bootstrap.servers": "h:1"}), Producer[bytes, bytes])


def test_a_record_that_cannot_be_serialized_is_not_sent(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        here = {"bootstrap.servers": kafka_broker.bootstrap}
        async with Producer(here, key_serializer=text_to_bytes, value_serializer=to_bytes) as one:
            with pytest.raises(SerializationFailed, match="the value of a record of t: Attr") as it:
                await one.send("t", "not an order")  # type: ignore[arg-type]
            assert isinstance(it.value.__cause__, AttributeError)
            with pytest.raises(SerializationFailed, match="the key of a record of t: Attr"):
                await one.send("t", Order(1), key=b"not a text")  # type: ignore[arg-type]
            assert (await one.deliver("t", Order(1))).offset == 0

    asyncio.run(scenario())


def test_a_serializer_that_returns_no_bytes_is_an_invalid_value(
    kafka_broker: ServerThread,
) -> None:
    def wrong(_topic: str, _headers: Headers, value: str) -> bytes:
        return value  # type: ignore[return-value]

    async def scenario() -> None:
        here = {"bootstrap.servers": kafka_broker.bootstrap}
        async with Producer(here, value_serializer=wrong) as one:
            with pytest.raises(InvalidValue, match="value"):
                await one.send("t", "text")

    asyncio.run(scenario())


@pytest.mark.parametrize("iterates", [False, True])
def test_the_position_stays_at_a_record_that_cannot_be_deserialized(
    kafka_broker: ServerThread, iterates: bool
) -> None:
    async def scenario() -> None:
        await write(kafka_broker, b'["t", 0, 1]', b"not JSON", b'["t", 0, 3]')
        async with Consumer(reading(kafka_broker), value_deserializer=to_order) as consumer:
            consumer.assign([WHERE])

            async def next_value() -> Order | None:
                if iterates:
                    return (await anext(consumer)).value
                (record,) = await consumer.poll()
                return record.value

            assert await next_value() == Order(1)
            for _ in range(2):  # as often as the user tries
                with pytest.raises(DeserializationFailed, match=r"value at offset 1.*t-0") as it:
                    await next_value()
                assert (it.value.partitions, it.value.offset) == ((WHERE,), 1)
                assert it.value.record.value == b"not JSON"
                assert await consumer.position(WHERE) == 1
            await consumer.commit()
            assert (await consumer.committed(WHERE))[WHERE].offset == 1  # type: ignore[union-attr]
            consumer.seek(it.value.partitions[0], it.value.offset + 1)
            assert await next_value() == Order(3)
            assert await consumer.position(WHERE) == 3

    asyncio.run(scenario())


def test_the_error_of_a_record_pickles() -> None:
    record = ConsumerRecord("t", 0, 5, 1, b"k", b"v", (), TimestampType.CREATE_TIME, 3)
    error = DeserializationFailed(record, "key", "ValueError: no")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.record, again.offset) == (str(error), record, 5)
    assert "cannot deserialize the key at offset 5: ValueError: no: t-0" in str(error)
    failed = pickle.loads(pickle.dumps(SerializationFailed("t", "value", "no")))
    assert (failed.topic, failed.part, failed.reason) == ("t", "value", "no")


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_a_record_of_a_share_group_that_cannot_be_deserialized_is_released(
    kafka_broker: ServerThread, mode: str
) -> None:
    async def scenario() -> None:
        await write(kafka_broker, b'["t", 0, 1]', b"not JSON", b'["t", 0, 3]')
        here: dict[str, Setting] = {
            "bootstrap.servers": kafka_broker.bootstrap,
            "group.id": "s",
            "share.acknowledgement.mode": mode,
        }
        async with Admin({"bootstrap.servers": kafka_broker.bootstrap}) as admin:
            await admin.alter_group_config("s", {"share.auto.offset.reset": "earliest"})
        async with ShareConsumer(here, value_deserializer=to_order) as consumer:
            assert_type(consumer, ShareConsumer[bytes, Order])
            consumer.subscribe(["t"])
            values: list[Order | None] = []
            errors: list[DeserializationFailed] = []
            while len(values) < 2 or len(errors) < 2:
                try:
                    for record in await consumer.poll():
                        values.append(record.value)
                        if mode == "explicit":
                            consumer.acknowledge(record)
                except DeserializationFailed as error:
                    errors.append(error)
            assert values == [Order(1), Order(3)]
            assert {(each.partitions, each.offset) for each in errors} == {((WHERE,), 1)}
            if mode == "explicit":
                consumer.acknowledge(errors[-1], AcknowledgeType.REJECT)
            assert await consumer.commit() == {WHERE: None}
            if mode == "explicit":
                assert await consumer.poll(0.3) == []

    asyncio.run(scenario())


class Schemas:
    """Has one Avro schema, of id 7."""

    is_local: ClassVar[bool] = True

    def __init__(self) -> None:
        text = json.dumps(
            {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "long"}]}
        )
        self._schema = Schema("t-value", SchemaType.AVRO, text, (), 7)

    def by_key(self, key: SchemaKey, subject: Subject | None) -> Schema | None:
        assert subject == Subject("t", False)
        return self._schema if key == 7 else None

    def by_subject(self, subject: Subject) -> Schema | None:
        return self._schema if subject.name == "t-value" else None


def test_values_have_the_schemas_of_a_registry(kafka_broker: ServerThread) -> None:
    avro = ValueDecoder(ValueFormat.AVRO, [Schemas()])
    here = {"bootstrap.servers": kafka_broker.bootstrap}
    with BlockingProducer(here, value_serializer=serializer(avro)) as producer:
        producer.deliver("t", {"amount": 42})
        with pytest.raises(SerializationFailed, match="not a value of the schema"):
            producer.deliver("t", {"price": 1})
    with BlockingProducer(here) as raw:
        raw.deliver("t", b"\0\0\0\0\7")
    with BlockingConsumer(reading(kafka_broker), value_deserializer=deserializer(avro)) as consumer:
        assert_type(consumer, BlockingConsumer[bytes, Any])
        consumer.assign([WHERE])
        assert [record.value for record in consumer.poll()] == [{"amount": 42}]
        with pytest.raises(DeserializationFailed, match="InvalidRecordValue"):
            consumer.poll()
    with pytest.raises(InvalidRecordValue, match="auto"):
        serializer(ValueDecoder())


def test_without_asyncio(kafka_broker: ServerThread) -> None:
    here = {"bootstrap.servers": kafka_broker.bootstrap}
    headers = [("a", b"1"), ("b", b"2")]
    with BlockingProducer(here, key_serializer=text_to_bytes) as producer:
        assert producer.send("t", b"v", key="k", headers=headers).result(10).offset == 0
    with BlockingConsumer(reading(kafka_broker), key_deserializer=to_text) as consumer:
        consumer.assign([WHERE])
        record = next(consumer)
        assert (record.key, record.headers) == ("k", tuple(headers))
        assert_type(consumer, BlockingConsumer[str, bytes])
    assert_type(
        BlockingShareConsumer({**here, "group.id": "s"}, key_deserializer=to_text),
        BlockingShareConsumer[str, bytes],
    )
