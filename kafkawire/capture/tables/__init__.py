"""Reads a capture as tables of Arrow record batches, for the command line, Parquet and Spark.

Law: a table's columns never depend on the capture; rows come in bounded batches while the capture
is read, and a capture of any size takes bounded memory.

    capture(s) --> rows --> exchanges --> a table's rows --> record batches
                     `--> topic names --------------------------^  resolved when a batch is made

Of the capture engine, this package alone imports pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...primitives import DEFAULT_LIMITS, Limits
from ..files.source import Watch
from ..frames.decoding import LocatedItem
from ..multifile import Source, Traffic
from ..rows import Located
from ..tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from . import connections, exchanges, group_events, messages, partitions, problems, records
from .columns import Columns, batches, schema_of
from .context import Context
from .multiple import read_together
from .passes import EXCHANGES, RECORDS

BATCH_ROWS: Final = 4096
"""Rows of a record batch at most, unless the caller says otherwise."""


class Table(NamedTuple):
    """A table: its description, its columns, and what builds its rows of decoded messages."""

    description: str
    columns: Columns
    rows: Callable[[Context], Iterator[tuple[Any, ...]]]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of every batch."""
        return schema_of(self.columns)


TABLES: Final[dict[str, Table]] = {
    "exchanges": Table(
        "One row per exchange: a request with its response.", exchanges.COLUMNS, exchanges.rows
    ),
    "messages": Table(
        "One row per message (request or response), its body as JSON.",
        messages.COLUMNS,
        messages.rows,
    ),
    "records": Table(
        "One row per record that was produced or fetched.", records.COLUMNS, records.rows
    ),
    "partitions": Table(
        "One row per exchange and partition that its request or response refers to.",
        partitions.COLUMNS,
        partitions.rows,
    ),
    "connections": Table("One row per TCP connection.", connections.COLUMNS, connections.rows),
    "group_events": Table(
        "One row per event of a group or one of its members.",
        group_events.COLUMNS,
        group_events.rows,
    ),
    "problems": Table(
        "One row per problem: messages or bytes that were not decoded, are missing from the "
        "capture, or contradict each other.",
        problems.COLUMNS,
        problems.rows,
    ),
}
"""Every table by name."""


def read(  # noqa: PLR0913 - options by name
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
    are known. secrets: whether credentials are shown. watch: reports progress. reassembly: limits
    of TCP reassembly.

    Topic ids are resolved to names from anywhere in the capture: files are read a second time if
    needed; in a stream, only names seen so far are known.

    Raises KeyError for an unknown table; BadMagic or TruncatedCapture for a file that is not a
    capture; OSError.
    """
    TABLES[table]
    traffic = _traffic(source, ports, limits, brokers, watch, reassembly)
    return _one(table, Context(traffic, secrets, limits), batch_rows)


def read_tables(  # noqa: PLR0913 - options by name
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
    bodies: bool = True,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read several tables of a capture in one pass; each batch comes with its table's name.

    bodies: False if `body` of `messages` is not needed: it is null if that is the only table, which
    takes half of the time. Other arguments and errors are those of `read`.
    """
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        TABLES[name]
    traffic = _traffic(source, ports, limits, brokers, watch, reassembly)
    is_bare = not bodies and chosen == ["messages"]
    context = (_BareContext if is_bare else Context)(traffic, secrets, limits)
    return read_together(context, chosen, batch_rows)


class _BareContext(Context):
    """Removes decoded bodies from rows, once their names are learned."""

    def decode(self, located_item: LocatedItem) -> Located:
        found = super().decode(located_item)
        return found._replace(row=found.row._replace(message=None, raw=b""))


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
        yield from (batch for _, batch in read_together(context, [name], batch_rows))
        return
    table = TABLES[name]
    yield from batches(table.columns, table.rows(context), batch_rows, context.name_topics)


__all__ = ["BATCH_ROWS", "TABLES", "Table", "read", "read_tables"]
