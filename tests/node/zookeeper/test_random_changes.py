"""Changes in any order, with requests that fail: in the end each broker knows the cluster.

A seed is a test; what it does follows from it alone.
"""

from __future__ import annotations

import random
from typing import Final

import pytest

from kafkawire.broker import Fault
from kafkawire.node.local_cluster import Killed, NodeStarted, ShutDown

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
        self.registry = self.links.cluster.registry
        self.created = 0

    @property
    def running(self) -> list[int]:
        return [each for each in self.links.cluster.running if each in self.links.nodes]

    @property
    def down(self) -> list[int]:
        return sorted({*self.links.nodes} - {*self.running})

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.registry.partitions})

    def step(self) -> None:
        """Make one change."""
        changes = (self.create, self.create, self.delete, self.extend, self.stop, self.start)
        change = self.rng.choice(
            (*changes, self.start, self.shut_down, self.move, self.fail, self.wait)
        )
        change()

    def create(self) -> None:
        self.created += 1
        replicas = [
            self.rng.sample(self.links.nodes, self.rng.randint(1, BROKERS))
            for _ in range(self.rng.randint(1, 3))
        ]
        if self.running:
            self.links.create(f"t{self.created}", replicas)

    def delete(self) -> None:
        if self.topics and self.running:
            self.links.delete(self.rng.choice(self.topics))

    def extend(self) -> None:
        if self.topics and self.running:
            self.links.extend(self.rng.choice(self.topics), [[1, 2]])

    def stop(self) -> None:
        if self.running:
            self.links.handle(Killed(self.rng.choice(self.running)))

    def start(self) -> None:
        if self.down:
            self.links.handle(NodeStarted(self.rng.choice(self.down)))

    def shut_down(self) -> None:
        if self.running:
            node_id = self.rng.choice(self.running)
            self.links.handle(ShutDown(node_id))
            self.links.advance(self.rng.choice((0.0, 0.3, 10.0)))
            if node_id in self.running:
                self.links.handle(Killed(node_id))

    def move(self) -> None:
        """Reassign a partition to brokers in another order, or to other ones."""
        if self.topics and self.running:
            name = self.rng.choice(self.topics)
            replicas = self.rng.sample(self.links.nodes, self.rng.randint(1, BROKERS))
            self.links.reassign(name, 0, replicas)

    def fail(self) -> None:
        self.links.cluster.faults.append(
            Fault(self.rng.choice(APIS), nth=1, action=self.rng.choice(ACTIONS))
        )

    def wait(self) -> None:
        self.links.advance(self.rng.choice((0.05, 0.2, 2.0)))

    def settle(self) -> None:
        """End what fails, start all brokers, and let all responses come."""
        self.links.cluster.faults.clear()
        for node_id in self.down:
            self.links.handle(NodeStarted(node_id))
        self.links.advance(30.0)


@pytest.mark.parametrize("seed", range(40))
def test_every_broker_knows_the_cluster_in_the_end(seed: int) -> None:
    changes = Changes(seed)
    for _ in range(STEPS):
        changes.step()
    changes.settle()
    cluster, partitions = changes.links.cluster, changes.registry.partitions.values()
    assert cluster.registry.alive == {*changes.links.nodes}
    assert cluster.controller.total_queue_size == 0
    for node_id in changes.links.nodes:
        control = changes.links.control(node_id)
        assert control.leader_epochs == {
            each.key: each.leader_epoch for each in partitions if node_id in each.replicas
        }
    assert len(cluster.channels) == BROKERS, "those of the controller are open, no others"
    image = cluster.image()
    assert {
        (topic.name, index): (each.replicas, each.isr, each.leader, each.leader_epoch)
        for topic, index, each in image.partitions()
    } == {
        each.key: (tuple(each.replicas), tuple(each.isr), each.leader_id, each.leader_epoch)
        for each in partitions
    }
