"""Leader changes: brokers that stop and start, leaders that move.

Law: every change of leader goes through `leader_changed`, which persists it, moves the group
coordinator and completes delayed fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .broker import Broker
from .events import BrokerStarted, BrokerStopped, LeaderMoved
from .topics import NO_LEADER, Partition

if TYPE_CHECKING:
    from .cluster import Cluster


def broker_stopped(cluster: Cluster, event: BrokerStopped, now: float) -> None:
    """Stop a broker: close its connections and sessions, elect new leaders."""
    cluster.topics.alive.discard(event.node_id)
    for connection in cluster.connections.values():
        if connection.node_id == event.node_id and not connection.closing:
            cluster.close(connection, "the broker stopped")
    cluster.brokers[event.node_id] = Broker(cluster, cluster.brokers[event.node_id].endpoint)
    _update_isr(cluster, event.node_id, False, now)


def broker_started(cluster: Cluster, event: BrokerStarted, now: float) -> None:
    """Start a broker; it becomes leader of partitions without one."""
    cluster.topics.alive.add(event.node_id)
    _update_isr(cluster, event.node_id, True, now)


def _update_isr(cluster: Cluster, node_id: int, alive: bool, now: float) -> None:
    for partition in cluster.topics.partitions():
        if partition.update_isr(node_id, alive):
            leader_changed(cluster, partition, now)


def leader_moved(cluster: Cluster, event: LeaderMoved, now: float) -> None:
    """Move a partition's leader. ValueError if the partition or broker is unavailable."""
    partition = cluster.topics.partition(event.topic, event.partition)
    if partition is None:
        raise ValueError(f"no such partition: {event.topic}-{event.partition}")
    if event.leader_id not in cluster.topics.alive and event.leader_id != NO_LEADER:
        raise ValueError(f"broker {event.leader_id} is not up")
    if event.leader_id not in (*partition.replicas, NO_LEADER):
        partition.replicas = [event.leader_id, *partition.replicas[1:]]
        partition.isr = [node for node in partition.replicas if node in cluster.topics.alive]
    if event.truncate_to is not None:
        cluster.appender.trim(partition, partition.log.log_start_offset, event.truncate_to)
    partition.move_to(event.leader_id)
    leader_changed(cluster, partition, now)


def leader_changed(cluster: Cluster, partition: Partition, now: float) -> None:
    """Handle a partition's change of leader."""
    cluster.creation.persist_leader(partition, now)
    cluster.groups.leader_changed(partition, now)
    cluster.appended(partition, now)
