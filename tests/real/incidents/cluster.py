"""Runs three real Kafka nodes on loopback, of which some are paused, killed and restarted.

Node 1 is also the controller, and goes on in every incident. Brokers replicate on a listener of
their own, which is not recorded.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.real.broker import Broker, free_ports
from tests.real.java import Installation
from tests.real.wire import HOST

from .connecting import pause, resume

NODES: Final = 3
SECONDS: Final = 120.0
"""After which a condition is not expected any more."""
PROPERTIES: Final = {
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "authorizer.class.name": "",
    # a node that is killed or paused is fenced soon
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


@dataclass(frozen=True)
class Cluster:
    """Nodes with the ids 1, 2, ...; brokers_ports: of the listeners between them."""

    nodes: tuple[Broker, ...]
    broker_ports: tuple[int, ...]

    @property
    def first(self) -> Broker:
        """The node that always runs, with the controller."""
        return self.nodes[0]

    def node(self, node_id: int) -> Broker:
        """Return a node."""
        return self.nodes[node_id - 1]

    def configure(
        self,
        node_id: int,
        *,
        advertised_port: int | None = None,
        controller_port: int | None = None,
    ) -> None:
        """Write the configuration of a node. Ports: of the node and the controller if None."""
        node = self.node(node_id)
        brokers = f"BROKERS://{HOST}:{self.broker_ports[node_id - 1]}"
        listeners = f"CLIENTS://{node.bootstrap},{brokers}"
        controller = f"{HOST}:{self.first.controller_port}"
        is_first = node is self.first
        node.configure(
            {
                **PROPERTIES,
                "process.roles": "broker,controller" if is_first else "broker",
                "node.id": str(node_id),
                "broker.rack": f"rack-{node_id}",
                "listeners": f"{listeners},CONTROLLER://{controller}" if is_first else listeners,
                "advertised.listeners": f"CLIENTS://{HOST}:{advertised_port or node.port},"
                + brokers,
                "controller.quorum.voters": f"1@{HOST}:{controller_port}"
                if controller_port
                else f"1@{controller}",
            }
        )

    def create_topic(self, name: str, replicas: Sequence[Sequence[int]], /, **config: str) -> str:
        """Create a topic. replicas: the ids of the nodes of each partition."""
        self._delete_topics()
        assignment = [list(ids) for ids in replicas]
        topic = NewTopic(name, len(assignment), replica_assignment=assignment, config=config)
        admin = self.admin()
        for created in admin.create_topics([topic]).values():
            created.result()
        self.wait_for_replicas()
        return name

    def _delete_topics(self) -> None:
        """Delete the topics of the incidents before, of which Metadata responses would state."""
        admin = self.admin()
        names = [name for name in admin.list_topics(timeout=30).topics if name[0] != "_"]
        for deleted in (admin.delete_topics(names) if names else {}).values():
            deleted.result()

    def admin(self) -> AdminClient:
        """Return an admin client."""
        return AdminClient({"bootstrap.servers": self.first.bootstrap})

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """Return the ids of the nodes in sync."""
        topics = self.admin().list_topics(timeout=30).topics
        return [] if topic not in topics else list(topics[topic].partitions[partition].isrs)

    def wait_for_replicas(self) -> None:
        """Wait until every replica of every partition is in sync."""

        def in_sync() -> bool:
            topics = self.admin().list_topics(timeout=30).topics.values()
            partitions = [one for topic in topics for one in topic.partitions.values()]
            return all(len(one.isrs) == len(one.replicas) for one in partitions)

        wait_until(in_sync)

    @contextmanager
    def without(self, node_id: int) -> Iterator[None]:
        """Let the block kill or stop a node, and start it again."""
        node = self.node(node_id)
        try:
            yield
        finally:
            if node.process is None:
                node.start()
            self.wait_for_replicas()


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not within {SECONDS} s"
        time.sleep(0.1)


@contextmanager
def stuttering(node: Broker, paused: float = 0.06, running: float = 0.004) -> Iterator[None]:
    """Pause a node again and again: it is slow, but works. paused, running: in seconds."""
    ended = threading.Event()

    def stutter() -> None:
        while not ended.is_set():
            pause(node)
            time.sleep(paused)
            resume(node)
            time.sleep(running)

    thread = threading.Thread(target=stutter)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


CLOCK: Final = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) now->tv_sec += OFFSET;
    return result;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}
"""
"""What stands in front of the clock of the C library."""


@contextmanager
def clock_offset_of_processes(seconds: int) -> Iterator[None]:
    """Start processes whose clock differs. Needs a compiler of C."""
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/clock.so"
        command = "gcc", "-shared", "-fPIC", f"-DOFFSET={seconds}", "-o", library, "-xc", "-"
        subprocess.run(command, input=CLOCK, text=True, check=True)
        os.environ["LD_PRELOAD"] = library
        try:
            yield
        finally:
            del os.environ["LD_PRELOAD"]


@contextmanager
def running_cluster(installation: Installation, folder: Path) -> Iterator[Cluster]:
    """Run a new cluster in an empty folder; groups have their coordinator on node 3."""
    ports = free_ports(2 * NODES + 1)
    nodes = []
    for node_id in range(1, NODES + 1):
        directory = folder / f"node-{node_id}"
        directory.mkdir()
        nodes.append(Broker(installation, directory, ports[node_id], 0, ports[0]))
    cluster = Cluster(tuple(nodes), tuple(ports[NODES + 1 :]))
    try:
        for node_id, node in enumerate(nodes, 1):
            cluster.configure(node_id)
            node.format_storage()
            node.start()
        wait_until(lambda: len(cluster.admin().list_topics(timeout=30).brokers) == NODES)
        cluster.create_topic("__consumer_offsets", [[NODES]], **{"cleanup.policy": "compact"})
        yield cluster
    finally:
        for node in reversed(nodes):
            if node is cluster.first:
                node.stop()
            else:
                node.kill()
