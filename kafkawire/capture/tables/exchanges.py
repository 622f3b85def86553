"""The columns of the `exchanges` table: one row per request with its response."""

from __future__ import annotations

from typing import Final

from ..files.blocks import NO_TIME
from .columns import (
    BODY_NUMBERS,
    BOOL,
    INT16,
    INT32,
    INT64,
    TEXT,
    TIME,
    TOPIC_PARTITIONS,
    Column,
    Columns,
    list_of,
    topic_names,
    topic_partitions,
)
from .context import WHERE

EXCHANGE: Final[Columns] = (
    *WHERE,
    Column("api_key", INT16, "API key."),
    Column("api_name", TEXT, "Name of the API; null for an unknown key."),
    Column("api_version", INT16, "Version of the request."),
    Column("correlation_id", INT32, "Correlation id."),
    Column("client_id", TEXT, "Client id, from the request's header."),
    Column("response_file", TEXT, "The file of the packet that completes the response."),
    Column("response_packet", INT64, "Number of that packet; null if no response was captured."),
)
"""The columns that identify an exchange; null if the request was not captured."""

COLUMNS: Final[Columns] = (
    *EXCHANGE,
    Column("request_bytes", INT32, "Size of the request, without the 4-byte size field."),
    Column("request_status", TEXT, "Decoding status of the request; null if not captured."),
    Column("response_time", TIME, "When the response was captured."),
    Column("response_time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("response_bytes", INT32, "Size of the response, without the 4-byte size field."),
    Column("response_status", TEXT, "Decoding status of the response; null if not captured."),
    Column(
        "latency_ns",
        INT64,
        "Nanoseconds from the last packet of the request to that of the response.",
    ),
    Column("error_codes", list_of(INT16), "Distinct error codes other than 0 in the response."),
    Column("errors", list_of(TEXT), "Names of these errors."),
    *BODY_NUMBERS,
    Column(
        "topics",
        list_of(TEXT),
        "Distinct topics in the request and the response; the topic id if the name is not in the "
        "capture.",
        topic_names,
    ),
    Column(
        "partitions",
        TOPIC_PARTITIONS,
        "Partitions of the request; of an incremental Fetch, all partitions of its session "
        "(KIP-227).",
        topic_partitions,
    ),
    Column(
        "partitions_complete",
        BOOL,
        "False for a Fetch whose session began before the capture, so that partitions may be "
        "missing.",
    ),
    Column("group_ids", list_of(TEXT), "Distinct groups in the request and the response."),
    Column(
        "transactional_ids",
        list_of(TEXT),
        "Distinct transactional ids in the request and the response.",
    ),
)


def since(request_ns: int | None, response_ns: int) -> int | None:
    """Nanoseconds from a request's last packet to its response's; None without both times."""
    if request_ns is None or NO_TIME in (request_ns, response_ns):
        return None
    return response_ns - request_ns
