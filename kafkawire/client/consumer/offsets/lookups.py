"""Offsets by time, and of both ends of a log (ListOffsets).

Law: versions differ in what they can say, never in what is found.

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
from .leader_requests import Answer, Point, verdict

LATEST: Final = -1
EARLIEST: Final = -2
"""Times that stand for the ends of a log."""
MAX_TIMESTAMP: Final = -3
"""The record with the latest timestamp (KIP-734)."""
CONSUMER: Final = -1
SINCE_ISOLATION: Final = 2
SINCE_MAX_TIMESTAMP: Final = 7
NO_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetsByTime:
    """The subject: wanted are times; answers are OffsetAndTimestamp, or None."""

    isolation_level: IsolationLevel
    timeout_ms: int
    api: ApiKey = ApiKey.LIST_OFFSETS

    def body(self, points: Mapping[TopicPartition, Point]) -> Body:
        message = ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=self.isolation_level,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[_asked(number, points, topic) for number in numbers],
                )
                for topic, numbers in by_topic(points).items()
            ],
            timeout_ms=self.timeout_ms,
        )
        committed = self.isolation_level is IsolationLevel.READ_COMMITTED
        lowest = SINCE_ISOLATION if committed else 0
        if any(point.wanted == MAX_TIMESTAMP for point in points.values()):
            lowest = SINCE_MAX_TIMESTAMP
        return Same(message, lowest, 11)

    def read(self, event: ResponseReceived) -> Iterator[tuple[TopicPartition, Answer]]:
        assert isinstance(event.message, ListOffsetsResponse)
        for topic in event.message.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                yield partition, _answer(partition, each, event.version)

    def unsupported(self, partition: TopicPartition) -> Answer:
        return LookupFailed("the broker is too old for this look-up", partitions=[partition])


def _asked(number: int, points: Mapping[TopicPartition, Point], topic: str) -> ListOffsetsPartition:
    point = points[TopicPartition(topic, number)]
    return ListOffsetsPartition(
        partition_index=number,
        current_leader_epoch=point.current_leader_epoch,
        timestamp=point.wanted,
    )


def _answer(partition: TopicPartition, said: ListOffsetsPartitionResponse, version: int) -> Answer:
    if said.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
        return None  # records without timestamps have no time to be found by
    if said.error_code != ErrorCode.NONE:
        return verdict(said.error_code, partition, "the leader does not tell its offsets")
    offset = said.offset
    if version == 0:
        offset = said.old_style_offsets[0] if said.old_style_offsets else NO_OFFSET
    if offset == NO_OFFSET:
        return None
    return OffsetAndTimestamp(offset, said.timestamp, said.leader_epoch)
