"""Constructs for Kafka's types of fixed width and varints; each adds its part of the tree.

Errors are those of the fast codec, in the same order, with field and byte; bytes that an
encoder would write differently are noted as flaws.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

# construct has no type annotations: its results are Any, and are checked before use
from construct import (  # type: ignore[import-untyped]
    Bytes,
    Construct,
    Float64b,
    Int8sb,
    Int8ub,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    StreamError,
    VarInt,
)

from kafkawire_codegen.wire_types import WireType

from ..errors import InvalidValue, InvalidVarint, OutOfRange
from .tree import Sink, Source

MAX_VARINT_BYTES: Final = 5
MAX_SHOWN_BITS: Final = 128

FIXED: Final[dict[str, Any]] = {
    "int8": Int8sb,
    "int16": Int16sb,
    "uint16": Int16ub,
    "int32": Int32sb,
    "uint32": Int32ub,
    "int64": Int64sb,
    "float64": Float64b,
}


class Piece(Construct):  # type: ignore[misc]
    """The base of constructs here: `read` parses from a Source, `write` builds into a Sink."""

    @abstractmethod
    def read(self, source: Source) -> Any:
        """Parse one value; DecodeError knows its place."""

    @abstractmethod
    def write(self, value: Any, sink: Sink) -> None:
        """Build one value; EncodeError knows its place."""

    def _parse(self, source: Source, _context: Any, _path: str) -> Any:
        return self.read(source)

    def _build(self, value: Any, sink: Sink, _context: Any, _path: str) -> Any:
        self.write(value, sink)
        return value


class NamedPiece(Piece):
    """Adds a node, a name and a step of the path to what a piece reads or writes."""

    def __init__(self, piece: Piece, name: str, step: str, type: str) -> None:
        super().__init__()
        self.piece = piece
        self.label = name
        self.step = step
        self.type = type

    def read(self, source: Source) -> Any:
        node = source.begin(self.label, self.step, self.type)
        value = self.piece.read(source)
        source.finish(node, value)
        return value

    def write(self, value: Any, sink: Sink) -> None:
        sink.steps.append(self.step)
        self.piece.write(value, sink)
        sink.steps.pop()


def part(name: str, type: str, piece: Piece) -> NamedPiece:
    """Name a part of a field that is not a field itself: its length, its count, its bytes."""
    return NamedPiece(piece, name, "", type)


def described(value: object) -> str:
    """Say of which type a value is, without showing it."""
    return f"is of type {type(value).__name__}"


def brief(value: int) -> str:
    """Write an integer; of one too long for `str`, its size."""
    bits = value.bit_length()
    return str(value) if bits <= MAX_SHOWN_BITS else f"an integer of {bits} bits"


class Fixed(Piece):
    """A number of a fixed width."""

    def __init__(self, wire: WireType) -> None:
        super().__init__()
        self.wire = wire
        self.format = FIXED[wire.name]

    def read(self, source: Source) -> Any:
        start = source.tell()
        try:
            return self.format.parse_stream(source)
        except StreamError:
            source.seek(start)
            raise source.truncated(self.format.length) from None

    def write(self, value: Any, sink: Sink) -> None:
        wanted: Any = int if self.wire.is_integer else (float, int)
        if not isinstance(value, wanted):
            raise sink.fault(InvalidValue, f"{described(value)}, not {self.wire.name}")
        low, high = self.wire.low, self.wire.high
        if low is not None and high is not None and not low <= value <= high:
            raise sink.fault(OutOfRange, f"{brief(value)} is not in {low} to {high}")
        try:
            self.format.build_stream(value if low is not None else float(value), sink)
        except OverflowError:
            reason = f"an integer of {value.bit_length()} bits is too large for a {self.wire.name}"
            raise sink.fault(OutOfRange, reason) from None


class Flag(Piece):
    """A bool: one byte, any but 0 is true."""

    def read(self, source: Source) -> bool:
        byte = byte_of(source)
        if byte > 1:
            reason = f"a bool is written as {byte:#04x}, not 01"
            source.flaw(reason, source.tell() - 1, "odd_values")
        return byte != 0

    def write(self, value: Any, sink: Sink) -> None:
        if not isinstance(value, bool):
            raise sink.fault(InvalidValue, f"{described(value)}, not bool")
        Int8ub.build_stream(int(value), sink)


class Run(Piece):
    """A fixed number of raw bytes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.bytes = Bytes(size)

    def read(self, source: Source) -> bytes:
        if self.bytes.length > source.left:
            raise source.truncated(self.bytes.length)
        value: bytes = self.bytes.parse_stream(source)
        return value

    def write(self, value: Any, sink: Sink) -> None:
        if not isinstance(value, bytes) or len(value) != self.bytes.length:
            had = f"has {len(value)} bytes" if isinstance(value, bytes) else described(value)
            raise sink.fault(InvalidValue, f"{had}, not {self.bytes.length} bytes")
        self.bytes.build_stream(value, sink)


def byte_of(source: Source) -> int:
    """Read one byte; Truncated if there is none."""
    if source.left < 1:
        raise source.truncated(1)
    value: int = Int8ub.parse_stream(source)
    return value


class Uvarint(Piece):
    """An unsigned varint: seven bits a byte, the lowest first, at most five bytes (KIP-482).

    Its low 32 bits are an int32, as in Kafka's `ByteUtils.readUnsignedVarint`.
    """

    def read(self, source: Source) -> int:
        start = source.tell()
        value = 0
        for i in range(MAX_VARINT_BYTES):
            byte = byte_of(source)
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                if i and byte == 0:
                    reason = f"a varint of {i + 1} bytes where fewer would do"
                    source.flaw(reason, start, "long_varints")
                elif value >= 1 << 31:
                    reason = f"the varint {value} is read as {int32(value)}"
                    source.flaw(reason, start, "long_varints")
                return int32(value)
        last = source.tell() - 1
        raise source.fault(InvalidVarint, "a varint goes on after its fifth byte", last)

    def write(self, value: Any, sink: Sink) -> None:
        VarInt.build_stream(value, sink)


UVARINT: Final = Uvarint()


def int32(value: int) -> int:
    """Return the low 32 bits of a value as a signed number."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
