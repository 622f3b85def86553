"""Reads the tables that SQL statements need."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafkawire.errors import QueryError

from .progress import note_tables, progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    import pyarrow as pa

    from kafkawire.capture.multifile import OnProblem, Traffic
    from kafkawire.sql import Names

    from ..sources import Known
    from .progress import Progress


class Shown(NamedTuple):
    """What is shown of the captures: secrets, and keys and values of records."""

    secrets: bool
    redact: bool


class QueryTables:
    """Reads the tables of captures: those of messages and those of reports, in a pass each.

    repeatable: whether it can be done several times. on_problem: called for each problem of a file,
    in every pass.
    """

    def __init__(
        self,
        sources: Sequence[Path | BinaryIO],
        brokers: Known,
        shown: Shown,
        on_problem: OnProblem,
    ) -> None:
        self._on_problem = on_problem
        self.repeatable = all(isinstance(source, Path) for source in sources)
        self._sources = sources
        self._brokers = brokers
        self._shown = shown
        self._noted = False
        self._context = copy_context()  # DuckDB reads in threads of its own

    def read(self, names: Sequence[str], columns: Names) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Read tables; see `kafkawire.sql.Read`. Raises QueryError for a stream read twice."""
        from kafkawire.reports.tables import REPORT_TABLES
        from kafkawire.sql import ONCE

        reports = [name for name in names if name in REPORT_TABLES]
        others = [name for name in names if name not in REPORT_TABLES]
        if others and reports and not self.repeatable:
            raise QueryError(ONCE)
        if reports:
            yield from self._reports(reports)
        if others:
            yield from self._messages(others, columns)

    def _reports(self, names: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        from kafkawire.reports.reading import Reading
        from kafkawire.reports.tables import read_report_tables

        with self._traffic(names) as (traffic, watch):
            yield from read_report_tables(Reading(traffic, watch), names)

    def _messages(
        self, names: Sequence[str], columns: Names
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        from kafkawire.capture.tables.reading import read_traffic
        from kafkawire.capture.tables.redaction import redacted

        bodies = columns is None or "body" in columns
        with self._traffic(names) as (traffic, _):
            for name, batch in read_traffic(
                traffic, names, secrets=self._shown.secrets, bodies=bodies
            ):
                yield name, redacted(name, batch) if self._shown.redact else batch

    @contextmanager
    def _traffic(self, names: Sequence[str]) -> Iterator[tuple[Traffic, Progress]]:
        """Open the captures for a pass over some tables; the first one notes what they lack."""
        from kafkawire.capture.multifile import Traffic

        brokers = self._brokers
        with progress(self._sources, drawn=not sys.stdout.isatty()) as watch:
            traffic = Traffic(
                self._sources,
                brokers.ports,
                brokers=brokers.addresses,
                watch=watch,
                keylog=brokers.keylog,
                tunnels=brokers.tunnels,
            )
            traffic.on_problem = self._on_problem
            yield traffic, watch
        if not self._noted:
            self._context.run(note_tables, traffic, names, watch.packets)
            self._noted = True
