"""The partitions of a coordinator topic that a broker leads, for their coordinators.

What is appended is committed when the high watermark has passed it. An append that fails makes
the coordinator load the partition again: it knows what is in the log, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...metadata import TopicIdPartition
from ...records import BatchBuilder, RecordBatches
from ...replication import LogOffline, Partition
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..topics import NO_LEADER, OFFSETS_TOPIC

READ_BYTES: Final = 1 << 20
NEVER: Final = 2**63 - 1
"""The offset after an append that failed: it is never committed."""


class CoordinatorLog:
    """The partitions of one topic.

    topic: `__consumer_offsets`, or `__transaction_state`. failed: partitions of which an append has
    failed. lost: those that could not be read to the end, as a log directory has failed.
    """

    def __init__(
        self, metadata: MetadataCache, machines: Machines, topic: str = OFFSETS_TOPIC
    ) -> None:
        self.topic = topic
        self._metadata = metadata
        self._machines = machines
        self.failed: set[int] = set()
        self.lost: set[int] = set()

    @property
    def partition_count(self) -> int:
        """The number of partitions; 0 before the topic is created."""
        topic = self._metadata.topics.get(self.topic)
        return 0 if topic is None else len(topic.partitions)

    def leader(self, index: int) -> int:
        """Return the broker that leads a partition; NO_LEADER for none."""
        partition = self._metadata.topics.partition(self.topic, index)
        return NO_LEADER if partition is None else partition.leader_id

    def append(self, index: int, builder: BatchBuilder, now: float) -> int:
        """Append records to a partition; return the offset after them."""
        key = self.key(index)
        replica = None if key is None else self._machines.replica(key)
        if key is None or replica is None or index in self.failed:
            self.failed.add(index)
            return NEVER
        _, result = self._machines.append(key, builder.build(), now)
        if result is not None and result.error:
            self.failed.add(index)
            return NEVER
        return replica.log.log_end_offset

    def delete_before(self, index: int, offset: int, now: float) -> None:
        """Delete the records of a partition before an offset, which is committed."""
        if (replica := self._replica(index)) is not None and replica.log.log_start_offset < offset:
            self._machines.delete_before(self.topic, index, offset, now)

    def committed(self, index: int) -> int:
        """Return the high watermark of a partition."""
        replica = self._replica(index)
        return 0 if replica is None else replica.log.high_watermark

    def batches(self, index: int) -> Iterator[bytes]:
        """Read a partition from its start."""
        replica = self._replica(index)
        if replica is None:
            return
        log = replica.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            try:
                data = log.read(offset, READ_BYTES, log.log_end_offset, True)
            except LogOffline:
                self.lost.add(index)
                return
            for batch in RecordBatches(data):
                yield bytes(batch.data[batch.start : batch.end])
                offset = batch.last_offset + 1
            if not data:
                return

    def key(self, index: int) -> TopicIdPartition | None:
        """Return the key of a partition."""
        topic = self._metadata.topics.get(self.topic)
        return None if topic is None else TopicIdPartition(topic.topic_id, index)

    def _replica(self, index: int) -> Partition | None:
        key = self.key(index)
        return None if key is None else self._machines.replica(key)
