"""Builds Arrow arrays of whole columns from buffers of their values.

An array equals what `columns` builds of the same values one by one. `pa.array` is not used: it
is slow per value, and imports pandas wherever that is installed.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....records.columns import Views
from ..columns import BOOL, INT32, TEXT, TIME, printable
from . import values as in_memory
from .schemas import PLAIN

if TYPE_CHECKING:
    from .values import Data


def bitmap(valid: bytes | bytearray) -> pa.Buffer | None:
    """Build Arrow's validity bitmap of one byte per value; None if no value is null."""
    return pa.py_buffer(in_memory.bits(valid)) if 0 in valid else None


def nullable_numbers(type: pa.DataType, values: Data, valid: bytes | bytearray) -> pa.Array:
    """Build an array of numbers from a buffer; valid: one byte per value, 0 for null."""
    return pa.Array.from_buffers(type, len(valid), [bitmap(valid), pa.py_buffer(values)])


def numbers(type: pa.DataType, values: Data, rows: int | None = None) -> pa.Array:
    """Build an array of numbers without nulls; rows: how many of the numbers."""
    if rows is None:
        rows = len(values) * 8 // type.bit_width
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(values)])


def repeated_numbers(
    type: pa.DataType, values: Data, valid: bytes | bytearray | None, counts: bytes
) -> pa.Array:
    """Build an array of numbers, each repeated as often as an int64 of `counts` says.

    valid: one byte per value, 0 for null; None if none is null.
    """
    repeated = in_memory.copies(values, type.bit_width // 8, counts)
    if valid is None or 0 not in valid:
        return numbers(type, repeated)
    return nullable_numbers(type, repeated, in_memory.copies(valid, 1, counts))


def repeated_times(time_ns: Data, valid: Data, counts: bytes) -> pa.Array:
    """Build timestamps of nanoseconds since the epoch, each repeated `counts` times."""
    return repeated_numbers(PLAIN[TIME], *in_memory.times(time_ns, valid, False), counts)


def booleans(flags: Data, valid: bytes | bytearray = b"") -> pa.Array:
    """Build an array of booleans of one byte each; valid: 0 for null, empty if none is."""
    bits = pa.py_buffer(in_memory.bits(flags))
    return pa.Array.from_buffers(PLAIN[BOOL], len(flags), [bitmap(valid), bits])


def texts(values: list[str | None]) -> pa.Array:
    """Build an array of strings."""
    try:
        column = in_memory.texts(values)
    except UnicodeEncodeError:  # text that was not valid UTF-8 on the wire
        column = in_memory.texts([printable(value) for value in values])
    return from_column(PLAIN[TEXT], column)


def repeated_texts(values: list[str | None], counts: bytes) -> pa.Array:
    """Build an array of strings, each repeated as often as an int64 of `counts` says."""
    try:
        column = in_memory.repeated(values, counts)
    except UnicodeEncodeError:
        column = in_memory.repeated([printable(value) for value in values], counts)
    return from_column(PLAIN[TEXT], column)


def chosen_texts(values: list[str | None], indexes: Data) -> pa.Array:
    """Build an array of strings, which some int32 choose."""
    try:
        column = in_memory.chosen(values, indexes)
    except UnicodeEncodeError:
        column = in_memory.chosen([printable(value) for value in values], indexes)
    return from_column(PLAIN[TEXT], column)


def from_views(type: pa.DataType, column: Views, rows: int, buffers: list[bytes]) -> pa.Array:
    """Build an array of binary values or strings from views."""
    if column.nulls == rows:
        return pa.nulls(rows, type)
    valid = column.valid if column.nulls else bytearray()
    return from_column(type, in_memory.viewed(column.words, valid, rows, buffers))


def from_column(type: pa.DataType, column: in_memory.Column) -> pa.Array:
    """Build an array of values in Arrow's memory layout."""
    ends, data, valid = column
    bits = None if valid is None else pa.py_buffer(valid)
    buffers = [bits, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(type, len(ends) // 4 - 1, buffers)


def lists(type: pa.DataType, ends: Data, items: pa.Array, rows: int | None = None) -> pa.Array:
    """Build an array of lists; ends: 0, then the end of each list (Arrow's offsets): int32."""
    if rows is None:
        rows = len(ends) // 4 - 1
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(ends)], children=[items])


def empty_lists(type: pa.DataType, rows: int, inner: pa.Array) -> pa.Array:
    """Build an array of empty lists."""
    return lists(type, bytes(4 * (rows + 1)), inner)


def times(time_ns: Data, valid: Data) -> pa.Array:
    """Convert nanoseconds since the epoch to timestamps; null if out of range."""
    return nullable_numbers(PLAIN[TIME], *in_memory.times(time_ns, valid, False))


def times_of_ms(time_ms: Data) -> pa.Array:
    """Convert Kafka's milliseconds since the epoch to timestamps."""
    return nullable_numbers(PLAIN[TIME], *in_memory.times(time_ms, b"", True))


# -- columns that are resolved late


def topic_lists(type: pa.DataType, ends: Data, topics: list[Any], indexes: Data) -> pa.Array:
    """Build lists of topic names; the id where the name is unknown.

    topics: distinct ones, of which the int32 of `indexes` choose.
    """
    names = [topic.name or topic.id_text or "" for topic in topics]
    if len(set(names)) == len(names):
        return lists(type, ends, chosen_texts(names, indexes))
    named = [names[index] for index in array("i", bytes(indexes))]
    cuts = array("i", bytes(ends))
    each = [list(dict.fromkeys(named[a:b])) for a, b in pairwise(cuts)]
    new = array("i", accumulate(map(len, each), initial=0))
    return lists(type, new.tobytes(), texts(list(chain.from_iterable(each))))


def topic_partition_lists(
    type: pa.DataType,
    ends: Data,
    topics: list[Any],
    indexes: Data,
    partition_ends: Data,
    partitions: Data,
) -> pa.Array:
    """Build a TOPIC_PARTITIONS column: of each element a topic, and a list of its partitions."""
    struct = type.value_type
    element = lists(
        struct.field("partitions").type, partition_ends, numbers(PLAIN[INT32], partitions)
    )
    children = [
        chosen_texts([topic.name for topic in topics], indexes),
        chosen_texts([topic.id_text for topic in topics], indexes),
        element,
    ]
    elements = pa.Array.from_buffers(struct, len(element), [None], children=children)
    return lists(type, ends, elements)
