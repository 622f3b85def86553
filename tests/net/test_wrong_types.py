"""Values of wrong types given to Producer, Consumer and Admin: an error at that call alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from threading import get_ident
from typing import Any

import pytest

from kafkawire.client.consumer import OffsetAndMetadata
from kafkawire.client.failures import ClientClosed, ClientFailed
from kafkawire.client.network import connection
from kafkawire.client.network.transport import BytesReceived
from kafkawire.errors import EncodeError
from kafkawire.net.admin import Admin
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 1})]
HERE = ("t", 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"headers": [("h", "x")]},
        {"value": "text"},
        {"timestamp": 1.5},
        {"key": 5},
        {"partition": "0"},
    ],
    ids=str,
)
def test_a_wrong_record_of_a_new_topic_harms_nobody(
    kafka_broker: ServerThread, wrong: dict[str, Any]
) -> None:
    async def scenario() -> None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
            sends = [
                producer.send("new", b"first"),
                producer.send("new", **{"value": b"v"} | wrong),
                producer.send("new", b"second"),
                producer.send("t", b"elsewhere"),
            ]
            first, refused, second, third = await asyncio.gather(*sends, return_exceptions=True)
            assert isinstance(refused, EncodeError), refused
            for future in (first, second, third):
                assert isinstance(future, asyncio.Future), future
                await future

    asyncio.run(scenario())


def test_what_was_sent_is_what_it_was_then(kafka_broker: ServerThread) -> None:
    async def scenario() -> bytes | None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
            value = bytearray(b"then")
            sending = asyncio.ensure_future(producer.send("fresh", value))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            value[:] = b"now!"
            await (await sending)
        config = {"bootstrap.servers": kafka_broker.bootstrap, "auto.offset.reset": "earliest"}
        async with Consumer(config) as consumer:
            consumer.assign([("fresh", 0)])  # type: ignore[list-item]
            return (await consumer.poll())[0].value

    assert asyncio.run(scenario()) == b"then"


CONSUMER: dict[str, Callable[[Any], Any]] = {
    "seek to a text": lambda it: it.seek(HERE, "5"),
    "seek to a fraction": lambda it: it.seek(HERE, 5.0),
    "seek to None": lambda it: it.seek(HERE, None),
    "seek beyond 64 bits": lambda it: it.seek(HERE, 1 << 63),
    "seek before the beginning": lambda it: it.seek(HERE, -1),
    "seek with an odd epoch": lambda it: it.seek(HERE, OffsetAndMetadata(5, "x")),  # type: ignore[arg-type]
    "seek in no partition": lambda it: it.seek("t", 5),
    "seek to no time": lambda it: it.seek_to_time("now", HERE),
    "assign texts": lambda it: it.assign(["t-0"]),
    "assign one text": lambda it: it.assign("t"),
    "assign None": lambda it: it.assign(None),
    "assign a partition that is a text": lambda it: it.assign([("t", "0")]),
    "assign a negative partition": lambda it: it.assign([("t", -1)]),
    "assign a topic of bytes": lambda it: it.assign([(b"t", 0)]),
    "assign what cannot be written": lambda it: it.assign([("\ud800", 0)]),
    "assign a topic too long": lambda it: it.assign([("t" * 300, 0)]),
    "pause a text": lambda it: it.pause("t"),
    "commit a text": lambda it: it.commit({HERE: "5"}),
    "commit a fraction": lambda it: it.commit({HERE: 5.5}),
    "commit to no partition": lambda it: it.commit({"t": 5}),
    "commit a list": lambda it: it.commit([(HERE, 5)]),
    "commit odd metadata": lambda it: it.commit({HERE: OffsetAndMetadata(5, -1, b"x")}),  # type: ignore[arg-type]
    "commit long metadata": lambda it: it.commit({HERE: OffsetAndMetadata(5, -1, "x" * 40_000)}),
    "commit in no time": lambda it: it.commit({HERE: 5}, timeout_s="soon"),
    "commit in NaN": lambda it: it.commit({HERE: 5}, timeout_s=float("nan")),
    "commit_async a text": lambda it: it.commit_async({HERE: "5"}),
    "poll for a text": lambda it: it.poll(max_records="5"),
    "poll in no time": lambda it: it.poll("soon"),
    "committed of a text": lambda it: it.committed("t"),
    "position of a text": lambda it: it.position("t"),
    "offsets for no time": lambda it: it.offsets_for_times({HERE: "x"}),
    "end offsets of a text": lambda it: it.end_offsets("t"),
}


@pytest.mark.parametrize("call", CONSUMER.values(), ids=CONSUMER)
def test_a_consumer_refuses_at_the_call_and_reads_on(
    kafka_broker: ServerThread, call: Callable[[Any], Any]
) -> None:
    async def scenario() -> None:
        config = {
            "bootstrap.servers": kafka_broker.bootstrap,
            "auto.offset.reset": "earliest",
            "group.id": "g",
        }
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
            await producer.deliver("t", b"v")
        async with Consumer(config) as consumer:
            consumer.assign([HERE])  # type: ignore[list-item]
            with pytest.raises(EncodeError):
                await maybe(call(consumer))
            assert consumer.assignment() == {HERE}
            assert (await consumer.poll())[0].value == b"v"
            await consumer.commit()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "topics",
    ["t", b"t", None, 5, [5], [b"t"], ["\ud800"], [""], ["t" * 300], re.compile(b"t")],
    ids=lambda value: repr(value)[:20],
)
def test_a_subscription_of_a_wrong_type_is_refused(kafka_broker: ServerThread, topics: Any) -> None:
    async def scenario() -> None:
        config = {"bootstrap.servers": kafka_broker.bootstrap, "group.id": "g"}
        async with Consumer(config) as consumer:
            with pytest.raises(EncodeError):
                consumer.subscribe(topics)
            assert consumer.subscription() == frozenset()

    asyncio.run(scenario())


ADMIN: dict[str, Callable[[Any], Any]] = {
    "create a number": lambda it: it.create_topic(5),
    "create what cannot be written": lambda it: it.create_topic("\ud800"),
    "create a text of partitions": lambda it: it.create_topic("a", partitions="1"),
    "create too many": lambda it: it.create_topic("a", partitions=1 << 31),
    "create with odd configs": lambda it: it.create_topic("a", configs={"retention.ms": 5}),
    "create with a list": lambda it: it.create_topic("a", configs=["retention.ms"]),
    "delete a number": lambda it: it.delete_topic(5),
    "grow by a text": lambda it: it.create_partitions("t", "2"),
    "describe a number": lambda it: it.describe_topics([5]),
    "describe a text": lambda it: it.describe_topics("t"),
    "offsets of a number": lambda it: it.list_offsets({(5, 0): -1}),
    "offsets of what cannot be written": lambda it: it.list_offsets({("\ud800", 0): -1}),
    "offsets at a text": lambda it: it.list_offsets({("t", 0): "now"}),
    "delete records of a number": lambda it: it.delete_records(5, 0, 1),
    "delete records before a text": lambda it: it.delete_records("t", 0, "1"),
    "config of a number": lambda it: it.describe_topic_config(5),
    "config of a broker of text": lambda it: it.describe_broker_config("one"),
    "alter to a number": lambda it: it.alter_topic_config("t", {"retention.ms": 5}),
    "describe a group of bytes": lambda it: it.describe_group(b"g"),
    "describe share groups of a text": lambda it: it.describe_share_groups("g"),
    "describe share groups of bytes": lambda it: it.describe_share_groups([b"g"]),
    "describe consumer groups of None": lambda it: it.describe_consumer_groups(None),
    "describe Streams groups of numbers": lambda it: it.describe_streams_groups([5]),
    "list groups in a text of states": lambda it: it.list_groups(states="Stable"),
    "delete a group of None": lambda it: it.delete_group(None),
    "offsets of a group of numbers": lambda it: it.group_offsets(5),
    "forget a text": lambda it: it.delete_group_offsets("g", "t"),
}


@pytest.mark.parametrize("call", ADMIN.values(), ids=ADMIN)
def test_an_admin_call_is_refused_and_others_go_on(
    kafka_broker: ServerThread, call: Callable[[Any], Any]
) -> None:
    async def scenario() -> None:
        async with Admin({"bootstrap.servers": kafka_broker.bootstrap}) as admin:
            other = asyncio.ensure_future(admin.list_offsets({("t", 0): -1}))
            with pytest.raises(EncodeError):
                await maybe(call(admin))
            assert (await other)[("t", 0)].offset >= 0
            assert "t" in await admin.list_topics()

    asyncio.run(scenario())


async def maybe(result: Any) -> None:
    if isinstance(result, Awaitable):
        await result


@pytest.mark.parametrize("what", ["send", "flush", "deliver"])
def test_an_error_inside_the_machine_ends_the_client_once(
    kafka_broker: ServerThread, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Each waiting call fails with it; it is not tried again with connection after connection."""
    calls: list[object] = []
    works, states = connection.HANDLERS[BytesReceived]
    thread = get_ident()

    def failing(*arguments: Any) -> Any:
        if get_ident() != thread:  # the broker's, whose nodes have such connections, too
            return works(*arguments)
        calls.append(None)
        raise ZeroDivisionError("a mistake")

    async def scenario() -> None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
            await producer.deliver("t", b"known")
            monkeypatch.setitem(connection.HANDLERS, BytesReceived, (failing, states))
            future = await producer.send("t", b"v")
            waiting: Awaitable[object] = future
            if what == "flush":
                waiting = producer.flush()
            elif what == "deliver":
                waiting = producer.deliver("t", b"w")
            with pytest.raises(ClientFailed, match="ZeroDivisionError: a mistake") as raised:
                await waiting
            assert isinstance(raised.value.__cause__, ZeroDivisionError)
            with pytest.raises(ClientFailed):
                await future
            with pytest.raises(ClientClosed):
                await producer.send("t", b"later")

    asyncio.run(scenario())
    assert len(calls) == 1
