"""`kafkawire tokens`, and the calls of the admin client below it, of ours and of a real Kafka."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError
from kafkawire.errors import InvalidValue
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.interop.implementations.interface import until
from tests.real.broker import PASSWORD, USER, Broker

ALICE = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "alice-secret",
}
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    settings = {"delegation.token.secret.key": "key-of-tokens"}
    config = ServerConfig(settings=settings, passwords={"alice": "alice-secret"})
    with ServerThread(config) as server:
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap, **ALICE}) as admin:
        yield admin
        for token in admin.describe_delegation_tokens():
            admin.expire_delegation_token(token.hmac)


def properties(tmp_path: Path, values: dict[str, str]) -> str:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return str(file)


@pytest.fixture
def here(server: ServerThread, tmp_path: Path) -> tuple[str, ...]:
    return ("-b", server.bootstrap, "--config", properties(tmp_path, ALICE))


def tokens(*words: str) -> Any:
    done = run("tokens", *words, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_tokens_are_created_renewed_and_expired(admin: Admin) -> None:
    token = admin.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=HOUR_MS)
    assert (token.owner, token.renewers) == ("User:alice", ("User:bob",))
    assert token.max_ms - token.issued_ms == HOUR_MS
    assert admin.describe_delegation_tokens() == [token]
    assert admin.describe_delegation_tokens(["User:nobody"]) == []
    expires = admin.renew_delegation_token(token.hmac, period_ms=HOUR_MS // 2)
    assert token.issued_ms < expires < token.max_ms
    later = admin.expire_delegation_token(token.hmac, period_ms=HOUR_MS // 4)
    assert later < expires
    admin.expire_delegation_token(token.hmac)
    assert admin.describe_delegation_tokens() == []
    with pytest.raises(BrokerError, match="DELEGATION_TOKEN_NOT_FOUND"):
        admin.renew_delegation_token(token.hmac)
    assert repr(token.hmac) not in repr(token)


@pytest.mark.parametrize("principal", ["alice", ":alice", "User:", 7])
def test_an_invalid_principal_is_not_sent(admin: Admin, principal: Any) -> None:
    with pytest.raises(InvalidValue, match="owner"):
        admin.create_delegation_token(owner=principal)
    with pytest.raises(InvalidValue, match=r"renewers\[0\]"):
        admin.create_delegation_token(renewers=[principal])
    with pytest.raises(InvalidValue, match=r"owners\[0\]"):
        admin.describe_delegation_tokens([principal])
    with pytest.raises(InvalidValue, match="hmac"):
        admin.renew_delegation_token("text")  # type: ignore[arg-type]


def test_tokens_are_created_listed_renewed_and_expired_by_the_verb(
    admin: Admin, here: tuple[str, ...]
) -> None:
    words = (*here, "--create", "--renewer-principal", "User:bob")
    assert tokens(*words, "--dry-run")["changes"][0]["token"]["renewers"] == ["User:bob"]
    assert admin.describe_delegation_tokens() == []
    [change] = tokens(*words, "--show-secrets", "--max-life-time-period", str(HOUR_MS))["changes"]
    [token] = admin.describe_delegation_tokens()
    assert b64decode(change["token"]["hmac"]) == token.hmac
    assert change["token"]["max_ms"] - change["token"]["issued_ms"] == HOUR_MS
    [listed] = tokens(*here)["tokens"]
    assert listed["token_id"] == token.token_id
    assert tokens(*here, "--owner-principal", "User:nobody")["tokens"] == []
    renewed = (*here, "--renew", token.token_id, "--renew-time-period", "60000")
    tokens(*renewed, "--dry-run")
    assert admin.describe_delegation_tokens() == [token]
    [change] = tokens(*renewed)["changes"]
    [after] = admin.describe_delegation_tokens()
    assert change["token"]["expires_ms"] == after.expires_ms < token.expires_ms
    expired = (*here, "--expire", token.token_id)
    assert tokens(*expired, "--dry-run")["changes"][0]["action"] == "expire"
    assert admin.describe_delegation_tokens() == [after]
    assert run("tokens", *expired, "--yes").stdout.startswith(f"expired token {token.token_id}")
    assert admin.describe_delegation_tokens() == []


def test_the_text_has_the_secret_of_the_new_token(admin: Admin, here: tuple[str, ...]) -> None:
    text = run("tokens", *here, "--create", "--show-secrets").stdout
    [token] = admin.describe_delegation_tokens()
    assert b64encode(token.hmac).decode() in text


def test_secrets_are_shown_at_creation_only(admin: Admin, here: tuple[str, ...]) -> None:
    token = admin.create_delegation_token()
    secret = b64encode(token.hmac).decode()
    for words in ((), ("--json",), ("--renew", token.token_id), ("--create", "--dry-run")):
        done = run("tokens", *here, *words)
        assert done.exit_code == 0
        assert secret not in done.stdout + done.stderr
        assert repr(token.hmac) not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--create",), "--show-secrets"),
        (("--create", "--renew", "x"), "not allowed together"),
        (("--show-secrets",), "only allowed with --create"),
        (("--renewer-principal", "User:a"), "only allowed with --create"),
        (("--max-life-time-period", "5"), "only allowed with --create"),
        (("--renew-time-period", "5"), "only allowed with --renew"),
        (("--expiry-time-period", "5"), "only allowed with --expire"),
        (("--expire", "x"), "no terminal to confirm"),
        (("--renew", "x", "--owner-principal", "User:a"), "not allowed together"),
        (("--owner-principal", "alice"), "TYPE:NAME"),
        (("--dry-run",), "nothing to change"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(words: tuple[str, ...], reason: str) -> None:
    done = run("tokens", *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


def test_an_unknown_token_is_an_error_of_the_cluster(here: tuple[str, ...]) -> None:
    done = run("tokens", *here, "--renew", "\x1b[31mnone")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "DELEGATION_TOKEN_NOT_FOUND" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_cluster_without_tokens_says_so() -> None:
    with ServerThread() as server:
        listed = run("tokens", "-b", server.bootstrap)
        planned = run("tokens", "-b", server.bootstrap, "--create", "--dry-run")
    assert (listed.exit_code, planned.exit_code) == (1, 1)
    assert "DELEGATION_TOKEN" in listed.stderr


def listed(here: tuple[str, ...]) -> set[str]:
    return {token["token_id"] for token in tokens(*here)["tokens"]}


def test_beside_a_real_kafka(kafka: Broker, tmp_path: Path) -> None:
    config = properties(tmp_path, {**ALICE, "sasl.username": USER, "sasl.password": PASSWORD})
    here = ("-b", kafka.sasl_bootstrap, "--config", config)
    [created] = tokens(*here, "--create", "--show-secrets")["changes"]
    token = created["token"]
    assert token["owner"] == f"User:{USER}"
    until(lambda: token["token_id"] in listed(here))  # brokers learn it later
    tokens(*here, "--renew", token["token_id"])
    tokens(*here, "--expire", token["token_id"], "--yes")
    until(lambda: token["token_id"] not in listed(here))
