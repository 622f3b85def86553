"""Reads primitive values of the protocol from the bytes of a body, creating few objects.

Law: a value equals that of the decoder; what is not simple (a varint too long, a length out of
bounds) raises NeedsDecoder.

    INT16 INT32   two or four bytes                  UUID    sixteen
    UVARINT       seven bits a byte, lowest first
    STRING BYTES ARRAY   the length, then the content    null    a length of -1
                         length + 1 as UVARINT in flexible versions
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

from ....primitives.shared import shared_text
from .layouts import Step

MAX_STRING: Final = 0x7FFF
MAX_INT32: Final = 0x7FFFFFFF
SHORT: Final = 48
"""Length up to which a string is checked for ASCII byte by byte."""


class NeedsDecoder(ValueError):
    """The body is left to the decoder."""


class BodyValues:
    """A body that is being read.

    pos: the next byte to read, up to `end`. elements: how many array elements are still allowed.
    flexible: whether lengths are UVARINTs. unproven_nulls: fields whose nulls the decoder is not
    yet known to accept.
    """

    def __init__(self) -> None:
        self.data: bytes = b""
        self.pos: i64 = 0
        self.end: i64 = 0
        self.elements: i64 = 0
        self.flexible: bool = False
        self.unproven_nulls: list[Step] = []

    def start(self, data: bytes, pos: int, elements: int, flexible: bool) -> None:
        """Start reading a body."""
        self.data, self.pos, self.end, self.elements = data, pos, len(data), elements
        self.flexible = flexible
        self.unproven_nulls = []

    def int16(self) -> i64:
        p = self.pos
        self.pos = p + 2
        return i64(read_i16_be(self.data, p))

    def int32(self) -> i64:
        p = self.pos
        self.pos = p + 4
        return i64(read_i32_be(self.data, p))

    def uvarint(self) -> i64:
        data = self.data
        p = self.pos
        byte: i64 = data[p]
        p += 1
        value = byte & 0x7F
        shift: i64 = 0
        while byte > 127:
            shift += 7
            if shift > 28:
                raise NeedsDecoder
            byte = data[p]
            p += 1
            value |= (byte & 0x7F) << shift
        if value > MAX_INT32:
            raise NeedsDecoder
        self.pos = p
        return value

    def uuid(self) -> bytes:
        p = self.pos
        if p + 16 > self.end:
            raise NeedsDecoder
        self.pos = p + 16
        return self.data[p : p + 16]

    def text_size(self, step: Step | None) -> i64:
        """Read the length of a string and skip it; -1 for null."""
        n: i64
        if self.flexible:
            n = self.uvarint() - 1
            if n > MAX_STRING:
                raise NeedsDecoder
        else:
            n = self.int16()
        if n < 0:
            self.null(step)
            return -1
        if n > self.end - self.pos:
            raise NeedsDecoder
        self.pos += n
        return n

    def text(self, step: Step | None) -> str | None:
        n = self.text_size(step)
        if n < 0:
            return None
        return shared_text(self.data, self.pos - n, n)

    def skip_text(self, step: Step | None) -> None:
        """Skip a string; it must be UTF-8."""
        n = self.text_size(step)
        if n <= 0:
            return
        data = self.data
        p = self.pos - n
        if n <= SHORT:
            stop = p + n
            while p < stop and data[p] < 128:
                p += 1
            if p == stop:
                return
            p = stop - n
        data[p : p + n].decode("utf-8")

    def bytes_size(self, step: Step | None) -> i64:
        """Read the length of bytes and skip them; -1 for null."""
        n = self.uvarint() - 1 if self.flexible else self.int32()
        if n < 0:
            self.null(step)
            return -1
        if n > self.end - self.pos:
            raise NeedsDecoder
        self.pos += n
        return n

    def skip_bytes(self, step: Step | None) -> None:
        self.bytes_size(step)

    def count(self, step: Step) -> i64:
        """Read the length of an array; -1 for null."""
        n = self.uvarint() - 1 if self.flexible else self.int32()
        if n < 0:
            self.null(step)
            return -1
        self.elements -= n + 1  # an array is an object, as a struct is (Limits)
        if n > self.end - self.pos or self.elements < 0:
            raise NeedsDecoder
        return n

    def null(self, step: Step | None) -> None:
        if step is None:
            raise NeedsDecoder
        if not step.allows_null:
            self.unproven_nulls.append(step)
