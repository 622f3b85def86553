"""`groups -b`: members, epochs, assignments and lag of share groups and Streams groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kafkawire.blocking import Admin, Producer, ShareConsumer
from kafkawire.client.share_consumer import AcknowledgeType
from kafkawire.display import text_width
from kafkawire.net.admin import GroupListing
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_config import QUICK
from kafkawire.net.server_thread import ServerThread
from kafkawire_cli.live.groups.reading import Description, Group, Member
from kafkawire_cli.live.groups.report import as_json, sections
from tests.cli.reports import on_a_terminal, run
from tests.net.server import test_streams_beside_kafka as streams
from tests.net.server.test_beside_kafka import commit
from tests.net.server.test_shares_beside_kafka import Peer, config
from tests.real.wire import CLIENT_ID, Wire

pytestmark = pytest.mark.timeout(60)
TOPICS: Final = {"orders": 1, streams.TOPIC: 2}
MEMBER: Final = "JUcmX2hXSyCZ5cVEhrx3ig"
"""Of a Streams group, as long as those of Java."""


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(ServerConfig(topics=TOPICS, settings=QUICK)) as server:
        yield server


def shown(server: ServerThread, group_id: str) -> dict[str, Any]:
    """The group as JSON."""
    done = run("groups", "-b", server.bootstrap, "--group", group_id, "-f", "json")
    assert done.exit_code == 0, done.stderr
    [group] = json.loads(done.stdout)["groups"]
    assert isinstance(group, dict)
    return group


def in_80_columns(server: ServerThread, group_id: str) -> str:
    text = on_a_terminal("groups", "-b", server.bootstrap, "--group", group_id, columns=80)
    plain = text.replace("\x1b[0m", "").replace("\x1b[1m", "").replace("\x1b[2m", "")
    assert max(map(text_width, plain.splitlines())) <= 80
    return plain


def cells(text: str, member: str) -> list[str]:
    """The row of a member."""
    [row] = (line for line in text.splitlines() if member in line)
    return row.split()


def test_a_share_group(server: ServerThread) -> None:
    here = {"bootstrap.servers": server.bootstrap}
    with Admin(here) as admin, Producer(here) as producer:
        admin.alter_group_config("shared", {"share.auto.offset.reset": "earliest"})
        for number in range(3):
            producer.deliver("orders", b"%d" % number)
    explicit = {"group.id": "shared", "share.acknowledgement.mode": "explicit"}
    with ShareConsumer({**here, **explicit, "client.id": "billing"}) as consumer:
        consumer.subscribe(["orders"])
        records = consumer.poll(30)
        for record in records:
            last = record.offset == 2
            outcome = AcknowledgeType.RELEASE if last else AcknowledgeType.ACCEPT
            consumer.acknowledge(record, outcome)
        consumer.commit()
        group = shown(server, "shared")
        text = in_80_columns(server, "shared")
        listed = run("groups", "-b", server.bootstrap).stdout
    [member] = group["members"]
    assert (group["type"], group["state"], group["protocol"]) == ("share", "Stable", "simple")
    assert group["group_epoch"] == group["assignment_epoch"] == member["epoch"] > 0
    assert (member["client_id"], member["client_host"]) == ("billing", "/127.0.0.1")
    assert member["assigned"] == {"orders": [0]}
    start = {"topic": "orders", "partition": 0, "start_offset": 0, "lag": 1}
    assert (group["offsets"], group["lag"]) == ([start], 1)
    assert "Group shared: Stable, lag 1" in text
    assert f"epochs: group {member['epoch']}, assignment {member['epoch']}" in text
    name = member["member_id"]
    epoch = str(member["epoch"])
    assert cells(text, name) == [name, epoch, "billing", "/127.0.0.1", "orders", "0"]
    assert ["orders", "0", "0", "1"] in [line.split() for line in text.splitlines()]
    assert cells(listed, "shared") == ["shared", "Stable", "share", "simple", "1", "1"]


def test_a_streams_group(server: ServerThread) -> None:
    """A member has all tasks and has committed an offset; another has none yet."""
    with Producer({"bootstrap.servers": server.bootstrap}) as producer:
        for _ in range(3):
            producer.deliver(streams.TOPIC, b"value", partition=0)
    with Wire(int(server.bootstrap.rpartition(":")[2])) as wire:
        peer = Peer(wire)
        peer.exchange("FindCoordinator", 6, {"keyType": 0, "coordinatorKeys": [streams.GROUP]})
        for key in ("initial.rebalance.delay.ms", "assignment.interval.ms"):
            change = config(f"streams.{key}", "0", streams.GROUP)
            peer.exchange("IncrementalAlterConfigs", 1, change)
        joined: Any = peer.exchange(streams.HEARTBEAT, 1, streams.beat(MEMBER))
        epoch = streams.settled_member(peer, MEMBER, joined.member_epoch)
        committed = commit(epoch, MEMBER, streams.TOPIC) | {"groupId": streams.GROUP}
        peer.exchange("OffsetCommit", 9, committed)
        peer.exchange(streams.HEARTBEAT, 1, streams.beat("waits", instanceId="i"))
        group = shown(server, streams.GROUP)
        text = in_80_columns(server, streams.GROUP)
        listed = run("groups", "-b", server.bootstrap).stdout
    first, second = group["members"]
    assert (group["type"], group["state"]) == ("streams", "Reconciling")
    assert (group["protocol"], group["topology_epoch"]) == ("sticky", 0)
    assert (first["member_id"], first["epoch"], first["client_id"]) == (MEMBER, epoch, CLIENT_ID)
    assert first["process_id"] == f"process of {MEMBER}"
    assert first["active"] == {"0": [0, 1], "1": [0, 1]}
    assert first["standby"] == first["warmup"] == second["active"] == {}
    assert second["group_instance_id"] == "i"
    assert second["epoch"] == group["group_epoch"] == group["assignment_epoch"] == epoch + 1
    assert [row["subtopology_id"] for row in group["subtopologies"]] == ["0", "1"]
    assert [(row["topic"], row["lag"]) for row in group["offsets"]] == [(streams.TOPIC, 2)]
    assert group["lag"] == 2
    assert group["topology_description_status"] == "NOT_STORED"
    assert group["topology_description"] is None
    assert f"epochs: group {epoch + 1}, assignment {epoch + 1}, topology 0" in text
    assert cells(text, MEMBER)[:3] == [MEMBER, str(epoch), CLIENT_ID]
    assert "0 0-1" in text
    assert "-changelog" in text
    assert cells(listed, "Reconciling")[2:] == ["streams", "sticky", "2", "2"]


def test_kinds_of_tasks_have_columns_of_their_own_if_there_are_any() -> None:
    kinds = {"active": {"0": [0]}, "standby": {"0": [1, 2]}, "warmup": {"1": [3]}}
    members = [Member("m", None, "c", "h", 3, kinds, "p")]
    epochs = {"group": 4, "assignment": 4, "topology": 0}
    listing = GroupListing("g", "streams", "Stable", "streams")
    group = Group(listing, Description("Stable", "sticky", members, epochs), [], [])
    table = sections(group)[1]
    head = ("member", ">epoch", "client", "host", "process", "active", "standby", "warm-up")
    assert table.head == head
    assert table.rows == [("m", "3", "c", "h", "p", "0 0", "0 1-2", "1 3")]
    [member] = as_json(group)["members"]
    assert {kind: member[kind] for kind in kinds} == kinds
