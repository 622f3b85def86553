"""Arrow arrays of whole columns at once, where a value at a time costs too much.

Law: each is what `columns` makes of the same values one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from .columns import LAST_TIME, TEXT, TIME, TOPIC_PARTITIONS, Column, array_of

PARTITION: Final = TOPIC_PARTITIONS.value_type
PARTITIONS: Final = PARTITION.field("partitions").type

NAME: Final = Column("name", TEXT, "")


def times_of(time_ns: pa.Array) -> pa.Array:
    """Make timestamps of nanoseconds since the epoch; null where there is none to show."""
    shown = np.asarray(time_ns.fill_null(-1)) // 1000
    return _times(shown, (shown < 0) | (shown > LAST_TIME))


def times_of_ms(time_ms: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Make timestamps of Kafka's milliseconds since the epoch."""
    hidden = (time_ms < 0) | (time_ms > LAST_TIME // 1000)
    return _times(np.where(hidden, 0, time_ms) * 1000, hidden)


def _times(time_us: Any, hidden: Any) -> pa.Array:
    if not hidden.any():
        return pa.array(time_us, TIME)
    return pa.array(time_us, TIME, mask=hidden)


def lists_of(values: Sequence[Sequence[Any]], type: pa.DataType) -> pa.Array:
    """Make lists of plain values."""
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(one) for one in values], out=ends[1:])
    inner = array_of(
        Column("element", type.value_type, ""), [each for one in values for each in one]
    )
    return pa.ListArray.from_arrays(pa.array(ends), inner, type=type)


def topic_lists(values: Sequence[Sequence[Any]], type: pa.DataType) -> pa.Array:
    """Make lists of the names of topics; one without a name goes by its id."""
    names: dict[Any, str] = {}
    made: list[Sequence[str]] = []
    for topics in values:
        for topic in topics:
            if topic not in names:
                names[topic] = topic.name or topic.id_text or ""
        if len(topics) > 1:
            made.append(list(dict.fromkeys([names[topic] for topic in topics])))
        else:
            made.append([names[topic] for topic in topics])
    return lists_of(made, type)


def topic_partition_lists(values: Sequence[Sequence[tuple[Any, list[int]]]]) -> pa.Array:
    """Make the TOPIC_PARTITIONS column."""
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(groups) for groups in values], out=ends[1:])
    every = [group for groups in values for group in groups]
    ids: dict[Any, str | None] = {}
    for topic, _ in every:
        if topic not in ids:
            ids[topic] = topic.id_text
    structs = pa.StructArray.from_arrays(
        [
            array_of(NAME, [topic.name for topic, _ in every]),
            pa.array([ids[topic] for topic, _ in every], TEXT),
            lists_of([numbers for _, numbers in every], PARTITIONS),
        ],
        fields=list(PARTITION),
    )
    return pa.ListArray.from_arrays(pa.array(ends), structs, type=TOPIC_PARTITIONS)



