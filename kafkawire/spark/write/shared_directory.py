"""A table of a set by way of a directory that all workers see: what is large waits there, and Spark
hands out little but numbers.

Law: what is decoded, and by which step, is as in `reading`; only what lies between two steps goes
another way.

    visits, regions --> facts | files of rows | chunks | packets that move
                                                 |          |
                               files of rows <---'          `--by bucket, in order--> facts | files
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
from ..decode.columns import needed
from ..decode.packets import Kind, Placing, row_of
from ..decode.tasks import on_workers
from ..decode.work import IN_TWO_STEPS, PACKETS, Batches, Work
from ..options import Options
from ..plan.facts import AllFacts, sum_up
from ..plan.planning import Plan
from .finishing import Finish
from .outputs import in_file
from .writing import Folder

MOST: Final = 1 << 14
"""Regions times buckets, beyond which Spark's shuffle brings packets to buckets: here the driver
knows where each of them lies.
"""


class Lying(NamedTuple):
    """A row of packets, and where its body lies. kind, packet: what sorts those of a bucket."""

    kind: int
    packet: int
    file: str
    at: int
    size: int


@dataclass(slots=True)
class Left:
    """What a task leaves. rows: files of them, and how many each has; chunks: a file for each;
    moved: bucket -> rows of packets.
    """

    rows: list[tuple[str, int]] = field(default_factory=list)
    chunks: list[str] = field(default_factory=list)
    facts: list[bytes] = field(default_factory=list)
    moved: defaultdict[int, list[Lying]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: Left) -> None:
        """Add what another task leaves."""
        self.rows += other.rows
        self.chunks += other.chunks
        self.facts += other.facts
        for bucket, lying in other.moved.items():
            self.moved[bucket] += lying


@dataclass(frozen=True, slots=True)
class Waiting:
    """A table of a set: files of rows, and how many each has; what finishes them. folder: where
    they are.
    """

    spark: SparkSession
    files: list[tuple[str, int]]
    finish: Finish
    facts: AllFacts
    folder: str

    def write(self, folder: Folder, tasks: int) -> list[tuple[str, int]]:
        """Write the table, in so many tasks at most; returns files of Parquet and their rows."""

        def step(names: Sequence[str]) -> list[tuple[str, int]]:
            # What one task decoded, as it does of a connection with most of the bytes, several
            # write.
            made = folder.write(batch for name in names for batch in in_file(name))
            return [(row["file"], row["rows"]) for batch in made for row in batch.to_pylist()]

        found = on_workers(self.spark, step, dealt(self.files, tasks))
        return [file for each in found for file in each]

    def release(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.folder)


def suits(plan: Plan, options: Options, placing: Placing) -> bool:
    """Say whether a table can be decoded that way: what crosses connections is sorted by Spark."""
    few = len(plan.regions) * placing.total <= MOST
    return few and not plan.fragments and options.table != IN_TWO_STEPS


def decode(
    spark: SparkSession, plan: Plan, options: Options, placing: Placing, folder: str
) -> Waiting:
    """Decode a table of a set that is planned, in a directory that all workers see."""
    schema = TABLES[options.table].schema
    work = Work(plan, needed(options.table, schema.names, options), options, folder)
    left = gathered(spark, work, placing)
    facts = sum_up(left.facts)
    if facts.ambiguous and work.columnar:
        # An id that two messages name differently: who was first takes looking at each.
        left = gathered(spark, replace(work, exact=True), placing)
        facts = sum_up(left.facts)
    opening = work.opening()

    def opened(name: str) -> Left:
        return leave(opening([pa.RecordBatch.from_pydict({"name": [name], "body": [b""]})]), folder)

    for one in on_workers(spark, opened, left.chunks):
        left.add(one)
    finish = Finish(facts, plan.sets, options.topics, schema)
    return Waiting(spark, left.rows, finish, facts, folder)


def gathered(spark: SparkSession, work: Work, placing: Placing) -> Left:
    """Decode what is visited, regions, and by bucket what leaves them."""
    plan, folder = work.plan, work.folder
    assert folder is not None
    visiting, reading, gathering = work.visiting(), work.reading(placing), work.gathering(placing)
    # A visit takes longest, and so begins first.
    each = [(visiting, at) for at in range(len(plan.visits))]
    each += [(reading, at) for at in range(len(plan.regions))]

    def lain(at: int) -> Left:
        step, number = each[at]
        return leave(step([pa.RecordBatch.from_pydict({"id": [number]})]), folder)

    left = Left()
    for one in on_workers(spark, lain, range(len(each))):
        left.add(one)
    moved = [(bucket, sorted(lying)) for bucket, lying in sorted(left.moved.items())]

    def come(bucket: tuple[int, list[Lying]]) -> Left:
        return leave(gathering(picked_up(*bucket)), folder)

    for one in on_workers(spark, come, moved):
        left.add(one)
    return left


def leave(made: Batches, folder: str) -> Left:
    """Take what a step makes; packets are laid into a file."""
    left = Left()
    with ExitStack() as opened:
        packets: tuple[str, BinaryIO] | None = None
        for batch in made:
            columns = [column.to_pylist() for column in batch.columns]
            for kind, name, at, n, body in zip(*columns, strict=True):
                if kind == "rows":
                    left.rows.append((name, n))
                elif kind == "chunk":
                    left.chunks.append(name)
                elif kind == "facts":
                    left.facts.append(body)
                elif kind == PACKETS:
                    if packets is None:
                        number, path = tempfile.mkstemp(dir=folder)
                        packets = path, opened.enter_context(open(number, "wb"))
                    path, out = packets
                    lying = Lying(int(name), at, path, out.tell(), out.write(body))
                    left.moved[n].append(lying)
    return left


def picked_up(bucket: int, rows: Iterable[Lying]) -> Iterator[pa.RecordBatch]:
    """Give the packets of a bucket."""
    for kind, packet, file, at, size in rows:
        yield row_of(bucket, Kind(kind), packet, _stretch(file, at, size))


def _stretch(file: str, at: int, size: int) -> bytes:
    number = os.open(file, os.O_RDONLY)
    try:
        return os.pread(number, size, at)
    finally:
        os.close(number)


def dealt(files: Sequence[tuple[str, int]], count: int) -> list[list[str]]:
    """Deal files of rows out to so many tasks, or fewer: stretches with about as many rows each."""
    every = max(1, sum(rows for _, rows in files))
    runs: list[list[str]] = [[] for _ in range(count)]
    before = 0
    for name, rows in files:
        runs[min((2 * before + rows) * count // (2 * every), count - 1)].append(name)
        before += rows
    return [run for run in runs if run]
