"""Rules for defaults: a value of the field's type, and null only if nullable."""

from __future__ import annotations

import binascii
import math
import re
from typing import Final

from ..wire_types import WIRE_TYPES, WireType, uuid_bytes
from .names import brief
from .rule import FieldAt, FieldRule

_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)\Z")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\Z")
_NOT_FINITE: Final = ("Infinity", "-Infinity", "NaN")
_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}\Z")
MOST_DIGITS: Final = 40
"""Characters of the longest integer of any type, with room for zeros after 0x."""
MOST_BYTES: Final = 0x7FFF
"""Bytes of the longest string."""
_LENGTHLESS: Final = ("bytes", "records")


def _wire(at: FieldAt) -> WireType | None:
    """The primitive type of a scalar field; None for structs and arrays."""
    return WIRE_TYPES.get(at.written.schema.type)


def integer(text: str) -> int:
    """Read an integer default: decimal, or hexadecimal after 0x."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    return sign * (int(digits, 16) if digits.startswith("0x") else int(digits))


def _is_uuid(text: str) -> bool:
    if not _UUID.match(text):
        return False
    try:
        return len(uuid_bytes(text)) == 16
    except binascii.Error:
        return False


def _ill_formed(at: FieldAt) -> str | None:
    text, wire = at.written.schema.default, _wire(at)
    if not text or wire is None:
        return None
    if wire.is_integer:
        good, wanted = _INTEGER.match(text) is not None, "a number, decimal or after 0x"
    elif wire.name == "bool":
        good, wanted = text in ("true", "false"), "true or false"
    elif wire.name == "float64":
        good = text in _NOT_FINITE or _NUMBER.match(text) is not None
        wanted = "a number, Infinity, -Infinity or NaN"
    elif wire.name == "uuid":
        good, wanted = _is_uuid(text), "22 characters of URL-safe base64"
    else:
        return None
    return None if good else f"{brief(text)} is not a valid {wire.name}: expected {wanted}"


def _out_of_range(at: FieldAt) -> str | None:
    text, wire = at.written.schema.default, _wire(at)
    if not text or wire is None:
        return None
    if wire.low is not None and wire.high is not None and _INTEGER.match(text):
        # Python does not parse thousands of digits, and no type has so many
        if len(text) <= MOST_DIGITS and wire.low <= integer(text) <= wire.high:
            return None
        return f"{brief(text)} does not fit {wire.name}: {wire.low} to {wire.high}"
    if wire.name == "float64" and _NUMBER.match(text) and math.isinf(float(text)):
        return f"{brief(text)} does not fit float64; infinity is written Infinity"
    if wire.name == "string" and len(text.encode()) > MOST_BYTES:
        return f"{brief(text)} does not fit string: {MOST_BYTES} bytes of UTF-8 at most"
    return None


def _not_null(at: FieldAt) -> str | None:
    schema, wire = at.written.schema, _wire(at)
    if schema.default in (None, "", "null"):
        return None
    if wire is not None and wire.name not in _LENGTHLESS:
        return None
    return f"the default of {schema.type} is empty, or null, never {schema.default!r}"


def _null_not_nullable(at: FieldAt) -> str | None:
    schema, wire = at.written.schema, _wire(at)
    if schema.default != "null" or (wire is not None and not wire.can_be_null):
        return None
    if schema.nullable_versions.covers(schema.versions):
        return None
    return (
        f"null is the default in {schema.versions}, but only {schema.nullable_versions} may be null"
    )


DEFAULT_RULES: Final = (
    FieldRule(
        "default-ill-formed",
        "a default is written as its type demands",
        "default",
        ("type",),
        _ill_formed,
    ),
    FieldRule(
        "default-out-of-range",
        "a default fits its type",
        "default",
        ("type",),
        _out_of_range,
    ),
    FieldRule(
        "default-not-null",
        "structs, arrays and bytes have no default but null",
        "default",
        ("type",),
        _not_null,
    ),
    FieldRule(
        "default-null-not-nullable",
        "null is a default only of what is nullable in all its versions",
        "default",
        ("type", "nullableVersions", "versions", "taggedVersions"),
        _null_not_nullable,
    ),
)
