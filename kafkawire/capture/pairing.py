"""Requests and the responses that answer them, on one connection.

Law: brokers answer in order, so an answer leaves every older request without one. A response whose
request is not there waits: a tap may have the request's packet later, or behind a hole; once a
later request is answered it can no longer come.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from ..primitives import Limits
from .reading import Asked, asked_by, partial_response, response_row
from .rows import Row, Status
from .stream import Mark

MAX_ASKED: Final = 1 << 16
"""Requests remembered without a response."""

MAX_WAITING_BYTES: Final = 1 << 23
"""Bytes of responses that wait for their request, before the oldest are given up."""


class _Waiting(NamedTuple):
    frame: bytes
    mark: Mark

    @property
    def correlation_id(self) -> int:
        return int.from_bytes(self.frame[:4], "big", signed=True)


class Pairing:
    """The requests of a connection without a response, and the responses without a request."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._asked: deque[Asked] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0

    def awaited(self) -> dict[int, tuple[int, int]]:
        """Correlation id -> API key and version of the requests without a response."""
        return {a.correlation_id: (a.api_key, a.api_version) for a in reversed(self._asked)}

    def request(self, row: Row) -> list[Row]:
        """Note a request; returns the rows of responses that waited for it."""
        asked = asked_by(row)
        if asked is None:
            return []
        self._asked.append(asked)
        if len(self._asked) > MAX_ASKED:
            self._asked.popleft()
        for at, waiting in enumerate(self._waiting):
            if waiting.correlation_id == asked.correlation_id:
                rows = [self._unpaired() for _ in range(at)]
                found = self._release()
                self._answered(found.frame)
                return [*rows, response_row(found.frame, found.mark, asked, self._limits)]
        return []

    def response(self, frame: bytes, mark: Mark) -> list[Row]:
        """Read a response; no row yet if its request is not there."""
        asked = self._answered(frame)
        if asked is not None:
            return [*self.finish(), response_row(frame, mark, asked, self._limits)]
        self._waiting.append(_Waiting(frame, mark))
        self._waiting_bytes += len(frame)
        rows = []
        while self._waiting_bytes > MAX_WAITING_BYTES:
            rows.append(self._unpaired())
        return rows

    def partial_response(self, frame: bytes, size: int, mark: Mark) -> Row:
        """Read what there is of a response of `size` bytes."""
        asked = self._answered(frame) if len(frame) >= 4 else None
        return partial_response(frame, size, mark, asked)

    def finish(self) -> list[Row]:
        """Give up the responses that wait: their requests are not in the capture."""
        return [self._unpaired() for _ in range(len(self._waiting))]

    def _answered(self, frame: bytes) -> Asked | None:
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        for at, asked in enumerate(self._asked):
            if asked.correlation_id == correlation_id:
                for _ in range(at + 1):
                    self._asked.popleft()
                return asked
        return None

    def _release(self) -> _Waiting:
        waiting = self._waiting.popleft()
        self._waiting_bytes -= len(waiting.frame)
        return waiting

    def _unpaired(self) -> Row:
        frame, mark = waiting = self._release()
        return Row(
            mark.packet,
            mark.time_ns,
            "response",
            len(frame),
            Status.UNPAIRED,
            "its request is not in the capture",
            correlation_id=waiting.correlation_id,
            raw=frame[4:],
        )
