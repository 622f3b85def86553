"""Appends short texts and short lists of int32: the interpreted version of `appending.h`.

What a function does not append, the writer does, with the same bytes or with an error.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be
from mypy_extensions import u8

LONGEST: Final = 126
"""Bytes of a text, or items of a list, at most: the length, plus one, is one byte as a varint."""

MIN_INT32: Final = -(1 << 31)
MAX_INT32: Final = (1 << 31) - 1


def append_text(buffer: BytesWriter, text: str, flexible: bool) -> bool:
    """Append a text with its length if it is short and ASCII; return whether it was."""
    if not text.isascii() or len(text) > LONGEST:
        return False
    if flexible:
        buffer.append(u8(len(text) + 1))
    else:
        write_i16_be(buffer, len(text))
    buffer.write(text.encode("ascii"))
    return True


def append_int32s(buffer: BytesWriter, values: list[int], flexible: bool) -> bool:
    """Append a list with its count if it is short and all items are int32; return whether so."""
    if len(values) > LONGEST or not all(map(_is_int32, values)):
        return False
    if flexible:
        buffer.append(u8(len(values) + 1))
    else:
        write_i32_be(buffer, len(values))
    for value in values:
        write_i32_be(buffer, value)
    return True


def _is_int32(value: object) -> bool:
    return isinstance(value, int) and MIN_INT32 <= value <= MAX_INT32
