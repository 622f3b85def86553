"""Producing from asyncio.

Each record that `send` accepted gets its result in its future, in order within a partition; a
cancelled `send` has either sent nothing or the complete record.

    async with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        future = await producer.send("orders", b"value", key=b"key")    # accepted
        metadata = await future                                         # delivered
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, cast

from ..client.config import Setting
from ..client.failures import ClientClosed
from ..client.producer import Send
from ..client.producer.checking import checked, checked_headers
from ..client.producer.serializing import HeaderPairs, ProducerRecord, Serializers
from ..client.serialization import KeyT, Serializer, ValueT
from .interceptors import OnAcknowledgement, OnSend, intercepted, notify
from .producer_session import ProducerSession, RecordMetadata

if TYPE_CHECKING:
    import pyarrow as pa

    from ..client.producer.arrow import SendColumns

__all__ = ["Producer", "RecordMetadata"]

LOG: Final = logging.getLogger("kafkawire.producer")
NANOSECONDS_PER_MILLISECOND: Final = 1_000_000
SEND: Final[Callable[..., Send]] = Send
"""Send without the types of keys and values, which are bytes where it is called."""


class Producer(ProducerSession, Generic[KeyT, ValueT]):
    """Sends records, in transactions if it has a `transactional.id`.

    Configured under Kafka's names; `PRODUCER_KEYS` has all keys. key_serializer, value_serializer:
    make bytes of keys and values; without, these are bytes. If one raises an exception, `send`
    raises SerializationFailed. on_send, on_acknowledgement: interceptors (`interceptors`), called
    for each record before it is serialized, and with its result.

    Raises ConfigurationError for an unknown key or an invalid value.
    """

    def __init__(
        self,
        config: Mapping[str, Setting],
        *,
        key_serializer: Serializer[KeyT] | None = None,
        value_serializer: Serializer[ValueT] | None = None,
        on_send: Sequence[OnSend[KeyT, ValueT]] | None = None,
        on_acknowledgement: Sequence[OnAcknowledgement[KeyT, ValueT]] | None = None,
    ) -> None:
        super().__init__(config)
        self._serializers = Serializers(key_serializer, value_serializer)
        self._on_send = tuple(on_send or ())
        self._on_acknowledgement = tuple(on_acknowledgement or ())
        if any((key_serializer, value_serializer, on_send, on_acknowledgement)):
            self.send = self._send_record  # type: ignore[method-assign]  # costs others nothing

    async def send(
        self,
        topic: str,
        value: ValueT | None = None,
        *,
        key: KeyT | None = None,
        partition: int | None = None,
        headers: HeaderPairs = (),
        timestamp: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Accept a record for sending; return the future of its result.

        Waits while metadata of the topic is missing or buffer.memory is full, at most
        max.block.ms; and yields to the loop every millisecond or sooner, so that responses are
        handled however fast records come. While more than 1 MB waits for responses, 5 MB with
        idempotence, it waits for one of them after each new batch, at most a millisecond.
        timestamp: milliseconds since 1970; None is now. bytearray and memoryview are accepted as
        bytes, a list as a tuple; they are copied before this returns or waits.

        The future raises BrokerError or RequestFailed; `send` itself raises ClientClosed, and
        InvalidValue or OutOfRange for an argument of a wrong type or out of range, and, with
        `transactional.id`, LocalProtocolError outside of a transaction: then nothing was queued.
        """
        driver, machine = self._driver, self._machine
        if driver is None or machine is None:
            raise ClientClosed("the producer")
        if timestamp is None:
            timestamp = time.time_ns() // NANOSECONDS_PER_MILLISECOND
        future: asyncio.Future[RecordMetadata] = asyncio.Future(loop=driver.loop)
        now = driver.now()
        iteration = self._iteration
        if (
            (now < iteration.look_at or iteration.look(now, driver.readiness))
            and not (headers or iteration.waiting)
            and machine.join(future, topic, partition, key, value, timestamp)
        ):
            return future
        record = SEND(future, topic, partition, key, value, timestamp, headers)
        if iteration.is_over(now):
            record = checked(record)  # before its caller can change it
            await iteration.run_loop()
            driver, machine = self._running()
            now = driver.now()
        if not iteration.begun:
            iteration.begin(now, driver.loop, has_backlog=machine.has_backlog)
        effects = machine.handle(record, now)
        if machine.last_batch_number != self._last_batch_number:
            self._last_batch_number = machine.last_batch_number
            driver.wake_by(machine.next_deadline())
            if machine.has_long_backlog:
                iteration.pace()
        if effects:  # none if the record joined an open batch
            driver.perform(driver.client.dispatch(effects, now))
            waiting = self._blocked.get(future)
            if waiting is not None:
                await self._wait(future, waiting)
        return future

    async def _send_record(
        self,
        topic: str,
        value: ValueT | None = None,
        *,
        key: KeyT | None = None,
        partition: int | None = None,
        headers: HeaderPairs = (),
        timestamp: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Intercept and serialize a record, then send it as `send` does."""
        record = ProducerRecord(topic, value, key, partition, checked_headers(headers), timestamp)
        record = intercepted(self._on_send, record, LOG)
        try:
            future = await self._send_bytes(record, *self._serializers.bytes_of(record))
        except BaseException as error:
            notify(self._on_acknowledgement, LOG, record, None, error)
            raise
        if self._on_acknowledgement:
            future.add_done_callback(partial(self._acknowledged, record))
        return future

    async def _send_bytes(
        self, record: ProducerRecord[KeyT, ValueT], key: bytes | None, value: bytes | None
    ) -> asyncio.Future[RecordMetadata]:
        return await Producer.send(
            cast(Producer[bytes, bytes], self),
            record.topic,
            value,
            key=key,
            partition=record.partition,
            headers=record.headers,
            timestamp=record.timestamp,
        )

    def _acknowledged(
        self, record: ProducerRecord[KeyT, ValueT], future: asyncio.Future[RecordMetadata]
    ) -> None:
        cancelled = asyncio.CancelledError() if future.cancelled() else None
        error = cancelled or future.exception()
        metadata = future.result() if error is None else None
        notify(self._on_acknowledgement, LOG, record, metadata, error)

    async def send_batch(self, topic: str, batch: pa.RecordBatch) -> asyncio.Future[pa.RecordBatch]:
        """Accept the records of a batch for sending; return the future of their results.

        Columns, each optional: key, value (binary or string), partition (null:
        the partitioner's choice), timestamp (null: now), headers (as consumed). Records are sent in
        the order of the rows, each as by `send`, with its waits; serializers and interceptors are
        not called.

        The future has a batch with the columns partition and offset of each row. It raises the
        error of the first row that failed, once each row has a result. `send_batch` itself raises
        as `send` does, and InvalidValue or OutOfRange for a column: then nothing was queued. One
        that is cancelled has sent the rows before.
        """
        from ..client.producer.arrow import result_batch, send_columns

        self._running()
        now_ms = time.time_ns() // NANOSECONDS_PER_MILLISECOND
        columns = send_columns(batch, now_ms)
        result, tokens = self._sent.add(batch.num_rows, result_batch)
        await self._send_rows(topic, tokens, columns)
        return result

    async def _send_rows(self, topic: str, tokens: Sequence[int], columns: SendColumns) -> None:
        for token, key, value, partition, timestamp, headers in zip(tokens, *columns, strict=True):
            machine = self._machine
            if (
                headers
                or machine is None
                or not machine.join(token, topic, partition, key, value, timestamp)
            ):
                try:
                    future = await Producer.send(
                        cast(Producer[bytes, bytes], self),
                        topic,
                        value,
                        key=key,
                        partition=partition,
                        headers=headers,
                        timestamp=timestamp,
                    )
                except BaseException:
                    self._sent.abandon(token, tokens[-1])
                    raise
                self._sent.follow(token, future)

    async def deliver(
        self,
        topic: str,
        value: ValueT | None = None,
        *,
        key: KeyT | None = None,
        partition: int | None = None,
        headers: HeaderPairs = (),
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait for its result; arguments and errors as in `send`."""
        future = await self.send(
            topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp
        )
        return await future
