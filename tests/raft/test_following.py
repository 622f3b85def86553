"""What a follower does with responses, right and wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire.messages import fetch_response, fetch_snapshot_response
from kafkawire.messages.begin_quorum_epoch_request import (
    BeginQuorumEpochRequest,
    LeaderEndpoint,
    PartitionData,
    TopicData,
)
from kafkawire.messages.end_quorum_epoch_request import EndQuorumEpochRequest, ReplicaInfo
from kafkawire.messages.end_quorum_epoch_request import PartitionData as EndedPartition
from kafkawire.messages.end_quorum_epoch_request import TopicData as EndedTopic
from kafkawire.messages.fetch_request import FetchRequest
from kafkawire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kafkawire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kafkawire.protocol import ErrorCode
from kafkawire.raft import (
    Committed,
    Endpoint,
    Fault,
    LoadSnapshot,
    OffsetAndEpoch,
    ResponseReceived,
    State,
    Voter,
    VoterSet,
    snapshot_bytes,
)
from kafkawire.raft.config import DEFAULT_TIMEOUTS, TOPIC, TOPIC_ID
from kafkawire.raft.control_batches import control_batch, data_batch

from .harness import CLUSTER, Harness, key, voter_set


def follower(*, voters: int = 3, id: int = 1) -> Harness:
    """A follower of node 2 in epoch 4."""
    harness = Harness(voters, id=id)
    partition = PartitionData(leader_id=2, leader_epoch=4, voter_directory_id=key(id).directory_id)
    request = BeginQuorumEpochRequest(
        cluster_id=CLUSTER,
        voter_id=id,
        topics=[TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[LeaderEndpoint(name="CONTROLLER", host="elsewhere", port=7)],
    )
    harness.request(request, 1)
    assert (harness.client.state, harness.client.leader_id) == (State.FOLLOWER, 2)
    return harness


def respond(harness: Harness, **fields: Any) -> None:
    """Respond to the last Fetch of a follower."""
    send, _ = harness.sent(FetchRequest)[-1]
    partition = fetch_response.PartitionData(
        current_leader=fetch_response.LeaderIdAndEpoch(leader_id=2, leader_epoch=4), **fields
    )
    topic = fetch_response.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])
    response = fetch_response.FetchResponse(responses=[topic])
    harness.handle(ResponseReceived(send.correlation_id, response))


def fetched(harness: Harness, *epochs: int, high_watermark: int = 0) -> None:
    """Let a follower fetch a batch of two records for each epoch."""
    end = harness.log.end.offset
    batches = [data_batch([b"a", b"b"], end + 2 * i, each, 0) for i, each in enumerate(epochs)]
    respond(harness, records=b"".join(batches), high_watermark=high_watermark)


def test_a_follower_fetches_from_the_endpoint_that_its_leader_named() -> None:
    harness = follower()
    assert harness.sent(FetchRequest)[-1][0].node == (2, "elsewhere", 7)


def test_what_is_fetched_is_flushed_and_committed_up_to_the_leaders_high_watermark() -> None:
    harness = follower()
    fetched(harness, 1, 4, high_watermark=9)
    assert harness.log.unflushed == 0
    assert harness.of(Committed) == [Committed(4)]
    request = harness.sent(FetchRequest)[-1][1].topics[0].partitions[0]
    assert (request.fetch_offset, request.last_fetched_epoch) == (4, 4)


def test_a_diverging_log_is_truncated() -> None:
    harness = follower()
    fetched(harness, 1, 1, 3)
    respond(harness, diverging_epoch=fetch_response.EpochEndOffset(epoch=2, end_offset=5))
    assert harness.log.end == OffsetAndEpoch(4, 1)
    respond(harness, diverging_epoch=fetch_response.EpochEndOffset(epoch=1, end_offset=2))
    assert harness.log.end == OffsetAndEpoch(2, 1)
    assert harness.of(Fault) == []


def test_committed_records_are_never_truncated() -> None:
    harness = follower()
    fetched(harness, 1, 1, high_watermark=4)
    respond(harness, diverging_epoch=fetch_response.EpochEndOffset(epoch=1, end_offset=2))
    assert harness.log.end == OffsetAndEpoch(4, 1)
    (fault,) = harness.of(Fault)
    assert "below high watermark 4" in fault.reason


def fetched_voters(harness: Harness, *ids: int) -> None:
    """Let a follower fetch a record with other voters."""
    end = harness.log.end.offset
    respond(harness, records=control_batch([voter_set(*ids).to_record()], end, 4, 0))
    assert [each.id for each in harness.client.voters.keys] == list(ids)


def test_voters_of_truncated_records_are_forgotten() -> None:
    harness = follower()
    fetched(harness, 1)
    fetched_voters(harness, 1, 2, 3, 4)
    fetched_voters(harness, 1, 2, 3, 4, 5)
    for end, ids in ((3, [1, 2, 3, 4]), (2, [1, 2, 3])):
        respond(harness, diverging_epoch=fetch_response.EpochEndOffset(epoch=4, end_offset=end))
        assert harness.log.end.offset == end
        assert [each.id for each in harness.client.voters.keys] == ids


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (data_batch([b"a"], 5, 4, 0), "batch at offset 5, expected 2"),
        (data_batch([b"a"], 2, 9, 0), "batch of epoch 9"),
        (data_batch([b"a"], 2, 0, 0), "batch of epoch 0"),
        (data_batch([b"a"], 2, 4, 0)[:-1] + b"\xff", "checksum"),
        (b"\0" * 100, "batch length of 0"),
    ],
)
def test_invalid_records_are_not_appended(records: bytes, reason: str) -> None:
    harness = follower()
    fetched(harness, 1)
    respond(harness, records=data_batch([b"a"], 2, 1, 0)[:20])  # truncated: left out in silence
    assert harness.of(Fault) == []
    respond(harness, records=records)
    assert harness.log.end == OffsetAndEpoch(2, 1)
    assert reason in harness.of(Fault)[0].reason


def test_a_late_response_is_ignored() -> None:
    harness = follower()
    send, _ = harness.sent(FetchRequest)[-1]
    harness.after(2.1)
    assert harness.client.state is State.PROSPECTIVE
    response = fetch_response.FetchResponse()
    assert harness.handle(ResponseReceived(send.correlation_id, response)) == []


def snapshot_part(harness: Harness, end: OffsetAndEpoch, data: bytes, size: int, at: int) -> None:
    send, _ = harness.sent(FetchSnapshotRequest)[-1]
    module = fetch_snapshot_response
    partition = module.PartitionSnapshot(
        snapshot_id=module.SnapshotId(end_offset=end.offset, epoch=end.epoch),
        current_leader=module.LeaderIdAndEpoch(leader_id=2, leader_epoch=4),
        size=size,
        position=at,
        unaligned_records=data,
    )
    topic = module.TopicSnapshot(name=TOPIC, partitions=[partition])
    response = module.FetchSnapshotResponse(topics=[topic])
    harness.handle(ResponseReceived(send.correlation_id, response))


@pytest.mark.parametrize("damage", [0, 1])
def test_a_snapshot_is_fetched_in_parts_and_checked(damage: int) -> None:
    harness = follower()
    end = OffsetAndEpoch(50, 3)
    data = snapshot_bytes(end, [[b"state"]], kraft_version=1, voters=voter_set(1, 2), timestamp=0)
    data = data[:-1] + bytes([data[-1] ^ damage])
    respond(harness, snapshot_id=fetch_response.SnapshotId(end_offset=50, epoch=3))
    half = len(data) // 2
    snapshot_part(harness, end, data[:half], len(data), 0)
    assert harness.sent(FetchSnapshotRequest)[-1][1].topics[0].partitions[0].position == half
    snapshot_part(harness, end, data[half:], len(data), half)
    if damage:
        assert harness.of(LoadSnapshot) == []
        assert harness.of(Fault)
        assert harness.log.end.offset == 0
        return
    assert harness.of(LoadSnapshot) == [LoadSnapshot(end)]
    assert harness.log.end == end
    assert harness.client.high_watermark == 50
    assert [each.id for each in harness.client.voters.keys] == [1, 2]


def test_a_part_that_does_not_continue_begins_the_snapshot_again() -> None:
    harness = follower()
    respond(harness, snapshot_id=fetch_response.SnapshotId(end_offset=50, epoch=3))
    before = len(harness.sent(FetchRequest))
    snapshot_part(harness, OffsetAndEpoch(50, 3), b"x", 10, 5)
    harness.after(0.1)
    assert len(harness.sent(FetchRequest)) == before + 1


@pytest.mark.parametrize(("successors", "wait"), [([1, 3], 0.0), ([3, 1], 0.5), ([3], 1.0)])
def test_the_first_successor_stands_at_once(successors: list[int], wait: float) -> None:
    harness = follower()
    candidates = [ReplicaInfo(candidate_id=each) for each in successors]
    partition = EndedPartition(leader_id=2, leader_epoch=4, preferred_candidates=candidates)
    topic = EndedTopic(topic_name=TOPIC, partitions=[partition])
    harness.request(EndQuorumEpochRequest(cluster_id=CLUSTER, topics=[topic]), 1)
    if wait:
        harness.after(wait - 0.01)
        assert harness.client.state is State.FOLLOWER
        harness.after(0.02)
    assert harness.client.state is State.PROSPECTIVE


def test_an_observer_does_not_stand() -> None:
    harness = follower(voters=3, id=9)
    assert harness.client.is_observer
    harness.after(30.0)
    assert harness.client.state is State.UNATTACHED
    assert harness.client.epoch == 4


def test_a_voter_whose_listeners_have_changed_tells_the_leader() -> None:
    harness = follower()
    moved = Voter(key(1), (Endpoint("CONTROLLER", "old", 1),))
    voters = VoterSet(tuple(sorted([moved, *voter_set(2, 3).voters])))
    data = snapshot_bytes(OffsetAndEpoch(5, 3), [], kraft_version=1, voters=voters, timestamp=0)
    respond(harness, snapshot_id=fetch_response.SnapshotId(end_offset=5, epoch=3))
    snapshot_part(harness, OffsetAndEpoch(5, 3), data, len(data), 0)
    harness.now += 1.1
    respond(harness)
    request = harness.sent(UpdateRaftVoterRequest)[0][1]
    assert (request.voter_id, request.listeners[0].host) == (1, "node1")


def test_a_voter_that_knows_no_leader_is_left_alone_for_a_while() -> None:
    harness = Harness(3)
    [(send, _)] = harness.sent(FetchRequest)
    partition = fetch_response.PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        current_leader=fetch_response.LeaderIdAndEpoch(leader_id=-1, leader_epoch=0),
    )
    topic = fetch_response.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])
    response = fetch_response.FetchResponse(responses=[topic])
    harness.handle(ResponseReceived(send.correlation_id, response))
    assert len(harness.sent(FetchRequest)) == 1
    harness.after(1.1 * DEFAULT_TIMEOUTS.retry_backoff)
    assert len(harness.sent(FetchRequest)) == 2
