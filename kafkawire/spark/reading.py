"""A table of a set of captures as a DataFrame.

Law: what `kafkawire.capture.tables.read` says of the set, this says, row for row, however the files
are cut, ordered and spread.

    regions --connections that lie there alone--> engine, table ------> rows | facts   (kept)
       `--packets--> shuffle by bucket --in order--> engine, table --> rows | facts   (kept)
                                              |                           |       |
              a connection too large --cut--> chunks --> any task --> rows|      sum
                                                     [group_events: by group]     |
                                                                          v       |
                                                      numbers, names <------------'
                                                                          `--> DataFrame

Rows are decoded once: they are kept on the workers' disks until the facts of all are known, as
record batches in Arrow's own form, which Spark moves without looking into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ..capture.tables import TABLES
from .decode.columns import needed
from .decode.decoding import sorted_rows, tune
from .decode.packets import SCHEMA, Kind, Partitioner
from .decode.work import GROUP_EVENTS_TABLE, PACKETS, Batches, Step, Work
from .errors import ascii_safe
from .options import Options, parse
from .plan.facts import AllFacts, sum_up
from .plan.parts import reassemble_fragments
from .plan.planning import PARTITION_BYTES, TASK_BYTES, Plan, make_plan, number_frame, require_files
from .write.finishing import Finish
from .write.outputs import OUT, table_batches
from .write.writing import WRITTEN, TableDirectory

TASKS: Final = 12
"""Tasks for each core that read packets, at most."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A table of a set: rows, as they are kept, and what finishes them. kept: to be let go."""

    rows: DataFrame
    finish: Finish
    facts: AllFacts
    persisted: tuple[DataFrame, ...]

    @property
    def frame(self) -> DataFrame:
        """Give the finished rows."""
        finish = self.finish

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            return finish(table_batches(batches))

        return map_in_arrow(self.rows.select("name", "body"), step, finish.schema)

    def write(self, directory: TableDirectory, tasks: int) -> list[tuple[str, int]]:
        """Write the table, in so many tasks at most; returns files of Parquet and their rows."""
        rows = self.rows.select("name", "body").coalesce(tasks)

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            return directory.write(table_batches(batches))

        return [(row["file"], row["rows"]) for row in map_in_arrow(rows, step, WRITTEN).collect()]

    def release(self) -> None:
        """Give back what is kept; the rows are decoded anew where they are asked for again."""
        release(self.persisted)


def read(
    spark: SparkSession,
    inputs: str | Iterable[str],
    table: str = "exchanges",
    *,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> DataFrame:
    """Read a table of captures, which are taken as one set, whatever their order.

    inputs: paths, directories, patterns, URIs. columns: those wanted; others are not made. options:
    as in docs/spark.md (`ports`, `startTs`, `splitBytes` ...).

    The set is decoded when this is called; the rows are kept on the workers' disks until the
    session ends. Raises BadOption, FileNotFoundError, OSError; NoCaptures for a directory without
    captures; Unreadable if `failOnError` says so.
    """
    paths = [inputs] if isinstance(inputs, str) else list(inputs)
    parsed = parse({**options, "table": table})
    return decode(spark, require_files(make_plan(spark, paths, parsed)), parsed, columns).frame


def decode(
    spark: SparkSession,
    plan: Plan,
    options: Options,
    columns: Sequence[str] | None = None,
) -> Decoded:
    """Decode a table of a set that is planned."""
    table = TABLES[options.table]
    wanted = list(columns) if columns is not None else table.schema.names
    made = needed(options.table, wanted, options)
    work = Work(plan, made, options)
    partitioner = plan.partitioner(partitions(spark, plan.shuffled_bytes, options))
    bucket_count = partitions(spark, plan.bytes, options)
    persisted, frames_held = decode_packets(spark, work, partitioner)
    facts = facts_of(persisted)
    if facts.ambiguous and work.columnar:
        # An id that two messages name differently: who was first takes looking at each.
        release(frames_held)
        persisted, frames_held = decode_packets(spark, replace(work, exact=True), partitioner)
        facts = facts_of(persisted)
    schema = pa.schema([table.schema.field(name) for name in wanted])
    rows = persisted.where("kind = 'rows'")
    more = None
    if options.table == GROUP_EVENTS_TABLE:
        found = persisted.where("kind = 'item'").selectExpr(
            "name as group_id", "at", "n", "body as item"
        )
        found = found.repartition(bucket_count, "group_id")
        more = map_in_arrow(
            found.sortWithinPartitions("group_id", "at", "n"), work.decode_groups(), OUT
        )
    elif facts.sums["chunks"]:
        found = persisted.where("kind = 'chunk'").selectExpr("cast(n as int) as n", "name", "body")
        found = found.repartitionById(min(bucket_count, facts.sums["chunks"]), "n")
        more = map_in_arrow(found, work.decode_chunks(), OUT)
    if more is not None:
        more = more.persist(StorageLevel.DISK_ONLY)
        rows = rows.union(more)
        frames_held.append(more)
    return Decoded(
        rows, Finish(facts, plan.sets, options.topics, schema), facts, tuple(frames_held)
    )


def decode_packets(
    spark: SparkSession, work: Work, partitioner: Partitioner
) -> tuple[DataFrame, list[DataFrame]]:
    """Decode regions, what is visited in them, and by bucket what leaves them; gives what tasks
    make, and what is kept.
    """
    plan, persisted = work.plan, list[DataFrame]()
    frames = list[DataFrame]()
    if plan.visits:  # these take longest, and so begin first
        frames.append(
            map_in_arrow(number_frame(spark, len(plan.visits)), work.decode_visits(), OUT)
        )
    if plan.decodes_in_place:
        regions = number_frame(spark, len(plan.regions), task_count(spark, plan))
        frames.append(map_in_arrow(regions, work.decode_regions(partitioner), OUT))
    if frames:
        # A union that is kept would be looked for in vain where it is part of another one.
        frame = union(frames).select(*OUT.names)
        persisted.append(frame.persist(StorageLevel.DISK_ONLY))
    if not plan.decodes_in_place:
        packets = packet_rows(spark, plan, partitioner, joined=plan.fragments)
    else:
        found = (
            persisted[0]
            .where(f"kind = '{PACKETS}'")
            .selectExpr(
                "cast(n as int) as bucket", "cast(name as int) as kind", "at as packet", "body"
            )
        )
        packets = by_bucket(found, partitioner.total)
    if plan.shuffles or not persisted:
        frame = map_in_arrow(packets, work.decode_buckets(partitioner), OUT)
        persisted.append(frame.persist(StorageLevel.DISK_ONLY))
    return union(persisted), persisted


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Put frames one behind the other."""
    return reduce(DataFrame.union, frames)


def facts_of(rows: DataFrame) -> AllFacts:
    """Decode, and sum the facts up."""
    collected = rows.where("kind = 'facts'").select("body").collect()
    return sum_up(bytes(row["body"]) for row in collected)


def release(persisted: Iterable[DataFrame]) -> None:
    """Give back what is kept."""
    for each in persisted:
        each.unpersist()


def task_count(spark: SparkSession, plan: Plan) -> int:
    """Say how many tasks read packets: a core waits between two of them."""
    cores = spark.sparkContext.defaultParallelism
    return max(cores, min(TASKS * cores, -(-plan.bytes // TASK_BYTES)))


def partitions(spark: SparkSession, bytes: int, options: Options) -> int:
    """Say in how many buckets connections are decoded."""
    cores = spark.sparkContext.defaultParallelism
    return options.partitions or max(cores, -(-bytes // PARTITION_BYTES))


def packet_rows(
    spark: SparkSession,
    plan: Plan,
    partitioner: Partitioner,
    *,
    joined: bool,
    more: DataFrame | None = None,
) -> DataFrame:
    """Read the packets of a set, by bucket and in order.

    joined: put fragments of IP datagrams together first; without, they are but reported. more: rows
    that come besides.
    """
    parts, sets = plan.parts, plan.sets

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                yield from parts[at].rows(partitioner)

    @ascii_safe
    def join(batches: Iterable[pa.RecordBatch]) -> Batches:
        unjoined = ((packet, body) for _, packet, body in sorted_rows(batches))
        return reassemble_fragments(unjoined, sets, partitioner)

    packets = map_in_arrow(number_frame(spark, len(parts), task_count(spark, plan)), step, SCHEMA)
    if joined:
        unjoined = by_bucket(packets.where(f"kind = {Kind.FRAGMENTS}"), partitioner.total)
        whole = map_in_arrow(unjoined, join, SCHEMA)
        packets = packets.where(f"kind <> {Kind.FRAGMENTS}").union(whole)
    return by_bucket(packets if more is None else packets.union(more), partitioner.total)


def by_bucket(rows: DataFrame, count: int) -> DataFrame:
    """Bring rows to the tasks of their buckets, and into order."""
    return rows.repartitionById(count, "bucket").sortWithinPartitions("kind", "packet")


def map_in_arrow(frame: DataFrame, step: Step, schema: pa.Schema) -> DataFrame:
    """Apply a step to a frame."""
    return frame.mapInArrow(step, from_arrow_schema(schema))
