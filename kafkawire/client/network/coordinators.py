"""Which broker coordinates which group or transactional id.

Law: one look-up at a time for each, shared by all who wait for it; what was found stands until
somebody says that it is wrong.

    unknown ── needed ──▶ looking up ── found ──▶ known
       ▲                    │ ▲ COORDINATOR_NOT_AVAILABLE: again, after a backoff
       │◀── refused ────────┘ └──┘                  │
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
from .cluster import Broker

BATCHED_FROM: Final = 4
"""FindCoordinator takes many keys from this version on (KIP-699)."""
FIRST_VERSION: Final = {
    CoordinatorKind.GROUP: 0,
    CoordinatorKind.TRANSACTION: 1,
    CoordinatorKind.SHARE: 6,
}
NEWEST: Final = 6


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """The request, for any version."""

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
    """Effect: these can go to that broker now."""

    broker: Broker
    waiting: tuple[QueuedRequest, ...]


@dataclass(slots=True)
class LookUp:
    """One look-up: who waits for it; again_at: when to ask again, None while it is asked."""

    waiting: list[QueuedRequest] = field(default_factory=list)
    failures: int = 0
    again_at: float | None = None


class Coordinators:
    """All coordinators that a client knows or looks for; owner: in whose name it asks."""

    def __init__(self, owner: str, timeout_s: float, backoff: Backoff, rng: Rng) -> None:
        self._owner = owner
        self._timeout_s = timeout_s
        self._backoff = backoff
        self._rng = rng
        self._known: dict[Coordinator, Broker] = {}
        self._look_ups: dict[Coordinator, LookUp] = {}

    def get(self, coordinator: Coordinator) -> Broker | None:
        """Give the broker that is known to coordinate."""
        return self._known.get(coordinator)

    def forget(self, coordinator: Coordinator) -> None:
        """Look it up again when it is next needed."""
        self._known.pop(coordinator, None)

    def lost(self, node: int) -> None:
        """Forget all that a broker coordinated: the connection to it is no more."""
        self._known = {key: at for key, at in self._known.items() if at.node_id != node}

    def wait(self, coordinator: Coordinator, waiting: QueuedRequest) -> Iterator[object]:
        """Have a request wait for its coordinator; begin to look for it if nobody does."""
        look_up = self._look_ups.get(coordinator)
        if look_up is not None:
            look_up.waiting.append(waiting)
            return
        self._look_ups[coordinator] = LookUp([waiting])
        yield self._ask(coordinator)

    def answered(self, event: ResponseReceived, now: float) -> Iterator[object]:
        """Take the answer to a look-up."""
        coordinator = event.ask.key
        assert isinstance(coordinator, Coordinator)
        assert isinstance(event.message, FindCoordinatorResponse)
        code, detail, broker = told(event.message, event.version, coordinator.name)
        if code == ErrorCode.NONE:
            look_up = self._look_ups.pop(coordinator)
            self._known[coordinator] = broker
            yield Found(broker, tuple(look_up.waiting))
        elif error_of(code).retriable:
            self._later(coordinator, now)
        else:
            reason = f"{coordinator.name}: {ErrorCode.name_of(code)}: {detail or 'no more is said'}"
            for waiting in self._look_ups.pop(coordinator).waiting:
                yield NoResponse(
                    waiting.ask, Reason.COORDINATOR_ERROR, False, reason, error_of(code), sent=False
                )

    def unanswered(self, event: NoResponse, now: float) -> Iterator[object]:
        """Take that a look-up was not answered."""
        coordinator = event.ask.key
        assert isinstance(coordinator, Coordinator)
        if event.retriable:
            self._later(coordinator, now)
            return
        for waiting in self._look_ups.pop(coordinator).waiting:
            yield waiting.end(event.reason, event.detail, retriable=False)

    def next_deadline(self) -> float | None:
        found = [up.again_at for up in self._look_ups.values() if up.again_at is not None]
        found += [each.deadline for up in self._look_ups.values() for each in up.waiting]
        return min(found, default=None)

    def advance(self, now: float) -> Iterator[object]:
        for coordinator, look_up in list(self._look_ups.items()):
            late = [each for each in look_up.waiting if each.deadline <= now]
            look_up.waiting = [each for each in look_up.waiting if each.deadline > now]
            for waiting in late:
                detail = f"the coordinator of {coordinator.name} was not found in time"
                yield waiting.end(Reason.TIMED_OUT, detail)
            if look_up.again_at is None or look_up.again_at > now:
                continue
            if look_up.waiting:
                look_up.again_at = None
                yield self._ask(coordinator)
            else:
                del self._look_ups[coordinator]

    def close(self, reason: Reason, detail: str) -> Iterator[object]:
        """Give up on everything that waits."""
        look_ups, self._look_ups = self._look_ups, {}
        for look_up in look_ups.values():
            for waiting in look_up.waiting:
                yield waiting.end(reason, detail, reason in RETRIABLE)

    def _ask(self, coordinator: Coordinator) -> SendRequest:
        return SendRequest(
            self._owner,
            coordinator,
            LEAST_LOADED,
            ApiKey.FIND_COORDINATOR,
            FindCoordinator(coordinator),
            self._timeout_s,
        )

    def _later(self, coordinator: Coordinator, now: float) -> None:
        look_up = self._look_ups[coordinator]
        look_up.failures += 1
        look_up.again_at = now + self._backoff.after(look_up.failures, self._rng)


def told(
    response: FindCoordinatorResponse, version: int, name: str
) -> tuple[int, str | None, Broker]:
    """Read error, its text, and broker out of either form of the response."""
    if version < BATCHED_FROM:
        broker = Broker(response.node_id, response.host, response.port)
        return response.error_code, response.error_message, broker
    for row in response.coordinators:
        if row.key == name:
            return row.error_code, row.error_message, Broker(row.node_id, row.host, row.port)
    return ErrorCode.COORDINATOR_NOT_AVAILABLE, "the answer is about others", Broker(-1, "", -1)
