"""Commits offsets to a group (OffsetCommit).

One request is in flight at a time, and no older offset is sent after a newer one. Results come
in the order of the commits, each exactly once.

    Commit, Commit, ... ─▶ queue ─▶ OffsetCommit: all queued commits up to the first SYNC one
                                          └▶ Committed for each │ SYNC: retried until its deadline

ASYNC and AUTO commits are not retried: a newer commit will follow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

from ....messages.api_key import ApiKey
from ....messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ....messages.offset_commit_response import OffsetCommitResponse
from ....protocol.error_code import ErrorCode
from ...network.backoff import Backoff, Rng
from ...requests import (
    Coordinator,
    CoordinatorKind,
    ForgetCoordinator,
    NoResponse,
    ResponseReceived,
    Same,
    SendRequest,
)
from ..configuration import ConsumerConfig
from ..failures import CommitFailed, ConsumerError
from ..group.requests import NO_GENERATION, Identity
from ..partitions import OffsetAndMetadata, TopicPartition, by_topic

REQUEST_KEY: Final = "committing"
MEMBER_VERSION: Final = 1
STATIC_VERSION: Final = 7
MAX_VERSION_BY_NAME: Final = 9
"""From version 10 on the request has topic ids, and the id of a topic may be unknown."""

COORDINATOR_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
RETRIABLE_ERRORS: Final = COORDINATOR_ERRORS | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Errors after which the same request may succeed."""
STALE: Final = frozenset({ErrorCode.STALE_MEMBER_EPOCH})
"""Errors after which it may succeed with a newer epoch, whose heartbeat is on its way."""


class CommitKind(Enum):
    """How the result of a commit is used."""

    SYNC = "the caller waits until the deadline"
    ASYNC = "the result is reported"
    AUTO = "the result is ignored"


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Commit offsets as a member. deadline: of a SYNC commit, in monotonic seconds.

    follows_epoch: whether it is retried with a newer epoch of the member (KIP-848).
    """

    key: Hashable
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    identity: Identity
    kind: CommitKind
    deadline: float = 0.0
    follows_epoch: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a commit. error: None after success."""

    commit: CommitOffsets
    error: ConsumerError | None = None


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """The error of a commit, for the membership."""

    code: int
    identity: Identity


CommittingEffect = SendRequest | ForgetCoordinator | Committed | CommitRefused
Effects: TypeAlias = list[CommittingEffect]


class Committing:
    """The commits of one consumer."""

    def __init__(self, config: ConsumerConfig, *, owner: str, rng: Rng) -> None:
        self._config = config
        self._group_id = config.group_id or ""
        self._coordinator = Coordinator(CoordinatorKind.GROUP, self._group_id)
        self._owner = owner
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._waiting: deque[CommitOffsets] = deque()
        self._sent: list[CommitOffsets] = []
        self._member: Identity | None = None
        self._serial = 0
        self._failures = 0
        self._retry_at: float | None = None

    @property
    def busy(self) -> bool:
        """Whether a commit has no result yet."""
        return bool(self._waiting or self._sent)

    def handle(self, event: CommitOffsets | ResponseReceived | NoResponse, now: float) -> Effects:
        """Handle a CommitOffsets, or the response to one."""
        match event:
            case CommitOffsets():
                self._waiting.append(event)
                return self._send(now)
            case ResponseReceived():
                return self._on_response(event, now) if self._is_current(event) else []
            case NoResponse():
                return self._on_no_response(event, now) if self._is_current(event) else []

    def on_member_epoch(self, identity: Identity) -> None:
        """Let commits that follow the epoch carry this one; they end with the membership."""
        self._member = identity
        if identity.generation_id == NO_GENERATION:
            self._waiting = deque(map(_without_member, self._waiting))
            self._sent = list(map(_without_member, self._sent))

    def next_deadline(self) -> float | None:
        return self._retry_at

    def advance(self, now: float) -> Effects:
        if self._retry_at is None or now < self._retry_at:
            return []
        self._retry_at = None
        return self._send(now)

    def _is_current(self, event: ResponseReceived | NoResponse) -> bool:
        return bool(self._sent) and event.request.key == (REQUEST_KEY, self._serial)

    def _send(self, now: float) -> Effects:
        if self._sent or self._retry_at is not None or not self._waiting:
            return []
        identity = self._identity(self._waiting[0])
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        while self._waiting and self._identity(self._waiting[0]) == identity:
            commit = self._waiting.popleft()
            self._sent.append(commit)
            offsets |= commit.offsets
            if commit.kind is CommitKind.SYNC:
                break  # it may be retried, and must then still be the newest
        if not offsets:
            return self._complete(None, now)
        return [self._request(offsets, identity, now)]

    def _identity(self, commit: CommitOffsets) -> Identity:
        member = self._member if commit.follows_epoch else None
        return commit.identity if member is None else member

    def _request(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], identity: Identity, now: float
    ) -> SendRequest:
        self._serial += 1
        message = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=identity.generation_id,
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        _partition(number, offsets[TopicPartition(topic, number)])
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(offsets).items()
            ],
        )
        static = identity.group_instance_id is not None
        body = Same(message, STATIC_VERSION if static else MEMBER_VERSION, MAX_VERSION_BY_NAME)
        timeout = self._config.request_timeout_s
        last = self._sent[-1]
        if last.kind is CommitKind.SYNC:
            timeout = max(min(timeout, last.deadline - now), 0.001)
        key = REQUEST_KEY, self._serial
        return SendRequest(self._owner, key, self._coordinator, ApiKey.OFFSET_COMMIT, body, timeout)

    def _on_response(self, event: ResponseReceived, now: float) -> Effects:
        assert isinstance(event.message, OffsetCommitResponse)
        errors: dict[int, list[TopicPartition]] = {}
        for topic in event.message.topics:
            for each in topic.partitions:
                if each.error_code != ErrorCode.NONE:
                    partition = TopicPartition(topic.name, each.partition_index)
                    errors.setdefault(each.error_code, []).append(partition)
        if not errors:
            self._failures = 0
            return self._complete(None, now)
        effects: Effects = []
        if COORDINATOR_ERRORS & errors.keys():
            effects.append(ForgetCoordinator(self._coordinator))
        retriable = RETRIABLE_ERRORS | (STALE if self._sent[-1].follows_epoch else frozenset())
        fatal = [code for code in errors if code not in retriable]
        code = fatal[0] if fatal else next(iter(errors))
        error = CommitFailed("commit failed", code, errors[code])
        sent_as = self._sent[0].identity
        effects += self._complete(error, now) if fatal else self._retry(error, now)
        return [*effects, *(CommitRefused(code, sent_as) for code in fatal)]

    def _on_no_response(self, event: NoResponse, now: float) -> Effects:
        cause = f"{event.reason.value} {event.detail}".rstrip()
        code = event.code
        if event.retriable and code == ErrorCode.NONE:
            code = ErrorCode.NETWORK_EXCEPTION
        error = CommitFailed(f"offsets may not have been committed: {cause}", code)
        return self._retry(error, now) if event.retriable else self._complete(error, now)

    def _retry(self, error: ConsumerError, now: float) -> Effects:
        """Retry the SYNC commit, if there is time; complete the others with the error."""
        last = self._sent[-1]
        self._failures += 1
        retry_at = now + self._backoff.after(self._failures, self._rng)
        if last.kind is not CommitKind.SYNC or retry_at >= last.deadline:
            return self._complete(error, now)
        completed = [Committed(each, error) for each in self._sent[:-1]]
        self._sent.clear()
        self._waiting.appendleft(last)
        self._retry_at = retry_at
        return [*completed]

    def _complete(self, error: ConsumerError | None, now: float) -> Effects:
        completed = [Committed(each, error) for each in self._sent]
        self._sent.clear()
        return [*completed, *self._send(now)]


def _without_member(commit: CommitOffsets) -> CommitOffsets:
    return replace(commit, follows_epoch=False)


def _partition(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )
