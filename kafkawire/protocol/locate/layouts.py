"""Makes the layouts of structs that a walk over values follows.

A layout follows from the fields of a class and their defaults alone, and is made once per
class and version.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ...primitives.structure import Structure
from ..fields import SIZES, Field, all_fields
from .plan import is_flexible
from .values import (
    Check,
    FieldCheck,
    Layout,
    check_absent,
    check_array,
    check_bool,
    check_bytes,
    check_float,
    check_integer,
    check_no_tags,
    check_nullable,
    check_struct,
    check_text,
    check_uuid,
)
from .walk import UNKNOWN_TAGS

CHECKS: Final[dict[str, Check]] = {
    "string": check_text,
    "bytes": check_bytes,
    "records": check_bytes,
    "bool": check_bool,
    "uuid": check_uuid,
    "float64": check_float,
}
"""The checks of primitive types other than integers."""

_made: Final[dict[tuple[type[Structure], int], Layout]] = {}


def layout_of(cls: type[Structure], version: int, flexible: int | None) -> Layout:
    """Return the layout of a struct in a version; flexible: its message's first flexible one."""
    layout = _made.get((cls, version))
    if layout is None:
        layout = _made[cls, version] = _make(cls, version, flexible)
    return layout


def _make(cls: type[Structure], version: int, flexible: int | None) -> Layout:
    names: tuple[str, ...] = cls.__match_args__
    defaults, fields_of_class = cls(), all_fields(cls)
    fields: list[FieldCheck] = []
    for field in fields_of_class:
        if has(field, version) and not field.is_tagged_at(version):
            fields.append(_present(field, version, flexible))
        elif not has(field, version) and not field.is_tagged:
            fields.append(_absent(cls, field, defaults))
    if UNKNOWN_TAGS in names and not is_flexible(version, flexible):
        fields.append(FieldCheck(f".{UNKNOWN_TAGS}", UNKNOWN_TAGS, check_no_tags))
    fields += [
        _absent(cls, field, defaults)
        for field in fields_of_class
        if field.is_tagged and not has(field, version)
    ]
    tagged = [
        (field.tag, getattr(defaults, field.attribute), _present(field, version, flexible))
        for field in sorted(fields_of_class, key=lambda field: field.tag)
        if field.is_tagged_at(version)
    ]
    return Layout(cls.__name__, names, tuple(fields), is_flexible(version, flexible), tuple(tagged))


def has(field: Field, version: int) -> bool:
    """Whether a version has a field, plain or tagged."""
    return field.first <= version <= field.last


def _absent(cls: type[Structure], field: Field, defaults: Any) -> FieldCheck:
    """Make the place of a field that a version does not have."""
    default = getattr(defaults, field.attribute)
    name = f"{cls.__name__}.{field.attribute}"
    check = partial(check_absent, name=name, default=default)
    return FieldCheck(f".{field.attribute}", field.attribute, check)


def _present(field: Field, version: int, flexible: int | None) -> FieldCheck:
    """Make the place of a field that a version has."""
    return FieldCheck(f".{field.attribute}", field.attribute, check_of(field, version, flexible))


def check_of(field: Field, version: int, flexible: int | None) -> Check:
    """Choose the check of a field's value in a version that has it."""
    nullable = field.is_nullable_at(version)
    if field.struct is not None:
        layout = layout_of(field.struct, version, flexible)
        if not field.is_array:
            return partial(check_struct, layout=layout, nullable=nullable)
        elements: Check = partial(check_struct, layout=layout, nullable=False)
        return partial(
            check_nullable, nullable=nullable, check=partial(check_array, check=elements)
        )
    sized = field.element not in SIZES
    check = primitive(field.element)
    if field.is_array:
        if sized:
            check = partial(check_nullable, nullable=False, check=check)
        check = partial(check_array, check=check)
    elif not sized:
        return check
    return partial(check_nullable, nullable=nullable, check=check)


def primitive(type: str) -> Check:
    """Make the check of a primitive type."""
    check = CHECKS.get(type)
    if check is not None:
        return check
    bits = 8 * SIZES[type]
    low, high = (0, 2**bits - 1) if type[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return partial(check_integer, name=type, low=low, high=high)
