"""Decodes tables through a directory that all workers see.

Large values are spilled there, and Spark distributes little more than indexes.

Rows and steps are those of `reading`; only the transport between two steps differs.

    visits, regions --> facts | spill files | chunks | group items | shuffled packets, IP fragments
    IP fragments --whole--> shuffled packets        chunks --> spill files
    shuffled packets --by bucket, in order--> facts | spill files | chunks | group items
    group items --by group, in order--> spill files
    spill files --numbers, names--> Parquet, or a DataFrame
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ..decode.columns import keep, needed
from ..decode.item_runs import ItemRun, merged
from ..decode.outputs import read_file_batches
from ..decode.scratch import Scratch
from ..decode.work import Batches, Work, packets_row
from ..errors import ascii_safe
from ..options import Options
from ..plan.facts import AllFacts, sum_up
from ..plan.parts import reassemble_fragments
from ..plan.planning import Plan
from ..shuffle.packets import Partitioner
from ..shuffle.tasks import core_count, number_frame, on_workers, tune
from .early_files import (
    NO_FOLDERS,
    FileWriters,
    Folders,
    MakeDirectory,
    directories,
    early_facts,
)
from .finishing import Finish
from .task_output import StoredPackets, TaskOutput, collect_output, stored_rows
from .writing import TableDirectory

MAX_PAIRS: Final = 1 << 14
"""Regions times buckets, above which Spark's shuffle is used: here the driver knows the place of
each row of packets.
"""


NUMBER: Final = pa.schema([pa.field("id", pa.int64())])
CHUNK: Final = pa.schema([pa.field("name", pa.string()), pa.field("body", pa.binary())])
"""Inputs of steps. They are typed: pyarrow imports pandas to find types, which takes 0.2 s."""

FRAME_TASKS: Final = 12
"""Tasks for each core that read the rows of a DataFrame, at most."""


@dataclass(frozen=True, slots=True)
class SpilledTable:
    """A decoded table: spill files with the number of rows in each, and what finishes the rows.

    scratch: where the files are. written: Parquet files that the table has already, and their rows.
    """

    spark: SparkSession
    files: list[tuple[str, int]]
    finish: Finish
    facts: AllFacts
    scratch: Scratch
    written: list[tuple[str, int]]

    @property
    def frame(self) -> DataFrame:
        """The finished rows; they are read from the files whenever they are needed."""
        scratch, finish = self.scratch, self.finish
        names = [name for name, _ in self.files]

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for batch in batches:
                for index in batch.column(0).to_pylist():
                    yield from finish(read_file_batches(scratch, names[index]))

        numbers = number_frame(self.spark, len(names), FRAME_TASKS * core_count(self.spark))
        frame: DataFrame = numbers.mapInArrow(step, from_arrow_schema(finish.schema))
        return frame

    def write(self, folder: TableDirectory, tasks: int) -> list[tuple[str, int]]:
        """Write the table in at most `tasks` tasks; returns Parquet files and their rows."""
        scratch = self.scratch
        if not self.written:
            folder.empty()

        def step(names: Sequence[str]) -> list[tuple[str, int]]:
            # Several tasks may write what one task decoded, as for a very large connection.
            return folder.write(
                batch for name in names for batch in read_file_batches(scratch, name)
            )

        files_of_tasks = on_workers(self.spark, step, distribute(self.files, tasks))
        return [*self.written, *(file for files in files_of_tasks for file in files)]

    def release(self) -> None:
        """Remove the files."""
        self.scratch.remove()


def supports(plan: Plan, partitioner: Partitioner) -> bool:
    """Return whether the driver can know the place of each row of packets."""
    return len(plan.regions) * partitioner.total <= MAX_PAIRS


def decode(
    spark: SparkSession,
    plan: Plan,
    schemas: Mapping[str, pa.Schema],
    options: Options,
    partitioner: Partitioner,
    scratch: Scratch,
    directory: MakeDirectory | None = None,
    *,
    groups: int = 1,
) -> dict[str, SpilledTable]:
    """Decode tables of a planned set in one pass, in a directory that all workers see.

    schemas: the wanted columns of each table; groups: number of buckets of consumer groups.
    directory: returns the one of a table's files; visits write there what needs no facts of other
    tasks, if the plan knows the first packets of connections.
    """
    columns = {table: needed(table, schema.names, options) for table, schema in schemas.items()}
    work = Work(plan, columns, options, scratch)
    folders = directories(plan, schemas, options, directory)
    output = decode_packets(spark, work, partitioner, groups, folders)
    facts = sum_up(output.facts)
    exact = facts.ambiguous and work.columnar
    right = not facts.ambiguous and np.array_equal(facts.firsts, early_facts(plan).firsts)
    if folders and not right and not exact:
        # Written files may have wrong names, or numbers: a connection was opened again.
        output = decode_packets(spark, work, partitioner, groups)
        facts = sum_up(output.facts)
    if exact:
        # Messages state different names for one id: decode message by message to find the first.
        work = replace(work, exact=True)
        output = decode_packets(spark, work, partitioner, groups)
        facts = sum_up(output.facts)
    return finish(spark, work, output, facts, groups, schemas)


def finish(
    spark: SparkSession,
    work: Work,
    output: TaskOutput,
    facts: AllFacts,
    groups: int,
    schemas: Mapping[str, pa.Schema],
) -> dict[str, SpilledTable]:
    """Decode chunks and group items, and return the tables."""
    plan, scratch = work.plan, work.scratch
    assert scratch is not None
    decode_chunks = work.decode_chunks()

    def decode_chunk(name: str) -> TaskOutput:
        rows = decode_chunks([pa.RecordBatch.from_pydict({"name": [name], "body": [b""]}, CHUNK)])
        return collect_output(rows, scratch, groups)

    for one in on_workers(spark, decode_chunk, output.chunks):
        output.add(one)

    def decode_groups(runs: Sequence[ItemRun]) -> TaskOutput:
        return collect_output(work.decode_items(merged(scratch, runs)), scratch, groups)

    for one in on_workers(spark, decode_groups, [runs for _, runs in sorted(output.items.items())]):
        output.add(one)
    return {
        table: SpilledTable(
            spark,
            output.rows[table],
            Finish(facts, plan.sets, keep(table, work.options), schemas[table]),
            facts,
            scratch,
            output.written[table],
        )
        for table in work.tables
    }


def decode_packets(
    spark: SparkSession,
    work: Work,
    partitioner: Partitioner,
    groups: int,
    folders: Folders = NO_FOLDERS,
) -> TaskOutput:
    """Decode visits and regions, then the buckets with the shuffled packets.

    folders: the directories in which visits write files of tables, and regions, if there are few.
    """
    plan, scratch = work.plan, work.scratch
    assert scratch is not None
    visits, regions = len(plan.visits), len(plan.regions)
    decode_buckets = work.decode_buckets(partitioner)

    def decode_in_place(index: int) -> TaskOutput:
        # Visits take longest, so they start first.
        is_visit = index < visits
        with FileWriters(folders if is_visit or regions <= visits else NO_FOLDERS) as writers:
            if is_visit:
                step = work.decode_visits(writers.write)
            else:
                step = work.decode_regions(partitioner, writers.write)
            numbers = pa.RecordBatch.from_pydict(
                {"id": [index if is_visit else index - visits]}, NUMBER
            )
            output = collect_output(step([numbers]), scratch, groups)
            output.written.update(writers.finish())
            return output

    output = TaskOutput()
    for one in on_workers(spark, decode_in_place, range(visits + regions)):
        output.add(one)
    join_fragments(spark, output, plan, partitioner, scratch)
    shuffled = [(bucket, sorted(stored)) for bucket, stored in sorted(output.shuffled.items())]

    def decode_bucket(bucket: tuple[int, list[StoredPackets]]) -> TaskOutput:
        rows = decode_buckets(stored_rows(scratch, *bucket))
        return collect_output(rows, scratch, groups)

    for one in on_workers(spark, decode_bucket, shuffled):
        output.add(one)
    return output


def join_fragments(
    spark: SparkSession,
    output: TaskOutput,
    plan: Plan,
    partitioner: Partitioner,
    scratch: Scratch,
) -> None:
    """Replace the rows of IP fragments by those of the packets which they are parts of."""

    def join(bucket: tuple[int, list[StoredPackets]]) -> TaskOutput:
        rows = ((row.packet, scratch.read_range(*row[2:])) for row in bucket[1])
        whole = reassemble_fragments(rows, plan.sets, partitioner, plan.tunnels)
        return collect_output(map(packets_row, whole), scratch, 1)

    for one in on_workers(spark, join, output.take_fragments()):
        output.add(one)


def distribute(files: Sequence[tuple[str, int]], count: int) -> list[list[str]]:
    """Distribute spill files over at most `count` tasks, in order.

    Each task gets about the same number of rows.
    """
    total_rows = max(1, sum(rows for _, rows in files))
    runs: list[list[str]] = [[] for _ in range(count)]
    before = 0
    for name, rows in files:
        runs[min((2 * before + rows) * count // (2 * total_rows), count - 1)].append(name)
        before += rows
    return [run for run in runs if run]
