"""Graphs of Streams topologies at a real Apache Kafka with a plugin that stores them (KIP-1331)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.blocking import Admin
from kafkawire.net.admin import (
    StreamsGroupInfo,
    TopologyDescription,
    TopologyDescriptionStatus,
    TopologyNode,
)
from tests.cli.reports import run
from tests.interop.implementations import until
from tests.real.compiler import compiled
from tests.real.java import Installation

from ...real.broker import Broker, running
from ...real.wire import Wire
from . import test_streams_beside_kafka as streams
from .test_beside_kafka import Fields
from .test_shares_beside_kafka import Peer, create_topic
from .test_streams import application

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

SOURCE: Final = Path(__file__).with_name("TopologyDescriptions.java")
UPDATE: Final = "StreamsGroupTopologyDescriptionUpdate"
UNREADABLE: Final = "unreadable"
"""The group for which the plugin fails."""
S: Final = TopologyDescriptionStatus


@pytest.fixture(scope="module")
def storing(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A real broker whose plugin stores descriptions."""
    plugin = {
        "group.streams.topology.description.plugin.class": SOURCE.stem,
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.assignment.interval.ms": "0",
    }
    folder = tmp_path_factory.mktemp("storing")
    with running(compiled(installation, SOURCE), folder, plugin) as broker:
        yield broker


@pytest.fixture
def admin(storing: Broker) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": bootstrap(storing)}) as admin:
        yield admin


def bootstrap(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def described(admin: Admin, group_id: str) -> StreamsGroupInfo:
    return admin.describe_streams_groups([group_id], include_topology_description=True)[group_id]


def node(name: str, node_type: int, **fields: Any) -> Fields:
    absent: Fields = {"sourceTopics": [], "sinkTopic": None, "stores": [], "successors": []}
    return {"name": name, "nodeType": node_type, **absent, **fields}


def update(group_id: str, **fields: Any) -> Fields:
    return {
        "groupId": group_id,
        "memberId": "m",
        "topologyEpoch": 0,
        "topologyDescription": {
            "subtopologies": [
                {
                    "subtopologyId": "1",
                    "nodes": [
                        node("reads", 1, sourceTopics=["b", "a"], successors=["works"]),
                        node("works", 2, stores=["t", "s"], successors=["writes", "chooses"]),
                        node("writes", 3, sinkTopic="c"),
                        node("chooses", 3),
                    ],
                },
                {"subtopologyId": "0", "nodes": [node("alone", 1, sourceTopics=["d"])]},
            ],
            "globalStores": [
                {
                    "source": node("all", 1, sourceTopics=["g"], successors=["keeps"]),
                    "processor": node("keeps", 2, stores=["global"]),
                }
            ],
        },
        **fields,
    }


GRAPH: Final = TopologyDescription(
    {
        "0": (TopologyNode("alone", "source", ("d",), None, (), ()),),
        "1": (
            TopologyNode("reads", "source", ("a", "b"), None, (), ("works",)),
            TopologyNode("works", "processor", (), None, ("s", "t"), ("chooses", "writes")),
            TopologyNode("writes", "sink", (), "c", (), ()),
            TopologyNode("chooses", "sink", (), None, (), ()),
        ),
    },
    (
        (
            TopologyNode("all", "source", ("g",), None, (), ("keeps",)),
            TopologyNode("keeps", "processor", (), None, ("global",), ()),
        ),
    ),
)
"""What Kafka returns of `update`, as `Admin` has it."""


def joined(peer: Peer, group_id: str) -> None:
    """Create a group with a member, which has the description requested of it."""
    topology = {
        "epoch": 0,
        "subtopologies": [streams.subtopology("0", sourceTopics=[streams.TOPIC])],
    }
    fields = streams.beat("m", group=group_id, topology=topology)
    response: Any = peer.exchange(streams.HEARTBEAT, 1, fields)
    assert (response.error_code, response.topology_description_required) == (0, True)


def test_a_graph_is_what_a_member_sent(storing: Broker, admin: Admin) -> None:
    """It is not stored, then available, and only on request; the plugin may fail."""
    with Wire(storing.port) as wire:
        peer = Peer(wire)
        create_topic(peer, streams.TOPIC, streams.GROUP)
        for group_id in (streams.GROUP, UNREADABLE):
            joined(peer, group_id)
            before = described(admin, group_id)
            assert before.topology_description_status is S.NOT_STORED
            assert before.topology_description is None
            response: Any = peer.exchange(UPDATE, 0, update(group_id))
            assert (response.error_code, response.error_message) == (0, None)
    stored = described(admin, streams.GROUP)
    assert stored.topology_description_status is S.AVAILABLE
    assert stored.topology_description == GRAPH
    failed = described(admin, UNREADABLE)
    assert (failed.topology_description_status, failed.topology_description) == (S.ERROR, None)
    unrequested = admin.describe_streams_groups([streams.GROUP])[streams.GROUP]
    assert unrequested.topology_description_status is S.NOT_REQUESTED
    assert unrequested.topology_description is None
    shown_by_groups(bootstrap(storing))


def shown_by_groups(servers: str) -> None:
    """See the graph, and that the plugin failed, in what the command line shows."""
    arguments = ("groups", "-b", servers, "--group", streams.GROUP)
    [group] = json.loads(run(*arguments, "-f", "json").stdout)["groups"]
    assert group["topology_description_status"] == "AVAILABLE"
    graph = group["topology_description"]
    assert [each["name"] for each in graph["subtopologies"]["1"]] == [
        "reads",
        "works",
        "writes",
        "chooses",
    ]
    assert graph["global_stores"][0]["processor"]["stores"] == ["global"]
    text = run(*arguments).stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["1", "works", "processor", "s", "t", "chooses", "writes"] in rows
    assert ["1", "writes", "sink", "c"] in rows
    assert ["global", "keeps", "processor", "global"] in rows
    failed = run("groups", "-b", servers, "--group", UNREADABLE).stdout
    assert "topology description: the broker's plugin failed" in failed


def test_the_graph_of_a_kafka_streams_application(
    storing: Broker, admin: Admin, installation: Installation, tmp_path: Path
) -> None:
    for topic in ("lines", "counts"):
        admin.create_topic(topic, partitions=2)
    with application(installation, bootstrap(storing), tmp_path):
        until(
            lambda: (
                [row.group_id for row in admin.list_groups()].count("words") == 1
                and described(admin, "words").topology_description is not None
            )
        )
        graph = described(admin, "words").topology_description
    assert graph is not None
    assert graph.global_stores == ()
    assert list(graph.subtopologies) == ["0", "1"]
    repartition = "words-words-repartition"
    for nodes, source, sink, stores in (
        (graph.subtopologies["0"], "lines", repartition, set()),
        (graph.subtopologies["1"], repartition, "counts", {"counts"}),
    ):
        by_type = {kind: [each for each in nodes if each.type == kind] for kind in
                   ("source", "processor", "sink")}  # fmt: skip
        assert sum(map(len, by_type.values())) == len(nodes)
        [first], [last] = by_type["source"], by_type["sink"]
        assert (first.source_topics, last.sink_topic) == ((source,), sink)
        assert {name for each in by_type["processor"] for name in each.stores} == stores
        assert last.name in {name for each in nodes for name in each.successors}
        assert last.successors == ()
