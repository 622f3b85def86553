"""The valid values of configuration keys, and why a value is invalid, as Kafka's ConfigDef.

Space around a value is ignored, and `TRUE` is `true`, as in Kafka: `normalized` is the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum
from math import isfinite
from re import compile
from typing import Any, Final, NamedTuple

from .durations import is_offset_reset


class ConfigType(IntEnum):
    """The type of a value in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Valid(NamedTuple):
    """Which values of its type a key has.

    least, most: of a number; also: further numbers. one_of: of a text, or of each item of a list;
    any_case: in small letters, too. empty: whether a list, or a text, may be empty; duplicates:
    whether a list may have an item twice, and empty ones. form: of texts, in `FORMS`.
    """

    least: float | None = None
    most: float | None = None
    also: tuple[float, ...] = ()
    one_of: tuple[str, ...] = ()
    any_case: bool = False
    empty: bool = True
    duplicates: bool = True
    form: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Valid:
        """Read the valid values of a row of the tables."""
        lists = {name: tuple(row[name]) for name in ("also", "one_of") if name in row}
        return cls(**{**row, **lists})


ANY: Final = Valid()
"""All values of a type."""
RANGES: Final = {ConfigType.SHORT: 2**15, ConfigType.INT: 2**31, ConfigType.LONG: 2**63}
NUMBERS: Final = RANGES.keys() | {ConfigType.DOUBLE}
INTEGER: Final = compile(r"[+-]?\d+")
FLOAT: Final = compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
LONGEST_NUMBER: Final = 400
"""Longer ones are not converted: Python's int() refuses some, float() takes its time."""
REPLICAS: Final = compile(r"([0-9]+:[0-9]+)?")


def invalid_reason(type: ConfigType, valid: Valid, name: str, value: str) -> str | None:
    """Return why a value of a key is not one of the type, or not valid; None if it is."""
    if type is ConfigType.LIST:
        return _list_reason(valid, name, value)
    reason = _one_reason(type, valid, value.strip())
    return None if reason is None else _invalid(name, normalized(type, valid, value), reason)


def _one_reason(type: ConfigType, valid: Valid, text: str) -> str | None:
    if type is ConfigType.BOOLEAN:
        expected = "Expected value to be either true or false"
        return None if text.lower() in ("true", "false") else expected
    if type in NUMBERS:
        number = _number(type, text)
        return f"Not a number of type {type.name}" if number is None else _out_of(valid, number)
    return _text_reason(valid, text) if type is ConfigType.STRING else None


def _invalid(name: str, value: str, reason: str) -> str:
    return f"Invalid value {value} for configuration {name}: {reason}"


def normalized(type: ConfigType, valid: Valid, value: str) -> str:
    """Return a valid value as DescribeConfigs shows it, another as it is."""
    text = value.strip()
    if type is ConfigType.BOOLEAN:
        return text.lower()
    if type in RANGES and INTEGER.fullmatch(text):
        return str(int(text))
    if type is ConfigType.LIST:
        parts = items(value)
        return ",".join(parts if valid.duplicates else dict.fromkeys(parts))
    if type is ConfigType.DOUBLE and FLOAT.fullmatch(text):
        return _double(float(text.rstrip("fFdD")))
    return value if type is ConfigType.PASSWORD else text


def items(value: str) -> list[str]:
    """Return the items of a list, without the space around them."""
    text = value.strip()
    return [part.strip() for part in text.split(",")] if text else []


def _double(number: float) -> str:
    """Write a number as Java's Double.toString."""
    if not isfinite(number):
        return str(number).replace("nan", "NaN").replace("inf", "Infinity")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    first, *rest = map(str, digits)
    power = len(rest) + int(exponent)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{power}"


def _number(type: ConfigType, text: str) -> float | None:
    if len(text) > LONGEST_NUMBER:
        return None
    if type is ConfigType.DOUBLE:
        return float(text.rstrip("fFdD")) if FLOAT.fullmatch(text) else None
    if not INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -RANGES[type] <= number < RANGES[type] else None


def _out_of(valid: Valid, number: float) -> str | None:
    if number in valid.also:
        return None
    low, high = valid.least, valid.most
    below, above = low is not None and number < low, high is not None and number > high
    if valid.also and (below or above):
        others = ", ".join(map(str, valid.also))
        return f"Value must be between {low} and {high} or equal to {others}"
    if below:
        return f"Value must be at least {low}"
    return f"Value must be no more than {high}" if above else None


def _list_reason(valid: Valid, name: str, value: str) -> str | None:
    parts = items(value)
    if valid.form is not None:
        reason = FORMS[valid.form](value)
        return None if reason is None else _invalid(name, value, reason)
    if not valid.empty and not parts:
        return f"Configuration '{name}' must not be empty."
    for part in parts:
        if not part and not valid.duplicates:
            return f"Configuration '{name}' values must not be empty."
        if valid.one_of and part not in valid.one_of:
            return _invalid(name, part, f"String must be one of: {', '.join(valid.one_of)}")
    if not valid.duplicates and len(set(parts)) != len(parts):
        return f"Configuration '{name}' values must not be duplicated."
    return None


def _text_reason(valid: Valid, text: str) -> str | None:
    if valid.form is not None:
        return FORMS[valid.form](text)
    if not valid.empty and not text:
        return "String must be non-empty"
    folded = text.upper() if valid.any_case else text
    if valid.one_of and folded not in valid.one_of:
        insensitive = " (case insensitive)" if valid.any_case else ""
        return f"String must be one of{insensitive}: {', '.join(valid.one_of)}"
    return None


def _replicas_reason(value: str) -> str | None:
    parts = items(value)
    if parts == ["*"] or all(REPLICAS.fullmatch(part) for part in parts):
        return None
    return "must be * or a list of replicas: partition:broker,partition:broker"


def _offset_reset_reason(value: str) -> str | None:
    if is_offset_reset(value):
        return None
    return (
        f"Invalid value `{value}` for configuration share.auto.offset.reset. The value must be "
        "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


FORMS: Final = {"replicas": _replicas_reason, "offset reset": _offset_reset_reason}
"""Form of texts -> why a text is not of it."""
