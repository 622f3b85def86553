"""Fault injection: which requests fail, and how.

Law: random numbers are passed in, so a run with the same seed fails in the same places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ..display import did_you_mean
from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..protocol import ErrorCode
from .request import Request


class Action(StrEnum):
    """The effect of a fault."""

    ERROR = "error"
    """Respond with an error; the request is not carried out."""
    DELAY = "delay"
    """Carry it out, respond later."""
    DROP = "drop"
    """Carry it out; send neither this response nor any later one on the connection."""
    TRUNCATE = "truncate"
    """Carry it out, send a part of the response, close."""
    CORRUPT = "corrupt"
    """Carry it out, send the response with one byte changed."""
    DISCONNECT = "disconnect"
    """Close; `carried_out` says whether the request was carried out first."""


@dataclass(slots=True)
class Fault:
    """A rule: which requests fail, how often, and how.

    match: an API key, its name as in `Produce`, or a predicate of the request; None for any.
    nth: only the nth match, counted from 1; None for each.
    probability: the share of those.
    error: for ERROR. delay: seconds, for DELAY. keep: bytes left by TRUNCATE, None for half.
    at: index of the byte changed by CORRUPT, None for a random one after the correlation id.
    seen, hit: how many requests matched, and how many of them failed.
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

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read a rule such as `Produce nth=3 action=disconnect`: an API, and fields of a fault.

        The API is left out, or `*`, for any. ValueError for an invalid rule; it names the place.
        """
        words = text.split()
        match = words.pop(0) if words and "=" not in words[0] else None
        given: dict[str, object] = {}
        for word in words:
            name, _, value = word.partition("=")
            if name not in PARSED or name in given:
                known = ", ".join(PARSED)
                reason = "given twice" if name in given else f"unknown; expected one of {known}"
                raise ValueError(f"{word!r}: {reason}")
            try:
                given[name] = PARSED[name](value)
            except (ValueError, KeyError):
                raise ValueError(f"{word!r}: invalid value; {EXPECTED[name]}") from None
        return cls(None if match == "*" else match, **given)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        """Accept names for values; ValueError for what no request could ever meet."""
        self.match = _match(self.match)
        self.action = _action(self.action)
        self.error = error_code(self.error)
        for name in RANGES:
            value = getattr(self, name)
            if value is not None and not RANGES[name](value):
                raise ValueError(f"{name}={value!r}: {EXPECTED[name]}")

    def matches(self, request: Request, draw: Callable[[], float]) -> bool:
        """Whether this request fails; counts it."""
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
        """Return the response frame after truncation or corruption."""
        if self.action is Action.TRUNCATE:
            return data[: len(data) // 2 if self.keep is None else self.keep]
        if self.action is Action.CORRUPT:
            head = min(8, len(data) - 1)
            at = head + int(draw() * (len(data) - head)) if self.at is None else self.at
            return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        return data


def _match(
    match: ApiKey | str | Callable[[Request], bool] | None,
) -> ApiKey | Callable[[Request], bool] | None:
    if isinstance(match, str):
        return api_key(match)
    if match is not None and not isinstance(match, ApiKey) and not callable(match):
        raise ValueError(f"match={match!r}: expected an API key, its name or a function")
    return match


def api_key(name: str) -> ApiKey:
    """Return an API key by its name, as in `Produce` or `PRODUCE`. ValueError if unknown."""
    plain = name.removesuffix("Request").replace("_", "").lower()
    for key in ApiKey:
        if key.name.replace("_", "").lower() == plain:
            return key
    apis = [info.name.removesuffix("Request") for info in REGISTRY if info.type == "request"]
    raise ValueError(f"unknown API {name!r}{did_you_mean(name, apis)}")


def _action(action: Action | str) -> Action:
    try:
        return Action(action)
    except ValueError:
        hint = did_you_mean(str(action), [each.value for each in Action])
        raise ValueError(f"unknown action {action!r}{hint}; {EXPECTED['action']}") from None


def error_code(error: ErrorCode | str) -> ErrorCode:
    """Return an error code by its name. ValueError if it has no error of that name."""
    if isinstance(error, ErrorCode):
        return error
    if error in ErrorCode.__members__:
        return ErrorCode[error]
    hint = did_you_mean(str(error), ErrorCode.__members__)
    raise ValueError(f"unknown error {error!r}{hint or '; ' + EXPECTED['error']}")


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise ValueError(text)
    return int(text)


def _yes_or_no(text: str) -> bool:
    return {"true": True, "false": False}[text]


PARSED: Final[Mapping[str, Callable[[str], object]]] = {
    "action": str,
    "nth": _whole,
    "probability": float,
    "error": str,
    "delay": float,
    "keep": _whole,
    "at": _whole,
    "carried_out": _yes_or_no,
}
"""What reads the fields of a rule; whether they are in range the fault itself checks."""
RANGES: Final[Mapping[str, Callable[[float], bool]]] = {
    "nth": lambda nth: nth >= 1,
    "probability": lambda share: 0 <= share <= 1,
    "delay": lambda seconds: 0 <= seconds < math.inf,
    "keep": lambda size: size >= 0,
}
"""Which numbers a fault may have."""
EXPECTED: Final = {
    "action": f"expected one of {', '.join(Action)}",
    "nth": "expected a number from 1",
    "probability": "expected a number from 0 to 1",
    "error": "expected the name of an error, such as NOT_LEADER_OR_FOLLOWER",
    "delay": "expected seconds",
    "keep": "expected a number of bytes",
    "at": "expected the index of a byte",
    "carried_out": "expected true or false",
}
