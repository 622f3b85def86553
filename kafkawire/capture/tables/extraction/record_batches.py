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
from .partition_fields import spoken

CARRIERS: Final = frozenset(
    {
        (ApiKey.PRODUCE, "request"),
        (ApiKey.FETCH, "response"),
        (ApiKey.SHARE_FETCH, "response"),
    }
)
"""The messages that carry records of partitions."""


class Carried(NamedTuple):
    """The records field of a partition."""

    topic: Topic
    partition: int
    data: bytes


class Broken(NamedTuple):
    """What could not be read of a records field."""

    topic: Topic
    partition: int
    error: WireError


def carried(row: Row | None, names: TopicNames) -> Iterator[Carried]:
    """Give the records fields of a message that are not empty, in wire order."""
    if row is None or (row.api_key, row.direction) not in CARRIERS:
        return
    for one in spoken(row, names):
        data = getattr(one.what, "records", None)
        if data:
            yield Carried(one.topic, one.partition, data)


def batches_in(field: Carried) -> Iterator[tuple[Batch, list[Record]] | Broken]:
    """Read the batches of a field: of a broken one the records before the fault, then the fault.

    Where lengths still lead on, the next batches are read.
    """
    found = RecordBatches(field.data)
    budget = Budget(found.limits)
    faults: list[WireError] = []
    for batch in found.batches(faults):
        yield from broken(field, faults)
        records = batch.records(budget, faults=faults)
        if records or not faults:
            yield batch, records
        yield from broken(field, faults)
    yield from broken(field, faults)


def broken(field: Carried, faults: list[WireError]) -> list[Broken]:
    """Take the faults met so far out of their list."""
    made = [Broken(field.topic, field.partition, fault) for fault in faults]
    faults.clear()
    return made


class Count(NamedTuple):
    """Batches and records of a field; records is None where a batch could not be read."""

    batches: int
    records: int | None


def count(field: Carried) -> Count:
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
