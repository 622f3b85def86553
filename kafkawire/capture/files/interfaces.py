"""Decodes pcapng interface description blocks: link type, snaplen, timestamp resolution.

Unknown options are skipped; values out of range are ignored.

    link type u16 | reserved u16 | snaplen u32 | options: code u16, length u16, value, padding ...
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .columns import Ints

IF_TSRESOL: Final = 9
IF_TSOFFSET: Final = 14
END_OF_OPTIONS: Final = 0


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface of a section. A timestamp t means t / (base ** exponent) + `offset` seconds."""

    link: int
    snaplen: int
    base: int = 10
    exponent: int = 6
    offset: int = 0

    def nanoseconds(self, units: Ints) -> Ints:
        """Convert timestamps (the file's 64 bits, as int64) to nanoseconds since the epoch."""
        if self.base == 10 and self.exponent <= 9:
            ns = units * 10 ** (9 - self.exponent)
        elif self.base == 10:
            ns = units // min(10 ** (self.exponent - 9), 1 << 62)
        else:
            shift = min(self.exponent, 62)
            fraction = units & ((1 << shift) - 1)
            # 30 bits of fraction resolve a nanosecond; more would overflow when multiplied.
            drop = max(0, shift - 32)
            ns = (units >> shift) * 10**9 + (((fraction >> drop) * 10**9) >> (shift - drop))
        shifted: Ints = ns + self.offset * 10**9
        return shifted


def read_interface(body: bytes, order: str) -> Interface:
    """Decode the body of an interface description block, of 8 bytes or more."""
    link, _, snaplen = struct.unpack_from(order + "HHI", body)
    base, exponent, offset = 10, 6, 0
    for code, value in _options(body, 8, order):
        if code == IF_TSRESOL and value:
            base, exponent = (2 if value[0] & 0x80 else 10), value[0] & 0x7F
        elif code == IF_TSOFFSET and len(value) == 8:
            offset = struct.unpack(order + "q", value)[0]
            offset = offset if abs(offset) < 1 << 33 else 0
    return Interface(link, snaplen, base, exponent, offset)


def _options(body: bytes, position: int, order: str) -> Iterator[tuple[int, bytes]]:
    while position + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, position)
        if code == END_OF_OPTIONS:
            return
        yield code, body[position + 4 : position + 4 + length]
        position += 4 + length + (-length & 3)
