"""Writes one message body. Native under mypyc; the same source runs interpreted.

A value out of the range of its wire type raises; nothing is truncated. A byte is appended as
`u8`: with another type compiled code would box it and call a method by name.
"""

from __future__ import annotations

from typing import Any, Final, final

from librt.strings import (
    BytesWriter,
    write_f64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64, mypyc_attr, u8

from ..errors import InvalidValue, OutOfRange
from .appending import append_int32s, append_text

MAX_STRING: Final = 0x7FFF
MAX_LENGTH: Final = 0x7FFF_FFFE

LARGE: Final = 1 << 16
"""Bytes fields from this size on are not copied into the body, but kept beside it.

Below, two copies take less time than another buffer to write to a socket.
"""

Tags = list[tuple[int, bytes]] | None
"""Unknown tagged fields of one struct, as (tag, raw bytes), in wire order; None if there are none.
"""


# free_list_len: each encode makes one writer and reuses the last one's memory
@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Writer:
    """Collects one message body.

    lenient: write what a lenient reader accepts: strings kept by surrogateescape as their original
    bytes, repeated tags, and tags that are errors for a strict writer.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.buffer: BytesWriter = BytesWriter()
        self.lenient: bool = lenient
        self.large: list[tuple[int, bytes]] | None = None
        """Large values, each with its place in `buffer`."""

    def getvalue(self) -> bytes:
        if self.large is None:
            return self.buffer.getvalue()
        return b"".join(self.getbuffers())

    def getbuffers(self) -> list[bytes]:
        """Return the body in pieces, for `writelines` or `sendmsg`; large values are not copied."""
        written = self.buffer.getvalue()
        if self.large is None:
            return [written]
        pieces: list[bytes] = []
        start = 0
        for at, value in self.large:
            if at > start:
                pieces.append(written[start:at])
            pieces.append(value)
            start = at
        if start < len(written):
            pieces.append(written[start:])
        return pieces

    def write_large(self, value: bytes) -> None:
        """Write a large value without copying it."""
        if self.large is None:
            self.large = []
        self.large.append((len(self.buffer), value))

    # -- fixed width

    def write_bool(self, value: bool) -> None:
        if not isinstance(value, bool):  # compiled code checks this itself
            raise TypeError(f"bool object expected; got {type(value).__name__}")
        self.buffer.append(u8(1) if value else u8(0))

    def write_int8(self, value: i64) -> None:
        if value < -128 or value > 127:
            raise OutOfRange(f"{value} is not a valid int8")
        self.buffer.append(u8(value & 0xFF))

    def write_int16(self, value: i16) -> None:
        write_i16_be(self.buffer, value)

    def write_uint16(self, value: i64) -> None:
        if value < 0 or value > 0xFFFF:
            raise OutOfRange(f"{value} is not a valid uint16")
        self.buffer.append(u8(value >> 8))
        self.buffer.append(u8(value & 0xFF))

    def write_int32(self, value: i32) -> None:
        write_i32_be(self.buffer, value)

    def write_uint32(self, value: i64) -> None:
        if value < 0 or value > 0xFFFFFFFF:
            raise OutOfRange(f"{value} is not a valid uint32")
        self.write_uint16(value >> 16)
        self.write_uint16(value & 0xFFFF)

    def write_int64(self, value: i64) -> None:
        write_i64_be(self.buffer, value)

    def write_float64(self, value: float) -> None:
        write_f64_be(self.buffer, value)

    def write_uuid(self, value: bytes) -> None:
        if not isinstance(value, bytes):  # compiled code checks this itself
            raise TypeError(f"bytes object expected; got {type(value).__name__}")
        if len(value) != 16:
            raise InvalidValue(f"a uuid of {len(value)} bytes")
        self.buffer.write(value)

    # -- lengths

    def write_uvarint(self, value: i64) -> None:
        while value > 127:
            self.buffer.append(u8(value & 127 | 128))
            value >>= 7
        self.buffer.append(u8(value))

    def write_length(self, n: i64, flexible: bool) -> None:
        """Write the length of bytes or the count of an array; -1 stands for null."""
        if flexible and n < 127:
            self.buffer.append(u8(n + 1))
            return
        if n > MAX_LENGTH:
            raise OutOfRange(f"a length of {n}")
        if flexible:
            self.write_uvarint(n + 1)
        else:
            write_i32_be(self.buffer, i32(n))

    def write_count(self, items: list[Any], flexible: bool) -> None:
        """Write the count of an array."""
        if not isinstance(items, list):  # compiled code checks this itself
            raise TypeError(f"list object expected; got {type(items).__name__}")
        self.write_length(len(items), flexible)

    def has_items(self, items: list[Any]) -> bool:
        """Return whether an array is not empty; TypeError if it is not a list."""
        if not isinstance(items, list):  # compiled code checks this itself
            raise TypeError(f"list object expected; got {type(items).__name__}")
        return len(items) != 0

    def write_marker(self, present: bool) -> None:
        """Write the byte before a nullable struct."""
        self.buffer.append(u8(1) if present else u8(255))

    # -- variable width

    def write_string(self, value: str, flexible: bool) -> None:
        if isinstance(value, str) and append_text(self.buffer, value, flexible):
            return
        if self.lenient:
            encoded = value.encode("utf-8", "surrogateescape")
        else:
            encoded = value.encode("utf-8")
        n: i64 = len(encoded)
        if n > MAX_STRING:
            raise OutOfRange(f"a string of {n} bytes; {MAX_STRING} is the most")
        if flexible:
            self.write_uvarint(n + 1)
        else:
            write_i16_be(self.buffer, i16(n))
        self.buffer.write(encoded)

    def write_nullable_string(self, value: str | None, flexible: bool) -> None:
        if value is not None:
            self.write_string(value, flexible)
        elif flexible:
            self.buffer.append(u8(0))
        else:
            write_i16_be(self.buffer, -1)

    def write_bytes(self, value: bytes, flexible: bool) -> None:
        if not isinstance(value, bytes):  # compiled code checks this itself
            raise TypeError(f"bytes object expected; got {type(value).__name__}")
        n: i64 = len(value)
        self.write_length(n, flexible)
        if n < LARGE:
            self.buffer.write(value)
        else:
            self.write_large(value)

    def write_nullable_bytes(self, value: bytes | None, flexible: bool) -> None:
        if value is None:
            self.write_length(-1, flexible)
        else:
            self.write_bytes(value, flexible)

    # -- arrays of primitives

    def write_bool_array(self, value: list[bool], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_bool(x)

    def write_int8_array(self, value: list[int], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_int8(x)

    def write_int16_array(self, value: list[int], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_int16(x)

    def write_uint16_array(self, value: list[int], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_uint16(x)

    def write_int32_array(self, value: list[int], flexible: bool) -> None:
        if isinstance(value, list) and append_int32s(self.buffer, value, flexible):
            return
        self.write_count(value, flexible)
        for x in value:
            self.write_int32(x)

    def write_uint32_array(self, value: list[int], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_uint32(x)

    def write_int64_array(self, value: list[int], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_int64(x)

    def write_float64_array(self, value: list[float], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_float64(x)

    def write_uuid_array(self, value: list[bytes], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_uuid(x)

    def write_string_array(self, value: list[str], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_string(x, flexible)

    def write_bytes_array(self, value: list[bytes], flexible: bool) -> None:
        self.write_count(value, flexible)
        for x in value:
            self.write_bytes(x, flexible)

    # -- tagged fields (KIP-482)

    def write_tags(self, known: Tags, unknown: Tags) -> None:  # noqa: C901 - hot: no calls
        """Write a tagged-field block: known and unknown fields merged in ascending order."""
        if known is None:
            if unknown is None:
                self.buffer.append(u8(0))
                return
            known = []
        if unknown is not None:
            if not isinstance(unknown, list):  # compiled code checks this itself
                raise TypeError(f"list object expected; got {type(unknown).__name__}")
            for field in unknown:
                if not isinstance(field, tuple):
                    raise TypeError(f"tuple object expected; got {type(field).__name__}")
            known = known + unknown
        if not self.lenient:
            for tag, _ in known:
                if tag < 0 or tag > MAX_LENGTH:
                    raise OutOfRange(f"{tag} is not a valid tag")
            if len({tag for tag, _ in known}) != len(known):
                raise InvalidValue("the same tag twice")
        if not self.lenient or unknown is None or unknown == sorted(unknown, key=_tag_of):
            known = sorted(known, key=_tag_of)  # otherwise in the order of a lenient reader
        self.write_uvarint(len(known))
        for tag, value in known:
            self.write_uvarint(tag & 0xFFFF_FFFF)  # a lenient reader keeps tags from 2**31 on
            self.write_uvarint(len(value))
            self.buffer.write(value)


def _tag_of(field: tuple[int, bytes]) -> int:
    return field[0]


def add_tag(known: Tags, tag: int, value: Writer) -> list[tuple[int, bytes]]:
    """Append a complete tagged field to those collected so far."""
    if known is None:
        known = []
    known.append((tag, value.getvalue()))
    return known
