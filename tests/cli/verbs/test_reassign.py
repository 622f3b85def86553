"""`kafkawire reassign`, and the calls of the admin client below it, of ours and of a real Kafka."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError
from kafkawire.net.admin import PartitionReassignment
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire_cli.live.reassign.placement import proposed
from tests.cli.reports import run
from tests.interop.implementations.interface import until
from tests.real.broker import Broker

FIRST = ("orders", 0)
SECOND = ("orders", 1)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    """Four brokers; the last has stopped, so that what moves there stays in progress."""
    with ServerThread(ServerConfig(brokers=4)) as server:
        server.create_topic("orders", partitions=2, factor=2)
        server.stop(4)
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap}) as admin:
        yield admin
        moving = admin.list_partition_reassignments()
        admin.alter_partition_reassignments(dict.fromkeys(moving))
        admin.alter_partition_reassignments({FIRST: [1, 2], SECOND: [2, 1]})
        settled(admin)


@pytest.fixture(autouse=True)
def placed(admin: Admin) -> None:
    admin.alter_partition_reassignments({FIRST: [1, 2], SECOND: [2, 1]})
    settled(admin)


@pytest.fixture
def here(server: ServerThread) -> tuple[str, str]:
    return ("-b", server.bootstrap)


def settled(admin: Admin) -> None:
    until(lambda: not admin.list_partition_reassignments())


def replicas(admin: Admin) -> dict[tuple[str, int], tuple[int, ...]]:
    topic = admin.describe_topics(["orders"])["orders"]
    return {("orders", row.partition): row.replicas for row in topic.partitions}


def reassign(*words: object, code: int = 0) -> Any:
    done = run("reassign", *words, "--json")
    assert (done.exit_code, done.stderr) == (code, "")
    return json.loads(done.stdout)


def moves(tmp_path: Path, *partitions: dict[str, Any]) -> Path:
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return file


def row(partition: int, *brokers: int) -> dict[str, Any]:
    return {"topic": "orders", "partition": partition, "replicas": brokers, "log_dirs": ["any"]}


def test_partitions_are_reassigned_and_that_is_cancelled(admin: Admin) -> None:
    admin.alter_partition_reassignments({FIRST: [2, 3]})
    settled(admin)
    assert replicas(admin)[FIRST] == (2, 3)
    admin.alter_partition_reassignments({FIRST: [2, 4]})
    moving = admin.list_partition_reassignments()
    assert moving == {FIRST: PartitionReassignment((2, 4, 3), (4,), (3,))}
    assert admin.list_partition_reassignments([SECOND]) == {}
    admin.alter_partition_reassignments({FIRST: None})
    assert admin.list_partition_reassignments() == {}
    with pytest.raises(BrokerError, match=r"NO_REASSIGNMENT_IN_PROGRESS.*orders-0"):
        admin.alter_partition_reassignments({FIRST: None})
    with pytest.raises(BrokerError, match="orders-0"):
        admin.alter_partition_reassignments({FIRST: [1]}, allow_replication_factor_change=False)


def test_preferred_leaders_are_elected(admin: Admin) -> None:
    admin.alter_partition_reassignments({FIRST: [2, 1]})
    settled(admin)
    admin.elect_leaders([FIRST])
    until(lambda: admin.describe_topics(["orders"])["orders"].partitions[0].leader == 2)
    assert FIRST not in admin.elect_leaders()  # all others, and none that is led already
    with pytest.raises(BrokerError, match="no-such-topic-0"):
        admin.elect_leaders([("no-such-topic", 0)])


def test_a_proposal_is_executed_and_verified(
    admin: Admin, here: tuple[str, str], tmp_path: Path
) -> None:
    words = (*here, "--topic", "orders", "--to", "2,3")
    generated = reassign(*words, "--generate")
    assert generated["current"]["partitions"][0]["replicas"] == [1, 2]
    file = tmp_path / "proposed.json"
    file.write_text(json.dumps(generated["proposed"]))
    planned = reassign(*words, "--execute", "--dry-run")
    assert planned["dry_run"] is True
    assert replicas(admin) == {FIRST: (1, 2), SECOND: (2, 1)}
    assert {one["reassignment"]["partition"] for one in planned["changes"]} == {0, 1}
    verified = (*here, "--verify", "--reassignment-json-file", file)
    assert reassign(*verified, code=1)["partitions"][0]["state"] == "not as in the file"
    changes = reassign(*here, "--execute", "--reassignment-json-file", file)["changes"]
    assert changes == planned["changes"]
    settled(admin)
    states = {one["state"] for one in reassign(*verified)["partitions"]}
    assert states == {"complete"}
    assert {broker for ids in replicas(admin).values() for broker in ids} == {2, 3}
    again = run("reassign", *here, "--execute", "--reassignment-json-file", file)
    assert (again.exit_code, again.stdout) == (0, "Nothing to move.\n")


@pytest.mark.parametrize("form", ["table", "json", "of Kafka"])
def test_the_output_of_generate_is_a_file_to_execute(
    admin: Admin, here: tuple[str, str], tmp_path: Path, form: str
) -> None:
    file = tmp_path / "generated"
    if form == "of Kafka":
        current, proposed = (
            json.dumps({"version": 1, "partitions": [row(0, *ids)]}) for ids in ((1, 2), (2, 3))
        )
        file.write_text(
            f"Current partition replica assignment\n{current}\n\n"
            f"Proposed partition reassignment configuration\n{proposed}\n"
        )
    else:
        words = ("--generate", "--topic", "orders", "--to", "2,3", "-f", form)
        file.write_text(run("reassign", *here, *words).stdout)
    assert reassign(*here, "--execute", "--reassignment-json-file", file)["changes"]
    settled(admin)
    assert set(replicas(admin)[FIRST]) == {2, 3}


def test_what_is_in_progress_is_shown_and_cancelled(
    admin: Admin, here: tuple[str, str], tmp_path: Path
) -> None:
    admin.alter_partition_reassignments({FIRST: [2, 4]})
    [shown] = reassign(*here)["reassignments"]
    assert (shown["partition"], shown["adding"], shown["removing"]) == (0, [4], [1])
    assert reassign(*here, "--topic", "orders")["reassignments"] == [shown]
    assert "orders" in run("reassign", *here).stdout
    file = moves(tmp_path, row(0, 2, 4), row(1, 2, 1))
    verified = reassign(*here, "--verify", "--reassignment-json-file", file, code=1)["partitions"]
    assert [one["state"] for one in verified] == ["in progress", "complete"]
    other = moves(tmp_path, row(0, 1, 3))
    refused = run("reassign", *here, "--execute", "--reassignment-json-file", other)
    assert (refused.exit_code, "--additional" in refused.stderr) == (1, True)
    words = (*here, "--cancel", "--topic", "orders")
    assert reassign(*words, "--dry-run")["changes"][0]["action"] == "cancel"
    assert list(admin.list_partition_reassignments()) == [FIRST]
    done = run("reassign", *words, "--yes")
    assert done.exit_code == 0
    assert done.stdout.startswith("cancelled reassignment of orders-0")
    assert admin.list_partition_reassignments() == {}
    assert run("reassign", *words, "--yes").stdout.strip() == "No reassignments in progress."


def test_a_reassignment_in_progress_is_changed_with_additional(
    admin: Admin, here: tuple[str, str], tmp_path: Path
) -> None:
    admin.alter_partition_reassignments({FIRST: [2, 4]})
    file = moves(tmp_path, row(0, 2, 3))
    reassign(*here, "--execute", "--additional", "--reassignment-json-file", file)
    settled(admin)
    assert replicas(admin)[FIRST] == (2, 3)


def test_topics_come_from_a_file(here: tuple[str, str]) -> None:
    topics = json.dumps({"version": 1, "topics": [{"topic": "orders"}]}).encode()
    words = ("--generate", "--broker-list", "1,3", "--topics-to-move-json-file", "-", "--json")
    done = run("reassign", *here, *words, stdin=topics)
    assert done.exit_code == 0
    proposal = json.loads(done.stdout)["proposed"]
    assert {tuple(sorted(one["replicas"])) for one in proposal["partitions"]} == {(1, 3)}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--generate", "--execute"), "not allowed together"),
        (("--generate", "--topic", "orders"), "--to"),
        (("--generate", "--to", "1"), "expected topics"),
        (("--generate", "--topic", "orders", "--to", "1,b"), "'b': expected the id of a broker"),
        (("--verify", "--topic", "orders", "--to", "1"), "only allowed with"),
        (("--cancel", "--topic", "orders"), "no terminal to confirm"),
        (("--cancel",), "expected topics or a file"),
        (("--reassignment-json-file", "x"), "only allowed with"),
        (("--additional",), "only allowed with"),
        (("--verify", "--topic", "orders", "--throttle", "1"), "only allowed with --execute"),
        (("--execute", "--topic", "orders", "--to", "1", "--throttle", "0"), "x>=1"),
        (("--preserve-throttles",), "only allowed with --verify or --cancel"),
        (("--dry-run",), "nothing to change"),
        (("--execute", "--reassignment-json-file", "/no/such/file"), "/no/such/file"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(
    here: tuple[str, str], words: tuple[str, ...], reason: str
) -> None:
    done = run("reassign", *here, *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("{", "not JSON"),
        ("Proposed replicas\n\n", "not JSON"),
        ('{"proposed": []}', "an object"),
        ("[" * 100_000, "not JSON"),
        ("[]", "an object"),
        ('{"version": 2, "partitions": [{}]}', "version 1"),
        ('{"partitions": []}', "partitions"),
        ('{"partitions": [7]}', "partitions[0]"),
        ('{"partitions": [{"partition": 0, "replicas": [1]}]}', "partitions[0].topic"),
        ('{"partitions": [{"topic": "t", "replicas": [1]}]}', "partitions[0].partition"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "partitions[0].replicas"),
        (json.dumps({"partitions": [row(0, 1, 1)]}), "partitions[0].replicas"),
        (json.dumps({"partitions": [row(0, -1)]}), "partitions[0].replicas"),
        (json.dumps({"partitions": [row(0, 1), row(0, 2)]}), "partitions[1]"),
        (json.dumps({"partitions": [row(0, 1) | {"log_dirs": ["/a"]}]}), "partitions[0].log_dirs"),
    ],
)
def test_a_file_that_is_not_valid_is_a_usage_error_with_the_place(
    here: tuple[str, str], tmp_path: Path, content: str, place: str
) -> None:
    file = tmp_path / "moves.json"
    file.write_text(content)
    done = run("reassign", *here, "--verify", "--reassignment-json-file", file)
    assert done.exit_code == 2
    assert place in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--topic", "order", "--to", "1,2"), "did you mean orders"),
        (("--topic", "orders", "--to", "1,9"), "no broker with id 9"),
        (("--topic", "orders", "--to", "1"), "more than 1 broker"),
    ],
)
def test_what_the_cluster_does_not_have_is_named(
    here: tuple[str, str], words: tuple[str, ...], reason: str
) -> None:
    done = run("reassign", *here, "--execute", *words)
    assert (done.exit_code, done.stdout) == (1, "")
    assert reason in done.stderr


def test_an_unknown_partition_is_named(admin: Admin, here: tuple[str, str], tmp_path: Path) -> None:
    file = moves(tmp_path, row(0, 2, 3), row(7, 2, 3))
    done = run("reassign", *here, "--execute", "--reassignment-json-file", file)
    assert (done.exit_code, "orders-7" in done.stderr) == (1, True)
    assert replicas(admin)[FIRST] == (1, 2)


def test_hostile_names_do_not_reach_the_terminal(here: tuple[str, str], tmp_path: Path) -> None:
    file = moves(tmp_path, row(0, 1) | {"topic": "\x1b[31mred"})
    done = run("reassign", *here, "--verify", "--reassignment-json-file", file)
    assert done.exit_code == 1
    assert "\x1b" not in done.stdout + done.stderr


# -- proposals


def test_replicas_stay_where_they_are_if_they_may() -> None:
    current = {("t", 0): [1, 2], ("t", 1): [2, 3], ("t", 2): [3, 1]}
    assert proposed(current, [1, 2, 3], {}) == current


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    current = {("t", number): [1 + number % 3, 1 + (number + 1) % 3] for number in range(6)}
    proposal = proposed(current, [1, 2, 3, 4], {})
    load = Counter(broker for ids in proposal.values() for broker in ids)
    assert sum(load.values()) == 12
    assert max(load.values()) <= 3
    moved = sum(len(set(proposal[where]) - set(ids)) for where, ids in current.items())
    assert moved == load[4]
    leaders = Counter(ids[0] for ids in proposal.values())
    assert max(leaders.values()) - min(leaders.values()) <= 1


def test_replicas_are_in_different_racks() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b"}
    current = {("t", number): [7, 8] for number in range(8)}
    proposal = proposed(current, racks, racks)
    assert all(len({racks[broker] for broker in ids}) == 2 for ids in proposal.values())
    assert set(Counter(broker for ids in proposal.values() for broker in ids).values()) == {4}


def test_beside_a_real_kafka(kafka: Broker, tmp_path: Path) -> None:
    here = ("-b", kafka.bootstrap)
    with Admin({"bootstrap.servers": kafka.bootstrap}) as admin:
        admin.create_topic("reassigned", partitions=1)
        file = moves(tmp_path, row(0, 1) | {"topic": "reassigned"})
        until(lambda: "reassigned" in admin.list_topics())
        words = ("--reassignment-json-file", file)
        assert reassign(*here, "--verify", *words)["partitions"][0]["state"] == "complete"
        assert run("reassign", *here, "--execute", *words).stdout == "Nothing to move.\n"
        admin.alter_partition_reassignments({("reassigned", 0): [1]})
        with pytest.raises(BrokerError, match="INVALID_REPLICA_ASSIGNMENT"):
            admin.alter_partition_reassignments({("reassigned", 0): [7]})
        with pytest.raises(BrokerError, match="NO_REASSIGNMENT_IN_PROGRESS"):
            admin.alter_partition_reassignments({("reassigned", 0): None})
        assert reassign(*here) == {"reassignments": []}
        admin.delete_topic("reassigned")
