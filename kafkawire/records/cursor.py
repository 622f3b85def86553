"""Reads zigzag varints from the bytes of records.

No read passes `end`, no position goes below the start, and a varint with more bytes than its
type allows is an error. Surplus bits of the last byte are dropped, as in Kafka's `ByteUtils`.

    value n is written as n*2 (n >= 0) or -n*2-1 (n < 0), seven bits a byte, low bits first, bit 7
    set on all but the last
"""

from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64, mypyc_attr

from ..errors import InvalidVarint, Truncated

MAX_INT64: Final = 0x7FFFFFFFFFFFFFFF


@final
@mypyc_attr(acyclic=True)
class Cursor:
    """Reads varints of the `data` that is passed to each call, always the same.

    As an attribute its reference count would change at every read.

    strict: whether text that is not UTF-8 is an error.
    """

    def __init__(self, data: bytes, pos: i64, end: i64, strict: bool = False) -> None:
        if pos < 0 or end > len(data):
            raise IndexError(f"{pos}:{end} in {len(data)} bytes")
        self.pos: i64 = pos
        self.end: i64 = end
        self.strict: bool = strict
        self.whole_words: i64 = end - 8  # the last position where eight bytes can be read at once

    def varint(self, data: bytes, bits: i64 = 32) -> i64:
        """Read an integer of at most `bits` bits."""
        p = self.pos
        if p > self.whole_words:
            return self.varint_by_bytes(data, bits)
        word = read_i64_le(data, p)
        if word & 0x80 == 0:
            self.pos = p + 1
            return (word >> 1 & 0x3F) ^ -(word & 1)
        if word & 0x8000 == 0:
            self.pos = p + 2
            return ((word >> 1 & 0x3F) | (word >> 2 & 0x1FC0)) ^ -(word & 1)
        if word & 0x800000 == 0:
            self.pos = p + 3
            return ((word >> 1 & 0x3F) | (word >> 2 & 0x1FC0) | (word >> 3 & 0xFE000)) ^ -(word & 1)
        return self.varint_by_bytes(data, bits)

    def varint_by_bytes(self, data: bytes, bits: i64) -> i64:
        """Read an integer byte by byte: near the end, and for more than three bytes."""
        p = self.pos
        value: i64 = 0
        shift: i64 = 0
        while True:
            if p >= self.end:
                raise Truncated("the data ends inside a varint", "", int(p))
            byte: i64 = data[p]
            p += 1
            if shift + 7 > bits:
                if byte >= 0x80:
                    raise InvalidVarint(f"a varint of more than {bits} bits", "", int(self.pos))
                byte &= (1 << (bits - shift)) - 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        self.pos = p
        # bit 63 may be set: the shift must bring in a zero
        return (value >> 1 & MAX_INT64) ^ -(value & 1)
