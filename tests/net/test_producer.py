"""The asyncio Producer and a loop that it shares with its users."""

from __future__ import annotations

import asyncio
import socket

import pytest

from kafkawire.client.config import Setting
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 1})]
MANY = 500
SMALL: dict[str, Setting] = {"batch.size": 200, "linger.ms": 0}


def test_answers_are_heard_by_who_never_waits(kafka_broker: ServerThread) -> None:
    """Nothing that it awaits makes it wait, and yet the loop has its turns."""

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
