"""`kafkawire configs`, and the calls of the admin client below it, of ours and of a real Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import RequestFailed
from kafkawire.errors import InvalidValue
from kafkawire.net.admin import ConfigResource
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.interop.implementations.interface import until
from tests.real.broker import Broker

TOPIC = ConfigResource("TOPIC", "orders")
DEFAULTS = ConfigResource("BROKER", "")
SECRET = "hush-hush-hush"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    config = ServerConfig(topics={"orders": 1, "other": 1}, settings={"ssl.key.password": SECRET})
    with ServerThread(config) as server:
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap}) as admin:
        yield admin
        own = admin.describe_configs([TOPIC])[TOPIC].values()
        admin.alter_configs(TOPIC, {entry.name: None for entry in own if not entry.is_default})
        admin.alter_configs(DEFAULTS, {"log.cleaner.threads": None})


@pytest.fixture
def here(server: ServerThread) -> tuple[str, str]:
    return ("-b", server.bootstrap)


def configs(*words: str) -> Any:
    done = run("configs", *words, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def of(shown: Any) -> dict[str, Any]:
    """Return the configurations of a JSON report, by resource."""
    return {f"{one['resource_type']} {one['name']}": one["configs"] for one in shown["resources"]}


def test_resources_of_several_types_are_described_and_altered(admin: Admin) -> None:
    broker = ConfigResource("BROKER", "1")
    group = ConfigResource("GROUP", "g")
    admin.alter_configs(TOPIC, {"retention.ms": "60000"}, validate_only=True)
    assert admin.describe_configs([TOPIC])[TOPIC]["retention.ms"].is_default
    admin.alter_configs(TOPIC, {"retention.ms": "60000"})
    admin.alter_configs(DEFAULTS, {"log.cleaner.threads": "2"})
    admin.alter_configs(group, {"consumer.session.timeout.ms": "46000"})
    described = admin.describe_configs([group, TOPIC, broker, DEFAULTS], include_synonyms=True)
    assert list(described) == [group, TOPIC, broker, DEFAULTS]
    retention = described[TOPIC]["retention.ms"]
    assert (retention.value, retention.source) == ("60000", "DYNAMIC_TOPIC_CONFIG")
    assert retention.config_type == "LONG"
    assert retention.synonyms[0] == ("retention.ms", "60000", "DYNAMIC_TOPIC_CONFIG")
    assert described[broker]["log.cleaner.threads"].source == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert described[group]["consumer.session.timeout.ms"].source == "DYNAMIC_GROUP_CONFIG"
    assert {TOPIC, group} <= set(admin.list_config_resources())
    assert admin.list_config_resources(["GROUP"]) == [group]
    admin.alter_configs(group, {"consumer.session.timeout.ms": None})
    only = admin.describe_configs([TOPIC], ["retention.ms"])
    assert list(only[TOPIC]) == ["retention.ms"]


@pytest.mark.parametrize(
    ("resource", "field"),
    [
        (ConfigResource("PLANET", "x"), "resource_type"),
        (ConfigResource("BROKER", "one"), "name"),
        (ConfigResource("BROKER_LOGGER", ""), "name"),
        (ConfigResource("TOPIC", ""), "name"),
        (("TOPIC", "x"), "resource"),
    ],
)
def test_an_invalid_resource_is_not_sent(admin: Admin, resource: Any, field: str) -> None:
    with pytest.raises(InvalidValue, match=field):
        admin.describe_configs([resource])
    with pytest.raises(InvalidValue, match=field):
        admin.alter_configs(resource, {"a": "b"})


@pytest.mark.parametrize("kind", ["BROKER", "BROKER_LOGGER"])
def test_a_broker_that_does_not_exist_is_named(server: ServerThread, kind: str) -> None:
    here = {"bootstrap.servers": server.bootstrap}
    with (
        Admin({**here, "default.api.timeout.ms": 3000}) as admin,
        pytest.raises(RequestFailed, match="9"),
    ):
        admin.describe_configs([ConfigResource(kind, "9")])


@pytest.mark.parametrize(
    "words",
    [
        ("configs", "--broker", "9"),
        ("configs", "--broker-logger", "9"),
        ("configs", "--broker", "9", "--add-config", "log.cleaner.threads=2"),
        ("log-dirs", "--broker", "9"),
    ],
    ids=" ".join,
)
def test_the_brokers_that_exist_are_named(here: tuple[str, str], words: tuple[str, ...]) -> None:
    done = run(*words, *here)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no broker with id 9; the cluster has 1" in done.stderr


def test_values_are_set_shown_and_removed(admin: Admin, here: tuple[str, str]) -> None:
    words = (*here, "--topic", "orders", "--add-config", "retention.ms=60000")
    assert configs(*words, "--dry-run")["dry_run"] is True
    assert of(configs(*here, "--topic", "orders")) == {"TOPIC orders": {}}
    changed = configs(*words, "--topic", "other")
    assert [one["action"] for one in changed["changes"]] == ["alter", "alter"]
    shown = of(configs(*here))
    assert shown["TOPIC orders"]["retention.ms"]["value"] == "60000"
    assert shown["TOPIC orders"]["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    configs(*here, "--topic", "other", "--delete-config", "retention.ms")
    assert "TOPIC other" not in of(configs(*here))
    every = of(configs(*here, "--topic", "orders", "--broker", "1", "--all"))
    assert every["TOPIC orders"]["cleanup.policy"]["source"] == "DEFAULT_CONFIG"
    assert every["BROKER 1"]["log.cleaner.threads"]["config_type"] == "INT"
    text = run("configs", *here, "--topic", "orders").stdout
    assert "DYNAMIC_TOPIC_CONFIG" in text
    removed = run("configs", *here, "--topic", "orders", "--delete-config", "retention.ms")
    assert removed.stdout == "altered topic orders: retention.ms: default\n"
    assert admin.describe_configs([TOPIC])[TOPIC]["retention.ms"].is_default


def test_values_come_from_a_file_or_standard_input(
    admin: Admin, here: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "changes.properties"
    file.write_text("# ours\nretention.ms = 70000\n")
    configs(*here, "--topic", "orders", "--add-config-file", str(file))
    words = (*here, "--topic", "orders", "--add-config-file", "-")
    assert run("configs", *words, stdin=b"segment.ms=80000\n").exit_code == 0
    entries = admin.describe_configs([TOPIC])[TOPIC]
    assert (entries["retention.ms"].value, entries["segment.ms"].value) == ("70000", "80000")
    missing = run("configs", *here, "--topic", "orders", "--add-config-file", tmp_path / "none")
    assert (missing.exit_code, "none: No such file" in missing.stderr) == (2, True)


def test_secrets_are_shown_nowhere(here: tuple[str, str]) -> None:
    described = run("configs", *here, "--broker", "1", "--all", "--json")
    assert of(json.loads(described.stdout))["BROKER 1"]["ssl.key.password"]["value"] is None
    text = run("configs", *here, "--broker", "1", "--all")
    changed = run(
        "configs",
        *here,
        "--broker-defaults",
        "--dry-run",
        "--add-config",
        f"ssl.key.password={SECRET}",
    )
    outputs = [part for done in (described, text, changed) for part in (done.stdout, done.stderr)]
    assert not any(SECRET in output for output in outputs)
    assert "ssl.key.password" in text.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--add-config", "a=b"), "needed with --add-config"),
        (("--topic", "orders", "--add-config", "ab"), "expected KEY=VALUE"),
        (("--topic", "orders", "--add-config", "a=b", "--delete-config", "a"), "a is also set"),
        (("--topic", "orders", "--add-config", "a=b", "--all"), "--all"),
        (("--topic", "orders", "--dry-run"), "nothing to change"),
        (("--broker", "one"), "expected the id of a broker"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(
    here: tuple[str, str], words: tuple[str, ...], reason: str
) -> None:
    done = run("configs", *here, *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--topic", "order"), "did you mean orders"),
        (("--topic", "orders", "--add-config", "retention.m=1"), "retention.ms"),
        (
            ("--topic", "orders", "--delete-config", "retention.m"),
            "no configuration 'retention.m'; did you mean retention.ms?\n",
        ),
        (("--topic", "order", "--add-config", "retention.ms=1"), "did you mean orders?\n"),
        (("--topic", "order", "--delete-config", "retention.m"), "did you mean orders?\n"),
        (("--broker", "1", "--add-config", "log.cleaner.thread=1"), "mean log.cleaner.threads?"),
        (
            ("--topic", "orders", "--add-config", "retention.ms=1,segment.bytes=9999"),
            "; repeat --add-config for each key\n",
        ),
        (("--topic", "orders", "--add-config", "retention.ms=soon"), "soon"),
        (("--broker", "7"), "7"),
    ],
)
def test_what_the_cluster_refuses_is_named(
    here: tuple[str, str], words: tuple[str, ...], reason: str
) -> None:
    done = run("configs", *here, *words, "-X", "default.api.timeout.ms=3000")
    assert (done.exit_code, done.stdout) == (1, "")
    assert reason in done.stderr


def test_hostile_values_do_not_reach_the_terminal(admin: Admin, here: tuple[str, str]) -> None:
    admin.alter_configs(TOPIC, {"follower.replication.throttled.replicas": "0:1"})
    done = run("configs", *here, "--topic", "orders\x1b[31m")
    assert "\x1b" not in done.stdout + done.stderr
    assert done.exit_code == 1


def test_a_release_that_lists_no_resources_shows_topics_and_brokers() -> None:
    with ServerThread(ServerConfig(release="3.9", topics={"orders": 1})) as server:
        here = ("-b", server.bootstrap)
        configs(*here, "--topic", "orders", "--add-config", "retention.ms=60000")
        assert list(of(configs(*here))) == ["TOPIC orders"]


def test_beside_a_real_kafka(kafka: Broker) -> None:
    here = ("-b", kafka.bootstrap)
    configs(*here, "--broker-defaults", "--add-config", "log.cleaner.threads=2")
    metrics = ("--client-metrics", "watched", "--group", "watched-group")
    configs(*here, "--client-metrics", "watched", "--add-config", "interval.ms=30000")
    configs(*here, "--group", "watched-group", "--add-config", "consumer.session.timeout.ms=50000")
    until(lambda: all(of(configs(*here, *metrics)).values()))  # brokers learn it later
    shown = of(configs(*here, *metrics))
    assert shown["CLIENT_METRICS watched"]["interval.ms"]["value"] == "30000"
    assert shown["GROUP watched-group"]["consumer.session.timeout.ms"]["value"] == "50000"
    assert {"CLIENT_METRICS watched", "BROKER ", "BROKER 1"} <= set(of(configs(*here)))
    loggers = of(configs(*here, "--broker-logger", "1"))["BROKER_LOGGER 1"]
    assert loggers["root"]["source"] == "DYNAMIC_BROKER_LOGGER_CONFIG"
    configs(*here, "--broker-defaults", "--delete-config", "log.cleaner.threads")
    configs(*here, "--client-metrics", "watched", "--delete-config", "interval.ms")
    until(lambda: "CLIENT_METRICS watched" not in of(configs(*here)))
