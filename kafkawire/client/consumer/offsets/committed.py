"""Fetches the committed offsets of a group (OffsetFetch).

Each lookup completes once: with the committed offset of every partition, with a fatal error,
or at its deadline.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from ....messages.api_key import ApiKey
from ....messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ....messages.offset_fetch_response import OffsetFetchResponse
from ....primitives import Message
from ....protocol.error_code import ErrorCode
from ...network.backoff import Backoff, Rng
from ...requests import (
    Coordinator,
    CoordinatorKind,
    ForgetCoordinator,
    NoResponse,
    ResponseReceived,
    SendRequest,
    Varying,
)
from ..configuration import ConsumerConfig, IsolationLevel
from ..failures import ConsumerError, LookupFailed, RequestTimedOut
from ..group.requests import Identity
from ..partitions import OffsetAndMetadata, TopicPartition, by_topic
from .committing import COORDINATOR_ERRORS, MAX_VERSION_BY_NAME, RETRIABLE_ERRORS

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata | None]

REQUEST_KEY: Final = "committed"
MIN_VERSION: Final = 1
"""Version 0 reads offsets from ZooKeeper."""
STABLE_VERSION: Final = 7
GROUPS_VERSION: Final = 8
MEMBER_VERSION: Final = 9
NOT_COMMITTED: Final = -1
UNSTABLE: Final = ErrorCode.UNSTABLE_OFFSET_COMMIT
MEMBER_ERRORS: Final = frozenset({ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
"""Errors of an epoch that a heartbeat on its way replaces, or ends with the assignment."""
NO_SUCH_TOPIC: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(frozen=True, slots=True)
class FetchCommitted:
    """Fetch committed offsets. deadline: in monotonic seconds; None for none."""

    key: Hashable
    partitions: tuple[TopicPartition, ...]
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class CommittedFetched:
    """The result of a FetchCommitted. offsets: None where nothing is committed; empty on error."""

    key: Hashable
    offsets: Offsets
    error: ConsumerError | None = None


CommittedEffect = SendRequest | ForgetCoordinator | CommittedFetched
Effects: TypeAlias = list[CommittedEffect]


class CommittedOffsets:
    """The lookups of committed offsets of one consumer."""

    def __init__(self, config: ConsumerConfig, *, owner: str, rng: Rng) -> None:
        self._config = config
        self._group_id = config.group_id or ""
        self._coordinator = Coordinator(CoordinatorKind.GROUP, self._group_id)
        self._owner = owner
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._pending: dict[Hashable, FetchCommitted] = {}
        self._in_flight: dict[Hashable, int] = {}
        self._serial = 0
        self._failures = 0
        self._retry_at: float | None = None
        self._member = Identity()

    def handle(self, event: FetchCommitted | ResponseReceived | NoResponse, now: float) -> Effects:
        """Handle a FetchCommitted, or the response to one."""
        match event:
            case FetchCommitted():
                self._pending[event.key] = event
                return self._send(now)
            case ResponseReceived() | NoResponse():
                assert isinstance(event.request.key, tuple)
                _, serial, key = event.request.key
                if self._in_flight.get(key) != serial:
                    return []
                del self._in_flight[key]
                request = self._pending[key]
                return self._on_response(request, event, now)

    def forget(self, key: Hashable) -> None:
        """Cancel a lookup."""
        self._pending.pop(key, None)
        self._in_flight.pop(key, None)

    def on_member_epoch(self, identity: Identity) -> None:
        """Let lookups carry the member's epoch (KIP-848); outside of the group they carry none."""
        self._member = identity

    def next_deadline(self) -> float | None:
        times = [each.deadline for each in self._pending.values()]
        return min((at for at in [*times, self._retry_at] if at is not None), default=None)

    def advance(self, now: float) -> Effects:
        effects: Effects = []
        for each in list(self._pending.values()):
            if each.deadline is not None and each.deadline <= now:
                timed_out = RequestTimedOut("timed out while fetching committed offsets")
                effects += self._complete(each, {}, timed_out)
        if self._retry_at is not None and self._retry_at <= now:
            self._retry_at = None
            effects += self._send(now)
        return effects

    def _send(self, _now: float) -> Effects:
        if self._retry_at is not None:
            return []
        waiting = [each for key, each in self._pending.items() if key not in self._in_flight]
        return [self._request(each) for each in waiting]

    def _request(self, event: FetchCommitted) -> SendRequest:
        self._serial += 1
        self._in_flight[event.key] = self._serial
        topics = by_topic(event.partitions)
        stable = self._config.isolation_level is IsolationLevel.READ_COMMITTED
        member = self._member

        def make(version: int) -> Message:
            if version < GROUPS_VERSION:
                return OffsetFetchRequest(
                    group_id=self._group_id,
                    topics=[
                        OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                        for topic, numbers in topics.items()
                    ],
                    require_stable=stable and version >= STABLE_VERSION,
                )
            topic_list = [
                OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in topics.items()
            ]
            group = OffsetFetchRequestGroup(group_id=self._group_id, topics=topic_list)
            if version >= MEMBER_VERSION and member.member_id:
                group.member_id, group.member_epoch = member.member_id, member.generation_id
            return OffsetFetchRequest(groups=[group], require_stable=stable)

        key = REQUEST_KEY, self._serial, event.key
        body = Varying(make, MIN_VERSION, MAX_VERSION_BY_NAME)
        timeout = self._config.request_timeout_s
        return SendRequest(self._owner, key, self._coordinator, ApiKey.OFFSET_FETCH, body, timeout)

    def _on_response(
        self, request: FetchCommitted, event: ResponseReceived | NoResponse, now: float
    ) -> Effects:
        if isinstance(event, NoResponse):
            if event.retriable:
                return self._retry_later(now)
            reason = f"OffsetFetch: {event.reason.value} {event.detail}".rstrip()
            return self._complete(request, {}, LookupFailed(reason, event.code))
        code, offsets, errors = _read(event)
        if code in COORDINATOR_ERRORS:
            return [ForgetCoordinator(self._coordinator), *self._retry_later(now)]
        if code in RETRIABLE_ERRORS | MEMBER_ERRORS or UNSTABLE in errors.values():
            return self._retry_later(now)
        if code != ErrorCode.NONE:
            error = LookupFailed("cannot fetch committed offsets", code)
            return self._complete(request, {}, error)
        if errors:
            code = next(iter(errors.values()))
            return self._complete(
                request, {}, LookupFailed("cannot fetch committed offsets", code, errors)
            )
        self._failures = 0
        return self._complete(
            request, {each: offsets.get(each) for each in request.partitions}, None
        )

    def _retry_later(self, now: float) -> Effects:
        self._failures += 1
        if self._retry_at is None:
            self._retry_at = now + self._backoff.after(self._failures, self._rng)
        return []

    def _complete(
        self, request: FetchCommitted, offsets: Offsets, error: ConsumerError | None
    ) -> Effects:
        self.forget(request.key)
        return [CommittedFetched(request.key, offsets, error)]


def _read(
    event: ResponseReceived,
) -> tuple[int, dict[TopicPartition, OffsetAndMetadata | None], dict[TopicPartition, int]]:
    """Return the group's error, the committed offsets, and the errors of partitions.

    Before version 2 the response has no group error; the partitions have it.
    """
    message = event.message
    assert isinstance(message, OffsetFetchResponse)
    if event.version >= GROUPS_VERSION and not message.groups:  # an invalid response
        return ErrorCode.UNKNOWN_SERVER_ERROR, {}, {}
    result = message.groups[0] if event.version >= GROUPS_VERSION else message
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    errors: dict[TopicPartition, int] = {}
    for topic in result.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code not in (ErrorCode.NONE, NO_SUCH_TOPIC):
                errors[partition] = each.error_code
            is_committed = each.committed_offset != NOT_COMMITTED
            offsets[partition] = (
                OffsetAndMetadata(
                    each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                )
                if is_committed
                else None
            )
    code = result.error_code
    for each_code in errors.values():
        if code == ErrorCode.NONE and each_code in RETRIABLE_ERRORS:
            code = each_code
    return code, offsets, errors
