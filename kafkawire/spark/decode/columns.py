"""Chooses the columns and rows of a table that a query needs, and redacts columns.

A column that was not requested is not made, unless another one depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...capture.filters import parse
from ...capture.tables import TABLES
from ...capture.tables.arrow.schemas import batches
from ...capture.tables.columns import Columns
from ...capture.tables.filtering import RECORD_API, check, mask
from ...capture.tables.redaction import REDACTED
from ...errors import FilterError
from ..errors import BadOption, InvalidFilter
from ..options import Options

Row = tuple[Any, ...]

TOPIC_COLUMNS: Final = ("topic", "topics", "partitions", "offsets")
"""Columns that contain topics."""

WIDE: Final = frozenset({"messages", "records"})
"""Tables whose rows may be large."""

WIDE_ROWS: Final = 256
ROWS: Final = 4096
"""Rows of a batch."""

MANY_ROWS: Final = 1 << 14
"""The same for tables that are made column by column, of small values."""


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
    found = set(any_of) & set(have)
    if not found:
        raise BadOption(option, table, f"a table with {' or '.join(sorted(any_of))}")
    return found


def row_filter(table: str, options: Options) -> Callable[[Row], bool] | None:
    """Return the filter by API and time; None for all rows."""
    names = TABLES[table].schema.names
    tests: list[Callable[[Row], bool]] = []
    if options.apis:
        tests.append(_by_api(names, options.apis, table))
    if options.start_ns is not None or options.end_ns is not None:
        tests.append(_by_time(names, options))
    return (lambda row: all(test(row) for test in tests)) if tests else None


def _by_api(names: list[str], apis: frozenset[str], table: str) -> Callable[[Row], bool]:
    if table == "records":
        direction = names.index("direction")
        return lambda row: RECORD_API[row[direction]] in apis
    _require_any(names, ["api_name"], "apis", table)
    name, key = names.index("api_name"), names.index("api_key")
    return lambda row: (row[name] or "").lower() in apis or str(row[key]) in apis


def _by_time(names: list[str], options: Options) -> Callable[[Row], bool]:
    """Filter by the time of the row, or from the first to the last packet of a connection.

    Rows without a time pass.
    """
    first = names.index("time_ns" if "time_ns" in names else "first_time_ns")
    last = names.index("last_time_ns") if "last_time_ns" in names else first
    other = names.index("response_time_ns") if "response_time_ns" in names else first
    start, end = options.start_ns, options.end_ns

    def test(row: Row) -> bool:
        first_packet_time = row[other] if row[first] is None else row[first]
        ends = first_packet_time if row[last] is None else row[last]
        if first_packet_time is None:
            return True
        return (start is None or ends >= start) and (end is None or first_packet_time < end)

    return test


def is_bare(table: str, made: Sequence[str]) -> bool:
    """Whether no requested column shows decoded bodies, so that they need not be kept."""
    return table == "messages" and not {"body", "raw"} & set(made)


# -- filters of finished columns

Keep = Callable[[Mapping[str, pa.Array]], pa.Array]
"""Tells which rows are wanted, by their columns."""

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


def hidden_columns(table: str, options: Options) -> dict[str, Callable[[Any], Any]]:
    """Return the columns whose values are replaced, each with the function that does it."""
    hide: dict[str, Callable[[Any], Any]] = {}
    if table == "messages":
        if not options.include_bodies:
            hide = {"body": _null, "raw": _null}
        elif options.redact:
            hide = REDACTED[table]
    elif table == "records":
        if not options.include_records:
            hide = {"key": _null, "value": _null, "headers": _null}
        elif options.redact:
            hide = REDACTED[table]
    return hide


def _null(_: Any) -> None:
    return None


# -- record batches


def to_batches(
    table: str,
    columns: Sequence[str],
    rows: Iterable[Row],
    options: Options,
    before: Callable[[], None],
) -> Iterator[pa.RecordBatch]:
    """Make record batches of the given columns from the rows that pass the filters."""
    known: Columns = TABLES[table].columns
    names = [column.name for column in known]
    at = [names.index(name) for name in columns]
    test = row_filter(table, options)
    if test is not None:
        rows = filter(test, rows)
    hide = hidden_columns(table, options)
    changes = [hide.get(name) for name in columns]
    if any(changes):
        rows = (
            tuple(c(v) if c else v for c, v in zip(changes, row, strict=True))
            for row in map(_picker(at), rows)
        )
    elif len(at) < len(names):
        rows = map(_picker(at), rows)
    return batches(tuple(known[i] for i in at), rows, rows_of_batch(table), before)


def rows_of_batch(table: str) -> int:
    """Return the maximum number of rows of a batch of a table that is made row by row."""
    return WIDE_ROWS if table in WIDE else ROWS


def is_plain(table: str, options: Options) -> bool:
    """Whether all rows are wanted, unchanged."""
    return row_filter(table, options) is None and not hidden_columns(table, options)


def _picker(at: list[int]) -> Callable[[Row], Row]:
    if len(at) == 1:
        return lambda row: (row[at[0]],)
    return itemgetter(*at)
