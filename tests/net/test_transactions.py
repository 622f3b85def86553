"""Transactions from asyncio: calls, exceptions, and what consumers see of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from kafkawire.client.config import Setting
from kafkawire.client.consumer import ConsumerRecord, TopicPartition
from kafkawire.client.failures import (
    ClientClosed,
    ProducerFenced,
    RequestFailed,
    TransactionAbortable,
    TransactionAborted,
)
from kafkawire.client.group_metadata import ConsumerGroupMetadata
from kafkawire.client.producer import TransactionDone, TransactionFailed
from kafkawire.errors import InvalidValue, LocalProtocolError, OutOfRange
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"in": 1, "out": 1})]
IN = TopicPartition("in", 0)
CONSUMING: dict[str, Setting] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}


def producer(broker: ServerThread, **config: Setting) -> Producer:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "linger.ms": 0, **settings}
    )


def consumer(broker: ServerThread, isolation: str, **config: Setting) -> Consumer:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    here: dict[str, Setting] = {"bootstrap.servers": broker.bootstrap, **CONSUMING, **settings}
    return Consumer({**here, "isolation.level": isolation})


async def values(broker: ServerThread, topic: str, isolation: str) -> list[bytes | None]:
    """Read a topic to its end as the isolation level has it."""
    found: list[bytes | None] = []
    where = TopicPartition(topic, 0)
    async with consumer(broker, isolation) as reader:
        reader.assign([where])
        end = (await reader.end_offsets(where))[where]
        while await reader.position(where) < end:
            found += [each.value for each in await reader.poll(0.2)]
    return found


def test_a_block_commits_or_aborts(kafka_broker: ServerThread) -> None:
    async def failing(writer: Producer) -> None:
        async with writer.transaction():
            await writer.deliver("out", b"no")
            raise RuntimeError("of the block")

    async def scenario() -> None:
        async with producer(kafka_broker) as writer:
            async with writer.transaction():
                await writer.send("out", b"a")
            with pytest.raises(RuntimeError, match="of the block"):
                await failing(writer)
            async with writer.transaction():
                await writer.send("out", b"b")
        assert await values(kafka_broker, "out", "read_committed") == [b"a", b"b"]
        assert await values(kafka_broker, "out", "read_uncommitted") == [b"a", b"no", b"b"]

    asyncio.run(scenario())


def test_an_open_transaction_is_not_read(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        async with producer(kafka_broker) as writer:
            await writer.begin()
            await writer.deliver("out", b"a")
            assert await values(kafka_broker, "out", "read_committed") == []
            assert await values(kafka_broker, "out", "read_uncommitted") == [b"a"]
            await writer.commit()
            assert await values(kafka_broker, "out", "read_committed") == [b"a"]

    asyncio.run(scenario())


def test_read_process_write_is_done_once(kafka_broker: ServerThread) -> None:
    """The first attempt is aborted with its offsets; the second reads the same records again."""

    async def scenario() -> None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as source:
            for each in (b"a", b"b"):
                await source.deliver("in", each)
        async with (
            producer(kafka_broker) as writer,
            consumer(kafka_broker, "read_committed", group_id="g") as reader,
        ):
            reader.subscribe(["in"])
            for attempt in range(2):
                records: list[ConsumerRecord] = []
                while len(records) < 2:
                    records += await reader.poll()
                await writer.begin()
                for record in records:
                    await writer.send("out", (record.value or b"") + b"!")
                await writer.send_offsets({IN: records[-1].offset + 1}, reader.group_metadata())
                if attempt == 0:
                    await writer.abort()
                    assert (await reader.committed(IN))[IN] is None
                    reader.seek_to_beginning(IN)
                else:
                    await writer.commit()
            committed = (await reader.committed(IN))[IN]
            assert committed is not None
            assert committed.offset == 2
        assert await values(kafka_broker, "out", "read_committed") == [b"a!", b"b!"]

    asyncio.run(scenario())


def test_a_member_of_a_past_generation_is_refused(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        async with (
            producer(kafka_broker) as writer,
            consumer(kafka_broker, "read_committed", group_id="g") as reader,
        ):
            reader.subscribe(["in"])
            assert reader.group_metadata() == ConsumerGroupMetadata("g")
            while not reader.assignment():
                await reader.poll(0.05)
            member = reader.group_metadata()
            past = member._replace(generation_id=member.generation_id + 1)
            with pytest.raises(TransactionAbortable, match="ILLEGAL_GENERATION"):
                async with writer.transaction():
                    await writer.send_offsets({IN: 1}, past)
            async with writer.transaction():
                await writer.send_offsets({IN: 1}, member)
            committed = (await reader.committed(IN))[IN]
            assert committed is not None
            assert committed.offset == 1

    asyncio.run(scenario())


def test_a_fenced_producer_says_so_and_its_block_raises(kafka_broker: ServerThread) -> None:
    async def meanwhile(zombie: Producer, writer: Producer) -> None:
        async with zombie.transaction():
            await zombie.deliver("out", b"zombie")
            async with writer.transaction():
                await writer.send("out", b"new")

    async def scenario() -> None:
        async with producer(kafka_broker) as zombie, producer(kafka_broker) as writer:
            with pytest.raises(ProducerFenced):
                await meanwhile(zombie, writer)
            with pytest.raises(ProducerFenced):
                await zombie.begin()
        assert await values(kafka_broker, "out", "read_committed") == [b"new"]

    asyncio.run(scenario())


def test_what_an_abort_discards_raises(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        async with producer(kafka_broker, linger_ms=60_000, delivery_timeout_ms=300_000) as writer:
            await writer.begin()
            future = await writer.send("out", b"no")
            await writer.abort()
            with pytest.raises(TransactionAborted):
                await future

    asyncio.run(scenario())


def test_a_call_that_times_out_is_called_again(kafka_broker: ServerThread) -> None:
    """The broker responds late: the commit goes on, and is done when it is called again."""
    kafka_broker.fault("EndTxn", nth=1, action="delay", delay=4.0)

    async def scenario() -> None:
        async with producer(kafka_broker, max_block_ms=2000) as writer:
            await writer.begin()
            await writer.deliver("out", b"a")
            with pytest.raises(RequestFailed, match=r"commit within max\.block\.ms"):
                await writer.commit()
            while True:
                try:
                    await writer.commit()
                except RequestFailed:
                    continue
                break
            with pytest.raises(LocalProtocolError, match="commit in state Ready"):
                await writer.commit()
        assert await values(kafka_broker, "out", "read_committed") == [b"a"]

    asyncio.run(scenario())


@pytest.mark.parametrize("cancels", [False, True])
def test_no_result_is_lost_when_the_wait_for_it_ends_in_the_same_turn(
    kafka_broker: ServerThread, monkeypatch: pytest.MonkeyPatch, *, cancels: bool
) -> None:
    """The timer, or a cancellation, comes first, and then the result: the next call has it."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with producer(kafka_broker, max_block_ms=2000) as writer:
            await writer.begin()
            await writer.deliver("out", b"a")
            call = asyncio.ensure_future(writer.commit())
            receive = writer._on_transaction

            def late(effect: TransactionDone | TransactionFailed) -> None:
                if cancels:
                    receive(effect)
                    call.cancel()
                else:
                    time.sleep(2)  # the timer is due in the next turn, and the result one later
                    loop.call_soon(loop.call_soon, receive, effect)

            monkeypatch.setattr(writer, "_on_transaction", late)
            with suppress(RequestFailed, asyncio.CancelledError):
                await call
            monkeypatch.undo()
            if call.cancelled() or call.exception() is not None:
                await writer.commit()
            await writer.begin()
            await writer.abort()
        assert await values(kafka_broker, "out", "read_committed") == [b"a"]

    asyncio.run(scenario())


def test_a_close_does_not_wait_for_ever_for_the_end_of_a_transaction(
    kafka_broker: ServerThread,
) -> None:
    kafka_broker.fault("EndTxn", error="CONCURRENT_TRANSACTIONS")

    async def scenario() -> None:
        writer = producer(kafka_broker, delivery_timeout_ms=3000, request_timeout_ms=2000)
        await writer.start()
        await writer.begin()
        await writer.deliver("out", b"a")
        async with asyncio.timeout(60):
            await writer.close()

    asyncio.run(scenario())


Call = Callable[[Producer], Awaitable[Any]]


@pytest.mark.parametrize(
    ("call", "error", "why"),
    [
        (lambda it: it.send_offsets({IN: -1}, ConsumerGroupMetadata("g")), OutOfRange, "in"),
        (lambda it: it.send_offsets({IN: 1}, "g"), InvalidValue, "ConsumerGroupMetadata"),
        (
            lambda it: it.send_offsets({IN: 1}, ConsumerGroupMetadata(7)),  # type: ignore[arg-type]
            InvalidValue,
            "group_id",
        ),
        (
            lambda it: it.send_offsets({IN: 1}, ConsumerGroupMetadata("g", 1 << 40)),
            OutOfRange,
            "generation_id",
        ),
        (lambda it: it.send("out", b"a"), LocalProtocolError, "send in state"),
        (lambda it: it.commit(), LocalProtocolError, "commit in state"),
    ],
)
def test_a_wrong_call_changes_nothing(
    kafka_broker: ServerThread, call: Call, error: type[Exception], why: str
) -> None:
    async def scenario() -> None:
        async with producer(kafka_broker) as writer:
            with pytest.raises(error, match=why):
                await call(writer)
            async with writer.transaction():
                await writer.send("out", b"a")

    asyncio.run(scenario())


@pytest.mark.filterwarnings("ignore::kafkawire.net.pytest_plugin.UnusedFaultWarning")
def test_calls_need_a_transactional_id_and_a_producer_that_is_open(
    kafka_broker: ServerThread,
) -> None:
    async def scenario() -> None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as plain:
            for call in (plain.begin, plain.commit, plain.abort, plain.init_transactions):
                with pytest.raises(LocalProtocolError, match=r"transactional\.id"):
                    await call()
        with pytest.raises(ClientClosed):
            await plain.begin()
        async with producer(kafka_broker, max_block_ms=60_000) as writer:
            kafka_broker.fault("InitProducerId", action="drop")
            waiting = asyncio.ensure_future(writer.begin())
            await asyncio.sleep(0)
            await writer.close(0.0)
            with pytest.raises(ClientClosed):
                await waiting

    asyncio.run(scenario())
