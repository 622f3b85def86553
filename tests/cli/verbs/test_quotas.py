"""`kafkawire quotas`, and the calls of the admin client below it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError
from kafkawire.errors import InvalidValue
from kafkawire.net.admin import DEFAULT_ENTITY, QuotaEntity, QuotaFilter
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.interop.implementations.interface import until
from tests.real.broker import Broker

ALICE = QuotaEntity("alice")
OTHERS = QuotaEntity(DEFAULT_ENTITY, "app")
HOST = QuotaEntity(ip="10.0.0.7")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread() as server:
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap}) as admin:
        yield admin
        described = admin.describe_client_quotas()
        admin.alter_client_quotas({one: dict.fromkeys(described[one]) for one in described})


@pytest.fixture
def here(server: ServerThread) -> tuple[str, str]:
    return ("-b", server.bootstrap)


def quotas(*words: str) -> Any:
    done = run("quotas", *words, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_quotas_are_set_described_and_removed(admin: Admin) -> None:
    changes = {ALICE: {"producer_byte_rate": 1024.0}, OTHERS: {"request_percentage": 12.5}}
    admin.alter_client_quotas(changes, validate_only=True)
    assert admin.describe_client_quotas() == {}
    admin.alter_client_quotas({**changes, HOST: {"connection_creation_rate": 5}})
    described = admin.describe_client_quotas()
    assert described == {HOST: {"connection_creation_rate": 5.0}, **changes}
    assert admin.describe_client_quotas(QuotaFilter("alice")) == {ALICE: changes[ALICE]}
    assert list(admin.describe_client_quotas(QuotaFilter(DEFAULT_ENTITY))) == [OTHERS]
    assert list(admin.describe_client_quotas(QuotaFilter(any_of=("client_id",)))) == [OTHERS]
    strict = QuotaFilter(any_of=("user",), strict=True)
    assert list(admin.describe_client_quotas(strict)) == [ALICE]
    admin.alter_client_quotas({ALICE: {"producer_byte_rate": None}})
    assert ALICE not in admin.describe_client_quotas()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({("alice",): {}}, "changes key"),
        ({ALICE: {"producer_byte_rate": "much"}}, "producer_byte_rate"),
        ({ALICE: {"producer_byte_rate": float("inf")}}, "producer_byte_rate"),
        ({QuotaEntity(7): {}}, "changes key.user"),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_quota_is_not_sent(admin: Admin, changes: Any, field: str) -> None:
    with pytest.raises(InvalidValue, match=field):
        admin.alter_client_quotas(changes)


def test_what_the_cluster_refuses_names_the_entity(admin: Admin) -> None:
    with pytest.raises(BrokerError, match="user default, client-id app"):
        admin.alter_client_quotas({OTHERS: {"sleep_rate": 1}})


def test_quotas_are_changed_and_shown_by_the_verb(admin: Admin, here: tuple[str, str]) -> None:
    words = (*here, "--user-defaults", "--client", "app", "--add-config", "request_percentage=12.5")
    planned = quotas(*words, "--dry-run")
    assert planned["dry_run"] is True
    assert admin.describe_client_quotas() == {}
    [change] = quotas(*words, "--add-config", "producer_byte_rate=2048")["changes"]
    assert change["quotas"] == {"user": None, "client_id": "app"}
    assert change["configs"] == {"request_percentage": "12.5", "producer_byte_rate": "2048"}
    quotas(*here, "--ip", "10.0.0.7", "--add-config", "connection_creation_rate=5")
    shown = quotas(*here)["quotas"]
    assert {"ip": "10.0.0.7", "values": {"connection_creation_rate": 5.0}} in shown
    assert len(shown) == 2
    assert quotas(*here, "--user", "alice")["quotas"] == []
    text = run("quotas", *here, "--user-defaults").stdout
    assert "(default)" in text
    assert "12.5" in text
    done = run("quotas", *here, "--ip", "10.0.0.7", "--delete-config", "connection_creation_rate")
    assert done.stdout == "altered quotas of ip 10.0.0.7: connection_creation_rate: default\n"
    assert list(admin.describe_client_quotas()) == [OTHERS]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--add-config", "producer_byte_rate=1"), "needed with --add-config"),
        (("--user", "a", "--add-config", "producer_byte_rate=much"), "expected a number"),
        (("--user", "a", "--add-config", "producer_byte_rate=nan"), "expected a number"),
        (("--user", "a", "--ip", "10.0.0.7"), "not allowed together"),
        (("--user", ""), "--user-defaults"),
        (("--user", "a", "--dry-run"), "nothing to change"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(
    here: tuple[str, str], words: tuple[str, ...], reason: str
) -> None:
    done = run("quotas", *here, *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


def test_an_unknown_quota_is_an_error_of_the_cluster(here: tuple[str, str]) -> None:
    done = run("quotas", *here, "--user", "alice", "--add-config", "sleep_rate=1", "--dry-run")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "sleep_rate" in done.stderr
    assert "did you mean" not in done.stderr
    done = run("quotas", *here, "--user", "alice", "--add-config", "producer_byte_rat=1")
    assert done.stderr.endswith("producer_byte_rat; did you mean producer_byte_rate?\n")


def test_hostile_names_do_not_reach_the_terminal(admin: Admin, here: tuple[str, str]) -> None:
    admin.alter_client_quotas({QuotaEntity("\x1b[31mred"): {"producer_byte_rate": 1}})
    assert "\x1b" not in run("quotas", *here).stdout


def test_beside_a_real_kafka(kafka: Broker) -> None:
    here = ("-b", kafka.bootstrap, "--user", "limited", "--client-defaults")
    changed = ("--add-config", "producer_byte_rate=2048", "--add-config", "request_percentage=50.5")
    quotas(*here, *changed, "--dry-run")
    assert quotas(*here)["quotas"] == []
    quotas(*here, *changed)
    until(lambda: bool(quotas(*here)["quotas"]))  # brokers learn it later
    assert quotas(*here)["quotas"] == [
        {
            "user": "limited",
            "client_id": None,
            "values": {"producer_byte_rate": 2048.0, "request_percentage": 50.5},
        }
    ]
    quotas(*here, "--delete-config", "producer_byte_rate", "--delete-config", "request_percentage")
    until(lambda: not quotas(*here)["quotas"])
