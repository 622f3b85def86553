"""A cluster before 2.8 on sockets: its brokers' connections are recorded, clients do not notice."""

from __future__ import annotations

import ssl
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest

from kafkawire.capture import decode_capture
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.net.brokers.recording import Recording
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.node.zookeeper.cluster import ZooKeeperCluster
from kafkawire_cli.verbs.clusters.serve import _config

from ...real.wire import Wire

pytestmark = pytest.mark.timeout(300)
SECONDS: Final = 60.0
BETWEEN_BROKERS: Final = ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")

SOON: Final = {
    "retry.backoff.ms": 10,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 10,
}
"""Of librdkafka: it looks for new leaders without delay."""


def wait(done: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def settled(cluster: ServerThread) -> bool:
    """Whether the controller has a response to each request."""
    assert isinstance(cluster.server.machine, ZooKeeperCluster)
    return cluster.server.machine.controller.total_queue_size == 0


@pytest.mark.parametrize(
    ("release", "versions"), [("2.2", (2, 1, 5, 2)), ("2.7", (4, 3, 6, 3))], ids=["2.2", "2.7"]
)
def test_a_recording_has_the_exchanges_of_the_brokers(
    tmp_path: Path, release: str, versions: tuple[int, ...]
) -> None:
    path = tmp_path / "brokers.pcap"
    config = ServerConfig(brokers=3, topics={"t": 3}, release=release, zookeeper=True)
    with ServerThread(config, recording=Recording(path)) as cluster:
        cluster.create_topic("replicated", 3, 3)
        wait(lambda: settled(cluster))
        cluster.stop(2)
        wait(lambda: settled(cluster))
        cluster.start(2)
        wait(lambda: settled(cluster))
        cluster.stop(1)
        wait(lambda: settled(cluster))
        delete_topic(cluster, "replicated")
        wait(lambda: settled(cluster))
    rows = [each for each in decode_capture(path) if each.row.api_name in BETWEEN_BROKERS]
    seen = {each.row.api_name: each.row.api_version for each in rows}
    assert seen == dict(zip(BETWEEN_BROKERS, versions, strict=True))
    assert {each.row.status.value for each in rows} == {"ok"}
    directions = Counter((each.connection, each.row.direction) for each in rows)
    for connection in {each.connection for each in rows}:
        missing = directions[connection, "request"] - directions[connection, "response"]
        assert missing in (0, 1), "only a broker that stops leaves one request without response"
    assert sum(directions[number, "response"] for number, _ in directions) > 30
    assert {each.row.client_id for each in rows} == {"1", "2"}, "both controllers, the second was 2"


def delete_topic(cluster: ServerThread, name: str) -> None:
    """Delete a topic by a request to the second controller."""
    port = cluster.server.endpoints[1].port
    with Wire(port) as wire:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=1)
        response = wire.exchange(request, 3, DeleteTopicsResponse)
    assert [each.error_code for each in response.responses] == [0]


def controller_id(port: int) -> int:
    with Wire(port) as wire:
        return wire.exchange(MetadataRequest(topics=None), 5, MetadataResponse).controller_id


@pytest.mark.kafka(brokers=3, release="2.7", zookeeper=True)
def test_another_controller_is_elected(kafka_broker: ServerThread) -> None:
    ports = [int(each.rpartition(":")[2]) for each in kafka_broker.bootstrap.split(",")]
    assert [controller_id(port) for port in ports] == [1, 1, 1]
    kafka_broker.stop(1)
    assert [controller_id(port) for port in ports[1:]] == [2, 2]
    kafka_broker.start(1)
    assert [controller_id(port) for port in ports] == [2, 2, 2]


@pytest.mark.kafka(brokers=3, release="2.2", zookeeper=True)
def test_librdkafka_notices_nothing_but_leaders_that_move(kafka_broker: ServerThread) -> None:
    kafka_broker.create_topic("t", 3, 3)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka_broker.bootstrap, "acks": "all", "log_level": 0} | SOON
    )
    delivered: list[object] = []
    for node_id in (1, 2, 3):
        for number in range(30):
            producer.produce(
                "t", str(number).encode(), on_delivery=lambda error, _: delivered.append(error)
            )
        producer.poll(0)
        kafka_broker.stop(node_id)
        assert producer.flush(SECONDS) == 0
        kafka_broker.start(node_id)
    assert delivered == [None] * 90
    assert all(reason.reason == "the node has stopped" for reason in kafka_broker.closed)


@pytest.mark.kafka(brokers=2, release="2.7", zookeeper=True)
def test_a_fault_between_brokers_is_repaired(kafka_broker: ServerThread) -> None:
    wait(lambda: settled(kafka_broker))
    fault = kafka_broker.fault("LeaderAndIsr", nth=1, action="disconnect")
    kafka_broker.create_topic("t", 2, 2)
    wait(lambda: fault.hit == 1 and settled(kafka_broker))


def test_only_releases_before_2_8_have_it() -> None:
    with pytest.raises(ValueError, match=r"no ZooKeeper in release 2\.8"):
        ServerConfig(release="2.8", zookeeper=True)


def test_it_is_not_for_tls_and_sasl() -> None:
    with pytest.raises(ValueError, match="without TLS and SASL"):
        ServerConfig(release="2.7", tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), zookeeper=True)
    with pytest.raises(ValueError, match="without TLS and SASL"):
        ServerConfig(release="2.7", settings={"sasl.enabled.mechanisms": "PLAIN"}, zookeeper=True)


@pytest.mark.parametrize(
    ("release", "users", "expected"),
    [("2.2", [], True), ("2.7", [], True), ("2.7", ["a:b"], False), ("2.8", [], False)],
)
def test_serve_shows_it_where_it_can(release: str, users: list[str], expected: bool) -> None:
    config = _config(3, [], release, "127.0.0.1", 0, [], users, None)
    assert config.zookeeper is expected
    assert not _config(3, [], None, "127.0.0.1", 0, [], [], None).zookeeper
