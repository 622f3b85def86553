"""`kafkawire decode --table NAME`: a table of captures as JSON lines, CSV or Parquet.

Law: the name of the output file says the format; nested columns are JSON text in CSV, bytes are
base64 in both texts, and times are ISO 8601 in UTC.
"""

from __future__ import annotations

import csv
import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

from . import captures
from .progress import progress

if TYPE_CHECKING:
    import pyarrow as pa


def write(
    given: list[str],
    table: str,
    output: Path | None,
    brokers: captures.Known,
    secrets: bool,
) -> int:
    """Write a table of the captures given, which are read as one; to standard output as JSON lines
    without a file. Return how many files were named and left out for being none. InputError where
    there is no capture; a usage error for a table or a name of a file that we do not know.
    """
    captures.needs_arrow()
    from kafkawire.capture import tables

    if table not in tables.TABLES:
        raise typer.BadParameter(
            f"no table is called {table!r}; tables: {', '.join(tables.TABLES)}",
            param_hint="--table",
        )
    writer = _writer(output)
    # rows of a live capture that somebody watches must not wait for a full batch
    size = 1 if given == ["-"] and output is None else tables.BATCH_ROWS
    sources, refused = captures.sources("decode", given)
    drawn = output is not None or not sys.stdout.isatty()
    with progress(sources, drawn=drawn) as watch, captures.readable(given, output):
        batches = tables.read(
            sources,
            table,
            ports=brokers.ports,
            brokers=brokers.addresses,
            batch_rows=size,
            secrets=secrets,
            watch=watch,
        )
        writer(batches, tables.TABLES[table].schema, output)
    return refused


# -- formats


def _jsonl(batches: Iterator[pa.RecordBatch], _: pa.Schema, output: Path | None) -> None:
    with _text(output) as out:
        for batch in batches:
            for row in batch.to_pylist():
                out.write(json.dumps(_plain(row), separators=(",", ":")) + "\n")
            out.flush()


def _csv(batches: Iterator[pa.RecordBatch], schema: pa.Schema, output: Path | None) -> None:
    with _text(output) as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(schema.names)
        for batch in batches:
            for row in batch.to_pylist():
                lines.writerow(_cell(value) for value in _plain(row).values())


def _parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, output: Path | None) -> None:
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(str(output), schema, compression="zstd") as out:
        for batch in batches:
            out.write_batch(batch)


FORMATS: Final = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
"""Ending of a file's name -> what writes it."""


def _writer(
    output: Path | None,
) -> Callable[[Iterator[pa.RecordBatch], pa.Schema, Path | None], None]:
    found = FORMATS.get(".jsonl" if output is None else output.suffix)
    if found is None:
        raise typer.BadParameter(
            f"{str(output)!r} ends in none of {', '.join(FORMATS)}", param_hint="--output"
        )
    return found


@contextmanager
def _text(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
    else:
        with output.open("w", encoding="utf-8", newline="") as file:
            yield file


def _plain(value: Any) -> Any:
    """Make a value that JSON can write."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value


def _cell(value: Any) -> Any:
    """Make a value that CSV can hold: null is nothing, true and nested values are JSON."""
    if isinstance(value, bool | dict | list):
        return json.dumps(value, separators=(",", ":"))
    return value
