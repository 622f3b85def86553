"""Real clients on nodes with SASL and TLS; brokers reach each other on a listener of their own."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import confluent_kafka.admin
import pytest

from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.node.properties import BROKER
from tests.interop.implementations import IMPLEMENTATIONS, Implementation, Sasl, until
from tests.interop.implementations.ours import Ours

from ...real.wire import Wire
from .test_produce_and_consume import all_seen, values

CONFLUENT: Final[Any] = confluent_kafka.admin
pytestmark = pytest.mark.timeout(600)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CLIENTS = (Ours(), *IMPLEMENTATIONS)
CERTIFICATE = str(Path(__file__).with_name("localhost.pem"))
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(CERTIFICATE)
SETTINGS = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}


@pytest.fixture(params=CLIENTS, ids=lambda make: make.name)
def make(request: pytest.FixtureRequest) -> Implementation:
    """A client implementation."""
    found: Implementation = request.param
    return found


@pytest.mark.kafka_cluster(settings=SETTINGS, passwords={"alice": "secret"}, tls=CONTEXT)
def test_a_replicated_topic_over_sasl_ssl(
    kafka_cluster: ClusterThread, make: Implementation
) -> None:
    mechanism = MECHANISMS[CLIENTS.index(make) % len(MECHANISMS)]
    sasl = Sasl(mechanism, "alice", "secret", CERTIFICATE)
    make.produce(kafka_cluster.bootstrap, "t", values(10, "first"), sasl=sasl)
    member = make.member(kafka_cluster.bootstrap, "t", "g", sasl=sasl)
    member.until(lambda: all_seen([member], 10))
    kafka_cluster.kill(kafka_cluster.leader("t"))
    make.produce(kafka_cluster.bootstrap, "t", values(10, "second"), sasl=sasl)
    member.until(lambda: all_seen([member], 20))
    member.leave()
    assert [each.value for each in member.seen] == values(10, "first") + values(10, "second")


def settings(bootstrap: str, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }


def is_authenticated(bootstrap: str, password: str) -> bool:
    """Whether a client with this password is authenticated, and not refused."""
    reported: list[int] = []
    client = CONFLUENT.AdminClient(
        settings(bootstrap, "bob", password)
        | {"error_cb": lambda error: reported.append(error.code())}
    )
    found: list[object] = []

    def known() -> bool:
        try:
            found.append(client.list_topics(timeout=0.2))
        except confluent_kafka.KafkaException:
            client.poll(0)
        return bool(found) or confluent_kafka.KafkaError._AUTHENTICATION in reported

    until(known)
    return bool(found)


@pytest.mark.kafka_cluster(brokers=1, settings=SETTINGS, passwords={"alice": "secret"})
def test_users_of_the_metadata_log(kafka_cluster: ClusterThread) -> None:
    bootstrap = kafka_cluster.bootstrap
    admin = CONFLUENT.AdminClient(settings(bootstrap, "alice", "secret"))
    info = CONFLUENT.ScramCredentialInfo(CONFLUENT.ScramMechanism.SCRAM_SHA_256, 4096)
    assert not is_authenticated(bootstrap, "one")
    for password in (b"one", b"two"):
        added = CONFLUENT.UserScramCredentialUpsertion("bob", info, password)
        admin.alter_user_scram_credentials([added])["bob"].result(60)
        assert is_authenticated(bootstrap, password.decode())
    assert not is_authenticated(bootstrap, "one")
    kafka_cluster.kill(1)
    kafka_cluster.start(1)
    assert is_authenticated(bootstrap, "two")
    described = admin.describe_user_scram_credentials(["bob"])["bob"].result(60)
    [found] = described.scram_credential_infos
    assert (found.mechanism, found.iterations) == (info.mechanism, info.iterations)
    deletion = CONFLUENT.UserScramCredentialDeletion("bob", CONFLUENT.ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([deletion])["bob"].result(60)
    assert not is_authenticated(bootstrap, "two")


@pytest.mark.kafka_cluster(settings=SETTINGS, passwords={"alice": "secret"})
def test_clients_are_shown_brokers_at_the_listener_that_they_use(
    kafka_cluster: ClusterThread,
) -> None:
    ports = kafka_cluster.ports(BROKER)
    with Wire(ports[1]) as wire:
        response = wire.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
    assert {each.node_id: each.port for each in response.brokers} == ports
    admin = CONFLUENT.AdminClient(settings(kafka_cluster.bootstrap, "alice", "secret"))
    brokers = admin.list_topics(timeout=60).brokers
    assert {key: each.port for key, each in brokers.items()} == kafka_cluster.ports()
    assert not set(ports.values()) & set(kafka_cluster.ports().values())
