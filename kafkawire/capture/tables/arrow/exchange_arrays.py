"""Builds record batches of `ExchangeColumns`."""

from __future__ import annotations

from array import array
from typing import Final

import pyarrow as pa

from ....protocol.error_code import ErrorCode
from ..columns import BODY_NUMBERS, INT16, INT32, INT64, TEXT, Columns, Type
from ..exchanges import COLUMNS, EXCHANGE
from .arrays import (
    booleans,
    chosen_texts,
    lists,
    nullable_numbers,
    numbers,
    texts,
    times,
    topic_lists,
    topic_partition_lists,
)
from .buffers import Numbers
from .exchange_columns import ExchangeValues
from .schemas import PLAIN, schema_of

SCHEMA: Final = schema_of(COLUMNS)
TYPES: Final = {field.name: field.type for field in SCHEMA}

NUMERIC: Final = frozenset({INT16, INT32, INT64})


def _names(columns: Columns, types: frozenset[Type]) -> tuple[str, ...]:
    return tuple([column.name for column in columns if column.type in types])


HEAD_NUMBERS: Final = _names(EXCHANGE, NUMERIC)
HEAD_TEXTS: Final = _names(EXCHANGE, frozenset({TEXT}))
"""Columns of `ExchangeHeads`, its attributes of these names."""

OWN: Final = tuple([column for column in COLUMNS if column not in EXCHANGE + BODY_NUMBERS])
NUMBERS: Final = _names(OWN, NUMERIC)
TEXTS: Final = _names(OWN, frozenset({TEXT}))
"""Columns of `ExchangeValues`, its attributes of these names."""


def exchange_batch(filled: ExchangeValues) -> pa.RecordBatch:
    """Build a record batch of at least one row."""
    heads = filled.heads
    arrays = {name: _numbers(name, getattr(heads, name)) for name in HEAD_NUMBERS}
    arrays |= {name: texts(getattr(heads, name)) for name in HEAD_TEXTS}
    arrays |= {name: _numbers(name, getattr(filled, name)) for name in NUMBERS}
    arrays |= {name: texts(getattr(filled, name)) for name in TEXTS}
    arrays["time"] = _times(heads.time_ns)
    arrays["response_time"] = _times(filled.response_time_ns)
    arrays |= _of_bodies(filled)
    return pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)


def _of_bodies(filled: ExchangeValues) -> dict[str, pa.Array]:
    """Build the columns of what bodies show."""
    items, buffers, body_numbers = filled.bodies.take()
    topics, groups, transactional_ids, codes, partition_topics = items
    topic_ends, group_ends, transactional_ends, code_ends, requested_ends, *rest = buffers
    partition_ends, partitions, is_fetch, complete = rest
    names = chosen_texts([ErrorCode.name_of(code) for code in codes[0]], codes[1])
    each = array("h", [codes[0][index] for index in array("i", bytes(codes[1]))])
    return {
        "error_codes": lists(
            TYPES["error_codes"], code_ends, numbers(PLAIN[INT16], each.tobytes())
        ),
        "errors": lists(TYPES["errors"], code_ends, names),
        **{
            column.name: nullable_numbers(PLAIN[INT32], *values)
            for column, values in zip(BODY_NUMBERS, body_numbers, strict=True)
        },
        "group_ids": lists(TYPES["group_ids"], group_ends, chosen_texts(*groups)),
        "transactional_ids": lists(
            TYPES["transactional_ids"], transactional_ends, chosen_texts(*transactional_ids)
        ),
        "topics": topic_lists(TYPES["topics"], topic_ends, *topics),
        "partitions": topic_partition_lists(
            TYPES["partitions"], requested_ends, *partition_topics, partition_ends, partitions
        ),
        "partitions_complete": booleans(complete, is_fetch),
    }


def _numbers(name: str, column: Numbers) -> pa.Array:
    return nullable_numbers(TYPES[name], column.values.getvalue(), column.valid.getvalue())


def _times(column: Numbers) -> pa.Array:
    return times(column.values.getvalue(), column.valid.getvalue())
