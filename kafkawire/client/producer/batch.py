"""One batch of one partition, from its first record to its delivery report.

A batch has one result; splitting it makes batches that together have its records, in order.

    open ─▶ closed ─▶ in flight ─▶ done
                 ▲────────┘ retry
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ...records import Compression, Headers, RecordBatches, RecordLimits
from ...records.builder import BatchBuilder
from .events import Failure

NO_SEQUENCE: Final = -1
TRUSTED: Final = RecordLimits()
NO_BUILDER: Final = BatchBuilder()
"""In the place of the builder of an encoded batch; never appended to."""


class Batch:
    """Records that are sent together.

    order: its position among all batches; the halves of a split sort in its place. number: the
    first part of order, which halves share.
    closed: whether it accepts no more records. attempts: how many failed. early: whether it is
    encoded when it is closed, rather than when it is sent. transactional: whether it belongs to a
    transaction.
    """

    __slots__ = (
        "_compression",
        "_early",
        "_encoded",
        "_encoded_from",
        "_transactional",
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

    def __init__(
        self,
        order: tuple[int, ...],
        compression: Compression,
        created_at: float,
        early: bool = False,
        transactional: bool = False,
    ) -> None:
        self.order = order
        self.builder = BatchBuilder(compression=compression, transactional=transactional)
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
        self._early = early
        self._transactional = transactional
        self._encoded: bytes | None = None
        self._encoded_from = 0

    @property
    def number(self) -> int:
        return self.order[0]

    @property
    def size(self) -> int:
        """Bytes before compression."""
        return self.builder.size if self._encoded is None else self._encoded_from

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

    def close(self) -> None:
        """Accept no more records.

        A batch that will get no sequence numbers is encoded while it is in the processor's caches,
        and while responses are awaited.
        """
        self.closed = True
        if not self._early:
            return
        self._early = False
        try:
            encoded = self.builder.build()
        except Exception:  # noqa: BLE001 - `build` raises it again, and this batch fails
            return
        self._encoded, self._encoded_from = encoded, self.builder.size
        self.builder = NO_BUILDER

    def build(self) -> bytes:
        """Encode the batch, unless that is done."""
        return self.builder.build() if self._encoded is None else self._encoded

    def split(self) -> tuple[Batch, Batch]:
        """Split the batch in two, after a broker rejected it as too large."""
        records = list(RecordBatches(self.build(), limits=TRUSTED).records())
        middle = len(records) // 2
        transactional = self._transactional
        first = Batch(
            (*self.order, 0), self._compression, self.created_at, transactional=transactional
        )
        second = Batch(
            (*self.order, 1), self._compression, self.created_at, transactional=transactional
        )
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
