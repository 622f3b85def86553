"""What `--strict` finds of tables: rows of the table `problems`, how many and the first one.

As of messages, what is merely about TLS, proxies or copies of connections is not undecoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from kafkawire.display import plural

from ...notes import print_note

if TYPE_CHECKING:
    import pyarrow as pa

PROBLEMS: Final = "problems"
"""The table that is read."""

COPY: Final = "copy"
COLUMNS: Final = ("file", "packet", "kind", "error")


class Undecoded:
    """Counts what was not decoded."""

    def __init__(self) -> None:
        self._count = 0
        self._first = ""

    def add(self, problems: pa.RecordBatch | str) -> None:
        """Add rows of the table `problems`, or their lines, which do not name the first."""
        if isinstance(problems, str):
            self._count += problems.count("\n")
            return
        rows = problems.select(list(COLUMNS)).to_pylist()
        undecoded = [row for row in rows if row["kind"] != COPY]
        if undecoded and not self._count:
            one = undecoded[0]
            self._first = f"{one['file']} packet {one['packet']}: {one['kind']}: {one['error']}"
        self._count += len(undecoded)

    def check(self) -> None:
        """Exit with 1, and say what and where, if something was not decoded."""
        if self._count:
            count = plural(self._count, "problem")
            first = f", the first: {self._first}" if self._first else ""
            print_note(f"{count} (table {PROBLEMS}){first}")
            raise typer.Exit(1)
