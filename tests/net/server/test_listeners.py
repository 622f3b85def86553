"""Several listeners with protocols of their own: real clients on each of them, and wrong ones."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aiokafka
import confluent_kafka
import confluent_kafka.admin
import pytest

from kafkawire import ErrorCode
from kafkawire.broker.security.protocols import SecurityProtocol
from kafkawire.messages.describe_cluster_request import DescribeClusterRequest
from kafkawire.messages.describe_cluster_response import DescribeClusterResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import until

from ...real.java import Installation
from ...real.wire import HOST, Wire
from .certificates import BROKER, BROKER_SUBJECT, write_certificate

pytestmark = pytest.mark.timeout(600)
SECONDS: Final = 60.0
WAITS_S: Final = 0.5
CONFLUENT: Final[Any] = confluent_kafka.admin
PASSWORDS: Final = {"alice": "secret"}
KEYSTORE: Final = {"ssl.keystore.location": BROKER}
SASL: Final = {
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "alice",
    "sasl.password": "secret",
}
CA: Final = {"ssl.ca.location": BROKER}
CLIENTS: Final[dict[str, dict[str, str]]] = {
    "INTERNAL": {"security.protocol": "PLAINTEXT"},
    "EXTERNAL": {"security.protocol": "SASL_SSL", **SASL, **CA},
}
TWO: Final = {
    **KEYSTORE,
    "listeners": "EXTERNAL://:0,INTERNAL://:0",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:SASL_SSL",
    "inter.broker.listener.name": "INTERNAL",
    "listener.name.external.sasl.enabled.mechanisms": "SCRAM-SHA-256",
}
MUTUAL: Final = {
    **KEYSTORE,
    "listeners": "PLAINTEXT://:0,SSL://:0",
    "listener.name.ssl.ssl.client.auth": "required",
    "listener.name.ssl.ssl.truststore.location": BROKER,
}


def brokers_seen(bootstrap: str, config: Mapping[str, str]) -> dict[int, int]:
    """The ports of the brokers by id, as a client sees them."""
    client = CONFLUENT.AdminClient({"bootstrap.servers": bootstrap, **config})
    brokers = client.list_topics(timeout=SECONDS).brokers
    return {node_id: each.port for node_id, each in brokers.items()}


def assert_refused(bootstrap: str, config: dict[str, str], error: str) -> None:
    """Connect a client until it reports an error."""
    errors: list[str] = []
    client = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "error_cb": lambda each: errors.append(f"{each.name()}: {each.str()}"),
            **config,
        }
    )

    def is_reported() -> bool:
        client.poll(0.05)
        return any(error in each for each in errors)

    until(is_reported)


@pytest.mark.kafka_cluster(settings=TWO, passwords=PASSWORDS)
def test_clients_are_shown_the_listener_that_they_use(kafka_cluster: ClusterThread) -> None:
    for listener, config in CLIENTS.items():
        ports = kafka_cluster.ports(listener)
        assert brokers_seen(kafka_cluster.bootstrap_servers(listener), config) == ports
    internal, external = (set(kafka_cluster.ports(each).values()) for each in CLIENTS)
    assert not internal & external
    assert kafka_cluster.ports() == kafka_cluster.ports("EXTERNAL")
    for listener, config in CLIENTS.items():
        servers = {"bootstrap.servers": kafka_cluster.bootstrap_servers(listener), **config}
        admin = CONFLUENT.AdminClient(servers)
        nodes = admin.describe_cluster().result(SECONDS).nodes
        assert {each.id: each.port for each in nodes} == kafka_cluster.ports(listener)


def produce(bootstrap: str, config: dict[str, str], value: bytes) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **config})
    errors: list[object] = []
    producer.produce("t", value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(SECONDS) == 0
    assert errors == [None]


async def consumed(bootstrap: str, config: dict[str, Any]) -> bytes:
    """The value of the first record that a member of a group reads."""
    consumer = aiokafka.AIOKafkaConsumer(
        "t", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest", **config
    )
    await consumer.start()
    try:
        record: Any = await consumer.getone()
        return bytes(record.value)
    finally:
        await consumer.stop()


@pytest.mark.kafka(brokers=3, topics={"t": 1}, settings=TWO, passwords=PASSWORDS)
def test_a_member_finds_its_coordinator_on_its_listener(kafka_broker: ServerThread) -> None:
    secured = {
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=BROKER),
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "secret",
    }
    internal, external = map(kafka_broker.bootstrap_servers, CLIENTS)
    produce(internal, CLIENTS["INTERNAL"], b"by the internal listener")
    assert asyncio.run(consumed(external, secured)) == b"by the internal listener"
    users = {each.request.user for each in kafka_broker.requests_of("JoinGroup")}
    assert users == {"alice"}


@pytest.mark.kafka_cluster(settings=TWO, passwords=PASSWORDS)
def test_a_node_has_the_same_ports_after_a_restart(kafka_cluster: ClusterThread) -> None:
    before = {listener: kafka_cluster.ports(listener) for listener in CLIENTS}
    kafka_cluster.kill(2)
    kafka_cluster.start(2)
    for listener, config in CLIENTS.items():
        servers = f"127.0.0.1:{before[listener][2]}"
        assert brokers_seen(servers, config) == before[listener]


@pytest.mark.parametrize(
    ("listener", "config", "error", "reason"),
    [
        (
            "EXTERNAL",
            {**CLIENTS["EXTERNAL"], "sasl.password": "wrong"},
            "_AUTHENTICATION",
            "authentication failed",
        ),
        (
            "EXTERNAL",
            {**CLIENTS["EXTERNAL"], "sasl.mechanism": "PLAIN"},
            "SCRAM-SHA-256",  # what the listener has
            "authentication failed",
        ),
        ("EXTERNAL", {"security.protocol": "PLAINTEXT"}, "DOWN", "WRONG_VERSION_NUMBER"),
        ("EXTERNAL", {"security.protocol": "SSL", **CA}, "DOWN", "before authentication"),
        ("INTERNAL", {"security.protocol": "SSL", **CA}, "PLAINTEXT", "max.bytes"),
    ],
)
@pytest.mark.kafka(settings=TWO, passwords=PASSWORDS)
def test_a_client_with_the_protocol_of_another_listener_is_refused(
    kafka_broker: ServerThread, listener: str, config: dict[str, str], error: str, reason: str
) -> None:
    assert_refused(kafka_broker.bootstrap_servers(listener), config, error)
    kafka_broker.wait(lambda: any(reason in each.reason for each in kafka_broker.closed))
    assert brokers_seen(kafka_broker.bootstrap_servers("INTERNAL"), CLIENTS["INTERNAL"])


def with_certificate(path: str) -> dict[str, str]:
    """A client that has a certificate."""
    own = {"ssl.certificate.location": path, "ssl.key.location": path}
    return {"security.protocol": "SSL", **CA, **own}


@pytest.mark.kafka(settings=MUTUAL)
def test_a_listener_may_require_certificates_of_clients(
    kafka_broker: ServerThread, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers("SSL")
    assert brokers_seen(servers, with_certificate(BROKER)) == kafka_broker.ports("SSL")
    users = [each.request.user for each in kafka_broker.requests_of("Metadata")]
    assert set(users) == {BROKER_SUBJECT}
    unknown = write_certificate(tmp_path / "unknown.pem", "unknown")
    assert_refused(servers, with_certificate(unknown), "unknown ca")
    assert_refused(servers, {"security.protocol": "SSL", **CA}, "certificate required")
    assert any("PEER_DID_NOT_RETURN_A_CERTIFICATE" in each.reason for each in kafka_broker.closed)
    assert any("CERTIFICATE_VERIFY_FAILED" in each.reason for each in kafka_broker.closed)


@pytest.mark.kafka(settings={**MUTUAL, "listener.name.ssl.ssl.client.auth": "requested"})
def test_a_certificate_that_is_requested_may_be_missing_but_not_wrong(
    kafka_broker: ServerThread, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers("SSL")
    assert brokers_seen(servers, {"security.protocol": "SSL", **CA})
    assert brokers_seen(servers, with_certificate(BROKER))
    users = {each.request.user for each in kafka_broker.requests_of("Metadata")}
    assert users == {"ANONYMOUS", BROKER_SUBJECT}
    unknown = write_certificate(tmp_path / "unknown.pem", "unknown")
    assert_refused(servers, with_certificate(unknown), "unknown ca")


RULES: Final = {
    **KEYSTORE,
    "listeners": "ONE://:0,TWO://:0,PLAINTEXT://:0",
    "listener.security.protocol.map": "ONE:SSL,TWO:SSL,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "ssl.client.auth": "required",
    "ssl.truststore.location": BROKER,
    "ssl.principal.mapping.rules": r"RULE:^CN=(\w+) .*$/$1/U",
    "listener.name.two.ssl.principal.mapping.rules": r"RULE:^CN=\w+ (.*)$/$1/",
}


@pytest.mark.kafka(settings=RULES)
def test_each_listener_maps_certificates_by_its_rules(kafka_broker: ServerThread) -> None:
    for listener in ("ONE", "TWO"):
        brokers_seen(kafka_broker.bootstrap_servers(listener), with_certificate(BROKER))
    users = [each.request.user for each in kafka_broker.requests_of("Metadata")]
    assert list(dict.fromkeys(users)) == ["KAFKAWIRE", "tests"]


def test_the_key_of_a_certificate_may_have_a_password(tmp_path: Path) -> None:
    keystore = write_certificate(tmp_path / "broker.pem", "locked", "word")
    locked = {
        "listeners": "SSL://:0,PLAINTEXT://:0",
        "listener.name.ssl.ssl.keystore.location": keystore,
        "listener.name.ssl.ssl.key.password": "word",
    }
    with ServerThread(ServerConfig(settings=locked)) as server:
        trusting = {"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}
        assert brokers_seen(server.bootstrap, trusting) == server.ports("SSL")
        assert described(server)["listener.name.ssl.ssl.key.password"] is None
    for wrong in ("drow", ""):
        with pytest.raises(ValueError, match=r"broker\.pem") as error:
            ServerConfig(settings={**locked, "listener.name.ssl.ssl.key.password": wrong})
        assert "drow" not in str(error.value)


def described(server: ServerThread) -> dict[str, str | None]:
    """The configuration of the first broker, as requested on its listener without TLS."""
    resource = DescribeConfigsResource(resource_type=4, resource_name="1")
    [port] = server.ports("PLAINTEXT").values()
    with Wire(port) as wire:
        request = DescribeConfigsRequest(resources=[resource])
        [result] = wire.exchange(request, 4, DescribeConfigsResponse).results
    return {each.name: each.value for each in result.configs}


def test_clients_are_shown_the_advertised_address() -> None:
    settings = {
        "listeners": "PLAINTEXT://:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://localhost:0,OUTSIDE://kafka.example.org:19092",
    }
    with ServerThread(ServerConfig(brokers=2, settings=settings)) as server:
        metadata = {
            listener: CONFLUENT.AdminClient(
                {"bootstrap.servers": server.bootstrap_servers(listener)}
            ).list_topics(timeout=SECONDS)
            for listener in ("PLAINTEXT", "OUTSIDE")
        }
        inside, outside = server.ports("PLAINTEXT"), server.ports("OUTSIDE")
    shown = {
        listener: {node_id: (each.host, each.port) for node_id, each in seen.brokers.items()}
        for listener, seen in metadata.items()
    }
    assert shown["PLAINTEXT"] == {id: ("localhost", port) for id, port in inside.items()}
    hosts = {1: ("kafka.example.org", 19092), 2: ("kafka.example.org", 19093)}
    assert shown["OUTSIDE"] == hosts
    assert 19092 not in outside.values()


@pytest.mark.kafka(settings={**MUTUAL, "listener.name.ssl.max.connections": "0"})
def test_a_listener_may_have_a_limit_of_connections(kafka_broker: ServerThread) -> None:
    port = kafka_broker.ports("SSL")[1]
    with socket.create_connection((HOST, port), timeout=WAITS_S) as waiting:
        waiting.sendall(b"GET / HTTP/1.1\r\n\r\n")  # which a listener with TLS closes
        with pytest.raises(TimeoutError):
            waiting.recv(1)
    assert not kafka_broker.closed
    assert brokers_seen(kafka_broker.bootstrap_servers("PLAINTEXT"), {})
    listeners = described(kafka_broker)["listeners"]
    ports = [kafka_broker.ports(each)[1] for each in ("PLAINTEXT", "SSL")]
    assert listeners == "PLAINTEXT://127.0.0.1:{},SSL://127.0.0.1:{}".format(*ports)


NAMED: Final = {
    "listeners": "QUORUM://:0,PUBLIC://:0,INSIDE://:0,HIDDEN://:0",
    "listener.security.protocol.map": (
        "PUBLIC:SASL_PLAINTEXT,INSIDE:PLAINTEXT,QUORUM:PLAINTEXT,HIDDEN:PLAINTEXT"
    ),
    "advertised.listeners": "PUBLIC://localhost:0,INSIDE://127.0.0.1:0",
    "inter.broker.listener.name": "INSIDE",
    "controller.listener.names": "QUORUM",
}


@pytest.mark.kafka_cluster(brokers=3, topics={"t": 1}, settings=NAMED, passwords=PASSWORDS)
def test_a_registration_has_the_advertised_listeners(kafka_cluster: ClusterThread) -> None:
    produce(kafka_cluster.bootstrap_servers("INSIDE"), {}, b"replicated")
    kafka_cluster.wait(lambda: kafka_cluster.isr("t") == [1, 2, 3])
    public, inside = kafka_cluster.ports(), kafka_cluster.ports("INSIDE")
    registered = {
        node_id: {each.name: tuple(each)[1:] for each in broker.endpoints}
        for node_id, broker in kafka_cluster.server.machine.image().brokers.items()
    }
    assert registered == {
        node_id: {
            "INSIDE": ("127.0.0.1", inside[node_id], SecurityProtocol.PLAINTEXT),
            "PUBLIC": ("localhost", public[node_id], SecurityProtocol.SASL_PLAINTEXT),
        }
        for node_id in (1, 2, 3)
    }


EXTERNAL: Final = {
    "listeners": "EXTERNAL://:0",
    "listener.security.protocol.map": "EXTERNAL:SASL_PLAINTEXT",
}


@pytest.mark.kafka_cluster(brokers=3, topics={"t": 1}, settings=EXTERNAL, passwords=PASSWORDS)
def test_brokers_without_a_listener_of_their_own_get_one(kafka_cluster: ClusterThread) -> None:
    produce(kafka_cluster.bootstrap, {"security.protocol": "SASL_PLAINTEXT", **SASL}, b"a")
    kafka_cluster.wait(lambda: kafka_cluster.isr("t") == [1, 2, 3])
    assert set(kafka_cluster.ports("PLAINTEXT")) == {1, 2, 3}


@pytest.mark.kafka_cluster(settings=NAMED, passwords=PASSWORDS)
def test_controllers_are_described_on_their_listener(
    kafka_cluster: ClusterThread, installation: Installation
) -> None:
    ports = kafka_cluster.ports("QUORUM")
    with Wire(ports[1]) as wire:
        cluster = wire.exchange(DescribeClusterRequest(endpoint_type=2), 1, DescribeClusterResponse)
        errors = [
            wire.exchange(request, version, DescribeClusterResponse).error_code
            for request, version in (
                (DescribeClusterRequest(endpoint_type=1), 1),
                (DescribeClusterRequest(endpoint_type=3), 1),
                (DescribeClusterRequest(), 0),
            )
        ]
    assert {each.broker_id: each.port for each in cluster.brokers} == ports
    assert cluster.controller_id in ports
    assert cluster.endpoint_type == 2
    assert errors == [
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        ErrorCode.INVALID_REQUEST,
    ]
    command = installation.command(
        "org.apache.kafka.tools.MetadataQuorumCommand",
        *("--bootstrap-controller", kafka_cluster.bootstrap_servers("QUORUM")),
        *("describe", "--status"),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^LeaderId:\s+{cluster.controller_id}$", done.stdout, re.MULTILINE)
