"""Which batches go to which broker now.

Law: a batch is sent when it is full, has lingered, is flushed for, or memory is wanted; at most one
of a partition in a request, at most max.request.size in all, and at most
max.in.flight.requests.per.connection requests at a broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..network.cluster import ClusterView
from .batch import Batch
from .configuration import ProducerSettings
from .partition_queue import PartitionQueue
from .produce_requests import Produce, Row
from .producer_id import Identities
from .record_accumulator import LaneKey, RecordAccumulator, unexpected


@dataclass(frozen=True, slots=True)
class Load:
    """What one request carries."""

    node: int
    batches: tuple[tuple[PartitionQueue, Batch], ...]
    rows: tuple[Row, ...]
    body: Produce


class Sender:
    """Chooses what is sent.

    leaderless: whether something is ready whose partition has no leader that is known. unbuilt: how
    many batches of the last `loads` have failed because they could not be built.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        view: ClusterView,
        accumulator: RecordAccumulator,
        identities: Identities,
    ) -> None:
        self.leaderless = False
        self.unbuilt = 0
        self._settings = settings
        self._view = view
        self._accumulator = accumulator
        self._identities = identities
        self._at_node: Counter[int] = Counter()

    def worth_trying(self, now: float) -> bool:
        """Say whether the batch that was just begun may have made another one full, or is ready
        itself.
        """
        return self._settings.linger_s == 0 or any(
            self._ready(queue, now, -1) for queue in self._accumulator.busy.values()
        )

    def loads(self, now: float, flush_to: int) -> Iterator[Load]:
        """Take what can be sent now out of the lanes."""
        self.leaderless = False
        self.unbuilt = 0
        while True:
            unbuilt = self.unbuilt
            made = list(self._round(now, flush_to))
            yield from made
            if not made and self.unbuilt == unbuilt:
                return

    def unloaded(self, load: Load) -> None:
        """Take that a request is ended."""
        self._at_node[load.node] -= 1

    def next_due(self, now: float, flush_to: int) -> float | None:
        """Say when a batch that waits for time alone will be ready."""
        found = [
            self._ready_at(queue, flush_to)
            for queue in self._accumulator.busy.values()
            if self._allowed(queue)
        ]
        return min((at for at in found if at > now), default=None)

    def _round(self, now: float, flush_to: int) -> Iterator[Load]:
        """Make at most one request for each broker."""
        by_node: dict[int, list[LaneKey]] = {}
        for key, queue in self._accumulator.busy.items():
            if not self._ready(queue, now, flush_to) or not self._allowed(queue):
                continue
            partition = self._view.partition(*key)
            if partition is None or partition.leader not in self._view.brokers:
                self.leaderless = True
            elif self._at_node[partition.leader] < self._settings.max_in_flight:
                by_node.setdefault(partition.leader, []).append(key)
        for node, keys in by_node.items():
            load = self._load(node, keys)
            if load is not None:
                self._at_node[node] += 1
                yield load

    def _load(self, node: int, keys: list[LaneKey]) -> Load | None:
        batches: list[tuple[PartitionQueue, Batch]] = []
        rows: list[Row] = []
        size = 0
        for key in keys:
            queue = self._accumulator.busy[key]
            if batches and size + queue.queued[0].size > self._settings.max_request_size:
                continue
            if self._settings.idempotent and not self._numbered(queue):
                continue
            batch = queue.send()
            try:
                records = batch.build()
            except Exception as error:  # noqa: BLE001 - one batch's trouble stays its own
                queue.in_flight.remove(batch)
                batch.fail(unexpected(error))
                self.unbuilt += 1
                continue
            batches.append((queue, batch))
            size += batch.size
            rows.append(Row(*self._named(key), records))
            # the next request begins with others
            self._accumulator.busy[key] = self._accumulator.busy.pop(key)
        if not batches:
            return None
        settings = self._settings
        timeout_ms = round(settings.request_timeout_s * 1000)
        body = Produce(tuple(rows), settings.acks, timeout_ms, settings.compression)
        return Load(node, tuple(batches), tuple(rows), body)

    def _named(self, key: LaneKey) -> tuple[str, bytes, int]:
        topic, partition = key
        return topic, self._view.topics[topic].topic_id, partition

    def _numbered(self, queue: PartitionQueue) -> bool:
        current = self._identities.current
        if current is None:
            return False
        return queue.take_identity(current)

    def _allowed(self, queue: PartitionQueue) -> bool:
        return queue.may_send(self._settings.idempotent, self._settings.acks != 0)

    def _ready(self, queue: PartitionQueue, now: float, flush_to: int) -> bool:
        return bool(queue.queued) and self._ready_at(queue, flush_to) <= now

    def _ready_at(self, queue: PartitionQueue, flush_to: int) -> float:
        head = queue.queued[0]
        wanted = head.number <= flush_to or self._accumulator.starved
        if head.closed or wanted or head.size >= self._settings.batch_size:
            return queue.not_before
        return max(queue.not_before, head.created_at + self._settings.linger_s)
