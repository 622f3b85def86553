"""Requests and the responses that answer them, on one connection.

Law: brokers answer in order, so an answer leaves every older request without one. A response whose
request is not there waits: a tap may have the request's packet later, or behind a hole; once a
later request is answered it can no longer come.
"""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

from librt.strings import read_i32_be
from mypy_extensions import mypyc_attr

from ...messages.api_key import ApiKey
from ...primitives import Limits
from ..frames.decoding import InFlightRequest, RawFrame, raw_response
from ..frames.stream import Mark
from ..frames.truncated import partial_response
from ..rows import Row, Status

Item: TypeAlias = Row | RawFrame
"""What a conversation says: a row, or a frame that is one when it is opened."""

HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)

MAX_ASKED: Final = 1 << 16
"""Requests remembered without a response."""

MAX_WAITING_BYTES: Final = 1 << 23
"""Bytes of responses that wait for their request, before the oldest are given up."""


@mypyc_attr(allow_interpreted_subclasses=True)
class _Waiting:
    def __init__(self, frame: bytes, mark: Mark) -> None:
        self.frame: bytes = frame
        self.mark: Mark = mark
        self.correlation_id: int = correlation_id_of(frame)


def correlation_id_of(frame: bytes) -> int:
    """Read what a response begins with; of a shorter frame, the number that its bytes make."""
    if len(frame) >= 4:
        return int(read_i32_be(frame, 0))
    return int.from_bytes(frame, "big", signed=True)


@mypyc_attr(allow_interpreted_subclasses=True)
class Pairing:
    """The requests of a connection without a response, and the responses without a request."""

    def __init__(self, limits: Limits) -> None:
        self._limits: Limits = limits
        self._asked: deque[InFlightRequest] = deque()
        self._waiting: deque[_Waiting] | None = None
        self._waiting_bytes: int = 0

    @property
    def waits(self) -> bool:
        """Whether a response waits for its request."""
        return bool(self._waiting)

    def next(self, correlation_id: int) -> InFlightRequest | None:
        """Give the oldest request without a response, if that is its number."""
        if self._asked:
            asked = self._asked[0]
            if asked.correlation_id == correlation_id:
                return asked
        return None

    def ask(self, asked: InFlightRequest) -> None:
        """Note a request for which no response can wait."""
        self._asked.append(asked)
        if len(self._asked) > MAX_ASKED:
            self._asked.popleft()

    def answer(self) -> None:
        """Take note that the oldest request has its response."""
        self._asked.popleft()

    @property
    def awaits(self) -> bool:
        """Whether there is a request without a response."""
        return len(self._asked) > 0

    def awaited(self) -> dict[int, tuple[int, int]]:
        """Correlation id -> API key and version of the requests without a response."""
        return {a.correlation_id: (a.api_key, a.api_version) for a in reversed(self._asked)}

    def request(self, asked: InFlightRequest | None) -> list[Item]:
        """Note a request; returns the responses that waited for it."""
        if asked is None:
            return []
        self.ask(asked)
        for at, waiting in enumerate(self._waiting or ()):
            if waiting.correlation_id == asked.correlation_id:
                items: list[Item] = [self._unpaired() for _ in range(at)]
                found = self._release()
                self._answered(found.frame)
                items.append(raw_response(found.frame, found.mark, asked))
                return items
        return []

    def response(self, frame: bytes, mark: Mark) -> list[Item]:
        """Take a response; nothing is said yet if its request is not there."""
        asked = self._answered(frame)
        if asked is not None:
            items = self.finish()
            items.append(raw_response(frame, mark, asked))
            return items
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(_Waiting(frame, mark))
        self._waiting_bytes += len(frame)
        given_up: list[Item] = []
        while self._waiting_bytes > MAX_WAITING_BYTES:
            given_up.append(self._unpaired())
        return given_up

    def partial_response(self, frame: bytes, size: int, mark: Mark) -> Row:
        """Read what there is of a response of `size` bytes."""
        asked = self._answered(frame) if len(frame) >= 4 else None
        return partial_response(frame, size, mark, asked)

    def finish(self) -> list[Item]:
        """Give up the responses that wait: their requests are not in the capture."""
        return [self._unpaired() for _ in range(len(self._waiting or ()))]

    def _answered(self, frame: bytes) -> InFlightRequest | None:
        correlation_id = correlation_id_of(frame)
        for at, asked in enumerate(self._asked):
            if asked.correlation_id == correlation_id:
                for _ in range(at + 1):
                    self._asked.popleft()
                return asked
        return None

    def _release(self) -> _Waiting:
        assert self._waiting is not None
        waiting = self._waiting.popleft()
        self._waiting_bytes -= len(waiting.frame)
        return waiting

    def _unpaired(self) -> Row:
        waiting = self._release()
        return Row(
            waiting.mark.packet,
            waiting.mark.time_ns,
            "response",
            len(waiting.frame),
            Status.UNPAIRED,
            "its request is not in the capture",
            correlation_id=waiting.correlation_id,
            raw=waiting.frame[4:],
        )


def is_handshake_0(item: Item) -> bool:
    """Whether a response answers a SaslHandshake of version 0, behind which come bare tokens."""
    if isinstance(item, RawFrame):
        asked = item.asked
        return asked is not None and asked.api_key == HANDSHAKE and asked.api_version == 0
    return item.api_key == HANDSHAKE and item.api_version == 0
