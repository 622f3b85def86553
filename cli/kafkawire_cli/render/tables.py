"""Writes tables of captures as JSON lines, CSV, Parquet or Arrow (`decode --table`).

The format is that of the file extension (`table_formats`), and each table has a file of its
own; missing directories are created.

    -o a.csv            one table
    -o DIR              DIR/exchanges.parquet, DIR/records.parquet, ...
    -o a-{table}.jsonl  a-exchanges.jsonl, a-records.jsonl, ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafkawire_codegen.whole_files import whole_files

from ..input import sources as captures
from ..input.captures.progress import note_tables, progress
from ..input.captures.undecoded import PROBLEMS, Undecoded
from ..input.filters import usage_errors
from ..input.names import check_tables
from ..input.options import Compression
from . import table_files
from .table_columns import RECORDS, TableColumns
from .table_files import run_metadata
from .table_formats import (
    AT_ONCE,
    FORMATS,
    TableFormat,
    Write,
    Writes,
    WritesInThread,
    format_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkawire.capture.filters import Filter
    from kafkawire.capture.multifile import Source, Traffic
    from kafkawire.capture.tables.arrow.record_fields import Fields

    from ..input.captures.interrupts import InterruptibleTraffic
    from ..input.captures.progress import Progress
    from ..input.entries import Wanted
    from .messages import View


class Rendering(NamedTuple):
    """What is written of the rows of tables.

    forms: the format of each table. where: the filter of the rows. columns: those that options
    change. package: the import name of the messages' package, None for Kafka's. run: metadata of
    the files that have any.
    """

    forms: dict[str, TableFormat]
    where: Filter | None
    redact: bool
    columns: TableColumns
    package: str | None
    run: dict[str, str]

    @property
    def is_light(self) -> bool:
        """Whether batches are written as they are: writing takes more time than rendering."""
        is_changed = (
            self.where is not None or self.redact or any(map(self.columns.changes, self.forms))
        )
        return not is_changed and not any(form.text for form in self.forms.values())

    def schema(self, name: str) -> pa.Schema:
        """Return the schema of a table."""
        schema = self.columns.schema(name)
        return schema.with_metadata({**(schema.metadata or {}), **self.run})

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
        column_values = self.columns.of(name, batch)
        text = self.forms[name].text
        return list(column_values) if text is None else [text(each) for each in column_values]


class Reading(NamedTuple):
    """Which tables are read, and how.

    size: rows of a batch at most. secrets: whether they are shown. jobs: the number of processors
    that may be used. take_records: what takes the fields of the table `records`, if another process
    writes it.
    """

    tables: list[str]
    size: int
    secrets: bool
    jobs: int
    take_records: Callable[[Fields], None] | None


class Output(NamedTuple):
    """Where tables are written. to: as given; compression: of Parquet files, None if not given."""

    to: Path | None
    compression: Compression | None


class Written(NamedTuple):
    """How writing ended.

    refused: the number of files skipped because they are not captures. interrupted: the number of
    packets read before an interrupt; None if there was none. undecoded: what was not decoded, if
    that was to be counted. matched: whether any row was written.
    """

    refused: int
    interrupted: int | None
    undecoded: Undecoded
    matched: bool


class Processes(NamedTuple):
    """The processes that make tables.

    jobs: their number. read: reads tables of captures, and yields what is written, with the name of
    the table. records: makes what starts one that writes the table `records` into what the function
    opens, and then takes the fields of the table; None where that would not help.
    """

    jobs: int
    read: Callable[[Traffic, Reading, Rendering], Iterator[tuple[str, pa.RecordBatch | str]]]
    records: Callable[
        [Callable[[], AbstractContextManager[Write]], Reading, Rendering],
        AbstractContextManager[Callable[[Fields], None]] | None,
    ]


def write(
    given: list[str],
    names: list[str],
    columns: TableColumns,
    output: Output,
    wanted: Wanted,
    view: View,
    processes: Processes,
    *,
    strict: bool = False,
) -> Written:
    """Write tables of captures, read as one capture in one pass.

    Without a file as JSON lines to standard output. columns: as in Rendering. strict: whether to
    count what is not decoded. An interrupt ends the captures: the tables have the rows until then.
    InputError without a capture; usage errors for unknown tables and file extensions, and for a
    filter by what a table lacks.
    """
    from kafkawire.capture.tables.arrow.importing import NUMPY, import_arrow

    import_arrow(NUMPY)
    from kafkawire.capture.tables.reading import BATCH_ROWS, checked

    from ..input.captures.interrupts import interrupts

    brokers, problems, undecoded = wanted.brokers, captures.FileProblems(), Undecoded()
    check_tables(names, brokers.package)
    counted = [PROBLEMS] if strict and PROBLEMS not in names else []
    with usage_errors():
        checked(wanted.where, [*names, *counted], brokers.package)
    files = table_files.files_of(list(dict.fromkeys(names)), *output)
    captures.check_output(filter(None, files.values()), [*given, brokers.keylog_file])
    is_live = given == ["-"] and output.to is None
    size = 1 if is_live else BATCH_ROWS  # rows of a live capture at once
    sources, refused = captures.sources(given)
    run = run_metadata(sources, wanted.where, redacted=view.redact)
    table_files.require_same_run(files, output.to, run)
    forms = {name: format_of(file, output.compression) for name, file in files.items()}
    forms |= dict.fromkeys(counted, FORMATS[".arrow"])
    rendering = Rendering(forms, wanted.where, view.redact, columns, brokers.package, run)
    with (
        progress(sources, drawn=output.to is not None or not sys.stdout.isatty()) as watch,
        captures.readable(given, output.to),
        interrupts() as noted,
        _whole(files, private=view.secrets) as written,
        ExitStack() as opened,
    ):
        traffic = _traffic(sources, brokers, watch)
        traffic.noted = noted
        traffic.on_problem = problems.add
        wanted_tables = Reading(list(forms), size, view.secrets, processes.jobs, None)
        reading, writers = _writers(written, wanted_tables, rendering, processes, opened)
        if strict:
            _count(undecoded, writers)
        matched = _write_all(processes.read(traffic, reading, rendering), writers, counted)
    problems.report()
    note_tables(traffic, names, 0 if matched else watch.packets, wanted.where)
    return Written(refused, watch.packets if noted.requested else None, undecoded, matched)


def _write_all(
    parts: Iterable[tuple[str, pa.RecordBatch | str]],
    writers: Mapping[str, Write],
    counted: Sequence[str],
) -> bool:
    """Write all rows; return whether there are any, but for those of tables that are counted."""
    matched = False
    for name, part in parts:
        writers[name](part)
        matched = matched or name not in counted
    return matched


def _count(undecoded: Undecoded, writers: dict[str, Write]) -> None:
    """Count the rows of the table `problems`, which are written only if that is wanted."""
    write = writers.get(PROBLEMS)

    def count(batch: pa.RecordBatch | str) -> None:
        undecoded.add(batch)
        if write is not None:
            write(batch)

    writers[PROBLEMS] = count


def _traffic(
    sources: Sequence[Source], brokers: captures.Known, watch: Progress
) -> InterruptibleTraffic:
    """Read captures as one, until an interrupt."""
    from ..input.captures.interrupts import InterruptibleTraffic

    return InterruptibleTraffic(
        sources,
        brokers.ports,
        brokers=brokers.addresses,
        watch=watch,
        keylog=brokers.keylog,
        package=brokers.package,
        tunnels=brokers.tunnels,
    )


@contextmanager
def _whole(files: dict[str, Path | None], *, private: bool) -> Iterator[dict[str, Path | None]]:
    """Make the directories of the files; yield where each is written until all are complete."""
    paths = [file for file in files.values() if file is not None]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    with whole_files(paths, private=private) as written:
        yield {name: None if file is None else written[file] for name, file in files.items()}


def _writers(
    files: dict[str, Path | None],
    reading: Reading,
    rendering: Rendering,
    processes: Processes,
    opened: ExitStack,
) -> tuple[Reading, dict[str, Write]]:
    """Open the output of each table that this process writes; start what writes `records`."""
    other = processes.records(
        partial(_opened, files, RECORDS, rendering, _writes(rendering, reading.jobs, len(files))),
        reading,
        rendering,
    )
    writes = _writes(rendering, reading.jobs)
    writers = {
        name: opened.enter_context(_opened(files, name, rendering, writes))
        for name in files
        if other is None or name != RECORDS
    }
    if other is not None:  # it starts with all that has been imported
        reading = reading._replace(take_records=opened.enter_context(other))
    return reading, writers


def _writes(rendering: Rendering, jobs: int, tables: int = 1) -> Writes:
    """Return what writes: a thread, if not every processor has a table to make."""
    return WritesInThread() if rendering.is_light and jobs > min(tables, 2) else AT_ONCE


def _opened(
    files: dict[str, Path | None], name: str, rendering: Rendering, writes: Writes
) -> AbstractContextManager[Write]:
    """Open the output of a table."""
    form = rendering.forms[name]
    return form.opened(files[name], rendering.schema(name), writes)
