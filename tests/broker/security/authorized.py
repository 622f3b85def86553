"""Requests of clients with and without permissions, for the tests of what they get."""

from __future__ import annotations

from typing import Any

from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.records import BatchBuilder

SEEN, HIDDEN = "seen", "hidden"


def committing(group: str, *topics: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in topics],
    )


def producing(*topics: str, acks: int = -1) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(b"k", b"v", 1_700_000_000_000)
    data = PartitionProduceData(index=0, records=builder.build())
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=name, partition_data=[data]) for name in topics],
    )


def codes(topics: Any) -> dict[str, int]:
    return {each.name: each.error_code for each in topics}
