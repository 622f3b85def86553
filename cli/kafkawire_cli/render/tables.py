"""Writes tables of captures as JSON lines, CSV, Parquet or Arrow (`decode --table`).

Law: the format is that of the file extension, and each table has a file of its own; missing
directories are created. Nested columns are JSON text in CSV; bytes are base64 and times ISO 8601 in
UTC in JSON lines and CSV. In CSV, control characters and formulas are escaped; the other formats
contain text unchanged.

    -o a.csv            one table
    -o DIR              DIR/exchanges.parquet, DIR/records.parquet, ...
    -o a-{table}.jsonl  a-exchanges.jsonl, a-records.jsonl, ...
"""

from __future__ import annotations

import csv
import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

from kafkawire.display import csv_text

from ..input import sources as captures
from ..input.filters import usage_errors
from ..input.names import check_tables
from ..input.packages import registry
from ..input.progress import progress
from ..pipes import make_private
from .bodies import schema_of, with_bodies

if TYPE_CHECKING:
    import pyarrow as pa

    from ..input.entries import Wanted
    from .messages import View

TABLE: Final = "{table}"
"""Placeholder for the name of the table in the name of an output file."""

Write = Callable[["pa.RecordBatch"], None]


def write(
    given: list[str],
    names: list[str],
    message: str | None,
    output: Path | None,
    wanted: Wanted,
    view: View,
) -> int:
    """Write tables of captures, read as one capture in one pass.

    message: the one whose bodies are columns of the table `messages`, which has no other.

    Without `output` as JSON lines to standard output. Return the number of files skipped because
    they are not captures. InputError if there are no captures; usage errors for unknown tables and
    file extensions, and for a filter by what a table lacks.
    """
    import_arrow()
    from kafkawire.capture import tables
    from kafkawire.capture.tables.redaction import redacted

    package = wanted.brokers.package
    check_tables(names, package)
    with usage_errors():
        tables.checked(wanted.where, names, package)
    files = _files(list(dict.fromkeys(names)), output)
    # show the rows of a live capture at once
    size = 1 if given == ["-"] and output is None else tables.BATCH_ROWS
    sources, refused = captures.sources("decode", given)
    drawn = output is not None or not sys.stdout.isatty()
    if view.secrets:
        for file in filter(None, files.values()):
            make_private(file)
    with (
        progress(sources, drawn=drawn) as watch,
        captures.readable(given, output),
        ExitStack() as opened,
    ):
        batches = tables.read_tables(
            sources,
            files,
            ports=wanted.brokers.ports,
            brokers=wanted.brokers.addresses,
            keylog=wanted.brokers.keylog,
            batch_rows=size,
            secrets=view.secrets,
            watch=watch,
            where=wanted.where,
            registry=None if package is None else registry(package),
        )
        to = {name: _opened(schema_of(name, message), file) for name, file in files.items()}
        writers = {name: opened.enter_context(writer) for name, writer in to.items()}
        for name, batch in batches:
            shown = redacted(name, batch, package) if view.redact else batch
            for made in with_bodies(name, message, shown):
                writers[name](made)
    return refused


class _NoPandas(MetaPathFinder):
    """Lets imports of pandas fail."""

    def find_spec(self, name: str, *_: object) -> None:
        """Fail for pandas, and find nothing else."""
        if name == "pandas":
            raise ModuleNotFoundError("not used here", name=name)


def import_arrow() -> None:
    """Import pyarrow without pandas.

    pyarrow imports pandas, where that is installed, when the first array of a process is made. No
    command uses pandas, and importing it takes longer than decoding 20 MB.
    """
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def _opened(schema: pa.Schema, file: Path | None) -> AbstractContextManager[Write]:
    """Open the output of a table, and make its directory."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    return _format(file)(file, schema)


def _files(names: list[str], output: Path | None) -> dict[str, Path | None]:
    """Return the output file of each table."""
    several = len(names) > 1
    if output is None:
        if several:
            raise typer.BadParameter("required for several tables", param_hint="--output")
        return {names[0]: None}
    if TABLE in output.name:
        files = {name: output.with_name(output.name.replace(TABLE, name)) for name in names}
    elif output.is_dir() or not output.suffix or (several and output.suffix not in FORMATS):
        files = {name: output / f"{name}.parquet" for name in names}
    elif several:
        raise typer.BadParameter(
            f"{str(output)!r} is one file: several tables need a directory or a name with {TABLE}",
            param_hint="--output",
        )
    else:
        files = {names[0]: output}
    _format(next(iter(files.values())))
    return dict(files)


# -- formats


@contextmanager
def _jsonl(output: Path | None, _: pa.Schema) -> Iterator[Write]:
    def write(batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            out.write(json.dumps(plain(row), separators=(",", ":")) + "\n")
        out.flush()

    with _text(output) as out:
        yield write


@contextmanager
def _csv(output: Path | None, schema: pa.Schema) -> Iterator[Write]:
    def write(batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            lines.writerow(cell(value) for value in row.values())

    with _text(output) as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(schema.names)
        yield write


GROUP_ROWS: Final = 1 << 15
GROUP_BYTES: Final = 1 << 24
"""Maximum rows of a Parquet row group, and bytes after which it is written."""


@contextmanager
def parquet_writer(output: Path | None, schema: pa.Schema) -> Iterator[Write]:
    """Open a Parquet file, and return what writes a batch."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    from kafkawire.capture.tables.parquet import repeating_columns

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
            out.write_table(pa.Table.from_batches(buffered, schema), row_group_size=GROUP_ROWS)
        buffered.clear()
        rows = size = 0

    with ParquetWriter(
        str(output),
        schema,
        compression="zstd",
        use_dictionary=list(repeating_columns(schema)),
        write_statistics=[field.name for field in schema if not _is_payload(field.type)],
    ) as out:
        yield write
        flush()


def _is_payload(type: pa.DataType) -> bool:
    """Return whether statistics of a column are useless: bytes and nested types."""
    import pyarrow as pa

    return bool(pa.types.is_binary(type) or pa.types.is_nested(type))


@contextmanager
def arrow_writer(output: Path | None, schema: pa.Schema) -> Iterator[Write]:
    """Open an Arrow IPC file, and return what writes a batch."""
    import pyarrow as pa

    # compressing with lz4 is faster than writing the uncompressed pages
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_file(str(output), schema, options=options) as out:
        yield out.write_batch


FORMATS: Final[dict[str, Callable[[Path | None, pa.Schema], AbstractContextManager[Write]]]] = {
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".parquet": parquet_writer,
    ".arrow": arrow_writer,
}
"""File extension -> its writer."""


def _format(
    output: Path | None,
) -> Callable[[Path | None, pa.Schema], AbstractContextManager[Write]]:
    found = FORMATS.get(".jsonl" if output is None else output.suffix)
    if found is None:
        raise typer.BadParameter(
            f"unknown format {str(output)!r}: expected one of {', '.join(FORMATS)}",
            param_hint="--output",
        )
    return found


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
    made = plain(value)
    if isinstance(made, bool | dict | list):
        return json.dumps(made, separators=(",", ":"))
    return made
