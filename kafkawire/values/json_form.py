"""Writes decoded values in a form that JSON has.

Numbers of any size stay numbers; what JSON does not have is text (decimals, dates, NaN) or,
for bytes, `{"hex": ..}`; times are ISO 8601.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from ..errors import InvalidRecordValue

HEX: Final = "hex"
MAX_DIGITS: Final = 4096
"""Digits of a decimal that is encoded, with its zeros."""
MAX_ZEROS: Final = 100
"""Zeros of a decimal that is written without an exponent."""


def json_form(value: Any) -> Any:
    """Convert a decoded value; its depth is bounded by the decoders."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {_name(key): json_form(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_form(inner) for inner in value]
    for kind, convert in CONVERSIONS.items():
        if isinstance(value, kind):
            return convert(value)
    return str(value)


def _name(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.hex()
    return "null" if key is None else str(key)


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _decimal(value: Decimal) -> str:
    exponent = value.as_tuple().exponent
    plain = isinstance(exponent, int) and abs(exponent) <= MAX_ZEROS
    return format(value, "f") if plain else str(value)


def decimal_of(text: str) -> Decimal:
    """Read a decimal from its JSON form. Raises InvalidRecordValue."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise InvalidRecordValue(f"not a decimal: {text!r}") from None
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidRecordValue(f"not a decimal: {text!r}")
    if max(len(digits), abs(exponent)) > MAX_DIGITS:
        raise InvalidRecordValue(f"a decimal of more than {MAX_DIGITS} digits")
    return number


def _datetime(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


CONVERSIONS: Final[Mapping[type, Callable[[Any], Any]]] = {
    float: _float,
    bytes: lambda value: {HEX: value.hex()},
    Decimal: _decimal,
    datetime: _datetime,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: timedelta.total_seconds,
    UUID: str,
}
"""Types that JSON does not have, the more special first."""
