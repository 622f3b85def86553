"""The partitions of `__consumer_offsets` of a cluster in memory, for their coordinators.

Law: what is appended is committed at once, as all replicas share one log.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...records import BatchBuilder
from ..topics import OFFSETS_TOPIC, Partition, Topics
from .appending import Appender


class OffsetsLog:
    """`CoordinatorLog` of a cluster in memory."""

    def __init__(self, topics: Topics, appender: Appender) -> None:
        self._topics = topics
        self._appender = appender

    @property
    def partition_count(self) -> int:
        """The number of partitions; 0 before the topic is created."""
        topic = self._topics.get(OFFSETS_TOPIC)
        return 0 if topic is None else len(topic.partitions)

    def append(self, index: int, builder: BatchBuilder, now: float) -> int:
        """Append records to a partition; return the offset after them."""
        partition = self._partition(index)
        self._appender.write(partition, builder, now)
        return partition.log.log_end_offset

    def committed(self, index: int) -> int:
        """Return the high watermark of a partition."""
        return self._partition(index).log.high_watermark

    def batches(self, index: int) -> Iterator[bytes]:
        """Read a partition from its start."""
        return (stored.data for stored in self._partition(index).log)

    def _partition(self, index: int) -> Partition:
        found = self._topics.partition(OFFSETS_TOPIC, index)
        assert found is not None
        return found
