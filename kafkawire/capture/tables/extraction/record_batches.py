"""Reads the record batches in messages, and reports corrupt ones.

A corrupt batch loses its own remaining records, never the message around it; the cost of
decoding a records field is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ....errors import WireError
from ....messages.api_key import ApiKey
from ....records import Batch, Budget, Record, RecordBatches
from ...exchanges.topic_ids import Topic, TopicNames
from ...rows import Row
from .partition_fields import partition_references

RECORDS_MESSAGES: Final = frozenset(
    {
        (ApiKey.PRODUCE, "request"),
        (ApiKey.FETCH, "response"),
        (ApiKey.SHARE_FETCH, "response"),
    }
)
"""The messages that contain records, by API key and direction."""


class RecordsField(NamedTuple):
    """The records field of a partition."""

    topic: Topic
    partition: int
    data: bytes


class CorruptRecords(NamedTuple):
    """A corrupt part of a records field."""

    topic: Topic
    partition: int
    error: WireError


def records_fields(row: Row | None, names: TopicNames) -> Iterator[RecordsField]:
    """Yield the non-empty records fields of a message, in wire order."""
    if row is None or (row.api_key, row.direction) not in RECORDS_MESSAGES:
        return
    for one in partition_references(row, names):
        data = getattr(one.struct, "records", None)
        if data:
            yield RecordsField(one.topic, one.partition, data)


def batches_in(field: RecordsField) -> Iterator[tuple[Batch, list[Record]] | CorruptRecords]:
    """Read the batches of a field: of a corrupt one the records before the error, then the error.

    Later batches are read if their start is known.
    """
    batches = RecordBatches(field.data)
    budget = Budget(batches.limits)
    errors: list[WireError] = []
    for batch in batches.batches(errors):
        yield from corrupt_records(field, errors)
        records = batch.records(budget, faults=errors)
        if records or not errors:
            yield batch, records
        yield from corrupt_records(field, errors)
    yield from corrupt_records(field, errors)


def corrupt_records(field: RecordsField, errors: list[WireError]) -> list[CorruptRecords]:
    """Return the errors found so far, and clear the list."""
    corrupt = [CorruptRecords(field.topic, field.partition, error) for error in errors]
    errors.clear()
    return corrupt


MAX_INT32: Final = 0x7FFFFFFF


class Count(NamedTuple):
    """Batches and records of a field; records is None if a batch is corrupt.

    Also if there are more than an int32 can count, which only headers that lie can say.
    """

    batches: int
    records: int | None


def count(field: RecordsField) -> Count:
    """Count the batches and records of a field, from batch headers if possible."""
    batches, records = 0, 0
    all_batches = RecordBatches(field.data)
    budget = Budget(all_batches.limits)
    try:
        for batch in all_batches:
            batches += 1
            stated = batch.records_count
            records += stated if stated >= 0 else len(batch.records(budget))
    except WireError:
        return Count(batches, None)
    return Count(batches, records if records <= MAX_INT32 else None)
