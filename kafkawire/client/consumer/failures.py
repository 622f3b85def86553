"""The errors of a consumer.

An error has the broker's error code, if any, and the partitions or group concerned. Machines
return errors as values; only the outermost layer raises them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.error_code import RETRIABLE, ErrorCode
from ..failures import ClientError
from .partitions import ConsumerRecord, TopicPartition


class ConsumerError(ClientError):
    """An operation of a consumer failed.

    reason: what is wrong and how to fix it. code: the broker's error code, else NONE. partitions:
    those concerned.
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
        """Whether a retry may succeed."""
        return self.code in RETRIABLE

    def __str__(self) -> str:
        code = "" if self.code == ErrorCode.NONE else f" ({ErrorCode.name_of(self.code)})"
        where = ", ".join(str(each) for each in self.partitions[:5])
        more = len(self.partitions) - 5
        where += f" and {more} more" if more > 0 else ""
        return f"{self.reason}{code}{': ' + where if where else ''}"


class GroupFailed(ConsumerError):
    """The group refused this member, or is unavailable."""


class CommitFailed(ConsumerError):
    """Offsets were not committed.

    code: why; after REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID the partitions
    may be assigned to another member.
    """


class NoOffset(ConsumerError):
    """A partition has no committed offset, and `auto.offset.reset` is none."""


class OffsetOutOfRange(ConsumerError):
    """The fetch offset is out of range, and `auto.offset.reset` is none."""


class LogTruncated(ConsumerError):
    """The log was truncated before the position (KIP-320), and `auto.offset.reset` is none."""


class FetchFailed(ConsumerError):
    """A partition cannot be fetched, or its records are corrupt."""


class DeserializationFailed(ConsumerError):
    """A deserializer raised an exception, which is the cause (KIP-334).

    record: with the key and value as bytes (KIP-1036). part: of the record, key or value. The
    position of a consumer stays at the record: seek to `offset + 1` to skip it.
    """

    def __init__(self, record: ConsumerRecord, part: str, reason: str) -> None:
        partition = TopicPartition(record.topic, record.partition)
        self.record = record
        self.part = part
        self.offset = record.offset
        text = f"cannot deserialize the {part} at offset {record.offset}: {reason}"
        super().__init__(text, partitions=[partition])
        self.args = record, part, reason


class LookupFailed(ConsumerError):
    """Offsets could not be looked up."""


class RequestTimedOut(ConsumerError):
    """No valid response in time."""
