"""Appends records to the partitions that this broker leads, for Produce and for the broker itself.

Law: acks=all completes when the high watermark has passed the records; then, or at the timeout, it
is said of each partition what became of it. acks=0 and acks=1 complete at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..messages.produce_request import ProduceRequest
from ..messages.produce_response import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ..metadata import TopicIdPartition
from ..protocol import ErrorCode
from .effects import AppendCompleted, AppendResult, Respond
from .events import AppendRequested
from .fetching import MOVED
from .log.replica_log import AppendRejected, LogOffline
from .partition import Partition
from .purgatory import Purgatory
from .replicas import Lookup, Replicas

E = ErrorCode
ALL: Final = -1
ACKS: Final = (ALL, 0, 1)
REPLICATED: Final = "replicated up to"

Finish = Callable[[list[AppendResult]], None]


class Append(NamedTuple):
    """How records are appended. timeout: in seconds; internal: they are the broker's own."""

    acks: int
    timeout: float
    internal: bool = False


@dataclass(slots=True)
class DelayedProduce:
    """An append that waits for followers. pending: index of a result -> partition."""

    results: list[AppendResult]
    pending: dict[int, TopicIdPartition]
    required: dict[int, int]
    finish: Finish


class Appends:
    """The appends of a broker."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.purgatory: Purgatory[int] = Purgatory()
        self._delayed: dict[int, DelayedProduce] = {}

    def produce(self, token: int, body: ProduceRequest, now: float) -> None:
        """Append the records of a Produce."""
        entries = [
            (topic.name, topic.topic_id, each.index, each.records or b"")
            for topic in body.topic_data
            for each in topic.partition_data
        ]
        found = [self.replicas.find(topic, uid, index) for topic, uid, index, _ in entries]

        def finish(results: list[AppendResult]) -> None:
            response = None if body.acks == 0 else self._response(body, results)
            self.replicas.emit(Respond(token, response))

        records = [each[3] for each in entries]
        how = Append(body.acks, body.timeout_ms / 1000)
        self._append(token, found, records, how, finish, now)

    def append(self, event: AppendRequested, now: float) -> None:
        """Append batches of this broker."""
        found = [self.replicas.find("", *key) for key, _ in event.entries]

        def finish(results: list[AppendResult]) -> None:
            self.replicas.emit(AppendCompleted(event.token, tuple(results)))

        records = [each for _, each in event.entries]
        how = Append(event.acks, event.timeout, internal=True)
        self._append(event.token, found, records, how, finish, now)

    def _append(
        self,
        token: int,
        found: list[Lookup],
        records: list[bytes],
        how: Append,
        finish: Finish,
        now: float,
    ) -> None:
        results: list[AppendResult] = []
        delayed = DelayedProduce(results, {}, {}, finish)
        for index, (lookup, data) in enumerate(zip(found, records, strict=True)):
            result, next_offset = self._append_one(lookup, data, how, now)
            results.append(result)
            if how.acks == ALL and not result.error and lookup.partition is not None:
                delayed.pending[index] = lookup.partition.key
                delayed.required[index] = next_offset
        if not delayed.pending:
            finish(results)
            return
        self._delayed[token] = delayed
        self.purgatory.add(token, now + how.timeout)
        for index, key in delayed.pending.items():
            self.purgatory.watch(token, key, REPLICATED, delayed.required[index])

    def _append_one(
        self, lookup: Lookup, records: bytes, how: Append, now: float
    ) -> tuple[AppendResult, int]:
        """Append to one partition; return the result and the offset after it."""
        if how.acks not in ACKS:
            return AppendResult(E.INVALID_REQUIRED_ACKS), -1
        if lookup.partition is None:
            return AppendResult(lookup.error), -1
        partition = lookup.partition
        try:
            info = partition.append_as_leader(records, how.acks == ALL, now, how.internal)
        except AppendRejected as error:
            return AppendResult(error.error, message=error.message), -1
        except LogOffline as error:
            return AppendResult(E.KAFKA_STORAGE_ERROR, message=str(error)), -1
        self.replicas.mark(partition.key)
        start = partition.log.log_start_offset
        result = AppendResult(E.NONE, info.first_offset, info.log_append_time_ms, start)
        return result, info.last_offset + 1

    def check(self, partition: Partition) -> None:
        """Complete the appends that the high watermark of a partition has passed."""
        high_watermark = partition.log.high_watermark
        if not partition.is_leader:
            return
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
            delayed.finish(delayed.results)

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
            delayed.finish(delayed.results)

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
        )
        partition = self.replicas.hosted.get(key)
        if result.error in MOVED and partition is not None:
            made.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
        return made
