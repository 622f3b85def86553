"""What hostile record batches may cost.

Law: nothing is allocated for a size or count that was not first compared with these limits, and one
call spends from one `Budget`, however many batches it walks.
"""

from typing import Final, NamedTuple, final

from ..errors import LimitExceeded


class RecordLimits(NamedTuple):
    """Bounds of decoding record batches.

    max_batch_bytes: what one compressed batch may become, in bytes.
    max_batch_records: records of one batch.
    max_bytes: what all compressed batches of one call may become together.
    max_records: records of one call.
    max_frames: gzip members, lz4 or zstd frames, or snappy blocks of one compressed batch. Clients
        write one; snappy's of old Java clients, a block for each KiB.
    """

    max_batch_bytes: int = 134_217_728
    max_batch_records: int = 4_000_000
    max_bytes: int = 1_073_741_824
    max_records: int = 40_000_000
    max_frames: int = 65_536


DEFAULT_RECORD_LIMITS: Final = RecordLimits()


@final
class Budget:
    """What is left of the limits in one call."""

    def __init__(self, limits: RecordLimits) -> None:
        self.limits = limits
        self.bytes_left: int = limits.max_bytes
        self.records_left: int = limits.max_records

    def batch_bytes(self) -> int:
        """Say how many bytes the next batch may become."""
        return min(self.limits.max_batch_bytes, self.bytes_left)

    def spend_bytes(self, count: int) -> None:
        """Take off what a batch became."""
        self.bytes_left -= count

    def batch_records(self) -> int:
        """Say how many records the next batch may have."""
        return min(self.limits.max_batch_records, self.records_left)

    def spend_records(self, count: int) -> None:
        """Take off the records of one batch; LimitExceeded before they are made."""
        allowed = self.batch_records()
        if count > allowed:
            raise LimitExceeded(f"{count} records, where {allowed} are allowed")
        self.records_left -= count
