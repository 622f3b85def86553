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
    led, others = _update_isr(controller, node_id, False, now)
    if controller.zookeeper is not None:
        controller.zookeeper.broker_stopped(node_id, led, led + others, now)


def broker_started(controller: Controller, node_id: int, now: float) -> None:
    """Add a broker to the ISR of its partitions; it becomes leader of those without one."""
    controller.topics.alive.add(node_id)
    if controller.zookeeper is not None:
        controller.zookeeper.broker_started(node_id, now)
    led, others = _update_isr(controller, node_id, True, now)
    if controller.zookeeper is not None:
        controller.zookeeper.elected(led, now)
        controller.zookeeper.isr_expanded(others, now)


def _update_isr(
    controller: Controller, node_id: int, alive: bool, now: float
) -> tuple[list[Partition], list[Partition]]:
    """Update the ISR of all partitions; return those with another leader, and with another ISR."""
    led, others = [], []
    for partition in controller.topics.partitions():
        isr = partition.isr
        if partition.update_isr(node_id, alive):
            leader_changed(controller, partition, now)
            led.append(partition)
        elif partition.isr != isr:
            if controller.zookeeper is not None and not alive:
                _next_epoch(controller, partition, now)
            others.append(partition)
    return led, others


def _next_epoch(controller: Controller, partition: Partition, now: float) -> None:
    """Raise the leader epoch, as a controller in ZooKeeper does when it shrinks an ISR."""
    partition.move_to(partition.leader_id)
    leader_changed(controller, partition, now)


def shut_down(controller: Controller, node_id: int, now: float) -> list[Partition]:
    """Move leaders away from a broker that is to stop, and take it out of all ISRs.

    Returns the partitions that it still leads: no other replica is in sync. Those without another
    replica do not count, as in Kafka.
    """
    led, followed, remaining = [], [], []
    for partition in controller.topics.partitions():
        if node_id not in partition.replicas or len(partition.replicas) == 1:
            continue
        others = [node for node in partition.isr if node != node_id]
        if partition.leader_id == node_id and not others:
            remaining.append(partition)
        elif partition.leader_id == node_id:
            partition.isr = others
            partition.move_to(others[0])
            leader_changed(controller, partition, now)
            led.append(partition)
        elif node_id in partition.isr:
            followed.append((partition, partition.leader_epoch))
            partition.isr = others
    assert controller.zookeeper is not None
    controller.zookeeper.led_elsewhere(node_id, led, now)
    for partition, _ in followed:
        _next_epoch(controller, partition, now)
    controller.zookeeper.replicas_stopped(node_id, followed, now)
    return remaining


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
    if controller.zookeeper is not None:
        controller.zookeeper.elected([partition], now)


def leader_changed(controller: Controller, partition: Partition, now: float) -> None:
    """Handle a partition's change of leader."""
    controller.persist_leader(partition, now)
    if partition.topic == OFFSETS_TOPIC:
        controller.groups.leader_changed(partition.index, partition.leader_id != NO_LEADER, now)
    controller.appender.complete_fetches(partition, now)
