"""The records of a share consumer, and how they are read from a response.

A record is delivered only if its offset is in AcquiredRecords: the batches of a response may
have more. Every acquired offset is a record or is acknowledged: as a gap where there is no record
for the user, as rejected in a corrupt batch.

    batches x AcquiredRecords ─▶ records with delivery counts, acknowledgements of the other offsets
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, Generic, NamedTuple

from ...errors import WireError
from ...messages.share_fetch_response import AcquiredRecords
from ...protocol.error_code import ErrorCode
from ...records import Batch, Headers, RecordBatches, TimestampType
from ..arguments import INT64
from ..consumer.failures import FetchFailed
from ..consumer.partitions import ConsumerRecord
from ..serialization import KeyT, ValueT
from .acknowledgements import GAP, AcknowledgementRange, AcknowledgeType, SharePartition


class ShareRecord(NamedTuple, Generic[KeyT, ValueT]):
    """A record that this member has acquired.

    timestamp: milliseconds since the epoch, -1 for none. key, value: bytes, or what deserializers
    made of them; None for null. leader_epoch: of its batch, -1 if unknown. delivery_count: of this
    delivery; 1 is the first.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: KeyT | None
    value: ValueT | None
    headers: Headers
    timestamp_type: TimestampType
    leader_epoch: int
    delivery_count: int

    @property
    def consumer_record(self) -> ConsumerRecord[KeyT, ValueT]:
        """The record without its delivery count."""
        return ConsumerRecord(*self[:-1])


Item = ShareRecord | FetchFailed
"""A record, or an error in the place of records."""
CORRUPT: Final = "corrupt records, which were rejected"
UNREADABLE: Final = "malformed record batches, whose records were released"


class DecodedRecords(NamedTuple):
    """What a response has of a partition.

    items: records and errors, in order. ranges: acknowledgements of offsets without a record.
    """

    items: list[Item]
    ranges: list[AcknowledgementRange]


class _Acquired:
    """The acquired offsets that are not accounted for yet. ranges: acknowledgements so far."""

    def __init__(self, acquired: Iterable[AcquiredRecords]) -> None:
        self._left = deque(
            (each.first_offset, each.last_offset, each.delivery_count)
            for each in sorted(acquired, key=lambda each: each.first_offset)
        )
        self.ranges: list[AcknowledgementRange] = []

    def acknowledge(self, last_offset: int, kind: int) -> bool:
        """Acknowledge all that are left up to an offset; whether there were any."""
        before = len(self.ranges)
        while self._left and self._left[0][0] <= last_offset:
            first, last, _ = self._left[0]
            end = min(last, last_offset)
            self.ranges.append(AcknowledgementRange(first, end, kind))
            self._remove_to(end)
        return len(self.ranges) > before

    def take(self, offset: int) -> int | None:
        """Return the delivery count of a record; None if it is not acquired."""
        self.acknowledge(offset - 1, GAP)
        if not self._left or self._left[0][0] != offset:
            return None
        count = self._left[0][2]
        self._remove_to(offset)
        return count

    @property
    def first(self) -> int:
        """The first offset that is left; beyond all offsets if none is."""
        return self._left[0][0] if self._left else INT64

    def _remove_to(self, offset: int) -> None:
        _, last, count = self._left.popleft()
        if offset < last:
            self._left.appendleft((offset + 1, last, count))


def invalid_ranges(acquired: Iterable[AcquiredRecords]) -> str:
    """Return what is wrong with the AcquiredRecords of a partition; "" if nothing is."""
    end = -1
    for each in sorted(acquired, key=lambda each: each.first_offset):
        if each.first_offset <= end or each.last_offset < each.first_offset:
            return f"invalid acquired records {each.first_offset} to {each.last_offset}"
        end = each.last_offset
    return ""


def decode(
    partition: SharePartition,
    data: bytes,
    acquired: list[AcquiredRecords],
    *,
    check_crcs: bool = True,
) -> DecodedRecords:
    """Decode the acquired records of a partition."""
    where = [partition.topic_partition]
    wrong = invalid_ranges(acquired)
    if wrong:
        return DecodedRecords([FetchFailed(wrong, ErrorCode.NONE, where)], [])
    items: list[Item] = []
    left = _Acquired(acquired)
    faults: list[WireError] = []
    for batch in RecordBatches(data, check_crcs=check_crcs).batches(faults):
        corrupt = _decode_batch(partition, batch, left, items)
        if corrupt is not None and left.acknowledge(batch.last_offset, AcknowledgeType.REJECT):
            items.append(FetchFailed(f"{CORRUPT}: {corrupt}", ErrorCode.CORRUPT_MESSAGE, where))
    if faults and left.acknowledge(INT64, AcknowledgeType.RELEASE):
        reason = f"{UNREADABLE}: {faults[0]}"
        items.append(FetchFailed(reason, ErrorCode.CORRUPT_MESSAGE, where))
    left.acknowledge(INT64, GAP)
    return DecodedRecords(items, left.ranges)


def _decode_batch(
    partition: SharePartition, batch: Batch, left: _Acquired, items: list[Item]
) -> WireError | None:
    """Append the acquired records of a batch; return why the rest of it is corrupt."""
    if batch.control or batch.last_offset < left.first:
        return None
    errors: list[WireError] = []
    for row in batch.rows(*partition.topic_partition, left.first, errors):
        count = left.take(row[2])
        if count is not None:
            items.append(ShareRecord._make((*row, count)))
    return errors[0] if errors else None
