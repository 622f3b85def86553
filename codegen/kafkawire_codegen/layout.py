"""A message laid out flat: every spot where a field stands, with the versions that have it there.

Law: a field is only where all that is around it is; the fields of a common struct stand at each
spot where that is used.

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
"""Fields that a message may unfold to and still be listed; Kafka's largest has under 100."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One field at one spot of a message.

    versions: those of `field` that are valid and in which all that is around it is there.
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
    """List every spot of a checked message, parents first; those in no version are left out.

    SchemaErrors where there are more than MOST_SPOTS: twenty structs that each hold the next one
    twice are a million.
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
    """Count the spots of a message in any version."""
    fields = struct_fields(schema)
    inside: dict[str, int] = {}
    for name in children_first(schema.name, fields):
        inside[name] = sum(1 + inside.get(f.element, 0) for f in fields[name])
    return inside[schema.name]
