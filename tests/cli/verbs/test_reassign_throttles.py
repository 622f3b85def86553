"""Throttles of `kafkawire reassign`, beside those of kafka-reassign-partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkawire.blocking import Admin, Producer
from kafkawire.net.admin import ConfigResource
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire_cli.live.reassign.throttles import STAYS
from tests.cli.reports import run
from tests.real.java import Installation

from .test_reassign import moves, reassign, row, settled

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
SLOW, FAST = "1000", "100000000"
"""Bytes per second with which a move does not end, and ends at once."""
FETCHED = 10_000
RECORDS = 40
PLACED = {("orders", 0): [1, 2], ("orders", 1): [2, 3]}
Throttles = dict[tuple[str, str, str], str | None]


@pytest.fixture
def server() -> Iterator[ServerThread]:
    """Four brokers, of which a follower fetches little at a time."""
    settings = {"replica.fetch.max.bytes": str(FETCHED)}
    with ServerThread(ServerConfig(brokers=4, settings=settings)) as server:
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    """Of a cluster with two partitions, more than a follower fetches at once."""
    with Admin({"bootstrap.servers": server.bootstrap}) as admin:
        admin.create_topic("orders", partitions=2, replication_factor=2)
        admin.alter_partition_reassignments(PLACED)
        settled(admin)
        with Producer({"bootstrap.servers": server.bootstrap, "batch.size": 1}) as producer:
            for number in range(RECORDS):
                producer.send("orders", value=bytes(FETCHED // 5), partition=number % 2)
            producer.flush()
        yield admin


def throttles(admin: Admin) -> Throttles:
    """Return the throttles that are set: (type of the resource, name, key) -> value."""
    resources = [ConfigResource("TOPIC", each) for each in admin.list_topics()]
    alive = [str(each.broker_id) for each in admin.describe_cluster().brokers]
    resources += [ConfigResource("BROKER", broker) for broker in alive]
    return {
        (*resource, name): entry.value
        for resource, entries in admin.describe_configs(resources).items()
        for name, entry in entries.items()
        if "replication.throttled" in name and entry.source.startswith("DYNAMIC")
    }


def of_brokers(rate: str, *brokers: int) -> Throttles:
    sides = ("leader", "follower")
    return {
        ("BROKER", str(broker), f"{side}.replication.throttled.rate"): rate
        for broker in brokers
        for side in sides
    }


def of_topic(leader: str, follower: str) -> Throttles:
    return {
        ("TOPIC", "orders", "leader.replication.throttled.replicas"): leader,
        ("TOPIC", "orders", "follower.replication.throttled.replicas"): follower,
    }


def test_throttles_are_those_of_kafka(
    server: ServerThread, admin: Admin, installation: Installation, tmp_path: Path
) -> None:
    """Of a move, of another one in addition to it, and none in the end."""
    here = ("-b", server.bootstrap)
    first = moves(tmp_path, row(0, 4, 2) | {"log_dirs": ["any", "any"]})
    second = tmp_path / "second.json"
    second.write_text(first.read_text().replace('"partition": 0', '"partition": 1'))
    seen = []
    for tool in (TOOL, None):

        def call(*words: str, tool: str | None = tool, code: int = 0) -> None:
            if tool is None:
                reassign(*here, *words, code=code)
            else:
                installation.run(tool, "--bootstrap-server", server.bootstrap, *words)

        of_first, of_second = (("--reassignment-json-file", str(each)) for each in (first, second))
        call("--execute", "--throttle", SLOW, *of_first)
        seen.append(throttles(admin))
        call("--execute", "--additional", "--throttle", SLOW, *of_second)
        seen.append(throttles(admin))
        call("--verify", *of_first, code=1)
        assert throttles(admin) == seen[-1], "something is in progress"
        call("--execute", "--additional", "--throttle", FAST, *of_first)
        settled(admin)
        call("--verify", "--preserve-throttles", *of_first)
        seen.append(throttles(admin))
        call("--verify", *of_first)
        assert throttles(admin) == {}
        admin.alter_partition_reassignments(PLACED)
        settled(admin)
    assert seen[:3] == seen[3:]
    assert seen[0] == of_topic("0:1,0:2", "0:4") | of_brokers(SLOW, 1, 2, 4)
    assert seen[1] == of_topic("0:1,0:2,1:2,1:3", "0:4,1:4") | of_brokers(SLOW, 1, 2, 3, 4)


def test_throttles_are_removed_when_the_last_reassignment_is_cancelled(
    server: ServerThread, admin: Admin, tmp_path: Path
) -> None:
    """Broker 4 has stopped: what moves there stays in progress, and its rates are not changed."""
    server.stop(4)
    here = ("-b", server.bootstrap)
    admin.alter_partition_reassignments({("orders", 0): [4, 2]})
    file = moves(tmp_path, row(1, 2, 1) | {"log_dirs": ["any", "any"]})
    words = ("--execute", "--throttle", SLOW, "--reassignment-json-file", file)
    planned = reassign(*here, *words, "--dry-run")["changes"]
    assert throttles(admin) == {}
    assert reassign(*here, *words)["changes"] == planned
    expected = of_topic("0:1,0:2,1:2,1:3", "0:4,1:1") | of_brokers(SLOW, 1, 2, 3)
    assert throttles(admin) == expected
    of_file = ("--cancel", "--yes", "--reassignment-json-file", file)
    assert len(reassign(*here, *of_file)["changes"]) == 1
    assert throttles(admin) == expected, "orders-0 is in progress"
    rest = (*here, "--cancel", "--topic", "orders")
    cancelled = reassign(*rest, "--dry-run")["changes"]
    assert [each["action"] for each in cancelled] == ["cancel", *["alter"] * 4]
    assert reassign(*rest, "--yes")["changes"] == cancelled
    assert throttles(admin) == {}


def test_throttles_may_be_kept(server: ServerThread, admin: Admin, tmp_path: Path) -> None:
    here = ("-b", server.bootstrap)
    file = moves(tmp_path, row(0, 4, 2) | {"log_dirs": ["any", "any"]})
    words = ("--reassignment-json-file", file)
    done = run("reassign", *here, "--execute", "--throttle", SLOW, *words)
    assert done.stdout.endswith(f"orders-0 from 1,2 to 4,2\n{STAYS}\n")
    expected = throttles(admin)
    run("reassign", *here, "--cancel", "--yes", "--preserve-throttles", *words)
    assert admin.list_partition_reassignments() == {}
    assert throttles(admin) == expected
    assert reassign(*here, "--verify", "--topic", "orders", "--preserve-throttles")["changes"] == []
    assert throttles(admin) == expected
    verified = run("reassign", *here, "--verify", "--topic", "orders")
    assert "altered broker 4: leader.replication.throttled.rate: default" in verified.stdout
    assert throttles(admin) == {}
