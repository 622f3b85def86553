"""Clients of others with and without permissions, and Kafka's own tool for ACLs."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError
from confluent_kafka import Consumer, KafkaError, Producer

from kafkawire.blocking import Admin
from kafkawire.net.admin import AclBinding, AclFilter
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.broker.security.acls import STANDARD
from tests.real.java import Installation

USERS = {"admin": "admin-secret", "alice": "alice-secret"}
SETTINGS = STANDARD | {"super.users": "User:admin", "group.initial.rebalance.delay.ms": "0"}
SECONDS = 60
CERTIFICATE = Path(__file__).with_name("localhost.pem")
WRITE = AclBinding("TOPIC", "orders", "User:alice", "WRITE")
READ = AclBinding("TOPIC", "ord", "User:alice", "READ", pattern_type="PREFIXED")
GROUP = AclBinding("GROUP", "g", "User:*", "READ")
COMMAND = "org.apache.kafka.tools.AclCommand"


@pytest.fixture(scope="module", params=[1, 3], ids=["one broker", "three brokers"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    config = ServerConfig(
        brokers=request.param, topics={"orders": 1}, settings=SETTINGS, passwords=USERS
    )
    with ServerThread(config) as server:
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin(as_user(server, "admin")) as admin:
        yield admin
        admin.delete_acls([AclFilter()])
        server.wait(lambda: not any(map(acls_of, server.server.machine.fronts.values())))


def as_user(server: ServerThread, name: str) -> dict[str, str]:
    return {
        "bootstrap.servers": server.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": USERS[name],
    }


def acls_of(front: object) -> object:
    return front.broker.broker.image.acls  # type: ignore[attr-defined]


def granted(server: ServerThread, admin: Admin, *acls: AclBinding) -> None:
    """Create ACLs, and wait for all brokers."""
    admin.create_acls(acls)
    count = len(admin.describe_acls())
    fronts = server.server.machine.fronts
    server.wait(
        lambda: all(
            len(acls_of(front)) == count  # type: ignore[arg-type]
            for front in fronts.values()
            if front.broker.broker.node_id in (1, 2, 3)
        )
    )


# -- confluent-kafka


def delivered(server: ServerThread) -> KafkaError | None:
    errors: list[KafkaError | None] = []
    producer = Producer(as_user(server, "alice"))
    producer.produce("orders", b"v", on_delivery=lambda error, _: errors.append(error))
    producer.flush(SECONDS)
    [error] = errors
    return error


def test_librdkafka_produces_with_permission_only(server: ServerThread, admin: Admin) -> None:
    error = delivered(server)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    granted(server, admin, WRITE)
    assert delivered(server) is None


def test_librdkafka_consumes_with_permissions_only(server: ServerThread, admin: Admin) -> None:
    granted(server, admin, WRITE)
    assert delivered(server) is None
    config = {**as_user(server, "alice"), "group.id": "g", "auto.offset.reset": "earliest"}
    for acls, code in (
        ([], KafkaError.GROUP_AUTHORIZATION_FAILED),
        ([GROUP, READ], None),
    ):
        granted(server, admin, *acls)
        consumer = Consumer(config)
        consumer.subscribe(["orders"])
        message = consumer.poll(SECONDS)
        assert message is not None
        found = message.error()
        assert (None if found is None else found.code()) == code
        consumer.close()


# -- aiokafka


async def sent(server: ServerThread) -> None:
    producer = AIOKafkaProducer(**asyncio_config(server))
    await producer.start()
    try:
        await producer.send_and_wait("orders", b"v")
    finally:
        await producer.stop()


def asyncio_config(server: ServerThread) -> dict[str, str]:
    return {
        "bootstrap_servers": server.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": USERS["alice"],
    }


async def received(server: ServerThread) -> bytes | None:
    consumer = AIOKafkaConsumer(
        "orders", group_id="g", auto_offset_reset="earliest", **asyncio_config(server)
    )
    await consumer.start()
    try:
        record = await asyncio.wait_for(consumer.getone(), SECONDS)
        value: bytes | None = record.value
        return value
    finally:
        await consumer.stop()


def test_aiokafka_is_refused_and_allowed(server: ServerThread, admin: Admin) -> None:
    with pytest.raises(TopicAuthorizationFailedError):
        asyncio.run(sent(server))
    granted(server, admin, WRITE)
    asyncio.run(sent(server))
    with pytest.raises(GroupAuthorizationFailedError):
        asyncio.run(received(server))
    granted(server, admin, GROUP, READ)
    assert asyncio.run(received(server)) == b"v"


# -- kafka-acls


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    file = tmp_path / "admin.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = f'{module} required username="admin" password="{USERS["admin"]}";'
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n",
        encoding="utf-8",
    )
    return file


def test_kafka_acls_adds_lists_and_removes_what_is_enforced(
    server: ServerThread, admin: Admin, installation: Installation, properties: Path
) -> None:
    def tool(*words: str) -> str:
        command = installation.command(
            COMMAND,
            *("--bootstrap-server", server.bootstrap, "--command-config", str(properties)),
            *words,
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    tool("--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders")
    found = {each.operation for each in admin.describe_acls(AclFilter("TOPIC", "orders"))}
    assert found == {"WRITE", "DESCRIBE", "CREATE"}
    granted(server, admin)
    assert delivered(server) is None
    denied = ("--deny-principal", "User:alice", "--operation", "Write", "--topic", "ord")
    tool("--add", *denied, "--resource-pattern-type", "prefixed")
    listed = tool("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "permissionType=DENY" in listed
    granted(server, admin)
    error = delivered(server)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    tool("--remove", *denied, "--resource-pattern-type", "prefixed", "--force")
    assert all(each.permission_type == "ALLOW" for each in admin.describe_acls())


# -- principals of certificates


@pytest.mark.parametrize(
    ("rules", "user", "allowed"),
    [
        ("DEFAULT", "CN=kafkawire tests", True),
        (r"RULE:^CN=(\w+) (\w+)$/$2@$1/U", "TESTS@KAFKAWIRE", True),
        ("DEFAULT", "ANONYMOUS", False),
    ],
)
def test_the_subject_of_a_certificate_is_a_principal(rules: str, user: str, allowed: bool) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(CERTIFICATE))
    context.load_cert_chain(CERTIFICATE)
    context.verify_mode = ssl.CERT_REQUIRED
    settings = STANDARD | {"super.users": f"User:{user}", "ssl.principal.mapping.rules": rules}
    config = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(CERTIFICATE),
        "ssl.certificate.location": str(CERTIFICATE),
        "ssl.key.location": str(CERTIFICATE),
    }
    with ServerThread(ServerConfig(topics={"t": 1}, settings=settings, tls=context)) as server:
        producer = Producer({"bootstrap.servers": server.bootstrap, **config})
        [topic] = producer.list_topics("t", SECONDS).topics.values()
    assert (topic.error is None) == allowed


def test_a_subject_that_no_rule_maps_is_closed() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(CERTIFICATE))
    context.load_cert_chain(CERTIFICATE)
    context.verify_mode = ssl.CERT_REQUIRED
    ours = ssl.create_default_context(cafile=str(CERTIFICATE))
    ours.load_cert_chain(CERTIFICATE)
    settings = {"ssl.principal.mapping.rules": "RULE:^CN=nobody$/nobody/"}
    with ServerThread(ServerConfig(settings=settings, tls=context)) as server:
        host, _, port = server.bootstrap.partition(":")
        with (
            socket.create_connection((host, int(port)), timeout=SECONDS) as plain,
            ours.wrap_socket(plain, server_hostname=host) as secured,
        ):
            assert secured.recv(1) == b""
