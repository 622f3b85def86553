"""Handles ListOffsets, OffsetForLeaderEpoch and DeleteRecords.

A new leader does not say an end offset to consumers before its high watermark reached the
start of its epoch (KIP-207); records count as deleted when no live replica has them (KIP-107).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..messages.delete_records_request import DeleteRecordsRequest
from ..messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ..messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from ..messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ..messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from ..messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ..metadata import TopicIdPartition
from ..protocol import ErrorCode
from .effects import Respond
from .fetch_params import READ_COMMITTED
from .log.replica_log import MAX_TIMESTAMP, LogOffline, ReplicaLog
from .partition import Partition
from .purgatory import Purgatory
from .replicas import HIGH_WATERMARK, LAST_STABLE, LOG_END, NO_TOPIC_ID, Replicas, bound

E = ErrorCode
LATEST: Final = -1
EARLIEST: Final = -2
EARLIEST_LOCAL: Final = -4
DELETED: Final = "deleted before"


class Offsets:
    """The requests for offsets of a broker."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas

    def list_offsets(self, body: ListOffsetsRequest) -> ListOffsetsResponse:
        """Respond to ListOffsets; a follower sees up to the log end."""
        stable = LAST_STABLE if body.isolation_level == READ_COMMITTED else HIGH_WATERMARK
        measure = LOG_END if body.replica_id >= 0 else stable
        topics = [
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[self._offset(topic.name, each, measure) for each in topic.partitions],
            )
            for topic in body.topics
        ]
        return ListOffsetsResponse(topics=topics)

    def list_old_style(self, body: ListOffsetsRequest) -> ListOffsetsResponse:
        """Respond to ListOffsets v0: the end for LATEST, and the start of the log; newest first."""
        topics = [
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[self._old_style(topic.name, each) for each in topic.partitions],
            )
            for topic in body.topics
        ]
        return ListOffsetsResponse(topics=topics)

    def _old_style(
        self, topic: str, requested: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        response = ListOffsetsPartitionResponse(partition_index=requested.partition_index)
        partition, error = self.replicas.find(topic, NO_TOPIC_ID, requested.partition_index)
        if partition is not None:
            error = partition.check(requested.current_leader_epoch, only_leader=True)
        if partition is None or error:
            response.error_code = error
            return response
        offsets = {partition.log.log_start_offset}
        if requested.timestamp == LATEST:
            offsets.add(partition.log.high_watermark)
        most = max(0, requested.max_num_offsets)
        response.old_style_offsets = sorted(offsets, reverse=True)[:most]
        return response

    def _offset(
        self, topic: str, requested: ListOffsetsPartition, measure: str
    ) -> ListOffsetsPartitionResponse:
        response = ListOffsetsPartitionResponse(partition_index=requested.partition_index)
        partition, error = self.replicas.find(topic, NO_TOPIC_ID, requested.partition_index)
        if partition is not None:
            error = partition.check(requested.current_leader_epoch, only_leader=True)
        if partition is None or error:
            response.error_code = error
            return response
        log, end = partition.log, bound(partition.log, measure)
        lags = measure != LOG_END and not partition.offsets_are_available
        if requested.timestamp == LATEST:
            if lags:
                response.error_code = E.OFFSET_NOT_AVAILABLE
                return response
            response.offset, response.leader_epoch = end, log.latest_epoch
        elif requested.timestamp in (EARLIEST, EARLIEST_LOCAL):
            response.offset = log.log_start_offset
            response.leader_epoch = self._epoch_at(log, response.offset)
        elif requested.timestamp < MAX_TIMESTAMP:
            response.error_code = E.UNSUPPORTED_VERSION
        else:
            try:
                result = log.offset_for_timestamp(requested.timestamp)
            except LogOffline:
                response.error_code = E.KAFKA_STORAGE_ERROR
                return response
            if result is not None and result.offset < end:
                response.offset, response.timestamp = result.offset, result.timestamp
                response.leader_epoch = self._epoch_at(log, response.offset)
            elif lags:
                response.error_code = E.OFFSET_NOT_AVAILABLE
        return response

    def _epoch_at(self, log: ReplicaLog, offset: int) -> int:
        """Return the leader epoch of an offset: the first whose end is after it."""
        low, high = -1, log.latest_epoch
        while low + 1 < high:
            middle = (low + high) // 2
            end = log.end_offset_for_epoch(middle)
            low, high = (low, middle) if end.end_offset > offset else (middle, high)
        return high

    def for_leader_epoch(self, body: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        """Respond to OffsetForLeaderEpoch."""
        topics = [
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[self._end(topic.topic, each) for each in topic.partitions],
            )
            for topic in body.topics
        ]
        return OffsetForLeaderEpochResponse(topics=topics)

    def _end(self, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
        partition, error = self.replicas.find(topic, NO_TOPIC_ID, requested.partition)
        if partition is not None:
            error = partition.check(requested.current_leader_epoch, only_leader=True)
        response = EpochEndOffset(partition=requested.partition, error_code=error)
        if partition is not None and not error:
            end = partition.end_offset_for_epoch(requested.leader_epoch)
            response.leader_epoch, response.end_offset = end.leader_epoch, end.end_offset
        return response


@dataclass(slots=True)
class DelayedDelete:
    """A DeleteRecords that waits for followers. pending: partition -> the requested offset."""

    body: DeleteRecordsRequest
    pending: dict[TopicIdPartition, int]
    errors: dict[TopicIdPartition, ErrorCode]


class Deletions:
    """The DeleteRecords requests of a broker."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.purgatory: Purgatory[int] = Purgatory()
        self._delayed: dict[int, DelayedDelete] = {}

    def delete_records(
        self, token: int, body: DeleteRecordsRequest, now: float
    ) -> DeleteRecordsResponse | None:
        """Delete records of the leader; None if `Respond` follows, once followers have done so."""
        delayed = DelayedDelete(body, {}, {})
        for topic in body.topics:
            for each in topic.partitions:
                key = self.replicas.key_of(topic.name, NO_TOPIC_ID, each.partition_index)
                self._delete(delayed, topic.name, key, each.offset)
        if not delayed.pending:
            return self._response(delayed)
        self._delayed[token] = delayed
        self.purgatory.add(token, now + body.timeout_ms / 1000)
        for key, offset in delayed.pending.items():
            self.purgatory.watch(token, key, DELETED, offset)
        return None

    def _delete(
        self, delayed: DelayedDelete, topic: str, key: TopicIdPartition, offset: int
    ) -> None:
        partition, error = self.replicas.find(topic, NO_TOPIC_ID, key.partition)
        if partition is not None:
            error = partition.check(-1, only_leader=True)
            before = partition.log.high_watermark if offset == LATEST else offset
            if not error and not 0 <= before <= partition.log.high_watermark:
                error = E.OFFSET_OUT_OF_RANGE
            if not error:
                error = self._delete_before(partition, before)
            if not error and partition.low_watermark < before:
                delayed.pending[key] = before
        if error:
            delayed.errors[key] = error

    def _delete_before(self, partition: Partition, offset: int) -> ErrorCode:
        try:
            partition.log.increment_log_start_offset(offset)
        except LogOffline:
            return E.KAFKA_STORAGE_ERROR
        self.replicas.mark(partition.key)
        return E.NONE

    def check(self, partition: Partition) -> None:
        """Complete the deletions that the low watermark of a partition has passed."""
        if not partition.is_leader:
            return
        for token in self.purgatory.reached(partition.key, DELETED, partition.low_watermark):
            self._settle(token, partition.key, E.NONE)

    def leadership_lost(self, key: TopicIdPartition, error: E = E.NOT_LEADER_OR_FOLLOWER) -> None:
        """Complete the deletions of a partition that this broker no longer leads."""
        for token in self.purgatory.all_of(key, DELETED):
            self._settle(token, key, error)

    def advance(self, now: float) -> None:
        """Complete the deletions whose time is over."""
        for token in self.purgatory.take_expired(now):
            delayed = self._delayed[token]
            delayed.errors.update(dict.fromkeys(delayed.pending, E.REQUEST_TIMED_OUT))
            self._respond(token)

    def _settle(self, token: int, key: TopicIdPartition, error: E) -> None:
        delayed = self._delayed.get(token)
        if delayed is None or delayed.pending.pop(key, None) is None:
            return
        if error:
            delayed.errors[key] = error
        if not delayed.pending:
            self._respond(token)

    def _respond(self, token: int) -> None:
        self.purgatory.remove(token)
        self.replicas.emit(Respond(token, self._response(self._delayed.pop(token))))

    def _response(self, delayed: DelayedDelete) -> DeleteRecordsResponse:
        topics = [
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    self._result(
                        delayed,
                        self.replicas.key_of(topic.name, NO_TOPIC_ID, each.partition_index),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in delayed.body.topics
        ]
        return DeleteRecordsResponse(topics=topics)

    def _result(
        self, delayed: DelayedDelete, key: TopicIdPartition
    ) -> DeleteRecordsPartitionResult:
        error = delayed.errors.get(key, E.NONE)
        partition = self.replicas.hosted.get(key)
        low = -1 if error or partition is None else partition.low_watermark
        return DeleteRecordsPartitionResult(
            partition_index=key.partition, low_watermark=low, error_code=error
        )
