"""What goes wrong in a simulation: a cluster and a list of faults, drawn from the seed."""

from __future__ import annotations

import random
from dataclasses import replace
from enum import Enum
from typing import Any, Final, NamedTuple

from kafkawire.broker import Endpoint
from kafkawire.node import COMBINED, NodeConfig, ProcessRole
from kafkawire.node.composition import InMemory
from kafkawire.node.local_cluster import CONTROLLER_ID

from .network import BROKER_PORT, CLUSTER, EPOCH_MS, config_of, voters

BROKER: Final = frozenset({ProcessRole.BROKER})
CONTROLLER: Final = frozenset({ProcessRole.CONTROLLER})
FAULTY_FROM: Final = 3.0
"""When things begin to go wrong."""
FAULTY_FOR: Final = (5.0, 5.0, 5.0, 12.0)
"""For how long, in seconds: one of these; with a fault each 0.5 to 1.3 seconds."""
KINDS: Final = {
    "kill": 5,
    "power": 4,
    "shutdown": 3,
    "isolate": 4,
    "cut": 4,
    "slow": 3,
    "pause": 3,
    "jump": 2,
    "full": 2,
    "broken": 2,
    "reassign": 4,
    "elect": 3,
    "configure": 3,
    "create": 2,
    "delete": 2,
    "grow": 1,
    "delete records": 2,
}
"""Kind -> its weight."""
STORM: Final = {"kill": 4, "power": 4, "isolate": 6, "cut": 4, "pause": 6, "slow": 4, "elect": 8}
"""The same for every fourth seed: leaders that change while messages are late."""
DISKS: Final = {
    "directory": 8,
    "move": 6,
    "kill": 2,
    "shutdown": 2,
    "isolate": 2,
    "create": 5,
    "delete": 5,
    "reassign": 4,
    "elect": 2,
}
"""And for every sixth: log directories that fail, while topics come and go."""


GROUPS_EVERY: Final = 41
"""One of so many seeds has groups, one a pipeline: with all kinds of faults, as 41 is prime."""
OF_GROUPS: Final = {
    "min.insync.replicas": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.min.session.timeout.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "group.share.delivery.count.limit": "4",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.record.lock.duration.ms": "1500",
    "group.share.session.timeout.ms": "2000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "2000",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.state.log.num.partitions": "2",
}
"""The settings of brokers with groups: short timeouts, so that little time shows much."""


class Fault(NamedTuple):
    """Something that happens at a time. node, other: what it happens to; seconds: how long."""

    at: float
    kind: str
    node: int
    other: int
    seconds: float


class Composition(Enum):
    """How the nodes of a cluster are composed.

    RAFT: as processes on machines of their own. IN_MEMORY: as those of `kafka_broker` and `serve`,
    with one controller, whose decisions are committed at once.
    """

    RAFT = "raft"
    IN_MEMORY = "in memory"


class Serving(Enum):
    """What nodes serve besides producers and consumers, then over connections of clients."""

    NOTHING = "nothing"
    GROUPS = "groups"
    PIPELINE = "pipeline"


SERVING: Final = {1: Serving.GROUPS, 2: Serving.PIPELINE}
"""Seed modulo `GROUPS_EVERY` -> what its nodes serve."""


class Scenario(NamedTuple):
    """All of a run. controllers: processes of their own; 0: the brokers are controllers, too.

    faulty_until: when the last faults happen. two: brokers have two log directories.
    """

    seed: int
    brokers: int
    controllers: int
    duplicates: float
    snapshots: bool
    faulty_until: float
    two: bool
    faults: tuple[Fault, ...]
    composition: Composition = Composition.RAFT
    serving: Serving = Serving.NOTHING

    def configs(self) -> list[NodeConfig]:
        """Return the configurations of the nodes: those of brokers first."""
        configs = self._configs()
        if self.serving is Serving.NOTHING:
            return configs
        return [replace(each, static={**each.static, **OF_GROUPS}) for each in configs]

    def _configs(self) -> list[NodeConfig]:
        more: dict[str, Any] = {"snapshot_bytes": 1_500} if self.snapshots else {}
        if self.composition is Composition.IN_MEMORY:
            return [replace(each, **more) for each in self._in_memory()]
        brokers = range(1, self.brokers + 1)
        if not self.controllers:
            return [config_of(id, voters(brokers), COMBINED, **more) for id in brokers]
        others = range(self.brokers + 1, self.brokers + self.controllers + 1)
        quorum = voters(others)
        made = [config_of(id, quorum, CONTROLLER, **more) for id in others]
        return [config_of(id, quorum, BROKER, **more) for id in brokers] + made

    def _in_memory(self) -> list[NodeConfig]:
        """Return what a cluster in one process has, with a shorter lag time."""
        brokers = [Endpoint(id, f"node{id}", BROKER_PORT) for id in range(1, self.brokers + 1)]
        composed = InMemory(
            brokers, EPOCH_MS, {"replica.lag.time.max.ms": "3000"}, cluster_id=CLUSTER
        )
        controller, *others = (each.config for each in composed.nodes())
        return [*others, controller]


def draw(seed: int, composition: Composition = Composition.RAFT) -> Scenario:
    """Draw a scenario."""
    rng = random.Random(f"scenario {seed}")
    controllers = rng.choice((0, 0, 0, 1, 3))
    if composition is Composition.IN_MEMORY:
        controllers = 1
    brokers = rng.choice((3, 3, 4)) if controllers else 3
    kinds = DISKS if seed % 6 == 5 else STORM if seed % 4 == 3 else KINDS
    nodes = list(range(1, brokers + controllers + 1))
    if composition is Composition.IN_MEMORY:
        nodes[-1] = CONTROLLER_ID
    seconds = rng.choice(FAULTY_FOR)
    faults = [
        Fault(
            round(FAULTY_FROM + rng.uniform(0.0, seconds), 3),
            rng.choices(list(kinds), list(kinds.values()))[0],
            rng.choice(nodes),
            rng.choice(nodes),
            rng.choice((0.3, 1.0, 3.0, 5.0)),
        )
        for _ in range(rng.randint(int(seconds * 0.8), int(seconds * 1.8)))
    ]
    duplicates = rng.choice((0.0, 0.02, 0.1))
    snapshots = rng.random() < 0.4
    until = FAULTY_FROM + seconds
    two = kinds is DISKS
    happening = tuple(sorted(faults))
    return Scenario(
        seed,
        brokers,
        controllers,
        duplicates,
        snapshots,
        until,
        two,
        happening,
        composition,
        serving=SERVING.get(seed % GROUPS_EVERY, Serving.NOTHING),
    )
