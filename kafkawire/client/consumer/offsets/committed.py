"""Offsets that a group has committed, read back (OffsetFetch).

Law: each question ends once: with what is committed for every partition asked about, or with the
error that no retry will mend, or when its time is up.
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
from ..partitions import OffsetAndMetadata, TopicPartition, by_topic
from .committing import COORDINATOR_GONE, LATE, NEWEST_BY_NAME

Effects: TypeAlias = list[object]
Found: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata | None]

PART: Final = "committed"
SINCE_KAFKA: Final = 1
"""Version 0 asks ZooKeeper."""
SINCE_STABLE: Final = 7
SINCE_GROUPS: Final = 8
NOT_COMMITTED: Final = -1
UNSTABLE: Final = ErrorCode.UNSTABLE_OFFSET_COMMIT
NO_SUCH_TOPIC: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(frozen=True, slots=True)
class FetchCommitted:
    """deadline: when to give up, in the machine's time; None is never."""

    key: Hashable
    partitions: tuple[TopicPartition, ...]
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class CommittedFetched:
    """found: None where nothing is committed; empty beside an error."""

    key: Hashable
    found: Found
    error: ConsumerError | None = None


class CommittedOffsets:
    """The questions of one consumer about what its group committed."""

    def __init__(self, config: ConsumerConfig, *, owner: str, rng: Rng) -> None:
        self._config = config
        self._group_id = config.group_id or ""
        self._coordinator = Coordinator(CoordinatorKind.GROUP, self._group_id)
        self._owner = owner
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._open: dict[Hashable, FetchCommitted] = {}
        self._asked: dict[Hashable, int] = {}
        self._serial = 0
        self._failures = 0
        self._retry_at: float | None = None

    def handle(self, event: object, now: float) -> Effects:
        """Take a FetchCommitted, or the answer to one."""
        match event:
            case FetchCommitted():
                self._open[event.key] = event
                return self._send(now)
            case ResponseReceived() | NoResponse():
                assert isinstance(event.request.key, tuple)
                _, serial, key = event.request.key
                if self._asked.get(key) != serial:
                    return []
                del self._asked[key]
                asked = self._open[key]
                return self._take(asked, event, now)
        return []

    def forget(self, key: Hashable) -> None:
        """Give up a question that nobody waits for any more."""
        self._open.pop(key, None)
        self._asked.pop(key, None)

    def next_deadline(self) -> float | None:
        times = [each.deadline for each in self._open.values()]
        return min((at for at in [*times, self._retry_at] if at is not None), default=None)

    def advance(self, now: float) -> Effects:
        effects: Effects = []
        for each in list(self._open.values()):
            if each.deadline is not None and each.deadline <= now:
                late = RequestTimedOut("the coordinator told no committed offsets in time")
                effects += self._end(each, {}, late)
        if self._retry_at is not None and self._retry_at <= now:
            self._retry_at = None
            effects += self._send(now)
        return effects

    def _send(self, _now: float) -> Effects:
        if self._retry_at is not None:
            return []
        waiting = [each for key, each in self._open.items() if key not in self._asked]
        return [self._ask(each) for each in waiting]

    def _ask(self, event: FetchCommitted) -> SendRequest:
        self._serial += 1
        self._asked[event.key] = self._serial
        topics = by_topic(event.partitions)
        stable = self._config.isolation_level is IsolationLevel.READ_COMMITTED

        def make(version: int) -> Message:
            if version < SINCE_GROUPS:
                return OffsetFetchRequest(
                    group_id=self._group_id,
                    topics=[
                        OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                        for topic, numbers in topics.items()
                    ],
                    require_stable=stable and version >= SINCE_STABLE,
                )
            listed = [
                OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in topics.items()
            ]
            group = OffsetFetchRequestGroup(group_id=self._group_id, topics=listed)
            return OffsetFetchRequest(groups=[group], require_stable=stable)

        key = PART, self._serial, event.key
        body = Varying(make, SINCE_KAFKA, NEWEST_BY_NAME)
        timeout = self._config.request_timeout_s
        return SendRequest(self._owner, key, self._coordinator, ApiKey.OFFSET_FETCH, body, timeout)

    def _take(
        self, asked: FetchCommitted, event: ResponseReceived | NoResponse, now: float
    ) -> Effects:
        if isinstance(event, NoResponse):
            if event.retriable:
                return self._later(now)
            why = f"OffsetFetch: {event.reason.value} {event.detail}".rstrip()
            return self._end(asked, {}, LookupFailed(why, event.code))
        code, found, wrong = _read(event)
        if code in COORDINATOR_GONE:
            return [ForgetCoordinator(self._coordinator), *self._later(now)]
        if code in LATE or UNSTABLE in wrong.values():
            return self._later(now)
        if code != ErrorCode.NONE:
            error = LookupFailed("the coordinator tells no committed offsets", code)
            return self._end(asked, {}, error)
        if wrong:
            code = next(iter(wrong.values()))
            return self._end(asked, {}, LookupFailed("no committed offsets", code, wrong))
        self._failures = 0
        return self._end(asked, {each: found.get(each) for each in asked.partitions}, None)

    def _later(self, now: float) -> Effects:
        self._failures += 1
        if self._retry_at is None:
            self._retry_at = now + self._backoff.after(self._failures, self._rng)
        return []

    def _end(self, asked: FetchCommitted, found: Found, error: ConsumerError | None) -> Effects:
        self.forget(asked.key)
        return [CommittedFetched(asked.key, found, error)]


def _read(
    event: ResponseReceived,
) -> tuple[int, dict[TopicPartition, OffsetAndMetadata | None], dict[TopicPartition, int]]:
    """Read an answer: the group's error, what is committed, and partitions with errors.

    Before version 2 there is no error of the group; the partitions have it.
    """
    message = event.message
    assert isinstance(message, OffsetFetchResponse)
    told = message.groups[0] if event.version >= SINCE_GROUPS else message
    found: dict[TopicPartition, OffsetAndMetadata | None] = {}
    wrong: dict[TopicPartition, int] = {}
    for topic in told.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code not in (ErrorCode.NONE, NO_SUCH_TOPIC):
                wrong[partition] = each.error_code
            known = each.committed_offset != NOT_COMMITTED
            found[partition] = (
                OffsetAndMetadata(
                    each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                )
                if known
                else None
            )
    code = told.error_code
    for each_code in wrong.values():
        if code == ErrorCode.NONE and each_code in LATE:
            code = each_code
    return code, found, wrong
