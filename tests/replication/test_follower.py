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
    whole_batches,
)
from kafkawire.replication.fetcher import ReplicaFetcher

from .clients import batch
from .harness import ID, KEY, Harness

E = ErrorCode


def follower(harness: Harness | None = None, epoch: int = 3) -> Harness:
    harness = harness or Harness()
    harness.metadata(leader=2, epoch=epoch)
    return harness


def stored(*values: bytes, offset: int = 0, epoch: int = 3) -> bytes:
    """Build a batch as a leader stores it."""
    log = MemoryLog()
    log.truncate_fully_and_start_at(offset)
    log.append_as_leader(whole_batches(batch(list(values))), epoch)
    return log.read(offset, 1 << 20, log.log_end_offset, at_least_one=True)


def respond(harness: Harness, **fields: Any) -> None:
    """Respond to the last Fetch."""
    fields.setdefault("high_watermark", 0)
    topic = FetchableTopicResponse(
        topic_id=ID, partitions=[PartitionData(partition_index=0, **fields)]
    )
    sent = harness.last(FetchRequest)
    harness.handle(ResponseReceived(sent.token, FetchResponse(responses=[topic])))


def requested(harness: Harness) -> Any:
    return harness.last(FetchRequest).body.topics[0].partitions[0]  # type: ignore[attr-defined]


def test_a_follower_fetches_from_its_leader() -> None:
    harness = follower()
    sent = harness.last(FetchRequest)
    assert (sent.destination, sent.version) == (2, 17)
    assert (requested(harness).fetch_offset, requested(harness).current_leader_epoch) == (0, 3)
    respond(harness, records=stored(b"a", b"b"), high_watermark=1)
    assert (harness.log.log_end_offset, harness.log.high_watermark) == (2, 1)
    assert (requested(harness).fetch_offset, requested(harness).last_fetched_epoch) == (2, 3)


def test_a_log_is_truncated_where_epochs_diverge() -> None:
    harness = Harness()
    for epoch in (1, 2):
        harness.log.append_as_leader(whole_batches(batch([b"a", b"b"])), epoch)
    follower(harness)
    respond(harness, diverging_epoch=EpochEndOffset(epoch=1, end_offset=9))
    assert harness.log.log_end_offset == 2, "KIP-279: to the end of the follower's epoch"
    assert requested(harness).last_fetched_epoch == 1


def test_an_epoch_without_records_goes_when_it_diverges() -> None:
    """It led in epoch 2 and wrote nothing, of which the next leader does not know."""
    harness = Harness()
    harness.log.append_as_leader(whole_batches(batch([b"a"])), 1)
    harness.log.assign_epoch_start_offset(2, 1)
    follower(harness)
    respond(harness, diverging_epoch=EpochEndOffset(epoch=1, end_offset=1))
    assert requested(harness).last_fetched_epoch == 1


@pytest.mark.parametrize(("ends_at", "starts_at", "result"), [(1, 0, (0, 1)), (9, 7, (7, 7))])
def test_out_of_range(ends_at: int, starts_at: int, result: tuple[int, int]) -> None:
    """To the leader's end if that is before; else begin again at its start."""
    harness = Harness()
    for _ in range(2):
        harness.log.append_as_leader(whole_batches(batch([b"a"])), 1)
    follower(harness)
    respond(harness, error_code=E.OFFSET_OUT_OF_RANGE)
    for offset in (ends_at, starts_at):
        if harness.partition.state is not ReplicaState.OUT_OF_RANGE:
            break
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        topic = ListOffsetsTopicResponse(name="t", partitions=[found])
        sent = harness.last(ListOffsetsRequest)
        harness.handle(ResponseReceived(sent.token, ListOffsetsResponse(topics=[topic])))
    assert (harness.log.log_start_offset, harness.log.log_end_offset) == result
    assert harness.partition.state is ReplicaState.FETCHING


def test_errors_are_tried_again_after_the_backoff() -> None:
    harness = follower()
    respond(harness, error_code=E.NOT_LEADER_OR_FOLLOWER)
    assert harness.partition.state is ReplicaState.DELAYED
    harness.advance(0.9)
    assert len(harness.sent) == 1
    harness.advance(1.1)
    assert len(harness.sent) == 2
    harness.handle(ResponseReceived(harness.sent[-1].token, None))
    assert harness.partition.state is ReplicaState.DELAYED


def test_a_fenced_follower_waits_for_metadata() -> None:
    harness = follower()
    respond(harness, error_code=E.FENCED_LEADER_EPOCH)
    harness.advance(10.0)
    assert (len(harness.sent), harness.partition.state) == (1, ReplicaState.FENCED)
    harness.metadata(leader=3, epoch=4, version=1)
    assert harness.last(FetchRequest).destination == 3


def test_late_responses_are_ignored() -> None:
    harness = follower()
    harness.metadata(leader=3, epoch=4, version=1)
    first = next(each for each in harness.sent if each.destination == 2)
    topic = FetchableTopicResponse(
        topic_id=ID,
        partitions=[PartitionData(partition_index=0, high_watermark=1, records=stored(b"a"))],
    )
    harness.handle(ResponseReceived(first.token, FetchResponse(responses=[topic])))
    harness.handle(ResponseReceived(first.token, FetchResponse(responses=[topic])))
    assert harness.log.log_end_offset == 0


def test_corrupt_records_are_fetched_again() -> None:
    harness = follower()
    respond(harness, records=b"\0" * 11 + b"\1" + stored(b"a")[12:40])
    assert harness.log.log_end_offset == 0
    assert harness.partition.state in (ReplicaState.DELAYED, ReplicaState.FETCHING)


def test_the_leaders_log_start_is_taken_over() -> None:
    harness = follower()
    respond(harness, records=stored(b"a") + stored(b"b", offset=1), high_watermark=2)
    respond(harness, high_watermark=2, log_start_offset=1)
    assert harness.log.log_start_offset == 1


def test_consumers_with_a_rack_read_from_a_follower() -> None:
    harness = follower()
    respond(harness, records=stored(b"a") + stored(b"b", offset=1), high_watermark=1)
    data = harness.fetched(harness.fetch(-1, 0, epoch=3, rack_id="r1"))
    assert (data.high_watermark, data.records) == (1, stored(b"a"))
    data = harness.fetched(harness.fetch(-1, 0, epoch=3))
    assert data.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert data.current_leader.leader_id == 2


def test_throttled_partitions_wait() -> None:
    harness = follower()
    harness.handle(ThrottleChanged(follower_rate=10.0, follower_partitions=frozenset({KEY})))
    respond(harness, records=stored(b"a"), high_watermark=9)
    assert len(harness.sent) == 1
    harness.advance(60.0)
    assert len(harness.sent) == 2


def test_a_replica_that_is_removed_stops() -> None:
    harness = follower()
    harness.publish(RemoveTopicRecord(topic_id=ID))
    assert KEY not in harness.machine.partitions
    respond(harness, records=stored(b"a"), high_watermark=1)
    assert harness.log.log_end_offset == 0
    assert harness.fetched(harness.fetch(-1, 0)).error_code == E.UNKNOWN_TOPIC_ID


def test_a_partition_without_leader_waits() -> None:
    harness = follower()
    harness.metadata(leader=-1, epoch=4, version=1)
    assert harness.partition.state is ReplicaState.NO_LEADER
    respond(harness, records=stored(b"a"), high_watermark=1)
    assert harness.log.log_end_offset == 0


def test_a_fetcher_that_waits_looks_at_its_partitions_once() -> None:
    """Not at each event of others, such as a Produce."""
    harness = follower()
    respond(harness, error_code=E.NOT_LEADER_OR_FOLLOWER)
    (fetcher,) = harness.machine._fetchers.values()
    looked = 0

    def due(now: float) -> float | None:
        nonlocal looked
        looked += 1
        return ReplicaFetcher._due(fetcher, now)

    fetcher._due = due  # type: ignore[method-assign]
    for _ in range(10):
        harness.fetch(-1, 0)
        harness.machine.next_deadline()
    assert looked == 0
    harness.advance(1.1)
    assert len(harness.sent) == 2
