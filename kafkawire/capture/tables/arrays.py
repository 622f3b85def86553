"""Arrow arrays of whole columns, straight from the memory of their values.

Law: each is what `columns` makes of the same values one by one. Nothing here is made by `pa.array`:
it takes as long for a value, and imports pandas wherever that is installed.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .columns import BOOL, INT32, LAST_TIME, TEXT, TIME, printable

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

CODES: Final = {1: "b", 2: "h", 4: "i", 8: "q"}
"""Bytes of a number -> what `array` calls it."""


def bitmap(there: Any) -> pa.Buffer | None:
    """Make Arrow's bitmap of what is not null; None where nothing is."""
    if there.all():
        return None
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def held(type: pa.DataType, values: Any, there: bytes) -> pa.Array:
    """Make the array of numbers that stand in memory; there: a byte for each, 0 for null."""
    mask = np.frombuffer(there, np.bool_)
    return pa.Array.from_buffers(type, len(mask), [bitmap(mask), pa.py_buffer(values)])


def whole(type: pa.DataType, values: Any) -> pa.Array:
    """Make the array of numbers none of which is null."""
    return pa.Array.from_buffers(type, len(values), [None, pa.py_buffer(values)])


def numbers(type: pa.DataType, values: Sequence[int | None], counts: Any = None) -> pa.Array:
    """Make the array of numbers, each so many times."""
    code = CODES[type.bit_width // 8]
    mask: Mask | None = None
    if None in values:
        mask = np.array([value is not None for value in values], np.bool_)
    found = np.frombuffer(array(code, [value or 0 for value in values]), code)
    if counts is not None:
        found = np.repeat(found, counts)
        mask = None if mask is None else np.repeat(mask, counts)
    valid = None if mask is None else bitmap(mask)
    return pa.Array.from_buffers(type, len(found), [valid, pa.py_buffer(found)])


def flags(values: Any) -> pa.Array:
    """Make the array of an array of truth values."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(BOOL, len(values), [None, bits])


def flags_there(values: bytes, there: bytes) -> pa.Array:
    """Make the array of truth values, a byte each; there: 0 for null."""
    mask = np.frombuffer(there, np.bool_)
    bits = pa.py_buffer(np.packbits(np.frombuffer(values, np.bool_), bitorder="little"))
    return pa.Array.from_buffers(BOOL, len(mask), [bitmap(mask), bits])


def texts(values: list[str | None]) -> pa.Array:
    """Make the array of texts."""
    valid = None
    try:
        joined = "".join(values)  # type: ignore[arg-type]  # TypeError is what it is tried for
        known: list[str] = values  # type: ignore[assignment]
    except TypeError:
        valid = bitmap(np.array([value is not None for value in values], np.bool_))
        known = [value or "" for value in values]
        joined = "".join(known)
    if not joined.isascii():
        return _encoded([encoded(value) for value in known], valid)
    ends = np.zeros(len(known) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, known), np.int32, len(known)), out=ends[1:])
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(joined.encode())]
    return pa.Array.from_buffers(TEXT, len(known), buffers)


def repeated_texts(values: Sequence[str | None], counts: Any) -> pa.Array:
    """Make the array of texts, each so many times."""
    known = [b"" if value is None else encoded(value) for value in values]
    sizes = np.fromiter(map(len, known), np.int64, len(known))
    data = b"".join([each * count for each, count in zip(known, counts.tolist(), strict=True)])
    rows = int(counts.sum())
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum(np.repeat(sizes, counts), out=ends[1:])
    valid = None
    if None in values:
        mask = np.array([value is not None for value in values], np.bool_)
        valid = bitmap(np.repeat(mask, counts))
    return pa.Array.from_buffers(TEXT, rows, [valid, pa.py_buffer(ends), pa.py_buffer(data)])


def encoded(text: str) -> bytes:
    """Write text as UTF-8, also where it was none on the wire."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        shown: str = printable(text)
        return shown.encode()


def _encoded(values: list[bytes], valid: pa.Buffer | None) -> pa.Array:
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=ends[1:])
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(TEXT, len(values), buffers)


def lists(type: pa.DataType, ends: Any, items: pa.Array) -> pa.Array:
    """Make the array of lists; ends: a 0, then where each ends."""
    rows = len(ends) // 4 - 1 if isinstance(ends, bytes) else len(ends) - 1
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(ends)], children=[items])


def nothing(type: pa.DataType, rows: int, inner: pa.Array) -> pa.Array:
    """Make the array of empty lists."""
    return lists(type, np.zeros(rows + 1, np.int32), inner)


def times(time_ns: Int64s) -> pa.Array:
    """Make timestamps of nanoseconds since the epoch; null where there is none to show."""
    return _shown(time_ns // 1000)


def times_of_ms(time_ms: Int64s) -> pa.Array:
    """Make timestamps of Kafka's milliseconds since the epoch."""
    too_late = time_ms > LAST_TIME // 1000
    return _shown(np.where(too_late, -1, time_ms) * 1000)


def _shown(time_us: Int64s) -> pa.Array:
    mask = (time_us >= 0) & (time_us <= LAST_TIME)
    return pa.Array.from_buffers(TIME, len(time_us), [bitmap(mask), pa.py_buffer(time_us)])


# -- what is late


def topic_lists(type: pa.DataType, ends: bytes, topics: list[Any]) -> pa.Array:
    """Make lists of the names of topics; one without a name goes by its id."""
    names = {topic: topic.name or topic.id_text or "" for topic in dict.fromkeys(topics)}
    said = [names[topic] for topic in topics]
    if len(set(names.values())) == len(names):
        return lists(type, ends, texts(said))
    cuts = np.frombuffer(ends, np.int32).tolist()
    each = [list(dict.fromkeys(said[a:b])) for a, b in pairwise(cuts)]
    new = np.zeros(len(cuts), np.int32)
    np.cumsum([len(one) for one in each], out=new[1:])
    return lists(type, new, texts(list(chain.from_iterable(each))))


def topic_partition_lists(
    type: pa.DataType, ends: bytes, groups: list[tuple[Any, list[int]]]
) -> pa.Array:
    """Make the TOPIC_PARTITIONS column."""
    struct = type.value_type
    ids = {topic: topic.id_text for topic in dict.fromkeys([topic for topic, _ in groups])}
    inner_ends = np.zeros(len(groups) + 1, np.int32)
    sizes = [len(partitions) for _, partitions in groups]
    np.cumsum(np.array(sizes, np.int32), out=inner_ends[1:])
    partitions = array("i", chain.from_iterable([numbers for _, numbers in groups]))
    children = [
        texts([topic.name for topic, _ in groups]),
        texts([ids[topic] for topic, _ in groups]),
        lists(struct.field("partitions").type, inner_ends, whole(INT32, partitions)),
    ]
    return lists(type, ends, pa.Array.from_buffers(struct, len(groups), [None], children=children))
