"""Offsets committed to a group, and read back from it.

Law: one commit at a time: what is committed later is sent later, and nothing older is sent after
something newer. Results come in the order of the commits, each exactly once.

    Commit, Commit, ... ─▶ queue ─▶ OffsetCommit: all that wait, up to the first that may be retried
                                          └▶ Committed for each │ SYNC: again until its deadline

A commit that nobody waits for (ASYNC, AUTO) is never tried again: a newer one will come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
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
from ..group.requests import Identity
from ..partitions import OffsetAndMetadata, TopicPartition, by_topic

Effects: TypeAlias = list[object]

PART: Final = "committing"
SINCE_MEMBERS: Final = 1
SINCE_STATIC: Final = 7
NEWEST_BY_NAME: Final = 9
"""From version 10 on topics have ids here, which a name that is committed may not have yet."""

COORDINATOR_GONE: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
LATE: Final = COORDINATOR_GONE | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Errors after which the same commit may succeed."""


class CommitKind(Enum):
    """Who waits for a commit."""

    SYNC = "somebody, until its deadline"
    ASYNC = "nobody; the result is told"
    AUTO = "nobody at all"


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Commit, as who we are now. deadline: for SYNC, in the machine's time."""

    key: Hashable
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    identity: Identity
    kind: CommitKind
    deadline: float = 0.0


@dataclass(frozen=True, slots=True)
class Committed:
    """The end of a commit; error None: it is done."""

    commit: CommitOffsets
    error: ConsumerError | None = None


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """What the coordinator said may concern the membership too."""

    code: int
    identity: Identity


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
        self._serial = 0
        self._failures = 0
        self._retry_at: float | None = None

    @property
    def busy(self) -> bool:
        """Whether a commit has no result yet."""
        return bool(self._waiting or self._sent)

    def handle(self, event: object, now: float) -> Effects:
        """Take a CommitOffsets, or the answer to one."""
        match event:
            case CommitOffsets():
                self._waiting.append(event)
                return self._send(now)
            case ResponseReceived():
                return self._answered(event, now) if self._is_ours(event) else []
            case NoResponse():
                return self._unanswered(event, now) if self._is_ours(event) else []
        return []

    def next_deadline(self) -> float | None:
        return self._retry_at

    def advance(self, now: float) -> Effects:
        if self._retry_at is None or now < self._retry_at:
            return []
        self._retry_at = None
        return self._send(now)

    def _is_ours(self, event: ResponseReceived | NoResponse) -> bool:
        return bool(self._sent) and event.request.key == (PART, self._serial)

    def _send(self, now: float) -> Effects:
        if self._sent or self._retry_at is not None or not self._waiting:
            return []
        identity = self._waiting[0].identity
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        while self._waiting and self._waiting[0].identity == identity:
            commit = self._waiting.popleft()
            self._sent.append(commit)
            offsets |= commit.offsets
            if commit.kind is CommitKind.SYNC:
                break  # it may be sent again, and then must still be the newest
        if not offsets:
            return self._end(None, now)
        return [self._ask(offsets, identity, now)]

    def _ask(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], me: Identity, now: float
    ) -> SendRequest:
        self._serial += 1
        message = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=me.generation_id,
            member_id=me.member_id,
            group_instance_id=me.group_instance_id,
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
        static = me.group_instance_id is not None
        body = Same(message, SINCE_STATIC if static else SINCE_MEMBERS, NEWEST_BY_NAME)
        timeout = self._config.request_timeout_s
        last = self._sent[-1]
        if last.kind is CommitKind.SYNC:
            timeout = max(min(timeout, last.deadline - now), 0.001)
        key = PART, self._serial
        return SendRequest(self._owner, key, self._coordinator, ApiKey.OFFSET_COMMIT, body, timeout)

    def _answered(self, event: ResponseReceived, now: float) -> Effects:
        assert isinstance(event.message, OffsetCommitResponse)
        wrong: dict[int, list[TopicPartition]] = {}
        for topic in event.message.topics:
            for each in topic.partitions:
                if each.error_code != ErrorCode.NONE:
                    partition = TopicPartition(topic.name, each.partition_index)
                    wrong.setdefault(each.error_code, []).append(partition)
        if not wrong:
            self._failures = 0
            return self._end(None, now)
        effects: Effects = []
        if COORDINATOR_GONE & wrong.keys():
            effects.append(ForgetCoordinator(self._coordinator))
        for_good = [code for code in wrong if code not in LATE]
        code = for_good[0] if for_good else next(iter(wrong))
        error = CommitFailed("offsets were not committed", code, wrong[code])
        sent_as = self._sent[0].identity
        effects += self._end(error, now) if for_good else self._again(error, now)
        return [*effects, *(CommitRefused(code, sent_as) for code in for_good)]

    def _unanswered(self, event: NoResponse, now: float) -> Effects:
        why = f"offsets may not be committed: {event.reason.value} {event.detail}".rstrip()
        code = event.code
        if event.retriable and code == ErrorCode.NONE:
            code = ErrorCode.NETWORK_EXCEPTION
        error = CommitFailed(why, code)
        return self._again(error, now) if event.retriable else self._end(error, now)

    def _again(self, error: ConsumerError, now: float) -> Effects:
        """Try the one commit again that somebody waits for, if there is time; end the others."""
        last = self._sent[-1]
        self._failures += 1
        at = now + self._backoff.after(self._failures, self._rng)
        if last.kind is not CommitKind.SYNC or at >= last.deadline:
            return self._end(error, now)
        ended = [Committed(each, error) for each in self._sent[:-1]]
        self._sent.clear()
        self._waiting.appendleft(last)
        self._retry_at = at
        return [*ended]

    def _end(self, error: ConsumerError | None, now: float) -> Effects:
        ended = [Committed(each, error) for each in self._sent]
        self._sent.clear()
        return [*ended, *self._send(now)]


def _partition(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )
