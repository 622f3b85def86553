"""Resolves a schema: structs in dependency order, fields in wire order, all version decisions.

Versions, names and defaults are resolved here, not in templates or the reference codec; a
struct that is used several times is one `Struct` whose versions are the union of its uses.

    MessageSchema --build--> Message -> Struct (children first, the message itself last) -> Field
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from . import naming
from .dialect import FieldSchema, HeaderVersions, MessageSchema
from .files import Sources
from .headers import header_versions
from .layout import children_first, struct_fields
from .schema import load_sources
from .versions import ALL, NONE, VersionCondition, Versions
from .wire_types import WIRE_TYPES, WireType, uuid_bytes

TYPES_WITH_FRAME: Final = ("request", "response")


@dataclass(slots=True, eq=False)
class Field:
    """One field of a struct.

    versions: the versions that have it, within the struct's own; nullable, tagged: subsets of them.
    struct: set if the element type is a struct; otherwise `wire` is set. default: the value of an
    absent field, as a Python value (`EMPTY_STRUCT` for a default struct).
    """

    kafka_name: str
    attribute: str
    is_array: bool
    wire: WireType | None
    struct: Struct | None
    versions: Versions
    nullable: Versions
    tagged: Versions
    flexible: Versions
    tag: int | None
    ignorable: bool
    default: object
    map_key: bool
    entity_type: str | None
    about: str

    @property
    def json_name(self) -> str:
        return naming.json_name(self.kafka_name)

    @property
    def local(self) -> str:
        return naming.local(self.attribute)

    @property
    def element(self) -> str:
        """The type of one element: a primitive's or a struct's name."""
        if self.struct is not None:
            return self.struct.name
        assert self.wire is not None
        return self.wire.name

    @property
    def type(self) -> str:
        return f"[]{self.element}" if self.is_array else self.element

    @property
    def plain(self) -> Versions:
        """Versions in which the field is not in the tagged block."""
        return self.versions - self.tagged

    @property
    def is_struct_value(self) -> bool:
        return self.struct is not None and not self.is_array

    @property
    def may_be_none(self) -> bool:
        return bool(self.nullable) or self.default is None


class EmptyStruct:
    """Placeholder for an instance of the struct with every field at its default."""

    def __repr__(self) -> str:
        return "EMPTY_STRUCT"


EMPTY_STRUCT: Final = EmptyStruct()


@dataclass(slots=True, eq=False)
class Struct:
    """A named group of fields.

    about: its purpose; empty where the schema says it of a field that holds it.
    compared: whether a writer must test if an instance is all defaults (because it is in a tagged
    field, or in a field that some version does not have).
    """

    name: str
    about: str = ""
    fields: list[Field] = field(default_factory=list)
    versions: Versions = NONE
    flexible: Versions = NONE
    compared: bool = False

    @property
    def snake(self) -> str:
        return naming.snake(self.name)

    @property
    def plain_fields(self) -> list[Field]:
        return [f for f in self.fields if f.plain]

    @property
    def tagged_fields(self) -> list[Field]:
        return sorted((f for f in self.fields if f.tagged), key=lambda f: f.tag or 0)

    @property
    def has_tags(self) -> bool:
        """Whether some version of it has a block of tagged fields."""
        return bool(self.flexible)

    def when(self, versions: Versions) -> VersionCondition:
        """The condition that a version of this struct is among `versions`."""
        return VersionCondition(versions, self.versions)


@dataclass(slots=True, eq=False)
class Message:
    """One message: the facts of its schema, and its structs.

    Children stand before parents, the message's own struct last. headers: the header version of
    each version; empty for a message without a header.
    """

    name: str
    type: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    deprecated: Versions
    latest_unstable: bool
    listeners: tuple[str, ...]
    headers: HeaderVersions
    about: str
    structs: list[Struct]

    @property
    def root(self) -> Struct:
        return self.structs[-1]

    @property
    def module(self) -> str:
        return naming.module(self.name)

    @property
    def api(self) -> str:
        """The API of a request or response: `Fetch`."""
        return naming.api_name(self.name)

    def header_version(self, version: int) -> int | None:
        """Return the header version of a version; None for a message without a header."""
        return next((header for versions, header in self.headers if version in versions), None)


def build(schema: MessageSchema) -> Message:
    """Resolve one checked schema to its model."""
    return _Builder(schema).message()


def load(schemas: Sources) -> list[Message]:
    """Read every schema of sources, sorted by name; SchemaErrors lists every error."""
    return [build(schema) for schema in load_sources(schemas) if schema.valid_versions]


class _Builder:
    """Visits every struct once, after all structs that use it, when all its uses are known."""

    def __init__(self, schema: MessageSchema) -> None:
        self.schema = schema
        self.flexible = schema.flexible_versions & schema.valid_versions
        self.own = {schema.name: ALL, **{s.name: s.versions for s in schema.common_structs}}

    def message(self) -> Message:
        schema = self.schema
        written = struct_fields(schema)
        order = children_first(schema.name, written)
        about = {s.name: s.about for s in schema.common_structs} | {schema.name: schema.about}
        structs = {name: Struct(name, about.get(name, "")) for name in reversed(order)}
        structs[schema.name].versions = schema.valid_versions
        for struct in structs.values():
            for field_schema in written[struct.name]:
                self.place(struct, field_schema, structs)
            struct.flexible = self.flexible & struct.versions
        _mark_compared(list(structs.values()))
        kept = used_structs(structs[schema.name])
        return Message(
            name=schema.name,
            type=schema.type,
            api_key=schema.api_key,
            versions=schema.valid_versions,
            flexible=self.flexible,
            deprecated=schema.deprecated_versions & schema.valid_versions,
            latest_unstable=schema.latest_version_unstable,
            listeners=schema.listeners,
            headers=header_versions(schema),
            about=schema.about,
            structs=[structs[name] for name in order if name in kept],
        )

    def place(self, struct: Struct, written: FieldSchema, structs: dict[str, Struct]) -> None:
        """Add a field to a struct whose versions are known; a field in no version is left out."""
        versions = written.versions & struct.versions
        if not versions:
            return
        child = structs.get(written.element)
        if child is not None:
            child.versions = child.versions.hull(versions & self.own.get(child.name, ALL))
        struct.fields.append(self.field(written, versions, child))

    def field(self, written: FieldSchema, versions: Versions, child: Struct | None) -> Field:
        wire = WIRE_TYPES.get(written.element)
        own = written.flexible_versions
        nullable = written.nullable_versions & versions
        return Field(
            kafka_name=written.name,
            attribute=naming.attribute(written.name),
            is_array=written.is_array,
            wire=wire,
            struct=child,
            versions=versions,
            nullable=nullable,
            tagged=written.tagged_versions & versions,
            flexible=self.flexible if own is None else own & self.flexible,
            tag=written.tag,
            ignorable=written.ignorable,
            default=_default(written.default, written.is_array, wire, bool(nullable)),
            map_key=written.map_key,
            entity_type=written.entity_type,
            about=written.about,
        )


def _default(text: str | None, is_array: bool, wire: WireType | None, nullable: bool) -> object:
    if text == "null":
        return None
    if is_array:
        return []
    if wire is None:
        return EMPTY_STRUCT
    if wire.name == "records" and nullable:
        return None
    return int(text or "0", 0) if wire.is_integer else _SCALARS[wire.name](text or "")


_SCALARS: Final[Mapping[str, Callable[[str], object]]] = {
    "bool": lambda text: text == "true",
    "string": lambda text: text,
    "float64": lambda text: float(text or "0"),
    "uuid": lambda text: uuid_bytes(text) if text else bytes(16),
    "bytes": lambda text: b"",  # noqa: ARG005
    "records": lambda text: b"",  # noqa: ARG005
}
"""The type of a scalar other than an integer -> its default, as a schema writes it."""


def used_structs(root: Struct, versions: Versions = ALL) -> set[str]:
    """Name the structs that fields of these versions have, the root included."""
    used = {root.name}
    pending = [root]
    while pending:
        for f in pending.pop().fields:
            if f.struct is not None and f.struct.name not in used and f.versions & versions:
                used.add(f.struct.name)
                pending.append(f.struct)
    return used


def _mark_compared(structs: list[Struct]) -> None:
    """Find the structs whose instances a writer compares with the default one."""
    pending = [
        f.struct
        for s in structs
        for f in s.fields
        if f.struct is not None
        and not f.is_array
        and (f.tagged or (not f.ignorable and not f.versions.covers(s.versions)))
    ]
    while pending:
        struct = pending.pop()
        if not struct.compared:
            struct.compared = True
            pending += [f.struct for f in struct.fields if f.struct is not None and not f.is_array]
