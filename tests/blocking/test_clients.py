"""Clients whose calls wait: what those of asyncio do, for threads and scripts."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafkawire.blocking import Admin, Consumer, Producer, ShareConsumer
from kafkawire.blocking.client import BlockingClient
from kafkawire.client.consumer import GroupFailed, OffsetAndMetadata, TopicPartition
from kafkawire.client.failures import AlreadyStarted, BrokerError, ClientClosed, ConfigurationError
from kafkawire.errors import InvalidValue, LocalProtocolError
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread

CLIENTS = (Admin, Consumer, Producer, ShareConsumer)
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def here() -> Iterator[dict[str, str]]:
    with ServerThread(ServerConfig(topics={"orders": 1})) as server:
        yield {"bootstrap.servers": server.bootstrap}


def names(kind: type[Any]) -> set[str]:
    return {
        name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))
    }


@pytest.mark.parametrize("client", CLIENTS)
def test_every_call_of_the_asyncio_client_is_there(client: type[BlockingClient[Any]]) -> None:
    assert names(client.kind) == names(client) - {"kind"}
    for name in names(client.kind) - {"start"}:
        one, other = getattr(client, name), getattr(client.kind, name)
        assert not inspect.iscoroutinefunction(one), name
        assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters)
        assert inspect.getdoc(one), name


def test_produce_and_consume(here: dict[str, str]) -> None:
    with Producer(here) as producer:
        futures = [producer.send("orders", b"%d" % number) for number in range(20)]
        producer.flush()
        assert [future.result(0).offset for future in futures] == list(range(20))
        assert producer.deliver("orders", b"last", key=b"k").offset == 20
    with Consumer({**here, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["orders"])
        records = [next(consumer) for _ in range(21)]
        assert [record.value for record in records][-2:] == [b"19", b"last"]
        assert consumer.position(ORDERS) == 21
        consumer.commit_async().result(10)
        assert consumer.committed(ORDERS) == {ORDERS: OffsetAndMetadata(21, 0)}
        consumer.commit({ORDERS: 5})
        assert consumer.committed(ORDERS) == {ORDERS: OffsetAndMetadata(5)}
        assert consumer.end_offsets(ORDERS) == {ORDERS: 21}
        consumer.seek(ORDERS, 20)
        assert [record.key for record in consumer.poll(10)] == [b"k"]
        assert consumer.poll(0) == []
    with Admin(here) as admin:
        assert "orders" in admin.list_topics()
        admin.create_topic("more", partitions=2)
        assert len(admin.describe_topics(["more"])["more"].partitions) == 2
        with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
            admin.create_topic("more")


def abort(producer: Producer) -> None:
    with producer.transaction():
        producer.send("orders", b"aborted")
        raise ZeroDivisionError


def test_transactions(here: dict[str, str]) -> None:
    reading = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    with (
        Producer({**here, "transactional.id": "t"}) as producer,
        Consumer({**here, **reading, "group.id": "g"}) as consumer,
    ):
        consumer.subscribe(["orders"])
        with producer.transaction():
            producer.send("orders", b"committed")
        with pytest.raises(ZeroDivisionError):
            abort(producer)
        with producer.transaction():
            assert [record.value for record in consumer.poll(30)] == [b"committed"]
            producer.send_offsets({ORDERS: 1}, consumer.group_metadata())
            producer.send("orders", b"last")
        assert consumer.committed(ORDERS) == {ORDERS: OffsetAndMetadata(1)}
        assert [record.value for record in consumer.poll(30)] == [b"last"]


class Listener:
    """Commits when partitions are revoked. calls: what was called."""

    def __init__(self, consumer: Consumer) -> None:
        self.calls: list[tuple[str, Collection[TopicPartition]]] = []
        self._consumer = consumer

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", partitions))
        self._consumer.commit({ORDERS: 7})

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", partitions))
        self._consumer.seek(ORDERS, 1)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("lost", partitions))


def test_a_listener_may_wait_for_the_consumer(here: dict[str, str]) -> None:
    with Producer(here) as producer:
        for value in (b"a", b"b"):
            producer.deliver("orders", value)
    with Consumer({**here, "group.id": "g"}) as consumer:
        listener = Listener(consumer)
        consumer.subscribe(["orders"], listener)
        assert [record.value for record in consumer.poll(30)] == [b"b"]
        consumer.unsubscribe()
        assert [name for name, _ in listener.calls] == ["assigned", "revoked"]
        assert consumer.committed(ORDERS) == {ORDERS: OffsetAndMetadata(7)}


def test_a_broker_without_share_groups_is_an_error() -> None:
    """It is named what they need, and the consumer can be closed."""
    with ServerThread(ServerConfig(topics={"orders": 1}, release="3.9")) as server:
        config = {"bootstrap.servers": server.bootstrap, "group.id": "g"}
        with ShareConsumer(config) as consumer:
            consumer.subscribe(["orders"])
            assert consumer.subscription() == {"orders"}
            with pytest.raises(GroupFailed, match=r"share\.version"):
                consumer.poll(30)
            with pytest.raises(GroupFailed, match="SHARE_GROUP_HEARTBEAT"):
                next(consumer)
            wrong: Any = consumer
            for call, value in (
                (wrong.acknowledge, ("orders", 0, 0)),
                (wrong.subscribe, "orders"),
                (wrong.poll, "soon"),
            ):
                with pytest.raises(InvalidValue):
                    call(value)
            with pytest.raises(InvalidValue):
                wrong.commit(timeout_s="soon")
            assert consumer.commit() == consumer.commit_async().result(10) == {}
            consumer.unsubscribe()
            with pytest.raises(LocalProtocolError, match="subscribe"):
                consumer.poll(0)


def test_threads_share_a_producer(here: dict[str, str]) -> None:
    with Producer(here) as producer, ThreadPoolExecutor(4) as pool:
        sent = pool.map(lambda number: producer.deliver("orders", b"%d" % number), range(40))
        assert sorted(one.offset for one in sent) == list(range(40))


@pytest.mark.parametrize("client", CLIENTS)
def test_before_and_after(client: type[BlockingClient[Any]], here: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        client({"bootstrap.server": "localhost:1"})
    made: Any = client({**here, "group.id": "g"} if client is ShareConsumer else here)
    call = {Admin: "list_topics", Producer: "flush"}.get(client, "unsubscribe")
    with pytest.raises(ClientClosed):
        getattr(made, call)()
    made.close()
    with made, pytest.raises(AlreadyStarted):
        made.start()
    made.close()
    with pytest.raises(ClientClosed):
        getattr(made, call)()
    with pytest.raises(AlreadyStarted):
        made.start()
    assert not [each for each in threading.enumerate() if each.name == "kafkawire-client"]


def test_errors_are_those_of_the_client(here: dict[str, str]) -> None:
    wrong: Any = 7
    with Producer(here) as producer:
        with pytest.raises(InvalidValue):
            producer.send("orders", wrong)
        failed = producer.send("orders", b"", partition=0, timestamp=10**18)
        assert isinstance(failed.exception(10), BrokerError)  # INVALID_TIMESTAMP
    with Consumer(here) as consumer, pytest.raises(LocalProtocolError):
        consumer.subscribe(["orders"])


def test_records_that_were_not_delivered_fail(here: dict[str, str]) -> None:
    producer = Producer({**here, "linger.ms": "60000"})
    producer.start()
    future = producer.send("orders", b"v")
    producer.close(timeout_s=10)
    assert future.result(0).offset == 0


def test_an_interrupt_ends_a_poll(here: dict[str, str]) -> None:
    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever a test has left
    try:
        with Consumer(here) as consumer:
            consumer.assign([ORDERS])
            timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                interrupted_by(timer, consumer)
            assert consumer.poll(0) == []  # the poll was cancelled: another may begin
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted_by(timer: threading.Timer, consumer: Consumer) -> None:
    timer.start()
    consumer.poll(60)


def test_a_call_in_the_loop_of_the_client_is_refused(here: dict[str, str]) -> None:
    """It would wait for itself."""
    with Admin(here) as admin:

        async def call() -> object:
            return admin.list_topics()

        assert admin._thread is not None
        with pytest.raises(LocalProtocolError, match="own event loop"):
            asyncio.run_coroutine_threadsafe(call(), admin._thread.loop).result(10)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_cannot_start_leaves_no_thread(client: type[BlockingClient[Any]]) -> None:
    files = {"security.protocol": "SSL", "ssl.ca.location": "/no/such/file"}
    group = {"group.id": "g"} if client in (Consumer, ShareConsumer) else {}
    before = set(threading.enumerate())
    blocking = client({"bootstrap.servers": "localhost:1", **group, **files})
    with pytest.raises(ConfigurationError, match="No such file"):
        blocking.start()
    assert set(threading.enumerate()) == before
