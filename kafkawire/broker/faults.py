"""Faults on purpose: what goes wrong with which requests.

Law: chance comes in as an argument, so a run with the same seed fails in the same places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ..messages.api_key import ApiKey
from ..protocol import ErrorCode
from .request import Request


class Action(StrEnum):
    """What a fault does."""

    ERROR = "error"
    """Return a response with the error; the request is not carried out."""
    DELAY = "delay"
    """Carry it out, answer later."""
    DROP = "drop"
    """Carry it out; this answer and what would follow on the connection never come."""
    TRUNCATE = "truncate"
    """Carry it out, send a part of the answer, close."""
    CORRUPT = "corrupt"
    """Carry it out, send the answer with a byte changed."""
    DISCONNECT = "disconnect"
    """Close; `carried_out` says whether the request was carried out first."""


@dataclass(slots=True)
class Fault:
    """A rule: which requests, how often, what.

    match: an API key, its name as in `Produce`, or a function of the request; None is any.
    nth: only the nth that matches, counted from 1; None is each.
    probability: of those, how many.
    error: for ERROR. delay: seconds, for DELAY. keep: bytes left by TRUNCATE, None is half.
    at: the byte changed by CORRUPT, None is any behind the correlation id.
    """

    match: ApiKey | str | Callable[[Request], bool] | None = None
    nth: int | None = None
    probability: float = 1.0
    action: Action | str = Action.ERROR
    error: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    delay: float = 1.0
    keep: int | None = None
    at: int | None = None
    carried_out: bool = False
    seen: int = 0
    hit: int = 0

    def __post_init__(self) -> None:
        self.action = Action(self.action)
        if isinstance(self.match, str):
            name = self.match.removesuffix("Request")
            found = [key for key in ApiKey if key.name.replace("_", "").lower() == name.lower()]
            if not found:
                raise ValueError(f"{self.match!r} is no API")
            self.match = found[0]

    def matches(self, request: Request, draw: Callable[[], float]) -> bool:
        """Whether this request is one that it hits."""
        if not self._matches(request):
            return False
        self.seen += 1
        if self.nth is not None and self.seen != self.nth:
            return False
        if self.probability < 1.0 and draw() >= self.probability:
            return False
        self.hit += 1
        return True

    def _matches(self, request: Request) -> bool:
        if self.match is None:
            return True
        if isinstance(self.match, ApiKey):
            return request.api_key is self.match
        assert not isinstance(self.match, str)
        return self.match(request)

    def damage(self, data: bytes, draw: Callable[[], float]) -> bytes:
        """Say what is left of an answer's frame."""
        if self.action is Action.TRUNCATE:
            return data[: len(data) // 2 if self.keep is None else self.keep]
        if self.action is Action.CORRUPT:
            head = min(8, len(data) - 1)
            at = head + int(draw() * (len(data) - head)) if self.at is None else self.at
            return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        return data
