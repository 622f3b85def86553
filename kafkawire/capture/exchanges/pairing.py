"""Pairs responses with in-flight requests, on one connection.

Law: brokers respond in order, so a response leaves all older requests without one. A response
without a request waits for it: the capture may have the request later, or behind a gap. Once a
later request has its response, that request can no longer follow.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from librt.strings import read_i32_be
from mypy_extensions import i64

from ...primitives import Limits
from ..frames.decoding import InFlightRequest, Item, RawFrame
from ..frames.framing import Mark, partial_response, raw_response
from ..rows import Row, Status

MAX_IN_FLIGHT: Final = 1 << 16
"""In-flight requests at most; the oldest are dropped."""

MAX_COMPLETE: Final = 16
"""Requests with responses that are kept at most, unless there are as many without."""

MAX_WAITING_BYTES: Final = 1 << 23
"""Bytes of responses that wait for their request; the oldest are given up."""


@final
class WaitingResponse:
    """A response whose request was not captured so far."""

    def __init__(self, frame: bytes, mark: Mark) -> None:
        self.frame: bytes = frame
        self.mark: Mark = mark
        self.correlation_id: int = correlation_id_of(frame)


def correlation_id_of(frame: bytes) -> int:
    """Read the correlation id of a response; of a shorter frame, the integer of its bytes."""
    if len(frame) >= 4:
        return int(read_i32_be(frame, 0))
    return int.from_bytes(frame, "big", signed=True)


@final
class Pairing:
    """The in-flight requests of a connection, and its responses without a request."""

    def __init__(self, limits: Limits) -> None:
        self._limits: Limits = limits
        # a list whose first items may have their responses: quicker than a deque when compiled
        self._in_flight: list[InFlightRequest] = []
        self._oldest: i64 = 0
        self._waiting: deque[WaitingResponse] | None = None
        self._waiting_bytes: int = 0

    @property
    def has_waiting(self) -> bool:
        """Whether a response waits for its request."""
        return bool(self._waiting)

    def oldest(self, correlation_id: int) -> InFlightRequest | None:
        """Return the oldest in-flight request, if it has that correlation id."""
        if self._oldest < len(self._in_flight):
            request = self._in_flight[self._oldest]
            if request.correlation_id == correlation_id:
                return request
        return None

    def add(self, request: InFlightRequest) -> None:
        """Add an in-flight request for which no response waits."""
        if self._oldest == len(self._in_flight):
            self._in_flight.clear()
            self._oldest = 0
        self._in_flight.append(request)
        if len(self._in_flight) - self._oldest > MAX_IN_FLIGHT:
            self._complete(1)

    def complete_oldest(self) -> None:
        """Remove the oldest in-flight request, which has its response."""
        self._complete(1)

    @property
    def has_in_flight(self) -> bool:
        """Whether there is an in-flight request."""
        return len(self._in_flight) > self._oldest

    def in_flight(self) -> dict[int, tuple[int, int]]:
        """Correlation id -> API key and version, of the in-flight requests."""
        return {
            each.correlation_id: (each.api_key, each.api_version)
            for each in reversed(self._in_flight[self._oldest :])
        }

    def _complete(self, count: i64) -> None:
        """Remove the oldest in-flight requests; each is moved a bounded number of times."""
        self._oldest += count
        if self._oldest > MAX_COMPLETE and 2 * self._oldest > len(self._in_flight):
            del self._in_flight[: self._oldest]
            self._oldest = 0

    def add_request(self, request: InFlightRequest | None) -> list[Item]:
        """Add an in-flight request; return the responses that waited for it."""
        if request is None:
            return []
        self.add(request)
        for at, waiting in enumerate(self._waiting or ()):
            if waiting.correlation_id == request.correlation_id:
                items: list[Item] = [self._unpaired() for _ in range(at)]
                paired = self._pop_waiting()
                self._find_request(paired.frame)
                items.append(raw_response(paired.frame, paired.mark, request))
                return items
        return []

    def add_response(self, frame: bytes, mark: Mark) -> list[Item]:
        """Pair a response; return nothing yet if its request is missing."""
        request = self._find_request(frame)
        if request is not None:
            items = self.finish()
            items.append(raw_response(frame, mark, request))
            return items
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(WaitingResponse(frame, mark))
        self._waiting_bytes += len(frame)
        given_up: list[Item] = []
        while self._waiting_bytes > MAX_WAITING_BYTES:
            given_up.append(self._unpaired())
        return given_up

    def partial_response(self, frame: bytes, size: int, mark: Mark) -> Row:
        """Pair a truncated response of `size` bytes."""
        request = self._find_request(frame) if len(frame) >= 4 else None
        return partial_response(frame, size, mark, request)

    def finish(self) -> list[Item]:
        """Give up the waiting responses: their requests were not captured."""
        return [self._unpaired() for _ in range(len(self._waiting or ()))]

    def _find_request(self, frame: bytes) -> InFlightRequest | None:
        correlation_id = correlation_id_of(frame)
        at = self._oldest
        while at < len(self._in_flight):
            request = self._in_flight[at]
            at += 1
            if request.correlation_id == correlation_id:
                self._complete(at - self._oldest)
                return request
        return None

    def _pop_waiting(self) -> WaitingResponse:
        assert self._waiting is not None
        waiting = self._waiting.popleft()
        self._waiting_bytes -= len(waiting.frame)
        return waiting

    def _unpaired(self) -> Row:
        waiting = self._pop_waiting()
        return Row(
            waiting.mark.packet,
            waiting.mark.time_ns,
            "response",
            len(waiting.frame),
            Status.UNPAIRED,
            "its request was not captured",
            correlation_id=waiting.correlation_id,
            raw=waiting.frame[4:],
        )


def is_handshake_0(item: Item, handshake: int) -> bool:
    """Whether a response is to a SaslHandshake of version 0, which bare tokens follow.

    handshake: the API key of SaslHandshake.
    """
    if isinstance(item, RawFrame):
        request = item.request
        return request is not None and request.api_key == handshake and request.api_version == 0
    return item.api_key == handshake and item.api_version == 0
