"""Names of generated TypeScript.

A name changes only the case of its first letter; where the language or the generated code has
it already, it gets one trailing underscore, which no name of a schema has.

    MaxWaitMs    -> maxWaitMs (property, local variable)
    FetchRequest -> FetchRequest (interface), fetch-request (module)
"""

from __future__ import annotations

from typing import Final

from ... import naming
from ...model import Field, Message, Struct

_RESERVED: Final = frozenset(
    {"arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger"}
    | {"default", "delete", "do", "else", "enum", "eval", "export", "extends", "false", "finally"}
    | {"for", "function", "if", "implements", "import", "in", "instanceof", "interface", "let"}
    | {"new", "null", "package", "private", "protected", "public", "return", "static", "super"}
    | {"switch", "this", "throw", "true", "try", "typeof", "undefined", "var", "void", "while"}
    | {"with", "yield"}
)
"""Words that name no variable in a module."""
_LOCALS: Final = frozenset(
    {"at", "block", "failed", "failure", "flexible", "i", "init", "known", "m", "n", "place", "r"}
    | {"size", "start", "tag", "tags", "unknownTags", "version", "w"}
)
"""Other variables and functions of a function that decodes or encodes a struct."""
_OF_EVERY_OBJECT: Final = frozenset(
    {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"}
    | {"toLocaleString", "toString", "valueOf"}
)
"""Properties that every object inherits: one that is not set would look as if it were."""
_TYPES: Final = frozenset(
    {"Codec", "CodecError", "DecodeError", "EncodeError", "FrameSplitter", "MessageInfo"}
    | {"MessageName", "Modules", "Partial", "Promise", "Reader", "Request", "RequestHead"}
    | {
        "RequestOptions",
        "RequestStart",
        "Response",
        "ResponseHead",
        "ResponseOptions",
        "Uint8Array",
    }
    | {"UnknownTag", "UnsupportedVersionError", "Writer"}
)
"""Types that generated modules use, or that the package exports beside those of messages."""


def prop(field: Field) -> str:
    """Name the property of a field."""
    name = field.json_name
    return f"{name}_" if name in _OF_EVERY_OBJECT or name == "unknownTags" else name


def interface(struct_name: str) -> str:
    """Name the interface of a struct or message."""
    return f"{struct_name}_" if struct_name in _TYPES else struct_name


def module(message: Message) -> str:
    """Name the module of a message."""
    return naming.snake(message.name).replace("_", "-")


class Names:
    """The names of one message's module."""

    def __init__(self, message: Message) -> None:
        self.root = message.root
        functions = {
            function
            for s in message.structs
            for function in (self.decode(s), self.encode(s), self.create(s), self.is_default(s))
        }
        self._taken = _RESERVED | _LOCALS | functions

    def local(self, field: Field) -> str:
        """Name the local variable of a field."""
        name = prop(field)
        return f"{name}_" if name in self._taken else name

    def decode(self, s: Struct) -> str:
        return f"decode{s.name}"

    def encode(self, s: Struct) -> str:
        return f"encode{s.name}"

    def create(self, s: Struct) -> str:
        """Name the function that makes a struct with defaults: the message's own is `create`."""
        return "create" if s is self.root else f"create{s.name}"

    def is_default(self, s: Struct) -> str:
        return f"isDefault{s.name}"
