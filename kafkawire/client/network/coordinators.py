"""Finds and caches the coordinators of groups and transactional ids.

At most one lookup per coordinator, shared by all requests that wait for it; a result is valid
until a response or a disconnect invalidates it.

    unknown ── needed ──▶ looking up ── found ──▶ known
       ▲                    │ ▲ COORDINATOR_NOT_AVAILABLE: retry after a backoff
       │◀── error ──────────┘ └──┘                  │
       └◀── NOT_COORDINATOR, disconnected ──────────┘
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ...messages.api_key import ApiKey
from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...messages.find_coordinator_response import FindCoordinatorResponse
from ...primitives import Message
from ...protocol.error_code import ErrorCode
from ..cluster import Broker
from ..requests import (
    LEAST_LOADED,
    RETRIABLE,
    Coordinator,
    CoordinatorKind,
    NoResponse,
    Reason,
    ResponseReceived,
    SendRequest,
    error_of,
)
from .backoff import Backoff, Rng
from .broker_connection import QueuedRequest

BATCHED_FROM: Final = 4
"""FindCoordinator takes several keys from this version on (KIP-699)."""
FIRST_VERSION: Final = {
    CoordinatorKind.GROUP: 0,
    CoordinatorKind.TRANSACTION: 1,
    CoordinatorKind.SHARE: 6,
}
NEWEST: Final = 6


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """The FindCoordinator request, for any version."""

    coordinator: Coordinator

    @property
    def lowest(self) -> int:
        return FIRST_VERSION[self.coordinator.kind]

    @property
    def highest(self) -> int:
        return NEWEST

    def build(self, version: int) -> Message:
        kind, name = int(self.coordinator.kind), self.coordinator.name
        if version >= BATCHED_FROM:
            return FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
        return FindCoordinatorRequest(key_type=kind, key=name)


@dataclass(frozen=True, slots=True)
class Found:
    """Effect: these requests can go to that broker now."""

    broker: Broker
    queued: tuple[QueuedRequest, ...]


CoordinatorsEffect = SendRequest | NoResponse | Found


@dataclass(slots=True)
class Lookup:
    """One lookup: the requests waiting for it; retry_at: None while it is in flight."""

    queued: list[QueuedRequest] = field(default_factory=list)
    failures: int = 0
    retry_at: float | None = None


class Coordinators:
    """All coordinators of a client; owner: the owner of the lookups' requests."""

    def __init__(self, owner: str, timeout_s: float, backoff: Backoff, rng: Rng) -> None:
        self._owner = owner
        self._timeout_s = timeout_s
        self._backoff = backoff
        self._rng = rng
        self._known: dict[Coordinator, Broker] = {}
        self._lookups: dict[Coordinator, Lookup] = {}

    def get(self, coordinator: Coordinator) -> Broker | None:
        """Return the known coordinator, or None."""
        return self._known.get(coordinator)

    def forget(self, coordinator: Coordinator) -> None:
        """Invalidate a coordinator; it is looked up again when next needed."""
        self._known.pop(coordinator, None)

    def on_disconnect(self, node: int) -> None:
        """Invalidate all coordinators at a broker: its connection was closed."""
        self._known = {key: at for key, at in self._known.items() if at.node_id != node}

    def wait(self, coordinator: Coordinator, queued: QueuedRequest) -> Iterator[CoordinatorsEffect]:
        """Queue a request for its coordinator; start a lookup unless one is in progress."""
        lookup = self._lookups.get(coordinator)
        if lookup is not None:
            lookup.queued.append(queued)
            return
        self._lookups[coordinator] = Lookup([queued])
        yield self._find(coordinator)

    def on_response(self, event: ResponseReceived, now: float) -> Iterator[CoordinatorsEffect]:
        """Handle the response to a lookup."""
        coordinator = event.request.key
        assert isinstance(coordinator, Coordinator)
        assert isinstance(event.message, FindCoordinatorResponse)
        code, detail, broker = coordinator_row(event.message, event.version, coordinator.name)
        if code == ErrorCode.NONE:
            lookup = self._lookups.pop(coordinator)
            self._known[coordinator] = broker
            yield Found(broker, tuple(lookup.queued))
        elif error_of(code).retriable:
            self._retry_later(coordinator, now)
        else:
            reason = (
                f"{coordinator.name}: {ErrorCode.name_of(code)}: {detail or 'no error message'}"
            )
            for queued in self._lookups.pop(coordinator).queued:
                yield NoResponse(
                    queued.request,
                    Reason.COORDINATOR_ERROR,
                    False,
                    reason,
                    error_of(code),
                    sent=False,
                )

    def on_failure(self, event: NoResponse, now: float) -> Iterator[CoordinatorsEffect]:
        """Handle a lookup without a response."""
        coordinator = event.request.key
        assert isinstance(coordinator, Coordinator)
        if event.retriable:
            self._retry_later(coordinator, now)
            return
        for queued in self._lookups.pop(coordinator).queued:
            yield queued.fail(event.reason, event.detail, retriable=False)

    def next_deadline(self) -> float | None:
        deadlines = [up.retry_at for up in self._lookups.values() if up.retry_at is not None]
        deadlines += [each.deadline for up in self._lookups.values() for each in up.queued]
        return min(deadlines, default=None)

    def advance(self, now: float) -> Iterator[CoordinatorsEffect]:
        for coordinator, lookup in list(self._lookups.items()):
            late = [each for each in lookup.queued if each.deadline <= now]
            lookup.queued = [each for each in lookup.queued if each.deadline > now]
            for queued in late:
                detail = f"coordinator of {coordinator.name} not found in time"
                yield queued.fail(Reason.TIMED_OUT, detail)
            if lookup.retry_at is None or lookup.retry_at > now:
                continue
            if lookup.queued:
                lookup.retry_at = None
                yield self._find(coordinator)
            else:
                del self._lookups[coordinator]

    def close(self, reason: Reason, detail: str) -> Iterator[CoordinatorsEffect]:
        """Fail everything that waits."""
        lookups, self._lookups = self._lookups, {}
        for lookup in lookups.values():
            for queued in lookup.queued:
                yield queued.fail(reason, detail, reason in RETRIABLE)

    def _find(self, coordinator: Coordinator) -> SendRequest:
        return SendRequest(
            self._owner,
            coordinator,
            LEAST_LOADED,
            ApiKey.FIND_COORDINATOR,
            FindCoordinator(coordinator),
            self._timeout_s,
        )

    def _retry_later(self, coordinator: Coordinator, now: float) -> None:
        lookup = self._lookups[coordinator]
        lookup.failures += 1
        lookup.retry_at = now + self._backoff.after(lookup.failures, self._rng)


def coordinator_row(
    response: FindCoordinatorResponse, version: int, name: str
) -> tuple[int, str | None, Broker]:
    """Return error code, error message and broker from either form of the response."""
    if version < BATCHED_FROM:
        broker = Broker(response.node_id, response.host, response.port)
        return response.error_code, response.error_message, broker
    for row in response.coordinators:
        if row.key == name:
            return row.error_code, row.error_message, Broker(row.node_id, row.host, row.port)
    return ErrorCode.COORDINATOR_NOT_AVAILABLE, "missing in the response", Broker(-1, "", -1)
