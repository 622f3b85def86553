"""Lays out a message: its structs and their nesting, and every position of a field.

Each struct is visited once, however often it is used, without recursion: a message of n fields
takes n steps, at any nesting depth. A field exists only in versions of everything around it; the
fields of a common struct are listed at each use.

    struct_fields   name -> fields, of the message itself, its common structs and its inline ones
    children_first  the names of those that the message holds, each after all that it holds
    spots           path             depth  versions
                    Topics           0      0+
                    Topics[].Name    1      0-12
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from .dialect import FieldSchema, MessageSchema
from .source import SchemaError, SchemaErrors
from .versions import Versions
from .wire_types import WIRE_TYPES

MOST_SPOTS: Final = 100_000
"""The most fields of a flattened message; Kafka's largest has under 100."""

Fields = tuple[FieldSchema, ...]


def struct_fields(schema: MessageSchema) -> dict[str, Fields]:
    """Map each struct of a message to its fields; the message's own fields are under its name."""
    structs: dict[str, Fields] = {schema.name: schema.fields}
    structs |= {struct.name: struct.fields for struct in schema.common_structs}
    pending: list[FieldSchema] = [f for fields in structs.values() for f in fields]
    while pending:
        field = pending.pop()
        if field.element not in WIRE_TYPES:
            structs.setdefault(field.element, field.fields)
            pending += field.fields
    return structs


def children_first(root: str, fields: Mapping[str, Fields]) -> list[str]:
    """Order the structs below `root`, each after those of its fields, in field order."""
    done: dict[str, None] = {}
    entered = {root}
    path: list[tuple[str, Iterable[str]]] = [(root, _held(root, fields))]
    while path:
        name, held = path[-1]
        child = next((c for c in held if c not in entered), None)
        if child is None:
            done[name] = None
            path.pop()
        else:
            entered.add(child)
            path.append((child, _held(child, fields)))
    return list(done)


def _held(name: str, fields: Mapping[str, Fields]) -> Iterable[str]:
    return iter([f.element for f in fields[name] if f.element in fields])


def depths(order: Iterable[str], fields: Mapping[str, Fields]) -> dict[str, int]:
    """Count for each struct, children first, the levels of structs inside it; 0 for none."""
    deep: dict[str, int] = {}
    for name in order:
        inside = (deep[f.element] for f in fields[name] if f.element in deep)
        deep[name] = 1 + max(inside, default=-1)
    return deep


@dataclass(frozen=True, slots=True)
class Spot:
    """One field at one position of a message.

    versions: the valid ones of `field` in which everything around it exists.
    """

    path: str
    depth: int
    field: FieldSchema
    versions: Versions

    @property
    def nullable(self) -> Versions:
        return self.field.nullable_versions & self.versions

    @property
    def tagged(self) -> Versions:
        return self.field.tagged_versions & self.versions


def spots(schema: MessageSchema) -> list[Spot]:
    """List every position of a checked message, parents first, without those in no version.

    SchemaErrors for more than MOST_SPOTS: twenty structs that each contain the next one twice give
    a million.
    """
    count = _count(schema)
    if count > MOST_SPOTS:
        reason = f"the structs unfold to {count} fields: {MOST_SPOTS} at most can be listed"
        raise SchemaErrors(
            (SchemaError.at(schema.location, schema.name, "too-many-spots", reason),)
        )
    common = {struct.name: struct for struct in schema.common_structs}

    def visit(
        fields: tuple[FieldSchema, ...], prefix: str, depth: int, around: Versions
    ) -> Iterator[Spot]:
        for field in fields:
            versions = field.versions & around
            if not versions:
                continue
            path = prefix + field.name
            yield Spot(path, depth, field, versions)
            inner, inside = field.fields, versions
            if field.element in common:
                inner = common[field.element].fields
                inside = versions & common[field.element].versions
            yield from visit(inner, f"{path}{'[]' * field.is_array}.", depth + 1, inside)

    return list(visit(schema.fields, "", 0, schema.valid_versions))


def _count(schema: MessageSchema) -> int:
    """Count the positions of a message in any version."""
    fields = struct_fields(schema)
    inside: dict[str, int] = {}
    for name in children_first(schema.name, fields):
        inside[name] = sum(1 + inside.get(f.element, 0) for f in fields[name])
    return inside[schema.name]
