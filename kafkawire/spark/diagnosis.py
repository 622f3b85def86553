"""Diagnoses many captures in Spark: each set of files in a task of its own.

The findings of a set are those of `kafkawire diagnose` on its files. Rules follow clients,
groups and partitions through a whole capture, so that a set is never cut; sets are what several
tasks read at once. What two sets saw of a client are findings of each; nothing is added up.

    paths --by set, in order--> files of a set --one task--> one pass of all rules --> rows
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..capture.filters import parse as parse_filter
from ..capture.tables.arrow.schemas import batches, schema_of
from ..reports.diagnosis.registry import Settings, check, installed_rules
from ..reports.reading import Reading
from ..reports.tables import BATCH_ROWS
from ..reports.tables.findings import COLUMNS, Findings
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
SCHEMA: Final = pa.schema([pa.field(SET, pa.string()), *schema_of(COLUMNS)])

USED: Final = frozenset(
    {
        "ports", "brokers", "keylog", "tunnels", "where", "max_flow_bytes", "idle_ns",
        "fail_on_error", "sets", "others",
    }
)  # fmt: skip
"""Fields of options that findings depend on."""


class Progress:
    """Progress of reading, which nobody looks at."""

    packets = 0
    bytes = 0
    again = False


def findings(
    spark: SparkSession,
    inputs: str | Iterable[str],
    *,
    disable: Iterable[str] = (),
    thresholds: Mapping[str, float] | None = None,
    **options: Any,
) -> DataFrame:
    """Return a row per finding, of each set the most harmful first; it is computed when it is used.

    inputs: paths, directories, patterns, URIs. The columns are `set` and those of the table
    `findings`. disable: names of rules; thresholds: `rule.threshold` -> value. options: those of
    `read` that do not select rows; `sets` is `directory` by default.

    Raises BadOption, RuleError; FileNotFoundError, OSError; NoCaptures.
    """
    check_spark(spark.version)
    settings = Settings.of(disable, thresholds or {})
    check(installed_rules(), settings)
    parsed = _parsed(options)
    paths = [inputs] if isinstance(inputs, str) else list(inputs)
    plan = require_files(make_plan(spark, paths, parsed, whole=True))
    files: dict[str, list[InputFile]] = {}
    for file in plan.files:
        files.setdefault(parsed.sets.of(file.name), []).append(file)
    units = list(files.items())

    @ascii_safe
    def diagnose(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                name, of_set = units[number]
                yield from _rows(name, tuple(of_set), parsed, settings)

    return map_in_arrow(number_frame(spark, len(units)), diagnose, SCHEMA)


def _parsed(options: Mapping[str, Any]) -> Options:
    """Parse options. Raises BadOption for those that findings do not have."""
    given = {name.lower() for name in options}
    parsed = parse(options if "sets" in given else {**options, "sets": Sets.DIRECTORY})
    default = Options()
    for field in fields(Options):
        value = getattr(parsed, field.name)
        if field.name not in USED and value != getattr(default, field.name):
            raise BadOption(field.name, str(value), "no such option: findings need all rows")
    return parsed


def _rows(
    name: str, files: tuple[InputFile, ...], options: Options, settings: Settings
) -> Iterator[pa.RecordBatch]:
    """Diagnose the files of a set."""
    where = None if options.where is None else parse_filter(options.where)
    traffic = SetTraffic(files, options, leave_out_copies=True)
    captures = Reading(traffic, Progress(), where=where)
    found = Findings(captures, settings)
    captures.read(*found.collectors)
    captures.name_topics()
    for batch in batches(COLUMNS, found.rows(), BATCH_ROWS, lambda: None):
        sets = pa.array([name] * len(batch), pa.string())
        yield pa.RecordBatch.from_arrays([sets, *batch.columns], schema=SCHEMA)
