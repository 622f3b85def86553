"""The assignment that a member's coordinator wants, whose topics have ids.

A partition is applied once the metadata has the name of its topic; until then it waits, and
the others do not (KIP-848, as Java's consumer).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from ....messages.consumer_group_heartbeat_response import Assignment
from ...cluster import ClusterView
from ..partitions import TopicPartition
from .heartbeats import TopicIdPartition


class Resolved(NamedTuple):
    """The part of a target whose topics have names, with their ids.

    complete: whether that is all of it.
    """

    partitions: frozenset[TopicPartition]
    topic_ids: Mapping[str, bytes]
    complete: bool


class Target(NamedTuple):
    """The target assignment of a member."""

    partitions: frozenset[TopicIdPartition]

    @classmethod
    def of(cls, assignment: Assignment) -> Self:
        """Read the assignment of a heartbeat response."""
        return cls(
            frozenset(
                (topic.topic_id, partition)
                for topic in assignment.topic_partitions
                for partition in topic.partitions
            )
        )

    def resolve(self, view: ClusterView) -> Resolved:
        """Look up the names of the topics."""
        names = {topic_id: view.topic_name(topic_id) for topic_id, _ in self.partitions}
        topic_ids = {name: topic_id for topic_id, name in names.items() if name is not None}
        partitions = frozenset(
            TopicPartition(name, partition)
            for topic_id, partition in self.partitions
            if (name := names[topic_id]) is not None
        )
        return Resolved(partitions, topic_ids, len(topic_ids) == len(names))
