"""What a job is to do: the files of each set in order, and their parts.

Law: the order of the files of a set is that of their first packets, then of their names, whatever
order they were given in; parts are proven, so that packets have their numbers before any is
decoded.

    inputs --> files --split, on the workers if that is much work--> splits --order--> Plan
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from ..capture.blocks import NO_TIME
from .errors import Unreadable, ascii_safe
from .options import SPLIT_BYTES, Options, unknown
from .packets import Placing
from .parts import Part
from .splitting import Edge, InputFile, Split, inputs, plan, probe, prove, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

MUCH: Final = 1 << 28
"""Bytes of inputs from which on workers plan them."""

TASK_BYTES: Final = 32 << 20
"""Bytes of inputs that are worth a task: small files and splits share one."""

PARTITION_BYTES: Final = 32 << 20
"""Bytes of inputs for which there is a bucket of connections."""

LEAST_SPLIT: Final = 8 << 20

SAMPLES: Final = 256
"""Parts that are looked at for connections with many bytes, at most."""

LARGEST: Final = 64
"""Connections that are remembered of them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Files by set and in their order there, the set of each, and the parts of all of them.

    volumes: connections (mixed) that seem to have the most bytes, and how many.
    """

    files: tuple[InputFile, ...]
    sets: tuple[int, ...]
    parts: tuple[Part, ...]
    volumes: tuple[tuple[int, int], ...] = ()

    @property
    def names(self) -> list[str]:
        """What the files are called."""
        return [file.name for file in self.files]

    @property
    def bytes(self) -> int:
        """How much there is to read, as it is stored."""
        return sum(file.size for file in self.files)

    def placing(self, count: int, share: int) -> Placing:
        """Say which bucket a connection is in, of so many; one that has more bytes than `share`
        seems to need one of its own.
        """
        hot = [one for one, size in self.volumes if size > share]
        return Placing(count, tuple(hot[: count // 2]))


def make_plan(
    spark: SparkSession | None, paths: Iterable[str], options: Options, *, whole: bool = False
) -> Plan:
    """Plan the reading of captures; without a session, here. whole: files are not cut.

    Raises FileNotFoundError where nothing is found; BadOption for an option that nobody knows;
    Unreadable for a file that is no capture, where `failOnError` asks for it; OSError.
    """
    files = inputs(paths, options.others)
    if all(file.store.is_local for file in files):
        for name in options.others:  # that no store is there to take
            unknown(name)
    much = spark is not None and sum(file.size for file in files) >= MUCH
    size = options.split_bytes or split_bytes(spark, files)

    def run(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if much and spark is not None and len(items) > 1:
            return on_workers(spark, function, items)
        return [function(item) for item in items]

    split = [[as_one(file)] for file in files] if whole else run(lambda f: plan(f, size), files)
    unproven = [found for found in split if any(one.start is None for one in found)]
    proven: dict[InputFile, list[Split]] = {}
    for one in prove(list(chain(*unproven)), lambda some: run(probe, list(some))).splits:
        proven.setdefault(one.file, []).append(one)
    split = [proven.get(found[0].file, found) for found in split]
    begun = zip(files, split, run(begins, split), strict=True)
    of = options.sets.of
    order = sorted(begun, key=lambda each: (of(each[0].name), each[2][0], each[0].name))
    places = {name: at for at, name in enumerate(dict.fromkeys(of(each[0].name) for each in order))}
    sets = tuple(places[of(file.name)] for file, _, _ in order)
    for file, _, (_, problem) in order:
        if options.fail_on_error and problem is not None:
            raise Unreadable(file.name, problem)
    parts = tuple(
        Part(at, sets[at], one) for at, (_, found, _) in enumerate(order) for one in found
    )
    found = Counter[int]()
    if not whole and sum(file.size for file in files) >= 2 * options.chunk_bytes:
        for sample in run(Part.sample, parts[:: -(-len(parts) // SAMPLES)]):
            found.update(sample)
    return Plan(tuple(file for file, _, _ in order), sets, parts, tuple(found.most_common(LARGEST)))


def split_bytes(spark: SparkSession | None, files: Sequence[InputFile]) -> int:
    """Say how large splits are: enough of them for all cores, where there is little to read."""
    cores = 1 if spark is None else spark.sparkContext.defaultParallelism
    total = sum(file.size for file in files)
    return max(LEAST_SPLIT, min(SPLIT_BYTES, -(-total // (2 * cores))))


def as_one(file: InputFile) -> Split:
    """Make one split of a file."""
    return Split(file, whole=True, start=Edge(0), first=1)


def begins(splits: Sequence[Split]) -> tuple[int, str | None]:
    """Say when a file's first packet was captured, or NO_TIME and what is wrong with it."""
    said = None
    for split in splits:
        reading = read(split)
        for block in reading:
            if len(block):
                return int(block.ts[0]), None
        said = next(map(str, reading.proof.problems), said)
    return NO_TIME, said


def on_workers(spark: SparkSession, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Call a function for each item, a task each; results in the order of the items."""

    @ascii_safe
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                made = pickle.dumps(function(items[at]))
                yield pa.RecordBatch.from_pydict({"at": [at], "made": [made]})

    rows: list[Any] = numbers(spark, len(items)).mapInArrow(task, "at long, made binary").collect()
    return [pickle.loads(row["made"]) for row in sorted(rows, key=lambda row: row["at"])]


def numbers(spark: SparkSession, count: int, tasks: int | None = None) -> Any:
    """Make a frame of the numbers below `count`, in so many partitions: one for each, if not said
    otherwise.
    """
    return spark.range(0, count, 1, max(1, min(count, tasks or count)))
