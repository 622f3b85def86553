"""Makes the records of a dead letter queue: their headers, and copies of the original records.

Invariant: a record of the queue stands for one offset. Its headers name the original; it has the
key and the value of that, but not its headers, if the group copies records and the log has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from ...errors import WireError
from ...records import RecordBatches
from ...records.builder import BatchBuilder
from ...records.record import Headers
from ...replication import LogOffline, Partition
from ..share_coordinator.state import ShareKey
from .states import Cause

TOPIC: Final = "__dlq.errors.topic"
PARTITION: Final = "__dlq.errors.partition"
OFFSET: Final = "__dlq.errors.offset"
GROUP: Final = "__dlq.errors.group"
DELIVERIES: Final = "__dlq.errors.delivery.count"
MESSAGE: Final = "__dlq.errors.message"
READ_BYTES: Final = 1 << 20
"""Bytes of the log that are read at a time."""


class DeadLetter(NamedTuple):
    """Records of a share partition that its group cannot process. last: inclusive."""

    key: ShareKey
    first: int
    last: int
    deliveries: int
    cause: Cause


class Original(NamedTuple):
    """What is copied of a record; None where it is null, or not copied."""

    offset: int
    key: bytes | None = None
    value: bytes | None = None


def headers_of(letter: DeadLetter, topic: str, offset: int) -> Headers:
    """Return the headers of a record. topic: the name of the original one's."""
    texts = (
        (TOPIC, topic),
        (PARTITION, str(letter.key.partition)),
        (OFFSET, str(offset)),
        (GROUP, letter.key.group_id),
        (DELIVERIES, str(letter.deliveries)),
        (MESSAGE, letter.cause.value),
    )
    return tuple((name, text.encode()) for name, text in texts)


def records_of(
    replica: Partition | None, first: int, last: int, most_bytes: int
) -> Iterable[Original]:
    """Return what is copied of the records from an offset on, of all or as many as are read.

    replica: None if nothing is copied. most_bytes: a larger record is not copied, nor are those of
    a corrupt batch and of what follows it.
    """
    copies: dict[int, Original] = {}
    end = last
    if replica is not None:
        with suppress(WireError):
            for batch in RecordBatches(_read(replica, first)):
                records = batch.records()
                end = batch.last_offset
                for each in records:
                    size = len(each.key or b"") + len(each.value or b"")
                    if size <= most_bytes:
                        copies[each.offset] = Original(each.offset, each.key, each.value)
    read = range(first, (min(end, last) if end >= first else last) + 1)
    return (copies.get(offset, Original(offset)) for offset in read)


def _read(replica: Partition, offset: int) -> bytes:
    """Read batches from an offset on; none if the log does not have it."""
    log = replica.log
    if not log.log_start_offset <= offset < log.high_watermark:
        return b""
    try:
        return log.read(offset, READ_BYTES, log.high_watermark, True)
    except LogOffline:
        return b""


class DeadLetterBatch:
    """A batch for a dead letter queue. wall_ms: the timestamp of its records.

    most_bytes: its size at most, if it has more than one record. is_full: whether one did not fit.
    """

    def __init__(self, wall_ms: int, most_bytes: int) -> None:
        self._wall_ms = wall_ms
        self._most_bytes = most_bytes
        self._builder = BatchBuilder()
        self.is_full = False

    def add(self, letter: DeadLetter, topic: str, records: Iterable[Original]) -> int:
        """Add records as long as they fit; return the last offset that did, else an earlier one.

        A record that does not fit into a batch of its own with its copy has headers alone.
        A letter of which not all records are there fills the batch.
        """
        builder, last = self._builder, letter.first - 1
        for offset, key, value in records:
            headers = headers_of(letter, topic, offset)
            size = builder.size_of(key, value, self._wall_ms, headers)
            fits = builder.size + size <= self._most_bytes
            if builder.count and not fits:
                self.is_full = True
                break
            copied = (key, value) if fits else (None, None)
            builder.append(*copied, self._wall_ms, headers)
            last = offset
        self.is_full = self.is_full or last < letter.last
        return last

    def build(self) -> bytes:
        """Return the batch."""
        return self._builder.build()
