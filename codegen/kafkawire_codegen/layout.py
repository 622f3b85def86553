"""Flattens a message: every position of a field, with its versions.

Law: a field exists only in versions of everything around it; the fields of a common struct are
listed at each use.

    path             depth  versions
    Topics           0      0+
    Topics[].Name    1      0-12
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .dialect import FieldSchema, MessageSchema
from .nesting import children_first, struct_fields
from .source import SchemaError, SchemaErrors
from .versions import Versions

MOST_SPOTS: Final = 100_000
"""The most fields of a flattened message; Kafka's largest has under 100."""


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
        raise SchemaErrors((SchemaError.at(schema.place, schema.name, "too-many-spots", reason),))
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
