"""Chooses which batches go to which broker now.

A batch is ready when it is full, has lingered, is flushed, or memory is exhausted; a request
has at most one batch of a partition and at most max.request.size bytes, and a broker has at most
max.in.flight.requests.per.connection requests in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..cluster import ClusterView
from .batch import Batch
from .configuration import ProducerSettings
from .partition_queue import PartitionQueue
from .produce_requests import Produce, Row
from .producer_id import ProducerIdManager
from .record_accumulator import RecordAccumulator, TopicPartition
from .record_failures import unexpected
from .transactions.transaction_manager import TransactionManager


@dataclass(frozen=True, slots=True)
class ProduceBatches:
    """The batches of one Produce request."""

    node: int
    batches: tuple[tuple[PartitionQueue, Batch], ...]
    rows: tuple[Row, ...]
    body: Produce


class Sender:
    """Drains the queues.

    leaderless: whether a batch is ready whose partition has no known leader. failed_builds: how
    many batches of the last `drain` could not be encoded.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        view: ClusterView,
        accumulator: RecordAccumulator,
        producer_ids: ProducerIdManager,
        transactions: TransactionManager | None = None,
    ) -> None:
        self.leaderless = False
        self.failed_builds = 0
        self._settings = settings
        self._view = view
        self._accumulator = accumulator
        self._producer_ids = producer_ids
        self._transactions = transactions
        self._in_flight_per_node: Counter[int] = Counter()
        self._left = False  # whether the last round may have left a batch that can be sent

    def may_have_ready(self, now: float) -> bool:
        """Return whether the newest batch may be sent now, or another one because of it.

        Those that wait for a response are sent when it comes.
        """
        return any(
            self._ready(queue, now, -1) and self._allowed(queue)
            for queue in self._accumulator.busy.values()
        )

    def drain(self, now: float, flush_to: int) -> Iterator[ProduceBatches]:
        """Take the batches that can be sent now, one request at a time."""
        self.leaderless = False
        self.failed_builds = 0
        self._left = True
        while self._left:
            self._left = False
            yield from self._round(now, flush_to)

    def completed(self, produce: ProduceBatches) -> None:
        """Count a request as no longer in flight."""
        self._in_flight_per_node[produce.node] -= 1

    def next_due(self, now: float, flush_to: int) -> float | None:
        """Return when the next lingering batch will be ready."""
        times = [
            self._ready_at(queue, flush_to)
            for queue in self._accumulator.busy.values()
            if self._allowed(queue)
        ]
        return min((at for at in times if at > now), default=None)

    def _round(self, now: float, flush_to: int) -> Iterator[ProduceBatches]:
        """Make at most one request for each broker."""
        by_node: dict[int, list[TopicPartition]] = {}
        for key, queue in self._accumulator.busy.items():
            if not self._ready(queue, now, flush_to) or not self._allowed(queue):
                continue
            partition = self._view.partition(*key)
            if partition is None or partition.leader not in self._view.brokers:
                self.leaderless = True
            elif self._in_flight_per_node[partition.leader] < self._settings.max_in_flight:
                by_node.setdefault(partition.leader, []).append(key)
        for node, keys in by_node.items():
            produce = self._batches_for(node, keys)
            if produce is not None:
                self._in_flight_per_node[node] += 1
                yield produce

    def _batches_for(self, node: int, keys: list[TopicPartition]) -> ProduceBatches | None:
        batches: list[tuple[PartitionQueue, Batch]] = []
        rows: list[Row] = []
        size = 0
        for key in keys:
            queue = self._accumulator.busy[key]
            if batches and size + queue.queued[0].size > self._settings.max_request_size:
                self._left = True
                continue
            if self._settings.idempotent and not self._assign_sequences(queue):
                continue
            batch = queue.send()
            try:
                records = batch.build()
            except Exception as error:  # noqa: BLE001 - fails this batch only
                queue.in_flight.remove(batch)
                batch.fail(unexpected(error))
                self.failed_builds += 1
                self._left = True
                continue
            if self._transactions is not None:
                self._transactions.on_send(key)
            self._left = self._left or self._allowed(queue)
            batches.append((queue, batch))
            size += batch.size
            rows.append(Row(*self._row_key(key), records))
            # rotate: the next request starts with other partitions
            self._accumulator.busy[key] = self._accumulator.busy.pop(key)
        if not batches:
            return None
        return ProduceBatches(node, tuple(batches), tuple(rows), self._body(tuple(rows)))

    def _body(self, rows: tuple[Row, ...]) -> Produce:
        settings = self._settings
        timeout_ms = round(settings.request_timeout_s * 1000)
        return Produce(
            rows,
            settings.acks,
            timeout_ms,
            settings.compression,
            settings.transactional_id,
            0 if self._transactions is None else self._transactions.version,
        )

    def _row_key(self, key: TopicPartition) -> tuple[str, bytes, int]:
        topic, partition = key
        return topic, self._view.topics[topic].topic_id, partition

    def _assign_sequences(self, queue: PartitionQueue) -> bool:
        ids = self._producer_ids if self._transactions is None else self._transactions
        current = ids.current
        if current is None:
            return False
        return queue.assign_sequences(current)

    def _allowed(self, queue: PartitionQueue) -> bool:
        if self._transactions is not None and not self._transactions.may_send(
            (queue.topic, queue.partition)
        ):
            return False
        return queue.may_send(self._settings.idempotent, self._settings.acks != 0)

    def _ready(self, queue: PartitionQueue, now: float, flush_to: int) -> bool:
        return bool(queue.queued) and self._ready_at(queue, flush_to) <= now

    def _ready_at(self, queue: PartitionQueue, flush_to: int) -> float:
        head = queue.queued[0]
        wanted = head.number <= flush_to or self._accumulator.exhausted
        if head.closed or wanted or head.size >= self._settings.batch_size:
            return queue.not_before
        return max(queue.not_before, head.created_at + self._settings.linger_s)
