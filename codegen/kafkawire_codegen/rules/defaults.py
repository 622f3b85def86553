"""Rules for defaults: a value of the field's type, and null only where it may be null."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from ..wire_types import WIRE_TYPES, WireType
from .rule import FieldAt, FieldRule

_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)\Z")
_FLOAT: Final = re.compile(r"-?([0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|Infinity)\Z|NaN\Z")
_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}\Z")
_LENGTHLESS: Final = ("bytes", "records")


def _wire(at: FieldAt) -> WireType | None:
    """The primitive type of a field that holds one value; None for structs and arrays."""
    return WIRE_TYPES.get(at.written.schema.type)


def integer(text: str) -> int:
    """Read an integer default: decimal, or hexadecimal after 0x."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    return sign * (int(digits, 16) if digits.startswith("0x") else int(digits))


def _is_uuid(text: str) -> bool:
    if not _UUID.match(text):
        return False
    try:
        return len(base64.urlsafe_b64decode(text + "==")) == 16
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
        good, wanted = _FLOAT.match(text) is not None, "a number"
    elif wire.name == "uuid":
        good, wanted = _is_uuid(text), "22 characters of URL-safe base64"
    else:
        return None
    return None if good else f"{text!r} is no {wire.name}: {wanted} is"


def _out_of_range(at: FieldAt) -> str | None:
    text, wire = at.written.schema.default, _wire(at)
    if not text or wire is None or not _INTEGER.match(text):
        return None
    if wire.low is None or wire.high is None or wire.low <= integer(text) <= wire.high:
        return None
    return f"{text} does not fit {wire.name}: {wire.low} to {wire.high}"


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
        "a default fits its integer type",
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
