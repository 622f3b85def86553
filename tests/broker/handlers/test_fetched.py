"""Fetch responses whose batches are sent from the log."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode, encode_frame
from kafkawire.broker import Action, Fault, Reply, Report
from kafkawire.broker.fetched import Fetched
from kafkawire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kafkawire.messages.produce_response import ProduceResponse
from tests.broker.fetches import fetch_of, fetched
from tests.broker.harness import Client, Harness
from tests.broker.log.test_log import batch, produce_request

VALUE = bytes(range(256)) * 200
"""A record that makes its batch larger than what is joined."""
SIZES = (1, 126, 127, 128, 16_382, 16_383, 16_384, 2_097_151)
"""Sizes around which the length of a varint changes."""


def response(version: int) -> FetchResponse:
    """A response with partitions of every kind, none with records yet."""
    moved = PartitionData(
        partition_index=9, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, records=b""
    )
    if version >= 12:
        moved.current_leader = LeaderIdAndEpoch(leader_id=3, leader_epoch=4)
    small = PartitionData(partition_index=8, records=b"as it is")
    topics = []
    for at in range(2):
        large = [PartitionData(partition_index=index, records=b"") for index in range(len(SIZES))]
        made = FetchableTopicResponse(partitions=[*large, moved, small])
        if version <= 12:
            made.topic = f"t{at}"
        else:
            made.topic_id = bytes([at]) * 16
        topics.append(made)
    return FetchResponse(responses=topics)


@pytest.mark.parametrize("version", range(19))
def test_the_parts_are_the_frame_of_the_response_with_its_records(version: int) -> None:
    plain, apart = response(version), response(version)
    batches: dict[int, list[bytes]] = {}
    for joined, separate in zip(plain.responses, apart.responses, strict=True):
        for data, other, size in zip(joined.partitions, separate.partitions, SIZES, strict=False):
            parts = [bytes([size % 251]) * (size - size // 3), bytes(size // 3)]
            data.records, batches[id(other)] = b"".join(parts), parts
    given = Fetched(apart, batches)
    frame = given.frame(version, 77)
    assert b"".join(frame) == encode_frame(plain, version, 77)
    stored = {id(part) for parts in batches.values() for part in parts}
    assert stored <= {id(part) for part in frame}, "batches are not copied"
    assert given.complete() == plain
    assert given.complete() == plain
    assert b"".join(given.frame(version, 77)) == b"".join(frame)


def filled(count: int, value: bytes = VALUE) -> tuple[Harness, Client]:
    """A topic with that many batches."""
    harness = Harness()
    harness.create_topic("t")
    client = harness.client()
    for _ in range(count):
        client.exchange(produce_request(batch(value)), 9, ProduceResponse)
    harness.effects.clear()
    return harness, client


@pytest.mark.parametrize("version", [4, 9, 10, 12, 17])
def test_a_fetch_sends_the_stored_batches_as_they_are(version: int) -> None:
    harness, client = filled(5)
    log = harness.replica("t").log
    records = fetched(client, version=version)
    assert records == log.read(0, 1 << 30, log.log_end_offset, True)
    [report] = [each for each in harness.effects if isinstance(each, Report)]
    [reply] = [each for each in harness.effects if isinstance(each, Reply)]
    if version >= 10:
        assert records in reply.buffers, "they are not copied into the frame"
        assert sum(map(len, reply.buffers)) - len(records) < 200
    assert isinstance(report.response, FetchResponse)
    assert report.response.responses[0].partitions[0].records == records


def test_small_batches_are_joined() -> None:
    harness, client = filled(5, b"small")
    fetched(client)
    [reply] = [each for each in harness.effects if isinstance(each, Reply)]
    assert len(reply.buffers) == 1


def test_faults_affect_responses_in_parts() -> None:
    harness, client = filled(3)
    whole = fetched(client)
    harness.faults[:] = [Fault("Fetch", nth=1, action=Action.DELAY, delay=5.0)]
    client.send(fetch_of(client), 12)
    assert client.response() is None
    harness.advance(5.0)
    late = client.receive(FetchResponse)
    assert late.responses[0].partitions[0].records == whole
    harness.faults[:] = [Fault("Fetch", action=Action.TRUNCATE, keep=60_000)]
    client.send(fetch_of(client), 12)
    assert len(client.received) == 60_000
