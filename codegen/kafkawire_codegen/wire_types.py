"""The dialect's primitive types: their Python types and sizes on the wire."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class WireType:
    """One primitive type.

    size: bytes on the wire; None if the value has a leading length.
    low, high: the range of an integer type, both included.
    """

    name: str
    annotation: str
    default: str
    size: int | None
    low: int | None = None
    high: int | None = None

    @property
    def is_integer(self) -> bool:
        return self.low is not None

    @property
    def can_be_null(self) -> bool:
        return self.name in ("string", "bytes", "records")


def _integer(name: str, size: int, *, signed: bool) -> WireType:
    bits = size * 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return WireType(name, "int", "0", size, low, high)


WIRE_TYPES: Final = {
    t.name: t
    for t in (
        WireType("bool", "bool", "False", 1),
        _integer("int8", 1, signed=True),
        _integer("int16", 2, signed=True),
        _integer("uint16", 2, signed=False),
        _integer("int32", 4, signed=True),
        _integer("uint32", 4, signed=False),
        _integer("int64", 8, signed=True),
        WireType("float64", "float", "0.0", 8),
        WireType("uuid", "bytes", "ZERO_UUID", 16),
        WireType("string", "str", '""', None),
        WireType("bytes", "bytes", 'b""', None),
        WireType("records", "bytes", 'b""', None),
    )
}


def uuid_bytes(text: str) -> bytes:
    """Read a uuid in the form of schemas: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64decode(f"{text}==")
