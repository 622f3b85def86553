"""Configuration of clients from files and the environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkawire.broker.security.jwt import parse
from kafkawire.client.config import CLIENT_KEYS, bootstrap, read_config
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire_cli.input.cluster import ClusterOptions, admin_configuration
from kafkawire_cli.input.profiles import (
    from_java,
    of_environment,
    profile_files,
    read_profile,
    read_properties,
)
from tests.cli.reports import run
from tests.pages import blocks

PROPERTIES = r"""
# a comment
! another
bootstrap.servers=a:9092,\
    b:9092
client.id : me
sasl.username  alice
path=c:\\x\u0041\tz
empty=
"""


def test_a_properties_file_is_read_as_java_reads_it() -> None:
    assert read_properties(PROPERTIES) == {
        "bootstrap.servers": "a:9092,b:9092",
        "client.id": "me",
        "sasl.username": "alice",
        "path": "c:\\xA\tz",
        "empty": "",
    }


def test_a_line_without_a_key_is_an_error() -> None:
    with pytest.raises(ValueError, match="no key in the line '=x'"):
        read_properties("=x")


def test_keys_of_the_java_client_are_translated() -> None:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    given = {
        "sasl.jaas.config": rf'{login} required username="alice" password="a\"b";',
        "ssl.truststore.location": "ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.location": "me.pem",
        "ssl.keystore.type": "pem",
        "ssl.endpoint.identification.algorithm": "",
        "security.protocol": "SASL_SSL",
    }
    assert from_java(given) == {
        "sasl.username": "alice",
        "sasl.password": 'a"b',
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "security.protocol": "SASL_SSL",
    }


@pytest.mark.parametrize(
    "options",
    ["username=alice password='a b'", """username = "alice" /* '"' */ password="\\141 b" """],
)
def test_a_login_module_is_read_as_java_reads_it(options: str) -> None:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    translated = from_java({"sasl.jaas.config": f"{login} required {options};"})
    assert translated == {"sasl.username": "alice", "sasl.password": "a b"}


OAUTH = "org.apache.kafka.common.security.oauthbearer"


def test_the_login_module_of_tokens_is_read_as_java_reads_it() -> None:
    module = f"{OAUTH}.OAuthBearerLoginModule required"
    of_server = {
        "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f'{module} clientId="me" clientSecret="hidden" scope="all";',
    }
    assert from_java(of_server) == {
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "hidden",
        "sasl.oauthbearer.scope": "all",
    }
    assert from_java({"sasl.jaas.config": f"{module};"}) == {}
    unsecured = {"sasl.jaas.config": f'{module} unsecuredLoginStringClaim_sub="alice";'}
    [(key, provider)] = from_java(unsecured).items()
    assert key == "sasl.oauth.token.provider"
    assert parse(provider().value).claims["sub"] == "alice"
    with pytest.raises(ValueError, match=r"sasl\.jaas\.config: unsecuredLoginNumberClaim_a"):
        from_java({"sasl.jaas.config": f'{module} unsecuredLoginNumberClaim_a="x";'})
    with pytest.raises(ValueError, match=r"callback\.handler\.class: expected one of Kafka's"):
        from_java({"sasl.login.callback.handler.class": "example.Handler"})


def test_an_invalid_login_module_is_refused_without_its_values() -> None:
    with pytest.raises(ValueError, match=r"sasl\.jaas\.config: expected ; at the end") as raised:
        from_java({"sasl.jaas.config": 'a.Module required password="hidden"'})
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("more", [{"ssl.truststore.type": "JKS"}, {}])
def test_other_stores_than_pem_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"ssl\.truststore\.type.*only PEM"):
        from_java({"ssl.truststore.location": "ca.jks", **more})


PROFILES = """
[profiles.staging]
"bootstrap.servers" = "staging:9093"
security.protocol = "SSL"
ssl.key.location = "me.key"
request.timeout.ms = 5000

[profiles.local]
bootstrap.servers = "localhost"
"""


def test_a_profile_has_keys_with_and_without_quotes(tmp_path: Path) -> None:
    here, elsewhere = profile_files(tmp_path, tmp_path / "home", {})
    assert elsewhere == tmp_path / "home" / ".config" / "kafkawire" / "kafkawire.toml"
    here.write_text(PROFILES)
    assert read_profile("staging", [here, elsewhere]) == {
        "bootstrap.servers": "staging:9093",
        "security.protocol": "SSL",
        "ssl.key.location": "me.key",
        "request.timeout.ms": 5000,
    }
    with pytest.raises(ValueError, match=r"unknown profile 'prod' \(profiles: staging, local\)"):
        read_profile("prod", [here, elsewhere])
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text('[profiles.prod]\nclient.id = "p"\n')
    assert read_profile("prod", [here, elsewhere]) == {"client.id": "p"}


def test_the_profile_of_the_page_is_one(tmp_path: Path) -> None:
    [block] = blocks("docs/client.md", "toml")
    file = tmp_path / "kafkawire.toml"
    file.write_text(block.text)
    profile = read_profile("staging", [file])
    values = read_config(CLIENT_KEYS, profile | {"sasl.password": "secret"})
    assert bootstrap(values) == (("staging-1", 9093), ("staging-2", 9093))


def test_the_environment_names_keys_in_capitals() -> None:
    environment = {"KAFKAWIRE_SASL_PASSWORD": "s", "KAFKAWIRE_COMPILE": "off", "PATH": "/"}
    assert of_environment(environment, ["sasl.password", "client.id"]) == {"sasl.password": "s"}


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterOptions:
    """Configure `client.id` in each place, and other keys in fewer and fewer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kafkawire.toml").write_text(
        '[profiles.p]\nclient.id = "profile"\n"retry.backoff.ms" = 1\n'
        '"reconnect.backoff.ms" = 1\n"metadata.max.age.ms" = 1\n'
    )
    file = tmp_path / "client.properties"
    file.write_text("client.id=file\nretry.backoff.ms=2\nreconnect.backoff.ms=2\nlinger.ms=5\n")
    monkeypatch.setenv("KAFKAWIRE_CLIENT_ID", "environment")
    monkeypatch.setenv("KAFKAWIRE_RETRY_BACKOFF_MS", "3")
    monkeypatch.setenv("KAFKAWIRE_BOOTSTRAP_SERVERS", "environment:1")
    return ClusterOptions("option:1", file, "p", ["client.id=option"])


def test_what_is_nearer_to_the_command_counts(layers: ClusterOptions) -> None:
    values, sources = admin_configuration(layers)
    assert values["client.id"] == "option"
    assert (values["retry.backoff.ms"], values["reconnect.backoff.ms"]) == ("3", "2")
    assert (values["metadata.max.age.ms"], values["bootstrap.servers"]) == (1, "option:1")
    assert "linger.ms" not in values  # a producer's
    assert sources["retry.backoff.ms"] == "KAFKAWIRE_RETRY_BACKOFF_MS"
    without = admin_configuration(layers._replace(bootstrap=None)).values
    assert without["bootstrap.servers"] == "environment:1"


def test_an_error_names_where_the_value_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.idd=me\n")
    shown = run("cluster", "--config", file)
    assert shown.exit_code == 2
    message = " ".join(shown.stderr.split())
    assert "--config: client.idd: unknown key; did you mean client.id?" in message
    monkeypatch.setenv("KAFKAWIRE_REQUEST_TIMEOUT_MS", "soon")
    assert "for KAFKAWIRE_REQUEST_TIMEOUT_MS: " in run("cluster").stderr


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    settings = {"sasl.enabled.mechanisms": "PLAIN"}
    config = ServerConfig(settings=settings, passwords={"alice": "secret"}, topics={"orders": 1})
    with ServerThread(config) as server:
        yield server.bootstrap


@pytest.mark.parametrize("option", ["--config", "--profile"])
def test_a_password_is_no_argument(
    secured: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keys = {
        "bootstrap.servers": secured,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
    }
    Path("c.properties").write_text("\n".join(f"{key}={value}" for key, value in keys.items()))
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in keys.items()]
    Path("kafkawire.toml").write_text("\n".join(["[profiles.c]", *lines]))
    monkeypatch.setenv("KAFKAWIRE_SASL_PASSWORD", "secret")
    named = {"--config": "c.properties", "--profile": "c"}[option]
    shown = run("topics", option, named)
    assert "orders" in shown.stdout, shown.output
    monkeypatch.setenv(f"KAFKAWIRE_{option.strip('-').upper()}", named)
    assert run("topics").stdout == shown.stdout
