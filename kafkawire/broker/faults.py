"""Fault injection: which requests fail, and how.

Random numbers are passed in, so a run with the same seed fails in the same places.
"""

# over 300 lines: a fault, and the tables by which its fields are read, checked and shown

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final

from ..display import did_you_mean
from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..protocol import ErrorCode
from .apis import APIS, Listener, SupportedApis
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


UNSET: Final[Any] = None
"""The value of a field that has a default where the action uses it."""
DEFAULTS: Final[Mapping[str, object]] = {
    "error": ErrorCode.UNKNOWN_SERVER_ERROR,
    "delay": 1.0,
}
"""Field -> its value where it is not set."""
OF_ACTION: Final[Mapping[str, Action]] = {
    "error": Action.ERROR,
    "delay": Action.DELAY,
    "keep": Action.TRUNCATE,
    "at": Action.CORRUPT,
    "carried_out": Action.DISCONNECT,
}
"""Field -> the only action that uses it."""


@dataclass(slots=True)
class Fault:
    """A rule: which requests fail, how often, and how.

    match: an API key, as `ApiKey`, number or name (`Produce`), or a predicate of the request; None
    for any. nth: only the nth match, counted from 1; None for each. probability: the share of
    those. error: for ERROR, UNKNOWN_SERVER_ERROR by default. delay: seconds, for DELAY, 1 by
    default. keep: bytes left by TRUNCATE, None for half. at: index of the byte changed by CORRUPT,
    None for a random one after the correlation id. carried_out: for DISCONNECT, whether the request
    is carried out first.
    seen, hit: how many requests matched, and how many of them failed. failure: what the predicate
    raised first; it did not match then.
    A copy of `dataclasses.replace` counts anew; what was not set has the default again.
    """

    match: ApiKey | int | str | Callable[[Request], bool] | None = None
    nth: int | None = None
    probability: float = 1.0
    action: Action | str = Action.ERROR
    error: ErrorCode = UNSET
    delay: float = UNSET
    keep: int | None = None
    at: int | None = None
    carried_out: bool = False
    _unset: frozenset[str] = field(default=frozenset(), repr=False, compare=False, kw_only=True)
    """Fields with their defaults, which `dataclasses.replace` passes on as if they were set."""
    seen: int = field(default=0, init=False)
    failure: Exception | None = field(default=None, init=False, compare=False)
    _hit: int = field(default=0, init=False)
    _is_raised: bool = field(default=False, init=False, compare=False)

    def __repr__(self) -> str:
        """Return the rule as `parse` reads it, and how many requests it met."""
        api = _name(self.match) if isinstance(self.match, ApiKey) else "*"
        if callable(self.match):
            api = "function"
        values = {name: getattr(self, name) for name in PARSED}
        shown = {
            name: str(value).lower() if value is True else value.name if name == "error" else value
            for name, value in values.items()
            if not self._is_default(name, value)
        }
        rule = " ".join([api, *(f"{name}={value}" for name, value in shown.items())])
        return f"<Fault {rule}: {self.seen} matched, {self._hit} failed>"

    def _is_default(self, name: str, value: object) -> bool:
        """Whether a field need not be shown: it has its default, or its action does not use it."""
        if name in DEFAULTS:
            return OF_ACTION[name] is not self.action
        return name != "action" and value == FIELD_DEFAULTS[name]

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read a rule such as `Produce nth=3 action=disconnect`: an API, and fields of a fault.

        The API is left out, or `*`, for any. ValueError for an invalid rule; it names the place.
        """
        words = text.split()
        match = words.pop(0) if words and "=" not in words[0] else None
        settings: dict[str, object] = {}
        for word in words:
            name, _, value = word.partition("=")
            if name not in PARSED or name in settings:
                names = ", ".join(PARSED)
                reason = "given twice" if name in settings else f"unknown; expected one of {names}"
                raise ValueError(f"{word!r}: {reason}")
            try:
                settings[name] = PARSED[name](value)
            except (ValueError, KeyError):
                raise ValueError(f"{word!r}: invalid value; {EXPECTED[name]}") from None
        return cls(None if match == "*" else match, **settings)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        """Accept names and numbers for values.

        Raises ValueError for what no request could ever meet, and for what has no effect.
        """
        self.match = _match(self.match)
        self.action = _action(self.action)
        for name in self._unset:
            if getattr(self, name) == DEFAULTS[name]:
                setattr(self, name, UNSET)
        self._unset = frozenset(name for name in DEFAULTS if getattr(self, name) is UNSET)
        for name, action in OF_ACTION.items():
            value = getattr(self, name)
            if action is not self.action and value is not None and value is not False:
                reason = f"only the action {action.value!r} uses it"
                raise ValueError(f"{name}={value!r}: {reason}, not {self.action.value!r}")
        if self.error is not UNSET:
            self.error = error_code(self.error)
        for name in self._unset:
            setattr(self, name, DEFAULTS[name])
        for name in RANGES:
            value = getattr(self, name)
            if value is not None and not RANGES[name](value):
                raise ValueError(f"{name}={value!r}: {EXPECTED[name]}")

    def check_served(self, apis: SupportedApis) -> None:
        """Raise ValueError if brokers do not serve the API of this fault in their release."""
        if isinstance(self.match, ApiKey) and self.match not in apis.served:
            name = _name(self.match)
            raise ValueError(f"match={name!r}: brokers of release {apis.release} do not serve it")

    @property
    def hit(self) -> int:
        """How many requests failed. Raises what the predicate raised first."""
        if self.failure is not None:
            self._is_raised = True
            raise self.failure
        return self._hit

    @property
    def is_unused(self) -> bool:
        """Whether no request, or none as late as `nth`, has matched."""
        return self.failure is None and self.seen < (self.nth or 1)

    def check(self) -> None:
        """Raise what the predicate raised first, unless `hit` has raised it."""
        if not self._is_raised:
            _ = self.hit

    def matches(self, request: Request, draw: Callable[[], float]) -> bool:
        """Whether this request fails; counts it."""
        if not self._matches(request):
            return False
        self.seen += 1
        if self.nth is not None and self.seen != self.nth:
            return False
        if self.probability < 1.0 and draw() >= self.probability:
            return False
        self._hit += 1
        return True

    def _matches(self, request: Request) -> bool:
        if self.match is None:
            return True
        if isinstance(self.match, ApiKey):
            return request.api_key is self.match
        assert callable(self.match)
        try:
            return bool(self.match(request))
        except Exception as error:  # noqa: BLE001 - the user's function; `hit` raises it
            if self.failure is None:
                error.add_note("raised by the function of a fault")
                self.failure = error
            return False

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
    match: ApiKey | int | str | Callable[[Request], bool] | None,
) -> ApiKey | Callable[[Request], bool] | None:
    if match is None:
        return None
    if isinstance(match, bool) or not isinstance(match, int | str):
        if callable(match):
            return match
        raise ValueError(f"match={match!r}: expected an API key, its name or a function")
    key = api_key(match)
    if key not in APIS or not APIS[key].listeners & SERVED:
        raise ValueError(f"match={match!r}: brokers do not serve {_name(key)}")
    return key


def api_key(api: ApiKey | int | str) -> ApiKey:
    """Return an API key by its number, or its name as in `Produce`. ValueError if unknown."""
    number = _number(api)
    if number is not None:
        if number in KEYS:
            return ApiKey(number)
        raise ValueError(f"unknown API {number}")
    plain = str(api).removesuffix("Request").replace("_", "").lower()
    for key in ApiKey:
        if key.name.replace("_", "").lower() == plain:
            return key
    apis = [info.name.removesuffix("Request") for info in REGISTRY if info.type == "request"]
    raise ValueError(f"unknown API {api!r}{did_you_mean(str(api), apis)}")


def _name(key: ApiKey) -> str:
    info = REGISTRY.request(key)
    return key.name if info is None else info.name.removesuffix("Request")


def _number(value: object) -> int | None:
    """Return a number, or one in text, as on the command line; None for other text."""
    if isinstance(value, str):
        return int(value) if re.fullmatch("-?[0-9]{1,5}", value, re.ASCII) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _action(action: Action | str) -> Action:
    try:
        return Action(action)
    except ValueError:
        hint = did_you_mean(str(action), [each.value for each in Action])
        raise ValueError(f"unknown action {action!r}; {EXPECTED['action']}{hint}") from None


def error_code(error: ErrorCode | int | str) -> ErrorCode:
    """Return an error code by its number or name. ValueError if there is none, and for NONE."""
    number = _number(error)
    if number in ERRORS:
        return ErrorCode(number)
    if number == ErrorCode.NONE or error == ErrorCode.NONE.name:
        raise ValueError(f"error={error!r} is success; {EXPECTED['error']}")
    if error in ErrorCode.__members__:
        return ErrorCode[str(error)]
    hint = did_you_mean(str(error), [each.name for each in ERRORS])
    raise ValueError(f"unknown error {error!r}{hint or '; ' + EXPECTED['error']}")


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise ValueError(text)
    return int(text)


def _yes_or_no(text: str) -> bool:
    return {"true": True, "false": False}[text]


SERVED: Final = Listener.BROKER | Listener.ZK_BROKER
"""Listeners on which requests meet faults."""
KEYS: Final = frozenset(ApiKey)
ERRORS: Final = frozenset(ErrorCode) - {ErrorCode.NONE}
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
FIELD_DEFAULTS: Final[Mapping[str, object]] = {each.name: each.default for each in fields(Fault)}
EXPECTED: Final = {
    "action": f"expected one of {', '.join(Action)}",
    "nth": "expected a number from 1",
    "probability": "expected a number from 0 to 1",
    "error": "expected the name or the number of an error, such as NOT_LEADER_OR_FOLLOWER",
    "delay": "expected seconds",
    "keep": "expected a number of bytes",
    "at": "expected the index of a byte",
    "carried_out": "expected true or false",
}
