"""Makes the construct graph of a message at a version.

The graph is made from `kafkawire_codegen.model` alone and shares nothing with generated code.
Parsing gives plain dicts, attribute -> value, with every field of every version: those of other
versions have their default.

    struct  | field | field | ... | tagged fields |        a construct Struct, the block last
"""

from __future__ import annotations

from typing import Any, Final

from construct import Int8ub, Struct  # type: ignore[import-untyped]

from kafkawire_codegen import model
from kafkawire_codegen.wire_types import WireType

from ..errors import FieldNotInVersion, InvalidValue, NullNotAllowed
from .defaults import UNKNOWN_TAGS, default_of, fits, is_set, member
from .pieces import UVARINT, Fixed, Flag, NamedPiece, Piece, Run, byte_of, described, part
from .sized import Blob, Items, Text
from .tags import Block, Tagged
from .tree import Sink, Source

BLOCK: Final = "_block"
UUID_BYTES: Final = 16


def graph(message: model.Message, version: int) -> NamedPiece:
    """Make the construct of a whole message at a version."""
    root = message.root
    return NamedPiece(fields_of(root, version, {}), root.name, root.name, root.name)


def fields_of(struct: model.Struct, version: int, known: Known) -> Fields:
    """Make the construct of a struct, once per message."""
    if struct not in known:
        known[struct] = Fields(struct, version, known)
    return known[struct]


def value_piece(f: model.Field, version: int, known: Known, *, tagged: bool) -> Piece:
    """Make the construct of a field's value in a version that has it."""
    flexible = tagged or version in f.flexible
    nullable = version in f.nullable
    if f.is_array:
        element: Piece = (
            fields_of(f.struct, version, known)
            if f.struct is not None
            else primitive(f.wire, flexible, nullable=False)
        )
        return Items(element, f.element, flexible, nullable)
    if f.struct is None:
        return primitive(f.wire, flexible, nullable)
    marker = TAGGED_MARKER if tagged else MARKER
    return Optional(fields_of(f.struct, version, known), marker if nullable else None)


def primitive(wire: WireType | None, flexible: bool, nullable: bool) -> Piece:
    """Make the piece of a primitive type."""
    assert wire is not None
    match wire.name:
        case "string":
            return Text(flexible, nullable)
        case "bytes" | "records":
            return Blob(flexible, nullable)
        case "bool":
            return Flag()
        case "uuid":
            return Run(UUID_BYTES)
        case _:
            return Fixed(wire)


def shown_type(f: model.Field, version: int, *, tagged: bool) -> str:
    """Name the wire type of a field as a person reads it: `compact nullable string`."""
    sized = f.is_array or (f.wire is not None and f.wire.size is None)
    compact = "compact " if sized and (tagged or version in f.flexible) else ""
    return f"{compact}{'nullable ' if version in f.nullable else ''}{f.type}"


class Marker(Piece):
    """The byte before a nullable struct: negative is null."""

    null = 0xFF

    def read(self, source: Source) -> bool:
        byte = byte_of(source)
        present = byte < 0x80
        if byte != (1 if present else self.null):
            word = "01" if present else f"{self.null:02x}"
            what = "a struct that is there" if present else "null"
            reason = f"{what} is marked {byte:02x}, not {word}"
            source.flaw(reason, source.tell() - 1, "odd_values")
        return present

    def write(self, value: Any, sink: Sink) -> None:
        Int8ub.build_stream(1 if value else self.null, sink)


class TaggedMarker(Marker):
    """The varint before a nullable struct in a tagged field: 0 and below is null."""

    null = 0

    def read(self, source: Source) -> bool:
        start = source.tell()
        written: int = UVARINT.read(source)
        if written > 1:
            reason = f"a struct that is there is marked {written}, not 1"
            source.flaw(reason, start, "odd_values")
        return written > 0


MARKER: Final = part("marker", "int8", Marker())
TAGGED_MARKER: Final = part("marker", "uvarint", TaggedMarker())


class Optional(Piece):
    """A struct as the value of a field, after a marker if it is nullable."""

    def __init__(self, fields: Fields, marker: NamedPiece | None) -> None:
        super().__init__()
        self.fields = fields
        self.marker = marker

    def read(self, source: Source) -> Any:
        if self.marker is not None and not self.marker.read(source):
            return None
        return self.fields.read(source)

    def write(self, value: Any, sink: Sink) -> None:
        if self.marker is not None:
            self.marker.write(value is not None, sink)
            if value is None:
                return
        self.fields.write(value, sink)


class Absent(Piece):
    """A field that the version does not have: its default.

    It must not be set when writing, unless it is ignorable.
    """

    def __init__(self, f: model.Field) -> None:
        super().__init__()
        self.field = f

    def read(self, _source: Source) -> Any:
        return default_of(self.field)

    def write(self, value: Any, sink: Sink) -> None:
        if not self.field.ignorable and is_set(self.field, value, sink.module):
            reason = "is set, and the version has no such field"
            raise sink.fault(FieldNotInVersion, reason, f".{self.field.attribute}")


class NoTags(Piece):
    """Replaces the block in a version without tagged fields: none can be written."""

    def read(self, _source: Source) -> None:
        return None

    def write(self, value: Any, sink: Sink) -> None:
        if value is not None:
            reason = "is set, and the version has no tagged fields"
            raise sink.fault(FieldNotInVersion, reason, f".{UNKNOWN_TAGS}")


class Fields(Piece):
    """A struct: plain and absent fields in wire order, the tagged fields last."""

    def __init__(self, struct: model.Struct, version: int, known: Known) -> None:
        super().__init__()
        self.model = struct
        rows: dict[str, Piece] = {}
        for f in struct.plain_fields:
            if version in f.plain:
                rows[f.attribute] = field_piece(f, version, known)
            elif not f.tagged:
                rows[f.attribute] = Absent(f)
        self.flexible = version in struct.flexible
        if struct.has_tags and not self.flexible:
            rows[UNKNOWN_TAGS] = NoTags()
        for f in struct.tagged_fields:
            if version not in f.versions:
                rows[f.attribute] = Absent(f)
        self.names = list(rows)
        if self.flexible:
            rows[BLOCK] = block(struct, version, known)
        self.struct = Struct(*(name / piece for name, piece in rows.items()))

    def read(self, source: Source) -> dict[str, Any]:
        parsed = self.struct.parse_stream(source)
        values = {name: parsed[name] for name in self.names}
        if self.flexible:
            values |= parsed[BLOCK]
        return values

    def write(self, value: Any, sink: Sink) -> None:
        if value is None:
            raise sink.fault(NullNotAllowed, "is None, and not nullable in that version")
        if not fits(self.model, value, sink.module):
            raise sink.fault(InvalidValue, f"{described(value)}, not {self.model.name}")
        row = {name: member(value, name) for name in self.names}
        row[BLOCK] = value
        self.struct.build_stream(row, sink)


def field_piece(f: model.Field, version: int, known: Known) -> NamedPiece:
    """Make the construct of a field in its struct."""
    shown = shown_type(f, version, tagged=False)
    value = value_piece(f, version, known, tagged=False)
    return NamedPiece(value, f.attribute, f".{f.attribute}", shown)


def block(struct: model.Struct, version: int, known: Known) -> Block:
    """Make the construct of a struct's tagged fields in a version that has some."""
    here: dict[int, Tagged] = {}
    elsewhere: dict[int, model.Field] = {}
    for f in struct.tagged_fields:
        assert f.tag is not None
        if version in f.tagged:
            shown = shown_type(f, version, tagged=True)
            value = value_piece(f, version, known, tagged=True)
            here[f.tag] = Tagged(f, part(f.attribute, shown, value))
        else:
            elsewhere[f.tag] = f
    return Block(here, elsewhere)


Known = dict[model.Struct, Fields]
"""The structs of a graph made so far."""
