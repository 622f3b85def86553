"""The normal form of a message: a table of its structs, however the schema nests or names them.

Each struct stands in the table once, its fields in wire order; the versions of a field are
those in which it exists, closed at the newest version. `to_schema` nests a struct again, unless
several fields use it or the schema that it came from has it among the common ones.

    MessageSchema --normal--> Normal { head, structs: name -> Fields } --to_schema--> MessageSchema
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from ..dialect import FieldSchema, MessageSchema, StructSchema
from ..layout import children_first, struct_fields
from ..versions import ALL, NONE, Versions
from ..wire_types import WIRE_TYPES

Fields = tuple[FieldSchema, ...]
"""The fields of a struct, none with fields of its own."""

NO_FIELDS: Final[Fields] = ()


@dataclass(frozen=True, slots=True)
class Normal:
    """A message: its head, a schema without fields, and its structs.

    structs: the message's own fields are under its name. common: those that the schema shares, and
    their purposes.
    """

    head: MessageSchema
    structs: dict[str, Fields]
    common: dict[str, str]

    @property
    def name(self) -> str:
        return self.head.name

    @property
    def versions(self) -> Versions:
        return self.head.valid_versions


def normal(schema: MessageSchema) -> Normal:
    """Convert a checked schema; fields that are in no valid version are left out."""
    written = struct_fields(schema)
    order = list(reversed(children_first(schema.name, written)))
    own = {struct.name: struct.versions for struct in schema.common_structs}
    around: dict[str, Versions] = {schema.name: schema.valid_versions}
    structs: dict[str, Fields] = {}
    for name in order:
        present = around.get(name, NONE)
        fields = tuple(cut(f, present) for f in written[name] if f.versions & present)
        for field in fields:
            if field.element in written:
                inside = field.versions & own.get(field.element, ALL)
                around[field.element] = around.get(field.element, NONE).hull(inside)
        structs[name] = fields
    used = {name: fields for name, fields in structs.items() if name in around}
    common = {struct.name: struct.about for struct in schema.common_structs}
    return Normal(replace(schema, fields=(), common_structs=()), used, common)


def cut(field: FieldSchema, around: Versions) -> FieldSchema:
    """Restrict a field to some versions; it loses its own fields."""
    versions = field.versions & around
    tagged = field.tagged_versions & versions
    return replace(
        field,
        versions=versions,
        nullable_versions=field.nullable_versions & versions,
        tagged_versions=tagged,
        tag=field.tag if tagged else None,
        fields=(),
    )


def to_schema(message: Normal) -> MessageSchema:
    """Convert back; structs that several fields use become common ones."""
    structs = message.structs
    order = children_first(message.name, structs)
    uses = Counter(f.element for name in order for f in structs[name] if f.element in structs)
    shared = {name for name in order if uses[name] > 1 or name in message.common}
    written: dict[str, Fields] = {}
    for name in order:  # children before parents
        written[name] = tuple(
            replace(f, fields=written[f.element])
            if f.element in structs and f.element not in shared
            else f
            for f in structs[name]
        )
    common = tuple(
        StructSchema(
            name,
            _hull(message, name),
            message.common.get(name, ""),
            written[name],
            message.head.location,
        )
        for name in _as_used(message, shared)
    )
    return replace(message.head, fields=written[message.name], common_structs=common)


def _hull(message: Normal, struct: str) -> Versions:
    """The versions of all fields of a struct's type."""
    versions = NONE
    for fields in message.structs.values():
        for field in fields:
            if field.element == struct:
                versions = versions.hull(field.versions)
    return versions


def _as_used(message: Normal, shared: set[str]) -> list[str]:
    """Order common structs as the schema has them, then as the fields first use them."""
    ordered = {name: None for name in message.common if name in shared}
    pending = list(reversed(message.structs[message.name]))
    entered: set[str] = set()
    while pending:
        field = pending.pop()
        name = field.element
        if name in WIRE_TYPES or name in entered:
            continue
        entered.add(name)
        if name in shared:
            ordered[name] = None
        pending += reversed(message.structs[name])
    return list(ordered)
