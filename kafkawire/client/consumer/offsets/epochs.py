"""Looks up where leader epochs end, to detect log truncation (OffsetForLeaderEpoch, KIP-320).

A broker that does not support the request is assumed not to have truncated its log.

    position (offset, epoch) ─▶ OffsetForLeaderEpoch ─▶ end offset of that epoch, or of one before
        end >= offset: valid │ end < offset: truncated to end │ -1: the end is unknown
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ....messages.api_key import ApiKey
from ....messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ....messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from ....protocol.error_code import ErrorCode
from ...requests import Body, ResponseReceived, Same
from ..partitions import EpochEnd, TopicPartition, by_topic
from .leader_requests import LookupResult, PartitionLookup, lookup_error

CONSUMER_REPLICA_ID: Final = -1
CURRENT_EPOCH_VERSION: Final = 2
MAX_OFFSET: Final = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class EpochEnds:
    """A lookup of leader epochs; results are EpochEnd."""

    api: ApiKey = ApiKey.OFFSET_FOR_LEADER_EPOCH

    def body(self, lookups: Mapping[TopicPartition, PartitionLookup]) -> Body:
        message = OffsetForLeaderEpochRequest(
            replica_id=CONSUMER_REPLICA_ID,
            topics=[
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[_request_partition(number, lookups, topic) for number in numbers],
                )
                for topic, numbers in by_topic(lookups).items()
            ],
        )
        return Same(message, CURRENT_EPOCH_VERSION, 4)

    def read(self, event: ResponseReceived) -> Iterator[tuple[TopicPartition, LookupResult]]:
        assert isinstance(event.message, OffsetForLeaderEpochResponse)
        for topic in event.message.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic, each.partition)
                if each.error_code == ErrorCode.NONE:
                    yield partition, EpochEnd(each.leader_epoch, each.end_offset)
                else:
                    reason = "cannot look up the end of the leader epoch"
                    yield partition, lookup_error(each.error_code, partition, reason)

    def unsupported(self, partition: TopicPartition) -> LookupResult:  # noqa: ARG002
        return EpochEnd(0, MAX_OFFSET)


def _request_partition(
    number: int, lookups: Mapping[TopicPartition, PartitionLookup], topic: str
) -> OffsetForLeaderPartition:
    lookup = lookups[TopicPartition(topic, number)]
    return OffsetForLeaderPartition(
        partition=number,
        current_leader_epoch=lookup.current_leader_epoch,
        leader_epoch=lookup.wanted,
    )
