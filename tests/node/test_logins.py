"""How nodes connect to each other, by Kafka's keys; errors name the key and no secret."""

from __future__ import annotations

import pytest

from kafkawire.broker.security.jaas import MODULES
from kafkawire.broker.security.protocols import SecurityProtocol
from kafkawire.client.network.sasl import Credentials
from kafkawire.node.logins import BROKER_MECHANISM, NO_LOGIN, Login, login

KEY = "listener.name.inside.plain.sasl.jaas.config"
MODULE = f"{MODULES['PLAIN']} required"
SASL = SecurityProtocol.SASL_PLAINTEXT


def test_a_listener_without_sasl_needs_no_login() -> None:
    assert login({}, "INSIDE", SecurityProtocol.SSL, BROKER_MECHANISM) == Login("INSIDE")
    assert NO_LOGIN.credentials is None


def test_the_login_is_that_of_the_mechanism_of_the_listener() -> None:
    static = {BROKER_MECHANISM: "PLAIN", KEY: f'{MODULE} username="node" password="secret";'}
    by_listener = login(static, "INSIDE", SASL, BROKER_MECHANISM)
    assert by_listener == Login("INSIDE", Credentials("PLAIN", "node", "secret"))
    assert "secret" not in repr(by_listener)


@pytest.mark.parametrize(
    ("static", "key"),
    [
        ({}, BROKER_MECHANISM),
        ({BROKER_MECHANISM: "OAUTHBEARER"}, BROKER_MECHANISM),
        ({BROKER_MECHANISM: "PLAIN"}, KEY),
        ({BROKER_MECHANISM: "PLAIN", KEY: f'{MODULE} password="secret";'}, KEY),
        ({BROKER_MECHANISM: "PLAIN", KEY: f'{MODULE} password="secret"'}, KEY),
    ],
)
def test_what_is_missing_is_named(static: dict[str, str], key: str) -> None:
    with pytest.raises(ValueError, match=key) as error:
        login(static, "INSIDE", SASL, BROKER_MECHANISM)
    assert "secret" not in str(error.value)
