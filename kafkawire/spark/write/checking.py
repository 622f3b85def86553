"""Checks the files of an output directory against its manifest.

Every file that the manifest names is there, with its rows and bytes, and no other file that a
reader of the tables would read. Contents are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..splitting.stores import filesystem
from .output_directory import OutputDirectory, OutputFile, OutputRefused


class Difference(NamedTuple):
    """A file that is not as the manifest says. name: below the output directory."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class Checked(NamedTuple):
    """The result of a check. files, rows: that the manifest names."""

    files: int
    rows: int
    differences: list[Difference]


def check_files(output: OutputDirectory) -> Checked:
    """Compare an output directory with its manifest. Raises OutputRefused without a manifest."""
    manifest = output.manifest()
    try:
        listed = [OutputFile(**each) for each in manifest["files"]]
        tables = [*manifest["tables"]]
    except (KeyError, TypeError):
        raise OutputRefused(
            output.store.uri(output.root),
            "the manifest lists no files: another version wrote it",
        ) from None
    present = dict(file for table in tables for file in output.listed(table))
    differences = [
        Difference(file.name, reason)
        for file in listed
        for reason in _differences(output, file, present.pop(file.name, None))
    ]
    differences += [Difference(name, "not in the manifest") for name in sorted(present)]
    return Checked(len(listed), sum(file.rows for file in listed), differences)


def _differences(output: OutputDirectory, file: OutputFile, size: int | None) -> Iterator[str]:
    if size is None:
        yield "missing"
    elif size != file.bytes:
        yield f"{size} bytes, not {file.bytes}"
    else:
        path = f"{output.root}/{file.name}"
        try:
            rows = pq.read_metadata(path, filesystem=filesystem(output.store)).num_rows
        except (pa.ArrowException, OSError) as error:
            yield f"not readable: {(str(error).splitlines() or [''])[0]}"
            return
        if rows != file.rows:
            yield f"{rows} rows, not {file.rows}"
