"""Handles Fetch of followers and consumers, at once or when enough bytes are there.

Followers read up to the log end, consumers up to the high watermark or the last stable offset,
from the leader or, with a rack, from a follower (KIP-392). Epochs are compared before offsets.
"""

# over 300 lines: one request, from what it reads to what it waits for

from __future__ import annotations

from typing import Final, NamedTuple

from ..messages.fetch_request import FetchPartition
from ..messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from ..metadata import TopicIdPartition
from ..protocol import ErrorCode
from .effects import Respond
from .fetch_params import (
    MEASURES,
    OFFSETS,
    Fetch,
    FetchParams,
    Target,
    preferred_read_replica,
)
from .log.replica_log import LogOffline
from .partition import Partition
from .purgatory import Purgatory
from .replicas import LAST_STABLE, Replicas, bound
from .throttling import ReplicationQuota

E = ErrorCode
MOVED: Final = frozenset({E.NOT_LEADER_OR_FOLLOWER, E.FENCED_LEADER_EPOCH})


EXPIRED_AT_ONCE: Final = 64
"""Fetches that are completed at their deadline before other clients are served."""
SHORTEST_WAIT: Final = 0.001
"""Seconds that the fetch of a throttled follower waits at least: at once is never."""


class Unchanged(NamedTuple):
    """A response, and until which change of the replicas it is the one to give."""

    response: FetchResponse
    changes: int


class Fetches:
    """The Fetch requests of a broker."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.config = replicas.broker.config
        self.quota = ReplicationQuota()
        self.throttled: frozenset[tuple[TopicIdPartition, int]] = frozenset()
        self.purgatory: Purgatory[int] = Purgatory()
        self._delayed: dict[int, Fetch] = {}
        self._unchanged: dict[int, Unchanged] = {}

    def fetch(self, token: int, fetch: Fetch, now: float) -> FetchResponse | None:
        """Respond to a Fetch; None if `Respond` follows."""
        if fetch.max_wait > 0 and fetch.needs_any and self._is_at_end(fetch):
            self._delay(token, fetch, now + fetch.max_wait)
            self._watch_offsets(token, fetch)
            return None
        response, size, is_urgent = self._read(fetch, now)
        waits = fetch.max_wait > 0 and bool(fetch.targets) and size < fetch.min_bytes
        if not waits or is_urgent:
            return response
        self._delay(token, fetch, self._deadline(fetch, now))
        if self.throttled:
            self._recheck(token, now)  # there may be bytes that were not read
            return None
        self._unchanged[token] = Unchanged(response, self.replicas.changes)
        if size:
            self._recheck(token, now)
        else:
            self._watch(token, fetch, fetch.min_bytes)
        return None

    def _delay(self, token: int, fetch: Fetch, deadline: float) -> None:
        self._delayed[token] = fetch
        self.purgatory.add(token, deadline)

    def _deadline(self, fetch: Fetch, now: float) -> float:
        """Return until when a fetch waits: a throttled one until the quota is paid, if earlier."""
        deadline = now + fetch.max_wait
        if not (self.throttled and fetch.params.is_from_follower and self.quota.is_exceeded(now)):
            return deadline
        hosted = (self.replicas.hosted.get(key) for key, _ in fetch.targets)
        if not any(each and self._is_throttled(each, fetch.params, now) for each in hosted):
            return deadline
        return min(deadline, max(self.quota.paid_at(now), now + SHORTEST_WAIT))

    def _is_at_end(self, fetch: Fetch) -> bool:
        """Whether a consumer has read all there is, and there is nothing else to say to it."""
        params = fetch.params
        for key, (_, _, requested) in fetch.targets:
            partition = self.replicas.hosted.get(key)
            if (
                partition is None
                or requested.fetch_offset != bound(partition.log, params.measure)
                or requested.last_fetched_epoch >= 0
                or partition.check(requested.current_leader_epoch, params.only_leader)
            ):
                return False
        return bool(fetch.targets) and not params.rack

    def check(self, partition: Partition, now: float) -> None:
        """Complete the delayed fetches of a changed partition that have enough now."""
        key, watched = partition.key, self.purgatory.watched
        for measure, offset in OFFSETS.items():
            if (key, offset) in watched:
                for token in self.purgatory.reached(key, offset, bound(partition.log, measure)):
                    self._recheck(token, now)
        if not watched:
            return
        for measure in MEASURES:
            if (key, measure) not in watched:
                continue
            grown = self.replicas.size_read(key, measure)
            for token in self.purgatory.reached(key, measure, grown):
                self._recheck(token, now)

    def leadership_changed(self, key: TopicIdPartition, now: float) -> None:
        """Complete the delayed fetches of a partition that got another leader or epoch."""
        for measure in (*OFFSETS.values(), *MEASURES):
            for token in self.purgatory.all_of(key, measure):
                self._complete(token, now)

    def advance(self, now: float) -> None:
        """Complete delayed fetches whose time is over; `next_deadline` is past if more are left."""
        for token in self.purgatory.take_expired(now, EXPIRED_AT_ONCE):
            unchanged = self._unchanged.get(token)
            if unchanged is not None and unchanged.changes == self.replicas.changes:
                self._respond(token, unchanged.response)
            else:
                self._respond(token, self._read(self._delayed[token], now)[0])

    def forget(self, token: int) -> bool:
        """Drop a delayed fetch; return whether there was one."""
        self._unchanged.pop(token, None)
        self.purgatory.remove(token)
        return self._delayed.pop(token, None) is not None

    def _recheck(self, token: int, now: float) -> None:
        """Complete a fetch, or let it wait until one partition has a share of what is missing."""
        fetch = self._delayed.get(token)
        if fetch is None:
            return None
        if fetch.needs_any:
            response, size, is_urgent = self._read(fetch, now)
            if size or is_urgent:
                self.purgatory.remove(token)
                return self._respond(token, response)
        self.purgatory.unwatch(token)
        missing = fetch.min_bytes
        for key, target in fetch.targets:
            available = self._available(key, target.requested, fetch.params, now)
            if available is None:
                return self._complete(token, now)
            missing -= available
        if missing <= 0:
            return self._complete(token, now)
        return self._watch(token, fetch, missing)

    def _watch(self, token: int, fetch: Fetch, missing: int) -> None:
        """Let a fetch wait until one partition has a share of so many bytes more, or any."""
        measure = fetch.params.measure
        if fetch.needs_any:
            return self._watch_offsets(token, fetch)
        share = -(-missing // len(fetch.targets))
        for key, _ in fetch.targets:
            grown = self.replicas.size_read(key, measure)
            self.purgatory.watch(token, key, measure, grown + share)
        return None

    def _watch_offsets(self, token: int, fetch: Fetch) -> None:
        """Let a fetch wait until any of its partitions has more than it requests."""
        measure = OFFSETS[fetch.params.measure]
        for key, (_, _, requested) in fetch.targets:
            self.purgatory.watch(token, key, measure, requested.fetch_offset + 1)

    def _available(
        self, key: TopicIdPartition, requested: FetchPartition, params: FetchParams, now: float
    ) -> int | None:
        """Return the bytes of a partition; None if it has something else to say.

        A throttled follower gets none, and its fetch waits for them as for bytes to come.
        """
        partition = self.replicas.hosted.get(key)
        if partition is None or partition.check(requested.current_leader_epoch, params.only_leader):
            return None
        end = bound(partition.log, params.measure)
        if requested.fetch_offset > partition.log.log_end_offset:
            return None
        if self.throttled and self._is_throttled(partition, params, now):
            return 0
        size = partition.log.size_between(requested.fetch_offset, end)
        return min(size, max(1, requested.partition_max_bytes))

    def _complete(self, token: int, now: float) -> None:
        if self.purgatory.remove(token):
            self._respond(token, self._read(self._delayed[token], now)[0])

    def _respond(self, token: int, response: FetchResponse) -> None:
        del self._delayed[token]
        self._unchanged.pop(token, None)
        self.replicas.effects.append(Respond(token, response))

    # -- reading

    def _read(self, fetch: Fetch, now: float) -> tuple[FetchResponse, int, bool]:
        """Return the response, its bytes, and whether it says something that must not wait."""
        room = min(fetch.max_bytes, self.config.fetch_max_bytes)
        topics: dict[tuple[str, bytes], FetchableTopicResponse] = {}
        size, is_urgent = 0, False
        params = fetch.params
        for key, target in fetch.targets:
            partition, data = self._read_target(key, target, params, room - size, size == 0, now)
            size += len(data.records or b"")
            if (
                data.error_code
                or data.diverging_epoch.epoch >= 0
                or data.preferred_read_replica >= 0
            ):
                is_urgent = True
            elif self.config.rack_aware and partition is not None:
                is_urgent |= self._has_news(partition, params, data)
            name = target[:2]
            topic = topics.get(name)
            if topic is None:
                topic = FetchableTopicResponse(topic=name[0], topic_id=name[1], partitions=[])
                topics[name] = topic
            topic.partitions.append(data)
        return FetchResponse(responses=list(topics.values())), size, is_urgent

    def _has_news(self, partition: Partition, params: FetchParams, data: PartitionData) -> bool:
        """Whether a follower does not know the high watermark yet, which consumers wait for."""
        replica = partition.followers.get(params.replica_id)
        if replica is None:
            return False
        news = data.high_watermark > replica.last_sent_high_watermark
        replica.last_sent_high_watermark = data.high_watermark
        return news

    def _read_target(
        self,
        key: TopicIdPartition,
        target: Target,
        params: FetchParams,
        room: int,
        first: bool,
        now: float,
    ) -> tuple[Partition | None, PartitionData]:
        """Read one partition, and note what a follower has."""
        topic, topic_id, requested = target
        partition = self.replicas.hosted.get(key)
        data = PartitionData(partition_index=requested.partition, high_watermark=-1, records=b"")
        if partition is None:
            _, error = self.replicas.find(topic, topic_id, requested.partition)
        else:
            error = partition.check(requested.current_leader_epoch, params.only_leader)
            if params.is_from_follower and not error:
                is_follower = params.replica_id in partition.followers
                error = E.NONE if is_follower else E.UNKNOWN_LEADER_EPOCH
            if error in MOVED:
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=partition.leader, leader_epoch=partition.leader_epoch
                )
        if partition is None or error:
            data.error_code = error
            return None, data
        try:
            self._read_partition(partition, requested, params, data, room, first, now)
        except LogOffline:
            data = PartitionData(
                partition_index=requested.partition,
                error_code=E.KAFKA_STORAGE_ERROR,
                high_watermark=-1,
                records=b"",
            )
        return partition, data

    def _read_partition(
        self,
        partition: Partition,
        requested: FetchPartition,
        params: FetchParams,
        data: PartitionData,
        room: int,
        first: bool,
        now: float,
    ) -> None:
        log, offset = partition.log, requested.fetch_offset
        start, diverging = log.log_start_offset, None
        if requested.last_fetched_epoch >= 0:
            diverging = self.diverging(partition, requested)
        if isinstance(diverging, EpochEndOffset) and offset >= start:
            data.diverging_epoch = diverging
        elif diverging is not None or not start <= offset <= log.log_end_offset:
            data.error_code = E.OFFSET_OUT_OF_RANGE
            return
        elif params.rack and (preferred := preferred_read_replica(partition, params, offset)):
            data.preferred_read_replica = preferred.broker_id
        elif offset < (end := bound(log, params.measure)) and not (
            self.throttled and self._is_throttled(partition, params, now)
        ):
            limit = min(requested.partition_max_bytes, max(0, room))
            data.records = log.read(offset, limit, end, first)
            if self.throttled:
                self._count(partition, params, len(data.records), now)
        if params.is_from_follower and data.diverging_epoch.epoch < 0:
            data.error_code = self._note_follower(partition, requested, params, now)
            if data.error_code:
                data.records = b""
                return
        data.high_watermark, data.log_start_offset = log.high_watermark, start
        data.last_stable_offset = log.last_stable_offset
        if params.measure == LAST_STABLE:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in log.aborted_transactions(offset, log.last_stable_offset)
            ]

    def _note_follower(
        self, partition: Partition, requested: FetchPartition, params: FetchParams, now: float
    ) -> ErrorCode:
        """Note what a follower has; mark the partition if that changes anything."""
        follower, start = params.replica_id, requested.log_start_offset
        before = partition.progress(follower)
        error = partition.update_follower(
            follower, requested.fetch_offset, start, params.replica_epoch, now
        )
        if partition.isr.is_pending or partition.progress(follower) != before:
            self.replicas.mark(partition.key)
        return error

    def diverging(
        self, partition: Partition, requested: FetchPartition
    ) -> EpochEndOffset | ErrorCode | None:
        """Return where the log of a fetcher diverges, None if it does not (KIP-595)."""
        end = partition.end_offset_for_epoch(requested.last_fetched_epoch)
        if end.end_offset < 0 or end.leader_epoch < 0:
            return E.OFFSET_OUT_OF_RANGE
        if (
            end.leader_epoch < requested.last_fetched_epoch
            or end.end_offset < requested.fetch_offset
        ):
            return EpochEndOffset(epoch=end.leader_epoch, end_offset=end.end_offset)
        return None

    # -- quotas of followers that are not in sync

    def _counts(self, partition: Partition, params: FetchParams) -> bool:
        return params.is_from_follower and (partition.key, params.replica_id) in self.throttled

    def _is_throttled(self, partition: Partition, params: FetchParams, now: float) -> bool:
        in_sync = params.replica_id in partition.isr.committed
        return self._counts(partition, params) and not in_sync and self.quota.is_exceeded(now)

    def _count(self, partition: Partition, params: FetchParams, size: int, now: float) -> None:
        if self._counts(partition, params):
            self.quota.record(size, now)
