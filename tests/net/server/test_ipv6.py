"""Brokers that listen on an address in IPv6: its brackets are those of RFC 3986.

Where a machine has no such address, as some containers, IPv4's is the only one to listen on.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest

from kafkawire.blocking import Consumer, Producer
from kafkawire.capture import decode_capture
from kafkawire.display import host_and_port
from kafkawire.net.brokers.recording import Recording
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig
from kafkawire.net.server_thread import ServerThread

pytestmark = pytest.mark.timeout(120)
SECONDS = 30.0


def loopback() -> str:
    """Find the address to listen on."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return "::1"
    except OSError:
        return "127.0.0.1"


HOST: Final = loopback()


@pytest.mark.parametrize("kind", [ServerThread, ClusterThread])
def test_clients_reach_brokers_at_an_address_in_ipv6(
    kind: type[ServerThread] | type[ClusterThread],
) -> None:
    config = ServerConfig(host=HOST, brokers=2, topics={"t": 1})
    with kind(config) as cluster:
        first, second = cluster.bootstrap.split(",")
        assert all(each.startswith(host_and_port(HOST, 0)[:-1]) for each in (first, second))
        with Producer({"bootstrap.servers": first}) as producer:
            producer.send("t", b"one").result(SECONDS)
        cluster.stop(2)
        cluster.start(2)
        theirs = confluent_kafka.Producer({"bootstrap.servers": second})
        theirs.produce("t", b"two")
        assert theirs.flush(SECONDS) == 0
        settings = {"bootstrap.servers": second, "auto.offset.reset": "earliest"}
        with Consumer(settings | {"group.id": "g"}) as consumer:
            consumer.subscribe(["t"])
            values = [next(iter(consumer)).value for _ in range(2)]
        assert values == [b"one", b"two"]


def test_a_recording_has_addresses_in_ipv6(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.pcap"
    config = ServerConfig(host=HOST, topics={"t": 1})
    with (
        ServerThread(config, recording=Recording(recorded)) as server,
        Producer({"bootstrap.servers": server.bootstrap}) as producer,
    ):
        producer.send("t", b"one").result(SECONDS)
    with recorded.open("rb") as file:
        brokers = {each.broker for each in decode_capture(file)}
    assert brokers == {server.bootstrap}


def test_a_port_that_is_in_use_is_named_with_brackets() -> None:
    with ServerThread(ServerConfig(host=HOST)) as server:
        port = int(server.bootstrap.rpartition(":")[2])
        with (
            pytest.raises(OSError) as refused,
            ServerThread(ServerConfig(host=HOST, ports=(port,))),
        ):
            pass
    assert refused.value.filename == host_and_port(HOST, port)


@pytest.mark.parametrize(
    ("host", "text"),
    [("::1", "[::1]:9092"), ("127.0.0.1", "127.0.0.1:9092"), ("broker", "broker:9092")],
)
def test_an_address_in_ipv6_has_brackets_before_its_port(host: str, text: str) -> None:
    assert host_and_port(host, 9092) == text
