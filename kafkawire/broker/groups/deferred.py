"""Responses that wait until what they rest on is committed, as in Kafka's CoordinatorRuntime.

A response leaves when all that its coordinators had appended before is committed; it fails
when one of them is unloaded, or after `offsets.commit.timeout.ms`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...primitives import Message
from ...protocol import ErrorCode
from ..context import Context
from ..events import CommitExpired
from ..network.request_channel import RequestChannel

TIMEOUT: Final = "offsets.commit.timeout.ms"


class Deferred(NamedTuple):
    """A response. waits_for: the partitions with uncommitted records."""

    message: Message
    waits_for: set[int]


class DeferredResponses:
    """The deferred responses of all coordinators, by the `reply_to` of their requests."""

    def __init__(self, context: Context, channel: RequestChannel) -> None:
        self._context = context
        self._channel = channel
        self._deferred: dict[int, Deferred] = {}
        self._by_partition: dict[int, deque[tuple[int, int]]] = {}
        """Partition -> (offset, reply_to), in the order of the offsets."""

    def __len__(self) -> int:
        return len(self._deferred)

    def add(self, reply_to: int, message: Message, offsets: Mapping[int, int], now: float) -> None:
        """Defer a response until each partition is committed up to its offset."""
        self._deferred[reply_to] = Deferred(message, set(offsets))
        for index, offset in offsets.items():
            self._by_partition.setdefault(index, deque()).append((offset, reply_to))
        timeout = self._context.settings.seconds(TIMEOUT)
        self._context.deadlines.set(CommitExpired(reply_to), now + timeout)

    def committed(self, index: int, offset: int, now: float) -> None:
        """Send the responses that waited for what is before `offset`."""
        waiting = self._by_partition.get(index)
        while waiting and waiting[0][0] <= offset:
            _, reply_to = waiting.popleft()
            deferred = self._deferred.get(reply_to)
            if deferred is None:
                continue  # it has failed
            deferred.waits_for.discard(index)
            if not deferred.waits_for:
                self._remove(reply_to)
                self._channel.respond(reply_to, deferred.message, now)
        if not waiting:
            self._by_partition.pop(index, None)

    def fail(self, index: int, error: ErrorCode, now: float) -> None:
        """Fail the responses that wait for a partition."""
        for _, reply_to in self._by_partition.pop(index, ()):
            self._fail(reply_to, error, now)

    def expire(self, reply_to: int, now: float) -> None:
        """Fail a response whose time is over."""
        self._fail(reply_to, ErrorCode.COORDINATOR_NOT_AVAILABLE, now)

    def _fail(self, reply_to: int, error: ErrorCode, now: float) -> None:
        if reply_to in self._deferred:
            self._remove(reply_to)
            self._channel.fail(reply_to, error, now)

    def _remove(self, reply_to: int) -> None:
        del self._deferred[reply_to]
        self._context.deadlines.cancel(CommitExpired(reply_to))
