"""The asyncio Consumer: its listener, its waiting calls, and what an end leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from kafkawire.client.config import Setting
from kafkawire.client.consumer import TopicPartition, events
from kafkawire.client.failures import ClientClosed
from kafkawire.errors import LocalProtocolError
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread
from kafkawire.records import ReplacedText, text_bytes
from tests.interop.implementations import until

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 1})]
WHERE = TopicPartition("t", 0)


def consumer(broker: ServerThread, **more: Setting) -> Consumer:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            **given,
        }
    )


async def write(broker: ServerThread, number: int) -> None:
    async with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for at in range(number):
            await producer.send("t", b"%d" % at)


def test_a_client_closed_at_once_waits_for_nothing(kafka_broker: ServerThread) -> None:
    """Its connection attempt is cancelled before it has begun."""

    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with consumer(kafka_broker) as reader:
            reader.subscribe(["t"])
        return loop.time() - began

    assert asyncio.run(scenario()) < 2


class Listener:
    """Learns of partitions by the test's leave, and may refuse them."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.calls: list[tuple[str, int]] = []
        self.refuses = False

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", len(partitions)))
        await self.may.wait()
        if self.refuses:
            raise ZeroDivisionError("not these")

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", len(partitions)))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("lost", len(partitions)))


def test_nothing_is_returned_before_the_listener_has(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        await write(kafka_broker, 3)
        listener = Listener()
        async with consumer(kafka_broker) as it:
            it.subscribe(["t"], listener)
            polling = asyncio.ensure_future(it.poll())
            while not listener.calls:
                await asyncio.sleep(0)
            with pytest.raises(LocalProtocolError, match="another poll"):
                await it.poll()
            assert it.assignment() == {WHERE}
            assert not polling.done()
            listener.may.set()
            assert [each.value for each in await polling] == [b"0", b"1", b"2"]
        assert listener.calls == [("assigned", 1), ("revoked", 1)]

    asyncio.run(scenario())


def test_what_a_listener_raises_the_poll_raises_and_the_next_goes_on(
    kafka_broker: ServerThread,
) -> None:
    async def scenario() -> None:
        await write(kafka_broker, 1)
        listener = Listener()
        listener.refuses = True
        listener.may.set()
        async with consumer(kafka_broker) as it:
            it.subscribe(["t"], listener)
            with pytest.raises(ZeroDivisionError, match="not these"):
                await it.poll()
            assert [each.value for each in await it.poll()] == [b"0"]

    asyncio.run(scenario())


def test_a_poll_continues_while_another_task_commits(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        await write(kafka_broker, 2)
        async with consumer(kafka_broker, enable_auto_commit=False) as it:
            it.subscribe(["t"])
            assert len(await it.poll()) == 2
            polling = asyncio.ensure_future(it.poll())
            await asyncio.sleep(0)
            await it.commit()
            found = (await it.committed(WHERE))[WHERE]
            assert found is not None
            assert found.offset == 2
            assert await it.position(WHERE) == 2
            assert not polling.done()
            await write(kafka_broker, 1)
            assert [each.offset for each in await polling] == [2]

    asyncio.run(scenario())


def test_only_a_poll_without_a_result_is_ended_by_an_event(kafka_broker: ServerThread) -> None:
    """The machine ends the others, and every event costs as much as decoding many records."""
    seen: list[type] = []

    async def scenario() -> None:
        await write(kafka_broker, 6)
        async with consumer(kafka_broker) as reader:
            reader.assign([WHERE])
            assert len(await reader.poll(max_records=2)) == 2
            machine = reader._machine
            assert machine is not None
            handle = machine.handle

            def counted(event: events.ConsumerEvent, now: float) -> object:
                seen.append(type(event))
                return handle(event, now)

            machine.handle = counted  # type: ignore[method-assign,assignment]
            assert len(await reader.poll(max_records=2)) == 2
            assert len(await reader.poll(max_records=2)) == 2
            assert not machine.polling
            polls = [each for each in seen if each in (events.Poll, events.StopPolling)]
            assert polls == [events.Poll] * 2
            assert await reader.poll(0.01) == []
            assert seen[-1] is events.StopPolling
            assert not machine.polling

    asyncio.run(scenario())


def test_pending_calls_fail_on_close(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        it = consumer(kafka_broker)
        await it.start()
        kafka_broker.fault("OffsetFetch", action="drop")
        requested = asyncio.ensure_future(it.committed(WHERE))
        it.assign([WHERE])
        polling = asyncio.ensure_future(it.poll())
        while not any(
            each.request.api_key.name == "OFFSET_FETCH" for each in kafka_broker.requests
        ):
            await asyncio.sleep(0)
        await it.close(0.2)
        for each in (requested, polling):
            with pytest.raises(ClientClosed):
                await each
        with pytest.raises(ClientClosed):
            it.assignment()

    asyncio.run(scenario())
    until(lambda: not kafka_broker.server.connections)


def test_a_close_that_is_cancelled_leaves_nothing_open(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        await write(kafka_broker, 1)
        it = consumer(kafka_broker)
        await it.start()
        it.subscribe(["t"])
        assert len(await it.poll()) == 1
        fault = kafka_broker.fault("OffsetCommit", action="drop")
        closing = asyncio.ensure_future(it.close())
        while not fault.hit:
            await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(ClientClosed):
            await it.poll()

    asyncio.run(scenario())
    until(lambda: not kafka_broker.server.connections)


def test_a_header_key_that_is_not_utf8_is_delivered(
    kafka_broker: ServerThread,
) -> None:
    """As by Kafka's broker and Java's consumer; forwarded, it has its bytes again."""
    latin = ReplacedText(b"Stra\xdfe")

    async def forwarded() -> list[bytes | None]:
        server = {"bootstrap.servers": kafka_broker.bootstrap}
        read: list[bytes | None] = []
        async with Producer(server) as producer, consumer(kafka_broker) as it:
            it.assign([WHERE])
            await (await producer.send("t", b"0", headers=((latin, b"x"), ("h", None))))
            for at in range(1, 4):
                (record,) = await it.poll()
                ((key, value), _) = record.headers
                assert (key, value) == (latin, b"x")
                assert text_bytes(key) == latin.raw
                read.append(record.value)
                await (await producer.send("t", b"%d" % at, headers=record.headers))
        return read

    assert asyncio.run(forwarded()) == [b"0", b"1", b"2"]
