"""Records fetched ahead of the user, from the leaders of what is assigned.

Law: a partition is fetched only while it is ours, has a valid position, is not paused, and nothing
of it is waiting; each broker has one fetch in flight, and all that it leads goes into it. No fetch
that a broker would hold for want of data is sent while something else of that broker waits: what
waits would be used up before the answer comes. What arrives for a position that is no longer the
user's is dropped.

    positions ─▶ fetchable, by leader ─▶ Fetch ─▶ shelf ─▶ the user
                                            └▶ errors: FETCH_ERRORS
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ....messages.api_key import ApiKey
from ....messages.fetch_response import FetchResponse, PartitionData
from ....protocol.error_code import ErrorCode
from ....records import RecordBatches
from ...network.backoff import Backoff, Rng
from ...network.cluster import Broker, ClusterView
from ...requests import (
    NoResponse,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
    UpdateLeader,
)
from ..configuration import ConsumerConfig, IsolationLevel
from ..failures import ConsumerError, FetchFailed
from ..offsets.partition_state import FetchState, PositionFailed
from ..offsets.positions import Positions
from ..partitions import TopicPartition
from .completed_fetch import CompletedFetch
from .errors import SESSION_ERRORS, FetchError, fetch_error
from .fetch_buffer import FetchBuffer
from .sessions import NEWEST_BY_NAME, FetchSession, SessionRequest, Wanted, fetch

Effects: TypeAlias = list[object]

PART: Final = "fetcher"
NOBODY: Final = -1
SINCE_WHOLE_BATCHES: Final = 3
"""Since this version of Fetch, a batch larger than the limits comes all the same (KIP-74)."""
REPLICA_AGE_S: Final = 300.0
"""How long a follower that a leader named is read from before the leader is asked again."""


class Fetcher:
    """The fetches of one consumer; shelf: what they brought."""

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
        self._in_flight: dict[int, tuple[int, SessionRequest]] = {}
        self.fetch_buffer = FetchBuffer(positions)
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}
        self._node_retry: dict[int, float] = {}
        self._failures: dict[int, int] = {}
        self._serial = 0
        self._held: float | None = None
        self._leaderless: set[TopicPartition] = set()

    # -- asking

    def fetch(self, now: float) -> Effects:
        """Ask for all that may be fetched now, at each broker that has no fetch in flight."""
        wanted: dict[int, dict[TopicPartition, Wanted]] = {}
        leaderless: set[str] = set()
        self._held = None
        for each in self._fetchable(now):
            node = self._node(each, now)
            if node == NOBODY:
                leaderless.add(each.topic)
                self._leaderless.add(each)
                self._hold(each, now)
            elif node not in self._in_flight and self._node_retry.get(node, now) <= now:
                wanted.setdefault(node, {})[each] = self._wanted(each)
        full = self._full_nodes(now) if wanted else frozenset()
        effects: Effects = [
            self._ask(node, what)
            for node, what in sorted(wanted.items())
            if node not in full or any(self._lags(each) for each in what)
        ]
        return effects + ([RequestMetadataUpdate(frozenset(leaderless))] if leaderless else [])

    def look_around(self, now: float) -> None:
        """Take in that the picture of the cluster is newer: what had no leader need not wait."""
        wanted = {each for each in self._leaderless if each in self._positions}
        self._leaderless = {each for each in wanted if self._node(each, now) == NOBODY}
        for each in wanted - self._leaderless:
            self._positions[each].hold_until = now

    def _full_nodes(self, now: float) -> frozenset[int]:
        """Find the brokers of whose partitions something waits for the user."""
        return frozenset(self._node(each, now) for each in self.fetch_buffer.readable())

    def _lags(self, partition: TopicPartition) -> bool:
        """Whether there is more to read, or may be for all that is known."""
        place = self._positions[partition]
        committed = self._config.isolation_level is IsolationLevel.READ_COMMITTED
        end = place.last_stable_offset if committed else place.high_watermark
        return end < 0 or place.position is None or place.position.offset < end

    def close(self) -> Effects:
        """End the sessions; nobody waits for the answers."""
        effects: Effects = []
        for node, session in self._sessions.items():
            request = session.close()
            if request is not None:
                body = fetch(self._config, request, by_id=session.by_id)
                key, timeout = (PART, 0), self._config.request_timeout_s
                effects.append(SendRequest(self._owner, key, node, ApiKey.FETCH, body, timeout))
        self._sessions.clear()
        self.fetch_buffer.clear()
        return effects

    def next_deadline(self) -> float | None:
        """Say when a broker or partition may be asked again."""
        waiting = [at for node, at in self._node_retry.items() if node not in self._in_flight]
        return min((at for at in [*waiting, self._held] if at is not None), default=None)

    def advance(self, now: float) -> Effects:
        self._node_retry = {node: at for node, at in self._node_retry.items() if at > now}
        return self.fetch(now)

    def _fetchable(self, now: float) -> Iterable[TopicPartition]:
        waiting = self.fetch_buffer.partitions
        for each in self._positions:
            place = self._positions[each]
            if place.state is not FetchState.FETCHING or place.paused or place.failed:
                continue
            if place.hold_until > now:
                self._held = min(self._held or place.hold_until, place.hold_until)
            elif each not in waiting:
                yield each

    def _node(self, partition: TopicPartition, now: float) -> int:
        """Choose whom to ask: the follower that the leader named, else the leader (KIP-392)."""
        replica, until = self._replicas.get(partition, (NOBODY, 0.0))
        if replica != NOBODY and now < until and replica in self._view.brokers:
            return replica
        known = self._view.partition(*partition)
        return NOBODY if known is None else known.leader

    def _wanted(self, partition: TopicPartition) -> Wanted:
        known = self._view.partition(*partition)
        topic = self._view.topics.get(partition.topic)
        position = self._positions[partition].position
        assert known is not None
        assert topic is not None
        assert position is not None
        return Wanted(topic.topic_id, position.offset, known.leader_epoch)

    def _ask(self, node: int, wanted: Mapping[TopicPartition, Wanted]) -> SendRequest:
        session = self._sessions.setdefault(node, FetchSession())
        request = session.next(wanted)
        self._serial += 1
        self._in_flight[node] = self._serial, request
        body = fetch(self._config, request, by_id=session.by_id)
        key = PART, self._serial
        timeout = self._config.request_timeout_s + self._config.fetch_max_wait_s
        return SendRequest(self._owner, key, node, ApiKey.FETCH, body, timeout)

    # -- what comes back

    def handle(self, event: ResponseReceived | NoResponse, now: float) -> Effects:
        """Take the answer to a fetch."""
        node = event.request.to
        assert isinstance(node, int)
        assert isinstance(event.request.key, tuple)
        serial, request = self._in_flight.get(node, (0, None))
        if request is None or serial != event.request.key[1]:
            return []
        del self._in_flight[node]
        if isinstance(event, NoResponse):
            return self._lost(node, event, request, now)
        assert isinstance(event.message, FetchResponse)
        if event.message.error_code != ErrorCode.NONE:
            return self._refused(node, event.message.error_code, request, now)
        self._failures.pop(node, None)
        return self._take_in(node, event.message, event.version, request, now)

    def _lost(self, node: int, event: NoResponse, request: SessionRequest, now: float) -> Effects:
        self._sessions[node].lost()
        if not event.retriable:
            why = f"FETCH: {event.reason.value} {event.detail}".rstrip()
            return self._fail(request.everything, FetchFailed(why, event.code, request.everything))
        self._back_off(node, now)
        return [RequestMetadataUpdate(frozenset(each.topic for each in request.everything))]

    def _refused(self, node: int, code: int, request: SessionRequest, now: float) -> Effects:
        self._sessions[node].refused(code)
        if code in SESSION_ERRORS:
            return self.fetch(now)
        if fetch_error(code) is FetchError.FAIL:
            why = FetchFailed("a broker refused to be read from", code, request.everything)
            return self._fail(request.everything, why)
        self._back_off(node, now)
        return [RequestMetadataUpdate(frozenset(each.topic for each in request.everything))]

    def _take_in(
        self, node: int, response: FetchResponse, version: int, request: SessionRequest, now: float
    ) -> Effects:
        session = self._sessions[node]
        session.accepted(response)
        effects: Effects = []
        for topic in response.responses:
            name = session.name(topic.topic_id) if version > NEWEST_BY_NAME else topic.topic
            for data in topic.partitions:
                partition = TopicPartition(name or "", data.partition_index)
                asked = request.everything.get(partition)
                if asked is None or partition not in self._positions:
                    continue
                if data.error_code == ErrorCode.NONE:
                    effects += self._take_data(partition, data, asked, version, now)
                else:
                    endpoints = tuple(
                        Broker(each.node_id, each.host, each.port, each.rack)
                        for each in response.node_endpoints
                    )
                    effects += self._error(partition, data, asked, node, endpoints, now)
        return effects

    def _take_data(
        self,
        partition: TopicPartition,
        data: PartitionData,
        asked: Wanted,
        version: int,
        now: float,
    ) -> Effects:
        place = self._positions[partition]
        place.high_watermark = data.high_watermark
        place.last_stable_offset = data.last_stable_offset
        place.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            self._replicas[partition] = data.preferred_read_replica, now + REPLICA_AGE_S
        at = place.position
        if not data.records or at is None or at.offset != asked.fetch_offset:
            return []
        committed = self._config.isolation_level is IsolationLevel.READ_COMMITTED
        aborted = (data.aborted_transactions or []) if committed else None
        check = self._config.check_crcs
        self.fetch_buffer.put(
            CompletedFetch(partition, at, data.records, aborted, check_crcs=check)
        )
        if version < SINCE_WHOLE_BATCHES and RecordBatches(data.records).cut_tail == len(
            data.records
        ):
            self.fetch_buffer.drop([partition])
            why = f"the record at {at.offset} is larger than max.partition.fetch.bytes"
            return self._fail([partition], FetchFailed(why, partitions=[partition]))
        return []

    def _error(
        self,
        partition: TopicPartition,
        data: PartitionData,
        asked: Wanted,
        node: int,
        endpoints: tuple[Broker, ...],
        now: float,
    ) -> Effects:
        code = data.error_code
        what = fetch_error(code)
        self._hold(partition, now)
        follower = self._replicas.pop(partition, (NOBODY, 0.0))[0]
        if what is FetchError.OUT_OF_RANGE:
            if node == follower:  # it may lag behind the leader, who is asked next
                return []
            return self._positions.out_of_range(partition, asked.fetch_offset)
        if what is FetchError.FAIL:
            why = FetchFailed("a partition cannot be read", code, [partition])
            return self._fail([partition], why)
        if what is FetchError.AGAIN:
            return []
        effects: Effects = [RequestMetadataUpdate(frozenset({partition.topic}))]
        if data.current_leader.leader_id >= 0:
            leader, epoch = data.current_leader.leader_id, data.current_leader.leader_epoch
            effects.insert(0, UpdateLeader(*partition, leader, epoch, endpoints))
        return effects

    def _fail(self, partitions: Iterable[TopicPartition], error: ConsumerError) -> Effects:
        """Stop reading until the next poll, which tells the user."""
        for each in partitions:
            if each in self._positions:
                self._positions[each].failed = True
        return [PositionFailed(error)]

    def _hold(self, partition: TopicPartition, now: float) -> None:
        place = self._positions[partition]
        place.hold_until = now + self._backoff.after(1, self._rng)
        self._held = min(self._held or place.hold_until, place.hold_until)

    def _back_off(self, node: int, now: float) -> None:
        self._failures[node] = self._failures.get(node, 0) + 1
        self._node_retry[node] = now + self._backoff.after(self._failures[node], self._rng)
