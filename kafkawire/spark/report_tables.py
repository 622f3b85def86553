"""Reads tables of reports in Spark: each set of files in a task of its own.

The rows of a set are those of `kafkawire sql` on its files. What a table counts depends on all of a
capture (the state of groups, the width of buckets of time), so that a set is never cut; sets are
what several tasks read at once.

    paths --by set, in order--> files of a set --one task--> one pass --> rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..capture.filters import parse as parse_filter
from ..capture.tables.arrow.schemas import batches, schema_of
from ..capture.tables.columns import Columns
from ..display import did_you_mean
from ..reports.reading import Reading
from ..reports.tables import BATCH_ROWS, REPORT_TABLES, Collected
from .errors import BadOption, ascii_safe
from .options import Options, Sets, parse
from .plan.planning import make_plan, require_files
from .reading import map_in_arrow
from .session import check_spark
from .shuffle.tasks import number_frame
from .source import SetTraffic
from .splitting import InputFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SET: Final = "set"

USED: Final = frozenset(
    {
        "ports", "brokers", "keylog", "tunnels", "where", "max_flow_bytes", "idle_ns",
        "fail_on_error", "sets", "others",
    }
)  # fmt: skip
"""Fields of options that reports depend on."""


class Progress:
    """Progress of reading, which nobody looks at."""

    packets = 0
    bytes = 0
    again = False


def report_table(
    spark: SparkSession, inputs: str | Iterable[str], table: str, **options: Any
) -> DataFrame:
    """Return a table of a report, such as `lag` or `load`; it is computed when it is used.

    inputs: paths, directories, patterns, URIs. The columns are `set` and those of the table.
    options: those of `read` that do not select rows; `sets` is `directory` by default.

    Raises BadOption, also for an unknown table; FileNotFoundError, OSError; NoCaptures.
    """
    check_spark(spark.version)
    if table not in REPORT_TABLES:
        expected = f"expected one of {', '.join(REPORT_TABLES)}"
        raise BadOption("table", table, f"{expected}{did_you_mean(table, REPORT_TABLES)}")
    of_table = REPORT_TABLES[table]
    return per_set(spark, inputs, options, of_table.columns, of_table.collect)


def per_set(
    spark: SparkSession,
    inputs: str | Iterable[str],
    options: Mapping[str, Any],
    columns: Columns,
    collect: Callable[[Reading], Collected],
) -> DataFrame:
    """Return the rows of each set. Raises as `report_table`."""
    parsed = _parsed(options)
    paths = [inputs] if isinstance(inputs, str) else list(inputs)
    plan = require_files(make_plan(spark, paths, parsed, whole=True))
    files: dict[str, list[InputFile]] = {}
    for file in plan.files:
        files.setdefault(parsed.sets.of(file.name), []).append(file)
    units = list(files.items())
    schema = pa.schema([pa.field(SET, pa.string()), *schema_of(columns)])

    def rows(name: str, of_set: tuple[InputFile, ...]) -> Iterator[pa.RecordBatch]:
        captures = _captures(of_set, parsed)
        collected = collect(captures)
        captures.read(*collected.collectors)
        captures.name_topics()
        for batch in batches(columns, collected.rows(), BATCH_ROWS, lambda: None):
            sets = pa.array([name] * len(batch), pa.string())
            yield pa.RecordBatch.from_arrays([sets, *batch.columns], schema=schema)

    @ascii_safe
    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                name, of_set = units[number]
                yield from rows(name, tuple(of_set))

    return map_in_arrow(number_frame(spark, len(units)), read, schema)


def _parsed(options: Mapping[str, Any]) -> Options:
    """Parse options. Raises BadOption for those that reports do not have."""
    names = {name.lower() for name in options}
    parsed = parse(options if "sets" in names else {**options, "sets": Sets.DIRECTORY})
    default = Options()
    for field in fields(Options):
        value = getattr(parsed, field.name)
        if field.name not in USED and value != getattr(default, field.name):
            raise BadOption(field.name, str(value), "no such option: reports need all rows")
    return parsed


def _captures(files: tuple[InputFile, ...], options: Options) -> Reading:
    """Open the files of a set."""
    where = None if options.where is None else parse_filter(options.where)
    traffic = SetTraffic(files, options, leave_out_copies=True)
    return Reading(traffic, Progress(), where=where)
