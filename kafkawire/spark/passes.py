"""Decodes the tables of a job in as few passes over the packets as possible.

Rows are those of each table on its own.

    tables --plain ones together, others alone--> passes --one after the other--> decoded tables
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from ..capture.tables import TABLES
from ..capture.tables.passes import EXCHANGES
from .decode.chunks import CHUNKED
from .decode.columns import is_plain
from .decode.scratch import Scratch
from .options import Options
from .plan.planning import Plan
from .reading import Decoded, decode, partitions
from .session import job_session
from .write import shared_directory as shared
from .write.early_files import MakeDirectory
from .write.shared_directory import SpilledTable


def decode_passes(
    spark: SparkSession,
    plan: Plan,
    tables: Sequence[str],
    options: Options,
    scratch: Callable[[], Scratch],
    directory: MakeDirectory,
) -> Iterator[dict[str, SpilledTable] | dict[str, Decoded]]:
    """Decode tables; yields those that were made together, in one pass over the packets.

    scratch: makes a directory that all workers see. directory: returns the one of a table's files,
    where some may be written at once.
    """
    partitioner = plan.partitioner(partitions(spark, plan.shuffled_bytes, options))
    if not shared.supports(plan, partitioner):
        own = job_session(spark)  # only here Spark has plans of ours
        for table in tables:
            yield {table: decode(own, plan, replace(options, table=table))}
        return
    cuts = bool(partitioner.hot) or any(visit.cut for visit in plan.visits)
    groups = partitions(spark, plan.bytes, options)
    for together in passes(tables, options, cuts=cuts):
        schemas = {table: TABLES[table].schema for table in together}
        yield shared.decode(
            spark, plan, schemas, options, partitioner, scratch(), directory, groups=groups
        )


def passes(tables: Iterable[str], options: Options, *, cuts: bool) -> list[list[str]]:
    """Return which tables are made together, in one pass over the packets.

    A table of which the options want some rows or change values is made alone. cuts: whether there
    are connections to cut into chunks; only some tables are made of chunks.
    """
    plain: list[str] = []
    alone: list[str] = []
    for table in tables:
        (plain if is_plain(table, options) else alone).append(table)
    chunked = [table for table in plain if table in CHUNKED]
    together = [plain]
    if cuts and set(chunked) - {EXCHANGES}:
        together = [chunked, [table for table in plain if table not in CHUNKED]]
    return [*filter(None, together), *([table] for table in alone)]
