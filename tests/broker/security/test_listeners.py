"""The keys of listeners: what they mean, and that a wrong one is named."""

from __future__ import annotations

import pytest

from kafkawire.broker.security.listeners import listener_settings
from kafkawire.broker.security.protocols import SecurityProtocol
from kafkawire.raft import Endpoint

TWO = "INTERNAL://:9092,external://[::1]:9094"
MAP = "INTERNAL:PLAINTEXT, external:SASL_SSL,CONTROLLER:SSL"


def test_names_are_in_upper_case_and_addresses_of_ipv6_in_brackets() -> None:
    settings = listener_settings(
        {
            "listeners": TWO,
            "listener.security.protocol.map": MAP,
            "advertised.listeners": "External://kafka.example.org:19094",
        }
    )
    assert settings.listeners == (Endpoint("INTERNAL", "", 9092), Endpoint("EXTERNAL", "::1", 9094))
    assert settings.advertised == {"EXTERNAL": Endpoint("EXTERNAL", "kafka.example.org", 19094)}
    assert settings.protocol("EXTERNAL") is SecurityProtocol.SASL_SSL
    assert settings.protocol("CONTROLLER") is SecurityProtocol.SSL


def test_a_listener_has_the_protocol_of_its_name_without_a_map() -> None:
    settings = listener_settings(
        {"listeners": "SASL_SSL://:1,QUORUM://:2", "controller.listener.names": "quorum"}
    )
    assert settings.protocol("SASL_SSL") is SecurityProtocol.SASL_SSL
    assert settings.protocol("QUORUM") is SecurityProtocol.PLAINTEXT
    assert settings.controller == "QUORUM"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"listeners": "PLAINTEXT://:70000"}, "listeners: invalid listener"),
        ({"listeners": "PLAINTEXT:9092"}, "listeners: invalid listener"),
        ({"listeners": "PLAINTEXT://:1,plaintext://:2"}, "listeners: PLAINTEXT twice"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "PLAINTEXT and SSL have the same port 1"),
        ({"listeners": "A://:1"}, "protocol.map: no security protocol for listener A"),
        ({"listeners": "CONTROLLER://:1"}, "listeners: only the listener of controllers"),
        ({"listener.security.protocol.map": "A:TLS"}, "protocol.map: invalid entry 'A:TLS'"),
        ({"listener.security.protocol.map": "A:SSL,a:SSL"}, "protocol.map: A twice"),
        ({"controller.listener.names": "A,B"}, "controller.listener.names: expected one name"),
        (
            {"listeners": "SSL://:1", "advertised.listeners": "SLS://a:1"},
            "advertised.listeners: SLS is not a listener of clients; did you mean 'SSL'",
        ),
        (
            {"listeners": "SSL://:1,CONTROLLER://:2", "advertised.listeners": "CONTROLLER://a:2"},
            "advertised.listeners: CONTROLLER is not a listener of clients",
        ),
        ({"listeners": "SSL://:1", "advertised.listeners": "SSL://:1"}, "SSL has no host"),
        ({"listeners": "SSL://0.0.0.0:1"}, "advertised.listeners: needs an address of SSL"),
        (
            {"listeners": "SSL://:1", "inter.broker.listener.name": "INTERNAL"},
            "inter.broker.listener.name: INTERNAL is not an advertised listener",
        ),
        (
            {"inter.broker.listener.name": "A", "security.inter.broker.protocol": "SSL"},
            "inter.broker.listener.name: not allowed together with security.inter.broker.protocol",
        ),
        ({"security.inter.broker.protocol": "TLS"}, "protocol: expected one of PLAINTEXT"),
        (
            {"listeners": "SSL://:1", "listener.name.sls.ssl.client.auth": "none"},
            "no listener SLS; did you mean 'SSL'",
        ),
    ],
)
def test_a_key_that_is_not_valid_is_named(keys: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError) as error:
        listener_settings(keys)
    assert reason in str(error.value)
