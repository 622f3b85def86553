"""Checks the output of a watch against its commit log.

As for a job, every batch that a commit names is there, with its rows, and no other folder that
a reader of the tables would read. Contents are not compared. Nothing is locked or changed: a watch
may go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...capture.files.listing import HIDDEN
from ..write.checking import Checked, Difference
from ..write.output_directory import WATCH, OutputRefused
from .commit_log import Commit, read_commit


def is_watch(output: Path) -> bool:
    """Return whether a watch writes to a directory."""
    return (output / WATCH).is_dir()


def check_watch(output: Path) -> Checked:
    """Compare an output directory with the commits of its watch. Raises OutputRefused."""
    paths = sorted((output / WATCH / "commits").glob("*.json"))
    try:
        commits = [read_commit(path) for path in paths]
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise OutputRefused(
            str(output), f"a commit of the watch is not readable: {error}"
        ) from None
    if not commits:
        raise OutputRefused(str(output), "the watch has committed nothing yet")
    tables = sorted({table for one in commits for table in one.tables})
    names = {_folder(table, one) for one in commits for table in one.tables}
    differences: list[Difference] = []
    files = rows = 0
    for one in commits:
        for table, expected in sorted(one.tables.items()):
            name = _folder(table, one)
            parts = sorted((output / name).glob("[!._]*.parquet"))
            files += len(parts)
            rows += expected
            differences += [
                Difference(name, why) for why in _differences(output, one, parts, table)
            ]
    present = [path for table in tables for path in sorted((output / table).glob("*"))]
    for path in present:
        name = path.relative_to(output).as_posix()
        if name not in names and not path.name.startswith(HIDDEN):
            differences.append(Difference(name, "not in the commit log"))
    return Checked(files, rows, differences)


def _folder(table: str, one: Commit) -> str:
    return f"{table}/batch={one.batch}"


def _differences(output: Path, one: Commit, parts: list[Path], table: str) -> Iterator[str]:
    """Yield what is different of a batch of a table."""
    expected = one.tables[table]
    if not parts and expected:
        staged = output / WATCH / "staging" / one.token / "ready" / table
        yield "committed, not published yet" if staged.is_dir() else "missing"
        return
    rows = 0
    for part in parts:
        try:
            rows += pq.read_metadata(part).num_rows
        except (pa.ArrowException, OSError) as error:
            yield f"{part.name} is not readable: {(str(error).splitlines() or [''])[0]}"
            return
    if rows != expected:
        yield f"{rows} rows, not {expected}"
