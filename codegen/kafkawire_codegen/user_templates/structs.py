"""The fields and structs that templates see, in all versions or in one.

That of `messages`.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable

from .. import model
from ..versions import NONE, VersionCondition, Versions
from ..wire_types import WireType


class Field:
    """A field of a struct."""

    __slots__ = ("_field", "_struct")

    def __init__(self, field: model.Field, struct: Struct | None) -> None:
        self._field = field
        self._struct = struct

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """The name in the schema: `MaxWaitMs`."""
        return self._field.kafka_name

    @property
    def json_name(self) -> str:
        """The name in Kafka's JSON form: `maxWaitMs`."""
        return self._field.json_name

    @property
    def about(self) -> str:
        """Its purpose: any text, so escape it (`comment`, `json`)."""
        return self._field.about

    @property
    def type(self) -> str:
        """The type in the schema: `int32`, `[]string`, `FetchTopic`, `[]FetchTopic`."""
        return self._field.type

    @property
    def element(self) -> str:
        """The type without `[]`: the name of a wire type or of a struct."""
        return self._field.element

    @property
    def is_array(self) -> bool:
        """Whether it is an array of `element`."""
        return self._field.is_array

    @property
    def is_struct(self) -> bool:
        """Whether `element` is a struct."""
        return self._struct is not None

    @property
    def struct(self) -> Struct | None:
        """The struct that it is, or that it is an array of; None for a wire type."""
        return self._struct

    @property
    def wire(self) -> WireType | None:
        """The wire type of `element`; None for a struct."""
        return self._field.wire

    @property
    def versions(self) -> Versions:
        """The versions that have it."""
        return self._field.versions

    @property
    def nullable(self) -> Versions:
        """Those of `versions` in which it may be null."""
        return self._field.nullable

    @property
    def tagged(self) -> Versions:
        """Those of `versions` in which it is a tagged field (KIP-482)."""
        return self._field.tagged

    @property
    def plain(self) -> Versions:
        """Those of `versions` in which it is not tagged."""
        return self._field.plain

    @property
    def compact(self) -> Versions:
        """Those of `versions` in which its length is an unsigned varint; none without a length."""
        wire = self._field.wire
        has_length = self._field.is_array or (wire is not None and wire.size is None)
        return self._field.flexible & self._field.versions if has_length else NONE

    @property
    def tag(self) -> int | None:
        """The tag of a tagged field, or None."""
        return self._field.tag

    @property
    def default(self) -> object:
        """The value where it is absent: None, `[]`, `{}` for a struct, text for a uuid, ..."""
        value, wire = self._field.default, self._field.wire
        if value is model.EMPTY_STRUCT:
            return {}
        if wire is not None and wire.name == "uuid" and isinstance(value, bytes):
            return urlsafe_b64encode(value)[:22].decode("ascii")
        return value

    @property
    def default_kind(self) -> str:
        """`null`, `array` (empty), `struct` (each of its fields at its default) or `value`."""
        value = self._field.default
        if value is None:
            return "null"
        if self._field.is_array:
            return "array"
        return "struct" if value is model.EMPTY_STRUCT else "value"

    @property
    def ignorable(self) -> bool:
        """Whether a value is dropped, and no error, in a version without the field."""
        return self._field.ignorable

    @property
    def key(self) -> bool:
        """Whether it identifies an element of the array that holds its struct (`mapKey`)."""
        return self._field.map_key

    @property
    def entity_type(self) -> str | None:
        """What the value identifies: `topicName`, `groupId`, ...; None if the schema is silent."""
        return self._field.entity_type


class Struct:
    """A named group of fields; the fields of a message are its struct `root`."""

    __slots__ = ("_fields", "_struct")

    def __init__(self, struct: model.Struct, fields: Iterable[Field]) -> None:
        self._struct = struct
        self._fields = tuple(fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """The name, unique in its message: `FetchTopic`."""
        return self._struct.name

    @property
    def about(self) -> str:
        """Its purpose; empty where the schema says it of the field that holds it."""
        return self._struct.about

    @property
    def versions(self) -> Versions:
        """The versions that have it."""
        return self._struct.versions

    @property
    def flexible(self) -> Versions:
        """Those of `versions` that end with tagged fields."""
        return self._struct.flexible

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in the order of the schema; those that are not tagged are in wire order."""
        return self._fields

    @property
    def plain_fields(self) -> tuple[Field, ...]:
        """The fields that some version has untagged, in wire order."""
        return tuple(field for field in self.fields if field.plain)

    @property
    def tagged_fields(self) -> tuple[Field, ...]:
        """The fields that some version has as tagged fields, by tag."""
        tagged = (field for field in self.fields if field.tagged)
        return tuple(sorted(tagged, key=lambda field: field.tag or 0))

    def when(self, versions: Versions) -> VersionCondition:
        """The condition that a version of the struct is among `versions`."""
        return VersionCondition(versions, self.versions)


class FieldVersion(Field):
    """A field in one version: a `Field` whose `struct`, if any, is a `StructVersion`."""

    __slots__ = ("_version",)

    def __init__(self, field: model.Field, struct: StructVersion | None, version: int) -> None:
        super().__init__(field, struct)
        self._version = version

    @property
    def is_nullable(self) -> bool:
        """Whether it may be null."""
        return self._version in self.nullable

    @property
    def is_tagged(self) -> bool:
        """Whether it is a tagged field."""
        return self._version in self.tagged

    @property
    def is_compact(self) -> bool:
        """Whether its length is an unsigned varint."""
        return self._version in self.compact


class StructVersion(Struct):
    """A struct in one version: a `Struct` whose fields are `FieldVersion`s."""

    __slots__ = ("_version",)

    def __init__(self, struct: model.Struct, fields: Iterable[Field], version: int) -> None:
        super().__init__(struct, fields)
        self._version = version

    @property
    def is_flexible(self) -> bool:
        """Whether it ends with tagged fields."""
        return self._version in self.flexible

    @property
    def plain_fields(self) -> tuple[Field, ...]:
        """The fields that are not tagged, in wire order."""
        return tuple(field for field in self.fields if self._version in field.plain)

    @property
    def tagged_fields(self) -> tuple[Field, ...]:
        """The tagged fields, by tag."""
        tagged = (field for field in self.fields if self._version in field.tagged)
        return tuple(sorted(tagged, key=lambda field: field.tag or 0))
