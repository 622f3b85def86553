"""Collects values of columns in Arrow's memory layout: numbers.

Buffers are append-only; `arrays` builds arrays of them without copying value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from librt.strings import BytesWriter, write_i16_le, write_i32_le, write_i64_le
from mypy_extensions import i16, i32, i64

from ..extraction.body_facts import NONE


@final
class Numbers:
    """A column of numbers in Arrow's layout, with one byte per value: 1 if valid, 0 if null."""

    def __init__(self) -> None:
        self.values: BytesWriter = BytesWriter()
        self.valid: BytesWriter = BytesWriter()

    def __reduce__(self) -> tuple[Callable[[bytes, bytes], Numbers], tuple[bytes, bytes]]:
        return numbers_of, (self.values.getvalue(), self.valid.getvalue())

    def put64(self, value: i64) -> None:
        write_i64_le(self.values, value)
        self.valid.append(1)

    def put32(self, value: i64) -> None:
        if value == NONE:
            self.none32()
        else:
            write_i32_le(self.values, i32(value))
            self.valid.append(1)

    def put16(self, value: i64) -> None:
        if value == NONE:
            write_i16_le(self.values, 0)
            self.valid.append(0)
        else:
            write_i16_le(self.values, i16(value))
            self.valid.append(1)

    def none64(self) -> None:
        write_i64_le(self.values, 0)
        self.valid.append(0)

    def none32(self) -> None:
        write_i32_le(self.values, 0)
        self.valid.append(0)


def numbers_of(values: bytes, valid: bytes) -> Numbers:
    """Return a column that was pickled."""
    numbers = Numbers()
    numbers.values.write(values)
    numbers.valid.write(valid)
    return numbers
