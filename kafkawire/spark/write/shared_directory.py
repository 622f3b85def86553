"""Decodes a table through a directory that all workers see.

Large values are spilled there, and Spark distributes little more than indexes.

Law: rows and steps are those of `reading`; only the transport between two steps differs.

    visits, regions --> facts | spill files | chunks | shuffled packets
                                                |          |
                                spill files <---'          `--by bucket, in order--> facts | files
                                      `--numbers, names--> Parquet
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from ...capture.tables import TABLES
from ..decode.columns import keep, needed
from ..decode.outputs import read_file_batches
from ..decode.work import GROUP_EVENTS_TABLE, PACKETS, Batches, Work
from ..options import Options
from ..plan.facts import AllFacts, sum_up
from ..plan.planning import Plan
from ..shuffle.packets import Kind, Partitioner, row_of
from ..shuffle.tasks import on_workers
from .finishing import Finish
from .writing import TableDirectory

MAX_PAIRS: Final = 1 << 14
"""Regions times buckets, above which Spark's shuffle is used: here the driver knows the place of
each row of packets.
"""


class StoredPackets(NamedTuple):
    """A row of packets, and where its body is stored. kind, packet: sort keys within a bucket."""

    kind: int
    packet: int
    file: str
    at: int
    size: int


@dataclass(slots=True)
class TaskOutput:
    """The output of a task.

    rows: spill files, with the number of rows in each; chunks: a file for each; shuffled: bucket ->
    rows of packets.
    """

    rows: list[tuple[str, int]] = field(default_factory=list)
    chunks: list[str] = field(default_factory=list)
    facts: list[bytes] = field(default_factory=list)
    shuffled: defaultdict[int, list[StoredPackets]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, other: TaskOutput) -> None:
        """Add the output of another task."""
        self.rows += other.rows
        self.chunks += other.chunks
        self.facts += other.facts
        for bucket, stored in other.shuffled.items():
            self.shuffled[bucket] += stored


@dataclass(frozen=True, slots=True)
class SpilledTable:
    """A decoded table: spill files with the number of rows in each, and what finishes the rows.

    folder: where the files are.
    """

    spark: SparkSession
    files: list[tuple[str, int]]
    finish: Finish
    facts: AllFacts
    folder: str

    def write(self, folder: TableDirectory, tasks: int) -> list[tuple[str, int]]:
        """Write the table in at most `tasks` tasks; returns Parquet files and their rows."""

        def step(names: Sequence[str]) -> list[tuple[str, int]]:
            # Several tasks may write what one task decoded, as for a very large connection.
            made = folder.write(batch for name in names for batch in read_file_batches(name))
            return [(row["file"], row["rows"]) for batch in made for row in batch.to_pylist()]

        found = on_workers(self.spark, step, distribute(self.files, tasks))
        return [file for files in found for file in files]

    def release(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.folder)


def supports(plan: Plan, options: Options, partitioner: Partitioner) -> bool:
    """Tell whether a table can be decoded this way: what spans connections needs Spark's sort."""
    few = len(plan.regions) * partitioner.total <= MAX_PAIRS
    return few and not plan.fragments and options.table != GROUP_EVENTS_TABLE


def decode(
    spark: SparkSession, plan: Plan, options: Options, partitioner: Partitioner, folder: str
) -> SpilledTable:
    """Decode a table of a planned set in a directory that all workers see."""
    schema = TABLES[options.table].schema
    work = Work(plan, needed(options.table, schema.names, options), options, folder)
    output = decode_packets(spark, work, partitioner)
    facts = sum_up(output.facts)
    if facts.ambiguous and work.columnar:
        # Messages state different names for one id: decode message by message to find the first.
        output = decode_packets(spark, replace(work, exact=True), partitioner)
        facts = sum_up(output.facts)
    decode_chunks = work.decode_chunks()

    def decode_chunk(name: str) -> TaskOutput:
        return collect_output(
            decode_chunks([pa.RecordBatch.from_pydict({"name": [name], "body": [b""]})]), folder
        )

    for one in on_workers(spark, decode_chunk, output.chunks):
        output.add(one)
    finish = Finish(facts, plan.sets, keep(options.table, options), schema)
    return SpilledTable(spark, output.rows, finish, facts, folder)


def decode_packets(spark: SparkSession, work: Work, partitioner: Partitioner) -> TaskOutput:
    """Decode visits and regions, then the buckets with the shuffled packets."""
    plan, folder = work.plan, work.folder
    assert folder is not None
    decode_visits, decode_regions, decode_buckets = (
        work.decode_visits(),
        work.decode_regions(partitioner),
        work.decode_buckets(partitioner),
    )
    # Visits take longest, so they start first.
    steps = [(decode_visits, at) for at in range(len(plan.visits))]
    steps += [(decode_regions, at) for at in range(len(plan.regions))]

    def decode_in_place(at: int) -> TaskOutput:
        step, number = steps[at]
        return collect_output(step([pa.RecordBatch.from_pydict({"id": [number]})]), folder)

    output = TaskOutput()
    for one in on_workers(spark, decode_in_place, range(len(steps))):
        output.add(one)
    shuffled = [(bucket, sorted(stored)) for bucket, stored in sorted(output.shuffled.items())]

    def decode_bucket(bucket: tuple[int, list[StoredPackets]]) -> TaskOutput:
        return collect_output(decode_buckets(stored_rows(*bucket)), folder)

    for one in on_workers(spark, decode_bucket, shuffled):
        output.add(one)
    return output


def collect_output(made: Batches, folder: str) -> TaskOutput:
    """Collect the output of a step; packets are appended to a file."""
    output = TaskOutput()
    with ExitStack() as stack:
        packets: tuple[str, BinaryIO] | None = None
        for batch in made:
            columns = [column.to_pylist() for column in batch.columns]
            for kind, name, at, n, body in zip(*columns, strict=True):
                if kind == "rows":
                    output.rows.append((name, n))
                elif kind == "chunk":
                    output.chunks.append(name)
                elif kind == "facts":
                    output.facts.append(body)
                elif kind == PACKETS:
                    if packets is None:
                        number, path = tempfile.mkstemp(dir=folder)
                        packets = path, stack.enter_context(open(number, "wb"))
                    path, out = packets
                    stored = StoredPackets(int(name), at, path, out.tell(), out.write(body))
                    output.shuffled[n].append(stored)
    return output


def stored_rows(bucket: int, rows: Iterable[StoredPackets]) -> Iterator[pa.RecordBatch]:
    """Yield the packets of a bucket."""
    for kind, packet, file, at, size in rows:
        yield row_of(bucket, Kind(kind), packet, _read_range(file, at, size))


def _read_range(file: str, at: int, size: int) -> bytes:
    number = os.open(file, os.O_RDONLY)
    try:
        return os.pread(number, size, at)
    finally:
        os.close(number)


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
