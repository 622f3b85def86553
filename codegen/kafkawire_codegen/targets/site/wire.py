"""Describes the types of the dialect as they are on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...wire_types import WIRE_TYPES, WireType


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A type: its size or range, and its form in versions without and with tagged fields."""

    name: str
    size: str
    plain: str
    flexible: str


COMPACT: Final = "unsigned varint length + 1, 0 for null"
LENGTHS: Final = {
    "string": ("int16 length, -1 for null; then UTF-8", COMPACT),
    "bytes": ("int32 length, -1 for null; then the bytes", COMPACT),
    "records": ("int32 length, -1 for null; then record batches", COMPACT),
}
SAME: Final = "the same"
FORMS: Final = {
    "bool": "0 is false, any other byte true",
    "uuid": "its bytes, the highest first; all zero for none",
    "float64": "IEEE 754 double, big-endian",
}

STRUCTURES: Final = (
    TypeRow(
        "array",
        "varies",
        "int32 number of elements, -1 for null; then the elements",
        "unsigned varint number + 1, 0 for null",
    ),
    TypeRow(
        "struct",
        "varies",
        "its fields in order; before a nullable one an int8: -1 for null, 1 otherwise",
        "the same, then its tagged fields; a nullable one that is itself a tagged field has an "
        "unsigned varint before it: 0 for null, 1 otherwise",
    ),
    TypeRow(
        "tagged fields",
        "varies",
        "none",
        "unsigned varint number; then for each field, by tag: unsigned varint tag, "
        "unsigned varint size, value. A field with its default is left out",
    ),
    TypeRow(
        "unsigned varint",
        "1 to 5 bytes",
        "seven bits of the number in each byte, the lowest first; "
        "the highest bit says that another byte follows",
        SAME,
    ),
)


def type_rows() -> list[TypeRow]:
    """List every type, the dialect's primitives first."""
    return [*map(_row, WIRE_TYPES.values()), *STRUCTURES]


def _row(wire: WireType) -> TypeRow:
    if wire.size is None:
        return TypeRow(wire.name, "varies", *LENGTHS[wire.name])
    size = f"{wire.size} byte{'s' * (wire.size > 1)}"
    if wire.is_integer:
        sign = "unsigned" if wire.low == 0 else "two's complement"
        form = f"{sign}, big-endian; {wire.low} to {wire.high}"
        return TypeRow(wire.name, size, form, SAME)
    return TypeRow(wire.name, size, FORMS[wire.name], SAME)
