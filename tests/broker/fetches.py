"""Helpers for Fetch."""

from __future__ import annotations

from kafkawire import ErrorCode
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse, PartitionData

from .harness import Client

LARGE = 1 << 30


def fetch_of(
    client: Client,
    topic: str = "t",
    version: int = 12,
    *,
    offset: int = 0,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = LARGE,
    partition_max_bytes: int = LARGE,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchRequest:
    """Build a Fetch of one partition, without a session."""
    found = client.harness.topic(topic)
    requested = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=current_leader_epoch if version >= 9 else -1,
        last_fetched_epoch=last_fetched_epoch if version >= 12 else -1,
    )
    by_id = version >= 13 and found is not None
    one = FetchTopic(
        topic="" if version >= 13 else topic,
        topic_id=found.topic_id if by_id and found is not None else bytes(16),
        partitions=[requested],
    )
    request = FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, session_epoch=-1, topics=[one]
    )
    if version >= 3:
        request.max_bytes = max_bytes
    return request


def fetched(
    client: Client,
    topic: str = "t",
    *,
    offset: int = 0,
    version: int = 12,
    error: ErrorCode = ErrorCode.NONE,
) -> bytes:
    """Fetch records from an offset on."""
    response = client.exchange(
        fetch_of(client, topic, version, offset=offset), version, FetchResponse
    )
    data = only(response)
    assert data.error_code == error
    return data.records or b""


def only(response: FetchResponse) -> PartitionData:
    """Return the only partition of a response."""
    [topic] = response.responses
    [data] = topic.partitions
    return data
