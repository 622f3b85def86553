"""`kafkawire users`, and the calls of the admin client below it, of ours and of a real Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError, ClientError
from kafkawire.errors import InvalidValue, OutOfRange
from kafkawire.net.admin import ScramCredential
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.interop.implementations.interface import until
from tests.real.broker import Broker

PASSWORD = "correct horse"
ROOT = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "root",
    "sasl.password": "root-secret",
}
SHA_256 = ScramCredential("SCRAM-SHA-256", 5000)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(ServerConfig(passwords={"root": "root-secret"})) as server:
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap, **ROOT}) as admin:
        yield admin
        for name, credentials in admin.describe_user_scram_credentials().items():
            for credential in credentials if name != "root" else ():
                admin.delete_user_scram_credential(name, credential.mechanism)


@pytest.fixture
def here(server: ServerThread, tmp_path: Path) -> tuple[str, ...]:
    config = tmp_path / "root.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in ROOT.items()))
    return ("-b", server.bootstrap, "--config", str(config))


def users(*words: str, stdin: str | None = None) -> Any:
    data = None if stdin is None else stdin.encode()
    done = run("users", *words, "--json", stdin=data)
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def authenticate(bootstrap: str, mechanism: str, password: str) -> None:
    """Connect as alice; ClientError if the broker does not accept that."""
    alice = {"sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": password}
    with Admin({"bootstrap.servers": bootstrap, **ROOT, **alice}) as admin:
        assert admin.describe_cluster().brokers


def test_a_password_that_was_set_authenticates(server: ServerThread, admin: Admin) -> None:
    admin.upsert_user_scram_credential("alice", SHA_256, PASSWORD)
    assert admin.describe_user_scram_credentials(["alice"]) == {"alice": (SHA_256,)}
    authenticate(server.bootstrap, "SCRAM-SHA-256", PASSWORD)
    with pytest.raises(ClientError, match=r"(?i)authentication"):
        authenticate(server.bootstrap, "SCRAM-SHA-256", "wrong")
    admin.upsert_user_scram_credential("alice", ScramCredential("SCRAM-SHA-512"), "other")
    authenticate(server.bootstrap, "SCRAM-SHA-512", "other")
    admin.delete_user_scram_credential("alice", "SCRAM-SHA-256")
    described = admin.describe_user_scram_credentials(["alice"])["alice"]
    assert described == (ScramCredential("SCRAM-SHA-512", 4096),)
    with pytest.raises(BrokerError, match=r"RESOURCE_NOT_FOUND.*alice"):
        admin.delete_user_scram_credential("alice", "SCRAM-SHA-256")


def test_salts_are_of_the_random_bytes_that_are_passed(admin: Admin) -> None:
    sizes: list[int] = []

    def zeros(size: int) -> bytes:
        sizes.append(size)
        return bytes(size)

    admin.upsert_user_scram_credential("alice", SHA_256, PASSWORD, random_bytes=zeros)
    assert len(sizes) == 1


@pytest.mark.parametrize(
    ("credential", "password", "error"),
    [
        (ScramCredential("MD5"), PASSWORD, InvalidValue),
        (ScramCredential("SCRAM-SHA-256", 4095), PASSWORD, OutOfRange),
        (ScramCredential("SCRAM-SHA-256", 16_385), PASSWORD, OutOfRange),
        (SHA_256, "", InvalidValue),
        ("SCRAM-SHA-256", PASSWORD, InvalidValue),
    ],
)
def test_an_invalid_credential_is_not_sent(
    admin: Admin, credential: Any, password: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.upsert_user_scram_credential("alice", credential, password)


def test_users_are_added_listed_and_removed_by_the_verb(
    server: ServerThread, admin: Admin, here: tuple[str, ...], tmp_path: Path
) -> None:
    words = (*here, "--add", "--user", "alice", "--mechanism", "SCRAM-SHA-256")
    assert users(*words, "--dry-run")["dry_run"] is True
    assert "alice" not in admin.describe_user_scram_credentials()
    [created] = users(*words, "--password-file", "-", stdin=f"{PASSWORD}\n")["changes"]
    assert created["action"] == "create"
    authenticate(server.bootstrap, "SCRAM-SHA-256", PASSWORD)
    file = tmp_path / "password"
    file.write_text("other")
    [altered] = users(*words, "--iterations", "5000", "--password-file", str(file))["changes"]
    assert altered["action"] == "alter"
    authenticate(server.bootstrap, "SCRAM-SHA-256", "other")
    users(*here, "--add", "--user", "alice", "--password-file", str(file))
    shown = users(*here, "--user", "alice")["credentials"]
    assert shown[0] == {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 5000}
    assert len(shown) == 2
    filtered = users(*here, "--mechanism", "SCRAM-SHA-512")["credentials"]
    assert {one["mechanism"] for one in filtered} == {"SCRAM-SHA-512"}
    assert {one["user"] for one in filtered} >= {"alice"}
    removed = (*here, "--remove", "--user", "alice")
    assert len(users(*removed, "--dry-run")["changes"]) == 2
    text = run("users", *removed, "--yes", "--mechanism", "SCRAM-SHA-512").stdout
    assert text == "deleted credential SCRAM-SHA-512 of alice, 4096 iterations\n"
    assert admin.describe_user_scram_credentials(["alice"]) == {"alice": (SHA_256,)}


@pytest.mark.usefixtures("admin")
def test_passwords_are_shown_nowhere(here: tuple[str, ...]) -> None:
    words = (*here, "--add", "--user", "alice", "--password-file", "-")
    for options in ((), ("--json",), ("--option", "sasl.mechanism=NONE")):
        done = run("users", *words, *options, stdin=f"{PASSWORD}\n".encode())
        assert PASSWORD not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--add", "--remove"), "not allowed together"),
        (("--add",), "expected one user"),
        (("--add", "--user", "a", "--user", "b"), "expected one user"),
        (("--add", "--user", "a"), "--password-file"),
        (("--add", "--user", "a", "--iterations", "1"), "--iterations"),
        (("--add", "--user", "a", "--mechanism", "MD5"), "--mechanism"),
        (("--add", "--user", "a", "--password-file", "/no/such/file"), "/no/such/file"),
        (("--remove",), "needed with --remove"),
        (("--remove", "--user", "a"), "no terminal to confirm"),
        (("--iterations", "5000"), "only allowed with --add"),
        (("--password-file", "x"), "only allowed with --add"),
        (("--dry-run",), "nothing to change"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(
    here: tuple[str, ...], words: tuple[str, ...], reason: str
) -> None:
    done = run("users", *here, *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


@pytest.mark.parametrize("content", [b"", b"\n", b"one\ntwo\n", b"x" * 5000, b"\xff\n"])
def test_a_file_that_holds_no_password_is_a_usage_error(
    here: tuple[str, ...], tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    done = run("users", *here, "--add", "--user", "alice", "--password-file", file)
    assert done.exit_code == 2
    assert "--password-file" in done.stderr


def test_an_unknown_user_is_an_error_of_the_cluster(here: tuple[str, ...]) -> None:
    done = run("users", *here, "--remove", "--user", "\x1b[31mnobody", "--yes")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nobody" in done.stderr
    assert "\x1b" not in done.stderr


def of_user(here: tuple[str, str], name: str) -> list[Any]:
    return [one for one in users(*here)["credentials"] if one["user"] == name]


def test_beside_a_real_kafka(kafka: Broker) -> None:
    here = ("-b", kafka.bootstrap)
    words = (*here, "--add", "--user", "scram-user", "--password-file", "-")
    users(*words, "--mechanism", "SCRAM-SHA-256", stdin=PASSWORD)
    users(*words, "--iterations", "5000", stdin=PASSWORD)
    until(lambda: len(of_user(here, "scram-user")) == 2)  # brokers learn it later
    shown = of_user(here, "scram-user")
    assert [(one["mechanism"], one["iterations"]) for one in shown] == [
        ("SCRAM-SHA-256", 4096),
        ("SCRAM-SHA-512", 5000),
    ]
    config = {
        "bootstrap.servers": kafka.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "scram-user",
        "sasl.password": PASSWORD,
    }
    with Admin(config) as admin:
        assert admin.describe_cluster().brokers
    users(*here, "--remove", "--user", "scram-user", "--yes")
    until(lambda: not of_user(here, "scram-user"))
    unknown = run("users", *here, "--user", "scram-user")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
