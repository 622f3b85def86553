"""Parses the text of .proto files (proto2, proto3) into descriptors.

Types stay names, which the descriptor pool resolves; services, extensions and options that do
not change how values are encoded are left out. Editions are rejected.

Source: protobuf.dev, "Protocol Buffers Version 3 Language Specification", and that of version 2.
"""

from __future__ import annotations

from typing import Any, Final

from ...errors import UnusableSchema
from ...extras import requires
from .tokens import END, Tokens

SCALARS: Final = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "fixed64": 6,
    "fixed32": 7,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
    "sfixed32": 15,
    "sfixed64": 16,
    "sint32": 17,
    "sint64": 18,
}
"""FieldDescriptorProto.Type by the keyword of the type."""
GROUP: Final = 10
MESSAGE: Final = 11
OPTIONAL: Final = 1
REPEATED: Final = 3
LABELS: Final = {"optional": OPTIONAL, "required": 2, "repeated": REPEATED}
MAX_NESTING: Final = 32
MAX_NUMBER: Final = (1 << 29) - 1
IGNORED: Final = frozenset({"service", "extend", "option", "reserved", "extensions", "export"})
"""Statements that do not change how values are encoded."""


def file_descriptor(path: str, text: str) -> Any:
    """Parse a .proto file into a FileDescriptorProto; path: the name of the file.

    Raises UnusableSchema with the line.
    """
    with requires("google", "values", "protobuf"):
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

    return _Parser(Tokens(text), FileDescriptorProto(name=path)).file()


def imports_of(text: str) -> list[str]:
    """Return the paths that a .proto file imports; none if it is invalid."""
    try:
        return list(file_descriptor("", text).dependency)
    except UnusableSchema:
        return []  # reported when it is compiled


class _Parser:
    def __init__(self, tokens: Tokens, file: Any) -> None:
        self._tokens = tokens
        self._file = file
        self._proto3 = False

    def file(self) -> Any:
        tokens, file = self._tokens, self._file
        while tokens.next != END:
            statement = tokens.advance()
            if statement == "syntax":
                self._syntax()
            elif statement == "edition":
                raise UnusableSchema("editions are not supported as text")
            elif statement == "package":
                file.package = tokens.word()
                tokens.expect(";")
            elif statement == "import":
                self._import()
            elif statement == "message":
                self._message(file.message_type.add(), 1)
            elif statement == "enum":
                self._enum(file.enum_type.add())
            elif statement in IGNORED:
                tokens.skip_statement()
            elif statement != ";":
                raise tokens.error(f"unexpected statement {statement!r}")
        return file

    def _syntax(self) -> None:
        self._tokens.expect("=")
        syntax = self._file.syntax = self._tokens.string()
        self._proto3 = syntax == "proto3"
        if syntax not in ("proto2", "proto3"):
            raise UnusableSchema(f"unsupported syntax {syntax!r}")
        self._tokens.expect(";")

    def _import(self) -> None:
        is_public = self._tokens.take("public")
        if not is_public:
            self._tokens.take("weak")
        if is_public:
            self._file.public_dependency.append(len(self._file.dependency))
        self._file.dependency.append(self._tokens.string())
        self._tokens.expect(";")

    def _message(self, message: Any, depth: int) -> None:
        if depth > MAX_NESTING:
            raise self._tokens.error("nested too deeply")
        message.name = self._tokens.word()
        self._message_body(message, depth)

    def _message_body(self, message: Any, depth: int) -> None:
        tokens = self._tokens
        tokens.expect("{")
        optionals: list[Any] = []
        while not tokens.take("}"):
            if tokens.take("message"):
                self._message(message.nested_type.add(), depth + 1)
            elif tokens.take("enum"):
                self._enum(message.enum_type.add())
            elif tokens.take("oneof"):
                self._oneof(message, depth)
            elif tokens.take("option"):
                self._message_option(message)
            elif tokens.next in IGNORED:
                tokens.skip_statement()
            elif not tokens.take(";"):
                self._labelled(message, depth, optionals)
        for field in optionals:  # synthetic oneofs follow the others
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")

    def _message_option(self, message: Any) -> None:
        """Parse an option of a message; Apicurio writes the entries of maps as messages."""
        tokens = self._tokens
        if tokens.next == "map_entry":
            tokens.advance()
            tokens.expect("=")
            message.options.map_entry = tokens.advance() == "true"
        tokens.skip_statement()

    def _labelled(self, message: Any, depth: int, optionals: list[Any]) -> None:
        label = LABELS.get(self._tokens.next)
        if label is not None:
            self._tokens.advance()
        field = self._field(message, depth, label or OPTIONAL)
        if self._proto3 and label == OPTIONAL:
            field.proto3_optional = True
            optionals.append(field)

    def _oneof(self, message: Any, depth: int) -> None:
        tokens = self._tokens
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=tokens.word())
        tokens.expect("{")
        while not tokens.take("}"):
            if tokens.next == "option":
                tokens.skip_statement()
            elif not tokens.take(";"):
                self._field(message, depth, OPTIONAL).oneof_index = index

    def _field(self, message: Any, depth: int, label: int) -> Any:
        tokens = self._tokens
        kind = tokens.word()
        if kind == "map" and tokens.take("<"):
            return self._map(message)
        field = message.field.add(label=label, name=tokens.word())
        if kind == "group":
            self._group(message, field, depth)
            return field
        self._set_type(field, kind)
        self._number(field)
        return field

    def _set_type(self, field: Any, kind: str) -> None:
        if kind in SCALARS:
            field.type = SCALARS[kind]
        else:
            field.type_name = kind  # whether it is a message or an enum, the pool finds out

    def _number(self, field: Any) -> None:
        """Parse the number of a field, and its options."""
        self._tokens.expect("=")
        number = self._tokens.integer()
        if not 1 <= number <= MAX_NUMBER:
            raise self._tokens.error(f"field number {number} is out of range")
        field.number = number
        self._field_options(field)
        self._tokens.expect(";")

    def _field_options(self, field: Any) -> None:
        tokens = self._tokens
        if tokens.next != "[":
            return
        tokens.advance()
        while not tokens.take("]"):
            name = tokens.advance()
            if name == "packed" and tokens.take("="):
                field.options.packed = tokens.advance() == "true"
            elif name == "json_name" and tokens.take("="):
                field.json_name = tokens.string()
            else:
                while tokens.next not in (",", "]"):
                    tokens.skip_value()
            tokens.take(",")

    def _group(self, message: Any, field: Any, depth: int) -> None:
        if depth >= MAX_NESTING:
            raise self._tokens.error("nested too deeply")
        name = field.name
        field.name, field.type, field.type_name = name.lower(), GROUP, name
        self._tokens.expect("=")
        field.number = self._tokens.integer()
        self._field_options(field)
        self._message_body(message.nested_type.add(name=name), depth + 1)

    def _map(self, message: Any) -> Any:
        tokens = self._tokens
        key = tokens.word()
        tokens.expect(",")
        value = tokens.word()
        tokens.expect(">")
        name = tokens.word()
        entry = message.nested_type.add(name=f"{_camel(name)}Entry")
        entry.options.map_entry = True
        self._set_type(entry.field.add(label=OPTIONAL, name="key", number=1), key)
        self._set_type(entry.field.add(label=OPTIONAL, name="value", number=2), value)
        field = message.field.add(label=REPEATED, name=name, type=MESSAGE, type_name=entry.name)
        self._number(field)
        return field

    def _enum(self, enum: Any) -> None:
        tokens = self._tokens
        enum.name = tokens.word()
        tokens.expect("{")
        while not tokens.take("}"):
            if tokens.next == "option":
                self._enum_option(enum)
            elif tokens.next == "reserved":
                tokens.skip_statement()
            elif not tokens.take(";"):
                value = enum.value.add(name=tokens.word())
                tokens.expect("=")
                number = tokens.integer()
                if not -(1 << 31) <= number < 1 << 31:
                    raise tokens.error(f"enum value {number} is out of range")
                value.number = number
                if tokens.next == "[":
                    tokens.skip_block()
                tokens.expect(";")

    def _enum_option(self, enum: Any) -> None:
        tokens = self._tokens
        tokens.advance()
        if tokens.next == "allow_alias":
            enum.options.allow_alias = True
        tokens.skip_statement()


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
