"""Builds Arrow arrays of whole columns from buffers of their values.

Law: an array equals what `columns` builds of the same values one by one. `pa.array` is not used: it
is slow per value, and imports pandas wherever that is installed.
"""

from __future__ import annotations

import sys
from array import array
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....records.columns import Views
from ..columns import BOOL, INT32, LAST_TIME, TEXT, TIME, printable
from . import values as in_memory
from .schemas import PLAIN

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


UNUSED: Final = frozenset({"pandas", "dateutil"})
"""What pyarrow imports, where it is installed, when the first array of a process is made."""


class _Unused:
    """Lets imports of UNUSED fail: a finder for `sys.meta_path`."""

    def find_spec(self, name: str, *_: object) -> None:
        """Fail for UNUSED, and find nothing else."""
        if name in UNUSED:
            raise ModuleNotFoundError("not used here", name=name)


def import_arrow() -> None:
    """Import pyarrow without UNUSED.

    Nothing here uses them, and importing pandas takes longer than decoding 20 MB. Whoever converts
    a table to pandas later gets it all the same.
    """
    finder = _Unused()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def bitmap(valid: Any) -> pa.Buffer | None:
    """Build Arrow's validity bitmap; None if no value is null."""
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def nullable_numbers(type: pa.DataType, values: Any, valid: bytes) -> pa.Array:
    """Build an array of numbers from a buffer; valid: one byte per value, 0 for null."""
    mask = np.frombuffer(valid, np.bool_)
    return pa.Array.from_buffers(type, len(mask), [bitmap(mask), pa.py_buffer(values)])


def numbers(type: pa.DataType, values: Any) -> pa.Array:
    """Build an array of numbers without nulls."""
    return pa.Array.from_buffers(type, len(values), [None, pa.py_buffer(values)])


def repeated_numbers(
    type: pa.DataType, values: bytes, valid: bytes, counts: Int64s
) -> tuple[pa.Array, Any, Mask]:
    """Build an array of numbers, each repeated `counts` times.

    valid: one byte per value, 0 for null. Returns the repeated numbers, too, and which are valid.
    """
    repeated = np.repeat(np.frombuffer(values, type.to_pandas_dtype()), counts)
    mask = np.repeat(np.frombuffer(valid, np.bool_), counts)
    buffers = [bitmap(mask), pa.py_buffer(repeated)]
    return pa.Array.from_buffers(type, len(repeated), buffers), repeated, mask


def booleans(values: Any) -> pa.Array:
    """Build an array of booleans without nulls."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(PLAIN[BOOL], len(values), [None, bits])


def nullable_booleans(values: bytes, valid: bytes) -> pa.Array:
    """Build an array of booleans of one byte each; valid: 0 for null."""
    mask = np.frombuffer(valid, np.bool_)
    bits = pa.py_buffer(np.packbits(np.frombuffer(values, np.bool_), bitorder="little"))
    return pa.Array.from_buffers(PLAIN[BOOL], len(mask), [bitmap(mask), bits])


def texts(values: list[str | None]) -> pa.Array:
    """Build an array of strings."""
    try:
        made = in_memory.texts(values)
    except UnicodeEncodeError:  # text that was not valid UTF-8 on the wire
        made = in_memory.texts([printable(value) for value in values])
    return from_column(PLAIN[TEXT], made)


def repeated_texts(values: list[str | None], counts: Int64s) -> pa.Array:
    """Build an array of strings, each repeated `counts` times."""
    times = counts.tobytes()
    try:
        made = in_memory.repeated(values, times)
    except UnicodeEncodeError:
        made = in_memory.repeated([printable(value) for value in values], times)
    return from_column(PLAIN[TEXT], made)


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


def lists(type: pa.DataType, ends: Any, items: pa.Array) -> pa.Array:
    """Build an array of lists; ends: 0, then the end of each list (Arrow's offsets)."""
    rows = len(ends) // 4 - 1 if isinstance(ends, bytes) else len(ends) - 1
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(ends)], children=[items])


def empty_lists(type: pa.DataType, rows: int, inner: pa.Array) -> pa.Array:
    """Build an array of empty lists."""
    return lists(type, np.zeros(rows + 1, np.int32), inner)


def times(time_ns: Int64s) -> pa.Array:
    """Convert nanoseconds since the epoch to timestamps; null if out of range."""
    return _shown(time_ns // 1000)


def times_of_ms(time_ms: Int64s) -> pa.Array:
    """Convert Kafka's milliseconds since the epoch to timestamps."""
    too_late = time_ms > LAST_TIME // 1000
    return _shown(np.where(too_late, -1, time_ms) * 1000)


def _shown(time_us: Int64s) -> pa.Array:
    mask = (time_us >= 0) & (time_us <= LAST_TIME)
    return pa.Array.from_buffers(PLAIN[TIME], len(time_us), [bitmap(mask), pa.py_buffer(time_us)])


# -- columns that are resolved late


def topic_lists(type: pa.DataType, ends: bytes, topics: list[Any]) -> pa.Array:
    """Build lists of topic names; the id where the name is unknown."""
    names = {topic: topic.name or topic.id_text or "" for topic in dict.fromkeys(topics)}
    named = [names[topic] for topic in topics]
    if len(set(names.values())) == len(names):
        return lists(type, ends, texts(named))
    cuts = np.frombuffer(ends, np.int32).tolist()
    each = [list(dict.fromkeys(named[a:b])) for a, b in pairwise(cuts)]
    new = np.zeros(len(cuts), np.int32)
    np.cumsum([len(one) for one in each], out=new[1:])
    return lists(type, new, texts(list(chain.from_iterable(each))))


def topic_partition_lists(
    type: pa.DataType, ends: bytes, groups: list[tuple[Any, list[int]]]
) -> pa.Array:
    """Build a TOPIC_PARTITIONS column."""
    struct = type.value_type
    ids = {topic: topic.id_text for topic in dict.fromkeys([topic for topic, _ in groups])}
    inner_ends = np.zeros(len(groups) + 1, np.int32)
    sizes = [len(partitions) for _, partitions in groups]
    np.cumsum(np.array(sizes, np.int32), out=inner_ends[1:])
    partitions = array("i", chain.from_iterable([numbers for _, numbers in groups]))
    children = [
        texts([topic.name for topic, _ in groups]),
        texts([ids[topic] for topic, _ in groups]),
        lists(struct.field("partitions").type, inner_ends, numbers(PLAIN[INT32], partitions)),
    ]
    return lists(type, ends, pa.Array.from_buffers(struct, len(groups), [None], children=children))
