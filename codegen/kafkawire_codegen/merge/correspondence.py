"""Finds which structs and fields of two forms of a message are the same.

Fields of the same name in corresponding structs are the same; so are those that stand in the
same place of a version that both forms have, where everything else agrees: they were renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..dialect import FieldSchema
from ..wire_types import WIRE_TYPES
from .normal import Fields, Normal

Pair = tuple[str, str]
"""A struct of the newer form, and its counterpart in the older one."""


@dataclass(frozen=True, slots=True)
class Correspondence:
    """structs: older name -> newer name. fields: of each pair, renamed fields, older -> newer."""

    structs: Mapping[str, str]
    fields: Mapping[Pair, Mapping[str, str]]


def correspondence(newer: Normal, older: Normal) -> Correspondence:
    """Compare two forms from the message down, each pair of structs once."""
    structs: dict[str, str] = {}
    fields: dict[Pair, dict[str, str]] = {}
    pending: list[Pair] = [(newer.name, older.name)]
    while pending:
        pair = pending.pop()
        if pair in fields:
            continue
        structs.setdefault(pair[1], pair[0])
        ours, theirs = newer.structs[pair[0]], older.structs[pair[1]]
        renamed = _renamed(newer, older, ours, theirs)
        fields[pair] = renamed
        by_name = {field.name.lower(): field for field in ours}
        for field in reversed(theirs):
            same = by_name.get(renamed.get(field.name, field.name).lower())
            if same is None or same.is_array != field.is_array:
                continue
            if same.element in newer.structs and field.element in older.structs:
                pending.append((same.element, field.element))
    return Correspondence(structs, fields)


def _renamed(newer: Normal, older: Normal, ours: Fields, theirs: Fields) -> dict[str, str]:
    """Map old names to new ones, from the versions that both forms have."""
    both = newer.versions & older.versions
    our_names = {field.name.lower() for field in ours}
    kept = {field.name.lower() for field in theirs}
    if our_names == kept:
        return {}
    renamed: dict[str, str] = {}
    edges = {edge for field in (*ours, *theirs) for edge in field.versions.edges}
    for version in sorted(edge for edge in {both.low, *edges} if edge in both):
        layouts = _layout(ours, version), _layout(theirs, version)
        if [_shape(f) for f in layouts[0]] == [_shape(f) for f in layouts[1]]:
            renamed |= {
                old.name: new.name
                for new, old in zip(*layouts, strict=True)
                if old.name.lower() not in our_names and new.name.lower() not in kept
            }
    return renamed


def _layout(fields: Fields, version: int) -> list[FieldSchema]:
    """List the fields of a version: those without a tag in order, then the others by tag."""
    present = [field for field in fields if version in field.versions]
    plain = [field for field in present if version not in field.tagged_versions]
    tagged = [field for field in present if version in field.tagged_versions]
    return plain + sorted(tagged, key=lambda field: field.tag or 0)


def _shape(field: FieldSchema) -> tuple[bool, str, int | None]:
    """Return what a renamed field keeps: whether it is an array, its type, its tag."""
    element = field.element if field.element in WIRE_TYPES else "struct"
    return field.is_array, element, field.tag
