"""Takes the partitions from decoded messages.

A partition has the columns that `partition_fields` names.

    Row --> Block
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ....messages.fetch_request import FetchPartition
from ....primitives import Structure
from ....protocol.fields import all_fields, fields_at
from ...exchanges.topic_ids import TopicNames
from ...rows import Row
from .blocks import Block
from .partition_fields import GROUP_ID, partition_references
from .partition_paths import REQUEST_FIELDS, REQUESTS, RESPONSE_FIELDS, RESPONSES
from .record_batches import RECORDS_MESSAGES, RecordsField, count
from .steps import AT, RECORDS_AT


class _Columns(NamedTuple):
    """The attributes of a partition struct that are columns, and which of them a version has."""

    attributes: tuple[str, ...]
    columns: tuple[int, ...]
    mask: int


_known: Final[dict[tuple[type[Structure], int, bool], _Columns]] = {}


def _columns_of(cls: type[Structure], version: int, is_request: bool) -> _Columns:
    cached = _known.get((cls, version, is_request))
    if cached is None:
        table = REQUEST_FIELDS if is_request else RESPONSE_FIELDS
        here = fields_at(cls, version)
        fields = all_fields(cls) if cls is FetchPartition else here
        chosen = [field for field in fields if field.attribute in table]
        columns = tuple([AT[table[field.attribute]] for field in chosen])
        mask = sum({1 << AT[table[field.attribute]] for field in chosen if field in here})
        attributes = tuple([field.attribute for field in chosen])
        cached = _known[cls, version, is_request] = _Columns(attributes, columns, mask)
    return cached


def session_mask(version: int) -> int:
    """Return a bit for each column that a partition of a Fetch request has in a version."""
    return _columns_of(FetchPartition, version, True).mask


def block_of(row: Row, names: TopicNames) -> Block | None:
    """Take the partitions from a decoded message; None if it has none."""
    message, version = row.message, row.body_version
    if message is None or version is None or row.api_key is None:
        return None
    block = Block()
    is_request = row.direction == "request"
    has_records = (row.api_key, row.direction) in RECORDS_MESSAGES
    block.group = GROUP_ID.of(message) or None
    for reference in partition_references(row, names):
        struct = reference.struct
        columns: tuple[int, ...] = ()
        values: tuple[Any, ...] = ()
        mask = 0
        if struct is not None:
            attributes, columns, mask = _columns_of(type(struct), version, is_request)
            values = tuple([getattr(struct, attribute) for attribute in attributes])
            if has_records:
                columns += RECORDS_AT
                values += _records_of(reference.topic, getattr(struct, "records", None))
                mask |= sum(1 << column for column in RECORDS_AT)
        block.add(reference.topic, reference.partition, reference.group_id, columns, values, mask)
    return block if len(block) or block.group else None


def _records_of(topic: Any, data: bytes | None) -> tuple[int | None, ...]:
    if not data:
        return 0, 0, 0
    return len(data), *count(RecordsField(topic, 0, data))


def count_records(data: bytes) -> tuple[int, int | None]:
    """Count the batches and records in a records field."""
    return count(RecordsField(_NO_TOPIC, 0, data))


_NO_TOPIC: Final = TopicNames().topic(None)

HAS_PARTITIONS: Final = frozenset(
    [(int(key), True) for key in REQUESTS] + [(int(key), False) for key in RESPONSES]
)
"""The messages with partitions, by API key and whether they are requests."""
