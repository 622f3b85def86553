"""How nodes connect to each other, by Kafka's keys; errors name the key and no secret."""

from __future__ import annotations

import pytest

from kafkawire.broker.security.jaas import MODULES
from kafkawire.broker.security.protocols import SecurityProtocol
from kafkawire.client.network.oauthbearer import FromTokenProvider
from kafkawire.client.network.sasl import Credentials
from kafkawire.client.security import CLIENT_ID, CLIENT_SECRET, ENDPOINT, LoginTimes, TokenEndpoint
from kafkawire.client.unsecured_login import UnsecuredLogin
from kafkawire.node.logins import BROKER_MECHANISM, NO_LOGIN, Login, login
from kafkawire.sasl.endpoints import FileEndpoint, endpoint
from kafkawire.sasl.oauthbearer import OAUTHBEARER

KEY = "listener.name.inside.plain.sasl.jaas.config"
MODULE = f"{MODULES['PLAIN']} required"
TOKENS = "listener.name.inside.oauthbearer.sasl.jaas.config"
TOKEN_MODULE = f"{MODULES[OAUTHBEARER]} required"
CLAIM = "unsecuredLoginStringClaim_sub"
URL = "https://issuer.example/token"
OF_SERVER = {
    BROKER_MECHANISM: OAUTHBEARER,
    ENDPOINT: URL,
    CLIENT_ID: "node",
    CLIENT_SECRET: "hush",
}
SASL = SecurityProtocol.SASL_PLAINTEXT


def test_a_listener_without_sasl_needs_no_login() -> None:
    assert login({}, "INSIDE", SecurityProtocol.SSL, BROKER_MECHANISM) == Login("INSIDE")
    assert NO_LOGIN.credentials is None


def test_the_login_is_that_of_the_mechanism_of_the_listener() -> None:
    static = {BROKER_MECHANISM: "PLAIN", KEY: f'{MODULE} username="node" password="secret";'}
    by_listener = login(static, "INSIDE", SASL, BROKER_MECHANISM)
    assert by_listener == Login("INSIDE", Credentials("PLAIN", "node", "secret"))
    assert "secret" not in repr(by_listener)


def test_tokens_come_from_the_options_of_the_listener() -> None:
    static = {BROKER_MECHANISM: OAUTHBEARER, TOKENS: f'{TOKEN_MODULE} {CLAIM}="node";'}
    by_listener = login(static, "INSIDE", SASL, BROKER_MECHANISM)
    assert by_listener.credentials == FromTokenProvider()
    assert isinstance(by_listener.tokens, UnsecuredLogin)
    assert by_listener.tokens.claims == {"sub": "node"}


@pytest.mark.parametrize(
    "prefix", ["", "listener.name.inside.", "listener.name.inside.oauthbearer."]
)
def test_tokens_come_from_a_file_or_a_server_that_a_key_names(prefix: str) -> None:
    static = {BROKER_MECHANISM: OAUTHBEARER, f"{prefix}{ENDPOINT}": "file:///tokens/node"}
    of_file = login(static, "INSIDE", SASL, BROKER_MECHANISM).tokens
    assert of_file == TokenEndpoint(FileEndpoint("/tokens/node"))
    options = 'clientId="node" clientSecret="secret" scope="brokers"'
    static = {
        BROKER_MECHANISM: OAUTHBEARER,
        f"{prefix}{ENDPOINT}": URL,
        TOKENS: f"{TOKEN_MODULE} {options};",
    }
    of_server = login(static, "INSIDE", SASL, BROKER_MECHANISM)
    assert of_server.tokens == TokenEndpoint(endpoint(URL), "node", "secret", "brokers")
    assert "secret" not in repr(of_server)
    times = {"sasl.login.retry.backoff.ms": "7", "sasl.login.read.timeout.ms": "9"}
    retrying = login(static | times, "INSIDE", SASL, BROKER_MECHANISM).tokens
    assert isinstance(retrying, TokenEndpoint)
    assert retrying.times == LoginTimes(backoff_s=0.007, read_s=0.009)
    keys = {f"{prefix}{CLIENT_ID}": "other", f"{prefix}{CLIENT_SECRET}": "hidden"}
    assert login(static | keys, "INSIDE", SASL, BROKER_MECHANISM).tokens == TokenEndpoint(
        endpoint(URL), "other", "hidden", "brokers"
    )


@pytest.mark.parametrize(
    ("static", "key"),
    [
        ({}, BROKER_MECHANISM),
        ({BROKER_MECHANISM: "GSSAPI"}, BROKER_MECHANISM),
        ({BROKER_MECHANISM: OAUTHBEARER}, TOKENS),
        ({BROKER_MECHANISM: OAUTHBEARER, TOKENS: f"{TOKEN_MODULE};"}, TOKENS),
        ({BROKER_MECHANISM: OAUTHBEARER, ENDPOINT: "ftp://hush"}, ENDPOINT),
        (OF_SERVER | {"sasl.login.retry.backoff.ms": "20000"}, ENDPOINT),
        (OF_SERVER | {"sasl.login.connect.timeout.ms": "-1"}, ENDPOINT),
        ({BROKER_MECHANISM: OAUTHBEARER, ENDPOINT: URL}, ENDPOINT),
        ({BROKER_MECHANISM: OAUTHBEARER, ENDPOINT: URL, CLIENT_SECRET: "hush"}, ENDPOINT),
        ({BROKER_MECHANISM: "PLAIN"}, KEY),
        ({BROKER_MECHANISM: "PLAIN", KEY: f'{MODULE} password="hush";'}, KEY),
        ({BROKER_MECHANISM: "PLAIN", KEY: f'{MODULE} password="hush"'}, KEY),
    ],
)
def test_what_is_missing_is_named(static: dict[str, str], key: str) -> None:
    with pytest.raises(ValueError, match=key) as error:
        login(static, "INSIDE", SASL, BROKER_MECHANISM)
    assert "hush" not in str(error.value)
