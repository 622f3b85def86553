"""Shares values that repeat in structs and messages.

Law: shared values are read-only, so sharing affects memory and time only. A table of fixed size
caches the most recent values; a value is found by all of its bytes, read as numbers, so that a
lookup creates no objects.

    size 4-7:  a = first 4 bytes, d = last 4          slot of the table = mix(size, a, d)
    size 8-32: a = first 8, d = last 8; and beyond 16, b and c = what lies between, overlapping
"""

from typing import Final, final

from librt.strings import read_i32_be, read_i32_le, read_i64_le
from mypy_extensions import i64, mypyc_attr

from .ints import NO_INTS, SharedInts

SMALLEST: Final = 4
LARGEST: Final = 32
"""The sizes of cached values: a name, or up to eight int32."""

SLOTS: Final = 1024
MIX_FIRST: Final = 0x1E3779B97F4A7C15
MIX_LAST: Final = 0x22B2AE3D27D4EB4F
"""Random odd numbers: they spread a difference of one bit over the high bits.

Below 2**62: compiled code would store a larger one as an object.
"""


@final
@mypyc_attr(acyclic=True)
class Kept:
    """A name, or a list of int32, and the `size` bytes that it was decoded from."""

    def __init__(self, data: bytes, p: i64, size: i64, name: str, ints: list[int]) -> None:
        end = p + size
        self.size: i64 = size
        self.a: i64 = 0
        self.b: i64 = 0
        self.c: i64 = 0
        self.d: i64 = 0
        if size >= 8:
            self.a = read_i64_le(data, p)
            self.d = read_i64_le(data, end - 8)
        elif size >= SMALLEST:
            self.a = i64(read_i32_le(data, p))
            self.d = i64(read_i32_le(data, end - 4))
        if size > 16:
            self.b = read_i64_le(data, p + 8)
            self.c = read_i64_le(data, end - 16)
        self.name: str = name
        self.ints: list[int] = ints

    def matches(self, data: bytes, p: i64, size: i64) -> bool:
        """Return whether the `size` bytes at `p` are the same."""
        if self.size != size:
            return False
        end = p + size
        if size < 8:
            return self.a == i64(read_i32_le(data, p)) and self.d == i64(read_i32_le(data, end - 4))
        if self.a != read_i64_le(data, p) or self.d != read_i64_le(data, end - 8):
            return False
        if size <= 16:
            return True
        return self.b == read_i64_le(data, p + 8) and self.c == read_i64_le(data, end - 16)


_NOTHING: Final = Kept(b"", 0, 0, "", NO_INTS)
_NAMES: Final[list[Kept]] = [_NOTHING] * SLOTS
_INTS: Final[list[Kept]] = [_NOTHING] * SLOTS


def _slot(data: bytes, p: i64, size: i64) -> i64:
    """Return the slot of the `size` bytes at `p`."""
    end = p + size
    if size < 8:
        first, last = i64(read_i32_le(data, p)), i64(read_i32_le(data, end - 4))
    else:
        first, last = read_i64_le(data, p), read_i64_le(data, end - 8)
    return ((first + size) * MIX_FIRST + last * MIX_LAST) >> 40 & (SLOTS - 1)


def shared_name(data: bytes, p: i64, size: i64) -> str:
    """Return the text of `size` bytes at `p`; UnicodeDecodeError as `decode` raises it."""
    slot = _slot(data, p, size)
    kept = _NAMES[slot]
    if kept.matches(data, p, size):
        return kept.name
    name = data[p : p + size].decode("utf-8")
    _NAMES[slot] = Kept(data, p, size, name, NO_INTS)
    return name


def shared_ints(data: bytes, p: i64, size: i64) -> list[int]:
    """Return the int32 in `size` bytes at `p`."""
    slot = _slot(data, p, size)
    kept = _INTS[slot]
    if kept.matches(data, p, size):
        return kept.ints
    ints = SharedInts([int(read_i32_be(data, at)) for at in range(p, p + size, 4)])
    _INTS[slot] = Kept(data, p, size, "", ints)
    return ints
