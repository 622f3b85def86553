"""Requests of a broker to the active controller, as Kafka's NodeToControllerChannelManager.

A request is sent again until a controller that is active responds, or its time is over; who
sent it gets one response, or None. The controller may have acted on a request that is sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ...controller.operations.refusals import is_refused
from ...primitives import Message


class Owner(Enum):
    """Which part of a node sent a request, to the controller or to any node."""

    QUORUM = "quorum"
    REPLICAS = "replicas"
    LIFECYCLE = "lifecycle"
    ASSIGNMENTS = "assignments"
    CLIENT = "client"
    CHANNEL = "channel"


class Purpose(NamedTuple):
    """Who sent a request: the part of the node, and its own number for it."""

    owner: Owner
    number: int


@dataclass(slots=True)
class Pending:
    """A request that has no response yet. send_at: None while it is in flight."""

    purpose: Purpose
    body: Message
    version: int
    deadline: float
    send_at: float | None


class Response(NamedTuple):
    """What became of a request. body: None if no active controller responded in time."""

    purpose: Purpose
    request: Message
    body: Message | None


class ControllerChannel:
    """The requests to the active controller. retry_backoff: in seconds."""

    def __init__(self, retry_backoff: float) -> None:
        self._retry_backoff = retry_backoff
        self._pending: dict[int, Pending] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._pending)

    def submit(
        self, purpose: Purpose, body: Message, version: int, deadline: float, now: float
    ) -> None:
        """Add a request."""
        self._count += 1
        self._pending[self._count] = Pending(purpose, body, version, deadline, now)

    def due(self, now: float) -> list[tuple[int, Pending]]:
        """Take the requests that are to be sent now, with the numbers of their responses."""
        endpoints = [
            (number, each)
            for number, each in self._pending.items()
            if each.send_at is not None and each.send_at <= now
        ]
        for _, each in endpoints:
            each.send_at = None
        return endpoints

    def handle(self, number: int, body: Message | None, now: float) -> list[Response]:
        """Handle a response; return it unless the request is to be sent again."""
        pending = self._pending.get(number)
        if pending is None:
            return []
        if is_refused(pending.body, body):
            pending.send_at = now + self._retry_backoff
            return []
        del self._pending[number]
        return [Response(pending.purpose, pending.body, body)]

    def controller_changed(self, now: float) -> None:
        """Send what waits at once: another controller is active."""
        for each in self._pending.values():
            if each.send_at is not None:
                each.send_at = now

    def expire(self, now: float) -> list[Response]:
        """Return the requests whose time is over, without a response."""
        numbers = [number for number, each in self._pending.items() if each.deadline <= now]
        expired = [self._pending.pop(number) for number in numbers]
        return [Response(each.purpose, each.body, None) for each in expired]

    def next_deadline(self, is_active: bool) -> float | None:
        """Return when `expire` has something to do, or `due` if an active controller is known."""
        times = [each.deadline for each in self._pending.values()]
        if is_active:
            times += [each.send_at for each in self._pending.values() if each.send_at is not None]
        return min(times, default=None)
