"""Real clients authenticate or fail to; TLS."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import confluent_kafka
import pytest

from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import Implementation, Sasl, until

pytestmark = pytest.mark.timeout(600)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CERTIFICATE = Path(__file__).with_name("localhost.pem")
SECURED = {
    "topics": {"t": 1},
    "settings": {"sasl.enabled.mechanisms": ",".join(MECHANISMS)},
    "passwords": {"alice": "alice-secret"},
}


@pytest.mark.kafka(**SECURED)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_valid_credentials_authenticate(
    kafka_broker: ServerThread, make: Implementation, mechanism: str
) -> None:
    sasl = Sasl(mechanism, "alice", "alice-secret")
    make.produce(kafka_broker.bootstrap, "t", [b"a", b"b"], sasl=sasl)
    member = make.member(kafka_broker.bootstrap, "t", "g", sasl=sasl)
    member.until(lambda: len(member.seen) == 2)
    member.leave()


@pytest.mark.kafka(**SECURED)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_invalid_credentials_are_reported(kafka_broker: ServerThread, mechanism: str) -> None:
    reported: list[int] = []
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka_broker.bootstrap,
            "group.id": "g",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": "wrong",
            "error_cb": lambda error: reported.append(error.code()),
            "log_level": 0,
        }
    )

    def authentication_failed() -> bool:
        consumer.poll(0.05)
        return confluent_kafka.KafkaError._AUTHENTICATION in reported

    until(authentication_failed)
    consumer.close()
    assert any("authentication failed" in each.reason for each in kafka_broker.closed)


def test_tls() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with ServerThread(ServerConfig(topics={"t": 1}, tls=context)) as server:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": server.bootstrap,
                "security.protocol": "SSL",
                "ssl.ca.location": str(CERTIFICATE),
            }
        )
        delivered: list[object] = []
        producer.produce("t", b"value", on_delivery=lambda error, _: delivered.append(error))
        assert producer.flush(100) == 0
        assert delivered == [None]


def test_a_client_that_ends_tls_gets_the_end_of_the_broker() -> None:
    """asyncio waits 30 s for it, at each connection that it closes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    ours = ssl.create_default_context(cafile=str(CERTIFICATE))
    with ServerThread(ServerConfig(tls=context)) as server:
        host, _, port = server.bootstrap.partition(":")
        with (
            socket.create_connection((host, int(port)), timeout=60) as plain,
            ours.wrap_socket(plain, server_hostname=host) as secured,
        ):
            assert secured.unwrap().recv(1) == b""
