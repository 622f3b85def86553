"""Parses the values of comparisons, and makes their tests.

An invalid value is a FilterError at its place; the test of a value never fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fnmatch import translate
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple, TypeAlias

from ...display import most_similar
from ...errors import FilterError
from .fields import Field, Type
from .tokens import Token

ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
EQUAL: Final = "=="
GLOB: Final = "~"

DURATIONS: Final = {
    "ns": 1,
    "us": 1000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
SIZES: Final = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1_000_000,
    "gb": 1_000_000_000,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}
_QUANTITY: Final = re.compile(r"([+-]?\d{1,18}(?:\.\d{1,9})?)([A-Za-z]*)", re.ASCII)
_INTEGER: Final = re.compile(r"-?\d{1,18}", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class SinceFirst(NamedTuple):
    """A time relative to the first packet of a capture."""

    nanoseconds: int


Value: TypeAlias = str | int | SinceFirst


class Test(NamedTuple):
    """The test of a comparison.

    operator: `==` (one of the values is equal), `~` (one of the patterns matches), or an order.
    """

    operator: str
    values: tuple[Value, ...]

    @property
    def is_relative(self) -> bool:
        """Whether a value is relative to the first packet."""
        return any(isinstance(value, SinceFirst) for value in self.values)

    def compiled(self, first_ns: int | None) -> Callable[[Any], bool]:
        """Return a function that tests a value; first_ns: the time of the first packet."""
        values = [
            (first_ns or 0) + value.nanoseconds if isinstance(value, SinceFirst) else value
            for value in self.values
        ]
        if self.operator == EQUAL:
            return frozenset(values).__contains__
        if self.operator == GLOB:
            matches = [re.compile(translate(str(value))).match for value in values]
            return lambda text: any(match(text.lower()) is not None for match in matches)
        compare, bound = ORDER[self.operator], values[0]
        return lambda value: compare(value, bound)


def test_of(field: Field, operator: str, tokens: list[Token], text: str) -> Test:
    """Make the test of a comparison. Raises FilterError."""
    if operator == GLOB:
        return Test(GLOB, tuple(_pattern(field, token, text) for token in tokens))
    return Test(operator, tuple(_PARSERS[field.type](field, token, text) for token in tokens))


def suggestion(text: str, names: dict[str, str]) -> str:
    """Return `; did you mean X?` with the most similar name, "" for none. names: by lower case."""
    plain = text.lower().strip("*?[]")
    close = most_similar(plain, names.values()) if len(plain) < 256 else None
    if close is None and plain:  # part of a name, as in patterns
        close = next((names[name] for name in names if plain in name), None)
    return "" if close is None else f"; did you mean {close}?"


WHAT: Final = {"api": "API", "error": "error code"}
"""What the values of a field are called, if not like the field."""


def _names(field: Field) -> dict[str, str]:
    return {name.lower(): name for name in field.names()}


def _pattern(field: Field, token: Token, text: str) -> str:
    pattern = token.text.lower()
    if field.type is not Type.NAME:
        return pattern
    names = _names(field)
    match = re.compile(translate(pattern)).match
    if not any(match(name) for name in names):
        what = WHAT.get(field.name, field.name)
        raise _error(f"no {what} matches {token.text!r}{suggestion(pattern, names)}", token, text)
    return pattern


def _name(field: Field, token: Token, text: str) -> str:
    value = field.normalised(token.text)
    if value is None:
        what = WHAT.get(field.name, field.name)
        hint = suggestion(token.text, _names(field))
        if not hint and set(token.text) & set("*?["):
            hint = "; patterns need ~ in place of =="
        raise _error(f"unknown {what} {token.text!r}{hint}", token, text)
    return value


def _text(field: Field, token: Token, text: str) -> str:  # noqa: ARG001 - as the other parsers
    return token.text


def _number(field: Field, token: Token, text: str) -> int:
    if _INTEGER.fullmatch(token.text):
        return int(token.text)
    raise _error(f"{token.text!r} is not a valid {field.name}: expected a number", token, text)


def _size(field: Field, token: Token, text: str) -> int:  # noqa: ARG001 - as the other parsers
    return _quantity(token, text, SIZES, "size", "a number of bytes such as 1500, 10kB or 1MiB")


def _duration(field: Field, token: Token, text: str) -> int:  # noqa: ARG001 - as the others
    expected = "a duration such as 100ms, 1.5s or 2min"
    return _quantity(token, text, DURATIONS, "duration", expected)


def _quantity(token: Token, text: str, units: dict[str, int], what: str, expected: str) -> int:
    match = _QUANTITY.fullmatch(token.text)
    scale = None if match is None else units.get(match[2].lower())
    if match is None or scale is None:
        raise _error(f"{token.text!r} is not a valid {what}: expected {expected}", token, text)
    whole, _, fraction = match[1].partition(".")
    part = int(fraction.ljust(9, "0")) * scale // 10**9 if fraction else 0
    return int(whole) * scale + (-part if whole.startswith("-") else part)


def _time(field: Field, token: Token, text: str) -> int | SinceFirst:
    if token.text.startswith("+"):
        return SinceFirst(_duration(field, token, text))
    try:
        when = datetime.fromisoformat(token.text)
    except ValueError:
        reason = "expected a time such as 2026-01-02T10:00:00Z, or +5s after the first packet"
        raise _error(f"{token.text!r} is not a valid time: {reason}", token, text) from None
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH
    return since // timedelta(microseconds=1) * 1000


_PARSERS: Final[dict[Type, Callable[[Field, Token, str], Value]]] = {
    Type.NAME: _name,
    Type.TEXT: _text,
    Type.NUMBER: _number,
    Type.SIZE: _size,
    Type.DURATION: _duration,
    Type.TIME: _time,
}


def _error(reason: str, token: Token, text: str) -> FilterError:
    return FilterError(reason, text, token.at, token.length)
