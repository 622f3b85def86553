"""Clusters of real Kafka nodes and ours: brokers with the controller of either, and three voters of
ours that are replaced one by one by Kafka, on the same data directories.

What the nodes have of a partition is equal byte for byte; what was acknowledged is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kafkawire.net.admin import Admin
from kafkawire.net.producer import Producer

from .broker import CLUSTER_ID, Broker, free_ports
from .java import Installation
from .own_node import serving
from .wire import HOST

pytestmark = pytest.mark.xdist_group("mixed")

TOPIC: Final = "orders"
SECONDS: Final = 90.0
PLAIN: Final = {
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "authorizer.class.name": "",
}


class Ports(NamedTuple):
    """Where a node listens."""

    broker: int
    controller: int


class Layout(NamedTuple):
    """The ports of the nodes of a cluster; which of them are controllers."""

    ports: dict[int, Ports]
    voters: tuple[int, ...]

    @property
    def controllers(self) -> str:
        return ",".join(f"{id}@{HOST}:{self.ports[id].controller}" for id in self.voters)

    @property
    def bootstrap(self) -> dict[str, str]:
        servers = [f"{HOST}:{each.broker}" for each in self.ports.values()]
        return {"bootstrap.servers": ",".join(servers)}


class Node(NamedTuple):
    """A node of a cluster, which runs in `running()`; its log directory."""

    data: Path
    running: Callable[[], AbstractContextManager[object]]


def layout(nodes: int, voters: int) -> Layout:
    found = free_ports(2 * nodes)
    ports = {id: Ports(*found[2 * id - 2 : 2 * id]) for id in range(1, nodes + 1)}
    return Layout(ports, tuple(range(1, voters + 1)))


def own(directory: Path, cluster: Layout, node_id: int) -> Node:
    """A node of ours, in a directory."""
    data = directory / "data"
    options = ["--node-id", str(node_id), "--cluster-id", CLUSTER_ID]
    port = cluster.ports[node_id].broker
    return Node(data, lambda: serving(data, port, cluster.controllers, {}, options))


def broker_of(installation: Installation, directory: Path, cluster: Layout, node_id: int) -> Broker:
    """A real Kafka, in a directory."""
    ports = cluster.ports[node_id]
    broker = Broker(installation, directory, ports.broker, 0, ports.controller)
    listener = f"PLAINTEXT://{HOST}:{ports.broker}"
    controller = f",CONTROLLER://{HOST}:{ports.controller}"
    is_voter = node_id in cluster.voters
    broker.configure(
        {
            **PLAIN,
            "process.roles": "broker,controller" if is_voter else "broker",
            "node.id": str(node_id),
            "listeners": listener + (controller if is_voter else ""),
            "advertised.listeners": listener,
            "controller.quorum.voters": cluster.controllers,
        }
    )
    return broker


def real(installation: Installation, directory: Path, cluster: Layout, node_id: int) -> Node:
    """A node that is a real Kafka, in a new directory."""
    directory.mkdir()
    broker = broker_of(installation, directory, cluster, node_id)
    broker.format_storage()

    @contextmanager
    def running() -> Iterator[None]:
        try:
            broker.start()
            yield
        finally:
            broker.stop()

    return Node(broker.data, running)


@pytest.mark.parametrize("controller", ["kafka", "ours"])
def test_each_replicates_the_others_partitions(
    controller: str, installation: Installation, tmp_path: Path
) -> None:
    """One node is the controller; the other one is away for a while."""
    cluster = layout(nodes=2, voters=1)
    (tmp_path / "ours").mkdir()
    own_id, real_id = (1, 2) if controller == "ours" else (2, 1)
    nodes = {
        own_id: own(tmp_path / "ours", cluster, own_id),
        real_id: real(installation, tmp_path / "kafka", cluster, real_id),
    }
    with nodes[1].running():
        with nodes[2].running():
            run(create(cluster))
            run(produce(cluster, "first"))
        run(produce(cluster, "alone"))
        with nodes[2].running():
            run(in_sync(cluster))
            run(produce(cluster, "again"))
            run(in_sync(cluster))
    found = segments(nodes[1].data, 2)
    assert found == segments(nodes[2].data, 2)
    for partition in found:
        assert [partition.count(name) for name in (b"first-", b"alone-", b"again-")] == [50] * 3


def test_kafka_replaces_ours_node_by_node(installation: Installation, tmp_path: Path) -> None:
    """Three voters of ours; the last of them that Kafka replaces leaves a cluster of Kafka's."""
    cluster = layout(nodes=3, voters=3)
    folders = {id: tmp_path / str(id) for id in cluster.ports}
    brokers = {id: broker_at(installation, folders[id], cluster, id) for id in cluster.ports}
    with ExitStack() as ours, ExitStack() as theirs:
        running = together([own(folders[id], cluster, id) for id in cluster.ports], ours)
        run(create(cluster))
        run(produce(cluster, "ours"))
        for id in (3, 2, 1):
            running[id - 1].close()
            theirs.callback(brokers[id].kill)
            brokers[id].start()
            run(in_sync(cluster))
            run(produce(cluster, f"kafka-{id}"))
    found = [segments(brokers[id].data, 3) for id in cluster.ports]
    assert found[0] == found[1] == found[2]
    for number, partition in enumerate(found[0]):
        assert partition.count(b"ours-") == len(range(number, 100, 3))
        assert partition.count(b"kafka-") == 3 * len(range(number, 100, 3))


def broker_at(installation: Installation, directory: Path, cluster: Layout, node_id: int) -> Broker:
    directory.mkdir()
    return broker_of(installation, directory, cluster, node_id)


def together(nodes: list[Node], stack: ExitStack) -> list[ExitStack]:
    """Start nodes that need each other; return what stops each."""
    with ThreadPoolExecutor(len(nodes)) as pool:
        starting = [pool.submit(started, node) for node in nodes]
    return [stack.enter_context(each.result()) for each in starting]


def started(node: Node) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(node.running())
    return stack


def segments(data: Path, partitions: int) -> list[bytes]:
    folders = [data / f"{TOPIC}-{partition}" for partition in range(partitions)]
    return [
        b"".join(file.read_bytes() for file in sorted(folder.glob("*.log"))) for folder in folders
    ]


def run(work: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS))


async def create(cluster: Layout) -> None:
    """Create a topic of which each node leads a partition, once all are there."""
    count = len(cluster.ports)
    async with Admin(cluster.bootstrap) as admin:
        while len((await admin.describe_cluster()).brokers) < count:
            await asyncio.sleep(0.1)
        await admin.create_topic(TOPIC, partitions=count, replication_factor=count)
        while TOPIC not in (topics := await admin.describe_topics(None)):
            await asyncio.sleep(0.1)  # this broker has not applied it yet
    assert {each.leader for each in topics[TOPIC].partitions} == set(cluster.ports)


async def produce(cluster: Layout, name: str) -> None:
    """Produce 100 records, in turn to each partition; all replicas in sync acknowledge them."""
    async with Producer({**cluster.bootstrap, "acks": "all"}) as producer:
        sent = []
        for number in range(100):
            value = f"{name}-{number}".encode()
            partition = number % len(cluster.ports)
            sent.append(await producer.send(TOPIC, value=value, partition=partition))
        await asyncio.gather(*sent)


async def in_sync(cluster: Layout) -> None:
    """Wait until all replicas are in sync."""
    async with Admin(cluster.bootstrap) as admin:
        while True:
            topic = (await admin.describe_topics([TOPIC]))[TOPIC]
            if all(set(each.isr) == set(cluster.ports) for each in topic.partitions):
                return
            await asyncio.sleep(0.1)
