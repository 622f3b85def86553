"""What a batch of a watch starts from: numbers of connections, names of topics, state files.

It is written with the state of a batch, and read by the next batch only.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ..errors import ascii_safe
from ..reading import map_in_arrow
from ..shuffle.packets import Kind, Partitioner, key_hashes, row_of
from ..shuffle.tasks import number_frame
from .commit_log import write
from .writing import ConnectionNumbers

CHECKPOINT: Final = "known.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a batch starts from: numbers of connections, names of topics, and state files."""

    numbers: ConnectionNumbers
    states: list[Path]

    def without_connections(self) -> Checkpoint:
        """Return only the names."""
        return Checkpoint(ConnectionNumbers({}, self.numbers.names), [])

    def updated(
        self, opened: Sequence[int], names: Mapping[tuple[int, bytes], str], count: int
    ) -> Checkpoint:
        """Number new connections from `count` on; names that are already known win.

        opened: their first packets, sorted. names: by set and topic id.
        """
        new = {first: count + offset for offset, first in enumerate(opened)}
        named = {id: name for (_, id), name in names.items()}
        numbers = {**self.numbers.numbers, **new}
        return Checkpoint(ConnectionNumbers(numbers, {**named, **self.numbers.names}), self.states)

    def save(self, folder: Path, live: Iterable[int], states: list[str]) -> None:
        """Write it for the next batch, with the numbers of live connections and the state files."""
        decoded_rows = {
            "numbers": {first: self.numbers.numbers[first] for first in live},
            "names": {id.hex(): name for id, name in self.numbers.names.items()},
            "states": states,
        }
        write(folder / CHECKPOINT, json.dumps(decoded_rows).encode())


def read_checkpoint(folder: Path | None) -> Checkpoint:
    """Read the checkpoint of an earlier batch."""
    if folder is None:
        return Checkpoint(ConnectionNumbers({}, {}), [])
    stored = json.loads((folder / CHECKPOINT).read_text())
    names = {bytes.fromhex(id): name for id, name in stored["names"].items()}
    numbers = {int(first): number for first, number in stored["numbers"].items()}
    return Checkpoint(
        ConnectionNumbers(numbers, names), [folder / name for name in stored["states"]]
    )


def state_rows(partitioner: Partitioner, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Make rows of states, which are sorted before the packets of their connections."""
    buckets = partitioner.of(key_hashes(batch.column("key").to_pylist())).tolist()
    for bucket, state in zip(buckets, batch.to_pylist(), strict=True):
        yield row_of(bucket, Kind.STATE, 0, pickle.dumps(tuple(state.values())))


def read_states(
    spark: SparkSession,
    paths: Sequence[Path],
    schema: pa.Schema,
    convert: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]] = lambda batch: [batch],
) -> DataFrame:
    """Read the states that an earlier batch wrote; convert: turns them into others."""

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                with pa.ipc.open_stream(str(paths[index])) as stream:
                    for each in stream:
                        yield from convert(each)

    tasks = spark.sparkContext.defaultParallelism
    return map_in_arrow(number_frame(spark, len(paths), tasks), step, schema)
