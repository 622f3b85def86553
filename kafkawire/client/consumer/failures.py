"""What goes wrong for a consumer, as its user is told.

Law: a failure names the error code where a broker said one, and the partitions or group concerned;
machines carry failures as values, only the outermost layer raises them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.error_code import RETRIABLE, ErrorCode
from ..failures import ClientError
from .partitions import TopicPartition


class ConsumerError(ClientError):
    """Something a consumer was asked for cannot be done.

    reason: what is wrong and what may be done about it. code: the broker's, NONE where it is none.
    partitions: those concerned.
    """

    def __init__(
        self,
        reason: str,
        code: int = ErrorCode.NONE,
        partitions: Iterable[TopicPartition] = (),
    ) -> None:
        self.reason = reason
        self.code = code
        self.partitions = tuple(partitions)
        super().__init__(reason, code, self.partitions)

    @property
    def retriable(self) -> bool:
        """Whether the same may succeed later."""
        return self.code in RETRIABLE

    def __str__(self) -> str:
        code = "" if self.code == ErrorCode.NONE else f" ({ErrorCode.name_of(self.code)})"
        where = ", ".join(str(each) for each in self.partitions[:5])
        more = len(self.partitions) - 5
        where += f" and {more} more" if more > 0 else ""
        return f"{self.reason}{code}{': ' + where if where else ''}"


class GroupFailed(ConsumerError):
    """The group will not have us, or cannot be used."""


class CommitFailed(ConsumerError):
    """Offsets were not committed. code says why; after REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION or
    UNKNOWN_MEMBER_ID the partitions may be somebody else's.
    """


class NoOffset(ConsumerError):
    """A partition has no committed offset, and `auto.offset.reset` is none."""


class OffsetOutOfRange(ConsumerError):
    """The log does not have the offset to read, and `auto.offset.reset` is none."""


class LogTruncated(ConsumerError):
    """What was read is no longer in the log (KIP-320), and `auto.offset.reset` is none."""


class FetchFailed(ConsumerError):
    """A partition cannot be read."""


class LookupFailed(ConsumerError):
    """Offsets could not be looked up."""


class RequestTimedOut(ConsumerError):
    """No usable answer came in time."""
