"""Changes in any order, with requests that fail: in the end each broker knows the cluster.

Law: a seed is a test; what it does follows from it alone.
"""

from __future__ import annotations

import random
from typing import Final

import pytest

from kafkawire.broker import Fault, LeaderMoved
from kafkawire.broker.events import ShutdownRequested

from .links import Links

STEPS: Final = 25
BROKERS: Final = 3
APIS: Final = ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")
ACTIONS: Final = ("disconnect", "drop", "truncate", "delay")


class Changes:
    """A cluster, and the random changes that a seed makes in it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.links = Links(
            self.rng.choice(("2.2", "2.4", "2.7")),
            BROKERS,
            {"controller.socket.timeout.ms": "1000", "controlled.shutdown.retry.backoff.ms": "500"},
        )
        self.topics = self.links.cluster.topics
        self.created = 0

    def step(self) -> None:
        """Make one change."""
        changes = (self.create, self.create, self.delete, self.extend, self.stop, self.start)
        change = self.rng.choice(
            (*changes, self.start, self.shut_down, self.move, self.fail, self.wait)
        )
        change()

    def create(self) -> None:
        self.created += 1
        nodes = range(1, BROKERS + 1)
        replicas = [
            self.rng.sample(nodes, self.rng.randint(1, BROKERS))
            for _ in range(self.rng.randint(1, 3))
        ]
        self.links.create(f"t{self.created}", replicas)

    def delete(self) -> None:
        topics = list(self.topics)
        if topics:
            controller = self.links.cluster.controller
            controller.delete_topics([self.rng.choice(topics)], self.links.now)
            self.links.call()

    def extend(self) -> None:
        topics = list(self.topics)
        if topics:
            controller = self.links.cluster.controller
            controller.create_partitions(self.rng.choice(topics), [[1, 2]], self.links.now)
            self.links.call()

    def stop(self) -> None:
        alive = sorted(self.topics.alive)
        if alive:
            self.links.stop(self.rng.choice(alive))

    def start(self) -> None:
        down = sorted(set(range(1, BROKERS + 1)) - self.topics.alive)
        if down:
            self.links.start(self.rng.choice(down))

    def shut_down(self) -> None:
        alive = sorted(self.topics.alive)
        if alive:
            node_id = self.rng.choice(alive)
            self.links.handle(ShutdownRequested(node_id))
            self.links.advance(self.rng.choice((0.0, 0.3, 10.0)))
            self.links.stop(node_id)

    def move(self) -> None:
        live = [
            (each, sorted(set(each.isr) & self.topics.alive)) for each in self.topics.partitions()
        ]
        live = [(each, isr) for each, isr in live if isr]
        if live:
            partition, isr = self.rng.choice(live)
            leader = self.rng.choice(isr)
            self.links.handle(LeaderMoved(partition.topic, partition.index, leader))

    def fail(self) -> None:
        self.links.cluster.faults.append(
            Fault(self.rng.choice(APIS), nth=1, action=self.rng.choice(ACTIONS), keep=3)
        )

    def wait(self) -> None:
        self.links.advance(self.rng.choice((0.05, 0.2, 2.0)))

    def settle(self) -> None:
        """End what fails, start all brokers, and let all responses come."""
        self.links.cluster.faults.clear()
        for node_id in sorted(set(range(1, BROKERS + 1)) - self.topics.alive):
            self.links.start(node_id)
        self.links.advance(10.0)


@pytest.mark.parametrize("seed", range(40))
def test_every_broker_knows_the_cluster_in_the_end(seed: int) -> None:
    changes = Changes(seed)
    for _ in range(STEPS):
        changes.step()
    changes.settle()
    zookeeper = changes.links.cluster.zookeeper
    assert zookeeper is not None
    assert zookeeper.controller.total_queue_size == 0
    for node_id, control in zookeeper.control.items():
        expected = {
            each.key: each.leader_epoch
            for each in changes.topics.partitions()
            if node_id in each.replicas
        }
        assert control.leader_epochs == expected
    assert len(zookeeper.channels) == BROKERS, "those of the controller are open, no others"
    assert zookeeper.registry.partition_count == changes.topics.partition_count
