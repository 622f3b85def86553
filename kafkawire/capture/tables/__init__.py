"""Tables of a capture as Arrow record batches: the contract for the command line, Parquet and
Spark.

Law: a table's columns never depend on the capture; rows come in bounded batches while the capture
is read, and a capture of any size costs bounded memory.

    capture(s) --> rows --> exchanges --> a table's rows --> record batches
                     `--> names of topics ----------------------^  filled in when a batch goes out

Of the capture engine, this package alone imports pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...primitives import DEFAULT_LIMITS, Limits
from ..files.source import Watch
from ..multifile import Source, Traffic
from ..tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from . import connections, exchanges, group_events, messages, partitions, problems, records
from .columns import Columns, batches, schema_of
from .context import Context
from .multiple import together
from .passes import EXCHANGES, RECORDS

BATCH_ROWS: Final = 4096
"""Rows of a record batch at most, unless the caller says otherwise."""


class Table(NamedTuple):
    """A table: what a row of it is, its columns, and how rows are made of decoded messages."""

    says: str
    columns: Columns
    rows: Callable[[Context], Iterator[tuple[Any, ...]]]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of every batch."""
        return schema_of(self.columns)


TABLES: Final[dict[str, Table]] = {
    "exchanges": Table("A request with its response.", exchanges.COLUMNS, exchanges.rows),
    "messages": Table("A frame, its body as JSON.", messages.COLUMNS, messages.rows),
    "records": Table("A record that is produced or fetched.", records.COLUMNS, records.rows),
    "partitions": Table(
        "A partition that an exchange speaks of.", partitions.COLUMNS, partitions.rows
    ),
    "connections": Table("A TCP connection.", connections.COLUMNS, connections.rows),
    "group_events": Table(
        "Something that happened to a group or one of its members.",
        group_events.COLUMNS,
        group_events.rows,
    ),
    "problems": Table(
        "Something that was not understood, not there, or contradictory.",
        problems.COLUMNS,
        problems.rows,
    ),
}
"""Every table by name."""


def read(
    source: Source | Sequence[Source],
    table: str,
    *,
    ports: Collection[int] = (),
    batch_rows: int = BATCH_ROWS,
    secrets: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
) -> Iterator[pa.RecordBatch]:
    """Read a table of a capture; batches come as the capture is read.

    source: a path, a binary stream, or several paths that are read as one capture in the order of
    their first packets. ports, brokers: ports of brokers, and brokers as `address:port`, where they
    are known. secrets: whether credentials are shown. watch: told how far reading is. reassembly:
    how much of a connection is waited for.

    Topic ids are resolved with names from anywhere in the capture, for which files are read a
    second time where it is needed; of a stream, with names that came up to then.

    Raises KeyError for a table there is none of; BadMagic or TruncatedCapture where a file is no
    capture; OSError.
    """
    TABLES[table]
    traffic = _traffic(source, ports, limits, brokers, watch, reassembly)
    return _one(table, Context(traffic, secrets, limits), batch_rows)


def read_tables(
    source: Source | Sequence[Source],
    names: Iterable[str],
    *,
    ports: Collection[int] = (),
    batch_rows: int = BATCH_ROWS,
    secrets: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read several tables of a capture in one pass; each batch comes with its table's name. All
    else is as `read` does it.
    """
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        TABLES[name]
    traffic = _traffic(source, ports, limits, brokers, watch, reassembly)
    return together(Context(traffic, secrets, limits), chosen, batch_rows)


def _traffic(
    source: Source | Sequence[Source],
    ports: Collection[int],
    limits: Limits,
    brokers: Collection[str],
    watch: Watch | None,
    reassembly: ReassemblyLimits,
) -> Traffic:
    sources: list[Any] = list(source) if isinstance(source, list | tuple) else [source]
    return Traffic(sources, ports, limits, brokers=brokers, watch=watch, reassembly=reassembly)


def _one(name: str, context: Context, batch_rows: int) -> Iterator[pa.RecordBatch]:
    if name in (EXCHANGES, RECORDS):
        yield from (batch for _, batch in together(context, [name], batch_rows))
        return
    table = TABLES[name]
    yield from batches(table.columns, table.rows(context), batch_rows, context.name_topics)


__all__ = ["BATCH_ROWS", "TABLES", "Table", "read", "read_tables"]
