"""Single questions to the cluster, asked again while that may help: an admin client's machine.

Law: each Question ends in exactly one Replied or Unreplied, by its deadline.

    Question ─▶ asked ─▶ answered ─▶ Replied
                 ▲ │        │ an error of a moment (not the coordinator, not the leader, ...)
                 │ └ unanswered, retriable
                 └── later ◀┘                    not retriable, too late ─▶ Unreplied, Replied
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from ...errors import LocalProtocolError
from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol.error_code import ErrorCode
from ..network.backoff import Backoff, Rng
from ..network.cluster import ClusterView
from ..requests import (
    Body,
    ClusterFailed,
    Coordinator,
    Destination,
    ForgetCoordinator,
    MetadataChanged,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
    error_of,
)

RETRIABLE_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Errors after which the same question is asked again; others are the answer."""


@dataclass(frozen=True, slots=True)
class LeaderOf:
    """The broker that leads a partition when the question is asked."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Call:
    """Event: ask this.

    codes: finds the error codes in an answer. timeout_s: for all attempts together.
    """

    token: Hashable
    to: Destination | LeaderOf
    api: ApiKey
    body: Body
    codes: Callable[[Message], Iterable[int]]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """Effect: the answer, its errors included."""

    token: Hashable
    message: Message
    version: int


@dataclass(frozen=True, slots=True)
class CallFailed:
    """Effect: there is no answer."""

    token: Hashable
    reason: Reason
    detail: str
    code: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class Open:
    """A question that has no reply yet; again_at: when to ask again, None while it is asked."""

    question: Call
    deadline: float
    failures: int = 0
    again_at: float | None = None


class AdminCalls:
    """The machine; `owner` is its name in the client, attempt_s how long one attempt may take."""

    def __init__(
        self, view: ClusterView, *, owner: str, attempt_s: float, backoff: Backoff, rng: Rng
    ) -> None:
        self._view = view
        self._owner = owner
        self._attempt_s = attempt_s
        self._backoff = backoff
        self._rng = rng
        self._open: dict[int, Open] = {}
        self._numbers = count()

    def handle(self, event: object, now: float) -> list[object]:
        handler = HANDLERS.get(type(event))
        if handler is None:
            raise LocalProtocolError(f"nobody asked for {type(event).__name__}")
        return list(handler(self, event, now))

    def next_deadline(self) -> float | None:
        found = [each.again_at for each in self._open.values() if each.again_at is not None]
        return min(found, default=None)

    def advance(self, now: float) -> list[object]:
        out: list[object] = []
        for number, each in list(self._open.items()):
            if each.again_at is not None and each.again_at <= now:
                out += self._ask(number, now)
        return out

    def _question(self, question: Call, now: float) -> Iterator[object]:
        number = next(self._numbers)
        self._open[number] = Open(question, now + question.timeout_s)
        yield from self._ask(number, now)

    def _answered(self, event: ResponseReceived, now: float) -> Iterator[object]:
        number = self._number(event.ask)
        each = self._open[number]
        codes = [error_of(code) for code in each.question.codes(event.message)]
        moment = next((code for code in codes if code in RETRIABLE_ERRORS), None)
        if moment is not None and self._later(each, now):
            yield from self._look_again(each.question, moment)
        else:
            del self._open[number]
            yield CallCompleted(each.question.token, event.message, event.version)

    def _unanswered(self, event: NoResponse, now: float) -> Iterator[object]:
        number = self._number(event.ask)
        each = self._open[number]
        if event.retriable and self._later(each, now):
            return
        del self._open[number]
        yield CallFailed(each.question.token, event.reason, event.detail, event.code)

    def _ignore(self, _: object, __: float) -> Iterator[object]:
        yield from ()

    def _ask(self, number: int, now: float) -> Iterator[object]:
        each = self._open[number]
        question = each.question
        each.again_at = None
        to = question.to
        if isinstance(to, LeaderOf):
            partition = self._view.partition(to.topic, to.partition)
            if partition is None or partition.leader not in self._view.brokers:
                yield RequestMetadataUpdate(frozenset({to.topic}))
                yield from self._leaderless(number, to, now)
                return
            to = partition.leader
        timeout_s = min(self._attempt_s, max(each.deadline - now, 0.0))
        yield SendRequest(self._owner, number, to, question.api, question.body, timeout_s)

    def _leaderless(self, number: int, to: LeaderOf, now: float) -> Iterator[object]:
        each = self._open[number]
        if not self._later(each, now):
            del self._open[number]
            topic = self._view.topics.get(to.topic)
            code = error_of(topic.error) if topic is not None else ErrorCode.NONE
            detail = f"nobody leads {to.topic}-{to.partition}"
            yield CallFailed(each.question.token, Reason.UNKNOWN_NODE, detail, code)

    def _look_again(self, question: Call, code: ErrorCode) -> Iterator[object]:
        if isinstance(question.to, Coordinator):
            yield ForgetCoordinator(question.to)
        elif code.invalid_metadata or code is ErrorCode.NOT_CONTROLLER:
            topic = question.to.topic if isinstance(question.to, LeaderOf) else None
            yield RequestMetadataUpdate(frozenset() if topic is None else frozenset({topic}))

    def _later(self, each: Open, now: float) -> bool:
        """Ask again after a backoff; False where it is too late for that."""
        each.failures += 1
        at = now + self._backoff.after(each.failures, self._rng)
        if at >= each.deadline:
            return False
        each.again_at = at
        return True

    def _number(self, ask: SendRequest) -> int:
        assert isinstance(ask.key, int)
        return ask.key


A = AdminCalls

HANDLERS: Final[Mapping[type, Callable[..., Iterator[object]]]] = {
    Call: A._question,
    ResponseReceived: A._answered,
    NoResponse: A._unanswered,
    MetadataChanged: A._ignore,
    ClusterFailed: A._ignore,
}
