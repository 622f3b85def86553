"""The model that templates see: messages, structs and fields, in all versions or in one.

Law: names and meanings here are stable, whatever the generator's own model becomes; values cannot
be changed. docs/templates.md lists every attribute (`documentation.py` writes it from these
docstrings).

    Message --at(version)--> MessageVersion: of the same names, with what one version has
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


class Message:
    """A message, in all of its versions."""

    __slots__ = ("_message", "_structs")

    def __init__(self, message: model.Message, structs: Iterable[Struct]) -> None:
        self._message = message
        self._structs = tuple(structs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """The name: `FetchRequest`."""
        return self._message.name

    @property
    def type(self) -> str:
        """`request`, `response`, `header`, `data`, ... as in the schema."""
        return self._message.type

    @property
    def api(self) -> str:
        """The API of a request or response: `Fetch`; for any other message, its name."""
        return self._message.api

    @property
    def api_key(self) -> int | None:
        """The key of its API, or None."""
        return self._message.api_key

    @property
    def about(self) -> str:
        """Its purpose; any text, so escape it."""
        return self._message.about

    @property
    def versions(self) -> Versions:
        """Its versions."""
        return self._message.versions

    @property
    def flexible(self) -> Versions:
        """Those of `versions` that are flexible (KIP-482)."""
        return self._message.flexible

    @property
    def deprecated(self) -> Versions:
        """Those of `versions` that are deprecated."""
        return self._message.deprecated

    @property
    def latest_unstable(self) -> bool:
        """Whether the highest version may still change."""
        return self._message.latest_unstable

    @property
    def listeners(self) -> tuple[str, ...]:
        """Who accepts the request: `broker`, `controller`."""
        return self._message.listeners

    @property
    def structs(self) -> tuple[Struct, ...]:
        """All structs, each after those that it holds; the last is `root`."""
        return self._structs

    @property
    def root(self) -> Struct:
        """The struct of the message's own fields, which has the message's name."""
        return self._structs[-1]

    def header_version(self, version: int) -> int | None:
        """The version of the header of a version; None for a message without a header."""
        return self._message.header_version(version)

    def at(self, version: int) -> MessageVersion:
        """The message in one version; ValueError if it has no such version."""
        if version not in self._message.versions:
            reason = f"{self.name} has versions {self.versions}, not {version}"
            raise ValueError(reason)
        return _at(self._message, version)


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


class MessageVersion(Message):
    """A message in one version: a `Message` whose `structs` are `StructVersion`s."""

    __slots__ = ("_version",)

    def __init__(self, message: model.Message, structs: Iterable[Struct], version: int) -> None:
        super().__init__(message, structs)
        self._version = version

    @property
    def version(self) -> int:
        """The version."""
        return self._version

    @property
    def is_flexible(self) -> bool:
        """Whether it is flexible (KIP-482)."""
        return self._version in self.flexible

    @property
    def is_deprecated(self) -> bool:
        """Whether it is deprecated."""
        return self._version in self.deprecated

    @property
    def is_unstable(self) -> bool:
        """Whether it may still change."""
        return self.latest_unstable and self._version == self.versions.high

    @property
    def header(self) -> int | None:
        """The version of its header; None for a message without a header."""
        return self.header_version(self._version)


def message_of(message: model.Message) -> Message:
    """Build what templates see of a message."""
    made: dict[str, Struct] = {}
    for struct in message.structs:
        fields = (Field(f, None if f.struct is None else made[f.element]) for f in struct.fields)
        made[struct.name] = Struct(struct, fields)
    return Message(message, made.values())


def _at(message: model.Message, version: int) -> MessageVersion:
    """Build a message with what one version has: each struct once, children first."""
    used = _used(message.root, version)
    made: dict[str, StructVersion] = {}
    for struct in message.structs:
        if struct.name in used:
            fields = [
                FieldVersion(f, None if f.struct is None else made[f.element], version)
                for f in struct.fields
                if version in f.versions
            ]
            made[struct.name] = StructVersion(struct, fields, version)
    return MessageVersion(message, made.values(), version)


def _used(root: model.Struct, version: int) -> set[str]:
    used = {root.name}
    pending = [root]
    while pending:
        for field in pending.pop().fields:
            struct = field.struct
            if struct is not None and struct.name not in used and version in field.versions:
                used.add(struct.name)
                pending.append(struct)
    return used
