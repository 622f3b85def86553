"""Diagnoses many captures in Spark: each set of files in a task of its own.

The findings of a set are those of `kafkawire diagnose` on its files. Rules follow clients,
groups and partitions through a whole capture. What two sets saw of a client are findings of each;
nothing is added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..reports.diagnosis.registry import Settings, check, installed_rules
from ..reports.tables.findings import COLUMNS, Findings
from .report_tables import per_set
from .session import check_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def findings(
    spark: SparkSession,
    inputs: str | Iterable[str],
    *,
    disable: Iterable[str] = (),
    thresholds: Mapping[str, float] | None = None,
    **options: Any,
) -> DataFrame:
    """Return a row per finding, of each set the most harmful first; it is computed when it is used.

    disable: names of rules; thresholds: `rule.threshold` -> value. The rest is as for
    `report_table`. Raises RuleError, too.
    """
    check_spark(spark.version)
    settings = Settings.of(disable, thresholds or {})
    check(installed_rules(), settings)
    return per_set(spark, inputs, options, COLUMNS, partial(Findings, settings=settings))
