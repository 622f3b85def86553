"""Real clients authenticate with tokens at our broker, without a signature and with one; ACLs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka
import kafka.errors
import kafka.net.sasl.oauth
import pytest

from kafkawire.client.config import Setting
from kafkawire.client.failures import BrokerError
from kafkawire.client.security import OAuthBearerToken
from kafkawire.net.producer import Producer
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import until
from tests.interop.implementations.interface import Produce, Sasl
from tests.interop.implementations.java import TOOLS, producing

from ...broker.security.jwts import AUDIENCE, ISSUER, Issuer, claims, unsecured
from ...real.java import Installation

pytestmark = pytest.mark.timeout(600)
SETTINGS: Final = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:alice",
}


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """The issuer of the signed tokens."""
    return Issuer()


@pytest.fixture(params=["unsecured", "signed"])
def server(
    request: pytest.FixtureRequest, issuer: Issuer, tmp_path: Path
) -> Iterator[tuple[ServerThread, Any]]:
    """A broker, and what makes the tokens that it accepts of their claims."""
    settings = dict(SETTINGS)
    if request.param == "signed":
        path = tmp_path / "keys.json"
        path.write_text(issuer.jwks())
        settings |= {
            "sasl.oauthbearer.jwks.endpoint.url": path.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
        }
    with ServerThread(ServerConfig(topics={"t": 1}, settings=settings)) as thread:
        yield thread, unsecured if request.param == "unsecured" else issuer.sign


def test_our_client_and_acls_of_its_principal(server: tuple[ServerThread, Any]) -> None:
    thread, make_token = server

    async def produce(user: str) -> int:
        value = make_token(claims(time.time(), sub=user))
        config: dict[str, Setting] = {
            "bootstrap.servers": thread.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauth.token.provider": lambda: OAuthBearerToken(value),
        }
        async with Producer(config) as producer:
            return (await producer.deliver("t", b"v")).offset

    assert asyncio.run(produce("alice")) == 0
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        asyncio.run(produce("bob"))
    assert {each.request.user for each in thread.requests_of("Produce")} == {"alice"}


def test_librdkafka(server: tuple[ServerThread, Any]) -> None:
    thread, make_token = server
    reported: list[int] = []

    def connect(**more: Any) -> confluent_kafka.Producer:
        values = claims(time.time(), **more)

        def token(_config: str) -> tuple[str, float]:
            return make_token(values), time.time() + 3600

        return confluent_kafka.Producer(
            {
                "bootstrap.servers": thread.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": token,
                "error_cb": lambda error: reported.append(error.code()),
                "log_level": 0,
            }
        )

    producer = connect()
    delivered: list[int | None] = []
    producer.produce("t", b"v", on_delivery=lambda _, message: delivered.append(message.offset()))
    producer.flush(60)
    assert delivered == [0]
    expired = connect(exp=1_000)

    def authentication_failed() -> bool:
        expired.poll(0.05)
        return confluent_kafka.KafkaError._AUTHENTICATION in reported

    until(authentication_failed)
    until(lambda: any("authentication failed" in each.reason for each in thread.closed))
    assert not any("eyJ" in each.reason for each in thread.closed)


def test_aiokafka(server: tuple[ServerThread, Any]) -> None:
    thread, make_token = server
    value = make_token(claims(time.time()))

    class Provider(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return str(value)

    async def produce() -> int:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=thread.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
        )
        await producer.start()
        try:
            return int((await producer.send_and_wait("t", b"v")).offset)
        finally:
            await producer.stop()

    assert asyncio.run(produce()) == 0
    assert {each.request.user for each in thread.requests_of("Produce")} == {"alice"}


def test_kafka_python(server: tuple[ServerThread, Any]) -> None:
    thread, make_token = server
    tokens = {name: make_token(claims(time.time(), sub=name)) for name in ("alice", "bob")}

    class Provider(kafka.net.sasl.oauth.AbstractTokenProvider):  # type: ignore[misc]
        def __init__(self, value: str) -> None:
            self.value = value

        def token(self) -> str:
            return self.value

    @contextmanager
    def producing(value: str, **more: Any) -> Iterator[Any]:
        producer = kafka.KafkaProducer(
            **more,
            bootstrap_servers=thread.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(value),
        )
        try:
            yield producer
        finally:
            producer.close(timeout=60)

    with producing(tokens["alice"]) as producer:
        assert producer.send("t", b"v").get(60).offset == 0
    with (
        producing(tokens["bob"]) as producer,
        pytest.raises(kafka.errors.TopicAuthorizationFailedError),
    ):
        producer.send("t", b"v").get(60)
    assert {each.request.user for each in thread.requests_of("Produce")} == {"alice"}
    with (
        pytest.raises(kafka.errors.KafkaError),
        producing(make_token(claims(time.time(), exp=1_000)), bootstrap_timeout_ms=5_000),
    ):
        pass
    assert any("authentication failed" in each.reason for each in thread.closed)


@pytest.mark.kafka(topics={"t": 1}, settings=SETTINGS)
def test_java(kafka_broker: ServerThread, installation: Installation, tmp_path: Path) -> None:
    """Its token, which it makes by itself, has no signature."""
    sasl = Sasl("OAUTHBEARER", "alice", "")
    produced = Produce(kafka_broker.bootstrap, "t", [], sasl=sasl)
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in producing(produced).items()))
    installation.run(
        f"{TOOLS}.ConsoleProducer",
        *("--bootstrap-server", kafka_broker.bootstrap, "--topic", "t"),
        *("--command-config", str(path)),
        stdin="a\nb\n",
    )
    assert {each.request.user for each in kafka_broker.requests_of("Produce")} == {"alice"}
