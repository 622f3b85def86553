"""Makes the layouts of structs that a walk follows.

A layout follows from the fields of a class alone, and is made once per class and version.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ...primitives.structure import Structure
from ..fields import SIZES, Field, all_fields
from .walk import (
    Plan,
    Read,
    Walk,
    read_array,
    read_bytes,
    read_optional,
    read_struct,
    read_text,
)

_made: Final[dict[tuple[type[Structure], int], Plan]] = {}


def plan_of(cls: type[Structure], version: int, flexible: int | None) -> Plan:
    """Return the layout of a struct in a version; flexible: its message's first flexible one."""
    layout = _made.get((cls, version))
    if layout is None:
        layout = _made[cls, version] = _make(cls, version, flexible)
    return layout


def _make(cls: type[Structure], version: int, flexible: int | None) -> Plan:
    tagged: dict[int, tuple[str, Read]] = {}
    elsewhere: dict[int, str] = {}
    fields: list[tuple[str, Read]] = []
    for field in all_fields(cls):
        step = f".{field.attribute}"
        if field.is_tagged_at(version):
            tagged[field.tag] = step, read_of(field, version, flexible, is_tagged=True)
            continue
        if field.is_tagged:
            elsewhere[field.tag] = step
        if field.first <= version <= field.last:
            fields.append((step, read_of(field, version, flexible, is_tagged=False)))
    return Plan(tuple(fields), is_flexible(version, flexible), tagged, elsewhere)


def is_flexible(version: int, flexible: int | None) -> bool:
    """Whether a version has compact lengths and tagged fields (KIP-482)."""
    return flexible is not None and version >= flexible


def read_of(field: Field, version: int, flexible: int | None, *, is_tagged: bool) -> Read:
    """Choose the reader of a field's value in a version that has it."""
    compact = is_tagged or field.is_compact_at(version, is_flexible(version, flexible))
    nullable = field.is_nullable_at(version)
    if field.struct is not None:
        structs = partial(read_struct, plan=plan_of(field.struct, version, flexible))
        if not field.is_array:
            return partial(read_optional, tagged=is_tagged, read=structs) if nullable else structs
        return partial(
            read_array, size=0 if compact else 4, nullable=nullable, read=structs, objects=1
        )
    if field.is_array:
        one = read_primitive(field.element, compact, nullable=False)
        return partial(read_array, size=0 if compact else 4, nullable=nullable, read=one)
    return read_primitive(field.element, compact, nullable)


def read_primitive(type: str, compact: bool, nullable: bool) -> Read:
    """Make what reads a value of a primitive type."""
    size = SIZES.get(type)
    if size is not None:
        return partial(Walk.take, size=size)
    if type == "string":
        return partial(read_text, size=0 if compact else 2, nullable=nullable)
    return partial(read_bytes, size=0 if compact else 4, nullable=nullable)
