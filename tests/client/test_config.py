"""Configuration: every key is documented, every default is valid; errors name the key."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from typing import Any

import pytest

from kafkawire.client.config import CLIENT_KEYS, Key, Setting, read_config
from kafkawire.client.failures import (
    BrokerError,
    ClientClosed,
    ClientError,
    ConfigurationError,
    ProducerFenced,
    RequestFailed,
    TransactionAbortable,
    TransactionAborted,
)
from kafkawire.client.network.oauthbearer import FromTokenProvider, OAuthBearerToken
from kafkawire.client.network.sasl import Credentials
from kafkawire.client.producer import PRODUCER_KEYS, producer_settings
from kafkawire.client.requests import Reason
from kafkawire.client.security import credentials, token_source
from kafkawire.errors import KafkaWireError
from kafkawire.net.admin import ADMIN_KEYS
from kafkawire.protocol.error_code import ErrorCode

HERE: dict[str, Setting] = {"bootstrap.servers": "localhost:9092"}


@pytest.mark.parametrize("keys", [CLIENT_KEYS, PRODUCER_KEYS, ADMIN_KEYS])
def test_defaults_are_valid_values(keys: Mapping[str, Key]) -> None:
    values = read_config(keys, HERE)
    for name, key in keys.items():
        assert key.documentation
        if key.default is not None and not key.required:
            assert key.read(values[name]) == key.default, name  # type: ignore[arg-type]
            assert key.read(str(key.default)) == key.default, name


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("linger_ms", 5, "did you mean linger.ms"),
        ("linger.mss", 5, "did you mean linger.ms"),
        ("whatever", 5, "unknown key"),
        ("linger.ms", "soon", "expected an integer"),
        ("linger.ms", -1, "not between 0"),
        ("linger.ms", True, "expected an integer"),
        ("linger.ms", 1.5, "expected an integer"),
        ("acks", 2, "one of 0, 1, all, got 2"),
        ("compression.type", "brotli", "one of none, gzip"),
        ("enable.idempotence", "maybe", "expected true or false"),
        ("bootstrap.servers", "localhost:", "no port"),
        ("bootstrap.servers", ":9092", "no host"),
        ("bootstrap.servers", "localhost:kafka", "'kafka' is not a number"),
        ("bootstrap.servers", "http://localhost:9092", "a URL, expected host:port"),
        ("bootstrap.servers", "localhost:0", "between 1 and 65535"),
        ("bootstrap.servers", "::1:9092", "brackets"),
        ("bootstrap.servers", "[::1", "brackets"),
        ("bootstrap.servers", " , ", "at least one host:port"),
        ("bootstrap.servers", 9092, "expected host:port,host:port"),
        ("client.id", "", "non-empty string"),
    ],
)
def test_an_invalid_value_is_reported_with_its_key(name: str, value: Setting, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        read_config(PRODUCER_KEYS, {**HERE, name: value})
    assert caught.value.key == name
    assert str(caught.value).startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("localhost:9092", "configuration: expected keys with values, got str"),
        ([("linger.ms", 5)], "configuration: expected keys with values, got list"),
        ({5: "linger.ms"}, "5: unknown key"),
    ],
    ids=str,
)
def test_what_is_no_configuration_is_reported(wrong: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_config(PRODUCER_KEYS, wrong)
    assert str(caught.value) == reason


def test_a_missing_required_key_is_reported() -> None:
    with pytest.raises(ConfigurationError, match=r"bootstrap\.servers: required"):
        read_config(PRODUCER_KEYS, {})


def test_addresses() -> None:
    for given in ("a:1, [::1]:9092", ["a:1", "[::1]:9092"]):
        values = read_config(CLIENT_KEYS, {"bootstrap.servers": given})
        assert values["bootstrap.servers"] == (("a", 1), ("::1", 9092))
    for given in ("a, [::1]", ["a", "[::1]"]):
        values = read_config(CLIENT_KEYS, {"bootstrap.servers": given})
        assert values["bootstrap.servers"] == (("a", 9092), ("::1", 9092))


def test_texts_and_values_are_equivalent() -> None:
    texts: dict[str, Setting] = {"acks": "all", "linger.ms": "7", "enable.idempotence": "TRUE"}
    values: dict[str, Setting] = {"acks": -1, "linger.ms": 7, "enable.idempotence": True}
    assert read_config(PRODUCER_KEYS, {**HERE, **texts}) == read_config(
        PRODUCER_KEYS, {**HERE, **values}
    )


@pytest.mark.parametrize(
    ("config", "idempotent"),
    [
        ({}, True),
        ({"acks": 1}, False),
        ({"acks": 0}, False),
        ({"retries": 0}, False),
        ({"max.in.flight.requests.per.connection": 6}, False),
        ({"enable.idempotence": False}, False),
        ({"enable.idempotence": True}, True),
        ({"transactional.id": "x"}, True),
    ],
)
def test_idempotence_is_on_unless_something_rules_it_out(
    config: dict[str, Setting], idempotent: bool
) -> None:
    values = read_config(PRODUCER_KEYS, {**HERE, **config})
    assert producer_settings(values).idempotent is idempotent


@pytest.mark.parametrize(
    "config", [{"acks": 1}, {"retries": 0}, {"max.in.flight.requests.per.connection": 6}]
)
def test_settings_incompatible_with_idempotence_are_rejected(config: dict[str, Setting]) -> None:
    values = read_config(PRODUCER_KEYS, {**HERE, **config, "enable.idempotence": True})
    with pytest.raises(ConfigurationError, match=r"enable\.idempotence"):
        producer_settings(values)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"acks": 1}, r"acks"),
        ({"retries": 0}, r"retries"),
        ({"max.in.flight.requests.per.connection": 6}, r"max\.in\.flight"),
        ({"enable.idempotence": False}, r"enable\.idempotence"),
    ],
)
def test_settings_incompatible_with_transactions_are_rejected(
    config: dict[str, Setting], name: str
) -> None:
    values = read_config(PRODUCER_KEYS, {**HERE, **config, "transactional.id": "x"})
    with pytest.raises(ConfigurationError, match=rf"{name}.*transactional\.id"):
        producer_settings(values)


def test_a_delivery_timeout_shorter_than_a_request_is_rejected() -> None:
    values = read_config(PRODUCER_KEYS, {**HERE, "delivery.timeout.ms": 1_000})
    with pytest.raises(ConfigurationError, match=r"delivery\.timeout\.ms"):
        producer_settings(values)


def test_credentials_are_complete_or_absent_and_never_shown() -> None:
    whole: dict[str, Setting] = {
        **HERE,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }
    found = credentials(read_config(CLIENT_KEYS, whole))
    assert isinstance(found, Credentials)
    assert (found.mechanism, found.username, found.password) == ("SCRAM-SHA-256", "alice", "secret")
    for name in ("sasl.mechanism", "sasl.username", "sasl.password"):
        part = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(ConfigurationError, match=name):
            credentials(read_config(CLIENT_KEYS, part))
        useless = {**HERE, name: whole[name]}
        with pytest.raises(ConfigurationError, match="requires security"):
            credentials(read_config(CLIENT_KEYS, useless))
    with pytest.raises(ConfigurationError) as caught:
        read_config(CLIENT_KEYS, {**HERE, "sasl.password": 12345})
    assert "12345" not in str(caught.value)


def test_oauthbearer_takes_a_function_instead_of_a_password() -> None:
    def provider() -> OAuthBearerToken:
        return OAuthBearerToken("abc")

    sasl: dict[str, Setting] = {
        **HERE,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
    }
    whole = read_config(CLIENT_KEYS, {**sasl, "sasl.oauth.token.provider": provider})
    assert credentials(whole) == FromTokenProvider()
    assert token_source(whole) is provider
    with pytest.raises(ConfigurationError, match=r"sasl\.oauth\.token\.provider: required"):
        credentials(read_config(CLIENT_KEYS, sasl))
    with pytest.raises(ConfigurationError, match=r"sasl\.password: not used .* OAUTHBEARER"):
        credentials({**whole, "sasl.password": "secret"})
    with pytest.raises(ConfigurationError, match=r"token\.provider: not used .* PLAIN"):
        credentials(
            {**whole, "sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "b"}
        )
    with pytest.raises(ConfigurationError, match="requires security"):
        credentials({**whole, "security.protocol": "SSL", "sasl.mechanism": None})
    with pytest.raises(ConfigurationError, match="expected a function, got str") as caught:
        read_config(CLIENT_KEYS, {**sasl, "sasl.oauth.token.provider": "eyJhbGciOi"})
    assert "eyJhbGciOi" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=r"did you mean sasl\.oauth\.token\.provider"):
        read_config(CLIENT_KEYS, {**sasl, "sasl_oauth_token_provider": provider})


TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"sasl.oauth.token": "abc"}, ""),
        ({TOKEN_URL: "file:///token"}, ""),
        ({TOKEN_URL: "https://a", CLIENT_ID: "me", CLIENT_SECRET: "eyJ hidden"}, ""),
        ({"sasl.oauth.token": "eyJ hidden"}, "sasl.oauth.token: SASL OAUTHBEARER: a token of 10"),
        ({"sasl.oauth.token": 12345}, "sasl.oauth.token: expected a token, got int"),
        ({CLIENT_SECRET: 12345}, f"{CLIENT_SECRET}: invalid value"),
        ({TOKEN_URL: "http://eyJ.hidden"}, f"{TOKEN_URL}: expected file:///PATH, https"),
        ({TOKEN_URL: "https://a"}, f"{CLIENT_ID}: required"),
        ({TOKEN_URL: "https://a", CLIENT_ID: "me"}, f"{CLIENT_SECRET}: required"),
        ({TOKEN_URL: "file:///a", CLIENT_ID: "me"}, f"{CLIENT_ID}: requires {TOKEN_URL}"),
        ({"sasl.oauth.token": "abc", CLIENT_SECRET: "x"}, f"{CLIENT_SECRET}: requires"),
        ({"sasl.oauth.token": "abc", TOKEN_URL: "file:///a"}, f"{TOKEN_URL}: not allowed together"),
        ({"sasl.oauthbearer.scope": "all"}, "sasl.oauth.token.provider: required"),
    ],
)
def test_a_token_has_one_source(given: dict[str, Setting], reason: str) -> None:
    sasl: dict[str, Setting] = {
        **HERE,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
    }
    if not reason:
        values = read_config(CLIENT_KEYS, sasl | given)
        assert credentials(values) == FromTokenProvider()
        assert "eyJ hidden" not in repr(token_source(values))
        with pytest.raises(ConfigurationError, match=r"not used with sasl\.mechanism PLAIN"):
            credentials(
                {**values, "sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "b"}
            )
        return
    with pytest.raises(ConfigurationError) as caught:
        credentials(read_config(CLIENT_KEYS, sasl | given))
    assert str(caught.value).startswith(reason)
    assert not {"eyJ", "hidden", "12345"} & {*re.findall(r"\w+", str(caught.value))}


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("acks", "no"),
        BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "t-0"),
        RequestFailed(Reason.TIMED_OUT, "late"),
        ClientClosed("the producer"),
        TransactionAbortable(ErrorCode.UNKNOWN_MEMBER_ID, "group g"),
        TransactionAborted(ErrorCode.NONE, "the transaction was aborted"),
        ProducerFenced(ErrorCode.PRODUCER_FENCED, "commit"),
    ],
)
def test_errors_pickle_and_keep_their_text(error: ClientError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert again.__dict__ == error.__dict__
    assert str(again) == str(error)
    assert isinstance(error, KafkaWireError)
    assert error.retriable is (type(error) in (BrokerError, RequestFailed))


def test_an_address_without_a_port_has_kafkas() -> None:
    config = read_config(PRODUCER_KEYS, {"bootstrap.servers": "localhost, [::1], other:9093"})
    expected = ("localhost", 9092), ("::1", 9092), ("other", 9093)
    assert config["bootstrap.servers"] == expected
