"""The records of many batches as columns in Arrow's layout.

Keys, values and headers are not copied. A column of bytes has a view of 16 bytes per row
(Arrow's view layout) and a validity bitmap; only values of 12 bytes or less are in the view itself.

    length: int32 │ first 4 bytes │ buffer: int32 │ position: int32          length > 12
    length: int32 │ the bytes, zeros after them: 12                          length <= 12

Numbers are little-endian. A column's memory may be longer than its rows.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from ..errors import LimitExceeded
from .cursor import Cursor
from .decoding import check_header_count, header_key, overrun
from .legacy import Span
from .replaced_text import ReplacedText
from .rows import room

if TYPE_CHECKING:
    import pyarrow as pa

INLINE: Final = 12
"""The longest value that is in the view itself."""
MAX_INT32: Final = 0x7FFFFFFF

VIEW: Final = Struct("<i4sii")
SHORT_VIEW: Final = Struct("<i12s")
NO_VIEW: Final = bytes(16)
VALID: Final = bytearray(b"\xff")
LONG: Final = Struct("<q")
STEP: Final = Struct("<i")
NO_MEMORY: Final = bytearray()
"""Never written to: memory is replaced when a column grows."""


def longer(memory: bytearray, size: int) -> bytearray:
    """Copy into new memory of `size` bytes: arrays made so far keep what they point to."""
    larger = room(size)
    larger[: len(memory)] = memory
    return larger


@final
@mypyc_attr(acyclic=True)
class Views:
    """A column of nullable bytes. It takes no memory until the first row that is not null."""

    def __init__(self) -> None:
        self.words: bytearray = NO_MEMORY
        self.valid: bytearray = NO_MEMORY  # a bit a row
        self.nulls: int = 0
        self.room: int = 0  # rows that memory is allocated for
        self.reserved: int = 0  # rows to allocate memory for

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows in all."""
        self.reserved = rows
        if self.room:
            self.make_room()

    def make_room(self) -> None:
        """Allocate the reserved memory; rows so far are null if there was none."""
        rows = self.reserved
        if self.room:
            self.words = longer(self.words, 16 * rows)
            self.valid = self.valid + VALID * (rows // 8 + 1 - len(self.valid))
        elif self.nulls:
            whole, bits = divmod(self.nulls, 8)
            self.words = bytearray(16 * rows)
            self.valid = bytearray(whole) + VALID * (rows // 8 + 1 - whole)
            self.valid[whole] = 0xFF << bits & 0xFF
        else:
            self.words = room(16 * rows)
            self.valid = VALID * (rows // 8 + 1)
        self.room = rows

    def put_null(self, row: int) -> None:
        """Make the row null."""
        if self.room:
            self.words[row * 16 : row * 16 + 16] = NO_VIEW
            self.valid[row >> 3] &= ~(1 << (row & 7))
        self.nulls += 1

    def take_back(self, row: int, stop: int, nulls: int) -> None:
        """Drop the values of the rows from `row` to before `stop`.

        nulls: how many rows before them are null.
        """
        self.nulls = nulls
        if self.room:
            for each in range(row, min(stop, self.room)):
                self.valid[each >> 3] |= 1 << (each & 7)

    def put(self, row: int, data: bytes, pos: int, length: int, buffer: int) -> None:
        """Make the row `data[pos:pos + length]`, already checked; `buffer` numbers `data`."""
        if self.room == 0:
            self.make_room()
        if length > INLINE:
            VIEW.pack_into(self.words, row * 16, length, data[pos : pos + 4], buffer, pos)
        else:
            SHORT_VIEW.pack_into(self.words, row * 16, length, data[pos : pos + length])

    def put_next(self, row: i64, cursor: Cursor, data: bytes, stop: i64, buffer: i64) -> None:
        """Read a length and set that many bytes, if the record that ends at `stop` has them."""
        length = cursor.varint(data)
        if length < 0:
            self.put_null(row)
            return
        pos = cursor.pos
        if length > stop - pos:
            raise overrun(length, pos, stop)
        self.put(row, data, pos, length, buffer)
        cursor.pos = pos + length

    def to_arrow(self, type: pa.DataType, rows: int, data: list[pa.Buffer]) -> pa.Array:
        """Make an array of the first rows; data: what the views point into."""
        from . import arrow

        return arrow.view_array(type, rows, self.words, self.valid, self.nulls, data)


@final
@mypyc_attr(acyclic=True)
class Longs:
    """A column of int64."""

    def __init__(self) -> None:
        self.numbers: bytearray = NO_MEMORY

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows in all."""
        self.numbers = longer(self.numbers, 8 * rows) if self.numbers else room(8 * rows)

    def put(self, row: int, number: int) -> None:
        """Set a row."""
        LONG.pack_into(self.numbers, row * 8, number)

    def fill(self, row: int, stop: int, number: int) -> None:
        """Set a number in the rows from `row` to before `stop`."""
        self.numbers[row * 8 : stop * 8] = LONG.pack(number) * (stop - row)


@final
@mypyc_attr(acyclic=True)
class Steps:
    """A column of int32. It takes no memory while all rows are zero."""

    def __init__(self) -> None:
        self.numbers: bytearray = NO_MEMORY
        self.reserved: int = 0

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows in all; new ones are zero."""
        self.reserved = rows
        if self.numbers:
            self.numbers = self.numbers + bytes(4 * rows - len(self.numbers))

    def fill(self, row: int, stop: int, number: int) -> None:
        """Set a number in the rows from `row` to before `stop`."""
        if not self.numbers:
            if number == 0:
                return
            self.numbers = bytearray(4 * self.reserved)
        self.numbers[row * 4 : stop * 4] = STEP.pack(number) * (stop - row)


@final
@mypyc_attr(acyclic=True)
class Columns:
    """Rows of batches, one per record, in buffers with Arrow's layout.

    buffers: what the views point into: the records field itself, then each decompressed batch.
    """

    def __init__(self, data: bytes) -> None:
        self.buffers: list[bytes] = []
        self.add_buffer(data)
        self.rows: int = 0
        self.room: int = 0
        self.batch: Steps = Steps()
        self.offset: Longs = Longs()
        self.timestamp: Longs = Longs()
        self.key: Views = Views()
        self.value: Views = Views()
        self.header_ends: Steps = Steps()  # one more than rows: where headers end
        self.header_key: Views = Views()
        self.header_value: Views = Views()
        self.headers: int = 0
        self.invalid_header_keys: list[int] = []  # headers whose keys are not UTF-8

    def __len__(self) -> int:
        return self.rows

    def to_arrow(self) -> pa.RecordBatch:
        """Make Arrow arrays of the columns without copying them; see `arrow.SCHEMA`."""
        from . import arrow

        rows, count = self.rows, self.headers
        data = [arrow.memory(buffer, len(buffer)) for buffer in self.buffers]
        keys, key_bytes = arrow.key_arrays(
            count, self.header_key.words, data, self.invalid_header_keys
        )
        values = self.header_value.to_arrow(arrow.BYTES, count, data)
        return arrow.record_batch(
            [
                arrow.int32_array(rows, self.batch.numbers),
                arrow.int64_array(rows, self.offset.numbers),
                arrow.int64_array(rows, self.timestamp.numbers),
                self.key.to_arrow(arrow.BYTES, rows, data),
                self.value.to_arrow(arrow.BYTES, rows, data),
                arrow.header_array(rows, self.header_ends.numbers, [keys, values, key_bytes]),
            ]
        )

    def add_buffer(self, data: bytes) -> int:
        """Add a buffer; return its number. LimitExceeded if views cannot address its end."""
        if len(data) > MAX_INT32:
            raise LimitExceeded(f"columns of {len(data)} bytes, where Arrow's views end at 2 GiB")
        self.buffers.append(data)
        return len(self.buffers) - 1

    def memory(self) -> tuple[bytearray, ...]:
        """List the buffers that a batch's rows are written into, in the order of `rows.c`."""
        return (
            self.offset.numbers,
            self.timestamp.numbers,
            self.header_ends.numbers,
            self.key.words,
            self.key.valid,
            self.value.words,
            self.value.valid,
            self.header_key.words,
            self.header_key.valid,
            self.header_value.words,
            self.header_value.valid,
        )

    def reserve(self, more: int) -> None:
        """Make room for `more` rows: exactly at first, then by doubling."""
        rows = self.rows + more
        if rows <= self.room:
            return
        if self.room:
            rows = max(rows, self.room * 2)
        self.room = rows
        self.offset.reserve(rows)
        self.timestamp.reserve(rows)
        self.batch.reserve(rows)
        self.header_ends.reserve(rows + 1)
        self.key.reserve(rows)
        self.value.reserve(rows)
        if self.value.room == 0:
            self.value.make_room()

    def add_span(self, data: bytes, span: Span, batch: int, buffer: int) -> None:
        """Add one message of magic 0 or 1."""
        self.reserve(1)
        row = self.rows
        self.rows = row + 1
        self.batch.fill(row, row + 1, batch)
        self.offset.put(row, span.offset)
        self.timestamp.put(row, span.timestamp)
        self.header_ends.fill(row + 1, row + 2, self.headers)
        if span.key_length < 0:
            self.key.put_null(row)
        else:
            self.key.put(row, data, span.key_start, span.key_length, buffer)
        if span.value_length < 0:
            self.value.put_null(row)
        else:
            self.value.put(row, data, span.value_start, span.value_length, buffer)

    def add_headers(self, cursor: Cursor, data: bytes, stop: i64, count: i64, buffer: i64) -> None:
        """Add one record's headers."""
        check_header_count(cursor, stop, count)
        row = self.headers
        rows = row + int(count)
        if rows > self.header_key.reserved:
            room = max(rows, self.header_key.reserved * 2)
            self.header_key.reserve(room)
            self.header_value.reserve(room)
        self.headers = rows
        while row < rows:
            length = cursor.varint(data)
            pos = cursor.pos
            key = header_key(data, pos, length, stop, cursor.strict)
            if isinstance(key, ReplacedText):
                self.invalid_header_keys.append(row)
            self.header_key.put(row, data, pos, length, buffer)
            cursor.pos = pos + length
            self.header_value.put_next(row, cursor, data, stop, buffer)
            row += 1
