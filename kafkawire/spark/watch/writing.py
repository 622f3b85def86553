"""Writes the finished rows of a batch to Parquet, and states to files.

A task reports what it has written, and only that counts. Connections are numbered from batch
to batch in order of appearance.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from ...capture.tables import TABLES
from ...capture.tables.decoded_values import with_values
from ...values.record_values import RecordValues
from ..decode.columns import keep
from ..decode.outputs import deserialise
from ..errors import ascii_safe
from ..options import Options
from ..plan.facts import AllFacts
from ..values import RECORDS
from ..write.finishing import Finish

WRITTEN: Final = pa.schema(
    [pa.field("table", pa.string()), pa.field("file", pa.string()), pa.field("rows", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class ConnectionNumbers:
    """Names of topics, and numbers of the connections in a batch, by their first packets."""

    numbers: Mapping[int, int]
    names: Mapping[bytes, str]

    def facts(self) -> AllFacts:
        """Convert them to the facts of a set."""
        firsts = np.array(sorted(self.numbers), np.int64)
        return AllFacts(firsts, {(0, id): n for id, n in self.names.items()}, Counter(), False)


class TableFinisher:
    """Finishes batches of a table of a watch. files: number of files so far."""

    def __init__(
        self, table: str, numbers: ConnectionNumbers, files: int, options: Options
    ) -> None:
        facts = numbers.facts()
        schema = TABLES[table].schema
        self._finish = Finish(facts, [0] * max(files, 1), None, schema)
        self._numbers = np.array(
            [numbers.numbers[first] for first in facts.firsts.tolist()], np.int64
        )
        self._keep = keep(table, options)

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Finish a batch."""
        finished = self._finish.batch(batch)
        index = finished.schema.get_field_index("connection")
        places = finished.column(index)
        if len(self._numbers):
            numbers = pa.array(self._numbers).take(places)
            finished = finished.set_column(index, finished.schema.field(index), numbers)
        if self._keep is not None:
            columns = dict(zip(finished.schema.names, finished.columns, strict=True))
            finished = finished.filter(self._keep(columns))
        return finished


class TaskFiles:
    """The files of a task, one for each table or state that has rows."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._open: dict[tuple[str, str], tuple[Any, Any]] = {}
        self.rows: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> TaskFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer, out in self._open.values():
            writer.close()
            out.flush()
            os.fsync(out.fileno())
            out.close()

    def write(self, kind: str, name: str, batch: pa.RecordBatch) -> None:
        """Write a batch of a table ("rows") or state ("state")."""
        if (kind, name) not in self._open:
            self._open[kind, name] = self._begin(kind, name, batch.schema)
        self._open[kind, name][0].write_batch(batch)
        self.rows[kind, name] += len(batch)

    def path(self, kind: str, name: str) -> str:
        """Return the name of a file."""
        return f"{name}-{self._name}." + ("parquet" if kind == "rows" else "arrow")

    def _begin(self, kind: str, name: str, schema: pa.Schema) -> tuple[Any, Any]:
        where = self._folder / ("written" if kind == "rows" else "state")
        out = (where / self.path(kind, name)).open("xb")
        if kind == "rows":
            return pq.ParquetWriter(out, schema, compression="zstd"), out
        return pa.ipc.new_stream(out, schema), out


def finished_records(
    batches: Iterable[pa.RecordBatch], numbers: ConnectionNumbers, files: int, options: Options
) -> Iterator[pa.RecordBatch]:
    """Finish the rows of the table `records`. batches: output rows of this table alone."""
    finish = TableFinisher(RECORDS, numbers, files, options)
    for batch in batches:
        for body in batch.column("body").to_pylist():
            yield from map(finish.batch, deserialise(body))


@ascii_safe
def write_rows(
    batches: Iterable[pa.RecordBatch],
    folder: Path,
    numbers: ConnectionNumbers,
    files: int,
    options: Options,
    values: RecordValues | None = None,
) -> Iterator[pa.RecordBatch]:
    """Write the output rows of a partition; yields the files.

    values: decode the keys and values in the table `records`.
    """
    context = TaskContext.get()
    name = "0" if context is None else f"{context.partitionId():05d}-{context.taskAttemptId()}"
    finish: dict[str, TableFinisher] = {}
    with TaskFiles(folder, name) as out:
        for batch in batches:
            for row in batch.to_pylist():
                kind, table = row["kind"], row["name"]
                for one in deserialise(row["body"]):
                    rows_of_table = one
                    if kind == "rows":
                        if table not in finish:
                            finish[table] = TableFinisher(table, numbers, files, options)
                        rows_of_table = finish[table].batch(one)
                        if values is not None and table == RECORDS:
                            rows_of_table = with_values(rows_of_table, values)
                    if len(rows_of_table):
                        out.write(kind, table, rows_of_table)
    for (kind, table), rows in out.rows.items():
        entry = (table if kind == "rows" else "", out.path(kind, table), rows)
        arrays = [pa.array([value], f.type) for value, f in zip(entry, WRITTEN, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=WRITTEN)
