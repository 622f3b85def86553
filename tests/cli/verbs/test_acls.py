"""`kafkawire acls`, and the calls of the admin client below it: listed, added, removed, refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError
from kafkawire.errors import InvalidValue
from kafkawire.net.admin import AclBinding, AclFilter
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.broker.security.acls import STANDARD
from tests.cli.reports import run

ALICE = AclBinding("TOPIC", "orders", "User:alice", "READ")
PREFIX = AclBinding("GROUP", "app-", "User:bob", "ALL", "DENY", "10.0.0.7", "PREFIXED")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(ServerConfig(settings=STANDARD | {"super.users": "User:ANONYMOUS"})) as made:
        yield made


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap}) as admin:
        yield admin
        admin.delete_acls([AclFilter()])


@pytest.fixture
def here(server: ServerThread) -> tuple[str, str]:
    return ("-b", server.bootstrap)


def acls(*words: str) -> Any:
    done = run("acls", *words, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_acls_are_created_described_and_deleted(admin: Admin) -> None:
    admin.create_acls([ALICE, PREFIX])
    admin.create_acls([ALICE])
    assert admin.describe_acls() == [PREFIX, ALICE]
    assert admin.describe_acls(AclFilter("TOPIC")) == [ALICE]
    assert admin.describe_acls(AclFilter("GROUP", "app-1", pattern_type="MATCH")) == [PREFIX]
    assert admin.describe_acls(AclFilter("GROUP", "app-1")) == []
    assert admin.delete_acls([AclFilter(principal="User:bob"), AclFilter(host="10.0.0.7")]) == [
        PREFIX
    ]
    assert admin.describe_acls() == [ALICE]


@pytest.mark.parametrize(
    ("binding", "field"),
    [
        (ALICE._replace(operation="EAT"), r"acls\[0\].operation"),
        (ALICE._replace(pattern_type="MATCH"), r"acls\[0\].pattern_type"),
        (ALICE._replace(principal=7), r"acls\[0\].principal"),  # type: ignore[arg-type]
        (("TOPIC", "orders"), r"acls\[0\]"),
    ],
)
def test_an_invalid_acl_is_not_sent(admin: Admin, binding: AclBinding, field: str) -> None:
    with pytest.raises(InvalidValue, match=field):
        admin.create_acls([binding])


def test_what_the_cluster_refuses_is_an_error(admin: Admin) -> None:
    with pytest.raises(BrokerError, match="kafka-cluster"):
        admin.create_acls([AclBinding("CLUSTER", "mine", "User:alice", "ALTER")])


def test_acls_are_added_listed_and_removed_by_the_verb(admin: Admin, here: tuple[str, str]) -> None:
    added = (*here, "--add", "--topic", "orders", "--principal", "User:alice")
    planned = acls(*added, "--operation", "read", "--dry-run")
    assert planned["dry_run"] is True
    assert admin.describe_acls() == []
    made = acls(*added, "--operation", "read", "--operation", "write")
    assert [each["acl"]["operation"] for each in made["changes"]] == ["READ", "WRITE"]
    denied = ("--group", "app-", "--prefixed", "--principal", "User:bob", "--deny")
    acls(*here, "--add", *denied, "--operation", "all", "--host", "10.0.0.7")
    listed = acls(*here)["acls"]
    assert listed[0] == PREFIX._asdict()
    assert [each["operation"] for each in listed[1:]] == ["READ", "WRITE"]
    assert acls(*here, "--operation", "WRITE")["acls"] == [
        ALICE._replace(operation="WRITE")._asdict()
    ]
    assert acls(*here, "--topic", "other")["acls"] == []
    removed = (*here, "--remove", "--principal", "User:alice")
    assert len(acls(*removed, "--dry-run")["changes"]) == 2
    assert len(admin.describe_acls()) == 3
    text = run("acls", *removed, "--yes").stdout
    assert "deleted acl ALLOW READ on TOPIC orders for User:alice from *" in text
    assert admin.describe_acls() == [PREFIX]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--add", "--remove"), "not allowed together"),
        (("--add", "--topic", "t", "--operation", "READ"), "--principal"),
        (("--remove",), "which ACLs"),
        (("--remove", "--topic", "t"), "no terminal to confirm"),
        (("--dry-run",), "nothing to change"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(
    here: tuple[str, str], words: tuple[str, ...], reason: str
) -> None:
    done = run("acls", *here, *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


def test_hostile_names_do_not_reach_the_terminal(admin: Admin, here: tuple[str, str]) -> None:
    admin.create_acls([ALICE._replace(principal="User:\x1b[31mred")])
    assert "\x1b" not in run("acls", *here).stdout


def test_a_cluster_without_an_authorizer_says_so() -> None:
    with ServerThread(ServerConfig()) as server:
        done = run("acls", "-b", server.bootstrap)
        words = ("--add", "--topic", "t", "--principal", "User:a", "--operation", "READ")
        added = run("acls", "-b", server.bootstrap, *words, "--dry-run")
    assert (done.exit_code, added.exit_code) == (1, 1)
    assert "No Authorizer is configured" in done.stderr
    assert "No Authorizer is configured" in added.stderr


def test_an_unknown_operation_is_a_usage_error(here: tuple[str, str]) -> None:
    done = run("acls", *here, "--operation", "EAT")
    assert done.exit_code == 2
    assert "TWO_PHASE_COMMIT" in done.stderr
    misspelt = run("acls", *here, "--operation", "REED")
    assert misspelt.stderr.endswith("TWO_PHASE_COMMIT; did you mean READ?\n")
