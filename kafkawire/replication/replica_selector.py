"""Chooses the replica that a consumer reads from, as Kafka's RackAwareReplicaSelector (KIP-392).

Law: only an in-sync follower that has the offset is chosen, and the leader where it is as near.
"""

from __future__ import annotations

from .broker import Broker
from .fetch_params import FetchParams
from .partition import Partition
from .replica import Replica


def preferred_read_replica(
    partition: Partition, params: FetchParams, offset: int
) -> Replica | None:
    """Choose an in-sync follower in the rack of a consumer; None for the leader."""
    broker = partition.broker
    if not broker.config.rack_aware or not params.rack or params.is_from_follower:
        return None
    if not partition.is_leader or _rack_of(broker, broker.broker_id) == params.rack:
        return None
    near = [
        each
        for each in partition.followers.values()
        if each.broker_id in partition.isr.committed
        and each.log_start_offset <= offset <= each.log_end_offset
        and _rack_of(broker, each.broker_id) == params.rack
    ]
    return max(near, key=lambda each: (each.log_end_offset, each.last_caught_up), default=None)


def _rack_of(broker: Broker, broker_id: int) -> str:
    known = broker.image.brokers.get(broker_id)
    return known.rack or "" if known is not None and not known.fenced else ""
