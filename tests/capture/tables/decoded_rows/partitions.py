"""Makes the rows of `partitions` of decoded messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.fetch_sessions import ExpandedFetch, FetchSessions
from kafkawire.capture.exchanges.topic_ids import Topic, TopicKey
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.extraction.partition_fields import GROUP_ID, partition_references
from kafkawire.capture.tables.extraction.partition_paths import REQUEST_FIELDS, RESPONSE_FIELDS
from kafkawire.capture.tables.extraction.record_batches import RECORDS_MESSAGES, RecordsField, count
from kafkawire.capture.tables.partitions import COLUMNS
from kafkawire.messages.fetch_request import FetchPartition
from kafkawire.primitives import Structure
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.protocol.fields import fields_at

from .exchanges import exchange_columns

_NAMES: Final = tuple([column.name for column in COLUMNS])
_FIRST: Final = _NAMES.index("request_offset")
_POSITIONS: Final = {name: at for at, name in enumerate(_NAMES[_FIRST:])}
_WIDTH: Final = len(_POSITIONS)
_ERROR_CODE: Final = _POSITIONS["error_code"]
_ERROR: Final = _POSITIONS["error"]
_RECORDS: Final = _POSITIONS["records_bytes"], _POSITIONS["batches"], _POSITIONS["records"]

Key: TypeAlias = tuple[TopicKey, int] | tuple[TopicKey, int, str]
"""The key of a row within its exchange: topic, partition, and the group if there is one."""


@final
class _Partition:
    """A row to be: what request and response say about a partition.

    columns: from `request_offset` on.
    """

    __slots__ = (
        "columns",
        "group_id",
        "in_session",
        "partition",
        "requested",
        "responded",
        "topic",
    )

    def __init__(
        self, topic: Topic, partition: int, group_id: str | None, columns: list[Any]
    ) -> None:
        self.topic: Topic = topic
        self.partition: int = partition
        self.group_id: str | None = group_id
        self.requested: bool = False
        self.responded: bool = False
        self.in_session: bool | None = None
        self.columns: list[Any] = columns


@final
class _Fields:
    """Copies fields of a struct to columns."""

    def __init__(self, cls: type[Structure], version: int, is_request: bool) -> None:
        found = partition_columns(cls, version, is_request)
        self.get: Callable[[Any], tuple[Any, ...]] = found.get
        self.at: list[int] = [_POSITIONS[name] for name in found.columns]

    def fill(self, columns: list[Any], struct: Structure) -> None:
        values = self.get(struct)
        for number, at in enumerate(self.at):
            columns[at] = values[number]


_known: Final[dict[tuple[type[Structure], int, bool], _Fields]] = {}


def _fields(cls: type[Structure], version: int, is_request: bool) -> _Fields:
    found = _known.get((cls, version, is_request))
    if found is None:
        found = _known[cls, version, is_request] = _Fields(cls, version, is_request)
    return found


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Build the rows of the table."""
    sessions = FetchSessions(context.names)
    for exchange in context.exchanges():
        yield from rows_of(exchange, sessions, context)


def rows_of(exchange: Exchange, sessions: FetchSessions, context: Context) -> list[tuple[Any, ...]]:
    """Build the rows of an exchange."""
    found = _partitions(exchange, sessions.expand(exchange), context)
    if not found:
        return []
    head = exchange_columns(exchange, context)
    made: list[tuple[Any, ...]] = []
    for one in found.values():
        columns = one.columns
        if columns[_ERROR_CODE]:
            columns[_ERROR] = ErrorCode.name_of(columns[_ERROR_CODE])
        topic = one.topic
        here = (
            one.group_id,
            topic,
            None if topic.id is None else topic.id_text,
            one.partition,
            one.requested,
            one.responded,
            one.in_session,
        )
        made.append(head + here + tuple(columns))
    return made


def _partitions(
    exchange: Exchange, fetch: ExpandedFetch | None, context: Context
) -> dict[Key, _Partition]:
    """Merge request, response and fetch session into one entry per partition."""
    found: dict[Key, _Partition] = {}
    if fetch is not None:
        _add_requested(found, fetch, exchange.main_row.api_version or 0)
    for row in (exchange.request, exchange.response):
        if row is not None and row.message is not None and row.body_version is not None:
            _add(found, row, exchange, context)
    return found


def _add_requested(found: dict[Key, _Partition], fetch: ExpandedFetch, version: int) -> None:
    """Add the partitions that a Fetch requests."""
    listed = fetch.listed
    for key, wanted in fetch.requested.items():
        if wanted.version != version:
            wanted.version, wanted.columns = version, [None] * _WIDTH
            _fields(FetchPartition, version, True).fill(wanted.columns, wanted.request)
        one = found[key] = _Partition(wanted.topic, wanted.partition, None, wanted.columns.copy())
        one.requested = key in listed
        one.in_session = not one.requested


def _add(found: dict[Key, _Partition], row: Row, exchange: Exchange, context: Context) -> None:
    """Add the partitions of one message."""
    version = row.body_version
    assert version is not None
    is_request = row.direction == "request"
    has_records = (row.api_key, row.direction) in RECORDS_MESSAGES
    request_group = _group_of(exchange)
    fields: _Fields | None = None
    for reference in partition_references(row, context.names):
        topic, partition, struct = reference.topic, reference.partition, reference.struct
        group_id = reference.group_id or request_group
        key: Key = (topic.key, partition)
        if group_id is not None:
            key = (topic.key, partition, group_id)
        here = found.get(key)
        if here is None:
            here = found[key] = _Partition(topic, partition, group_id, [None] * _WIDTH)
        if is_request:
            here.requested = True
        else:
            here.responded = True
        if struct is None:
            continue
        if fields is None:
            fields = _fields(type(struct), version, is_request)
        fields.fill(here.columns, struct)
        if has_records:
            _add_records(here, getattr(struct, "records", None))


def _group_of(exchange: Exchange) -> str | None:
    """Return the group of the request, if it names one for all its partitions."""
    message = None if exchange.request is None else exchange.request.message
    return None if message is None else GROUP_ID.of(message) or None


def _add_records(here: _Partition, data: bytes | None) -> None:
    columns = here.columns
    size, batches, records = _RECORDS
    if not data:
        columns[size] = columns[batches] = columns[records] = 0
        return
    counted = count(RecordsField(here.topic, here.partition, data))
    columns[size] = len(data)
    columns[batches] = counted.batches
    columns[records] = counted.records


class PartitionColumns(NamedTuple):
    """How the fields of a partition struct fill columns: `get` returns the values of `columns`."""

    columns: tuple[str, ...]
    get: Callable[[Any], tuple[Any, ...]]


def partition_columns(cls: type[Structure], version: int, is_request: bool) -> PartitionColumns:
    """Find the fields of a partition struct that are columns; only those of the version."""
    table = REQUEST_FIELDS if is_request else RESPONSE_FIELDS
    here = [field.attribute for field in fields_at(cls, version) if field.attribute in table]
    columns = tuple([table[attribute] for attribute in here])
    if len(here) > 1:
        return PartitionColumns(columns, attrgetter(*here))
    return PartitionColumns(columns, lambda struct: tuple([getattr(struct, at) for at in here]))
