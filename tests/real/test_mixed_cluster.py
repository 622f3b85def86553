"""A cluster of a real Kafka broker and one of ours, with the controller of either.

Law: each leads a partition that the other follows; what both have of it is equal byte for byte,
also after the one that is not the controller was away while the other went on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
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
CONTROLLER: Final = 1
OTHER: Final = 2
SECONDS: Final = 90.0
PLAIN: Final = {
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "authorizer.class.name": "",
}


class Node(NamedTuple):
    """A node of the cluster, which runs in `running()`; its log directory."""

    port: int
    data: Path
    running: Callable[[], AbstractContextManager[object]]


class Cluster(NamedTuple):
    """The node with the controller, and the other one."""

    controller: Node
    other: Node


def own(directory: Path, node_id: int, port: int, controller_port: int) -> Node:
    """A node of ours."""
    data = directory / "ours"
    return Node(
        port,
        data,
        lambda: serving(
            data,
            port,
            f"{CONTROLLER}@{HOST}:{controller_port}",
            options=["--node-id", str(node_id), "--cluster-id", CLUSTER_ID],
        ),
    )


def real(
    installation: Installation, directory: Path, node_id: int, port: int, controller_port: int
) -> Node:
    """A node that is a real Kafka."""
    broker = Broker(installation, directory, port, 0, controller_port)
    listeners = f"PLAINTEXT://{HOST}:{port}"
    roles = "broker"
    if node_id == CONTROLLER:
        roles = "broker,controller"
        listeners += f",CONTROLLER://{HOST}:{controller_port}"
    broker.configure(
        {
            **PLAIN,
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.quorum.voters": f"{CONTROLLER}@{HOST}:{controller_port}",
        }
    )
    broker.format_storage()

    @contextmanager
    def running() -> Iterator[None]:
        try:
            broker.start()
            yield
        finally:
            broker.stop()

    return Node(port, broker.data, running)


@pytest.fixture(params=["kafka", "ours"])
def cluster(request: pytest.FixtureRequest, installation: Installation, tmp_path: Path) -> Cluster:
    """One whose controller is Kafka's, and one whose controller is ours."""
    controller_port, first, second = free_ports(3)
    if request.param == "ours":
        return Cluster(
            own(tmp_path, CONTROLLER, first, controller_port),
            real(installation, tmp_path, OTHER, second, controller_port),
        )
    return Cluster(
        real(installation, tmp_path, CONTROLLER, first, controller_port),
        own(tmp_path, OTHER, second, controller_port),
    )


def test_each_replicates_the_others_partitions(cluster: Cluster) -> None:
    with cluster.controller.running():
        with cluster.other.running():
            run(create(cluster))
            run(produce(cluster, "first"))
        run(produce(cluster, "alone"))
        with cluster.other.running():
            run(in_sync(cluster, {CONTROLLER, OTHER}))
            run(produce(cluster, "again"))
            run(in_sync(cluster, {CONTROLLER, OTHER}))
    ours, theirs = segments(cluster.controller), segments(cluster.other)
    assert ours == theirs
    for partition in (0, 1):
        assert ours[partition].count(b"first-") == ours[partition].count(b"alone-") == 50


def segments(node: Node) -> list[bytes]:
    folders = [node.data / f"{TOPIC}-{partition}" for partition in (0, 1)]
    return [
        b"".join(file.read_bytes() for file in sorted(folder.glob("*.log"))) for folder in folders
    ]


def bootstrap(cluster: Cluster) -> dict[str, str]:
    return {"bootstrap.servers": f"{HOST}:{cluster.controller.port}"}


def run(work: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS))


async def create(cluster: Cluster) -> None:
    """Create a topic of which each node leads a partition, once both are there."""
    async with Admin(bootstrap(cluster)) as admin:
        while len((await admin.describe_cluster()).brokers) < 2:
            await asyncio.sleep(0.1)
        await admin.create_topic(TOPIC, partitions=2, replication_factor=2)
        topic = (await admin.describe_topics([TOPIC]))[TOPIC]
    assert {each.leader for each in topic.partitions} == {CONTROLLER, OTHER}


async def produce(cluster: Cluster, name: str) -> None:
    """Produce 50 records to each partition; every one is acknowledged by all in sync."""
    async with Producer({**bootstrap(cluster), "acks": "all"}) as producer:
        sent = [
            await producer.send(TOPIC, value=f"{name}-{number}".encode(), partition=number % 2)
            for number in range(100)
        ]
        await asyncio.gather(*sent)


async def in_sync(cluster: Cluster, nodes: set[int]) -> None:
    """Wait until the replicas in sync of both partitions are on these nodes."""
    async with Admin(bootstrap(cluster)) as admin:
        while True:
            topic = (await admin.describe_topics([TOPIC]))[TOPIC]
            if all(set(each.isr) == nodes for each in topic.partitions):
                return
            await asyncio.sleep(0.1)
