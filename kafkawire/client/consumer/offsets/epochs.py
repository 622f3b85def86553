"""Where a leader's log of an epoch ends: is what we read still there (KIP-320)?

Law: a broker that cannot say is believed to have lost nothing.

    position (offset, epoch) ─▶ OffsetForLeaderEpoch ─▶ end offset of that epoch, or of one before
        end >= offset: valid │ end < offset: truncated to end │ -1: nobody knows where they parted
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ....messages.api_key import ApiKey
from ....messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ....messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from ....protocol.error_code import ErrorCode
from ...requests import Body, ResponseReceived, Same
from ..partitions import TopicPartition, by_topic
from .leader_requests import Answer, Point, verdict

CONSUMER: Final = -1
SINCE_CURRENT_EPOCH: Final = 2
BOUNDLESS: Final = 0x7FFF_FFFF_FFFF_FFFF


class EpochEnd(NamedTuple):
    """The newest epoch not after the one asked about, and the offset behind its last record; -1:
    the leader knows no such epoch.
    """

    leader_epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class EpochEnds:
    """The subject: wanted are leader epochs; answers are EpochEnd."""

    api: ApiKey = ApiKey.OFFSET_FOR_LEADER_EPOCH

    def body(self, points: Mapping[TopicPartition, Point]) -> Body:
        message = OffsetForLeaderEpochRequest(
            replica_id=CONSUMER,
            topics=[
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[_asked(number, points, topic) for number in numbers],
                )
                for topic, numbers in by_topic(points).items()
            ],
        )
        return Same(message, SINCE_CURRENT_EPOCH, 4)

    def read(self, event: ResponseReceived) -> Iterator[tuple[TopicPartition, Answer]]:
        assert isinstance(event.message, OffsetForLeaderEpochResponse)
        for topic in event.message.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic, each.partition)
                if each.error_code == ErrorCode.NONE:
                    yield partition, EpochEnd(each.leader_epoch, each.end_offset)
                else:
                    why = "the leader does not tell where its epochs end"
                    yield partition, verdict(each.error_code, partition, why)

    def unsupported(self, partition: TopicPartition) -> Answer:  # noqa: ARG002
        return EpochEnd(0, BOUNDLESS)


def _asked(
    number: int, points: Mapping[TopicPartition, Point], topic: str
) -> OffsetForLeaderPartition:
    point = points[TopicPartition(topic, number)]
    return OffsetForLeaderPartition(
        partition=number,
        current_leader_epoch=point.current_leader_epoch,
        leader_epoch=point.wanted,
    )
