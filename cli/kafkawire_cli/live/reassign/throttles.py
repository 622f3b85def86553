"""Throttles of reassignments (KIP-73), set and removed as kafka-reassign-partitions does.

The replicas that exist are throttled where they are read, those that are added where they are
written; without the lists of the topics, the rates of the brokers throttle nothing.

    topic    {leader,follower}.replication.throttled.replicas    PARTITION:BROKER,...
    broker   {leader,follower}.replication.throttled.rate        bytes per second
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..changes import Change
from .files import Assignment, Partition

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, ConfigResource, PartitionReassignment

    Moving = Mapping[Partition, PartitionReassignment]
    Configs = dict[ConfigResource, dict[str, str | None]]

LEADER: Final = "leader.replication.throttled"
FOLLOWER: Final = "follower.replication.throttled"
KEYS: Final = {
    "TOPIC": (f"{LEADER}.replicas", f"{FOLLOWER}.replicas"),
    "BROKER": (f"{LEADER}.rate", f"{FOLLOWER}.rate"),
}
"""Type of a resource -> the keys of its throttles."""
SET: Final = frozenset({"DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG"})
"""The sources of values that are set for the resource itself."""
STAYS: Final = "The throttle stays until --verify finds no reassignment in progress."


class Move(NamedTuple):
    """The brokers that have a partition, and those that get it."""

    sources: Sequence[int]
    destinations: Sequence[int]


def moves_of(current: Assignment, moving: Moving, target: Assignment) -> dict[Partition, Move]:
    """Return what moves: also what is being reassigned already, as rates are of brokers."""
    moves = {
        partition: Move([each for each in row.replicas if each not in row.adding], row.adding)
        for partition, row in moving.items()
    }
    for partition, replicas in target.items():
        before = moves.get(partition)
        sources = current[partition] if before is None else before.sources
        moves[partition] = Move(sources, [each for each in replicas if each not in sources])
    return moves


async def throttled(admin: Admin, moves: Mapping[Partition, Move], rate: int) -> Configs:
    """Return the configurations with the throttles of moves. rate: bytes per second.

    Brokers that are not alive keep theirs: only they themselves change it.
    """
    from kafkawire.net.admin import ConfigResource

    alive = {each.broker_id for each in (await admin.describe_cluster()).brokers}
    configs: Configs = {}
    by_topic: dict[str, list[tuple[int, Move]]] = {}
    for (topic, number), move in sorted(moves.items()):
        by_topic.setdefault(topic, []).append((number, move))
    for topic, of_topic in by_topic.items():
        sides = [
            ",".join(
                f"{number}:{broker}" for number, move in of_topic for broker in sorted(move[side])
            )
            for side in range(len(Move._fields))
        ]
        configs[ConfigResource("TOPIC", topic)] = dict(zip(KEYS["TOPIC"], sides, strict=True))
    involved = {broker for move in moves.values() for side in move for broker in side}
    for broker in sorted(involved & alive):
        configs[ConfigResource("BROKER", str(broker))] = dict.fromkeys(KEYS["BROKER"], str(rate))
    return configs


async def unthrottled(admin: Admin, partitions: Iterable[Partition]) -> Configs:
    """Return the configurations without the throttles of their topics and of all brokers."""
    from kafkawire.net.admin import ConfigResource

    brokers = (await admin.describe_cluster()).brokers
    resources = [
        ConfigResource("TOPIC", each) for each in sorted({topic for topic, _ in partitions})
    ]
    resources += [ConfigResource("BROKER", str(each.broker_id)) for each in brokers]
    keys = [key for of_type in KEYS.values() for key in of_type]
    described = await admin.describe_configs(resources, keys)
    configs: Configs = {}
    for resource, entries in described.items():
        names = [name for name in keys if name in entries and entries[name].source in SET]
        if names:
            configs[resource] = dict.fromkeys(names)
    return configs


async def apply(
    admin: Admin, configs: Configs, report: Callable[[Change], None], *, dry_run: bool
) -> None:
    """Set or remove throttles, and report each change."""
    for resource, changes in configs.items():
        await admin.alter_configs(resource, changes, validate_only=dry_run)
        report(Change("alter", resource.resource_type.lower(), resource.name, configs=changes))
