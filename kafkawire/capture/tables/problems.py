"""Builds the `problems` table.

It has one row per message or run of bytes that was not decoded, is missing or contradicts another.
"""

from __future__ import annotations

from typing import Any, Final

from ..exchanges.exchanges import Ended
from ..rows import Located, Row, Status
from .columns import INT16, INT32, INT64, TEXT, Column, Columns
from .context import WHERE, Context
from .extraction.record_batches import CorruptRecords, batches_in, records_fields


def _error(error: str | CorruptRecords) -> str:
    """Return the text of an error, which may name a topic."""
    if isinstance(error, str):
        return error
    topic = error.topic.name or error.topic.id_text
    return f"{topic}-{error.partition}: {error.error}"


COLUMNS: Final[Columns] = (
    *WHERE,
    Column("direction", TEXT, "Direction of the bytes; null for the capture file itself."),
    Column(
        "kind",
        TEXT,
        "A message status other than `ok`; `gap`, `out_of_order`, `conflict`, `discarded`, "
        "`unparsed`, `truncated`, `unreadable`, `skipped`, `copy`, `other_protocol`; or `records` "
        "for a corrupt record batch.",
    ),
    Column("length", INT64, "Bytes of the message, the gap, the run or the skipped packets."),
    Column("api_key", INT16, "API key, if the problem is in a message."),
    Column("api_name", TEXT, "Name of the API."),
    Column("api_version", INT16, "Version of the request."),
    Column("correlation_id", INT32, "Correlation id."),
    Column("client_id", TEXT, "Client id."),
    Column("error", TEXT, "What is wrong: reason, field path and byte offset.", _error),
)

NO_PROBLEM: Final = frozenset({Status.OK, Status.SASL_TOKEN, Status.TLS, Status.PROXY})
"""Statuses of rows without a problem."""


def rows_of(item: Located | Ended, context: Context) -> list[tuple[Any, ...]]:
    """Build the rows of the problems of a row, and of record batches in it."""
    if not isinstance(item, Located):
        return []
    row = item.row
    rows = []
    if row.status not in NO_PROBLEM:
        rows.append(_row(item, row.status.value, row.length, row.error, context))
    for field in records_fields(row, context.names):
        for records in batches_in(field):
            if isinstance(records, CorruptRecords):
                rows.append(_row(item, "records", len(field.data), records, context))
    return rows


def _row(
    item: Located, kind: str, length: int, error: str | CorruptRecords, context: Context
) -> tuple[Any, ...]:
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
