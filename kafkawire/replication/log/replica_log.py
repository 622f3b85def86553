"""What replication needs of a partition's log.

Offsets only grow, except by `truncate_to`; leader epochs grow with the offsets, so that the
logs of two replicas agree up to the end of the last epoch that both have (KIP-101).

    log start ─── high watermark ─── last stable offset may be before ─── log end
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ...errors import WireError
from ...protocol import ErrorCode
from ...records import RecordBatches
from ...records.validated import ValidatedBatch

MAGIC: Final = 2
NO_EPOCH: Final = -1
MAX_TIMESTAMP: Final = -3
UNKNOWN_OFFSET: Final = -1


class LogAppendInfo(NamedTuple):
    """What an append did.

    log_append_time_ms: -1 for CreateTime; the maximum timestamp of a batch that was there already.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int = -1


class EpochEndOffset(NamedTuple):
    """The end offset of a leader epoch; both -1 if unknown."""

    leader_epoch: int = -1
    end_offset: int = -1


class AbortedTransaction(NamedTuple):
    """An aborted transaction that overlaps a read."""

    producer_id: int
    first_offset: int


class TimestampOffset(NamedTuple):
    """The first record at or after a timestamp."""

    timestamp: int
    offset: int


@dataclass(frozen=True)
class AppendRejected(Exception):
    """A log refuses records: an error code of Produce, and why."""

    error: ErrorCode
    message: str
    records: tuple[tuple[int, str], ...] = ()
    """The records that are invalid: index in the batch, and why."""
    content_checked: bool = False
    """Whether their content or sequence is invalid: the response has the log start offset then."""


Validate = Callable[[str, bytes], Sequence[ValidatedBatch]]
"""(topic, records) -> the batches that its leader appends. Raises AppendRejected."""


def whole_batches(records: bytes, internal: bool = False) -> list[ValidatedBatch]:
    """Return batches of magic 2 with valid checksums. Raises AppendRejected.

    internal: they are the broker's own, and may be control batches.
    """
    try:
        batches = list(RecordBatches(records))
        for batch in batches:
            batch.verify()
    except WireError as error:
        raise AppendRejected(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if not batches or batches[-1].end < len(records):
        raise AppendRejected(ErrorCode.INVALID_RECORD, "expected whole batches")
    if any(batch.magic != MAGIC or (batch.control and not internal) for batch in batches):
        raise AppendRejected(ErrorCode.INVALID_RECORD, "expected batches of magic 2 with data")
    return [ValidatedBatch(batch, batch.max_timestamp) for batch in batches]


class LogOffline(Exception):
    """The log directory of a log has failed: none of its methods that read or write works."""


class ReplicaLog(Protocol):
    """The log of one replica: `kafkawire.replication.MemoryLog`, or files.

    Methods that read or write records raise LogOffline; offsets are known nevertheless.
    """

    @property
    def log_start_offset(self) -> int:
        """The first offset."""

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def high_watermark(self) -> int:
        """The first offset that is not yet known to be replicated."""

    @property
    def last_stable_offset(self) -> int:
        """The first offset of an open transaction, at most the high watermark."""

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch that has a start offset here; -1 for none."""

    def append_as_leader(
        self, batches: Sequence[ValidatedBatch], leader_epoch: int, internal: bool = False
    ) -> LogAppendInfo:
        """Append batches with the next offsets. Raises AppendRejected.

        internal: they are the broker's own, and may be control batches.
        """

    def append_as_follower(self, records: bytes) -> None:
        """Append batches as the leader has them; they begin at the log end offset."""

    def read(self, offset: int, max_bytes: int, max_offset: int, at_least_one: bool) -> bytes:
        """Return whole batches from the one with `offset` on, all before `max_offset`."""

    def size_between(self, start: int, end: int) -> int:
        """Return the bytes of the batches with offsets from `start` to before `end`."""

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Return the end of the largest epoch up to `leader_epoch` (KIP-279)."""

    def assign_epoch_start_offset(self, leader_epoch: int, offset: int) -> None:
        """Remember where a leader epoch starts."""

    def truncate_to(self, offset: int) -> None:
        """Drop what is at `offset` and after it, with leader epochs that have no records then.

        An epoch that starts at the log end goes even if no record does: this replica led in it
        without writing, and the next leader may not know it.
        """

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log starts and ends at `offset`."""

    def increment_log_start_offset(self, offset: int) -> None:
        """Delete records before `offset`, if they are still there."""

    def update_high_watermark(self, offset: int) -> None:
        """Set the high watermark, between log start and log end."""

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """List the aborted transactions with records between two offsets."""

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """Find the first record at or after a timestamp; MAX_TIMESTAMP: the latest of all."""
