"""What a schema means: structs in dependency order, fields in wire order, every version decision
taken.

Law: whatever a template or the reference codec would have to work out about versions, names or
defaults is a value here; a struct used at several places is one `Struct` whose versions are the
union of its places.

    MessageSchema --build--> Message -> Struct (children first, the message itself last) -> Field
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from . import naming
from .schema import FieldSchema, MessageSchema, load_directory
from .versions import ALL, NONE, Versions, condition
from .wire_types import WIRE_TYPES, WireType

TYPES_WITH_FRAME: Final = ("request", "response")


@dataclass(slots=True, eq=False)
class Field:
    """One field of a struct.

    versions: where it exists, inside the struct's own versions; nullable, tagged: parts of that.
    struct: set where the element type is a struct; else `wire`. default: the value a reader gives
    it where it is absent, as a Python value (`EMPTY_STRUCT` for a default struct).
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
        """Versions in which the field stands at its place, not in the tagged block."""
        return self.versions - self.tagged

    @property
    def is_struct_value(self) -> bool:
        return self.struct is not None and not self.is_array

    @property
    def may_be_none(self) -> bool:
        return bool(self.nullable) or self.default is None


class EmptyStruct:
    """Stands for "an instance of the struct with every field at its default"."""

    def __repr__(self) -> str:
        return "EMPTY_STRUCT"


EMPTY_STRUCT: Final = EmptyStruct()


@dataclass(slots=True, eq=False)
class Struct:
    """A named group of fields.

    compared: whether a writer must be able to tell if an instance is all defaults (it sits in a
    tagged field, or in a field that some version lacks).
    """

    name: str
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
        """Whether some version of it ends in a block of tagged fields."""
        return bool(self.flexible)

    def when(self, versions: Versions) -> str:
        """The test, in generated code, that a version of this struct is among `versions`."""
        return condition(versions, self.versions)


@dataclass(slots=True, eq=False)
class Message:
    """One message: its schema's facts, and its structs, children before parents, the message's own
    last.
    """

    name: str
    type: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    latest_unstable: bool
    about: str
    structs: list[Struct]

    @property
    def root(self) -> Struct:
        return self.structs[-1]

    @property
    def module(self) -> str:
        return naming.snake(self.name)


def build(schema: MessageSchema) -> Message:
    """Resolve one checked schema into its model."""
    return _Builder(schema).message()


def load(directory: Path) -> list[Message]:
    """Read every schema of a directory, sorted by name; SchemaErrors names each fault found."""
    return [build(schema) for schema in load_directory(directory) if schema.valid_versions]


class _Builder:
    def __init__(self, schema: MessageSchema) -> None:
        self.schema = schema
        self.flexible = schema.flexible_versions & schema.valid_versions
        self.common = {s.name: s for s in schema.common_structs}
        self.structs: dict[str, Struct] = {}

    def message(self) -> Message:
        schema = self.schema
        self.visit(schema.name, schema.fields, schema.valid_versions)
        structs = list(self.structs.values())
        for struct in structs:
            struct.flexible = self.flexible & struct.versions
            struct.fields = [f for f in struct.fields if f.versions]
        _mark_compared(structs)
        return Message(
            name=schema.name,
            type=schema.type,
            api_key=schema.api_key,
            versions=schema.valid_versions,
            flexible=self.flexible,
            latest_unstable=schema.latest_version_unstable,
            about=schema.about,
            structs=_children_first(structs[0]),
        )

    def visit(self, name: str, fields: tuple[FieldSchema, ...], where: Versions) -> Struct:
        """Meet a struct at a place whose versions are `where`; a second place widens the first."""
        struct = self.structs.setdefault(name, Struct(name))
        struct.versions |= where
        known = {f.kafka_name: f for f in struct.fields}
        for written in fields:
            versions = written.versions & where
            child = self.child(written, versions)
            here = self.field(written, versions, child)
            if written.name in known:
                _widen(known[written.name], here)
            else:
                struct.fields.append(here)
        return struct

    def child(self, written: FieldSchema, versions: Versions) -> Struct | None:
        element = written.type.removeprefix("[]")
        if element in WIRE_TYPES:
            return None
        if element in self.common:
            common = self.common[element]
            return self.visit(element, common.fields, versions & common.versions)
        return self.visit(element, written.fields, versions)

    def field(self, written: FieldSchema, versions: Versions, child: Struct | None) -> Field:
        element = written.type.removeprefix("[]")
        is_array = written.type.startswith("[]")
        own = written.flexible_versions
        nullable = written.nullable_versions & versions
        return Field(
            kafka_name=written.name,
            attribute=naming.attribute(written.name),
            is_array=is_array,
            wire=WIRE_TYPES.get(element),
            struct=child,
            versions=versions,
            nullable=nullable,
            tagged=written.tagged_versions & versions,
            flexible=self.flexible if own is None else own & self.flexible,
            tag=written.tag,
            ignorable=written.ignorable,
            default=_default(written.default, is_array, WIRE_TYPES.get(element), bool(nullable)),
            map_key=written.map_key,
            entity_type=written.entity_type,
            about=written.about,
        )


def _widen(known: Field, here: Field) -> None:
    known.versions |= here.versions
    known.nullable |= here.nullable
    known.tagged |= here.tagged


def _default(text: str | None, is_array: bool, wire: WireType | None, nullable: bool) -> object:
    if text == "null":
        return None
    if is_array:
        return []
    if wire is None:
        return EMPTY_STRUCT
    if wire.name == "records" and nullable:
        return None
    if wire.is_integer:
        return int(text or "0", 0)
    match wire.name:
        case "bool":
            return text == "true"
        case "string":
            return text or ""
        case "float64":
            return float(text or "0")
        case "uuid":
            return bytes(16)
        case _:
            return b""


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


def _children_first(root: Struct) -> list[Struct]:
    done: list[Struct] = []

    def visit(struct: Struct) -> None:
        if struct in done:
            return
        for f in struct.fields:
            if f.struct is not None:
                visit(f.struct)
        done.append(struct)

    visit(root)
    return done


def shown(versions: Versions, newest: int) -> str:
    """Print the versions of a field beside it: an end at the message's newest version is an open
    one.
    """
    if versions.high >= newest and versions.low < newest:
        return str(Versions(versions.low, ALL.high))
    return str(versions)


def literal(value: object) -> str:
    """Write a scalar default as Python source."""
    return json.dumps(value) if isinstance(value, str) else repr(value)
