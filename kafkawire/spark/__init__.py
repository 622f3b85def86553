"""Reads the tables of `kafkawire.capture.tables` in Spark, from any number of captures.

The rows are those that a single process gives for the same set of files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .session import check_spark, session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ..values import ValueDecoder
    from .write.checking import Checked


def read(
    spark: SparkSession,
    inputs: str | Iterable[str],
    table: str = "exchanges",
    *,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> DataFrame:
    """Read a table of captures; see `kafkawire.spark.reading.read`."""
    from .reading import read as read_frame

    return read_frame(spark, inputs, table, columns=columns, **options)


def check(output: str, **options: Any) -> Checked:
    """Compare the files of an output directory with the manifest of a job or commits of a watch.

    options: of the store, as for `read`. Raises OutputRefused without either, OSError.
    """
    from .job import locate
    from .options import parse
    from .watch.checking import check_watch, is_watch
    from .write.checking import check_files

    directory = locate(output, parse(options))
    if directory.store.is_local and is_watch(Path(directory.root)):
        return check_watch(Path(directory.root))
    return check_files(directory)


def register(spark: SparkSession) -> None:
    """Register `spark.read.format("kafkapcap")` in a session that does not find it by itself.

    Raises UnsupportedSpark.
    """
    check_spark(spark.version)
    from .source import KafkaPcap

    spark.dataSource.register(KafkaPcap)


def with_decoded_values(
    records: DataFrame, values: ValueDecoder | None = None, keys: ValueDecoder | None = None
) -> DataFrame:
    """Add decoded keys and values to the table `records`.

    The columns `key_decoded` and `value_decoded` are structs: format, schema_id, schema_guid, type,
    value (JSON text), error. The driver looks up schemas, each once; the frame is read twice.
    Raises MissingColumns.
    """
    from .values import with_decoded_values as decoded

    return decoded(records, values, keys)


def findings(
    spark: SparkSession,
    inputs: str | Iterable[str],
    *,
    disable: Iterable[str] = (),
    thresholds: Mapping[str, float] | None = None,
    **options: Any,
) -> DataFrame:
    """Return what is wrong in captures; see `kafkawire.spark.diagnosis.findings`."""
    from .diagnosis import findings as diagnosed

    return diagnosed(spark, inputs, disable=disable, thresholds=thresholds, **options)


def report_table(
    spark: SparkSession, inputs: str | Iterable[str], table: str, **options: Any
) -> DataFrame:
    """Return a table of a report, such as `lag`; see `kafkawire.spark.report_tables`."""
    from .report_tables import report_table as read_table

    return read_table(spark, inputs, table, **options)


__all__ = [
    "check",
    "findings",
    "read",
    "register",
    "report_table",
    "session",
    "with_decoded_values",
]
