"""Keeps the responses of a connection that wait for their requests, in order, within bounds.

A response is taken once, by its correlation id, or given up; each call takes constant time,
spread over the responses.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from librt.strings import read_i32_be
from mypy_extensions import i64

from ..frames.framing import Mark

MAX_WAITING: Final = 1 << 12
"""Responses that wait for their request; the oldest are given up."""

MAX_WAITING_BYTES: Final = 1 << 23
"""Bytes of such responses."""

MAX_LATE: Final = 1 << 10
"""Responses that overtake one that is still kept, at most: requests, and those that wait."""


@final
class WaitingResponse:
    """A response whose request was not captured so far.

    arrival: its number among the responses. completed: the number of those before it that had
    their request. is_open: whether it still waits.
    """

    def __init__(self, frame: bytes, mark: Mark, arrival: i64, completed: i64) -> None:
        self.frame: bytes = frame
        self.mark: Mark = mark
        self.correlation_id: int = correlation_id_of(frame)
        self.arrival: i64 = arrival
        self.completed: i64 = completed
        self.is_open: bool = True


@final
class WaitingResponses:
    """The responses of a connection that wait for their requests, in order and by correlation id.

    visited: the responses that calls looked at.
    """

    def __init__(self) -> None:
        self.visited: i64 = 0
        self._all: deque[WaitingResponse] = deque()
        self._by_id: dict[int, deque[WaitingResponse]] = {}
        self._count: i64 = 0
        self._bytes: i64 = 0

    def __len__(self) -> int:
        return self._count

    def add(self, waiting: WaitingResponse) -> None:
        """Add a response."""
        self._all.append(waiting)
        self._count += 1
        self._bytes += len(waiting.frame)
        of_id = self._by_id.get(waiting.correlation_id)
        if of_id is None:
            of_id = self._by_id[waiting.correlation_id] = deque()
        of_id.append(waiting)

    def take(self, correlation_id: int) -> WaitingResponse | None:
        """Remove and return the oldest response with a correlation id."""
        of_id = self._by_id.get(correlation_id)
        return None if of_id is None else self._remove(of_id[0])

    def take_surplus(self) -> list[WaitingResponse]:
        """Remove and return the oldest responses, beyond the limits."""
        surplus: list[WaitingResponse] = []
        while self._count > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            oldest = self._oldest()
            assert oldest is not None
            surplus.append(self._remove(oldest))
        return surplus

    def take_passed(self, correlation_id: int, completed: i64) -> list[WaitingResponse]:
        """Remove and return the oldest responses whose requests can no longer follow.

        correlation_id: of a request that has its response. completed: the number of such requests.
        """
        passed: list[WaitingResponse] = []
        oldest = self._oldest()
        while oldest is not None:
            self.visited += 1
            ahead = (oldest.correlation_id - correlation_id) & 0xFFFFFFFF
            if 0 < ahead < 1 << 31 and completed - oldest.completed <= MAX_LATE:
                break
            passed.append(self._remove(oldest))
            oldest = self._oldest()
        return passed

    def finish(self) -> list[WaitingResponse]:
        """Remove and return all responses."""
        waiting = [each for each in self._all if each.is_open]
        self._all.clear()
        self._by_id.clear()
        self._count = self._bytes = 0
        return waiting

    def _oldest(self) -> WaitingResponse | None:
        while self._all:
            if self._all[0].is_open:
                return self._all[0]
            self._all.popleft()
        return None

    def _remove(self, waiting: WaitingResponse) -> WaitingResponse:
        of_id = self._by_id[waiting.correlation_id]
        of_id.popleft()  # the oldest of all, or of its id, is the first of its id
        if not of_id:
            del self._by_id[waiting.correlation_id]
        waiting.is_open = False
        self._count -= 1
        self._bytes -= len(waiting.frame)
        return waiting


def correlation_id_of(frame: bytes) -> int:
    """Read the correlation id of a response; of a shorter frame, the integer of its bytes."""
    if len(frame) >= 4:
        return int(read_i32_be(frame, 0))
    return int.from_bytes(frame, "big", signed=True)
