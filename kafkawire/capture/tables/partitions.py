"""The `partitions` table: a row an exchange and partition that either side speaks of."""

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
from .extraction.partition_fields import fields_said, spoken
from .extraction.record_batches import CARRIERS, Carried, count

COLUMNS: Final[Columns] = (
    *EXCHANGE,
    Column("group_id", TEXT, "Group that the partition is spoken of for."),
    Column("topic", TEXT, "Topic; null where its name is not in the capture.", topic_name),
    Column("topic_id", TEXT, "Topic id as Kafka writes it, where the messages speak by id."),
    Column("partition", INT32, "Partition."),
    Column("requested", BOOL, "Whether the request lists it."),
    Column("answered", BOOL, "Whether the response lists it."),
    Column("in_session", BOOL, "Of a Fetch: asked for by its session, not listed (KIP-227)."),
    Column("request_offset", INT64, "Offset in the request: to fetch from, to commit, to delete."),
    Column("request_timestamp_ms", INT64, "ListOffsets: timestamp asked for, -1 end, -2 start."),
    Column("current_leader_epoch", INT32, "Leader epoch that the client knows, -1 for none."),
    Column("max_bytes", INT32, "Most bytes to return for the partition."),
    Column("error_code", INT16, "Error code, 0 for none."),
    Column("error", TEXT, "The error by name; null for none."),
    Column("error_message", TEXT, "What the broker says about it."),
    Column("offset", INT64, "Offset in the response: base, committed, found, end, low watermark."),
    Column("timestamp_ms", INT64, "Timestamp in the response, milliseconds, -1 for none."),
    Column("high_watermark", INT64, "High watermark."),
    Column("last_stable_offset", INT64, "Last stable offset."),
    Column("log_start_offset", INT64, "Log start offset."),
    Column("preferred_read_replica", INT32, "Replica to read from, -1 for none."),
    Column("leader_id", INT32, "Leader of the partition."),
    Column("leader_epoch", INT32, "Leader epoch in the response."),
    Column("metadata", TEXT, "What a committed offset carries."),
    Column("records_bytes", INT32, "Bytes of record batches that are produced or fetched."),
    Column("batches", INT32, "Record batches in them."),
    Column("records", INT32, "Records in them; null where a batch cannot be read."),
)

_NAMES: Final = tuple(column.name for column in COLUMNS)
_SAID: Final = _NAMES[_NAMES.index("requested") :]


class _Partition(NamedTuple):
    topic: Topic
    partition: int
    group_id: str | None
    said: dict[str, Any]


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Make the rows of the table."""
    sessions = FetchSessions(context.names)
    for exchange in context.exchanges():
        yield from rows_of(exchange, sessions, context)


def rows_of(
    exchange: Exchange, sessions: FetchSessions, context: Context
) -> Iterator[tuple[Any, ...]]:
    """Make the rows of an exchange."""
    asked = sessions.expand(exchange)
    found = _partitions(exchange, asked, context)
    if not found:
        return
    head = exchange_columns(exchange, context)
    for one in found:
        said = one.said
        if said.get("error_code"):
            said["error"] = ErrorCode.name_of(said["error_code"])
        yield (
            *head,
            one.group_id,
            one.topic,
            one.topic.id_text,
            one.partition,
            *map(said.get, _SAID),
        )


def _partitions(
    exchange: Exchange, asked: ExpandedFetch | None, context: Context
) -> list[_Partition]:
    """Merge what the request, the response and the fetch session say of each partition."""
    found: dict[tuple[object, int, str | None], _Partition] = {}
    if asked is not None:
        for wanted in asked.partitions:
            said = fields_said(wanted.request, exchange.main_row.api_version or 0, "request")
            said |= {"requested": wanted.listed, "in_session": not wanted.listed}
            key = wanted.topic.key, wanted.partition, None
            found[key] = _Partition(wanted.topic, wanted.partition, None, said)
    for row in (exchange.request, exchange.response):
        _add(found, row, exchange, context)
    for one in found.values():
        one.said.setdefault("requested", False)
        one.said.setdefault("answered", False)
    return list(found.values())


def _add(
    found: dict[tuple[object, int, str | None], _Partition],
    row: Row | None,
    exchange: Exchange,
    context: Context,
) -> None:
    """Add what one side says."""
    if row is None or row.body_version is None:
        return
    side = "requested" if row.direction == "request" else "answered"
    carries = (row.api_key, row.direction) in CARRIERS
    asked_for = _group_of(exchange)
    for one in spoken(row, context.names):
        group_id = one.group_id or asked_for
        key = one.topic.key, one.partition, group_id
        here = found.get(key)
        if here is None:
            here = found[key] = _Partition(one.topic, one.partition, group_id, {})
        here.said[side] = True
        if one.what is not None:
            here.said.update(fields_said(one.what, row.body_version, row.direction))
            if carries:
                here.said.update(_records(one.topic, one.partition, one.what))


def _group_of(exchange: Exchange) -> str | None:
    """Name the group that an exchange is about, where its request says so for all of it."""
    message = None if exchange.request is None else exchange.request.message
    return getattr(message, "group_id", None) or None


def _records(topic: Topic, partition: int, what: Any) -> dict[str, Any]:
    data = what.records
    if not data:
        return {"records_bytes": 0, "batches": 0, "records": 0}
    counted = count(Carried(topic, partition, data))
    return {
        "records_bytes": len(data),
        "batches": counted.batches,
        "records": counted.records,
    }
