"""Tables that reports make: one pass over a capture collects them, their rows come at its end.

As of the tables of `kafkawire.capture.tables`, columns never depend on the capture. Memory
grows with clients, topics, partitions and groups, not with messages.

    captures --Reading--> collectors of all tables --at the end--> rows --> record batches
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kafkawire.capture.tables.columns import Columns

from ..reading import Collector, Reading
from . import absences, deliveries, findings, lag, load

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS: Final = 4096
"""Rows of a record batch at most."""


class Collected(Protocol):
    """What collects a table, and its rows at the end of the capture."""

    @property
    def collectors(self) -> Sequence[Collector]:
        """The collectors, in the order in which they need each other."""

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Build the rows of the table."""


class ReportTable(NamedTuple):
    """A table: its description, its columns, and what collects it."""

    description: str
    columns: Columns
    collect: Callable[[Reading], Collected]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of every batch."""
        from kafkawire.capture.tables.arrow.schemas import schema_of

        return schema_of(self.columns)


REPORT_TABLES: Final[dict[str, ReportTable]] = {
    "absences": ReportTable(
        "One row per time in which a member of a group was silent or out of the group, or in which "
        "a group had no members.",
        absences.COLUMNS,
        absences.AbsenceTable,
    ),
    "deliveries": ReportTable(
        "One row per member of a share group and partition: records acquired and acknowledged.",
        deliveries.COLUMNS,
        deliveries.DeliveryTable,
    ),
    "findings": ReportTable(
        "One row per finding of `kafkawire diagnose`, the most harmful first.",
        findings.COLUMNS,
        findings.Findings,
    ),
    "lag": ReportTable(
        "One row per group, partition and bucket of time with commits.", lag.COLUMNS, lag.Lag
    ),
    "load": ReportTable(
        "One row per client, broker, API and bucket of time: rates, and where the time of requests "
        "went.",
        load.COLUMNS,
        load.LoadTable,
    ),
}
"""Every table by name."""


def report_schemas() -> dict[str, pa.Schema]:
    """Return the Arrow schema of each table."""
    return {name: table.schema for name, table in REPORT_TABLES.items()}


def read_report_tables(
    captures: Reading, names: Sequence[str], batch_rows: int = BATCH_ROWS
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read tables in one pass; each batch comes with its table's name. Raises KeyError."""
    from kafkawire.capture.tables.arrow.schemas import batches

    collected = {name: REPORT_TABLES[name].collect(captures) for name in names}
    captures.read(*(each for table in collected.values() for each in table.collectors))
    captures.name_topics()
    for name, table in collected.items():
        columns = REPORT_TABLES[name].columns
        for batch in batches(columns, table.rows(), batch_rows, _nothing):
            yield name, batch


def _nothing() -> None:
    """Do nothing before a batch: topics have their names."""
