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
from ..network.backoff import Lot
from ..network.cluster import Broker, ClusterView
from ..requests import LearnLeader, Reason, WantMetadata, error_of
from .batch import Batch
from .configuration import ProducerSettings
from .events import Failure
from .partition_queue import Lane
from .produce_requests import Verdict, said, verdict
from .producer_id import Identities
from .record_accumulator import Intake


class Fates:
    """Decides over the batches of all partitions."""

    def __init__(
        self,
        settings: ProducerSettings,
        view: ClusterView,
        intake: Intake,
        identities: Identities,
        lot: Lot,
    ) -> None:
        self._settings = settings
        self._view = view
        self._intake = intake
        self._identities = identities
        self._lot = lot

    def judge(
        self,
        lane: Lane,
        batch: Batch,
        row: PartitionProduceResponse,
        endpoints: tuple[Broker, ...],
        now: float,
    ) -> Iterator[object]:
        """Take the broker's word on a batch."""
        if batch.done:  # its time was over before the answer came
            lane.in_flight.remove(batch)
            return
        code = error_of(row.error_code)
        failure = Failure(code, None, f"{lane.topic}-{lane.partition}: {said(row)}".rstrip(": "))
        match verdict(code, len(batch.tokens), self._settings.idempotent):
            case Verdict.DELIVERED:
                lane.in_flight.remove(batch)
                lane.known = True
                offset = -1 if code else row.base_offset
                batch.deliver(offset, row.log_append_time_ms)
            case Verdict.SPLIT:
                self._intake.used += lane.split(batch)
            case Verdict.LOST:
                lane.in_flight.remove(batch)
                self.fail(lane, batch, failure)
            case Verdict.AGAIN:
                self.again(lane, batch, failure, now)
                yield from self._look_again(lane, row, endpoints, code)
            case Verdict.OUT_OF_STEP:
                self._step(lane, batch, code, failure, now)

    def _look_again(
        self,
        lane: Lane,
        row: PartitionProduceResponse,
        endpoints: tuple[Broker, ...],
        code: ErrorCode,
    ) -> Iterator[object]:
        told = row.current_leader
        if told.leader_id >= 0:
            known = self._view.partition(lane.topic, lane.partition)
            yield LearnLeader(
                lane.topic, lane.partition, told.leader_id, told.leader_epoch, endpoints
            )
            lane.led_anew = known is not None and told.leader_epoch > known.leader_epoch
        if code.invalid_metadata:
            yield WantMetadata()

    def _step(
        self, lane: Lane, batch: Batch, code: ErrorCode, failure: Failure, now: float
    ) -> None:
        """The broker expected other numbers: because an older batch is still to come, or because
        one never will.
        """
        older = any(not each.done and each.order < batch.order for each in lane.unresolved)
        if not older:
            fenced = code is ErrorCode.INVALID_PRODUCER_EPOCH
            self._identities.leave(lane.identity, fenced=fenced)
            lane.reset = True
        self.again(lane, batch, failure, now)

    def again(self, lane: Lane, batch: Batch, failure: Failure, now: float) -> None:
        """Have a batch sent again, after a backoff, if it may still be."""
        late = now >= batch.created_at + self._settings.delivery_timeout_s
        if late or batch.attempts >= self._settings.retries:
            lane.in_flight.remove(batch)
            self.fail(lane, batch, failure)
            return
        lane.again(batch)
        wait = self._settings.retry.after(batch.attempts, self._lot)
        lane.not_before = max(lane.not_before, now + wait)

    def fail(self, lane: Lane, batch: Batch, failure: Failure) -> None:
        """Give up on a batch. If it had its numbers, and the broker lacks it, the next one will be
        out of step; numbering that anew before the broker has said so could double it.
        """
        lane.drop(batch)
        batch.fail(failure)

    def fail_all(self, failure: Failure) -> None:
        """Give up on every batch."""
        for lane in self._intake.busy.values():
            for batch in lane.unresolved:
                if not batch.done:
                    self.fail(lane, batch, failure)

    def expire(self, lane: Lane, now: float) -> None:
        """Give up on batches that have had delivery.timeout.ms."""
        limit = self._settings.delivery_timeout_s
        for batch in lane.unresolved:
            if now < batch.created_at + limit:
                break
            if not batch.done:
                sent = "sent and not answered" if batch in lane.in_flight else "not delivered"
                detail = f"{lane.topic}-{lane.partition}: {sent} within delivery.timeout.ms"
                self.fail(lane, batch, Failure(ErrorCode.NONE, Reason.TIMED_OUT, detail))
