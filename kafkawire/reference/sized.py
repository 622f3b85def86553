"""Constructs with a leading length or count: strings, bytes, arrays.

A length is compared with the bytes left before memory is allocated; null is length -1.

    string  | length | text |    bytes  | length | run |    array  | count | element | ...
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

from construct import Bytes  # type: ignore[import-untyped]

from kafkawire_codegen.wire_types import WIRE_TYPES

from ..errors import (
    InvalidLength,
    InvalidText,
    InvalidValue,
    NullNotAllowed,
    OutOfRange,
    UnexpectedNull,
    counted,
)
from .pieces import UVARINT, Fixed, NamedPiece, Piece, Run, described, int32, part
from .tree import Sink, Source

MAX_STRING: Final = 32767
"""The longest string: a length is limited to an int16, also if it is a varint."""

MAX_LENGTH: Final = 2**31 - 2


class Length(Piece):
    """A length or count, -1 for null: a varint of one more where compact, else an int16, int32."""

    def __init__(self, kind: str, flexible: bool) -> None:
        super().__init__()
        self.kind = kind
        self.flexible = flexible
        self.number = UVARINT if flexible else Fixed(WIRE_TYPES[length_type(kind, False)])
        self.most = MAX_STRING if kind == "string" else MAX_LENGTH

    def read(self, source: Source) -> int:
        start = source.tell()
        written: int = self.number.read(source)
        n = int32(written - 1) if self.flexible else written
        if n < -1:
            deviations = "" if self.flexible else "odd_values"  # the varint adds its own node
            source.flaw(f"null is written as the length {n}, not -1", start, deviations)
        if self.kind == "string" and n > MAX_STRING:
            reason = f"a string of {n} bytes; {MAX_STRING} is the most"
            raise source.fault(InvalidLength, reason, start)
        return n

    def write(self, value: Any, sink: Sink) -> None:
        if value > self.most:
            raise sink.fault(OutOfRange, f"a length of {value}; {self.most} is the most")
        self.number.write(value + 1 if self.flexible else value, sink)


def length_type(kind: str, flexible: bool) -> str:
    """Return the wire type of a length."""
    if flexible:
        return "uvarint"
    return "int16" if kind == "string" else "int32"


class Sized(Piece):
    """A value with a leading length or count; null is a length of -1."""

    def __init__(self, kind: str, word: str, flexible: bool, nullable: bool) -> None:
        super().__init__()
        self.nullable = nullable
        self.length = part(word, length_type(kind, flexible), Length(kind, flexible))

    def read(self, source: Source) -> Any:
        start = source.tell()
        n: int = self.length.read(source)
        if n >= 0:
            return self.read_content(n, source)
        if not self.nullable:
            raise source.fault(UnexpectedNull, "null, and not nullable in this version", start)
        return None

    def write(self, value: Any, sink: Sink) -> None:
        if value is not None:
            self.write_content(value, sink)
        elif self.nullable:
            self.length.write(-1, sink)
        else:
            raise sink.fault(NullNotAllowed, "is None, and not nullable in that version")

    @abstractmethod
    def read_content(self, n: int, source: Source) -> Any:
        """Parse the value after a length of `n`, which is not negative."""

    @abstractmethod
    def write_content(self, value: Any, sink: Sink) -> None:
        """Build the length and the value."""


class Decoded(Piece):
    """The bytes of a string."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.run = Run(size)

    def read(self, source: Source) -> str:
        start = source.tell()
        raw = self.run.read(source)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            bad = start + error.start
        reason = f"the byte {source.data[bad]:#04x} is not UTF-8"
        if not source.lenient:
            source.seek(start)
            raise source.fault(InvalidText, reason, bad)
        source.flaw(reason, bad, "invalid_text")
        return raw.decode("utf-8", "surrogateescape")


class Text(Sized):
    """A string: its length in bytes, then UTF-8."""

    def __init__(self, flexible: bool, nullable: bool) -> None:
        super().__init__("string", "length", flexible, nullable)

    def read_content(self, n: int, source: Source) -> str:
        value: str = part("text", "UTF-8", Decoded(n)).read(source)
        return value

    def write_content(self, value: Any, sink: Sink) -> None:
        if not isinstance(value, str):
            raise sink.fault(InvalidValue, f"{described(value)}, not str")
        try:
            raw = value.encode("utf-8", "surrogateescape" if sink.lenient else "strict")
        except UnicodeEncodeError as error:
            reason = f"character {error.start} cannot be written as UTF-8"
            raise sink.fault(InvalidValue, reason) from None
        if len(raw) > MAX_STRING:
            raise sink.fault(OutOfRange, f"a string of {len(raw)} bytes; {MAX_STRING} is the most")
        self.length.write(len(raw), sink)
        Bytes(len(raw)).build_stream(raw, sink)


class Blob(Sized):
    """Bytes or records: their length, then the bytes."""

    def __init__(self, flexible: bool, nullable: bool) -> None:
        super().__init__("bytes", "length", flexible, nullable)

    def read_content(self, n: int, source: Source) -> bytes:
        value: bytes = part("run", "bytes", Run(n)).read(source)
        return value

    def write_content(self, value: Any, sink: Sink) -> None:
        if not isinstance(value, bytes):
            raise sink.fault(InvalidValue, f"{described(value)}, not bytes")
        self.length.write(len(value), sink)
        Bytes(len(value)).build_stream(value, sink)


class Items(Sized):
    """An array: the count of its elements, then the elements."""

    def __init__(self, element: Piece, type: str, flexible: bool, nullable: bool) -> None:
        super().__init__("array", "count", flexible, nullable)
        self.element = element
        self.has_structs = type not in WIRE_TYPES
        self.type = type

    def element_at(self, i: int) -> NamedPiece:
        return NamedPiece(self.element, f"[{i}]", f"[{i}]", self.type)

    def read_content(self, n: int, source: Source) -> list[Any]:
        start = source.opened[-1].offset
        source.spend_objects(1, start)
        if n > source.left:  # an element has at least one byte
            reason = f"an array of {counted(n, 'element')}, {counted(source.left, 'byte')} left"
            raise source.fault(InvalidLength, reason, start)
        source.spend(n, "array elements", start)
        if self.has_structs:
            source.spend_objects(n, start)
        return [self.element_at(i).read(source) for i in range(n)]

    def write_content(self, value: Any, sink: Sink) -> None:
        if not isinstance(value, list):
            raise sink.fault(InvalidValue, f"{described(value)}, not list")
        self.length.write(len(value), sink)
        for i, item in enumerate(value):
            self.element_at(i).write(item, sink)
