"""Builds the `partitions` table: one row per exchange and partition in either message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ...protocol.error_code import ErrorCode
from ..exchanges.exchanges import Exchange
from ..exchanges.fetch_sessions import ExpandedFetch, FetchSessions
from ..exchanges.topic_ids import Topic
from ..rows import Row
from .columns import BOOL, INT16, INT32, INT64, TEXT, Column, Columns, topic_name
from .context import Context
from .exchanges import EXCHANGE, exchange_columns
from .extraction.partition_fields import partition_columns, partition_references
from .extraction.record_batches import RECORDS_MESSAGES, RecordsField, count

COLUMNS: Final[Columns] = (
    *EXCHANGE,
    Column("group_id", TEXT, "Consumer group, where the exchange is about one."),
    Column("topic", TEXT, "Topic; null if its name is not in the capture.", topic_name),
    Column("topic_id", TEXT, "Topic id in Kafka's text form, if the messages use topic ids."),
    Column("partition", INT32, "Partition."),
    Column("requested", BOOL, "Whether the request lists the partition."),
    Column("answered", BOOL, "Whether the response lists the partition."),
    Column(
        "in_session",
        BOOL,
        "For a Fetch: part of the fetch session, but not listed in the request (KIP-227).",
    ),
    Column(
        "request_offset", INT64, "Offset in the request: to fetch from, to commit, to delete up to."
    ),
    Column(
        "request_timestamp_ms", INT64, "ListOffsets: requested timestamp, -1 latest, -2 earliest."
    ),
    Column("current_leader_epoch", INT32, "Leader epoch known to the client, -1 if unknown."),
    Column("max_bytes", INT32, "Maximum bytes to return for the partition."),
    Column("error_code", INT16, "Error code, 0 for none."),
    Column("error", TEXT, "Name of the error; null for none."),
    Column("error_message", TEXT, "Error message of the broker."),
    Column(
        "offset",
        INT64,
        "Offset in the response: base, committed, found, end offset or low watermark.",
    ),
    Column("timestamp_ms", INT64, "Timestamp in the response in milliseconds, -1 for none."),
    Column("high_watermark", INT64, "High watermark."),
    Column("last_stable_offset", INT64, "Last stable offset."),
    Column("log_start_offset", INT64, "Log start offset."),
    Column("preferred_read_replica", INT32, "Preferred read replica, -1 for none."),
    Column("leader_id", INT32, "Leader of the partition."),
    Column("leader_epoch", INT32, "Leader epoch in the response."),
    Column("metadata", TEXT, "Metadata of a committed offset."),
    Column("records_bytes", INT32, "Bytes of record batches that were produced or fetched."),
    Column("batches", INT32, "Number of record batches."),
    Column("records", INT32, "Number of records; null if a batch is corrupt."),
)

_NAMES: Final = tuple(column.name for column in COLUMNS)
_FIELDS: Final = _NAMES[_NAMES.index("requested") :]


class _Partition(NamedTuple):
    topic: Topic
    partition: int
    group_id: str | None
    values: dict[str, Any]


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Build the rows of the table."""
    sessions = FetchSessions(context.names)
    for exchange in context.exchanges():
        yield from rows_of(exchange, sessions, context)


def rows_of(
    exchange: Exchange, sessions: FetchSessions, context: Context
) -> Iterator[tuple[Any, ...]]:
    """Build the rows of an exchange."""
    fetch = sessions.expand(exchange)
    found = _partitions(exchange, fetch, context)
    if not found:
        return
    head = exchange_columns(exchange, context)
    for one in found:
        values = one.values
        if values.get("error_code"):
            values["error"] = ErrorCode.name_of(values["error_code"])
        yield (
            *head,
            one.group_id,
            one.topic,
            one.topic.id_text,
            one.partition,
            *map(values.get, _FIELDS),
        )


def _partitions(
    exchange: Exchange, fetch: ExpandedFetch | None, context: Context
) -> list[_Partition]:
    """Merge request, response and fetch session into one entry per partition."""
    found: dict[tuple[object, int, str | None], _Partition] = {}
    if fetch is not None:
        for wanted in fetch.partitions:
            version = exchange.main_row.api_version or 0
            values = partition_columns(wanted.request, version, "request")
            values |= {"requested": wanted.listed, "in_session": not wanted.listed}
            key = wanted.topic.key, wanted.partition, None
            found[key] = _Partition(wanted.topic, wanted.partition, None, values)
    for row in (exchange.request, exchange.response):
        _add(found, row, exchange, context)
    for one in found.values():
        one.values.setdefault("requested", False)
        one.values.setdefault("answered", False)
    return list(found.values())


def _add(
    found: dict[tuple[object, int, str | None], _Partition],
    row: Row | None,
    exchange: Exchange,
    context: Context,
) -> None:
    """Add the partitions of one message."""
    if row is None or row.body_version is None:
        return
    side = "requested" if row.direction == "request" else "answered"
    has_records = (row.api_key, row.direction) in RECORDS_MESSAGES
    request_group = _group_of(exchange)
    for one in partition_references(row, context.names):
        group_id = one.group_id or request_group
        key = one.topic.key, one.partition, group_id
        here = found.get(key)
        if here is None:
            here = found[key] = _Partition(one.topic, one.partition, group_id, {})
        here.values[side] = True
        if one.struct is not None:
            here.values.update(partition_columns(one.struct, row.body_version, row.direction))
            if has_records:
                here.values.update(_records(one.topic, one.partition, one.struct))


def _group_of(exchange: Exchange) -> str | None:
    """Return the group of the request, if it names one for all its partitions."""
    message = None if exchange.request is None else exchange.request.message
    return getattr(message, "group_id", None) or None


def _records(topic: Topic, partition: int, struct: Any) -> dict[str, Any]:
    data = struct.records
    if not data:
        return {"records_bytes": 0, "batches": 0, "records": 0}
    counted = count(RecordsField(topic, partition, data))
    return {
        "records_bytes": len(data),
        "batches": counted.batches,
        "records": counted.records,
    }
