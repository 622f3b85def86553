"""JAAS configurations of listeners: parsed as Kafka does, errors without secrets."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.security.jaas import MODULES, check_jaas, login_module, plain_users
from kafkawire.broker.security.settings import check_security
from tests.broker.harness import Harness

from .test_sasl import handshake, plain, token

E = ErrorCode
PLAIN = MODULES["PLAIN"]
KEY = "listener.name.internal.plain.sasl.jaas.config"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {}),
        ('username="a" password="b"', {"username": "a", "password": "b"}),
        ("username = 'a'\npassword=b", {"username": "a", "password": "b"}),
        (r'password="a\"b\\c\101\n"', {"password": 'a"b\\cA\n'}),
        ('user_alice="x;y=z" user_b-c.d="//"', {"user_alice": "x;y=z", "user_b-c.d": "//"}),
        ('/* two */ a="1" // three\n b="2"', {"a": "1", "b": "2"}),
        ('a="1" a="2"', {"a": "2"}),
    ],
)
def test_options(options: str, expected: dict[str, str]) -> None:
    module = login_module(f"{PLAIN} required {options};")
    assert (module.name, module.options) == (PLAIN, expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        f"{PLAIN};",
        f"{PLAIN} required",
        f'{PLAIN} required user_a="secret"',
        f'{PLAIN} needed user_a="secret";',
        f'{PLAIN} required user_a "secret";',
        f'{PLAIN} required user_a=;user_b="secret";',
        f"{PLAIN} required user_a=17;",
        f'{PLAIN} required user_a="secret;',
        f'{PLAIN} required ="secret";',
        f'{PLAIN} required user_a="secret"; {PLAIN} required;',
        f'{PLAIN} required user_a="secret" &;',
        f'{MODULES["SCRAM-SHA-256"]} required user_a="secret";',
    ],
)
def test_an_error_names_the_key_and_no_secret(text: str) -> None:
    if not text:
        check_jaas({KEY: text})
        return
    with pytest.raises(ValueError, match=KEY) as error:
        check_security({KEY: text})
    assert "secret" not in str(error.value)
    assert "17" not in str(error.value)


def test_users_of_a_listener_authenticate_with_plain() -> None:
    key = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    settings = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        key: f'{PLAIN} required user_bob="of bob";',
    }
    harness = Harness(settings=settings, passwords={"alice": "of alice"})
    for user, password, error in (
        ("bob", "of bob", E.NONE),
        ("alice", "of alice", E.NONE),
        ("bob", "of alice", E.SASL_AUTHENTICATION_FAILED),
        ("carol", "of bob", E.SASL_AUTHENTICATION_FAILED),
    ):
        client = harness.client()
        handshake(client, "PLAIN")
        assert token(client, plain(user, password)).error_code == error


def test_users_are_those_of_the_listener() -> None:
    static = {KEY: f'{PLAIN} required username="n" password="p" user_alice="a" user_="b";'}
    assert plain_users(static, "INTERNAL") == {"alice": "a", "": "b"}
    assert plain_users(static, "EXTERNAL") == {}


def test_a_secret_is_not_in_the_repr_of_a_module() -> None:
    module = login_module(f'{PLAIN} required username="node" password="secret1";')
    assert repr(module) == f"LoginModule({PLAIN}, options=['password', 'username'])"
