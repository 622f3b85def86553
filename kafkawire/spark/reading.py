"""Reads a table of a set of captures as a DataFrame.

The rows are those of `kafkawire.capture.tables.read`, however files are split, ordered and
distributed.

    regions --connections in one region only--> engine, table -----> rows | facts   (persisted)
       `--packets--> shuffle by bucket --in order--> engine, table --> rows | facts   (persisted)
                                              |                           |       |
            a connection too large --cut--> chunks --> any task --> rows  |      sum
                                              [group_events: by group]    |       |
                                                                          v       |
                                                      numbers, names <------------'
                                                                          `--> DataFrame

Rows are decoded once. If all workers see a directory, everything goes through its files
(`write.shared_directory`). Otherwise rows are persisted on the disks of the workers until all facts
are known, as Arrow record batches, which Spark does not look into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from .decode.columns import keep, needed, schema_of
from .decode.decoding import sorted_rows
from .decode.outputs import OUT, table_batches
from .decode.scratch import Scratch, chosen
from .decode.work import GROUP_EVENTS_TABLE, PACKETS, Batches, Step, Work
from .errors import ascii_safe
from .options import Options, parse
from .plan.facts import AllFacts, sum_up
from .plan.parts import reassemble_fragments
from .plan.planning import PARTITION_BYTES, TASK_BYTES, Plan, make_plan, require_files
from .session import check_spark
from .shuffle.packets import SCHEMA, Kind, Partitioner
from .shuffle.tasks import number_frame, tune
from .splitting.stores import is_uri
from .write import shared_directory as shared
from .write.finishing import Finish
from .write.shared_directory import SpilledTable
from .write.writing import TableDirectory

TASKS: Final = 12
"""Maximum number of tasks for each core that read packets."""

WRITTEN: Final = pa.schema([pa.field("file", pa.string()), pa.field("rows", pa.int64())])


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded table: persisted rows, and what finishes them. kept: the persisted frames."""

    rows: DataFrame
    finish: Finish
    facts: AllFacts
    persisted: tuple[DataFrame, ...]

    @property
    def frame(self) -> DataFrame:
        """The finished rows."""
        finish = self.finish

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            return finish(table_batches(batches))

        return map_in_arrow(self.rows.select("name", "body"), step, finish.schema)

    def write(self, directory: TableDirectory, tasks: int) -> list[tuple[str, int]]:
        """Write the table in at most `tasks` tasks; returns Parquet files and their rows."""
        directory.empty()
        rows = self.rows.select("name", "body").coalesce(tasks)

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for file, rows in directory.write(table_batches(batches)):
                yield pa.RecordBatch.from_pydict({"file": [file], "rows": [rows]}, WRITTEN)

        return [(row["file"], row["rows"]) for row in map_in_arrow(rows, step, WRITTEN).collect()]

    def release(self) -> None:
        """Unpersist the frames; rows are decoded again if they are needed again."""
        release(self.persisted)


def read(
    spark: SparkSession,
    inputs: str | Iterable[str],
    table: str = "exchanges",
    *,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> DataFrame:
    """Read a table of captures, which are one set, in any order.

    inputs: paths, directories, patterns, URIs. columns: the wanted ones; others are not made.
    options: as in docs/spark.md (`ports`, `startTs`, `splitBytes` ...).

    The set is decoded by this call; the rows are kept on disk until the session ends. Raises
    BadOption, FileNotFoundError, OSError; NoCaptures for a directory without captures; Unreadable
    if `failOnError` is set.
    """
    paths = [inputs] if isinstance(inputs, str) else list(inputs)
    check_spark(spark.version)
    parsed = parse({**options, "table": table})
    schema_of(parsed.table, columns)
    needs_store = parsed.scratch is not None and is_uri(parsed.scratch)
    plan = require_files(make_plan(spark, paths, parsed, to_store=needs_store))
    return decode_anyhow(spark, plan, parsed, lambda: chosen(spark, parsed), columns).frame


def decode_anyhow(
    spark: SparkSession,
    plan: Plan,
    options: Options,
    scratch: Callable[[], Scratch | None],
    columns: Sequence[str] | None = None,
) -> SpilledTable | Decoded:
    """Decode a table, through a directory that all workers see if there is one: it costs less.

    scratch: makes the directory.
    """
    partitioner = plan.partitioner(partitions(spark, plan.shuffled_bytes, options))
    directory = scratch() if shared.supports(plan, partitioner) else None
    if directory is None:
        return decode(spark, plan, options, columns)
    groups = partitions(spark, plan.bytes, options)
    schemas = {options.table: schema_of(options.table, columns)}
    return shared.decode(spark, plan, schemas, options, partitioner, directory, groups=groups)[
        options.table
    ]


def decode(
    spark: SparkSession,
    plan: Plan,
    options: Options,
    columns: Sequence[str] | None = None,
) -> Decoded:
    """Decode a table of a planned set."""
    schema = schema_of(options.table, columns)
    needed_columns = needed(options.table, schema.names, options)
    work = Work(plan, {options.table: needed_columns}, options)
    partitioner = plan.partitioner(partitions(spark, plan.shuffled_bytes, options))
    bucket_count = partitions(spark, plan.bytes, options)
    persisted, held_frames = decode_packets(spark, work, partitioner)
    facts = facts_of(persisted)
    if facts.ambiguous and work.columnar:
        # Messages state different names for one id: decode message by message to find the first.
        release(held_frames)
        persisted, held_frames = decode_packets(spark, replace(work, exact=True), partitioner)
        facts = facts_of(persisted)
    rows = persisted.where("kind = 'rows'")
    more = None
    if options.table == GROUP_EVENTS_TABLE:
        unfinished = persisted.where("kind = 'item'").selectExpr(
            "name as group_id", "at", "n", "body as item"
        )
        unfinished = unfinished.repartition(bucket_count, "group_id")
        more = map_in_arrow(
            unfinished.sortWithinPartitions("group_id", "at", "n"), work.decode_groups(), OUT
        )
    elif facts.sums["chunks"]:
        unfinished = persisted.where("kind = 'chunk'").selectExpr(
            "cast(n as int) as n", "name", "body"
        )
        unfinished = unfinished.repartitionById(min(bucket_count, facts.sums["chunks"]), "n")
        more = map_in_arrow(unfinished, work.decode_chunks(), OUT)
    if more is not None:
        more = more.persist(StorageLevel.DISK_ONLY)
        rows = rows.union(more)
        held_frames.append(more)
    return Decoded(
        rows,
        Finish(facts, plan.sets, keep(options.table, options), schema),
        facts,
        tuple(held_frames),
    )


def decode_packets(
    spark: SparkSession, work: Work, partitioner: Partitioner
) -> tuple[DataFrame, list[DataFrame]]:
    """Decode regions and visits, then the buckets with the shuffled packets.

    Returns the output of the tasks, and the persisted frames.
    """
    plan, persisted = work.plan, list[DataFrame]()
    frames = list[DataFrame]()
    if plan.visits:  # these take longest, so they start first
        frames.append(
            map_in_arrow(number_frame(spark, len(plan.visits)), work.decode_visits(), OUT)
        )
    if plan.decodes_in_place:
        regions = number_frame(spark, len(plan.regions), task_count(spark, plan))
        frames.append(map_in_arrow(regions, work.decode_regions(partitioner), OUT))
    if frames:
        # Spark does not find a persisted union that is part of another union.
        frame = union(frames).select(*OUT.names)
        persisted.append(frame.persist(StorageLevel.DISK_ONLY))
    if not plan.decodes_in_place:
        packets = packet_rows(spark, plan, partitioner, joined=plan.fragments)
    else:
        shuffled = (
            persisted[0]
            .where(f"kind = '{PACKETS}'")
            .selectExpr(
                "cast(n as int) as bucket", "cast(name as int) as kind", "at as packet", "body"
            )
        )
        packets = by_bucket(shuffled, partitioner.total)
    if plan.shuffles or not persisted:
        frame = map_in_arrow(packets, work.decode_buckets(partitioner), OUT)
        persisted.append(frame.persist(StorageLevel.DISK_ONLY))
    return union(persisted), persisted


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Concatenate frames."""
    return reduce(DataFrame.union, frames)


def facts_of(rows: DataFrame) -> AllFacts:
    """Decode, and sum the facts."""
    collected = rows.where("kind = 'facts'").select("body").collect()
    return sum_up(bytes(row["body"]) for row in collected)


def release(persisted: Iterable[DataFrame]) -> None:
    """Unpersist frames."""
    for each in persisted:
        each.unpersist()


def task_count(spark: SparkSession, plan: Plan) -> int:
    """Return the number of tasks that read packets."""
    cores = spark.sparkContext.defaultParallelism
    return max(cores, min(TASKS * cores, -(-plan.bytes // TASK_BYTES)))


def partitions(spark: SparkSession, bytes: int, options: Options) -> int:
    """Return the number of buckets of connections."""
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

    joined: reassemble IP fragments first; otherwise they are only reported. more: additional rows.
    """
    parts, sets, tunnels = plan.parts, plan.sets, plan.tunnels

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from parts[index].rows(partitioner)

    @ascii_safe
    def join(batches: Iterable[pa.RecordBatch]) -> Batches:
        unjoined = ((packet, body) for _, packet, body in sorted_rows(batches))
        return reassemble_fragments(unjoined, sets, partitioner, tunnels)

    packets = map_in_arrow(number_frame(spark, len(parts), task_count(spark, plan)), step, SCHEMA)
    if joined:
        unjoined = by_bucket(packets.where(f"kind = {Kind.FRAGMENTS}"), partitioner.total)
        whole = map_in_arrow(unjoined, join, SCHEMA)
        packets = packets.where(f"kind <> {Kind.FRAGMENTS}").union(whole)
    return by_bucket(packets if more is None else packets.union(more), partitioner.total)


def by_bucket(rows: DataFrame, count: int) -> DataFrame:
    """Shuffle rows to the tasks of their buckets, and sort them."""
    return rows.repartitionById(count, "bucket").sortWithinPartitions("kind", "packet")


def map_in_arrow(frame: DataFrame, step: Step, schema: pa.Schema) -> DataFrame:
    """Apply a step to a frame."""
    return frame.mapInArrow(step, from_arrow_schema(schema))
