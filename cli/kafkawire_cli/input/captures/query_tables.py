"""Reads the tables that SQL statements need."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafkawire.errors import QueryError

from .progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    import pyarrow as pa

    from kafkawire.capture.multifile import OnProblem
    from kafkawire.sql import Names

    from ..sources import Known


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
        from kafkawire.capture.multifile import Traffic
        from kafkawire.reports.reading import Reading
        from kafkawire.reports.tables import read_report_tables

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
            yield from read_report_tables(Reading(traffic, watch), names)

    def _messages(
        self, names: Sequence[str], columns: Names
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        from kafkawire.capture.tables import read_tables
        from kafkawire.capture.tables.redaction import redacted

        brokers, shown = self._brokers, self._shown
        with progress(self._sources, drawn=not sys.stdout.isatty()) as watch:
            for name, batch in read_tables(
                self._sources,
                names,
                ports=brokers.ports,
                brokers=brokers.addresses,
                secrets=shown.secrets,
                watch=watch,
                keylog=brokers.keylog,
                tunnels=brokers.tunnels,
                bodies=columns is None or "body" in columns,
                on_problem=self._on_problem,
            ):
                yield name, redacted(name, batch) if shown.redact else batch
