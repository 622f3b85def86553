"""Appends records to the partitions that this broker leads, for Produce and for the broker itself.

Law: acks=all completes when the high watermark has passed the records; then, or at the timeout, it
is said of each partition what became of it. acks=0 and acks=1 complete at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..messages.produce_request import ProduceRequest
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
from .replicas import Lookup, Replicas

E = ErrorCode
ALL: Final = -1
ACKS: Final = (ALL, 0, 1)
REPLICATED: Final = "replicated up to"

ValidateFor = Callable[[str], Validate]
"""Returns how the records for a topic are validated."""


class Append(NamedTuple):
    """How records are appended.

    timeout: in seconds. internal: they are the broker's own. validate: how the records of clients
    are validated; None requires `whole_batches`. refused: index of an entry that is not to be
    appended -> its result.
    """

    acks: int
    timeout: float
    internal: bool = False
    validate: ValidateFor | None = None
    refused: Mapping[int, AppendResult] = {}


class Entry(NamedTuple):
    """Records for a partition."""

    lookup: Lookup
    records: bytes


@dataclass(slots=True)
class DelayedProduce:
    """An append that waits for followers. pending: index of a result -> partition.

    produce: the request; None for an append of the broker itself.
    """

    results: list[AppendResult]
    pending: dict[int, TopicIdPartition]
    required: dict[int, int]
    produce: ProduceRequest | None


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
        entries = [
            Entry(self.replicas.find(topic.name, topic.topic_id, each.index), each.records or b"")
            for topic in body.topic_data
            for each in topic.partition_data
        ]
        results = self._append(token, entries, how, body, now)
        return None if results is None else self._response(body, results)

    def append(
        self, token: int, key: TopicIdPartition, batch: bytes, how: Append, now: float
    ) -> AppendResult | None:
        """Append a batch to a partition; None if `AppendCompleted` follows."""
        entry = Entry(self.replicas.find("", *key), batch)
        results = self._append(token, [entry], how, None, now)
        return None if results is None else results[0]

    def _append(
        self,
        token: int,
        entries: list[Entry],
        how: Append,
        produce: ProduceRequest | None,
        now: float,
    ) -> list[AppendResult] | None:
        results: list[AppendResult] = []
        pending: dict[int, TopicIdPartition] = {}
        required: dict[int, int] = {}
        for index, entry in enumerate(entries):
            refused = how.refused.get(index)
            if refused is not None:
                results.append(refused)
                continue
            result, next_offset = self._append_one(entry, how, now)
            partition = entry.lookup.partition
            if how.acks == ALL and not result.error and partition is not None:
                if partition.log.high_watermark < next_offset:
                    pending[index], required[index] = partition.key, next_offset
                elif error := partition.acknowledgement():
                    result = AppendResult(error)
            results.append(result)
        if not pending:
            return results
        self._delayed[token] = DelayedProduce(results, pending, required, produce)
        self.purgatory.add(token, now + how.timeout)
        for index, key in pending.items():
            self.purgatory.watch(token, key, REPLICATED, required[index])
        return None

    def _append_one(self, entry: Entry, how: Append, now: float) -> tuple[AppendResult, int]:
        """Append to one partition; return the result and the offset after it."""
        partition = entry.lookup.partition
        if how.acks not in ACKS:
            return AppendResult(E.INVALID_REQUIRED_ACKS), -1
        if partition is None:
            return AppendResult(entry.lookup.error), -1
        validate = None if how.validate is None else how.validate(partition.topic)
        try:
            info = partition.append_as_leader(
                entry.records, how.acks == ALL, now, how.internal, validate
            )
        except AppendRejected as error:
            start = partition.log.log_start_offset if error.content_checked else -1
            rejected = AppendResult(
                error.error,
                log_start_offset=start,
                message=error.message,
                records=error.records,
            )
            return rejected, -1
        except LogOffline as error:
            return AppendResult(E.KAFKA_STORAGE_ERROR, message=str(error)), -1
        self.replicas.mark(partition.key)
        start = partition.log.log_start_offset
        result = AppendResult(E.NONE, info.first_offset, info.log_append_time_ms, start)
        return result, info.last_offset + 1

    def check(self, partition: Partition) -> None:
        """Complete the appends that the high watermark of a partition has passed."""
        if not self.purgatory or not partition.is_leader:
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
            for index in delayed.pending:
                delayed.results[index] = AppendResult(E.REQUEST_TIMED_OUT)
            self._complete(token, delayed)

    def _settle(self, token: int, key: TopicIdPartition, reached: int | None, error: E) -> None:
        """Decide the results of one partition, up to an offset or all."""
        delayed = self._delayed.get(token)
        if delayed is None:
            return
        for index, pending in list(delayed.pending.items()):
            if pending == key and (reached is None or delayed.required[index] <= reached):
                del delayed.pending[index]
                if error:
                    delayed.results[index] = AppendResult(error)
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
        remaining = iter(results)
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        self._partition(
                            self.replicas.key_of(topic.name, topic.topic_id, each.index),
                            next(remaining),
                        )
                        for each in topic.partition_data
                    ],
                )
                for topic in body.topic_data
            ]
        )

    def _partition(self, key: TopicIdPartition, result: AppendResult) -> PartitionProduceResponse:
        made = PartitionProduceResponse(
            index=key.partition,
            error_code=result.error,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
            error_message=result.message,
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in result.records
            ],
        )
        partition = self.replicas.hosted.get(key)
        if result.error in MOVED and partition is not None:
            made.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
        return made
