"""Keeps the in-flight requests of a replica: one to a node, with timeout and backoff.

A response is expected only while its request is in flight; `reset` forgets them all, so that
a response to a request of an earlier state is never taken for one of this state.
"""

from __future__ import annotations

from typing import NamedTuple

from ..primitives import Message
from .effects import Node


class InFlight(NamedTuple):
    """A request that was sent and not yet responded to."""

    correlation_id: int
    node: Node
    request: Message
    epoch: int
    deadline: float


class RequestManager:
    """In-flight requests and backoffs, by node id."""

    def __init__(self, request_timeout: float, retry_backoff: float) -> None:
        self._request_timeout = request_timeout
        self._retry_backoff = retry_backoff
        self._in_flight: dict[int, InFlight] = {}
        self._backoff: dict[int, float] = {}
        self._last_id = 0

    def is_ready(self, node_id: int, now: float) -> bool:
        """Whether a request may be sent to a node."""
        return node_id not in self._in_flight and self._backoff.get(node_id, now) <= now

    def add(self, node: Node, request: Message, epoch: int, now: float) -> int:
        """Note a request; return its correlation id."""
        self._last_id += 1
        deadline = now + self._request_timeout
        self._in_flight[node.id] = InFlight(self._last_id, node, request, epoch, deadline)
        return self._last_id

    def complete(self, correlation_id: int) -> InFlight | None:
        """Remove a request that was responded to; None if it is not expected."""
        for node_id, each in self._in_flight.items():
            if each.correlation_id == correlation_id:
                del self._in_flight[node_id]
                return each
        return None

    def back_off(self, node_id: int, now: float) -> None:
        """Send nothing to a node for a while."""
        self._backoff[node_id] = now + self._retry_backoff

    def expire(self, now: float) -> None:
        """Forget requests whose time is over, and backoffs that ended."""
        self._in_flight = {
            node: each for node, each in self._in_flight.items() if each.deadline > now
        }
        self._backoff = {node: until for node, until in self._backoff.items() if until > now}

    def reset(self) -> None:
        """Forget all requests."""
        self._in_flight.clear()
        self._backoff.clear()

    def next_deadline(self) -> float | None:
        """Return when the next request times out or a backoff ends."""
        times = [each.deadline for each in self._in_flight.values()]
        return min([*times, *self._backoff.values()], default=None)
