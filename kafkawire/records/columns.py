"""The records of many batches as columns, laid out as Arrow wants them.

Law: keys, values and headers stay where they are. A column of bytes is 16 bytes a row that say
where (Arrow's view layout), and a bitmap of what is not null; only what has 12 bytes or less stands
in the view itself.

    length: int32 │ first 4 bytes │ buffer: int32 │ position: int32          length > 12
    length: int32 │ the bytes, zeros after them: 12                          length <= 12
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i32_le
from librt.vecs import extend, vec
from mypy_extensions import i32, i64, mypyc_attr, u8

from ..errors import LimitExceeded
from .cursor import Cursor
from .decoding import check_header_count, check_header_key, overrun
from .legacy import Span

if TYPE_CHECKING:
    import pyarrow as pa

INLINE: Final = 12
"""The longest value that stands in its view."""
MAX_INT32: Final = 0x7FFFFFFF


@final
@mypyc_attr(acyclic=True)
class Views:
    """A column of nullable bytes. It takes no memory until the first row that is not null."""

    def __init__(self) -> None:
        self.words: vec[i64] = vec[i64]()  # two a row, little-endian
        self.valid: vec[u8] = vec[u8]()  # a bit a row
        self.nulls: i64 = 0
        self.room: i64 = 0  # rows there is memory for
        self.asked: i64 = 0  # rows there should be memory for

    def reserve(self, rows: i64) -> None:
        """Make room for `rows` rows in all; new ones are null."""
        self.asked = rows
        if self.room != 0:
            self.make_room()

    def make_room(self) -> None:
        """Take the memory that was asked for."""
        rows = self.asked
        room: i64 = self.room
        if room == 0:
            self.words = vec[i64]([0] * (rows * 2))
            self.valid = vec[u8]([255] * (rows // 8 + 1))
            row: i64 = 0
            while row < self.nulls:  # so far there were only these
                self.valid[row >> 3] &= u8(255 - (1 << (row & 7)))
                row += 1
        elif rows > room:
            self.words = extend(self.words, vec[i64]([0] * ((rows - room) * 2)))
            more: i64 = rows // 8 + 1 - len(self.valid)
            self.valid = extend(self.valid, vec[u8]([255] * more))
        self.room = rows

    def put_null(self, row: i64) -> None:
        """Make the row null."""
        if self.room != 0:
            self.valid[row >> 3] &= u8(255 - (1 << (row & 7)))
        self.nulls += 1

    def put(self, row: i64, data: bytes, pos: i64, length: i64, buffer: i64) -> None:
        """Make the row `data[pos:pos + length]`, already checked; `buffer` numbers `data`."""
        if self.room == 0:
            self.make_room()
        words = self.words
        at = row * 2
        if length > INLINE:
            words[at] = i64(read_i32_le(data, pos)) << 32 | length
            words[at + 1] = pos << 32 | buffer
        else:
            words[at] = piece(data, pos, length) << 32 | length
            high = piece(data, pos + 8, length - 8) << 32
            words[at + 1] = high | (piece(data, pos + 4, length - 4) & 0xFFFFFFFF)

    def put_next(self, row: i64, cursor: Cursor, data: bytes, stop: i64, buffer: i64) -> None:
        """Read a length and put so many bytes, if the record that ends at `stop` has them."""
        length = cursor.varint(data)
        if length < 0:
            self.put_null(row)
            return
        pos = cursor.pos
        if length > stop - pos:
            raise overrun(length, pos, stop)
        self.put(row, data, pos, length, buffer)
        cursor.pos = pos + length


def piece(data: bytes, pos: i64, length: i64) -> i64:
    """Read up to four bytes as a little-endian number, signed if there are four."""
    if length >= 4:
        return i64(read_i32_le(data, pos))
    value: i64 = 0
    if length > 0:
        value = data[pos]
    if length > 1:
        value |= i64(data[pos + 1]) << 8
    if length > 2:
        value |= i64(data[pos + 2]) << 16
    return value


@final
@mypyc_attr(acyclic=True)
class Steps:
    """A column of int32. It takes no memory while all rows are zero."""

    def __init__(self) -> None:
        self.numbers: vec[i32] = vec[i32]()
        self.asked: i64 = 0

    def reserve(self, rows: i64) -> None:
        """Make room for `rows` rows in all; new ones are zero."""
        self.asked = rows
        if len(self.numbers) != 0:
            self.make_room()

    def make_room(self) -> None:
        """Take the memory that was asked for."""
        more: i64 = self.asked - len(self.numbers)
        if len(self.numbers) == 0:
            self.numbers = vec[i32]([0] * more)
        elif more > 0:
            self.numbers = extend(self.numbers, vec[i32]([0] * more))

    def fill(self, row: i64, stop: i64, number: i32) -> None:
        """Put a number into the rows from `row` to before `stop`."""
        if len(self.numbers) == 0:
            if number == 0:
                return
            self.make_room()
        numbers = self.numbers
        while row < stop:
            numbers[row] = number
            row += 1


@final
@mypyc_attr(acyclic=True)
class Columns:
    """Rows collected from batches, one a record, in buffers that Arrow takes as they are.

    buffers: what the views point into: the records field itself, then each decompressed batch.
    """

    def __init__(self, data: bytes) -> None:
        self.buffers: list[bytes] = []
        self.add_buffer(data)
        self.rows: i64 = 0
        self.room: i64 = 0
        self.batch: Steps = Steps()
        self.offset: vec[i64] = vec[i64]()
        self.timestamp: vec[i64] = vec[i64]()
        self.key: Views = Views()
        self.value: Views = Views()
        self.header_ends: Steps = Steps()  # one more than rows: where headers end
        self.header_key: Views = Views()
        self.header_value: Views = Views()
        self.headers: i64 = 0

    def __len__(self) -> int:
        return int(self.rows)

    def to_arrow(self) -> pa.RecordBatch:
        """Make Arrow arrays of the columns without copying them; see `arrow.SCHEMA`."""
        from .arrow import record_batch

        return record_batch(self)

    def add_buffer(self, data: bytes) -> int:
        """Take one more buffer; return its number. LimitExceeded if no view can reach its end."""
        if len(data) > MAX_INT32:
            raise LimitExceeded(f"columns of {len(data)} bytes, where Arrow's views end at 2 GiB")
        self.buffers.append(data)
        return len(self.buffers) - 1

    def reserve(self, more: i64) -> None:
        """Make room for `more` rows: exactly at first, then by doubling."""
        rows = self.rows + more
        room: i64 = self.room
        if rows <= room:
            return
        if room == 0:
            self.offset = vec[i64]([0] * rows)
            self.timestamp = vec[i64]([0] * rows)
        else:
            rows = max(rows, room * 2)
            self.offset = extend(self.offset, vec[i64]([0] * (rows - room)))
            self.timestamp = extend(self.timestamp, vec[i64]([0] * (rows - room)))
        self.room = rows
        self.batch.reserve(rows)
        self.header_ends.reserve(rows + 1)
        self.key.reserve(rows)
        self.value.reserve(rows)

    def add_span(self, data: bytes, span: Span, batch: int, buffer: int) -> None:
        """Add one message of magic 0 or 1."""
        self.reserve(1)
        row = self.rows
        self.rows = row + 1
        self.batch.fill(row, row + 1, i32(batch))
        self.offset[row] = span.offset
        self.timestamp[row] = span.timestamp
        self.header_ends.fill(row + 1, row + 2, i32(self.headers))
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
        if row + count > self.header_key.asked:
            room = max(row + count, self.header_key.asked * 2)
            self.header_key.reserve(room)
            self.header_value.reserve(room)
        self.headers = row + count
        while row < self.headers:
            length = cursor.varint(data)
            pos = cursor.pos
            check_header_key(data, pos, length, stop)
            self.header_key.put(row, data, pos, length, buffer)
            cursor.pos = pos + length
            self.header_value.put_next(row, cursor, data, stop, buffer)
            row += 1
