"""Formats of the files that tables are written to.

A format is that of a file extension. Nested columns are JSON text in CSV; bytes are base64 and
times ISO 8601 in UTC in JSON lines and CSV. In CSV, control characters and formulas are escaped;
the other formats contain text unchanged.
What a thread writes is written in order, and the first error is raised by a later call; a few row
groups wait at most, so memory does not grow with the table.
"""

from __future__ import annotations

import csv
import json
import sys
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TextIO

import typer

from kafkawire.display import csv_text

from ..input.options import Compression

if TYPE_CHECKING:
    from concurrent.futures import Future

    import pyarrow as pa

P = ParamSpec("P")

Write = Callable[["pa.RecordBatch | str"], None]
"""Writes a batch, or the text of it."""


Text = Callable[["pa.RecordBatch"], str]
"""Makes the text that is written of a batch."""


def _json_lines(batch: pa.RecordBatch) -> str:
    lines = [json.dumps(plain(row), separators=(",", ":")) for row in batch.to_pylist()]
    return "\n".join([*lines, ""])


@contextmanager
def _jsonl(output: Path | None, _: pa.Schema, __: Writes) -> Iterator[Write]:
    def write(text: pa.RecordBatch | str) -> None:
        out.write(text)
        out.flush()

    with _text(output) as out:
        yield write


def _csv_lines(batch: pa.RecordBatch) -> str:
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    for row in batch.to_pylist():
        lines.writerow(cell(value) for value in row.values())
    return text.getvalue()


@contextmanager
def _csv(output: Path | None, schema: pa.Schema, _: Writes) -> Iterator[Write]:
    def write(text: pa.RecordBatch | str) -> None:
        out.write(text)

    with _text(output) as out:
        csv.writer(out, lineterminator="\n").writerow(schema.names)
        yield write


WAITING: Final = 2
"""Calls of a thread that are not finished, at most."""


class Writes:
    """Calls functions that write, at once."""

    def call(self, write: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a function, or schedule the call; raise what an earlier one raised."""
        write(*args, **kwargs)

    def finish(self) -> None:
        """Wait until all calls are finished; raise what one of them raised."""


class WritesInThread(Writes):
    """Calls them in a thread: pyarrow encodes and compresses without holding Python's lock."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._executor = ThreadPoolExecutor(1, "writes tables")
        self._calls: deque[Future[object]] = deque()

    def call(self, write: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Schedule a call, once fewer than WAITING are unfinished."""
        while len(self._calls) >= WAITING:
            self._calls.popleft().result()
        self._calls.append(self._executor.submit(write, *args, **kwargs))

    def finish(self) -> None:
        """Wait until all calls are finished; after an error, those not begun are not made."""
        try:
            while self._calls:
                self._calls.popleft().result()
        finally:
            while self._calls:
                waiting = self._calls.pop()
                if not waiting.cancel():
                    waiting.exception()  # waits: whoever calls this closes the file


AT_ONCE: Final = Writes()

GROUP_ROWS: Final = 1 << 15
GROUP_BYTES: Final = 1 << 24
"""Maximum rows of a Parquet row group, and bytes after which it is written."""


@contextmanager
def parquet_writer(
    output: Path | IO[bytes] | None,
    schema: pa.Schema,
    writes: Writes = AT_ONCE,
    compression: Compression = Compression.ZSTD,
) -> Iterator[Write]:
    """Open a Parquet file, or write to one that is open, and return what writes a batch."""
    import pyarrow as pa

    from kafkawire.capture.tables.arrow.importing import STORES, without
    from kafkawire.capture.tables.parquet import columns_with_statistics, repeating_columns

    with without(*STORES):
        from pyarrow.parquet import ParquetWriter

    buffered: list[pa.RecordBatch] = []
    rows = size = 0

    def write(batch: pa.RecordBatch) -> None:
        nonlocal rows, size
        if rows + len(batch) > GROUP_ROWS or size > GROUP_BYTES:
            flush()
        buffered.append(batch)
        rows += len(batch)
        size += batch.nbytes

    def flush() -> None:
        nonlocal rows, size
        if buffered:
            group = pa.Table.from_batches(buffered, schema)
            writes.call(out.write_table, group, row_group_size=GROUP_ROWS)
        buffered.clear()
        rows = size = 0

    with ParquetWriter(
        str(output) if isinstance(output, Path) else output,
        schema,
        compression=compression.value,
        use_dictionary=list(repeating_columns(schema)),
        write_statistics=columns_with_statistics(schema),
    ) as out:
        try:
            yield write
            flush()
        finally:
            writes.finish()


@contextmanager
def arrow_writer(
    output: Path | None, schema: pa.Schema, writes: Writes = AT_ONCE
) -> Iterator[Write]:
    """Open an Arrow IPC file, and return what writes a batch."""
    import pyarrow as pa

    # compressing with lz4 is faster than writing the uncompressed pages
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_file(str(output), schema, options=options) as out:
        try:
            yield partial(writes.call, out.write_batch)
        finally:
            writes.finish()


class TableFormat(NamedTuple):
    """A format. opened: opens a file; text: makes what is written of a batch, if it is text."""

    opened: Callable[[Path | None, pa.Schema, Writes], AbstractContextManager[Write]]
    text: Text | None


FORMATS: Final[dict[str, TableFormat]] = {
    ".jsonl": TableFormat(_jsonl, _json_lines),
    ".csv": TableFormat(_csv, _csv_lines),
    ".parquet": TableFormat(parquet_writer, None),
    ".arrow": TableFormat(arrow_writer, None),
}
"""File extension -> its format."""


def format_of(output: Path | None, compression: Compression | None = None) -> TableFormat:
    """Return the format of a file, or that of standard output; a usage error if unknown.

    compression: of a Parquet file; a usage error for other formats.
    """
    suffix = ".jsonl" if output is None else output.suffix
    table_format = FORMATS.get(suffix)
    if table_format is None:
        raise typer.BadParameter(
            f"unknown format {str(output)!r}: expected one of {', '.join(FORMATS)}",
            param_hint="--output",
        )
    if compression is None:
        return table_format
    if suffix != ".parquet":
        raise typer.BadParameter("only allowed with .parquet files", param_hint="--compression")
    return table_format._replace(opened=partial(parquet_writer, compression=compression))


@contextmanager
def _text(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
    else:
        with output.open("w", encoding="utf-8", newline="") as file:
            yield file


def plain(value: Any) -> Any:
    """Convert a value for JSON."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value


def cell(value: Any) -> Any:
    """Convert a value for CSV: null is empty, booleans and nested values are JSON."""
    if isinstance(value, str):
        return csv_text(value)
    plain_value = plain(value)
    if isinstance(plain_value, bool | dict | list):
        return json.dumps(plain_value, separators=(",", ":"))
    return plain_value
