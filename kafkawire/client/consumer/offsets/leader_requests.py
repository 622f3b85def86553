"""Sends lookups about partitions to their leaders.

A lookup completes once: when every partition has a result or a fatal error, or at its
deadline. Retriable errors (no leader, a new leader, no response) are retried with new metadata.

    RequestFromLeaders(key, lookup, {partition: wanted}) ─▶ a request per leader ─▶ LeadersResponded
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

from ....messages.api_key import ApiKey
from ....protocol.error_code import ErrorCode
from ...cluster import ClusterView
from ...network.backoff import Backoff, Rng
from ...network.metadata import with_cause
from ...requests import (
    Body,
    MetadataChanged,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
)
from ..configuration import ConsumerConfig
from ..failures import ConsumerError, LookupFailed, RequestTimedOut
from ..partitions import NO_EPOCH, EpochEnd, OffsetAndTimestamp, TopicPartition

REQUEST_KEY: Final = "leaders"


class Pending(Enum):
    """A result that is not known yet."""

    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class PartitionLookup:
    """What to look up in one partition: a timestamp or epoch, and the known leader epoch."""

    wanted: int
    current_leader_epoch: int


LookupResult: TypeAlias = OffsetAndTimestamp | EpochEnd | ConsumerError | Pending | None
"""A lookup's result of one partition; None: no record is that late."""


class Lookup(Protocol):
    """A kind of lookup that leaders respond to."""

    @property
    def api(self) -> ApiKey: ...

    def body(self, lookups: Mapping[TopicPartition, PartitionLookup]) -> Body:
        """Build the request to one leader."""
        ...

    def read(self, event: ResponseReceived) -> Iterable[tuple[TopicPartition, LookupResult]]:
        """Read the leader's response."""
        ...

    def unsupported(self, partition: TopicPartition) -> LookupResult:
        """Return the result where the broker does not support the request."""
        ...


@dataclass(frozen=True, slots=True)
class RequestFromLeaders:
    """Look up partitions at their leaders.

    wanted: the timestamp or epoch per partition. deadline: in monotonic seconds, None for none.
    """

    key: Hashable
    lookup: Lookup
    wanted: Mapping[TopicPartition, int]
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class LeadersResponded:
    """The end of a RequestFromLeaders. results: of all others than those of `failed`."""

    key: Hashable
    results: Mapping[TopicPartition, LookupResult]
    failed: Mapping[TopicPartition, ConsumerError]


LeadersEffect = SendRequest | RequestMetadataUpdate | LeadersResponded
Effects: TypeAlias = list[LeadersEffect]


def lookup_error(code: int, partition: TopicPartition, reason: str) -> ConsumerError | Pending:
    """Return Pending for a retriable error, else a LookupFailed."""
    if code in list(ErrorCode) and ErrorCode(code).retriable:
        return Pending.RETRY
    return LookupFailed(reason, code, [partition])


@dataclass(slots=True)
class _PendingLookups:
    """A lookup in progress. remaining: partitions without a result. in_flight: their requests."""

    event: RequestFromLeaders
    remaining: dict[TopicPartition, int]
    results: dict[TopicPartition, LookupResult] = field(default_factory=dict)
    failed: dict[TopicPartition, ConsumerError] = field(default_factory=dict)
    in_flight: dict[TopicPartition, int] = field(default_factory=dict)


class LeaderRequests:
    """The lookups of one consumer."""

    def __init__(self, config: ConsumerConfig, view: ClusterView, *, owner: str, rng: Rng) -> None:
        self._config = config
        self._view = view
        self._owner = owner
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._pending: dict[Hashable, _PendingLookups] = {}
        self._failures = 0
        self._serial = 0
        self._retry_at: float | None = None
        self._waiting_for_leader = False  # whether retries only wait for leaders

    def handle(
        self,
        event: RequestFromLeaders | ResponseReceived | NoResponse | MetadataChanged,
        now: float,
    ) -> Effects:
        """Handle a RequestFromLeaders, a response, or MetadataChanged."""
        match event:
            case RequestFromLeaders():
                self._pending[event.key] = _PendingLookups(event, dict(event.wanted))
            case ResponseReceived():
                return self._on_response(event, now)
            case NoResponse():
                return self._on_no_response(event, now)
            case MetadataChanged() if self._waiting_for_leader and self._any_leader_known():
                self._retry_at = None
        return self._send_all(now)

    def forget(self, key: Hashable) -> None:
        """Cancel a lookup."""
        self._pending.pop(key, None)

    def next_deadline(self) -> float | None:
        times = [each.event.deadline for each in self._pending.values()]
        return min((at for at in [*times, self._retry_at] if at is not None), default=None)

    def advance(self, now: float) -> Effects:
        effects: Effects = []
        if self._retry_at is not None and self._retry_at <= now:
            self._retry_at = None
            effects += self._send_all(now)
        for each in list(self._pending.values()):
            deadline = each.event.deadline
            if deadline is not None and deadline <= now:
                reason = with_cause("no response from the leader in time", self._view.last_error)
                timed_out = RequestTimedOut(reason, partitions=each.remaining)
                each.failed |= dict.fromkeys(each.remaining, timed_out)
                each.remaining.clear()
                effects += self._complete(each)
        return effects

    def _send_all(self, now: float) -> Effects:
        effects: Effects = []
        for each in list(self._pending.values()):
            effects += self._send(each, now) if each.remaining else self._complete(each)
        return effects

    def _send(self, pending: _PendingLookups, now: float) -> Effects:
        """Send requests for all remaining partitions that are not in flight."""
        if self._retry_at is not None:
            return []
        by_leader: dict[int, list[TopicPartition]] = {}
        leaderless: set[str] = set()
        for each in pending.remaining.keys() - pending.in_flight.keys():
            metadata = self._view.partition(*each)
            if metadata is None or metadata.leader < 0:
                leaderless.add(each.topic)
            else:
                by_leader.setdefault(metadata.leader, []).append(each)
        effects: Effects = [
            self._request(pending, leader, partitions)
            for leader, partitions in sorted(by_leader.items())
        ]
        if not leaderless:
            return effects
        self._waiting_for_leader = True
        return effects + self._retry_later(frozenset(leaderless), now)

    def _retry_later(self, topics: frozenset[str], now: float) -> Effects:
        """Retry after a backoff, with new metadata of these topics."""
        self._failures += 1
        if self._retry_at is None:
            self._retry_at = now + self._backoff.after(self._failures, self._rng)
        return [RequestMetadataUpdate(topics)]

    def _any_leader_known(self) -> bool:
        """Whether the leader of a partition that is not in flight is known now."""
        return any(
            (known := self._view.partition(*each)) is not None and known.leader >= 0
            for pending in self._pending.values()
            for each in pending.remaining.keys() - pending.in_flight.keys()
        )

    def _request(
        self, pending: _PendingLookups, leader: int, partitions: list[TopicPartition]
    ) -> SendRequest:
        self._serial += 1
        pending.in_flight |= dict.fromkeys(partitions, self._serial)
        lookups = {
            each: PartitionLookup(pending.remaining[each], self._epoch(each)) for each in partitions
        }
        lookup = pending.event.lookup
        key = REQUEST_KEY, self._serial, pending.event.key
        timeout = self._config.request_timeout_s
        return SendRequest(self._owner, key, leader, lookup.api, lookup.body(lookups), timeout)

    def _epoch(self, partition: TopicPartition) -> int:
        metadata = self._view.partition(*partition)
        return NO_EPOCH if metadata is None else metadata.leader_epoch

    def _on_response(self, event: ResponseReceived, now: float) -> Effects:
        pending, in_flight = self._find(event)
        if pending is None:
            return []
        for partition, result in pending.event.lookup.read(event):
            if partition in in_flight:
                self._complete_partition(pending, partition, result)
        # partitions that are missing in the response are retried too
        late = {partition.topic for partition in in_flight & pending.remaining.keys()}
        if late:
            self._waiting_for_leader = False
            return self._retry_later(frozenset(late), now)
        self._failures = 0
        return self._send_all(now)

    def _on_no_response(self, event: NoResponse, now: float) -> Effects:
        pending, in_flight = self._find(event)
        if pending is None:
            return []
        if event.retriable:
            self._waiting_for_leader = False
            return self._retry_later(frozenset(each.topic for each in in_flight), now)
        reason = f"{event.request.api.name}: {event.reason.value} {event.detail}".rstrip()
        for each in in_flight:
            result: LookupResult = LookupFailed(reason, event.code, [each])
            if event.reason is Reason.NO_VERSION:
                result = pending.event.lookup.unsupported(each)
            self._complete_partition(pending, each, result)
        return self._send_all(now)

    def _find(
        self, event: ResponseReceived | NoResponse
    ) -> tuple[_PendingLookups | None, set[TopicPartition]]:
        """Return the lookup of a request and its partitions, which are no longer in flight."""
        assert isinstance(event.request.key, tuple)
        _, serial, key = event.request.key
        pending = self._pending.get(key)
        if pending is None:
            return None, set()
        in_flight = {each for each, number in pending.in_flight.items() if number == serial}
        for each in in_flight:
            del pending.in_flight[each]
        return pending if in_flight else None, in_flight

    def _complete_partition(
        self, pending: _PendingLookups, partition: TopicPartition, result: LookupResult
    ) -> None:
        if result is Pending.RETRY or partition not in pending.remaining:
            return
        if isinstance(result, ConsumerError):
            pending.failed[partition] = result
        else:
            pending.results[partition] = result
        del pending.remaining[partition]

    def _complete(self, pending: _PendingLookups) -> Effects:
        if self._pending.get(pending.event.key) is not pending:
            return []
        del self._pending[pending.event.key]
        return [LeadersResponded(pending.event.key, pending.results, pending.failed)]
