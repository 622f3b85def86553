"""Which listeners brokers have, and what is not possible, without a broker."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from kafkawire.net.listeners import check_in_memory
from kafkawire.net.server_config import ServerConfig
from kafkawire.raft import Endpoint

from .certificates import BROKER, write_certificate

MIXED = {"listeners": "PLAINTEXT://:9092,SSL://:9095", "ssl.keystore.location": BROKER}


def names(**config: Any) -> tuple[str, ...]:
    return ServerConfig(**config).listeners().names


def test_brokers_reach_each_other_on_a_listener_without_sasl_and_tls() -> None:
    assert names() == ("PLAINTEXT",)
    assert names(passwords={"a": "b"}) == ("PLAINTEXT", "SASL_PLAINTEXT")
    assert names(release="3.9") == ("REPLICATION", "PLAINTEXT")
    assert names(settings={"ssl.keystore.location": BROKER}) == ("PLAINTEXT", "SSL")
    ssl_first = {**MIXED, "listeners": "SSL://:0,PLAINTEXT://:0"}
    assert names(settings=ssl_first) == ("PLAINTEXT", "SSL")
    renamed = {"listener.security.protocol.map": "PLAINTEXT:SSL,INSIDE:PLAINTEXT"}
    inside = {**MIXED, **renamed, "listeners": "PLAINTEXT://:0,INSIDE://:0"}
    assert names(settings=inside) == ("REPLICATION", "PLAINTEXT", "INSIDE")
    between = {**inside, "inter.broker.listener.name": "inside"}
    assert names(settings=between) == ("INSIDE", "PLAINTEXT")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            {"settings": {**MIXED, "inter.broker.listener.name": "SSL"}},
            "inter.broker.listener.name: SSL has SSL",
        ),
        (
            {"settings": {"controller.listener.names": "SSL"}},
            "listener.security.protocol.map: SSL has SSL",
        ),
    ],
)
def test_nodes_of_one_process_have_neither_sasl_nor_tls_among_them(
    config: dict[str, Any], reason: str
) -> None:
    plan = ServerConfig(**config).listeners()
    with pytest.raises(ValueError, match=reason):
        check_in_memory(plan)


def test_each_broker_has_the_ports_after_those_of_the_one_before() -> None:
    advertised = {"advertised.listeners": "PLAINTEXT://a:1000,SSL://b:0"}
    plan = ServerConfig(brokers=3, settings={**MIXED, **advertised}).listeners()
    plain, secure = plan.listeners
    assert [plain.port(broker) for broker in range(3)] == [9092, 9093, 9094]
    assert plain.shown(2, "127.0.0.1", 9094) == Endpoint("PLAINTEXT", "a", 1002)
    assert secure.shown(2, "127.0.0.1", 9097) == Endpoint("SSL", "b", 9097)
    assert (plain.tls, secure.tls is None) == (None, False)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"brokers": 4, "settings": MIXED}, "SSL and PLAINTEXT both have port 9095"),
        ({"settings": MIXED, "ports": [1]}, "ports: listeners of settings has the ports"),
        ({"settings": MIXED, "passwords": {"a": "b"}}, "passwords: no listener"),
        ({"settings": {"listeners": "SSL://:0"}}, "ssl.keystore.location: listener SSL has TLS"),
        (
            {"settings": {**MIXED, "ssl.keystore.type": "JKS"}},
            "ssl.keystore.type: JKS is not supported",
        ),
        ({"settings": {**MIXED, "ssl.keystore.key": "k"}}, "ssl.keystore.key: not supported"),
        ({"settings": {**MIXED, "ssl.client.auth": "maybe"}}, "ssl.client.auth"),
        (
            {"settings": {**MIXED, "inter.broker.listener.name": "PLAINTEXT"}, "release": "3.9"},
            "inter.broker.listener.name: brokers of release 3.9",
        ),
        (
            {"settings": {**MIXED, "listeners": "SSL://:0,PLAINTEXT://:65535"}, "brokers": 2},
            "PLAINTEXT has no port for broker 2",
        ),
        (
            {"settings": {"listeners": "PLAINTEXT://:0"}, "release": "2.7", "zookeeper": True},
            "zookeeper: not with listeners",
        ),
    ],
)
def test_what_is_not_possible_is_named(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError) as error:
        ServerConfig(**config)
    assert reason in str(error.value)


def test_a_context_decides_by_itself_whether_clients_have_certificates() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=BROKER)
    context.load_cert_chain(BROKER)
    settings = {"listeners": "SSL://:0", "ssl.client.auth": "required"}
    with pytest.raises(ValueError, match="verify_mode"):
        ServerConfig(settings=settings, tls=context)
    context.verify_mode = ssl.CERT_REQUIRED
    [listener] = ServerConfig(settings=settings, tls=context).listeners().listeners
    assert listener.tls is context


def test_a_listener_may_have_a_certificate_of_its_own(tmp_path: Path) -> None:
    own = write_certificate(tmp_path / "own.pem", "own")
    settings = {
        **MIXED,
        "listeners": "SSL://:0,OTHER://:0",
        "listener.security.protocol.map": "SSL:SSL,OTHER:SSL",
        "listener.name.other.ssl.keystore.location": own,
    }
    contexts = [each.tls for each in ServerConfig(settings=settings).listeners().listeners]
    assert len(set(contexts)) == len(contexts)
    Path(own).write_text("no certificate")
    with pytest.raises(ValueError, match="not a certificate") as error:
        ServerConfig(settings=settings)
    assert own in str(error.value)
