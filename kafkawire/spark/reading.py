"""A table of a set of captures as a DataFrame.

Law: what `kafkawire.capture.tables.read` says of the set, this says, row for row, however the files
are cut, ordered and spread.

    parts --packets--> shuffle by connection --sort--> engine, table --> rows | facts   (kept)
                                                                          |       |
                                                     [group_events: by group]    sum
                                                                          v       |
                                                      numbers, names <------------'
                                                                          `--> DataFrame

Rows are decoded once: they are kept on the workers' disks until the facts of all are known, as
record batches in Arrow's own form, which Spark moves without looking into them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.pandas.types import from_arrow_schema

from ..capture.tables import TABLES
from .columns import is_bare, needed, to_batches
from .decoding import Gathering, Traffic
from .errors import ascii_safe
from .facts import AllFacts, Facts, sum_up
from .finishing import FACTS, Finish
from .groups import ITEMS, event_rows, item_batches, items
from .options import Options, parse
from .packets import FRAGMENT, SCHEMA
from .parts import join_fragments
from .planning import PARTITION_BYTES, TASK_BYTES, Plan, make_plan, numbers

Batches = Iterator[pa.RecordBatch]
Step = Callable[[Iterable[pa.RecordBatch]], Batches]

PACKED: Final = pa.schema([pa.field("rows", pa.binary()), pa.field(FACTS, pa.binary())])
"""What is kept of a table: a record batch a row, or facts."""

IN_TWO_STEPS: Final = "group_events"
"""The table whose rows cross connections."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A table of a set: its rows, what is known of all, and what is kept for it."""

    frame: DataFrame
    facts: AllFacts
    plan: Plan
    kept: DataFrame

    def release(self) -> None:
        """Give back what is kept; the rows are decoded anew where they are asked for again."""
        self.kept.unpersist()


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
    session ends. Raises BadOption, FileNotFoundError, OSError; Unreadable if `failOnError` says so.
    """
    paths = [inputs] if isinstance(inputs, str) else list(inputs)
    asked = parse({**options, "table": table})
    return decode(spark, make_plan(spark, paths, asked), asked, columns).frame


def decode(
    spark: SparkSession, plan: Plan, options: Options, columns: Sequence[str] | None = None
) -> Decoded:
    """Decode a table of a set that is planned."""
    table = TABLES[options.table]
    wanted = list(columns) if columns is not None else table.schema.names
    made = needed(options.table, wanted, options)
    for joined in (False, True):
        kept = gathered(spark, plan, options, made, joined=joined)
        kept = kept.persist(StorageLevel.DISK_ONLY)
        told = kept.where(f"{FACTS} is not null").select(FACTS).collect()
        facts = sum_up(bytes(row[FACTS]) for row in told)
        if not facts.fragments:
            break
        kept.unpersist()
    schema = pa.schema([table.schema.field(name) for name in wanted])
    finish = Finish(facts, plan.sets, options.topics, schema)
    if options.table == IN_TWO_STEPS:
        rows = kept.where(f"{FACTS} is null").drop(FACTS)
        rows = rows.repartition(partitions(spark, plan, options), "group_id")
        rows = rows.sortWithinPartitions("group_id", "at", "n")
        step = group_step(plan, made, options, finish)
    else:
        rows, step = kept, finish_step(finish)
    return Decoded(map_in_arrow(rows, step, schema), facts, plan, kept)


def gathered(
    spark: SparkSession, plan: Plan, options: Options, made: list[str], *, joined: bool
) -> DataFrame:
    """Decode connections: rows of a table, or what the second step makes them of, and facts.

    joined: put fragments of IP datagrams together first; without, they are but reported.
    """
    count = partitions(spark, plan, options)
    packets = packet_rows(spark, plan)
    if joined:
        is_fragment = expr(f"startswith(key, X'{FRAGMENT.hex()}')")
        pieces = packets.where(is_fragment).repartition(count, "key")
        pieces = pieces.sortWithinPartitions("key", "packet")
        whole = map_in_arrow(pieces, join_step(plan), SCHEMA)
        packets = packets.where(~is_fragment).union(whole)
    packets = packets.repartition(count, "key").sortWithinPartitions("key", "packet")
    schema = PACKED
    if options.table == IN_TWO_STEPS:
        schema = ITEMS.append(pa.field(FACTS, pa.binary()))
    return map_in_arrow(packets, gather_step(plan, made, options, schema), schema)


def packet_rows(spark: SparkSession, plan: Plan) -> DataFrame:
    """Read the packets of a set."""
    parts = plan.parts

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                yield from parts[at].rows()

    tasks = max(spark.sparkContext.defaultParallelism, -(-plan.bytes // TASK_BYTES))
    return map_in_arrow(numbers(spark, len(parts), tasks), step, SCHEMA)


def join_step(plan: Plan) -> Step:
    """Make the step from fragments of IP datagrams, sorted by file, to packets."""
    sets = plan.sets

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Batches:
        return join_fragments(batches, sets)

    return step


def gather_step(plan: Plan, made: list[str], options: Options, schema: pa.Schema) -> Step:
    """Make the step from a partition's packets, sorted by connection, to rows and facts."""
    table, names, sets = options.table, plan.names, plan.sets

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Batches:
        # Decoded messages have no cycles: with Python's default the collector walks them in vain.
        gc.set_threshold(100_000, 50, 1000)
        facts = Facts()
        two_steps = table == IN_TWO_STEPS
        traffic = Traffic(batches, names, options, facts)
        context = Gathering(traffic, sets, bare=is_bare(table, made))
        if two_steps:
            found = item_batches(items(context, traffic, sets))
        else:
            rows = TABLES[table].rows(context)
            found = map(packed, to_batches(table, made, rows, options, context.name_topics))
        for batch in found:
            yield _with(batch, schema, None)
        yield _with(None, schema, facts.pack())

    return step


def group_step(plan: Plan, made: list[str], options: Options, finish: Finish) -> Step:
    """Make the step from items of groups, sorted by group, to finished rows."""
    names, sets = plan.names, plan.sets

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Batches:
        traffic = Traffic((), names, options, Facts())
        context = Gathering(traffic, sets)
        rows = event_rows(batches, context)
        yield from finish(to_batches(options.table, made, rows, options, context.name_topics))

    return step


def finish_step(finish: Finish) -> Step:
    """Make the step from what is kept of a table to its finished rows."""

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Batches:
        return finish(unpacked(batches))

    return step


def packed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Make one value of a batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=IN_LZ4) as out:
        out.write_batch(batch)
    value = pa.array([sink.getvalue().to_pybytes()], pa.binary())
    return pa.RecordBatch.from_arrays([value], names=[PACKED.names[0]])


def unpacked(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Make the batches again, without those of facts."""
    for batch in batches:
        for value in batch.column(PACKED.names[0]):
            if value.is_valid:
                with pa.ipc.open_stream(value.as_buffer()) as stream:
                    yield from stream


IN_LZ4: Final = pa.ipc.IpcWriteOptions(compression="lz4")


def _with(batch: pa.RecordBatch | None, schema: pa.Schema, facts: bytes | None) -> pa.RecordBatch:
    """Put the column of facts behind others; without a batch, a row of nothing else."""
    count = 1 if batch is None else len(batch)
    columns = [pa.nulls(count, one.type) for one in schema] if batch is None else batch.columns
    return pa.RecordBatch.from_arrays(
        [*columns[: len(schema) - 1], pa.array([facts] * count, pa.binary())], schema=schema
    )


def partitions(spark: SparkSession, plan: Plan, options: Options) -> int:
    """Say in how many partitions connections are decoded."""
    least = spark.sparkContext.defaultParallelism
    return options.partitions or max(least, -(-plan.bytes // PARTITION_BYTES))


def map_in_arrow(frame: DataFrame, step: Step, schema: pa.Schema) -> DataFrame:
    """Apply a step to a frame."""
    return frame.mapInArrow(step, from_arrow_schema(schema))
