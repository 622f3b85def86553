"""Appends records to partitions: validation, offsets, persistence, delayed fetches.

Law: a batch is persisted (`Persist`) before any response contains its offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol import ErrorCode
from ...records import Batch, BatchBuilder
from ...records.validated import ValidatedBatch
from ..context import Context
from ..effects import Persist, Trim
from ..log.partition_log import Stored
from ..log.validation import RecordsRejected, Rules, check, rules
from ..topics import Partition, Topics
from .reading import check_and_complete
from .replica_manager import ReplicaManager

E = ErrorCode
ALL: Final = -1
NO_OFFSET: Final = -1


class Appended(NamedTuple):
    """The result of an append: base offset and log append time, -1 for CreateTime."""

    base_offset: int
    log_append_time_ms: int = -1


class Appender:
    """Appends to the logs of a cluster. replicas: the replica managers of all its brokers."""

    def __init__(
        self, context: Context, topics: Topics, replicas: Mapping[int, ReplicaManager]
    ) -> None:
        self._context = context
        self._topics = topics
        self._replicas = replicas
        self._rules: dict[str, tuple[dict[str, str], dict[str, str], Rules]] = {}

    def produce(
        self, partition: Partition, records: bytes | None, version: int, acks: int, now: float
    ) -> Appended:
        """Validate and append the records of a Produce. Raises RecordsRejected."""
        topic = self._rules_of(partition)
        if acks == ALL and len(partition.isr) < topic.min_insync_replicas:
            raise RecordsRejected(
                E.NOT_ENOUGH_REPLICAS,
                f"{len(partition.isr)} in-sync replicas, min.insync.replicas is "
                f"{topic.min_insync_replicas}",
                content_checked=False,
            )
        checked = check(records, version, topic, self._context.wall_ms(now))
        batch = checked.batch
        if batch.producer_id >= 0:
            written = partition.producers.duplicate(batch)
            if written is not None:
                return Appended(written.base_offset, written.timestamp)
            error = partition.producers.sequence_error(batch)
            if error:
                raise RecordsRejected(error, f"{error.name} of producer {batch.producer_id}")
        stored = self._store(partition, checked, now)
        if batch.producer_id >= 0:
            partition.producers.note(batch, stored)
        self._retain(partition, topic.retention_bytes)
        return Appended(stored.base_offset, checked.log_append_time_ms)

    def write(self, partition: Partition, builder: BatchBuilder, now: float) -> int:
        """Append internal records; return their base offset."""
        data = builder.build()
        batch = ValidatedBatch(Batch(data, 0, len(data)), builder.max_timestamp)
        return self._store(partition, batch, now).base_offset

    def trim(self, partition: Partition, start: int, end: int | None = None) -> None:
        """Delete records before `start`, and truncate the log at `end`."""
        log = partition.log
        if end is not None:
            log.truncate(end)
            partition.producers.forget_from(log.log_end_offset)
        log.delete_before(start)
        bounds = log.log_start_offset, log.log_end_offset
        self._context.emit(Trim(partition.topic, partition.index, *bounds))

    def _store(self, partition: Partition, valid: ValidatedBatch, now: float) -> Stored:
        base_offset = partition.log.log_end_offset
        data = valid.assigned(base_offset, partition.leader_epoch)
        last_offset = base_offset + valid.batch.last_offset_delta
        stored = Stored(base_offset, last_offset, valid.latest, data)
        partition.log.append(stored, partition.leader_epoch)
        self._context.emit(Persist(partition.topic, partition.index, stored.data))
        self.complete_fetches(partition, now)
        return stored

    def complete_fetches(self, partition: Partition, now: float) -> None:
        """Complete the delayed fetches of a partition that have enough data now."""
        for replicas in self._replicas.values():
            check_and_complete(replicas, partition.key, now)

    def topic_deleted(self, topic: str) -> None:
        """Drop the cached rules of a topic."""
        self._rules.pop(topic, None)

    def _rules_of(self, partition: Partition) -> Rules:
        """Return the rules of a topic, cached until its configuration changes."""
        topic = self._topics.get(partition.topic)
        configs = {} if topic is None else topic.configs
        given = self._context.settings.given
        found = self._rules.get(partition.topic)
        if found is None or found[0] != configs or found[1] != given:
            made = rules(self._context.settings, configs)
            found = self._rules[partition.topic] = dict(configs), dict(given), made
        return found[2]

    def _retain(self, partition: Partition, limit: int) -> None:
        """Delete the oldest batches beyond retention.bytes, except the last."""
        log = partition.log
        if limit < 0 or log.size <= limit:
            return
        excess, keep_from = log.size - limit, log.log_start_offset
        for stored in log:
            if excess <= 0 or stored.last_offset + 1 >= log.log_end_offset:
                break
            excess -= len(stored.data)
            keep_from = stored.last_offset + 1
        if keep_from > log.log_start_offset:
            self.trim(partition, keep_from)
