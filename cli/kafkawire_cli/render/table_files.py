"""The files that tables are written to, and what they say of the run that wrote them.

The tables of a directory are those of the same captures and options, as their metadata say: a
run that would leave other ones there is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from kafkawire import __version__
from kafkawire.display import printable

from ..input.options import Compression
from .table_formats import FORMATS, format_of

if TYPE_CHECKING:
    from kafkawire.capture.filters import Filter
    from kafkawire.capture.multifile import Source

TABLE: Final = "{table}"
"""Placeholder for the name of the table in the name of an output file."""

RUN: Final = "kafkawire"
"""Key of the metadata of Parquet and Arrow files: the run, as JSON."""


def files_of(
    names: list[str], output: Path | None, compression: Compression | None
) -> dict[str, Path | None]:
    """Return the output file of each table; usage errors for what cannot be written."""
    several = len(names) > 1
    if output is None:
        if several:
            raise typer.BadParameter("required for several tables", param_hint="--output")
        format_of(None, compression)
        return {names[0]: None}
    if TABLE in output.name:
        files = {name: output.with_name(output.name.replace(TABLE, name)) for name in names}
    elif os.path.isdir(output) or not output.suffix or (several and output.suffix not in FORMATS):
        files = {name: output / f"{name}.parquet" for name in names}
    elif several:
        raise typer.BadParameter(
            f"{str(output)!r} is one file: several tables need a directory or a name with {TABLE}",
            param_hint="--output",
        )
    else:
        files = {names[0]: output}
    format_of(next(iter(files.values())), compression)
    return dict(files)


def run_metadata(
    sources: Sequence[Source], where: Filter | None, *, redacted: bool
) -> dict[str, str]:
    """Return the metadata of a run: version, inputs with their sizes, options that select rows."""
    run = {
        "version": __version__,
        "inputs": [
            {"file": str(each), "bytes": each.stat().st_size}
            if isinstance(each, Path) and each.is_file()
            else {"file": "-"}
            for each in sources
        ],
        "filter": None if where is None else where.text,
        "redact": redacted,
    }
    return {RUN: json.dumps(run)}


def require_same_run(
    files: Mapping[str, Path | None], to: Path | None, run: Mapping[str, str]
) -> None:
    """Check that other tables in the directory of the tables are of the same captures and options.

    Raises a usage error.
    """
    if to is None or to in files.values() or TABLE in to.name:
        return
    others = [name for name, about in _others(to, files) if about != run[RUN]]
    if others:
        raise typer.BadParameter(
            printable(
                f"{to} has {', '.join(others)} of other captures, options or versions; write these "
                "tables, too, or to another directory"
            ),
            param_hint="--output",
        )


def _others(to: Path, files: Mapping[str, Path | None]) -> Iterator[tuple[str, str | None]]:
    """Yield the tables in a directory that are not replaced, and the runs that wrote them."""
    from kafkawire.capture.tables import TABLES

    for name in TABLES:
        path = to / f"{name}.parquet"
        if name not in files and os.path.exists(path):
            yield name, _run_of(path)


def _run_of(path: Path) -> str | None:
    """Read the run of a file; None if it has none, or is not a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        metadata = parquet.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError):
        return None
    run = metadata.get(RUN.encode())
    return None if run is None else run.decode("utf-8", "replace")
