"""Writes tables of captures as JSON lines, CSV, Parquet or Arrow (`decode --table`).

Law: the format is that of the file extension (`table_formats`), and each table has a file of its
own; missing directories are created.

    -o a.csv            one table
    -o DIR              DIR/exchanges.parquet, DIR/records.parquet, ...
    -o a-{table}.jsonl  a-exchanges.jsonl, a-records.jsonl, ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import typer

from ..input import sources as captures
from ..input.filters import usage_errors
from ..input.names import check_tables
from ..input.progress import progress
from ..pipes import make_private
from .bodies import schema_of, with_bodies
from .table_formats import AT_ONCE, FORMATS, Text, Write, WritesInThread, format_of

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkawire.capture.filters import Filter
    from kafkawire.capture.multifile import Traffic

    from ..input.entries import Wanted
    from .messages import View

TABLE: Final = "{table}"
"""Placeholder for the name of the table in the name of an output file."""


class Rendering(NamedTuple):
    """What is written of the rows of tables.

    texts: what makes the text of a batch, where a table's format has one. where: the filter of the
    rows. message: the one whose bodies are columns of the table `messages`, which has no other.
    package: the import name of the messages' package, None for Kafka's.
    """

    texts: dict[str, Text | None]
    where: Filter | None
    redact: bool
    message: str | None
    package: str | None

    @property
    def is_light(self) -> bool:
        """Whether batches are written as they are: writing takes more time than rendering."""
        is_changed = self.where is not None or self.redact or self.message is not None
        return not is_changed and not any(self.texts.values())

    def schema(self, name: str) -> pa.Schema:
        """Return the schema of a table."""
        return schema_of(name, self.message)

    def render(
        self, name: str, batch: pa.RecordBatch, first_ns: int | None
    ) -> list[pa.RecordBatch | str]:
        """Return what is written of a batch. first_ns: when the first packet was captured."""
        if self.where is not None:
            from kafkawire.capture.tables.filtering import filtered

            batch = filtered(batch, name, self.where, first_ns)
            if not len(batch):
                return []
        if self.redact:
            from kafkawire.capture.tables.redaction import redacted

            batch = redacted(name, batch, self.package)
        made = with_bodies(name, self.message, batch)
        text = self.texts[name]
        return list(made) if text is None else [text(each) for each in made]


class Reading(NamedTuple):
    """Which tables are read, and how.

    size: rows of a batch at most. secrets: whether they are shown. jobs: the number of processors
    that may be used.
    """

    tables: list[str]
    size: int
    secrets: bool
    jobs: int


class Written(NamedTuple):
    """How writing ended.

    refused: the number of files skipped because they are not captures. interrupted: the number of
    packets read before an interrupt; None if there was none.
    """

    refused: int
    interrupted: int | None


Read = Callable[["Traffic", Reading, Rendering], Iterator[tuple[str, "pa.RecordBatch | str"]]]
"""Reads tables of captures, and yields what is written, with the name of the table."""


def write(
    given: list[str],
    names: list[str],
    message: str | None,
    to: Path | None,
    wanted: Wanted,
    view: View,
    jobs: int,
    read: Read,
) -> Written:
    """Write tables of captures, read as one capture in one pass.

    message: as in Rendering.

    Without `to` as JSON lines to standard output. An interrupt ends the captures: the tables have
    the rows until then. InputError if there are no captures; usage errors for unknown tables and
    file extensions, and for a filter by what a table lacks.
    """
    import_arrow()
    from kafkawire.capture.tables.reading import BATCH_ROWS, checked

    from ..input.interrupts import InterruptibleTraffic, interrupts

    brokers = wanted.brokers
    check_tables(names, brokers.package)
    with usage_errors():
        checked(wanted.where, names, brokers.package)
    files = _files(list(dict.fromkeys(names)), to)
    # show the rows of a live capture at once
    size = 1 if given == ["-"] and to is None else BATCH_ROWS
    sources, refused = captures.sources("decode", given)
    drawn = to is not None or not sys.stdout.isatty()
    if view.secrets:
        for file in filter(None, files.values()):
            make_private(file)
    texts = {name: format_of(file).text for name, file in files.items()}
    rendering = Rendering(texts, wanted.where, view.redact, message, brokers.package)
    with (
        progress(sources, drawn=drawn) as watch,
        captures.readable(given, to),
        interrupts() as noted,
        ExitStack() as opened,
    ):
        traffic = InterruptibleTraffic(
            sources,
            brokers.ports,
            brokers=brokers.addresses,
            watch=watch,
            keylog=brokers.keylog,
            package=brokers.package,
        )
        traffic.noted = noted
        found = read(traffic, Reading(list(files), size, view.secrets, jobs), rendering)
        writers = _writers(files, rendering, jobs, opened)
        for name, made in found:
            writers[name](made)
    return Written(refused, watch.packets if noted.requested else None)


UNUSED: Final = frozenset({"pandas", "dateutil"})
"""What pyarrow imports, where it is installed, when the first array of a process is made."""


class _Unused:
    """Lets imports of UNUSED fail: a finder for `sys.meta_path`."""

    def find_spec(self, name: str, *_: object) -> None:
        """Fail for UNUSED, and find nothing else."""
        if name in UNUSED:
            raise ModuleNotFoundError("not used here", name=name)


def import_arrow() -> None:
    """Import pyarrow without UNUSED.

    No command uses them, and importing pandas takes longer than decoding 20 MB.
    """
    import pyarrow as pa

    finder = _Unused()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def _writers(
    files: dict[str, Path | None], rendering: Rendering, jobs: int, opened: ExitStack
) -> dict[str, Write]:
    """Open the output of each table, and make its directory."""
    writes = WritesInThread() if jobs > 1 and rendering.is_light else AT_ONCE
    writers = {}
    for name, file in files.items():
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        writer = format_of(file).opened(file, rendering.schema(name), writes)
        writers[name] = opened.enter_context(writer)
    return writers


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
    format_of(next(iter(files.values())))
    return dict(files)
