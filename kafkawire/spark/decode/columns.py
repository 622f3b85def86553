"""Chooses the columns and rows of a table that a query needs, and redacts columns.

A column that was not requested is not made, unless another one depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...capture.filters import parse
from ...capture.tables import TABLES
from ...capture.tables.filtering import RECORD_API, check, mask
from ...capture.tables.passes import RECORDS
from ...capture.tables.redaction import REDACTED
from ...errors import FilterError
from ..errors import BadOption, InvalidFilter
from ..options import Options

TOPIC_COLUMNS: Final = ("topic", "topics", "partitions", "offsets")
"""Columns that contain topics."""

WIDE: Final = frozenset({"messages", RECORDS})
"""Tables whose rows may be large."""

WIDE_ROWS: Final = 256
ROWS: Final = 4096
"""Rows of a batch."""

MANY_ROWS: Final = 1 << 14
"""The same for tables that are made column by column, of small values."""


Keep = Callable[[Mapping[str, pa.Array]], pa.Array]
"""Tells which rows are wanted, by their columns."""


def schema_of(table: str, columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of some columns of a table, by default of all. Raises BadOption."""
    schema = TABLES[table].schema
    for name in columns or ():
        if name not in schema.names:
            raise BadOption("columns", name, f"a column of {table}: {', '.join(schema.names)}")
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def needed(table: str, wanted: Sequence[str], options: Options) -> list[str]:
    """List the columns that must be made, in the order of the table. Raises BadOption."""
    have = TABLES[table].schema.names
    for name in wanted:
        if name not in have:
            raise BadOption("schema", name, f"a column of {table}: {', '.join(have)}")
    more = set(wanted)
    if {"topic", "topic_id"} & set(have) and "topic" in more:
        more.add("topic_id")
    if set(TOPIC_COLUMNS) & more:
        more.add("connection")  # needed to find the set, for its topic names
    if options.topics:
        more |= {"connection"}
        more |= _require_any(have, TOPIC_COLUMNS, "topics", table)
        more |= {"topic_id"} & set(have)
    if options.where is not None:
        more |= _columns_of(options.where, table)
        more |= {"connection"} & set(have)  # needed to finish the topics in it
    if not more:
        more.add(have[0])
    return [name for name in have if name in more]


def _columns_of(where: str, table: str) -> set[str]:
    """Return the columns that a filter needs. Raises InvalidFilter if the table lacks a field."""
    columns = {name: each.schema.names for name, each in TABLES.items()}
    try:
        return check(parse(where), table, columns)
    except FilterError as error:
        raise InvalidFilter("where", where, str(error)) from None


def _require_any(have: Sequence[str], any_of: Iterable[str], option: str, table: str) -> set[str]:
    matching = set(any_of) & set(have)
    if not matching:
        raise BadOption(option, table, f"a table with {' or '.join(sorted(any_of))}")
    return matching


def row_filter(table: str, options: Options) -> Keep | None:
    """Return the filter by API and time; None for all rows. Raises BadOption."""
    names = TABLES[table].schema.names
    tests: list[Keep] = []
    if options.apis:
        tests.append(_by_api(names, options.apis, table))
    if options.start_ns is not None or options.end_ns is not None:
        tests.append(_by_time(names, options))
    return _all_of(tests)


def _by_api(names: list[str], apis: frozenset[str], table: str) -> Keep:
    if table == RECORDS:
        wanted = [direction for direction, api in RECORD_API.items() if api in apis]
        return lambda columns: pc.is_in(columns["direction"], pa.array(wanted, pa.string()))
    _require_any(names, ["api_name"], "apis", table)
    values = pa.array(sorted(apis), pa.string())

    def test(columns: Mapping[str, pa.Array]) -> pa.Array:
        by_name = pc.is_in(pc.utf8_lower(columns["api_name"]), values)
        return pc.or_(by_name, pc.is_in(columns["api_key"].cast(pa.string()), values))

    return test


def _by_time(names: list[str], options: Options) -> Keep:
    """Filter by the time of the row, or from the first to the last packet of a connection.

    Rows without a time pass.
    """
    first = "time_ns" if "time_ns" in names else "first_time_ns"
    last = "last_time_ns" if "last_time_ns" in names else first
    other = "response_time_ns" if "response_time_ns" in names else first
    start, end = options.start_ns, options.end_ns

    def test(columns: Mapping[str, pa.Array]) -> pa.Array:
        begins = pc.coalesce(columns[first], columns[other])
        ends = pc.coalesce(columns[last], begins)
        passing = pa.repeat(True, len(begins))
        if start is not None:
            passing = pc.and_(passing, pc.greater_equal(ends, start))
        if end is not None:
            passing = pc.and_(passing, pc.less(begins, end))
        return pc.or_(pc.is_null(begins), pc.fill_null(passing, True))

    return test


def is_bare(table: str, columns: Sequence[str]) -> bool:
    """Whether no requested column shows decoded bodies, so that they need not be kept."""
    return table == "messages" and not {"body", "raw"} & set(columns)


# -- filters of finished columns

UNFINISHED: Final = frozenset({"connection", "topic"})
"""Fields of a filter whose values are known when all connections have been decoded."""


def early_filter(table: str, options: Options) -> Keep | None:
    """Return the part of `keep` that applies to rows of one task; None for all rows."""
    if options.where is None:
        return None
    where = parse(options.where)
    if any(field.name in UNFINISHED for field in where.fields):
        return None
    return partial(mask, table=table, where=where)


def keep(table: str, options: Options) -> Keep | None:
    """Return the filter of finished rows, by topics and by `where`; None for all rows."""
    tests: list[Keep] = []
    if options.topics:
        tests.append(partial(topic_filter, topics=options.topics))
    if options.where is not None:
        tests.append(partial(mask, table=table, where=parse(options.where)))
    return _all_of(tests)


def _all_of(tests: Sequence[Keep]) -> Keep | None:
    """Return the filter of rows that pass all of some; None if there are none."""
    if not tests:
        return None
    return lambda columns: reduce(pc.and_, [test(columns) for test in tests])


def topic_filter(columns: Mapping[str, pa.Array], topics: frozenset[str]) -> pa.Array:
    """Return which rows contain one of the topics."""
    column_values = [columns[name].to_pylist() for name in TOPIC_COLUMNS if name in columns]
    return pa.array(
        [any(_has_topic(one, topics) for one in row) for row in zip(*column_values, strict=True)]
    )


def _has_topic(value: Any, topics: frozenset[str]) -> bool:
    if isinstance(value, list):
        return any(_has_topic(one, topics) for one in value)
    return (value.get("topic") if isinstance(value, dict) else value) in topics


# -- redaction


def hidden_columns(table: str, options: Options) -> dict[str, Callable[[Any], Any] | None]:
    """Return the columns whose values are replaced, each with what does it; None: all are null."""
    hide: dict[str, Callable[[Any], Any] | None] = {}
    if table == "messages":
        if not options.include_bodies:
            hide = dict.fromkeys(("body", "raw"))
        elif options.redact:
            hide = {**REDACTED[table]}
    elif table == RECORDS:
        if not options.include_records:
            hide = dict.fromkeys(("key", "value", "headers"))
        elif options.redact:
            hide = {**REDACTED[table]}
    return hide


# -- record batches


class Shaper:
    """Takes what is wanted of complete batches of a table: some rows, some columns, redacted.

    columns: those that are made.
    """

    def __init__(self, table: str, columns: Sequence[str], options: Options) -> None:
        self._columns = list(columns)
        self._keep = row_filter(table, options)
        self._early = early_filter(table, options)
        self._hide = hidden_columns(table, options)

    def shaped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return what is wanted of a batch with all columns."""
        batch = _filtered(batch, self._keep).select(self._columns)
        for name in self._hide.keys() & set(self._columns):
            hide, index = self._hide[name], batch.schema.get_field_index(name)
            field = batch.schema.field(index)
            values = [hide(value) for value in batch.column(index).to_pylist()] if hide else None
            hidden = (
                pa.nulls(len(batch), field.type) if values is None else pa.array(values, field.type)
            )
            batch = batch.set_column(index, field, hidden)
        return _filtered(batch, self._early)


def _filtered(batch: pa.RecordBatch, keep: Keep | None) -> pa.RecordBatch:
    if keep is None:
        return batch
    return batch.filter(keep(dict(zip(batch.schema.names, batch.columns, strict=True))))


def rows_of_batch(table: str) -> int:
    """Return the maximum number of rows of a batch of a table that is made row by row."""
    return WIDE_ROWS if table in WIDE else ROWS


def is_plain(table: str, options: Options) -> bool:
    """Whether all rows are wanted, unchanged."""
    return row_filter(table, options) is None and not hidden_columns(table, options)
