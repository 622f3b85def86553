"""Produce and InitProducerId: builds requests, interprets results.

One table maps error codes to outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from ...messages.produce_response import PartitionProduceResponse, ProduceResponse
from ...primitives import Message
from ...primitives.structure import ZERO_UUID
from ...protocol.error_code import ErrorCode
from ...records import Compression
from ..requests import Same

IMPLICIT_PARTITIONS: Final = 2
"""The level of `transaction.version` from which requests add partitions and groups themselves."""
FIRST_WITH_BATCHES: Final = 3
"""Version of Produce; older ones carry messages of magic 0 and 1."""
FIRST_WITH_ZSTD: Final = 7
FIRST_WITH_IMPLICIT_PARTITIONS: Final = 12
"""From this version on, Produce adds its partitions to the transaction (KIP-890)."""
FIRST_WITH_TOPIC_IDS: Final = 13
LAST_WITH_NAMES: Final = FIRST_WITH_TOPIC_IDS - 1


class Row(NamedTuple):
    """The batch of one partition in a request."""

    topic: str
    topic_id: bytes
    partition: int
    records: bytes


@dataclass(frozen=True, slots=True)
class Produce:
    """The Produce request, for any version.

    transactional_id: of a transaction, with its version (`transaction.version`).
    """

    rows: tuple[Row, ...]
    acks: int
    timeout_ms: int
    compression: Compression
    transactional_id: str | None = None
    transaction_version: int = 0

    @property
    def lowest(self) -> int:
        if self.transaction_version >= IMPLICIT_PARTITIONS:
            return FIRST_WITH_IMPLICIT_PARTITIONS
        return FIRST_WITH_ZSTD if self.compression is Compression.ZSTD else FIRST_WITH_BATCHES

    @property
    def highest(self) -> int:
        if self.transactional_id is not None and self.transaction_version < IMPLICIT_PARTITIONS:
            return FIRST_WITH_IMPLICIT_PARTITIONS - 1
        have_ids = all(row.topic_id != ZERO_UUID for row in self.rows)
        return FIRST_WITH_TOPIC_IDS if have_ids else LAST_WITH_NAMES

    def build(self, version: int) -> Message:
        by_id = version >= FIRST_WITH_TOPIC_IDS
        topics: dict[str, TopicProduceData] = {}
        for row in self.rows:
            topic = topics.get(row.topic)
            if topic is None:
                topic = topics[row.topic] = (
                    TopicProduceData(topic_id=row.topic_id)
                    if by_id
                    else TopicProduceData(name=row.topic)
                )
            topic.partition_data.append(
                PartitionProduceData(index=row.partition, records=row.records)
            )
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=self.acks,
            timeout_ms=self.timeout_ms,
            topic_data=list(topics.values()),
        )


def results(
    response: ProduceResponse, rows: Sequence[Row]
) -> dict[tuple[str, int], PartitionProduceResponse]:
    """Return the results of a response by topic name and partition."""
    names: Mapping[bytes, str] = {row.topic_id: row.topic for row in rows}
    return {
        (names.get(topic.topic_id, "") if not topic.name else topic.name, row.index): row
        for topic in response.responses
        for row in topic.partition_responses
    }


class BatchOutcome(Enum):
    """What becomes of a batch."""

    DELIVERED = "delivered"
    SPLIT = "split in two"
    RETRY = "retry"
    SEQUENCE_ERROR = "retry after a sequence error"
    FAILED = "failed"


OUTCOMES: Final[Mapping[int, BatchOutcome]] = {
    ErrorCode.NONE: BatchOutcome.DELIVERED,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: BatchOutcome.DELIVERED,  # a duplicate
    ErrorCode.MESSAGE_TOO_LARGE: BatchOutcome.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: BatchOutcome.SPLIT,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: BatchOutcome.SEQUENCE_ERROR,
    ErrorCode.UNKNOWN_PRODUCER_ID: BatchOutcome.SEQUENCE_ERROR,
    ErrorCode.INVALID_PRODUCER_EPOCH: BatchOutcome.SEQUENCE_ERROR,
}
"""Outcomes that do not follow from `ErrorCode.retriable`."""


def outcome_of(code: ErrorCode, records: int, idempotent: bool) -> BatchOutcome:
    """Return what becomes of a batch of that many records."""
    outcome = OUTCOMES.get(code, BatchOutcome.RETRY if code.retriable else BatchOutcome.FAILED)
    if outcome is BatchOutcome.SPLIT and records < 2:
        return BatchOutcome.FAILED
    if outcome is BatchOutcome.SEQUENCE_ERROR and not idempotent:
        return BatchOutcome.FAILED
    return outcome


def error_text(row: PartitionProduceResponse) -> str:
    """Join the broker's error messages for a batch and its records (KIP-467)."""
    parts = [row.error_message] if row.error_message else []
    parts += [
        f"record {each.batch_index}: {each.batch_index_error_message or 'rejected'}"
        for each in row.record_errors
    ]
    return "; ".join(parts)


INIT_PRODUCER_ID: Final = Same(
    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0x7FFF_FFFF), 0, 5
)
"""InitProducerId for a producer without transactions."""
