"""Reads where the replicas of partitions are, and where they shall be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..unknown_names import check_partition, described_topics, unknown_broker
from .files import Assignment, Partition
from .options import Wanted
from .placement import proposed

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin


async def current_replicas(admin: Admin, wanted: Wanted) -> dict[Partition, tuple[int, ...]]:
    """Read where the replicas of the topics, or of the partitions in the file, are."""
    names = wanted.topics or list(dict.fromkeys(topic for topic, _ in wanted.assignment or ()))
    described = await described_topics(admin, names)
    for topic, number in wanted.assignment or ():
        check_partition(described[topic], number)
    replicas = {
        (topic.name, row.partition): row.replicas
        for topic in described.values()
        for row in topic.partitions
    }
    if wanted.assignment is not None:
        return {partition: replicas[partition] for partition in wanted.assignment}
    return dict(sorted(replicas.items()))


async def target_replicas(
    admin: Admin, wanted: Wanted, current: Assignment
) -> dict[Partition, list[int]]:
    """Return where the replicas shall be; the BrokerError names a broker that does not exist."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    brokers = {row.broker_id: row.rack for row in (await admin.describe_cluster()).brokers}
    placed = wanted.assignment or {}
    named = [*(wanted.brokers or ()), *(broker for ids in placed.values() for broker in ids)]
    detail = unknown_broker(named, brokers)
    if detail is not None:
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, detail)
    if wanted.assignment is not None:
        return wanted.assignment
    try:
        return proposed(current, wanted.brokers or (), brokers)
    except ValueError as error:
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from None
