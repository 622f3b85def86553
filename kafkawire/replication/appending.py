"""Appends records to the partitions that this broker leads, for Produce and for the broker itself.

Acks=all completes when the high watermark has passed the records; then, or at the timeout, it
is said of each partition what became of it. acks=0 and acks=1 complete at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from ..messages.produce_request import ProduceRequest, TopicProduceData
from ..messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ..metadata import TopicIdPartition
from ..protocol import ErrorCode
from .effects import AppendCompleted, AppendResult, Respond
from .fetching import MOVED
from .log.replica_log import AppendRejected, LogOffline, Validate
from .partition import Partition
from .purgatory import Purgatory
from .replicas import Replicas

E = ErrorCode
NONE: Final = E.NONE
ALL: Final = -1
ACKS: Final = (ALL, 0, 1)
REPLICATED: Final = "replicated up to"


@dataclass(slots=True)
class Append:
    """How records are appended.

    timeout: in seconds. internal: they are the broker's own. validate: how the records of clients
    are validated; None requires `whole_batches`. refused: index of an entry that is not to be
    appended -> its result.
    """

    acks: int
    timeout: float
    internal: bool = False
    validate: Validate | None = None
    refused: Mapping[int, AppendResult] = field(default_factory=dict)


class Wait(NamedTuple):
    """A result, by its number, that waits until its partition is replicated up to an offset."""

    number: int
    offset: int


Pending = dict[TopicIdPartition, list[Wait]]


@dataclass(slots=True)
class DelayedProduce:
    """An append that waits for followers.

    produce: the request; None for an append of the broker itself.
    """

    produce: ProduceRequest | None
    results: list[AppendResult]
    pending: Pending


class Appends:
    """The appends of a broker."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.purgatory: Purgatory[int] = Purgatory()
        self._delayed: dict[int, DelayedProduce] = {}

    def produce(
        self, token: int, body: ProduceRequest, how: Append, now: float
    ) -> ProduceResponse | None:
        """Append the records of a Produce; None if `Respond` follows."""
        results: list[AppendResult] = []
        pending: Pending = {}
        for topic in body.topic_data:
            for each in topic.partition_data:
                result = how.refused.get(len(results))
                if result is None:
                    partition, error = self.replicas.find(topic.name, topic.topic_id, each.index)
                    result = self._append_one(partition, error, each.records or b"", how, now)
                    if how.acks == ALL and not result.error:
                        self._wait(partition, len(results), result, pending)
                results.append(result)
        if pending:
            self._delay(token, DelayedProduce(body, results, pending), how, now)
            return None
        return self._response(body, results)

    def append(
        self, token: int, key: TopicIdPartition, batch: bytes, how: Append, now: float
    ) -> AppendResult | None:
        """Append a batch to a partition; None if `AppendCompleted` follows."""
        partition, error = self.replicas.find("", *key)
        result = self._append_one(partition, error, batch, how, now)
        pending: Pending = {}
        if how.acks == ALL and not result.error:
            self._wait(partition, 0, result, pending)
        if pending:
            self._delay(token, DelayedProduce(None, [result], pending), how, now)
            return None
        return result

    def _wait(
        self, partition: Partition | None, index: int, result: AppendResult, pending: Pending
    ) -> None:
        """Let a result wait for followers, if any in-sync one does not have the records."""
        if partition is not None and result.last_offset >= partition.log.high_watermark:
            waits = pending.setdefault(partition.key, [])
            waits.append(Wait(index, result.last_offset + 1))

    def _delay(self, token: int, delayed: DelayedProduce, how: Append, now: float) -> None:
        self._delayed[token] = delayed
        self.purgatory.add(token, now + how.timeout)
        for key, waits in delayed.pending.items():
            for wait in waits:
                self.purgatory.watch(token, key, REPLICATED, wait.offset)

    def _append_one(
        self, partition: Partition | None, error: E, records: bytes, how: Append, now: float
    ) -> AppendResult:
        """Append to one partition. error: of not having it."""
        if how.acks not in ACKS:
            return AppendResult(E.INVALID_REQUIRED_ACKS)
        if partition is None:
            return AppendResult(error)
        try:
            info = partition.append_as_leader(
                records, how.acks == ALL, now, how.internal, how.validate
            )
        except AppendRejected as reason:
            return AppendResult(
                reason.error,
                log_start_offset=partition.log.log_start_offset if reason.content_checked else -1,
                message=reason.message,
                records=reason.records,
            )
        except LogOffline as reason:
            return AppendResult(E.KAFKA_STORAGE_ERROR, message=str(reason))
        self.replicas.mark(partition.key)
        start = partition.log.log_start_offset
        first, last, log_append_time_ms = info
        return AppendResult(NONE, first, log_append_time_ms, start, last_offset=last)

    def check(self, partition: Partition) -> None:
        """Complete the appends that the high watermark of a partition has passed."""
        if not partition.is_leader:
            return
        high_watermark = partition.log.high_watermark
        for token in self.purgatory.reached(partition.key, REPLICATED, high_watermark):
            self._settle(token, partition.key, high_watermark, partition.acknowledgement())

    def leadership_lost(self, key: TopicIdPartition, error: E = E.NOT_LEADER_OR_FOLLOWER) -> None:
        """Complete the appends to a partition that this broker no longer leads."""
        for token in self.purgatory.all_of(key, REPLICATED):
            self._settle(token, key, None, error)

    def advance(self, now: float) -> None:
        """Complete the appends whose time is over."""
        for token in self.purgatory.take_expired(now):
            delayed = self._delayed.pop(token)
            for wait in chain.from_iterable(delayed.pending.values()):
                delayed.results[wait.number] = AppendResult(E.REQUEST_TIMED_OUT)
            self._complete(token, delayed)

    def _settle(self, token: int, key: TopicIdPartition, reached: int | None, error: E) -> None:
        """Decide the results of one partition, up to an offset or all."""
        delayed = self._delayed.get(token)
        if delayed is None:
            return
        left: list[Wait] = []
        for wait in delayed.pending.pop(key, ()):
            if reached is not None and wait.offset > reached:
                left.append(wait)
            elif error:
                delayed.results[wait.number] = AppendResult(error)
        if left:
            delayed.pending[key] = left
        if not delayed.pending:
            self.purgatory.remove(token)
            del self._delayed[token]
            self._complete(token, delayed)

    def _complete(self, token: int, delayed: DelayedProduce) -> None:
        if delayed.produce is None:
            self.replicas.emit(AppendCompleted(token, delayed.results[0]))
        else:
            self.replicas.emit(Respond(token, self._response(delayed.produce, delayed.results)))

    def _response(self, body: ProduceRequest, results: list[AppendResult]) -> ProduceResponse:
        topics: list[TopicProduceResponse] = []
        remaining = iter(results)
        for topic in body.topic_data:
            partitions: list[PartitionProduceResponse] = []
            for each in topic.partition_data:
                result = next(remaining)
                data = PartitionProduceResponse(
                    index=each.index,
                    error_code=result.error,
                    base_offset=result.base_offset,
                    log_append_time_ms=result.log_append_time_ms,
                    log_start_offset=result.log_start_offset,
                )
                if result.error:
                    self._add_error(data, topic, result)
                partitions.append(data)
            response = TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
            )
            topics.append(response)
        return ProduceResponse(responses=topics)

    def _add_error(
        self, response: PartitionProduceResponse, topic: TopicProduceData, result: AppendResult
    ) -> None:
        """Say which records of a partition were refused, and who leads it."""
        response.error_message = result.message
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
            for number, message in result.records
        ]
        key = self.replicas.key_of(topic.name, topic.topic_id, response.index)
        partition = self.replicas.hosted.get(key)
        if result.error in MOVED and partition is not None:
            response.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
