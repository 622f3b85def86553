"""`kafkawire log-dirs`, and the calls of the admin client below it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkawire.blocking import Admin, Producer
from kafkawire.client.failures import BrokerError
from kafkawire.net.admin import ReplicaInfo
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.interop.implementations.interface import until
from tests.real.broker import Broker

ORDERS = ("orders", 0)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    config = ServerConfig(brokers=2, directories=2)
    with ServerThread(config) as server:
        server.create_topic("orders", partitions=1, factor=2)
        server.create_topic("other", partitions=1, factor=1)
        with Producer({"bootstrap.servers": server.bootstrap}) as producer:
            producer.deliver("orders", b"x" * 2000)
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap}) as admin:
        yield admin


@pytest.fixture
def here(server: ServerThread) -> tuple[str, str]:
    return ("-b", server.bootstrap)


def log_dirs(*words: str, code: int = 0) -> Any:
    done = run("log-dirs", *words, "--json")
    assert (done.exit_code, done.stderr) == (code, "")
    return json.loads(done.stdout)


def replica(admin: Admin, topic: str = "orders") -> ReplicaInfo:
    """Return the replica of a topic on broker 1 when it does not move."""
    rows: list[ReplicaInfo] = []

    def is_settled() -> bool:
        rows[:] = [row for row in admin.describe_replicas(1) if row.topic == topic]
        return [row.is_future for row in rows] == [False]

    until(is_settled)
    return rows[0]


def elsewhere(admin: Admin) -> str:
    """Return the other directory of broker 1."""
    paths = {directory.path for directory in admin.describe_log_dirs(1)}
    [other] = paths - {replica(admin).path}
    return other


def test_replicas_are_described_and_moved(admin: Admin) -> None:
    described = replica(admin)
    assert described.size > 2000
    assert described.offset_lag == 0
    path = elsewhere(admin)
    admin.alter_replica_log_dirs(1, {ORDERS: path})
    assert replica(admin) == described._replace(path=path)
    with pytest.raises(BrokerError, match=r"LOG_DIR_NOT_FOUND.*orders-0"):
        admin.alter_replica_log_dirs(1, {ORDERS: "/no/such/directory"})


def test_directories_and_replicas_are_shown(admin: Admin, here: tuple[str, str]) -> None:
    shown = log_dirs(*here)["brokers"]
    assert [one["broker_id"] for one in shown] == [1, 2]
    [orders] = [
        row
        for directory in shown[0]["log_dirs"]
        for row in directory["replicas"]
        if directory["path"] == replica(admin).path and row["topic"] == "orders"
    ]
    assert orders["size"] == replica(admin).size
    assert orders["is_future"] is False
    [second] = log_dirs(*here, "--broker", "2", "--topic", "orders")["brokers"]
    topics = {row["topic"] for directory in second["log_dirs"] for row in directory["replicas"]}
    assert (second["broker_id"], topics) == (2, {"orders"})
    text = run("log-dirs", *here, "--broker", "1", "--top", "1").stdout
    assert replica(admin).path in text
    assert "orders" in text


def test_a_replica_is_moved_by_the_verb(admin: Admin, here: tuple[str, str]) -> None:
    before, path = replica(admin).path, elsewhere(admin)
    words = (*here, "--broker", "1", "--move", "orders:0", "--to", path)
    planned = log_dirs(*words, "--dry-run")
    assert planned["dry_run"] is True
    assert replica(admin).path == before
    changes = log_dirs(*words)["changes"]
    assert changes == planned["changes"]
    assert changes[0]["replica"]["previous_path"] == before
    assert replica(admin).path == path


def test_an_offline_directory_is_an_error(
    server: ServerThread, admin: Admin, here: tuple[str, str]
) -> None:
    server.fail_disk(1, Path(elsewhere(admin)).name)
    shown = log_dirs(*here, "--broker", "1", code=1)["brokers"][0]["log_dirs"]
    assert any(directory["error"] for directory in shown)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--broker", "one"), "expected the id of a broker"),
        (("--move", "orders:0", "--to", "/d"), "expected one broker"),
        (("--broker", "1", "--move", "orders:0"), "--to"),
        (("--broker", "1", "--to", "/d"), "--move"),
        (("--broker", "1", "--move", "orders", "--to", "/d"), "NAME:PARTITION"),
        (("--broker", "1", "--move", "t:0", "--to", "/d", "--topic", "t"), "--topic"),
        (("--dry-run",), "nothing to change"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(words: tuple[str, ...], reason: str) -> None:
    done = run("log-dirs", *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


def test_what_the_broker_does_not_have_is_named(admin: Admin, here: tuple[str, str]) -> None:
    path = elsewhere(admin)
    for words, reason in (
        (("--broker", "1", "--move", "orders:0", "--to", "/nowhere\x1b[31m"), "/nowhere"),
        (("--broker", "1", "--move", "orders:7", "--to", path), "orders-7"),
        (("--broker", "9", "--move", "orders:0", "--to", path), "9"),
        (("--topic", "order"), "did you mean orders"),
    ):
        done = run("log-dirs", *here, *words, "-X", "default.api.timeout.ms=3000")
        assert (done.exit_code, done.stdout) == (1, "")
        assert reason in done.stderr
        assert "\x1b" not in done.stderr


def test_beside_a_real_kafka(kafka: Broker) -> None:
    here = ("-b", kafka.bootstrap)
    [broker] = log_dirs(*here, "--broker", "1")["brokers"]
    [directory] = broker["log_dirs"]
    assert directory["path"] == str(kafka.data)
    assert directory["total"] >= directory["usable"] > 0
    refused = run("log-dirs", *here, "--broker", "1", "--move", "none:0", "--to", "/elsewhere")
    assert (refused.exit_code, "LOG_DIR_NOT_FOUND" in refused.stderr) == (1, True)
