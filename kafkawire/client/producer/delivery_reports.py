"""Decides what becomes of batches: delivery, failure, split or retry.

A batch completes once; a retried batch keeps its position, and its sequence numbers as long
as the broker may have seen them.

    response ─▶ outcome ─▶ delivered · failed · split · retry ─▶ (backoff) ─▶ queue
                                                └─ sequence error ─▶ next epoch, unless an older
                                                                     batch is incomplete
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...messages.produce_response import PartitionProduceResponse
from ...protocol.error_code import ErrorCode
from ..cluster import Broker, ClusterView
from ..network.backoff import Rng
from ..requests import Reason, RequestMetadataUpdate, UpdateLeader, error_of
from .batch import Batch
from .configuration import ProducerSettings
from .events import Failure
from .partition_queue import PartitionQueue
from .produce_requests import BatchOutcome, error_text, outcome_of
from .producer_id import ProducerIdManager
from .record_accumulator import RecordAccumulator
from .transactions.transaction_manager import TransactionManager

OUT_OF_ORDER: Final = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class DeliveryReports:
    """Completes the batches of all partitions."""

    def __init__(
        self,
        settings: ProducerSettings,
        view: ClusterView,
        accumulator: RecordAccumulator,
        producer_ids: ProducerIdManager,
        rng: Rng,
        transactions: TransactionManager | None = None,
    ) -> None:
        self._settings = settings
        self._view = view
        self._accumulator = accumulator
        self._producer_ids = producer_ids
        self._rng = rng
        self._transactions = transactions

    def complete(
        self,
        queue: PartitionQueue,
        batch: Batch,
        row: PartitionProduceResponse,
        endpoints: tuple[Broker, ...],
        now: float,
    ) -> Iterator[UpdateLeader | RequestMetadataUpdate]:
        """Handle the broker's result for a batch."""
        if batch.done:  # it expired before the response
            queue.in_flight.remove(batch)
            return
        if not row.error_code:
            self._deliver(queue, batch, row.base_offset, row.log_append_time_ms)
            return
        code = error_of(row.error_code)
        outcome = outcome_of(code, len(batch.tokens), self._settings.idempotent)
        if outcome is BatchOutcome.DELIVERED:
            self._deliver(queue, batch, -1, row.log_append_time_ms)
            return
        failure = Failure(
            code, None, f"{queue.topic}-{queue.partition}: {error_text(row)}".rstrip(": ")
        )
        match outcome:
            case BatchOutcome.SPLIT:
                self._accumulator.used += queue.split(batch)
            case BatchOutcome.FAILED:
                queue.in_flight.remove(batch)
                self.fail(queue, batch, failure)
            case BatchOutcome.RETRY:
                self.retry(queue, batch, failure, now)
                yield from self._update_leader(queue, row, endpoints, code)
            case BatchOutcome.SEQUENCE_ERROR:
                self._on_sequence_error(queue, batch, code, failure, now)

    def _deliver(
        self, queue: PartitionQueue, batch: Batch, base_offset: int, log_append_time: int
    ) -> None:
        queue.in_flight.remove(batch)
        queue.acknowledged = True
        batch.deliver(base_offset, log_append_time)

    def _update_leader(
        self,
        queue: PartitionQueue,
        row: PartitionProduceResponse,
        endpoints: tuple[Broker, ...],
        code: ErrorCode,
    ) -> Iterator[UpdateLeader | RequestMetadataUpdate]:
        reported = row.current_leader
        if reported.leader_id >= 0:
            metadata = self._view.partition(queue.topic, queue.partition)
            yield UpdateLeader(
                queue.topic, queue.partition, reported.leader_id, reported.leader_epoch, endpoints
            )
            queue.leader_changed = (
                metadata is not None and reported.leader_epoch > metadata.leader_epoch
            )
        if code.invalid_metadata:
            yield RequestMetadataUpdate()

    def _on_sequence_error(
        self, queue: PartitionQueue, batch: Batch, code: ErrorCode, failure: Failure, now: float
    ) -> None:
        """Handle a sequence error: an older batch is incomplete, or one failed for good.

        A transaction cannot go on under another epoch: the batch fails, and so does it.
        """
        older = any(not each.done and each.order < batch.order for each in queue.unresolved)
        if self._transactions is not None and not (older and code is OUT_OF_ORDER):
            queue.in_flight.remove(batch)
            self.fail(queue, batch, failure)
            return
        if not older:
            fenced = code is ErrorCode.INVALID_PRODUCER_EPOCH
            self._producer_ids.invalidate(queue.identity, fenced=fenced)
            queue.reset = True
        self.retry(queue, batch, failure, now)

    def retry(self, queue: PartitionQueue, batch: Batch, failure: Failure, now: float) -> None:
        """Retry a batch after a backoff, unless it is discarded, or out of retries or time."""
        late = now >= batch.created_at + self._settings.delivery_timeout_s
        discarded = self._transactions is not None and self._transactions.discards is not None
        if discarded or late or batch.attempts >= self._settings.retries:
            queue.in_flight.remove(batch)
            self.fail(queue, batch, failure)
            return
        queue.reenqueue(batch)
        wait = self._settings.retry.after(batch.attempts, self._rng)
        queue.not_before = max(queue.not_before, now + wait)

    def fail(self, queue: PartitionQueue, batch: Batch, failure: Failure) -> None:
        """Fail a batch.

        If it had sequence numbers that the broker lacks, the next batch gets a sequence error;
        renumbering before that error could duplicate the batch.
        """
        queue.drop(batch)
        batch.fail(failure)

    def fail_queued(self, failure: Failure) -> None:
        """Fail every batch that is not in flight."""
        for queue in self._accumulator.busy.values():
            for batch in list(queue.queued):
                self.fail(queue, batch, failure)

    def fail_all(self, failure: Failure) -> None:
        """Fail every batch."""
        for queue in self._accumulator.busy.values():
            for batch in queue.unresolved:
                if not batch.done:
                    self.fail(queue, batch, failure)

    def expire(self, queue: PartitionQueue, now: float) -> None:
        """Fail batches that are older than delivery.timeout.ms."""
        limit = self._settings.delivery_timeout_s
        for batch in queue.unresolved:
            if now < batch.created_at + limit:
                break
            if not batch.done:
                sent = "no response" if batch in queue.in_flight else "not delivered"
                detail = f"{queue.topic}-{queue.partition}: {sent} within delivery.timeout.ms"
                self.fail(queue, batch, Failure(ErrorCode.NONE, Reason.TIMED_OUT, detail))
