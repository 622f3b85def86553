"""One batch of one partition, from its first record to its delivery report.

Law: a batch has one result; splitting it makes batches that together have its records, in order.

    open ─▶ closed ─▶ in flight ─▶ done
                 ▲────────┘ retry
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ...records import BatchBuilder, Compression, Headers, RecordBatches, RecordLimits
from .events import Failure

NO_SEQUENCE: Final = -1
TRUSTED: Final = RecordLimits()


class Batch:
    """Records that are sent together.

    order: its position among all batches; the halves of a split sort in its place. number: the
    first part of order, which halves share.
    closed: whether it accepts no more records. attempts: how many failed.
    """

    __slots__ = (
        "_compression",
        "attempts",
        "base_offset",
        "builder",
        "closed",
        "created_at",
        "done",
        "failure",
        "log_append_time",
        "order",
        "sequence",
        "timestamps",
        "tokens",
    )

    def __init__(self, order: tuple[int, ...], compression: Compression, created_at: float) -> None:
        self.order = order
        self.builder = BatchBuilder(compression=compression)
        self.tokens: list[Hashable] = []
        self.timestamps: list[int] = []
        self.created_at = created_at
        self.closed = False
        self.attempts = 0
        self.sequence = NO_SEQUENCE
        self.done = False
        self.failure: Failure | None = None
        self.base_offset = -1
        self.log_append_time = -1
        self._compression = compression

    @property
    def number(self) -> int:
        return self.order[0]

    @property
    def size(self) -> int:
        """Bytes before compression."""
        return self.builder.size

    def append(
        self,
        token: Hashable,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Add a record."""
        self.builder.append(key, value, timestamp, headers)
        self.tokens.append(token)
        self.timestamps.append(timestamp)

    def set_producer_state(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        """Set producer id, epoch and base sequence."""
        self.sequence = sequence
        self.builder.producer_id = producer_id
        self.builder.producer_epoch = producer_epoch
        self.builder.base_sequence = sequence

    def build(self) -> bytes:
        """Encode the batch."""
        return self.builder.build()

    def split(self) -> tuple[Batch, Batch]:
        """Split the batch in two, after a broker rejected it as too large."""
        records = list(RecordBatches(self.build(), limits=TRUSTED).records())
        middle = len(records) // 2
        first = Batch((*self.order, 0), self._compression, self.created_at)
        second = Batch((*self.order, 1), self._compression, self.created_at)
        for half, chosen in ((first, slice(0, middle)), (second, slice(middle, None))):
            half.closed = True
            half.attempts = self.attempts
            for token, record in zip(self.tokens[chosen], records[chosen], strict=True):
                half.append(token, record.key, record.value, record.timestamp, record.headers)
        return first, second

    def deliver(self, base_offset: int, log_append_time: int) -> None:
        """Mark the batch as appended to the log."""
        self.done = True
        self.base_offset, self.log_append_time = base_offset, log_append_time

    def fail(self, failure: Failure) -> None:
        """Mark the batch as failed."""
        self.done = True
        self.failure = failure
