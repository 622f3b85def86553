"""Lists the fields of messages and structs at a version, with their types as values.

Only this module reads `__fields__` and finds the classes of nested structs; everything that
walks over fields starts here, and builds what it needs once per class and version. It works for the
messages of any package, compiled or not.

    class, version        --once--> (Field, ...), in the order of the class
    class, version, pick  --------> (Step, ...): the fields that `pick` chooses, and the way to them
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from ..primitives import Structure

SIZES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
"""The size of each primitive type without a length of its own."""

T = TypeVar("T")


class Field(NamedTuple):
    """A field of a message or struct.

    attribute: its Python name; json_name: its name in Kafka's JSON form.
    element: the primitive type, or the name of the struct, of its value; of an array, of its
    elements. struct: the class of that struct; None for a primitive type.
    first, last: the versions that have it, both included.
    tag: its tag, or -1.
    entity_type: what the value identifies (topicName, groupId, ...); "" if unknown.
    nullable, tagged, compact: versions as in FieldRow.
    """

    attribute: str
    json_name: str
    element: str
    is_array: bool
    struct: type[Structure] | None
    first: int
    last: int
    tag: int
    entity_type: str
    nullable: tuple[int, int] | None = None
    tagged: tuple[int, int] | None = None
    compact: tuple[int, int] | None = None

    @property
    def is_tagged(self) -> bool:
        """Whether it is a tagged field (KIP-482)."""
        return self.tag >= 0

    def is_tagged_at(self, version: int) -> bool:
        """Whether it is a tagged field in a version."""
        return self.is_tagged and _is_among(version, self.tagged or (self.first, self.last))

    def is_nullable_at(self, version: int) -> bool:
        """Whether its value may be null in a version."""
        return self.nullable is not None and _is_among(version, self.nullable)

    def is_compact_at(self, version: int, flexible: bool) -> bool:
        """Whether its length is compact in a version, and not in a tagged field.

        flexible: whether that version of the message is flexible.
        """
        return flexible if self.compact is None else _is_among(version, self.compact)

    def is_a(self, primitive: str) -> bool:
        """Whether its value is of a primitive type, and not an array."""
        return self.element == primitive and not self.is_array

    def has_type_of(self, other: Field) -> bool:
        """Whether its type has the same name as that of a field of another struct."""
        return self.element == other.element and self.is_array == other.is_array


def _is_among(version: int, versions: tuple[int, int]) -> bool:
    return versions[0] <= version <= versions[1]


_all: Final[dict[type[Structure], tuple[Field, ...]]] = {}
_at: Final[dict[tuple[type[Structure], int], tuple[Field, ...]]] = {}


def all_fields(cls: type[Structure]) -> tuple[Field, ...]:
    """List the fields of all versions."""
    fields = _all.get(cls)
    if fields is None:
        fields = _all[cls] = tuple(_read(cls))
    return fields


def fields_at(cls: type[Structure], version: int) -> tuple[Field, ...]:
    """List the fields of a version."""
    fields = _at.get((cls, version))
    if fields is None:
        fields = tuple([field for field in all_fields(cls) if field.first <= version <= field.last])
        _at[cls, version] = fields
    return fields


def _read(cls: type[Structure]) -> list[Field]:
    module = sys.modules[cls.__module__]  # nested structs are in the module of their message
    fields: list[Field] = []
    for row in cls.__fields__:
        element = row.type.removeprefix("[]")
        struct = getattr(module, element) if element[0].isupper() else None
        fields.append(
            Field(
                row.attribute,
                row.json_name,
                element,
                element != row.type,
                struct,
                row.first,
                row.last,
                row.tag,
                row.entity_type,
                row.nullable,
                row.tagged,
                row.compact,
            )
        )
    return fields


# -- the way to some fields


class Step(Generic[T]):
    """A field on the way.

    use: what was chosen for it; None if it holds structs on the way: `inner` are the steps in each.
    """

    __slots__ = ("attribute", "inner", "use")

    def __init__(self, attribute: str, use: T | None, inner: tuple[Step[T], ...]) -> None:
        self.attribute = attribute
        self.use = use
        self.inner = inner


Pick = Callable[[type[Structure], Field], T | None]
"""Chooses fields: gives what a walker does with the field of a class, or None."""


def steps_to(cls: type[Structure], version: int, pick: Pick[T]) -> tuple[Step[T], ...]:
    """Find the fields that `pick` chooses in a struct and in those inside it; () if it has none."""
    steps: list[Step[T]] = []
    for field in fields_at(cls, version):
        use = pick(cls, field)
        if use is not None:
            steps.append(Step(field.attribute, use, ()))
        elif field.struct is not None:
            inner = steps_to(field.struct, version, pick)
            if inner:
                steps.append(Step(field.attribute, None, inner))
    return tuple(steps)
