"""Record batches that messages carry: which, in which partition, and what is wrong with them.

Law: a batch that cannot be read costs what follows in it, never the message around it; what a field
of records may cost is bounded.
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
"""The messages that carry records of partitions."""


class RecordsField(NamedTuple):
    """The records field of a partition."""

    topic: Topic
    partition: int
    data: bytes


class CorruptRecords(NamedTuple):
    """What could not be read of a records field."""

    topic: Topic
    partition: int
    error: WireError


def records_fields(row: Row | None, names: TopicNames) -> Iterator[RecordsField]:
    """Give the records fields of a message that are not empty, in wire order."""
    if row is None or (row.api_key, row.direction) not in RECORDS_MESSAGES:
        return
    for one in partition_references(row, names):
        data = getattr(one.struct, "records", None)
        if data:
            yield RecordsField(one.topic, one.partition, data)


def batches_in(field: RecordsField) -> Iterator[tuple[Batch, list[Record]] | CorruptRecords]:
    """Read the batches of a field: of a broken one the records before the fault, then the fault.

    Where lengths still lead on, the next batches are read.
    """
    found = RecordBatches(field.data)
    budget = Budget(found.limits)
    faults: list[WireError] = []
    for batch in found.batches(faults):
        yield from corrupt_records(field, faults)
        records = batch.records(budget, faults=faults)
        if records or not faults:
            yield batch, records
        yield from corrupt_records(field, faults)
    yield from corrupt_records(field, faults)


def corrupt_records(field: RecordsField, faults: list[WireError]) -> list[CorruptRecords]:
    """Take the faults met so far out of their list."""
    made = [CorruptRecords(field.topic, field.partition, fault) for fault in faults]
    faults.clear()
    return made


class Count(NamedTuple):
    """Batches and records of a field; records is None where a batch could not be read."""

    batches: int
    records: int | None


def count(field: RecordsField) -> Count:
    """Count what a field holds, by headers alone where they say it."""
    batches, records = 0, 0
    found = RecordBatches(field.data)
    budget = Budget(found.limits)
    try:
        for batch in found:
            batches += 1
            known = batch.records_count
            records += known if known >= 0 else len(batch.records(budget))
    except WireError:
        return Count(batches, None)
    return Count(batches, records)
