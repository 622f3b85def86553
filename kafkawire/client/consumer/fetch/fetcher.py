"""Fetches records of the assigned partitions, ahead of the user's polls.

A partition is fetched only while it is assigned, has a valid position, is not paused and has
no buffered records, or those of one fetch that the user reads: so user and broker work at the same
time. Each broker has one fetch in flight, of all its fetchable partitions. A fetch that would only
wait for new data is not sent to a broker while records of that broker are buffered: they would be
consumed before the response. Records for an outdated position are dropped.

    positions ─▶ fetchable partitions, by leader ─▶ Fetch ─▶ fetch buffer ─▶ user
                                                      └▶ errors: FETCH_ERRORS
"""

# over 300 lines: one machine, requests and responses of Fetch

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ....messages.api_key import ApiKey
from ....messages.fetch_response import FetchResponse, PartitionData
from ....protocol.error_code import ErrorCode
from ...cluster import Broker, ClusterView
from ...network.backoff import Backoff, Rng
from ...requests import (
    NoResponse,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
    UpdateLeader,
)
from ..configuration import ConsumerConfig, IsolationLevel
from ..failures import ConsumerError, FetchFailed
from ..offsets.partition_state import FetchState, PartitionWarning, Position, PositionFailed
from ..offsets.positions import Positions
from ..partitions import TopicPartition
from .completed_fetch import CompletedFetch, without_progress
from .errors import SESSION_ERRORS, FetchError, fetch_error
from .fetch_buffer import FetchBuffer
from .sessions import MAX_VERSION_BY_NAME, FetchSession, PartitionFetch, SessionRequest, fetch

FetcherEffect = (
    SendRequest | RequestMetadataUpdate | UpdateLeader | PositionFailed | PartitionWarning
)
Effects: TypeAlias = list[FetcherEffect]

REQUEST_KEY: Final = "fetcher"
NO_NODE: Final = -1
EARLY_RESPONSES: Final = 10
"""Responses without records, and without the wait of a Fetch, after which a broker is paced."""
WARNED_FAILURES: Final = 3
"""Failures of a partition in a row after which the user is warned: a new leader takes fewer."""
PREFERRED_REPLICA_TTL_S: Final = 300.0
"""How long a preferred read replica is used before the leader is used again."""


class Fetcher:
    """The fetches of one consumer. fetch_buffer: the fetched records."""

    def __init__(
        self,
        config: ConsumerConfig,
        view: ClusterView,
        positions: Positions,
        *,
        owner: str,
        rng: Rng,
    ) -> None:
        self._config = config
        self._view = view
        self._positions = positions
        self._owner = owner
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._sessions: dict[int, FetchSession] = {}
        self._in_flight: dict[int, tuple[int, SessionRequest, float]] = {}
        self.fetch_buffer = FetchBuffer(positions)
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}
        self._node_retry: dict[int, float] = {}
        self._failures: dict[int, int] = {}
        self._early: dict[int, int] = {}
        """Responses in a row without records, sooner than fetch.max.wait.ms, by broker."""
        self._serial = 0
        self._next_hold: float | None = None
        self._leaderless: set[TopicPartition] = set()

    # -- requests

    def fetch(self, now: float) -> Effects:
        """Send a fetch to each broker that has fetchable partitions and no fetch in flight."""
        wanted: dict[int, dict[TopicPartition, PartitionFetch]] = {}
        leaderless: set[str] = set()
        self._next_hold = None
        for each, position in self._fetchable(now):
            node = self._node(each, now)
            if node == NO_NODE:
                leaderless.add(each.topic)
                self._leaderless.add(each)
                self._hold(each, now)
            elif node not in self._in_flight and self._node_retry.get(node, now) <= now:
                wanted.setdefault(node, {})[each] = self._partition_fetch(each, position)
        full = self._nodes_with_records(now) if wanted else frozenset()
        effects: Effects = [
            self._send_fetch(node, partitions, now)
            for node, partitions in sorted(wanted.items())
            if node not in full or any(self._has_lag(*each) for each in partitions.items())
        ]
        return effects + ([RequestMetadataUpdate(frozenset(leaderless))] if leaderless else [])

    def on_metadata_changed(self, now: float) -> None:
        """Stop the backoff of partitions that have a leader now."""
        wanted = {each for each in self._leaderless if each in self._positions}
        self._leaderless = {each for each in wanted if self._node(each, now) == NO_NODE}
        for each in wanted - self._leaderless:
            self._positions[each].hold_until = now

    def _nodes_with_records(self, now: float) -> frozenset[int]:
        """Return the brokers with buffered records that the user can read."""
        return frozenset(self._node(each, now) for each in self.fetch_buffer.readable())

    def _has_lag(self, partition: TopicPartition, fetch: PartitionFetch) -> bool:
        """Whether the partition has, or may have, records from the fetch offset on."""
        state = self._positions[partition]
        committed = self._config.isolation_level is IsolationLevel.READ_COMMITTED
        end = state.last_stable_offset if committed else state.high_watermark
        return end < 0 or fetch.fetch_offset < end

    def close(self) -> list[SendRequest]:
        """Close the fetch sessions, without waiting for responses."""
        effects: list[SendRequest] = []
        for node, session in self._sessions.items():
            request = session.close()
            if request is not None:
                body = fetch(self._config, request, by_id=session.by_id)
                key, timeout = (REQUEST_KEY, 0), self._config.request_timeout_s
                effects.append(SendRequest(self._owner, key, node, ApiKey.FETCH, body, timeout))
        self._sessions.clear()
        self.fetch_buffer.clear()
        return effects

    def next_deadline(self) -> float | None:
        """Return when a broker or partition may be fetched from again."""
        waiting = [at for node, at in self._node_retry.items() if node not in self._in_flight]
        return min((at for at in [*waiting, self._next_hold] if at is not None), default=None)

    def advance(self, now: float) -> Effects:
        self._node_retry = {node: at for node, at in self._node_retry.items() if at > now}
        return self.fetch(now)

    def _fetchable(self, now: float) -> Iterable[tuple[TopicPartition, Position]]:
        for each in self._positions:
            state = self._positions[each]
            if state.fetch_state is not FetchState.FETCHING or state.paused or state.failed:
                continue
            if state.hold_until > now:
                self._next_hold = min(self._next_hold or state.hold_until, state.hold_until)
            else:
                position = self.fetch_buffer.next_position(each)
                if position is not None:
                    yield each, position

    def _node(self, partition: TopicPartition, now: float) -> int:
        """Return the preferred read replica, else the leader (KIP-392)."""
        metadata = self._view.partition(*partition)
        if metadata is None:
            return NO_NODE
        replica, until = self._replicas.get(partition, (NO_NODE, 0.0))
        if replica != NO_NODE and now < until and replica in self._view.brokers:
            return replica
        return metadata.leader

    def _partition_fetch(self, partition: TopicPartition, position: Position) -> PartitionFetch:
        metadata = self._view.partition(*partition)
        topic = self._view.topics.get(partition.topic)
        assert metadata is not None
        assert topic is not None
        return PartitionFetch(topic.topic_id, position.offset, metadata.leader_epoch)

    def _send_fetch(
        self, node: int, wanted: Mapping[TopicPartition, PartitionFetch], now: float
    ) -> SendRequest:
        session = self._sessions.setdefault(node, FetchSession())
        request = session.next(wanted)
        self._serial += 1
        self._in_flight[node] = self._serial, request, now
        body = fetch(self._config, request, by_id=session.by_id)
        key = REQUEST_KEY, self._serial
        timeout = self._config.request_timeout_s + self._config.fetch_max_wait_s
        return SendRequest(self._owner, key, node, ApiKey.FETCH, body, timeout)

    # -- responses

    def handle(self, event: ResponseReceived | NoResponse, now: float) -> Effects:
        """Handle the response to a fetch."""
        node = event.request.to
        assert isinstance(node, int)
        assert isinstance(event.request.key, tuple)
        serial, request, sent_at = self._in_flight.get(node, (0, None, now))
        if request is None or serial != event.request.key[1]:
            return []
        del self._in_flight[node]
        if isinstance(event, NoResponse):
            return self._on_no_response(node, event, request, now)
        assert isinstance(event.message, FetchResponse)
        if event.message.error_code != ErrorCode.NONE:
            return self._on_error(node, event.message.error_code, request, now)
        self._failures.pop(node, None)
        self._pace(node, event.message, sent_at, now)
        return self._on_response(node, event.message, event.version, request, now)

    def _on_no_response(
        self, node: int, event: NoResponse, request: SessionRequest, now: float
    ) -> Effects:
        self._sessions[node].on_no_response()
        if not event.retriable:
            reason = f"FETCH: {event.reason.value} {event.detail}".rstrip()
            return self._fail(
                request.partitions, FetchFailed(reason, event.code, request.partitions)
            )
        self._back_off(node, now)
        return [RequestMetadataUpdate(frozenset(each.topic for each in request.partitions))]

    def _on_error(self, node: int, code: int, request: SessionRequest, now: float) -> Effects:
        self._sessions[node].on_error(code)
        if code in SESSION_ERRORS and node not in self._failures:
            self._failures[node] = 1
            return self.fetch(now)
        if fetch_error(code) is FetchError.FAIL:
            error = FetchFailed("fetch failed", code, request.partitions)
            return self._fail(request.partitions, error)
        self._back_off(node, now)
        return [RequestMetadataUpdate(frozenset(each.topic for each in request.partitions))]

    def _pace(self, node: int, response: FetchResponse, sent_at: float, now: float) -> None:
        """Slow down for a broker that keeps responding without records and without waiting."""
        empty = not any(data.records for topic in response.responses for data in topic.partitions)
        early = now - sent_at < self._config.fetch_max_wait_s / 2
        self._early[node] = self._early.get(node, 0) + 1 if empty and early else 0
        extra = self._early[node] - EARLY_RESPONSES
        if extra > 0:
            self._node_retry[node] = now + self._backoff.after(extra, self._rng)

    def _on_response(
        self, node: int, response: FetchResponse, version: int, request: SessionRequest, now: float
    ) -> Effects:
        session = self._sessions[node]
        session.on_response(response)
        effects: Effects = []
        for topic in response.responses:
            name = session.name(topic.topic_id) if version > MAX_VERSION_BY_NAME else topic.topic
            for data in topic.partitions:
                partition = TopicPartition(name or "", data.partition_index)
                requested = request.partitions.get(partition)
                if requested is None or partition not in self._positions:
                    continue
                if data.error_code == ErrorCode.NONE:
                    effects += self._on_data(partition, data, requested, version, now)
                else:
                    endpoints = tuple(
                        Broker(each.node_id, each.host, each.port, each.rack)
                        for each in response.node_endpoints
                    )
                    effects += self._on_partition_error(
                        partition, data, requested, node, endpoints, now
                    )
        return effects

    def _on_data(
        self,
        partition: TopicPartition,
        data: PartitionData,
        requested: PartitionFetch,
        version: int,
        now: float,
    ) -> Effects:
        state = self._positions[partition]
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            self._replicas[partition] = data.preferred_read_replica, now + PREFERRED_REPLICA_TTL_S
        start = self._start_of(partition, requested)
        if not data.records:
            state.failures = 0
        if not data.records or start is None:
            return []
        committed = self._config.isolation_level is IsolationLevel.READ_COMMITTED
        aborted = (data.aborted_transactions or []) if committed else None
        check = self._config.check_crcs
        stuck = without_progress(data.records, start.offset, version)
        if stuck:
            return self._fail_at(start.offset, FetchFailed(stuck, partitions=[partition]), now)
        state.failures = 0
        self.fetch_buffer.put(
            CompletedFetch(partition, start, data.records, aborted, check_crcs=check)
        )
        return []

    def _start_of(self, partition: TopicPartition, requested: PartitionFetch) -> Position | None:
        """Return where the records of a response begin; None if that is outdated."""
        position = self._positions[partition].position
        if position is None or position.offset != requested.fetch_offset:
            position = self.fetch_buffer.next_position(partition)
        return (
            position if position is not None and position.offset == requested.fetch_offset else None
        )

    def _on_partition_error(
        self,
        partition: TopicPartition,
        data: PartitionData,
        requested: PartitionFetch,
        node: int,
        endpoints: tuple[Broker, ...],
        now: float,
    ) -> Effects:
        code = data.error_code
        action = fetch_error(code)
        self._hold(partition, now)
        follower = self._replicas.pop(partition, (NO_NODE, 0.0))[0]
        if action is FetchError.OUT_OF_RANGE:
            if node == follower:  # it may lag behind the leader, which is fetched from next
                return []
            return [*self._positions.out_of_range(partition, requested.fetch_offset)]
        if action is FetchError.FAIL:
            error = FetchFailed("cannot fetch partition", code, [partition])
            return self._fail_at(requested.fetch_offset, error, now)
        effects: Effects = []
        if self._positions[partition].failures == WARNED_FAILURES:
            error = FetchFailed("fetch keeps failing", code, [partition])
            effects.append(PartitionWarning(error))
        if action is FetchError.RETRY:
            return effects
        if data.current_leader.leader_id >= 0:
            leader, epoch = data.current_leader.leader_id, data.current_leader.leader_epoch
            effects.append(UpdateLeader(*partition, leader, epoch, endpoints))
        return [*effects, RequestMetadataUpdate(frozenset({partition.topic}))]

    def _fail(self, partitions: Iterable[TopicPartition], error: ConsumerError) -> Effects:
        """Stop fetching until the next poll, which raises the error."""
        for each in partitions:
            if each in self._positions:
                self._positions[each].failed = True
        return [PositionFailed(error)]

    def _fail_at(self, offset: int, error: FetchFailed, now: float) -> Effects:
        """Fail a partition at its position; ahead of it, fetch again later: records come first."""
        partition = error.partitions[0]
        position = self._positions[partition].position
        if position is not None and position.offset == offset:
            return self._fail([partition], error)
        self._hold(partition, now)
        return []

    def _hold(self, partition: TopicPartition, now: float) -> None:
        state = self._positions[partition]
        state.failures += 1
        state.hold_until = now + self._backoff.after(state.failures, self._rng)
        self._next_hold = min(self._next_hold or state.hold_until, state.hold_until)

    def _back_off(self, node: int, now: float) -> None:
        self._failures[node] = self._failures.get(node, 0) + 1
        self._node_retry[node] = now + self._backoff.after(self._failures[node], self._rng)
