"""Looks up offsets by timestamp, and the start and end of logs (ListOffsets).

All versions of the request give the same results.

    time in ms │ LATEST │ EARLIEST ─▶ offset, timestamp, leader epoch; None: no record that late
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ....messages.api_key import ApiKey
from ....messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ....messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from ....protocol.error_code import ErrorCode
from ...requests import Body, ResponseReceived, Same
from ..configuration import IsolationLevel
from ..failures import LookupFailed
from ..partitions import OffsetAndTimestamp, TopicPartition, by_topic
from .leader_requests import LookupResult, PartitionLookup, lookup_error

LATEST: Final = -1
EARLIEST: Final = -2
"""Timestamps that stand for the end and the start of a log."""
MAX_TIMESTAMP: Final = -3
"""The record with the latest timestamp (KIP-734)."""
CONSUMER_REPLICA_ID: Final = -1
ISOLATION_VERSION: Final = 2
MAX_TIMESTAMP_VERSION: Final = 7
NO_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetsByTime:
    """A lookup of timestamps; results are OffsetAndTimestamp, or None."""

    isolation_level: IsolationLevel
    timeout_ms: int
    api: ApiKey = ApiKey.LIST_OFFSETS

    def body(self, lookups: Mapping[TopicPartition, PartitionLookup]) -> Body:
        message = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            isolation_level=self.isolation_level,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[_request_partition(number, lookups, topic) for number in numbers],
                )
                for topic, numbers in by_topic(lookups).items()
            ],
            timeout_ms=self.timeout_ms,
        )
        committed = self.isolation_level is IsolationLevel.READ_COMMITTED
        lowest = ISOLATION_VERSION if committed else 0
        if any(lookup.wanted == MAX_TIMESTAMP for lookup in lookups.values()):
            lowest = MAX_TIMESTAMP_VERSION
        return Same(message, lowest, 11)

    def read(self, event: ResponseReceived) -> Iterator[tuple[TopicPartition, LookupResult]]:
        assert isinstance(event.message, ListOffsetsResponse)
        for topic in event.message.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                yield partition, _result(partition, each, event.version)

    def unsupported(self, partition: TopicPartition) -> LookupResult:
        return LookupFailed("the broker does not support this lookup", partitions=[partition])


def _request_partition(
    number: int, lookups: Mapping[TopicPartition, PartitionLookup], topic: str
) -> ListOffsetsPartition:
    lookup = lookups[TopicPartition(topic, number)]
    return ListOffsetsPartition(
        partition_index=number,
        current_leader_epoch=lookup.current_leader_epoch,
        timestamp=lookup.wanted,
    )


def _result(
    partition: TopicPartition, response: ListOffsetsPartitionResponse, version: int
) -> LookupResult:
    if response.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
        return None  # its records have no timestamps
    if response.error_code != ErrorCode.NONE:
        return lookup_error(response.error_code, partition, "cannot look up offsets")
    offset = response.offset
    if version == 0:
        offset = response.old_style_offsets[0] if response.old_style_offsets else NO_OFFSET
    if offset == NO_OFFSET:
        return None
    return OffsetAndTimestamp(offset, response.timestamp, response.leader_epoch)
