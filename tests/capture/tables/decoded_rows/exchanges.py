"""Makes the rows of `exchanges` of decoded messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.fetch_sessions import ExpandedFetch, FetchSessions
from kafkawire.capture.exchanges.topic_ids import Topic, TopicNames
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.columns import BODY_NUMBERS, known, micros
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import partition_references
from kafkawire.protocol.error_code import ErrorCode


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
        *(entities.numbers.get(column.name) for column in BODY_NUMBERS),
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


def requested_partitions(row: Row | None, names: TopicNames) -> list[tuple[Topic, int]]:
    """List the (topic, partition) pairs of a request."""
    return [(one.topic, one.partition) for one in partition_references(row, names)]


def partitions_of(pairs: Iterable[tuple[Any, int]]) -> list[tuple[Any, list[int]]]:
    """Group (topic, partition) pairs by topic, in order of first occurrence."""
    made: dict[object, tuple[Any, list[int]]] = {}
    for topic, partition in pairs:
        made.setdefault(topic.key, (topic, []))[1].append(partition)
    return list(made.values())
