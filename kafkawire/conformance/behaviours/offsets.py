"""Offsets of partitions and epochs: ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from typing import Final

from ...messages.api_key import ApiKey
from ...messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ...messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
)
from ...messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ...messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from ...messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ...messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ..behaviour import NEWEST, Behaviour, Feature, expect, expect_error, expect_success
from ..session import Session, Topic
from .fetching import fetched
from .producing import TIMESTAMP, filled

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
"""Timestamps with a meaning of their own."""
NO_OFFSET: Final = -1
READ_COMMITTED: Final = 1


async def listed(
    s: Session, topic: str, version: int, timestamp: int, *, partition: int = 0, isolation: int = 0
) -> ListOffsetsPartitionResponse:
    """Ask the leader of partition 0 for the offset of a timestamp."""
    to = await s.leader(topic)
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        timeout_ms=s.timeout_ms if version >= 10 else 0,
    )
    response = await to.send(request, version, ListOffsetsResponse)
    return only(only(response.topics, topic).partitions, topic)


async def _lists_ends(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    for timestamp, offset in ((EARLIEST, 0), (LATEST, 3)):
        partition = await listed(s, topic.name, version, timestamp)
        expect_success(partition.error_code, "error code")
        expect(partition.offset, offset, f"offset for timestamp {timestamp}")


async def _lists_by_time(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    for timestamp, offset in ((TIMESTAMP - 5, 0), (TIMESTAMP + 1, 1), (TIMESTAMP + 2, 2)):
        partition = await listed(s, topic.name, version, timestamp)
        expect_success(partition.error_code, "error code")
        expect(partition.offset, offset, f"{timestamp - TIMESTAMP} ms after the first record")
    partition = await listed(s, topic.name, version, TIMESTAMP + 3)
    expect((partition.offset, partition.timestamp), (NO_OFFSET, -1), "after the last record")


async def _lists_newest_record(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    partition = await listed(s, topic.name, version, MAX_TIMESTAMP)
    expect((partition.offset, partition.timestamp), (2, TIMESTAMP + 2), "offset and timestamp")


async def _refuses_partition(s: Session, version: int) -> None:
    topic = await s.topic()
    partition = await listed(s, topic.name, version, LATEST, partition=99)
    expect_error(partition.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "error code")


async def _ends_epoch(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    to = await s.leader(topic.name)
    epoch = only((await s.described(topic.name)).partitions, topic.name).leader_epoch
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1 if version >= 3 else -2,
        topics=[OffsetForLeaderTopic(topic=topic.name, partitions=[wanted])],
    )
    response = await to.send(request, version, OffsetForLeaderEpochResponse)
    end = only(only(response.topics, topic.name).partitions, topic.name)
    expect_success(end.error_code, "error code")
    expect((end.leader_epoch, end.end_offset), (epoch, 3), "epoch and end offset")


async def _deleted(
    s: Session, topic: Topic, version: int, offset: int
) -> DeleteRecordsPartitionResult:
    to = await s.leader(topic.name)
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic.name, partitions=[wanted])], timeout_ms=s.timeout_ms
    )
    response = await to.send(request, version, DeleteRecordsResponse)
    return only(only(response.topics, topic.name).partitions, topic.name)


async def _deletes_records(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    result = await _deleted(s, topic, version, 2)
    expect_success(result.error_code, "error code")
    expect(result.low_watermark, 2, "low watermark")
    start = await listed(s, topic.name, s.newest(ApiKey.LIST_OFFSETS, 9), EARLIEST)
    expect(start.offset, 2, "earliest offset afterwards")
    partition = await fetched(s, topic, s.newest(ApiKey.FETCH, 17), offset=1)
    expect_error(partition.error_code, ErrorCode.OFFSET_OUT_OF_RANGE, "Fetch of a deleted record")


async def _refuses_to_delete_more(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    result = await _deleted(s, topic, version, 9)
    expect_error(result.error_code, ErrorCode.OFFSET_OUT_OF_RANGE, "error code")


R, A = Feature.RECORDS, ApiKey
PRODUCE: Final = {A.PRODUCE: 3}
BEHAVIOURS: Final = (
    Behaviour(R, A.LIST_OFFSETS, "lists the ends of a partition", _lists_ends, 1, NEWEST, PRODUCE),
    Behaviour(
        R,
        A.LIST_OFFSETS,
        "lists the first record that is not older than a timestamp",
        _lists_by_time,
        1,
        NEWEST,
        PRODUCE,
    ),
    Behaviour(
        R,
        A.LIST_OFFSETS,
        "lists the record with the largest timestamp",
        _lists_newest_record,
        7,
        NEWEST,
        PRODUCE,
    ),
    Behaviour(R, A.LIST_OFFSETS, "refuses a partition that does not exist", _refuses_partition, 1),
    Behaviour(
        R,
        A.OFFSET_FOR_LEADER_EPOCH,
        "returns the end offset of an epoch",
        _ends_epoch,
        2,
        NEWEST,
        {A.PRODUCE: 3, A.METADATA: 7},
    ),
    Behaviour(
        R,
        A.DELETE_RECORDS,
        "deletes the records before an offset",
        _deletes_records,
        0,
        NEWEST,
        {A.PRODUCE: 3, A.FETCH: 4},
    ),
    Behaviour(
        R,
        A.DELETE_RECORDS,
        "refuses an offset after the end",
        _refuses_to_delete_more,
        0,
        NEWEST,
        PRODUCE,
    ),
)
