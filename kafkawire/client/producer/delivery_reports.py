"""What becomes of a batch that was sent, or waited too long.

Law: a batch ends once; one that is sent again keeps its place, and its numbers as long as the
broker may have seen them.

    answer ─▶ verdict ─▶ delivered · lost · split · again ─▶ (backoff) ─▶ queue
                                               └─ out of step ─▶ a new epoch, if nothing older
                                                                 is still to come
"""

from __future__ import annotations

from collections.abc import Iterator

from ...messages.produce_response import PartitionProduceResponse
from ...protocol.error_code import ErrorCode
from ..network.backoff import Rng
from ..network.cluster import Broker, ClusterView
from ..requests import Reason, RequestMetadataUpdate, UpdateLeader, error_of
from .batch import Batch
from .configuration import ProducerSettings
from .events import Failure
from .partition_queue import PartitionQueue
from .produce_requests import Verdict, said, verdict
from .producer_id import Identities
from .record_accumulator import RecordAccumulator


class DeliveryReports:
    """Decides over the batches of all partitions."""

    def __init__(
        self,
        settings: ProducerSettings,
        view: ClusterView,
        accumulator: RecordAccumulator,
        identities: Identities,
        rng: Rng,
    ) -> None:
        self._settings = settings
        self._view = view
        self._accumulator = accumulator
        self._identities = identities
        self._rng = rng

    def judge(
        self,
        queue: PartitionQueue,
        batch: Batch,
        row: PartitionProduceResponse,
        endpoints: tuple[Broker, ...],
        now: float,
    ) -> Iterator[object]:
        """Take the broker's word on a batch."""
        if batch.done:  # its time was over before the answer came
            queue.in_flight.remove(batch)
            return
        code = error_of(row.error_code)
        failure = Failure(code, None, f"{queue.topic}-{queue.partition}: {said(row)}".rstrip(": "))
        match verdict(code, len(batch.tokens), self._settings.idempotent):
            case Verdict.DELIVERED:
                queue.in_flight.remove(batch)
                queue.known = True
                offset = -1 if code else row.base_offset
                batch.deliver(offset, row.log_append_time_ms)
            case Verdict.SPLIT:
                self._accumulator.used += queue.split(batch)
            case Verdict.LOST:
                queue.in_flight.remove(batch)
                self.fail(queue, batch, failure)
            case Verdict.AGAIN:
                self.again(queue, batch, failure, now)
                yield from self._look_again(queue, row, endpoints, code)
            case Verdict.OUT_OF_STEP:
                self._step(queue, batch, code, failure, now)

    def _look_again(
        self,
        queue: PartitionQueue,
        row: PartitionProduceResponse,
        endpoints: tuple[Broker, ...],
        code: ErrorCode,
    ) -> Iterator[object]:
        told = row.current_leader
        if told.leader_id >= 0:
            known = self._view.partition(queue.topic, queue.partition)
            yield UpdateLeader(
                queue.topic, queue.partition, told.leader_id, told.leader_epoch, endpoints
            )
            queue.led_anew = known is not None and told.leader_epoch > known.leader_epoch
        if code.invalid_metadata:
            yield RequestMetadataUpdate()

    def _step(
        self, queue: PartitionQueue, batch: Batch, code: ErrorCode, failure: Failure, now: float
    ) -> None:
        """The broker expected other numbers: because an older batch is still to come, or because
        one never will.
        """
        older = any(not each.done and each.order < batch.order for each in queue.unresolved)
        if not older:
            fenced = code is ErrorCode.INVALID_PRODUCER_EPOCH
            self._identities.leave(queue.identity, fenced=fenced)
            queue.reset = True
        self.again(queue, batch, failure, now)

    def again(self, queue: PartitionQueue, batch: Batch, failure: Failure, now: float) -> None:
        """Have a batch sent again, after a backoff, if it may still be."""
        late = now >= batch.created_at + self._settings.delivery_timeout_s
        if late or batch.attempts >= self._settings.retries:
            queue.in_flight.remove(batch)
            self.fail(queue, batch, failure)
            return
        queue.again(batch)
        wait = self._settings.retry.after(batch.attempts, self._rng)
        queue.not_before = max(queue.not_before, now + wait)

    def fail(self, queue: PartitionQueue, batch: Batch, failure: Failure) -> None:
        """Give up on a batch. If it had its numbers, and the broker lacks it, the next one will be
        out of step; numbering that anew before the broker has said so could double it.
        """
        queue.drop(batch)
        batch.fail(failure)

    def fail_all(self, failure: Failure) -> None:
        """Give up on every batch."""
        for queue in self._accumulator.busy.values():
            for batch in queue.unresolved:
                if not batch.done:
                    self.fail(queue, batch, failure)

    def expire(self, queue: PartitionQueue, now: float) -> None:
        """Give up on batches that have had delivery.timeout.ms."""
        limit = self._settings.delivery_timeout_s
        for batch in queue.unresolved:
            if now < batch.created_at + limit:
                break
            if not batch.done:
                sent = "sent and not answered" if batch in queue.in_flight else "not delivered"
                detail = f"{queue.topic}-{queue.partition}: {sent} within delivery.timeout.ms"
                self.fail(queue, batch, Failure(ErrorCode.NONE, Reason.TIMED_OUT, detail))
