"""Compares columns with records at the same Apache Kafka broker: consumed, and produced.

Every client reads one partition that librdkafka wrote, and writes a topic of its own. A figure is
the wall-clock time of a run per record, connecting included. librdkafka consumes in batches of
CONSUMED records, with its default settings and with long queues. The broker is warm: one round
does not count; each round begins with another client.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

import aiokafka
import confluent_kafka
import pyarrow as pa

from kafkawire.client.consumer import TopicPartition
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.records import RecordBatches
from tests.real.broker import running
from tests.real.java import install
from tests.real.wire import Wire

from ..measure import Figure, figure, rotated
from .records import (
    BATCH,
    LINGER_MS,
    _delete,
    _topic,
    confluent_producer,
    read_ours,
    send_aiokafka,
    send_ours,
)

SIZES: Final = {100: 1_000_000, 1024: 200_000}
"""Bytes of a value, and how many records a run has; a tenth of them for clients that are slow."""
CONSUMED: Final = 500
ROWS: Final = 10_000
"""Rows of a batch that is sent."""
SLOW: Final = 10
FETCH_VERSION: Final = 11
"""The last one but one with names of topics."""
CODECS: Final = ("none", "lz4")
LONG_QUEUES: Final[dict[str, object]] = {
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 1_048_576,
    "fetch.queue.backoff.ms": 1,
}

Read = Callable[[str, str, int], None]
Send = Callable[[str, str, bytes, int], None]


def read_columns(bootstrap: str, topic: str, many: int) -> None:
    """Read records with kafkawire, as columns."""

    async def run() -> None:
        async with Consumer({"bootstrap.servers": bootstrap}) as consumer:
            where = TopicPartition(topic, 0)
            consumer.assign([where])
            consumer.seek_to_beginning(where)
            left = many
            async for batch in consumer.batches():
                left -= batch.num_rows
                if left <= 0:
                    return

    asyncio.run(run())


def read_confluent(bootstrap: str, topic: str, many: int, **settings: object) -> None:
    """Read records with librdkafka, many per call."""
    config = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({**config, **settings})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    left = many
    while left > 0:
        left -= len(consumer.consume(min(CONSUMED, left), timeout=20))
    consumer.close()


def read_confluent_ahead(bootstrap: str, topic: str, many: int) -> None:
    """Read records with librdkafka, with queues that its fetches do not wait for."""
    read_confluent(bootstrap, topic, many, **LONG_QUEUES)


def read_aiokafka(bootstrap: str, topic: str, many: int) -> None:
    """Read records with aiokafka, many per call."""

    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        await consumer.start()
        left = many
        try:
            while left > 0:
                records = await consumer.getmany(timeout_ms=20_000, max_records=CONSUMED)
                left -= sum(map(len, records.values()))
        finally:
            await consumer.stop()

    asyncio.run(run())


class Receiver(Wire):
    """A connection that receives into one buffer."""

    def _read(self, size: int) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            view = view[self.socket.recv_into(view) :]
        return bytes(data)


def receive_only(bootstrap: str, topic: str, many: int) -> None:
    """Receive responses over a blocking socket, without looking at their records.

    What remains is the work of the broker and of the kernel: no client can be faster.
    """
    port = int(bootstrap.rpartition(":")[2])
    size = 1 << 20
    with Receiver(port) as wire:
        offset = 0
        while offset < many:
            part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size)
            request = FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=size,
                topics=[FetchTopic(topic=topic, partitions=[part])],
            )
            response = wire.exchange(request, FETCH_VERSION, FetchResponse)
            records = response.responses[0].partitions[0].records
            assert records
            *_, last = RecordBatches(records)
            offset = last.last_offset + 1


def send_columns(bootstrap: str, topic: str, value: bytes, many: int) -> None:
    """Send records with kafkawire, as columns."""
    batch = pa.record_batch({"value": [value] * ROWS})

    async def run() -> None:
        async with Producer(
            {
                "bootstrap.servers": bootstrap,
                "batch.size": BATCH,
                "linger.ms": LINGER_MS,
            }
        ) as producer:
            for _ in range(many // ROWS):
                await producer.send_batch(topic, batch)
            await producer.flush()

    asyncio.run(run())


def send_confluent(
    bootstrap: str, topic: str, value: bytes, many: int, codec: str = "none"
) -> None:
    """Send records with librdkafka, one per call, which is all that it has."""
    settings = {"enable.idempotence": True, "compression.type": codec}
    producer = confluent_producer(bootstrap, **settings)
    for _ in range(many):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(60) == 0


def send_records(bootstrap: str, topic: str, value: bytes, many: int) -> None:
    """Send records with kafkawire, one per call."""
    send_ours(bootstrap, topic, value, many, True)


def send_records_aiokafka(bootstrap: str, topic: str, value: bytes, many: int) -> None:
    """Send records with aiokafka, one per call."""
    send_aiokafka(bootstrap, topic, value, many, True)


READERS: Final[dict[str, tuple[Read, int]]] = {
    "kafkawire, columns": (read_columns, 1),
    "confluent-kafka": (read_confluent, 1),
    "confluent-kafka, long queues": (read_confluent_ahead, 1),
    "kafkawire, records": (read_ours, 1),
    "aiokafka": (read_aiokafka, SLOW),
    "received only": (receive_only, 1),
}
"""Client -> how it reads, and by what the number of its records is divided."""
SENDERS: Final[dict[str, tuple[Send, int]]] = {
    "kafkawire, columns": (send_columns, 1),
    "confluent-kafka": (send_confluent, 1),
    "kafkawire, records": (send_records, SLOW),
    "aiokafka": (send_records_aiokafka, SLOW),
}
"""Client -> how it sends, idempotently, and the same divisor."""


def run(rounds: int) -> list[Figure]:
    """Measure; microseconds per record."""
    values: dict[tuple[str, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, running(install(), Path(folder)) as broker:
        for turn in range(-1, rounds):
            for size, many in SIZES.items():
                value = (b"%d," % (1 << 60) * size)[:size]
                taken = _sent(broker.bootstrap, value, many, turn)
                for codec in CODECS:
                    taken |= _read(broker.bootstrap, value, many, codec, turn)
                for key, micros in taken.items() if turn >= 0 else ():
                    values.setdefault(key, []).append(micros)
    return [figure(*key, "µs", micros) for key, micros in values.items()]


Taken = dict[tuple[str, str, str], float]
"""Suite, case, client -> microseconds per record."""


def _sent(bootstrap: str, value: bytes, many: int, turn: int) -> Taken:
    """Have each client write a topic of its own."""
    taken: Taken = {}
    for name in rotated(SENDERS, turn):
        send, divisor = SENDERS[name]
        topic = _topic(bootstrap)
        start = perf_counter()
        send(bootstrap, topic, value, many // divisor)
        micros = (perf_counter() - start) / (many // divisor) * 1e6
        taken["produce-columns", f"produce {len(value)} B", name] = micros
        _delete(bootstrap, [topic])
    return taken


def _read(bootstrap: str, value: bytes, many: int, codec: str, turn: int) -> Taken:
    """Have each client read the same topic."""
    taken: Taken = {}
    topic = _topic(bootstrap)
    send_confluent(bootstrap, topic, value, many, codec)
    for name in rotated(READERS, turn):
        read, divisor = READERS[name]
        start = perf_counter()
        read(bootstrap, topic, many // divisor)
        micros = (perf_counter() - start) / (many // divisor) * 1e6
        taken["consume-columns", f"consume {len(value)} B, {codec}", name] = micros
    _delete(bootstrap, [topic])
    return taken
