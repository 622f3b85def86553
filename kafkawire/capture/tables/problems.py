"""The `problems` table: a row for what was not understood, not there, or contradictory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..engine import Located
from ..exchanges.exchanges import Ended
from ..rows import Row, Status
from .columns import INT16, INT32, INT64, TEXT, Column, Columns
from .context import WHERE, Context
from .extraction.record_batches import Broken, batches_in, carried

COLUMNS: Final[Columns] = (
    *WHERE,
    Column("direction", TEXT, "The side the bytes came from; null for the capture itself."),
    Column(
        "kind",
        TEXT,
        "A status of messages other than `ok`; `gap`, `conflict`, `discarded`, `unparsed`, "
        "`truncated`, `unreadable`, `other_protocol`; or `records` for a broken record batch.",
    ),
    Column("length", INT64, "Bytes concerned: of the message, the gap, the run."),
    Column("api_key", INT16, "API key, where a message is concerned."),
    Column("api_name", TEXT, "Name of the API."),
    Column("api_version", INT16, "Version of the request."),
    Column("correlation_id", INT32, "Correlation id."),
    Column("client_id", TEXT, "Client id."),
    Column("error", TEXT, "What is wrong: reason, path and offset."),
)

NO_PROBLEM: Final = frozenset({Status.OK, Status.SASL_TOKEN})
"""Statuses of rows that are as they should be."""


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Make the rows of the table."""
    for item in context.located():
        yield from rows_of(item, context)


def rows_of(item: Located | Ended, context: Context) -> list[tuple[Any, ...]]:
    """Make the rows that say what is wrong with a row, or with batches in it."""
    if not isinstance(item, Located):
        return []
    row = item.row
    made = []
    if row.status not in NO_PROBLEM:
        made.append(_row(item, row.status.value, row.length, row.error, context))
    for field in carried(row, context.names):
        for found in batches_in(field):
            if isinstance(found, Broken):
                made.append(_row(item, "records", len(field.data), _said(found), context))
    return made


def _row(item: Located, kind: str, length: int, error: str, context: Context) -> tuple[Any, ...]:
    row: Row = item.row
    return (
        *context.where(row, *item[:3]),
        row.direction or None,
        kind,
        length,
        row.api_key,
        row.api_name,
        row.api_version,
        row.correlation_id,
        row.client_id,
        error or None,
    )


def _said(found: Broken) -> str:
    topic = found.topic.name or found.topic.id_text
    return f"{topic}-{found.partition}: {found.error}"
