"""A follower: fetches, truncation, errors, consumers of its own."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.fetch_request import FetchRequest
from kafkawire.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkawire.messages.list_offsets_request import ListOffsetsRequest
from kafkawire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkawire.messages.remove_topic_record import RemoveTopicRecord
from kafkawire.replication import (
    MemoryLog,
    ReplicaState,
    ResponseReceived,
    ThrottleChanged,
)
from kafkawire.replication.fetcher import ReplicaFetcher

from .clients import batch
from .scene import ID, KEY, Scene

E = ErrorCode


def follower(scene: Scene | None = None, epoch: int = 3) -> Scene:
    scene = scene or Scene()
    scene.metadata(leader=2, epoch=epoch)
    return scene


def stored(*values: bytes, offset: int = 0, epoch: int = 3) -> bytes:
    """Build a batch as a leader stores it."""
    log = MemoryLog()
    log.truncate_fully_and_start_at(offset)
    log.append_as_leader(batch(list(values)), epoch)
    return log.read(offset, 1 << 20, log.log_end_offset, at_least_one=True)


def respond(scene: Scene, **fields: Any) -> None:
    """Respond to the last Fetch."""
    fields.setdefault("high_watermark", 0)
    topic = FetchableTopicResponse(
        topic_id=ID, partitions=[PartitionData(partition_index=0, **fields)]
    )
    sent = scene.last(FetchRequest)
    scene.handle(ResponseReceived(sent.token, FetchResponse(responses=[topic])))


def requested(scene: Scene) -> Any:
    return scene.last(FetchRequest).body.topics[0].partitions[0]  # type: ignore[attr-defined]


def test_a_follower_fetches_from_its_leader() -> None:
    scene = follower()
    sent = scene.last(FetchRequest)
    assert (sent.destination, sent.version) == (2, 17)
    assert (requested(scene).fetch_offset, requested(scene).current_leader_epoch) == (0, 3)
    respond(scene, records=stored(b"a", b"b"), high_watermark=1)
    assert (scene.log.log_end_offset, scene.log.high_watermark) == (2, 1)
    assert (requested(scene).fetch_offset, requested(scene).last_fetched_epoch) == (2, 3)


def test_a_log_is_truncated_where_epochs_diverge() -> None:
    scene = Scene()
    for epoch in (1, 2):
        scene.log.append_as_leader(batch([b"a", b"b"]), epoch)
    follower(scene)
    respond(scene, diverging_epoch=EpochEndOffset(epoch=1, end_offset=9))
    assert scene.log.log_end_offset == 2, "KIP-279: to the end of the follower's epoch"
    assert requested(scene).last_fetched_epoch == 1


def test_an_epoch_without_records_goes_when_it_diverges() -> None:
    """It led in epoch 2 and wrote nothing, of which the next leader does not know."""
    scene = Scene()
    scene.log.append_as_leader(batch([b"a"]), 1)
    scene.log.assign_epoch_start_offset(2, 1)
    follower(scene)
    respond(scene, diverging_epoch=EpochEndOffset(epoch=1, end_offset=1))
    assert requested(scene).last_fetched_epoch == 1


@pytest.mark.parametrize(("ends_at", "starts_at", "result"), [(1, 0, (0, 1)), (9, 7, (7, 7))])
def test_out_of_range(ends_at: int, starts_at: int, result: tuple[int, int]) -> None:
    """To the leader's end if that is before; else begin again at its start."""
    scene = Scene()
    for _ in range(2):
        scene.log.append_as_leader(batch([b"a"]), 1)
    follower(scene)
    respond(scene, error_code=E.OFFSET_OUT_OF_RANGE)
    for offset in (ends_at, starts_at):
        if scene.partition.state is not ReplicaState.OUT_OF_RANGE:
            break
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        topic = ListOffsetsTopicResponse(name="t", partitions=[found])
        sent = scene.last(ListOffsetsRequest)
        scene.handle(ResponseReceived(sent.token, ListOffsetsResponse(topics=[topic])))
    assert (scene.log.log_start_offset, scene.log.log_end_offset) == result
    assert scene.partition.state is ReplicaState.FETCHING


def test_errors_are_tried_again_after_the_backoff() -> None:
    scene = follower()
    respond(scene, error_code=E.NOT_LEADER_OR_FOLLOWER)
    assert scene.partition.state is ReplicaState.DELAYED
    scene.advance(0.9)
    assert len(scene.sent) == 1
    scene.advance(1.1)
    assert len(scene.sent) == 2
    scene.handle(ResponseReceived(scene.sent[-1].token, None))
    assert scene.partition.state is ReplicaState.DELAYED


def test_a_fenced_follower_waits_for_metadata() -> None:
    scene = follower()
    respond(scene, error_code=E.FENCED_LEADER_EPOCH)
    scene.advance(10.0)
    assert (len(scene.sent), scene.partition.state) == (1, ReplicaState.FENCED)
    scene.metadata(leader=3, epoch=4, version=1)
    assert scene.last(FetchRequest).destination == 3


def test_late_responses_are_ignored() -> None:
    scene = follower()
    scene.metadata(leader=3, epoch=4, version=1)
    first = next(each for each in scene.sent if each.destination == 2)
    topic = FetchableTopicResponse(
        topic_id=ID,
        partitions=[PartitionData(partition_index=0, high_watermark=1, records=stored(b"a"))],
    )
    scene.handle(ResponseReceived(first.token, FetchResponse(responses=[topic])))
    scene.handle(ResponseReceived(first.token, FetchResponse(responses=[topic])))
    assert scene.log.log_end_offset == 0


def test_corrupt_records_are_fetched_again() -> None:
    scene = follower()
    respond(scene, records=b"\0" * 11 + b"\1" + stored(b"a")[12:40])
    assert scene.log.log_end_offset == 0
    assert scene.partition.state in (ReplicaState.DELAYED, ReplicaState.FETCHING)


def test_the_leaders_log_start_is_taken_over() -> None:
    scene = follower()
    respond(scene, records=stored(b"a") + stored(b"b", offset=1), high_watermark=2)
    respond(scene, high_watermark=2, log_start_offset=1)
    assert scene.log.log_start_offset == 1


def test_consumers_with_a_rack_read_from_a_follower() -> None:
    scene = follower()
    respond(scene, records=stored(b"a") + stored(b"b", offset=1), high_watermark=1)
    data = scene.fetched(scene.fetch(-1, 0, epoch=3, rack_id="r1"))
    assert (data.high_watermark, data.records) == (1, stored(b"a"))
    data = scene.fetched(scene.fetch(-1, 0, epoch=3))
    assert data.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert data.current_leader.leader_id == 2


def test_throttled_partitions_wait() -> None:
    scene = follower()
    scene.handle(ThrottleChanged(follower_rate=10.0, follower_partitions=frozenset({KEY})))
    respond(scene, records=stored(b"a"), high_watermark=9)
    assert len(scene.sent) == 1
    scene.advance(60.0)
    assert len(scene.sent) == 2


def test_a_replica_that_is_removed_stops() -> None:
    scene = follower()
    scene.publish(RemoveTopicRecord(topic_id=ID))
    assert KEY not in scene.machine.partitions
    respond(scene, records=stored(b"a"), high_watermark=1)
    assert scene.log.log_end_offset == 0
    assert scene.fetched(scene.fetch(-1, 0)).error_code == E.UNKNOWN_TOPIC_ID


def test_a_partition_without_leader_waits() -> None:
    scene = follower()
    scene.metadata(leader=-1, epoch=4, version=1)
    assert scene.partition.state is ReplicaState.NO_LEADER
    respond(scene, records=stored(b"a"), high_watermark=1)
    assert scene.log.log_end_offset == 0


def test_a_fetcher_that_waits_looks_at_its_partitions_once() -> None:
    """Not at each event of others, such as a Produce."""
    scene = follower()
    respond(scene, error_code=E.NOT_LEADER_OR_FOLLOWER)
    (fetcher,) = scene.machine._fetchers.values()
    looked = 0

    def due(now: float) -> float | None:
        nonlocal looked
        looked += 1
        return ReplicaFetcher._due(fetcher, now)

    fetcher._due = due  # type: ignore[method-assign]
    for _ in range(10):
        scene.fetch(-1, 0)
        scene.machine.next_deadline()
    assert looked == 0
    scene.advance(1.1)
    assert len(scene.sent) == 2
