"""Decodes and encodes Protobuf values, with the descriptors of their schema.

A schema has a descriptor pool of its own; imports that are missing count only if a type of
them is used. The depth of values is bounded by the protobuf package (100 levels), and less here.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from ...errors import InvalidRecordValue, UnusableSchema
from ...extras import requires
from ..bounds import Bounds
from ..framing import FIRST_MESSAGE, message_indexes, message_name
from ..schema import Schema
from .text import file_descriptor
from .values import Converter

BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+=*\s*", re.ASCII)
MAIN: Final = "value.proto"
WELL_KNOWN: Final[Mapping[str, str]] = {
    f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
    for name in (
        *("any", "api", "descriptor", "duration", "empty", "field_mask"),
        *("source_context", "struct", "timestamp", "type", "wrappers"),
    )
}
"""Files that every Protobuf compiler has -> modules of the protobuf package."""
VALUE_ERRORS: Final = (
    AttributeError,
    LookupError,
    RecursionError,
    SystemError,
    TypeError,
    ValueError,
)
"""What the protobuf package raises for values, beside exceptions of its own. SystemError is for a
lone surrogate in the name of an enum value.
"""
BUILT_IN: Final[Mapping[str, str]] = {
    "confluent/type/decimal.proto": """
        syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """
}
"""Files that registries of Confluent have, and never send as references."""


class ProtobufCodec:
    """Decodes and encodes messages of a schema. Raises UnusableSchema."""

    def __init__(self, schema: Schema, bounds: Bounds) -> None:
        with requires("google", "values", "protobuf"):
            from google.protobuf import descriptor_pool, message_factory

        self._message_class = message_factory.GetMessageClass
        self._bounds = bounds
        try:
            files = {ref.name: _descriptor(ref.name, ref.text) for ref in schema.references}
            main = _descriptor(MAIN, schema.text)
            pool = descriptor_pool.DescriptorPool()
            _Linker(pool, files, schema.name).add(main)
            self._file = pool.FindFileByName(main.name)
        except UnusableSchema as error:
            raise UnusableSchema(error.reason, schema.name) from None
        except (KeyError, TypeError) as error:
            raise UnusableSchema(f"invalid descriptors: {error}", schema.name) from None
        self._converter = Converter(pool, bounds)

    def message(self, indexes: tuple[int, ...]) -> Any:
        """Return the descriptor of a message by its indexes, the outermost first."""
        types = list(self._file.message_types_by_name.values())
        message_type = None
        for index in indexes:
            if index >= len(types):
                raise InvalidRecordValue(f"the schema has no message {list(indexes)}")
            message_type = types[index]
            types = list(message_type.nested_types)
        return message_type

    def message_of(self, head: bytes, at: int) -> tuple[tuple[int, ...], int]:
        """Read which message a value is; return its indexes and where they, or its name, end.

        head: what has the indexes or the name. Raises InvalidRecordValue.
        """
        named = message_name(head, at)
        indexes = None if named is None else self.indexes(named[0])
        if named is None or indexes is None:
            return message_indexes(head, at)
        return indexes, named[1]

    def indexes(self, name: str) -> tuple[int, ...] | None:
        """Return the indexes of the first message with a name, outer ones first; None if none."""
        outer = self._file.message_types_by_name.values()
        level: list[tuple[tuple[int, ...], Any]] = [((at,), one) for at, one in enumerate(outer)]
        while level:
            indexes_found = next((indexes for indexes, each in level if each.name == name), None)
            if indexes_found is not None:
                return indexes_found
            level = [
                ((*indexes, at), inner)
                for indexes, each in level
                for at, inner in enumerate(each.nested_types)
            ]
        return None

    def decode(self, data: bytes, at: int, indexes: tuple[int, ...]) -> object:
        """Decode the message that begins at a byte."""
        from google.protobuf.message import DecodeError

        descriptor = self.message(indexes)
        message = self._message_class(descriptor)()
        try:
            message.ParseFromString(data[at:])
        except (DecodeError, UnicodeDecodeError, ValueError) as error:
            reason = f"not a {descriptor.full_name}: {error}"
            raise InvalidRecordValue(reason) from None
        return self._converter.value(message, len(data))

    def encode(self, value: object, indexes: tuple[int, ...] = FIRST_MESSAGE) -> bytes:
        """Encode a value in its JSON form."""
        from google.protobuf.json_format import ParseError
        from google.protobuf.message import EncodeError

        descriptor = self.message(indexes)
        message = self._message_class(descriptor)()
        try:
            self._converter.fill(message, value)
            encoded: bytes = message.SerializeToString()
        except (EncodeError, ParseError, *VALUE_ERRORS) as error:
            reason = " ".join(str(error).split())
            raise InvalidRecordValue(f"not a {descriptor.full_name}: {reason}") from None
        return encoded


def _descriptor(path: str, text: str) -> Any:
    """Parse the text of a .proto file, or a FileDescriptorProto in base64."""
    if not BASE64.fullmatch(text):
        try:
            return file_descriptor(path, text)
        except UnusableSchema as error:
            where = "" if path == MAIN else f"{path}: "
            raise UnusableSchema(f"{where}{error.reason}") from None
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    file = FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text))
    except (binascii.Error, DecodeError):
        raise UnusableSchema("neither the text of a .proto file nor a descriptor") from None
    file.name = path
    return file


class _Linker:
    """Adds files to a pool, each after those that it imports."""

    def __init__(self, pool: Any, files: Mapping[str, Any], name: str) -> None:
        self._pool = pool
        self._files = files
        self._name = name
        self._added: dict[str, bool] = {}

    def add(self, file: Any) -> None:
        """Add a file and its imports; without recursion, since imports may form a long chain."""
        stack = [(file, iter(list(file.dependency)))]
        self._added[file.name] = False
        while stack:
            current, imports = stack[-1]
            following = self._next(imports)
            if following is None:
                stack.pop()
                self._link(current)
            else:
                self._added[following.name] = False
                stack.append((following, iter(list(following.dependency))))

    def _next(self, imports: Iterator[str]) -> Any:
        for path in imports:
            if path not in self._added:
                file = self._files.get(path) or _built_in(path)
                if file is not None:
                    return file
        return None

    def _link(self, file: Any) -> None:
        """Add a file; imports that no source has are left out."""
        present = [path for path in file.dependency if self._added.get(path)]
        missing = [path for path in file.dependency if path not in present]
        public = {file.dependency[at] for at in file.public_dependency if at < len(file.dependency)}
        del file.dependency[:], file.public_dependency[:], file.weak_dependency[:]
        file.dependency.extend(present)
        file.public_dependency.extend(at for at, path in enumerate(present) if path in public)
        try:
            self._pool.Add(file)
            self._pool.FindFileByName(file.name)
        except (KeyError, TypeError) as error:
            note = f"; imports not found: {', '.join(missing)}" if missing else ""
            raise UnusableSchema(f"invalid Protobuf schema: {error}{note}") from None
        self._added[file.name] = True


def _built_in(path: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    if path in WELL_KNOWN:
        serialized = import_module(WELL_KNOWN[path]).DESCRIPTOR.serialized_pb
        return FileDescriptorProto.FromString(serialized)
    return file_descriptor(path, BUILT_IN[path]) if path in BUILT_IN else None
