"""Limits on decoding record batches, for hostile input.

Every size and count is compared with these limits before memory is allocated; one call has one
`Budget` for all its batches.
"""

from typing import Final, NamedTuple, final

from ..errors import LimitExceeded


class RecordLimits(NamedTuple):
    """Bounds of decoding record batches.

    max_batch_bytes: decompressed bytes of one batch. max_batch_records: records of one batch.
    max_bytes: decompressed bytes of all batches of one call. max_records: records of one call.
    max_frames: gzip members, lz4 or zstd frames, or snappy blocks of one compressed batch. Clients
    write one; old Java clients write one snappy block per KiB.
    """

    max_batch_bytes: int = 134_217_728
    max_batch_records: int = 4_000_000
    max_bytes: int = 1_073_741_824
    max_records: int = 40_000_000
    max_frames: int = 65_536


DEFAULT_RECORD_LIMITS: Final = RecordLimits()


@final
class Budget:
    """The rest of the limits in one call."""

    def __init__(self, limits: RecordLimits) -> None:
        self.limits = limits
        self.bytes_left: int = limits.max_bytes
        self.records_left: int = limits.max_records

    def batch_bytes(self) -> int:
        """Return how many decompressed bytes the next batch may have."""
        return min(self.limits.max_batch_bytes, self.bytes_left)

    def spend_bytes(self, count: int) -> None:
        """Subtract the decompressed bytes of a batch."""
        self.bytes_left -= count

    def batch_records(self) -> int:
        """Return how many records the next batch may have."""
        return min(self.limits.max_batch_records, self.records_left)

    def spend_records(self, count: int) -> None:
        """Subtract the records of one batch; raise LimitExceeded before they are decoded."""
        allowed = self.batch_records()
        if count > allowed:
            raise LimitExceeded(f"{count} records, where {allowed} are allowed")
        self.records_left -= count
