"""Fetches from one leader all partitions that it leads and this broker follows.

One request is in flight; a response counts for a partition only if its log and leader epoch
are still those of the request. The leader's diverging epoch truncates a log, never a guess. A log
whose directory fails is left to `LogsFailed`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from ..errors import WireError
from ..messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ..messages.fetch_response import FetchResponse, PartitionData
from ..messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ..messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from ..metadata import TopicIdPartition
from ..primitives import Message
from ..protocol import ErrorCode
from .fetch_params import REPLICA_STATE_FROM
from .log.replica_log import EpochEndOffset, LogOffline
from .offsets import EARLIEST, LATEST
from .partition import Partition
from .replicas import Replicas
from .states import ReplicaState as State
from .states import Trigger
from .throttling import ReplicationQuota

E = ErrorCode


@dataclass(slots=True)
class FollowerQuota:
    """The throttled partitions of a follower, and their quota."""

    quota: ReplicationQuota
    partitions: frozenset[TopicIdPartition] = frozenset()


@dataclass(slots=True)
class FetchState:
    """A partition that is fetched. lookup: the timestamp for ListOffsets."""

    partition: Partition
    delayed_until: float = 0.0
    lookup: int = LATEST
    lag: int = -1
    """Offsets behind the leader's high watermark at the last response; -1 for unknown."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What was requested for a partition."""

    offset: int
    leader_epoch: int


class ReplicaFetcher:
    """The fetcher of a leader's partitions."""

    def __init__(self, leader: int, replicas: Replicas, quota: FollowerQuota) -> None:
        self.leader = leader
        self.replicas = replicas
        self.config = replicas.broker.config
        self.quota = quota
        self._states: dict[TopicIdPartition, FetchState] = {}
        self._sent: dict[TopicIdPartition, Sent] = {}
        self._in_flight = False
        self._idle_until: float | None = None
        """When something is due, while nothing changes; so that others' events cost nothing."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is fetched and nothing in flight."""
        return not self._states and not self._in_flight

    def add(self, partition: Partition) -> None:
        """Fetch a partition from now on."""
        self.wake()
        self._states[partition.key] = FetchState(partition)
        self._sent.pop(partition.key, None)

    def remove(self, key: TopicIdPartition) -> None:
        """Stop fetching a partition."""
        self.wake()
        self._states.pop(key, None)
        self._sent.pop(key, None)

    def wake(self) -> None:
        """Look at all partitions again: something changed."""
        self._idle_until = None

    # -- requests

    def next_deadline(self, now: float) -> float | None:
        """Return when there is something to send."""
        if self._in_flight:
            return None
        return self._due(now) if self._idle_until is None else self._idle_until

    def _due(self, now: float) -> float | None:
        due: list[float] = []
        for key, each in self._states.items():
            if each.partition.state is not State.FENCED:
                due.append(max(now, each.delayed_until, self._throttled_until(key, each, now)))
        return min(due, default=None)

    def request(self, now: float) -> tuple[int, Message] | None:
        """Build the next request with its version, if something is due."""
        if self._in_flight or (self._idle_until is not None and now < self._idle_until):
            return None
        for each in self._states.values():
            if each.partition.state is State.DELAYED and each.delayed_until <= now:
                each.partition.change(Trigger.BACKOFF_OVER)
                self.replicas.mark(each.partition.key)
        self._sent.clear()
        request = self._lookup() or self._fetch(now)
        self._in_flight = request is not None
        due = None if self._in_flight else self._due(now)
        self._idle_until = due if due is None or due > now else None
        return request

    def _lookup(self) -> tuple[int, Message] | None:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for key, each in self._states.items():
            if each.partition.state is not State.OUT_OF_RANGE:
                continue
            self._note(key, each)
            topics.setdefault(each.partition.topic, []).append(
                ListOffsetsPartition(
                    partition_index=key.partition,
                    current_leader_epoch=each.partition.leader_epoch,
                    timestamp=each.lookup,
                )
            )
        if not topics:
            return None
        body = ListOffsetsRequest(
            replica_id=self.replicas.broker.broker_id,
            topics=[ListOffsetsTopic(name=name, partitions=all_) for name, all_ in topics.items()],
        )
        return self.config.list_offsets_version, body

    def _fetch(self, now: float) -> tuple[int, Message] | None:
        topics: dict[TopicIdPartition, FetchTopic] = {}
        for key, each in self._states.items():
            if each.partition.state is not State.FETCHING:
                continue
            if self._throttled_until(key, each, now) > now:
                continue
            self._note(key, each)
            whole = TopicIdPartition(key.topic_id, 0)
            if whole not in topics:
                topics[whole] = FetchTopic(topic=each.partition.topic, topic_id=key.topic_id)
            topics[whole].partitions.append(self._partition(key, each.partition))
        if not topics:
            return None
        broker, version = self.replicas.broker, self.config.fetch_version
        body = FetchRequest(
            max_wait_ms=int(self.config.replica_fetch_wait_max * 1000),
            min_bytes=self.config.replica_fetch_min_bytes,
            max_bytes=self.config.replica_fetch_response_max_bytes,
            topics=list(topics.values()),
        )
        if version >= REPLICA_STATE_FROM:
            body.replica_state = ReplicaState(
                replica_id=broker.broker_id, replica_epoch=broker.epoch
            )
        else:
            body.replica_id = broker.broker_id
        return version, body

    def _note(self, key: TopicIdPartition, each: FetchState) -> None:
        self._sent[key] = Sent(each.partition.log.log_end_offset, each.partition.leader_epoch)

    def _partition(self, key: TopicIdPartition, partition: Partition) -> FetchPartition:
        log = partition.log
        return FetchPartition(
            partition=key.partition,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=log.latest_epoch,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=self.config.replica_fetch_max_bytes,
        )

    def _throttled_until(self, key: TopicIdPartition, each: FetchState, now: float) -> float:
        quota = self.quota.quota
        if key not in self.quota.partitions or each.lag == 0 or not quota.is_exceeded(now):
            return now
        return quota.paid_at(now)

    # -- responses

    def handle(self, body: Message | None, now: float) -> None:
        """Handle the response of the request in flight; None if there is none."""
        self._in_flight = False
        self.wake()
        if isinstance(body, FetchResponse) and not body.error_code:
            for topic in body.responses:
                for data in topic.partitions:
                    key = self.replicas.key_of(topic.topic, topic.topic_id, data.partition_index)
                    with suppress(LogOffline):
                        self._fetched(key, data, now)
        elif isinstance(body, ListOffsetsResponse):
            for one in body.topics:
                for result in one.partitions:
                    key = self.replicas.key_of(one.name, bytes(16), result.partition_index)
                    with suppress(LogOffline):
                        self._looked_up(key, result, now)
        else:
            for key in list(self._sent):
                self._delay(key, now)
        self._sent.clear()

    def _current(self, key: TopicIdPartition) -> FetchState | None:
        """Return the state of a partition if nothing changed since the request."""
        each, sent = self._states.get(key), self._sent.get(key)
        if each is None or sent is None:
            return None
        log, epoch = each.partition.log, each.partition.leader_epoch
        return each if sent == Sent(log.log_end_offset, epoch) else None

    def _fetched(self, key: TopicIdPartition, data: PartitionData, now: float) -> None:
        each = self._current(key)
        if each is None:
            return
        if data.error_code == E.OFFSET_OUT_OF_RANGE:
            each.lookup = LATEST
            each.partition.change(Trigger.LEFT_RANGE)
        elif data.error_code:
            self._failed(each, data.error_code, now)
        elif data.diverging_epoch.epoch >= 0:
            diverging = data.diverging_epoch
            each.partition.truncate_to_diverging(
                EpochEndOffset(diverging.epoch, diverging.end_offset)
            )
        else:
            before = each.partition.ends
            self._append(key, each, data, now)
            if each.partition.ends == before and each.partition.state is State.FETCHING:
                return
        self.replicas.mark(key)

    def _append(
        self, key: TopicIdPartition, each: FetchState, data: PartitionData, now: float
    ) -> None:
        records = data.records or b""
        try:
            each.partition.append_as_follower(
                records, data.high_watermark, max(0, data.log_start_offset)
            )
        except WireError:  # corrupt records: fetched again after the backoff, as in Kafka
            self._delay(key, now)
            return
        each.lag = max(0, data.high_watermark - each.partition.log.log_end_offset)
        if records:
            self._states[key] = self._states.pop(key)  # others first the next time
            if key in self.quota.partitions:
                self.quota.quota.record(len(records), now)

    def _looked_up(
        self, key: TopicIdPartition, response: ListOffsetsPartitionResponse, now: float
    ) -> None:
        """Truncate to the leader's end, or begin again at its start, as Kafka's fetcher."""
        each = self._current(key)
        if each is None or each.partition.state is not State.OUT_OF_RANGE:
            return
        log = each.partition.log
        self.replicas.mark(key)
        if response.error_code:
            self._failed(each, response.error_code, now)
        elif each.lookup == LATEST and response.offset >= log.log_end_offset:
            each.lookup = EARLIEST
        else:
            if each.lookup == LATEST:
                log.truncate_to(response.offset)
            elif response.offset > log.log_end_offset:
                log.truncate_fully_and_start_at(response.offset)
            each.partition.change(Trigger.FOUND_RANGE)

    def _failed(self, each: FetchState, error: int, now: float) -> None:
        if error == E.FENCED_LEADER_EPOCH:
            each.partition.change(Trigger.OLD_EPOCH)  # until newer metadata
        else:
            self._delay(each.partition.key, now)

    def _delay(self, key: TopicIdPartition, now: float) -> None:
        each = self._states.get(key)
        if each is None or each.partition.state not in (State.FETCHING, State.OUT_OF_RANGE):
            return
        each.delayed_until = now + self.config.replica_fetch_backoff
        each.partition.change(Trigger.FETCH_FAILED)
        self.replicas.mark(key)
