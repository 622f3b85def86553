"""Converts values from their JSON form to what fastavro encodes: the inverse of `json_form`.

A value that has no conversion is unchanged; the encoder rejects it if it does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from .json_form import HEX

FROM_TEXT: Final[Mapping[str, Callable[[str], object]]] = {
    "date": date.fromisoformat,
    "decimal": Decimal,
    "local-timestamp-micros": datetime.fromisoformat,
    "local-timestamp-millis": datetime.fromisoformat,
    "time-micros": time.fromisoformat,
    "time-millis": time.fromisoformat,
    "timestamp-micros": datetime.fromisoformat,
    "timestamp-millis": datetime.fromisoformat,
    "uuid": UUID,
}
"""Logical types whose JSON form is text."""
SPECIAL: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def native(value: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    """Convert a value in its JSON form; schema: parsed by fastavro."""
    if isinstance(schema, list):
        return _of_union(value, schema, named)
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return native(value, kind, named)
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if isinstance(value, str):
        return _of_text(value, kind, logical)
    if kind == "array" and isinstance(value, list):
        return [native(inner, schema["items"], named) for inner in value]
    if isinstance(value, dict):
        return _of_object(value, schema, kind, named)
    return value


def _of_object(value: dict[str, Any], schema: Any, kind: str, named: Mapping[str, Any]) -> Any:
    if kind in ("bytes", "fixed"):
        return bytes.fromhex(value[HEX]) if value.keys() == {HEX} else value
    if kind in ("record", "error"):
        types = {field["name"]: field["type"] for field in schema["fields"]}
        return {
            name: native(inner, types[name], named) if name in types else inner
            for name, inner in value.items()
        }
    if kind == "map":
        return {key: native(inner, schema["values"], named) for key, inner in value.items()}
    return value


def _of_text(value: str, kind: str, logical: str | None) -> object:
    convert = FROM_TEXT.get(logical or "")
    if convert is not None:
        return convert(value)
    if kind in ("float", "double") and value in SPECIAL:
        return float(value)
    return value.encode() if kind in ("bytes", "fixed") else value


def _of_union(value: Any, branches: list[Any], named: Mapping[str, Any]) -> Any:
    """Convert by the first branch that the converted value fits."""
    from fastavro.validation import validate

    for branch in branches:
        try:
            converted = native(value, branch, named)
            schema = named.get(branch, branch) if isinstance(branch, str) else branch
            if validate(converted, schema, raise_errors=False):
                return converted
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue
    return value
