"""The `exchanges` table: a row a request with its response."""

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
    Column("api_name", TEXT, "Name of the API; null for a key that none has."),
    Column("api_version", INT16, "Version of the request."),
    Column("correlation_id", INT32, "Correlation id."),
    Column("client_id", TEXT, "Client id, from the request's header."),
    Column("response_file", TEXT, "The file of the packet that completes the response."),
    Column("response_packet", INT64, "That packet's number; null if no response was captured."),
)
"""The columns that say which exchange: those of the request, or null where it is not captured."""

COLUMNS: Final[Columns] = (
    *EXCHANGE,
    Column("request_bytes", INT32, "Length of the request, without its own 4 bytes."),
    Column("request_status", TEXT, "How far the request was understood; null if not captured."),
    Column("response_time", TIME, "When that packet was captured."),
    Column("response_time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("response_bytes", INT32, "Length of the response, without its own 4 bytes."),
    Column("response_status", TEXT, "How far the response was understood; null if not captured."),
    Column("latency_ns", INT64, "From the request's last packet to the response's, nanoseconds."),
    Column("error_codes", list_of(INT16), "Error codes other than 0 in the response, each once."),
    Column("errors", list_of(TEXT), "The same by name."),
    Column("throttle_time_ms", INT32, "For how long the broker throttles the client."),
    Column(
        "topics",
        list_of(TEXT),
        "Topics that either side names, each once; one whose name is not in the capture goes by "
        "its id.",
        topic_names,
    ),
    Column(
        "partitions",
        TOPIC_PARTITIONS,
        "What is asked for; of an incremental Fetch, all that its session asks for (KIP-227).",
        topic_partitions,
    ),
    Column(
        "partitions_complete",
        BOOL,
        "False for a Fetch whose session began before the capture, so that more may be asked for.",
    ),
    Column("group_ids", list_of(TEXT), "Groups that either side names, each once."),
    Column("transactional_ids", list_of(TEXT), "Transactional ids that either side names."),
)


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Make the rows of the table."""
    sessions = FetchSessions(context.names)
    for exchange in context.exchanges():
        yield _row(exchange, sessions.expand(exchange), context)


def _row(exchange: Exchange, asked: ExpandedFetch | None, context: Context) -> tuple[Any, ...]:
    request, response = exchange.request, exchange.response
    mentions = Entities(context.names)
    mentions.add(request)
    mentions.add(response)
    if asked is None:
        pairs = requested_partitions(request, context.names)
    else:
        pairs = [(wanted.topic, wanted.partition) for wanted in asked.partitions]
        for topic, _ in pairs:
            mentions.topic(topic.name, topic.id)
    return (
        *exchange_columns(exchange, context),
        *((None, None) if request is None else (request.length, request.status.value)),
        *_answer(response),
        None if response is None else since(response.request_time_ns, response.time_ns),
        list(mentions.error_codes),
        [ErrorCode.name_of(code) for code in mentions.error_codes],
        mentions.throttle_time_ms,
        list(mentions.topics.values()),
        partitions_of(pairs),
        None if asked is None else asked.complete,
        list(mentions.groups),
        list(mentions.transactional_ids),
    )


def exchange_columns(exchange: Exchange, context: Context) -> tuple[Any, ...]:
    """Make the EXCHANGE columns of an exchange."""
    told, response = exchange.main_row, exchange.response
    ends = exchange.connection, exchange.client, exchange.broker
    if exchange.request is None:
        where: tuple[Any, ...] = (None, None, None, None, *ends)
    else:
        where = context.where(exchange.request, *ends)
    answered = (None, None) if response is None else context.traffic.place(response.packet)
    return (
        *where,
        told.api_key,
        told.api_name,
        told.api_version,
        told.correlation_id,
        told.client_id,
        *answered,
    )


def _answer(response: Row | None) -> tuple[Any, ...]:
    if response is None:
        return (None,) * 4
    time_ns = known(response.time_ns)
    return micros(time_ns), time_ns, response.length, response.status.value


def since(request_ns: int | None, response_ns: int) -> int | None:
    """Nanoseconds from a request's last packet to its response's; None without both times."""
    if request_ns is None or NO_TIME in (request_ns, response_ns):
        return None
    return response_ns - request_ns
