"""Interceptors see and change records, and never fail a call (KIP-42)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from kafkawire.blocking import Consumer as BlockingConsumer
from kafkawire.blocking import Producer as BlockingProducer
from kafkawire.client.config import Setting
from kafkawire.client.consumer import ConsumerRecord, OffsetAndMetadata, TopicPartition
from kafkawire.client.failures import SerializationFailed
from kafkawire.client.producer import ProducerRecord
from kafkawire.errors import InvalidValue
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer, RecordMetadata
from kafkawire.net.server_thread import ServerThread
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.records import Headers

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 1})]
WHERE = TopicPartition("t", 0)
Record = ProducerRecord[bytes, str]
Ended = list[tuple[Any, int | None, type[BaseException] | None]]
"""(value, offset, class of the error) of acknowledgements."""


def to_bytes(_topic: str, _headers: Headers, text: str) -> bytes:
    return text.encode()


def add_header(record: Record) -> Record:
    return record._replace(headers=(*record.headers, ("trace", b"1")))


def upper(record: Record) -> Record:
    return record._replace(value=record.value and record.value.upper())


def fails(*_: Any) -> Any:
    raise ZeroDivisionError("of an interceptor")


def returns_nothing(*_: Any) -> Any:
    return None


def collector(ended: Ended) -> Any:
    def collect(record: Any, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        offset = None if metadata is None else metadata.offset
        ended.append((record.value, offset, None if error is None else type(error)))

    return collect


def reading(broker: ServerThread, **more: Setting) -> dict[str, Setting]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    here = {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
    return {**here, "auto.offset.reset": "earliest", **given}


def test_records_pass_interceptors_before_they_are_serialized(
    kafka_broker: ServerThread, caplog: pytest.LogCaptureFixture
) -> None:
    ended: Ended = []

    async def scenario() -> None:
        here = {"bootstrap.servers": kafka_broker.bootstrap}
        async with Producer(
            here,
            value_serializer=to_bytes,
            on_send=[add_header, fails, returns_nothing, upper],
            on_acknowledgement=[fails, collector(ended)],
        ) as producer:
            future = await producer.send("t", "apples")
            seen_first = len(ended)
            assert (await future).offset == 0
            assert (seen_first, ended) == (0, [("APPLES", 0, None)])
        async with Consumer(reading(kafka_broker)) as consumer:
            consumer.assign([WHERE])
            (record,) = await consumer.poll()
            assert (record.value, record.headers) == (b"APPLES", (("trace", b"1"),))

    with caplog.at_level(logging.WARNING, "kafkawire.producer"):
        asyncio.run(scenario())
    messages = [each.getMessage() for each in caplog.records]
    assert [each.split()[1] for each in messages] == ["fails", "returns_nothing", "fails"]
    assert caplog.records[0].exc_info is not None


def test_a_record_that_is_not_delivered_is_acknowledged_with_its_error(
    kafka_broker: ServerThread,
) -> None:
    ended: Ended = []

    async def scenario() -> None:
        here = {"bootstrap.servers": kafka_broker.bootstrap}
        async with Producer(
            here,
            value_serializer=to_bytes,
            on_acknowledgement=[collector(ended)],
        ) as producer:
            with pytest.raises(SerializationFailed):
                await producer.send("t", 5)
            with pytest.raises(InvalidValue):
                await producer.send("t", "x", partition="0")  # type: ignore[arg-type]
            kafka_broker.fault("Produce", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED") as it:
                await producer.deliver("t", "y")
            future = await producer.send("t", "z")
            future.cancel()
        assert ended == [
            (5, None, SerializationFailed),
            ("x", None, InvalidValue),
            ("y", None, it.type),
            ("z", None, asyncio.CancelledError),
        ]

    asyncio.run(scenario())


@pytest.mark.parametrize("automatic", [False, True])
def test_interceptors_see_what_is_returned_and_committed(
    kafka_broker: ServerThread, automatic: bool, caplog: pytest.LogCaptureFixture
) -> None:
    commits: list[Mapping[TopicPartition, OffsetAndMetadata]] = []

    def shorten(record: ConsumerRecord[bytes, str]) -> ConsumerRecord[bytes, str]:
        return record._replace(value=record.value and record.value[:2])

    async def scenario() -> None:
        here = {"bootstrap.servers": kafka_broker.bootstrap}
        async with Producer(here) as producer:
            for value in (b"apples", b"pears"):
                await producer.deliver("t", value)
        async with Consumer(
            reading(kafka_broker, enable_auto_commit=automatic),
            value_deserializer=lambda _topic, _headers, data: data.decode(),
            on_consume=[fails, shorten],
            on_commit=[fails, commits.append],
        ) as consumer:
            consumer.assign([WHERE])
            assert (await anext(consumer)).value == "ap"
            assert [each.value for each in await consumer.poll()] == ["pe"]
            if not automatic:
                assert commits == []
                await consumer.commit({WHERE: 1})
                assert commits == [{WHERE: OffsetAndMetadata(1)}]
        assert [each[WHERE].offset for each in commits][-1] == (2 if automatic else 1)

    with caplog.at_level(logging.WARNING, "kafkawire.consumer"):
        asyncio.run(scenario())
    assert {each.getMessage() for each in caplog.records} == {"interceptor fails failed"}


def test_without_asyncio(kafka_broker: ServerThread) -> None:
    ended: Ended = []
    commits: list[Mapping[TopicPartition, OffsetAndMetadata]] = []
    with BlockingProducer(
        {"bootstrap.servers": kafka_broker.bootstrap},
        on_send=[lambda record: record._replace(key=b"k")],
        on_acknowledgement=[collector(ended)],
    ) as producer:
        producer.deliver("t", b"v")
    assert ended == [(b"v", 0, None)]
    with BlockingConsumer(
        reading(kafka_broker),
        on_consume=[lambda record: record._replace(value=record.key)],
        on_commit=[commits.append],
    ) as consumer:
        consumer.assign([WHERE])
        assert consumer.poll()[0].value == b"k"
    assert [each[WHERE].offset for each in commits] == [1]
