"""A batch that was validated, and gets its place in a partition."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from .batch import CRC_START, Batch
from .checksum import crc32c
from .legacy import LOG_APPEND_TIME_BIT, LOG_OVERHEAD
from .record import NO_TIMESTAMP

HEAD: Final = Struct(">qii")
"""Base offset, length and leader epoch: what a leader sets, all before the checksum's range."""
CRC: Final = Struct(">I")
STAMP: Final = Struct(">hiqq")
"""Attributes, last offset delta, base timestamp and maximum timestamp, from CRC_START on."""


@dataclass(slots=True)
class ValidatedBatch:
    """A batch of magic 2 that a leader may append: as received, or converted.

    max_timestamp: of the records, whatever the header says. log_append_time_ms: the broker's
    timestamp for all of them; -1 leaves them their own.
    """

    batch: Batch
    max_timestamp: int
    log_append_time_ms: int = NO_TIMESTAMP

    def assigned(self, base_offset: int, leader_epoch: int) -> bytes:
        """Return the batch with its offset, leader epoch, timestamp type and maximum timestamp."""
        batch = self.batch
        view = memoryview(batch.data)
        head = HEAD.pack(base_offset, batch.end - batch.start - LOG_OVERHEAD, leader_epoch)
        attributes, latest = batch.attributes & ~LOG_APPEND_TIME_BIT, self.max_timestamp
        if self.log_append_time_ms >= 0:
            attributes |= LOG_APPEND_TIME_BIT
            latest = self.log_append_time_ms
        if (attributes, latest) == (batch.attributes, batch.max_timestamp):
            return head + view[batch.start + HEAD.size : batch.end]
        stamp = STAMP.pack(attributes, batch.last_offset_delta, batch.base_timestamp, latest)
        body = stamp + view[batch.start + CRC_START + STAMP.size : batch.end]
        magic = view[batch.start + HEAD.size : batch.start + HEAD.size + 1]
        return b"".join((head, magic, CRC.pack(crc32c(body, 0, len(body))), body))
