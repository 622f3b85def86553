"""Builds the `messages` table: one row per message, its body as JSON."""

from __future__ import annotations

import json
from typing import Any, Final

from ...protocol.embedded import add_payloads
from ...protocol.json_text import shown_json, to_json_text
from ...protocol.payload_fields import payload_fields_of
from ..exchanges.exchanges import Ended
from ..jsonl.formats import raw_is_secret
from ..rows import Located, Row, Status
from .columns import BYTES, INT16, INT32, INT64, TEXT, Column, Columns
from .context import WHERE, Context
from .exchanges import since

COLUMNS: Final[Columns] = (
    *WHERE,
    Column("direction", TEXT, "`request` or `response`."),
    Column("api_key", INT16, "API key; for a response, that of its request."),
    Column("api_name", TEXT, "Name of the API; null for an unknown key."),
    Column("api_version", INT16, "Version of the request."),
    Column("body_version", INT16, "Version of the body; null if it was not decoded."),
    Column("correlation_id", INT32, "Correlation id."),
    Column("client_id", TEXT, "Client id; for a response, that of its request."),
    Column("length", INT32, "Size of the message, without the 4-byte size field."),
    Column("status", TEXT, "Decoding status; `ok` if decoded completely, byte for byte."),
    Column("error", TEXT, "Why it was not decoded completely."),
    Column("request_packet", INT64, "For a response: number of the last packet of its request."),
    Column(
        "latency_ns", INT64, "For a response: nanoseconds since the last packet of its request."
    ),
    Column("body", TEXT, "The body in Kafka's JSON form; null if it was not decoded."),
    Column(
        "raw",
        BYTES,
        "Bytes of an undecoded body; empty where they may contain secrets.",
    ),
)


def rows_of(item: Located | Ended, context: Context) -> list[tuple[Any, ...]]:
    """Build the row of a message; no row for anything else."""
    if not isinstance(item, Located) or not item.row.is_message:
        return []
    row = item.row
    request_packet = row.request_packet
    values = (
        *context.where(row, *item[:3]),
        row.direction,
        row.api_key,
        row.api_name,
        row.api_version,
        row.body_version,
        row.correlation_id,
        row.client_id,
        row.length,
        row.status.value,
        row.error or None,
        None if request_packet is None else context.traffic.place(request_packet)[1],
        since(row.request_time_ns, row.time_ns),
        _body(row, context),
        _raw(row, context),
    )
    return [values]


def _body(row: Row, context: Context) -> str | None:
    if row.message is None or row.body_version is None:
        return None
    message, version, secrets = row.message, row.body_version, context.secrets
    doubtful = row.status is not Status.OK
    cls: Any = type(message)  # mypy does not see that it is hashable
    if not payload_fields_of(cls):
        return to_json_text(message, version, secrets=secrets, doubtful=doubtful)
    obj = shown_json(message, version, secrets, doubtful)
    add_payloads(obj, message, version, limits=context.limits, secrets=secrets)
    return json.dumps(obj, separators=(",", ":"))


def _raw(row: Row, context: Context) -> bytes | None:
    if row.message is not None:
        return None
    return b"" if not context.secrets and raw_is_secret(row) else row.raw
