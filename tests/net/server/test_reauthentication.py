"""Clients whose sessions end at our broker: those that authenticate again go on (KIP-368)."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import aiokafka
import confluent_kafka
import pytest

from kafkawire import ApiKey
from kafkawire.broker import Report
from kafkawire.broker.security.session import EXPIRED
from kafkawire.client.config import Setting
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import Sasl, until
from tests.interop.implementations.interface import Produce
from tests.interop.implementations.java import TOOLS, options, producing

from ...real.broker import MECHANISMS
from ...real.java import Installation

pytestmark = pytest.mark.timeout(600)
SESSION_MS: Final = 6000
AUTHENTICATIONS: Final = 3
SECURED = {
    "topics": {"t": 1},
    "settings": {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connections.max.reauth.ms": str(SESSION_MS),
    },
    "passwords": {"alice": "secret"},
}
Send = Callable[[str, str, str, threading.Event], None]
"""Produces until the event: servers, mechanism, client id."""


def librdkafka(servers: str, mechanism: str, client_id: str, end: threading.Event) -> None:
    errors: list[object] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "client.id": client_id,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": "secret",
        }
    )
    while not end.wait(0.05):
        producer.produce("t", b"librdkafka", on_delivery=lambda error, _: errors.append(error))
        producer.poll(0)
    producer.flush(60)
    assert set(errors) == {None}


def ours(servers: str, mechanism: str, client_id: str, end: threading.Event) -> None:
    config: dict[str, Setting] = {
        "bootstrap.servers": servers,
        "client.id": client_id,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": "secret",
    }

    async def run() -> None:
        async with Producer(config) as producer:
            while not await asyncio.to_thread(end.wait, 0.05):
                await producer.deliver("t", b"kafkawire")

    asyncio.run(run())


@contextmanager
def in_thread(send: Send, servers: str, mechanism: str, client_id: str) -> Iterator[None]:
    """Let a client produce meanwhile; an error that it raises is raised at the end."""
    end = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send, servers, mechanism, client_id, end)
        try:
            yield
        finally:
            end.set()
        sending.result(120)


@contextmanager
def java(
    installation: Installation, servers: str, mechanism: str, client_id: str
) -> Iterator[None]:
    """Let Java's console producer produce meanwhile."""
    settings = producing(Produce(servers, "t", (), sasl=Sasl(mechanism, "alice", "secret")))
    command = installation.command(
        f"{TOOLS}.ConsoleProducer",
        *("--bootstrap-server", servers, "--topic", "t"),
        *options("--command-property", settings | {"client.id": client_id, "linger.ms": "0"}),
    )
    pipe, end = subprocess.PIPE, threading.Event()
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:

        def feed() -> None:
            assert process.stdin is not None
            while not end.wait(0.05):
                process.stdin.write(b"java\n")
                process.stdin.flush()

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join(60)
            output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    assert b"ERROR" not in output + errors, (output + errors).decode()


def requests(server: ServerThread, client_id: str) -> list[Report]:
    return [each for each in server.requests if each.request.client_id == client_id]


def connections_of(reports: list[Report], api: ApiKey) -> list[int]:
    """The connections of requests, in order, each as often as it had one."""
    return [each.request.connection for each in reports if each.request.api_key is api]


def has_gone_on(server: ServerThread, client_id: str) -> bool:
    """Whether a client has produced on a connection after it authenticated again."""
    reports = requests(server, client_id)
    produced = connections_of(reports, ApiKey.PRODUCE)
    if not produced:
        return False
    of_producing = [each for each in reports if each.request.connection == produced[0]]
    keys = [each.request.api_key for each in of_producing]
    return keys.count(ApiKey.SASL_HANDSHAKE) >= AUTHENTICATIONS and keys[-1] is ApiKey.PRODUCE


@pytest.mark.kafka(**SECURED)
def test_clients_authenticate_again_on_the_connection_that_they_have(
    kafka_broker: ServerThread, installation: Installation
) -> None:
    servers, clients = kafka_broker.bootstrap, []
    with ExitStack() as running:
        for send in (ours, librdkafka):
            for mechanism in MECHANISMS:
                client_id = f"{send.__name__} {mechanism}"
                running.enter_context(in_thread(send, servers, mechanism, client_id))
                clients.append(client_id)
        running.enter_context(java(installation, servers, "SCRAM-SHA-512", "java"))
        clients.append("java")
        until(lambda: all(has_gone_on(kafka_broker, each) for each in clients))
    for client_id in clients:
        produced = connections_of(requests(kafka_broker, client_id), ApiKey.PRODUCE)
        assert len(set(produced)) == 1, f"{client_id} connected again"
    assert EXPIRED not in {each.reason for each in kafka_broker.closed}


@pytest.mark.kafka(**SECURED)
def test_a_client_that_does_not_authenticate_again_is_closed(kafka_broker: ServerThread) -> None:
    """aiokafka connects again, and loses nothing."""

    async def run() -> int:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=kafka_broker.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="alice",
            sasl_plain_password="secret",
        )
        await producer.start()
        try:
            before: Any = await producer.send_and_wait("t", b"before")
            kafka_broker.advance(SESSION_MS / 1000 + 1)
            after: Any = await producer.send_and_wait("t", b"after")
        finally:
            await producer.stop()
        return int(before.offset + after.offset)

    assert asyncio.run(run()) == 0 + 1
    assert EXPIRED in {each.reason for each in kafka_broker.closed}
