"""The configuration of `kafka_broker` and `kafka_cluster`: what it takes, implies and refuses."""

from __future__ import annotations

import socket

import pytest
from confluent_kafka import Producer

import kafkawire
from kafkawire.broker.configs import Settings
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.net.server_config import EXPECTED, FIELDS, ServerConfig
from kafkawire.net.server_thread import ServerThread

SECONDS = 20.0
pytestmark = pytest.mark.timeout(600)


def test_what_every_field_may_be_is_listed() -> None:
    assert EXPECTED.keys() == set(FIELDS)


def test_an_error_names_a_user_and_shows_no_password() -> None:
    with pytest.raises(ValueError, match="passwords: ") as raised:
        ServerConfig(passwords={"alice": b"secret"})  # type: ignore[dict-item]
    assert "secret" not in str(raised.value)


@pytest.mark.kafka(
    settings={
        "auto.create.topics.enable": False,
        "num.partitions": 3,
        "log.cleaner.min.cleanable.ratio": 0.25,
        "log.cleanup.policy": ["delete", "compact"],
    }
)
def test_settings_may_be_python_values(kafka_broker: ServerThread) -> None:
    settings = Settings(kafka_broker.config.settings)
    assert not settings.flag("auto.create.topics.enable")
    assert settings.number("num.partitions") == 3
    assert settings.text("log.cleaner.min.cleanable.ratio") == "0.25"
    assert settings.items("log.cleanup.policy") == ("delete", "compact")
    kafka_broker.create_topic("t", configs={"retention.ms": 7, "preallocate": True})
    topic = kafka_broker.server.machine.image().topic("t")
    assert topic is not None
    with pytest.raises(ValueError, match=r"did you mean 'max\.message\.bytes'"):
        kafka_broker.create_topic("u", configs={"message.max.bytes": 1})
    with pytest.raises(ValueError, match=r"did you mean 'retention\.ms'"):
        kafka_broker.create_topic("u", configs={"retentionms": "1"})


@pytest.mark.kafka(passwords={"alice": "secret"})
def test_passwords_alone_require_sasl(kafka_broker: ServerThread) -> None:
    sasl = {"sasl.username": "alice", "sasl.password": "secret", "sasl.mechanism": "PLAIN"}
    secured = {
        "bootstrap.servers": kafka_broker.bootstrap, "log_level": 0,
        "security.protocol": "SASL_PLAINTEXT",
    }  # fmt: skip
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        client = Producer({**secured, **sasl, "sasl.mechanism": mechanism})
        assert client.list_topics(timeout=SECONDS).brokers
    assert {each.request.user for each in kafka_broker.requests_of("Metadata")} == {"alice"}
    host, port = kafka_broker.bootstrap.split(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS) as anonymous:
        anonymous.sendall(kafkawire.encode_frame(MetadataRequest(topics=None), 9, 1))
        assert anonymous.recv(1) == b"", "closed without a response"
