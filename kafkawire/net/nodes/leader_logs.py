"""Reads the log of the node that leads a partition."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from ...metadata import MetadataImage, TopicIdPartition
from ...node import Node
from ...replication import LogOffline
from ..partitions import StoredBatches

EVERYTHING: Final = 1 << 40
"""More bytes than a log has."""


def leader_log(
    nodes: Iterable[Node], image: MetadataImage, topic: str, partition: int
) -> StoredBatches | None:
    """Return what the leader of a partition has; None if none of these nodes leads it."""
    topic_id = image.topic_ids.get(topic)
    if topic_id is None:
        return None
    key = TopicIdPartition(topic_id, partition)
    replicas = [each.partitions[key] for each in nodes if key in each.partitions]
    leaders = [each for each in replicas if each.is_leader]
    if not leaders:
        return None
    log = max(leaders, key=lambda each: each.leader_epoch).log
    start, end = log.log_start_offset, log.log_end_offset
    with suppress(LogOffline):
        data = log.read(start, EVERYTHING, end, at_least_one=True) if start < end else b""
        return StoredBatches(start, data)
    return None
