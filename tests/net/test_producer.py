"""The asyncio Producer and a loop that it shares with its users."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Hashable
from typing import Any

import pytest

from kafkawire.client.config import Setting
from kafkawire.client.consumer import TopicPartition
from kafkawire.client.producer import Delivered, backlog
from kafkawire.errors import InvalidValue
from kafkawire.net.clients import loop_iteration
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer, RecordMetadata
from kafkawire.net.server_thread import ServerThread

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 1})]
MANY = 500
SMALL: dict[str, Setting] = {"batch.size": 200, "linger.ms": 0}


def test_responses_are_handled_while_the_caller_never_waits(kafka_broker: ServerThread) -> None:
    """Nothing that the caller awaits suspends it, and yet the loop handles responses."""

    async def scenario() -> None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap, **SMALL}) as producer:
            first = await producer.send("t", b"first")
            while not first.done():
                await producer.send("t", bytes(100))

    asyncio.run(scenario())


def test_records_of_many_tasks_keep_the_order_of_the_tasks(kafka_broker: ServerThread) -> None:
    async def scenario() -> list[int]:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap, **SMALL}) as producer:
            await producer.deliver("t", b"the topic is known")
            sends = (producer.send("t", b"%d" % at * 10) for at in range(MANY))
            futures = await asyncio.gather(*sends)
            return [each.offset for each in await asyncio.gather(*futures)]

    assert asyncio.run(scenario()) == list(range(1, MANY + 1))


def test_a_send_that_is_cancelled_before_its_turn_is_never_sent(kafka_broker: ServerThread) -> None:
    async def scenario() -> int:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap, **SMALL}) as producer:
            await producer.deliver("t", b"the topic is known")
            tasks = [asyncio.ensure_future(producer.send("t", bytes(150))) for _ in range(MANY)]
            await asyncio.sleep(0)
            waiting = [each for each in tasks if not each.done()]
            assert waiting, "so many take longer than a turn"
            for each in waiting:
                each.cancel()
            await asyncio.wait(tasks)
            assert all(each.cancelled() for each in waiting)
            end = await producer.deliver("t", b"after them")
        return end.offset - (len(tasks) - len(waiting))

    assert asyncio.run(scenario()) == 1


def test_results_and_what_is_called_with_them_come_in_order(kafka_broker: ServerThread) -> None:
    """Also where batches are sent again: the answers to the second and the fifth are lost."""
    for nth in (2, 5):
        kafka_broker.fault("Produce", nth=nth, action="disconnect", carried_out=True)
    reported: list[int] = []

    async def scenario() -> None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap, **SMALL}) as producer:
            for at in range(MANY):
                future = await producer.send("t", b"%d" % at)
                future.add_done_callback(lambda done: reported.append(done.result().offset))
            await producer.flush()
            await asyncio.sleep(0)  # callbacks come with the loop's next turn

    asyncio.run(scenario())
    assert reported == list(range(MANY))


def test_sends_let_the_loop_handle_what_its_sockets_received(kafka_broker: ServerThread) -> None:
    """A single turn of the loop would poll the sockets and go on sending first."""

    async def scenario() -> list[str]:
        loop = asyncio.get_running_loop()
        seen: list[str] = []
        ours, theirs = socket.socketpair()

        def read() -> None:
            loop.remove_reader(ours)
            seen.append("received")

        with ours, theirs:
            async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
                await producer.deliver("t", b"the topic is known")
                await producer.send("t", b"the loop has not run since")
                loop.add_reader(ours, read)
                theirs.send(b"x")
                # as if much time had passed
                producer._iteration.look_at = producer._iteration.yield_at = 0.0
                await producer.send("t", b"yields first")
                seen.append("sent")
        return seen

    assert asyncio.run(scenario()) == ["received", "sent"]


@pytest.mark.parametrize("idempotent", [False, True])
def test_records_are_not_accepted_far_ahead_of_a_broker_that_responds(
    kafka_broker: ServerThread, monkeypatch: pytest.MonkeyPatch, idempotent: bool
) -> None:
    """Although buffer.memory has room for all."""
    most_accepted, batch, value = 300_000, 20_000, bytes(1000)
    monkeypatch.setattr(loop_iteration, "PACE_SECONDS", 300.0)
    monkeypatch.setattr(backlog, "LONG_BACKLOG_BYTES", most_accepted)
    config: dict[str, Setting] = {"batch.size": batch, "enable.idempotence": idempotent}

    async def scenario() -> int:
        most = 0
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap, **config}) as producer:
            await producer.deliver("t", b"the topic is known")
            machine = producer._machine
            assert machine is not None
            for _ in range(4000):
                await producer.send("t", value)
                most = max(most, machine._accumulator.used)
        return most

    in_flight = 5 if idempotent else 1
    assert asyncio.run(scenario()) < most_accepted * in_flight + 3 * batch


def test_a_send_that_is_cancelled_while_it_is_paced_is_never_sent(
    kafka_broker: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_iteration, "PACE_SECONDS", 300.0)

    async def scenario() -> list[int]:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
            await producer.deliver("t", b"the topic is known")
            producer._iteration.pace()
            paced = asyncio.ensure_future(producer.send("t", b"never sent"))
            behind = asyncio.ensure_future(producer.send("t", b"after it"))
            await asyncio.sleep(0.01)
            assert not paced.done()
            paced.cancel()
            return [(await (await behind)).offset, (await producer.deliver("t", b"last")).offset]

    assert asyncio.run(scenario()) == [1, 2]


def test_a_paced_send_takes_the_record_before_it_waits(
    kafka_broker: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid one is rejected at once, and what its caller changes meanwhile is not sent."""
    monkeypatch.setattr(loop_iteration, "PACE_SECONDS", 300.0)

    async def scenario() -> bytes | None:
        servers: dict[str, Setting] = {"bootstrap.servers": kafka_broker.bootstrap}
        async with Producer(servers) as producer:
            await producer.deliver("t", b"the topic is known")
            producer._iteration.pace()
            value: Any = bytearray(b"before")
            paced = asyncio.ensure_future(producer.send("t", value))
            invalid: Any = "text"
            rejected = asyncio.ensure_future(producer.send("t", invalid))
            await asyncio.sleep(0)
            assert (paced.done(), rejected.done()) == (False, True)
            with pytest.raises(InvalidValue):
                rejected.result()
            value[:] = b"changed"
            producer._iteration.on_result()
            assert (await (await paced)).offset == 1
        async with Consumer(servers) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            consumer.seek(TopicPartition("t", 0), 1)
            return (await anext(consumer)).value

    assert asyncio.run(scenario()) == b"before"


def test_records_are_accepted_far_ahead_of_a_broker_that_does_not_respond(
    kafka_broker: ServerThread,
) -> None:
    async def scenario() -> None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
            await producer.deliver("t", b"the topic is known")
            kafka_broker.fault("Produce", action="delay", nth=1, delay=0.5)
            sent = [await producer.send("t", bytes(10_000)) for _ in range(500)]
            assert not sent[-1].done()
            await producer.flush()
            assert [each.result().offset for each in sent] == list(range(1, 501))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("base_offset", "log_append_time", "expected"),
    [
        (7, -1, [("t", 3, 7, 101), ("t", 3, 9, 103)]),
        (7, 500, [("t", 3, 7, 500), ("t", 3, 9, 500)]),
        (-1, -1, [("t", 3, -1, 101), ("t", 3, -1, 103)]),
    ],
    ids=["offsets", "log append time", "acks=0"],
)
def test_the_results_of_a_batch_pass_over_a_cancelled_future(
    base_offset: int, log_append_time: int, expected: list[tuple[str, int, int, int]]
) -> None:
    async def deliver() -> list[RecordMetadata]:
        futures = [asyncio.get_running_loop().create_future() for _ in range(3)]
        futures[1].cancel()
        tokens, timestamps = list[Hashable](futures), [101, 102, 103]
        effect = Delivered("t", 3, tokens, timestamps, base_offset, log_append_time)
        Producer({"bootstrap.servers": "localhost:1"})._on_effect(effect)
        return [await futures[0], await futures[2]]

    found = asyncio.run(deliver())
    assert found == expected
    assert all(type(one) is RecordMetadata for one in found)
