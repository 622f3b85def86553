"""What tests read from a cluster without a client: records, committed offsets, requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient

from kafkawire.broker import Action
from kafkawire.client.consumer import TopicPartition
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.api_key import ApiKey
from kafkawire.net.fixture import ClusterFixture
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import QUICK, ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import Implementation
from tests.interop.implementations.librdkafka import Confluent

from .test_produce_and_consume import all_seen
from .test_transactions import SECONDS

CLIENT: Implementation = Confluent()
TOPICS = {"t": 2}
KINDS: dict[str, Callable[[], ClusterFixture]] = {
    "memory": lambda: ServerThread(ServerConfig(brokers=2, topics=TOPICS, settings=QUICK)),
    "nodes": lambda: ClusterThread(ServerConfig(brokers=1, topics=TOPICS)),
    "zookeeper": lambda: ServerThread(
        ServerConfig(topics=TOPICS, settings=QUICK, release="2.7", zookeeper=True)
    ),
}
pytestmark = pytest.mark.timeout(600)


def test_a_cluster_shows_what_clients_wrote_and_committed() -> None:
    """Each kind; no request of a client, and no fault, has to do with it."""
    for kind in KINDS.values():
        with kind() as cluster:
            for partition, prefix in enumerate(("a", "b")):
                produce(cluster, [f"{prefix}{each}" for each in range(3)], partition)
            fault = cluster.fault(action=Action.DISCONNECT)
            before = len(cluster.requests)
            read = cluster.records("t")
            assert [each[:3] for each in read] == [
                ("t", p, at) for p in range(2) for at in range(3)
            ]
            assert [each.value for each in read] == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]
            assert (read[0].key, read[0].headers) == (b"k", (("h", b"x"),))
            assert cluster.records("t", 1) == read[3:]
            assert (fault.seen, len(cluster.requests)) == (0, before)
            cluster.clear_faults()
            assert cluster.committed("g") == {}
            member = CLIENT.member(cluster.bootstrap, "t", "g")
            member.until(lambda seen=member: all_seen([seen], 6))  # type: ignore[misc]
            member.leave()
            assert cluster.committed("g") == {TopicPartition("t", each): 3 for each in range(2)}
            assert cluster.committed("another") == {}


def produce(cluster: ClusterFixture, values: list[str], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for value in values:
        producer.produce("t", value, "k", partition, headers=[("h", b"x")])
    assert producer.flush(SECONDS) == 0


@pytest.mark.kafka(brokers=3, topics={"t": 1}, settings={"default.replication.factor": "3"})
def test_records_are_those_of_the_leader_that_runs(kafka_broker: ServerThread) -> None:
    produce(kafka_broker, ["a"])
    kafka_broker.kill(kafka_broker.leader("t"))
    produce(kafka_broker, ["b"])
    assert [each.value for each in kafka_broker.records("t")] == [b"a", b"b"]


def test_records_of_aborted_and_open_transactions_are_left_out(kafka_broker: ServerThread) -> None:
    settings = {"bootstrap.servers": kafka_broker.bootstrap, "log_level": 0}
    writer = Producer({**settings, "transactional.id": "x"})
    writer.init_transactions(SECONDS)
    for value, end in (("a", writer.abort_transaction), ("b", writer.commit_transaction)):
        writer.begin_transaction()
        writer.produce("t", value)
        assert writer.flush(SECONDS) == 0
        assert kafka_broker.records("t") == []
        end(SECONDS)
    writer.begin_transaction()
    writer.produce("t", "open")
    assert writer.flush(SECONDS) == 0
    produce(kafka_broker, ["c"])
    assert [each.value for each in kafka_broker.records("t")] == [b"b", b"c"]
    writer.abort_transaction(SECONDS)


@pytest.mark.kafka(topics={"t": 1})
def test_records_before_the_log_start_offset_are_left_out(kafka_broker: ServerThread) -> None:
    produce(kafka_broker, ["a", "b", "c"])
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap, "log_level": 0})
    for deleted in admin.delete_records([Partition("t", 0, 2)]).values():
        deleted.result(SECONDS)
    assert [each.offset for each in kafka_broker.records("t")] == [2]


def test_requests_are_found_by_the_name_of_their_api(kafka_broker: ServerThread) -> None:
    produce(kafka_broker, ["a"])
    (request,) = kafka_broker.requests_of("Produce")
    assert request.request.api_key is ApiKey.PRODUCE
    assert kafka_broker.requests_of(ApiKey.PRODUCE) == [request]
    assert kafka_broker.requests_of(0) == [request]
    assert kafka_broker.requests_of("Fetch") == []


@pytest.mark.kafka(topics={"orders": 2})
@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (lambda cluster: cluster.records("order"), "no such topic: order; did you mean 'orders'"),
        (
            lambda cluster: cluster.records("orders", 2),
            "no such partition: orders-2; orders has 2 partitions",
        ),
        (lambda cluster: cluster.records("orders", -1), "no such partition: orders--1"),
        (lambda cluster: cluster.leader("order"), "no such topic: order; did you mean 'orders'"),
        (lambda cluster: cluster.isr("orders", 2), "no such partition: orders-2"),
        (lambda cluster: cluster.requests_of("Prodce"), "unknown API 'Prodce'; did you mean 'Pro"),
    ],
)
def test_what_does_not_exist_is_named(
    kafka_broker: ServerThread, read: Callable[[ClusterFixture], object], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        read(kafka_broker)


@pytest.mark.kafka(topics={"t": 1})
def test_without_a_broker_that_runs_the_reason_is_named(kafka_broker: ServerThread) -> None:
    kafka_broker.kill(1)
    reads: list[Callable[[], object]] = [
        lambda: kafka_broker.records("t"),
        lambda: kafka_broker.committed("g"),
        lambda: kafka_broker.leader("t"),
        lambda: kafka_broker.isr("t"),
        lambda: kafka_broker.create_topic("u"),
    ]
    for read in reads:
        with pytest.raises(ValueError, match="no broker runs"):
            read()


@pytest.mark.kafka(brokers=2, topics={"t": 1})
def test_a_partition_whose_replicas_are_all_down_is_not_awaited(kafka_broker: ServerThread) -> None:
    leader = kafka_broker.leader("t")
    kafka_broker.kill(leader)
    reason = rf"t-0 has no leader \(replicas {leader}; broker {leader} does not run\)"
    for read in (kafka_broker.records, kafka_broker.leader):
        with pytest.raises(ValueError, match=reason):
            read("t")
    kafka_broker.start(leader)
    assert kafka_broker.records("t") == []


@pytest.mark.kafka(brokers=2)
def test_a_wait_that_fails_says_for_what(
    kafka_broker: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_broker.create_topic("t", factor=2)
    kafka_broker.kill(2)
    kafka_broker.wait(lambda: kafka_broker.isr("t") == [1])
    kafka_broker.kill(1)
    kafka_broker.start(2)
    monkeypatch.setattr("kafkawire.net.fixture.TIMEOUT", 0.1)
    reason = r"t-0 has no leader \(replicas 1, 2; in-sync replicas 1; broker 1 does not run\)"
    with pytest.raises(TimeoutError, match=reason):
        kafka_broker.records("t")
    with pytest.raises(TimeoutError, match="never has not returned true"):
        kafka_broker.wait(never)
    monkeypatch.setattr(kafka_broker.server, "start_broker", lambda _: asyncio.Event().wait())
    with pytest.raises(TimeoutError, match="broker 1 has not started within"):
        kafka_broker.start(1)
    monkeypatch.undo()


def never() -> bool:
    return False


def test_a_function_of_a_fault_that_fails_fails_the_test() -> None:
    def fails(_request: object) -> bool:
        raise LookupError("no such topic in the request")

    def run() -> None:
        with ServerThread(ServerConfig(topics={"t": 1}, settings=QUICK)) as cluster:
            cluster.fault(fails)
            produce(cluster, ["a"])
            cluster.clear_faults()

    with pytest.raises(LookupError, match="in the request"):
        run()
    with ServerThread(ServerConfig(topics={"t": 1}, settings=QUICK)) as cluster:
        fault = cluster.fault(fails)
        produce(cluster, ["a"])
        with pytest.raises(LookupError, match="in the request"):
            assert fault.hit


def test_a_function_of_a_fault_that_calls_the_cluster_says_so() -> None:
    """It is called in the loop of the brokers, and would wait for itself."""
    with ServerThread(ServerConfig(topics={"t": 1}, settings=QUICK)) as cluster:
        fault = cluster.fault(lambda _request: bool(cluster.records("t")))
        produce(cluster, ["a"])
        with pytest.raises(LocalProtocolError, match="called in its own event loop"):
            assert fault.hit
