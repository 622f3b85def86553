"""Runs calls to the cluster and retries them: the machine of an admin client.

Each Call ends in exactly one CallCompleted or CallFailed, by its deadline.

    Call ─▶ sent ─▶ response ─▶ CallCompleted
             ▲ │        │ a retriable error (not the coordinator, not the leader, ...)
             │ └ no response, retriable
             └── backoff ◀┘             not retriable, too late ─▶ CallFailed, CallCompleted
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeAlias

from ...errors import LocalProtocolError
from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol.error_code import ErrorCode
from ..cluster import ClusterView
from ..network.backoff import Backoff, Rng
from ..requests import (
    Body,
    ClusterFailed,
    Coordinator,
    Destination,
    ForgetCoordinator,
    MetadataChanged,
    NoResponse,
    OwnerEffect,
    OwnerEvent,
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
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors after which a call is retried; others complete it."""


@dataclass(frozen=True, slots=True)
class LeaderOf:
    """A partition's leader at the time of the request."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Call:
    """Event: send this request.

    codes: returns the error codes in a response. timeout_s: for all attempts together.
    """

    token: Hashable
    to: Destination | LeaderOf
    api: ApiKey
    body: Body
    codes: Callable[[Message], Iterable[int]]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """Effect: the response, which may contain errors."""

    token: Hashable
    message: Message
    version: int


@dataclass(frozen=True, slots=True)
class CallFailed:
    """Effect: the call has no response."""

    token: Hashable
    reason: Reason
    detail: str
    code: ErrorCode = ErrorCode.NONE


AdminEvent = Call | OwnerEvent
AdminEffect = CallCompleted | CallFailed | OwnerEffect


@dataclass(slots=True)
class PendingCall:
    """A call in progress; retry_at: when to retry, None while its request is in flight."""

    call: Call
    deadline: float
    failures: int = 0
    retry_at: float | None = None


class AdminCalls:
    """The machine; `owner` is its name in the client, attempt_s the timeout of one attempt."""

    def __init__(
        self, view: ClusterView, *, owner: str, attempt_s: float, backoff: Backoff, rng: Rng
    ) -> None:
        self._view = view
        self._owner = owner
        self._attempt_s = attempt_s
        self._backoff = backoff
        self._rng = rng
        self._pending: dict[int, PendingCall] = {}
        self._numbers = count()

    def handle(self, event: AdminEvent, now: float) -> list[AdminEffect]:
        handler = HANDLERS.get(type(event))
        if handler is None:
            raise LocalProtocolError(f"unknown event {type(event).__name__}")
        return list(handler(self, event, now))

    def next_deadline(self) -> float | None:
        deadlines = [each.retry_at for each in self._pending.values() if each.retry_at is not None]
        return min(deadlines, default=None)

    def advance(self, now: float) -> list[AdminEffect]:
        out: list[AdminEffect] = []
        for number, each in list(self._pending.items()):
            if each.retry_at is not None and each.retry_at <= now:
                out += self._send(number, now)
        return out

    def _on_call(self, call: Call, now: float) -> Iterator[AdminEffect]:
        number = next(self._numbers)
        self._pending[number] = PendingCall(call, now + call.timeout_s)
        yield from self._send(number, now)

    def _on_response(self, event: ResponseReceived, now: float) -> Iterator[AdminEffect]:
        number = self._number(event.request)
        each = self._pending[number]
        codes = [error_of(code) for code in each.call.codes(event.message)]
        retriable = next((code for code in codes if code in RETRIABLE_ERRORS), None)
        if retriable is not None and self._retry_later(each, now):
            yield from self._refresh(each.call, retriable)
        else:
            del self._pending[number]
            yield CallCompleted(each.call.token, event.message, event.version)

    def _on_failure(self, event: NoResponse, now: float) -> Iterator[AdminEffect]:
        number = self._number(event.request)
        each = self._pending[number]
        if event.retriable and self._retry_later(each, now):
            return
        del self._pending[number]
        yield CallFailed(each.call.token, event.reason, event.detail, event.code)

    def _ignore(self, _: MetadataChanged, __: float) -> Iterator[AdminEffect]:
        yield from ()

    def _on_cluster_failed(self, event: ClusterFailed, _: float) -> Iterator[AdminEffect]:
        """Fail the calls that wait for a retry; those in flight get a response or none."""
        waiting = [number for number, each in self._pending.items() if each.retry_at is not None]
        for number in waiting:
            yield CallFailed(self._pending.pop(number).call.token, event.reason, event.detail)

    def _send(self, number: int, now: float) -> Iterator[AdminEffect]:
        each = self._pending[number]
        call = each.call
        each.retry_at = None
        to = call.to
        if isinstance(to, LeaderOf):
            partition = self._view.partition(to.topic, to.partition)
            if partition is None or partition.leader not in self._view.brokers:
                yield RequestMetadataUpdate(frozenset({to.topic}))
                yield from self._on_missing_leader(number, to, now)
                return
            to = partition.leader
        timeout_s = min(self._attempt_s, max(each.deadline - now, 0.0))
        yield SendRequest(self._owner, number, to, call.api, call.body, timeout_s)

    def _on_missing_leader(self, number: int, to: LeaderOf, now: float) -> Iterator[AdminEffect]:
        each = self._pending[number]
        if not self._retry_later(each, now):
            del self._pending[number]
            topic = self._view.topics.get(to.topic)
            code = error_of(topic.error) if topic is not None else ErrorCode.NONE
            detail = f"no leader of {to.topic}-{to.partition}"
            yield CallFailed(each.call.token, Reason.UNKNOWN_NODE, detail, code)

    def _refresh(self, call: Call, code: ErrorCode) -> Iterator[AdminEffect]:
        if isinstance(call.to, Coordinator):
            yield ForgetCoordinator(call.to)
        elif code.invalid_metadata or code is ErrorCode.NOT_CONTROLLER:
            topic = call.to.topic if isinstance(call.to, LeaderOf) else None
            yield RequestMetadataUpdate(frozenset() if topic is None else frozenset({topic}))

    def _retry_later(self, each: PendingCall, now: float) -> bool:
        """Schedule a retry after a backoff; return False if the deadline is earlier."""
        each.failures += 1
        retry_at = now + self._backoff.after(each.failures, self._rng)
        if retry_at >= each.deadline:
            return False
        each.retry_at = retry_at
        return True

    def _number(self, request: SendRequest) -> int:
        assert isinstance(request.key, int)
        return request.key


A = AdminCalls

Handler: TypeAlias = Callable[[AdminCalls, Any, float], Iterator[AdminEffect]]

HANDLERS: Final[Mapping[type[AdminEvent], Handler]] = {
    Call: A._on_call,
    ResponseReceived: A._on_response,
    NoResponse: A._on_failure,
    MetadataChanged: A._ignore,
    ClusterFailed: A._on_cluster_failed,
}
