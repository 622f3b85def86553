"""Builds the `exchanges` table: one row per request with its response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...protocol.error_code import ErrorCode
from ..exchanges.exchanges import Exchange
from ..exchanges.fetch_sessions import ExpandedFetch, FetchSessions
from ..files.blocks import NO_TIME
from ..rows import Row
from .columns import (
    BOOL,
    INT16,
    INT32,
    INT64,
    TEXT,
    TIME,
    TOPIC_PARTITIONS,
    Column,
    Columns,
    known,
    list_of,
    micros,
    partitions_of,
    topic_names,
    topic_partitions,
)
from .context import WHERE, Context
from .extraction.entities import Entities
from .extraction.partition_fields import requested_partitions

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
    Column("throttle_time_ms", INT32, "Throttle time in the response, in milliseconds."),
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


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Build the rows of the table."""
    sessions = FetchSessions(context.names)
    for exchange in context.exchanges():
        yield _row(exchange, sessions.expand(exchange), context)


def _row(exchange: Exchange, fetch: ExpandedFetch | None, context: Context) -> tuple[Any, ...]:
    request, response = exchange.request, exchange.response
    entities = Entities(context.names)
    entities.add(request)
    entities.add(response)
    if fetch is None:
        pairs = requested_partitions(request, context.names)
    else:
        pairs = [(wanted.topic, wanted.partition) for wanted in fetch.requested.values()]
        for topic, _ in pairs:
            entities.topic(topic.name, topic.id)
    return (
        *exchange_columns(exchange, context),
        *((None, None) if request is None else (request.length, request.status.value)),
        *_response(response),
        None if response is None else since(response.request_time_ns, response.time_ns),
        list(entities.error_codes),
        [ErrorCode.name_of(code) for code in entities.error_codes],
        entities.throttle_time_ms,
        list(entities.topics.values()),
        partitions_of(pairs),
        None if fetch is None else fetch.complete,
        list(entities.groups),
        list(entities.transactional_ids),
    )


def exchange_columns(exchange: Exchange, context: Context) -> tuple[Any, ...]:
    """Build the EXCHANGE columns of an exchange."""
    header, response = exchange.main_row, exchange.response
    ends = exchange.connection, exchange.client, exchange.broker
    if exchange.request is None:
        where: tuple[Any, ...] = (None, None, None, None, *ends)
    else:
        where = context.where(exchange.request, *ends)
    response_packet = (None, None) if response is None else context.traffic.place(response.packet)
    return (
        *where,
        header.api_key,
        header.api_name,
        header.api_version,
        header.correlation_id,
        header.client_id,
        *response_packet,
    )


def _response(response: Row | None) -> tuple[Any, ...]:
    if response is None:
        return (None,) * 4
    time_ns = known(response.time_ns)
    return micros(time_ns), time_ns, response.length, response.status.value


def since(request_ns: int | None, response_ns: int) -> int | None:
    """Nanoseconds from a request's last packet to its response's; None without both times."""
    if request_ns is None or NO_TIME in (request_ns, response_ns):
        return None
    return response_ns - request_ns
