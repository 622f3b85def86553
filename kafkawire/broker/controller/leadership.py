"""Leader changes: brokers that stop and start, leaders that move.

Law: every change of leader goes through `leader_changed`, which persists it, moves the group
coordinator and completes delayed fetches.
"""

from __future__ import annotations

from ..events import LeaderMoved
from ..topics import NO_LEADER, OFFSETS_TOPIC, Partition
from .controller import Controller


def broker_stopped(controller: Controller, node_id: int, now: float) -> None:
    """Elect new leaders for the partitions that a stopped broker led."""
    controller.topics.alive.discard(node_id)
    _update_isr(controller, node_id, False, now)


def broker_started(controller: Controller, node_id: int, now: float) -> None:
    """Add a broker to the ISR of its partitions; it becomes leader of those without one."""
    controller.topics.alive.add(node_id)
    _update_isr(controller, node_id, True, now)


def _update_isr(controller: Controller, node_id: int, alive: bool, now: float) -> None:
    for partition in controller.topics.partitions():
        if partition.update_isr(node_id, alive):
            leader_changed(controller, partition, now)


def leader_moved(controller: Controller, event: LeaderMoved, now: float) -> None:
    """Move a partition's leader. ValueError if the partition or broker is unavailable."""
    partition = controller.topics.partition(event.topic, event.partition)
    if partition is None:
        raise ValueError(f"no such partition: {event.topic}-{event.partition}")
    if event.leader_id not in controller.topics.alive and event.leader_id != NO_LEADER:
        raise ValueError(f"broker {event.leader_id} is not up")
    if event.leader_id not in (*partition.replicas, NO_LEADER):
        partition.replicas = [event.leader_id, *partition.replicas[1:]]
        partition.isr = [node for node in partition.replicas if node in controller.topics.alive]
    if event.truncate_to is not None:
        controller.appender.trim(partition, partition.log.log_start_offset, event.truncate_to)
    partition.move_to(event.leader_id)
    leader_changed(controller, partition, now)


def leader_changed(controller: Controller, partition: Partition, now: float) -> None:
    """Handle a partition's change of leader."""
    controller.persist_leader(partition, now)
    if partition.topic == OFFSETS_TOPIC:
        controller.groups.leader_changed(partition.index, partition.leader_id != NO_LEADER, now)
    controller.appender.complete_fetches(partition, now)
