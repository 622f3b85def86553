"""Single rules of a replica, request by request."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kafkawire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kafkawire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kafkawire.messages.fetch_request import FetchRequest
from kafkawire.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kafkawire.messages.leader_change_message import LeaderChangeMessage
from kafkawire.messages.vote_request import VoteRequest
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.raft import (
    Append,
    Appended,
    AppendFailed,
    BecameLeader,
    Committed,
    MemoryLog,
    OffsetAndEpoch,
    PersistQuorumState,
    Reply,
    RequestFailed,
    Resign,
    Resigned,
    Send,
    SnapshotTaken,
    State,
    read_quorum_state,
)
from kafkawire.raft.config import TOPIC
from kafkawire.raft.control_batches import data_batch
from kafkawire.raft.leading import MOST_REPLICAS
from kafkawire.records import ControlType, RecordBatches, control_record

from .harness import CLUSTER, Harness, fetch, key, vote


def only(response: Any) -> Any:
    """Return the only partition of a response."""
    assert response is not None
    assert not response.error_code
    topics = response.responses if hasattr(response, "responses") else response.topics
    return topics[0].partitions[0]


def granted(harness: Harness, request: VoteRequest, version: int = 2) -> bool:
    partition = only(harness.request(request, version))
    assert not partition.error_code, partition
    return bool(partition.vote_granted)


# -- votes


def test_a_vote_is_given_once_an_epoch_and_persisted_before_the_response() -> None:
    harness = Harness()
    assert granted(harness, vote(2, 4))
    kinds = [type(each) for each in harness.effects]
    assert kinds.index(PersistQuorumState) < kinds.index(Reply)
    text = harness.of(PersistQuorumState)[-1].text
    assert read_quorum_state(text).voted == key(2)
    assert not granted(harness, vote(3, 4))
    assert granted(harness, vote(2, 4))
    assert granted(harness, vote(3, 5))


def test_a_vote_survives_a_restart() -> None:
    harness = Harness()
    assert granted(harness, vote(2, 4))
    text = harness.of(PersistQuorumState)[-1].text
    again = Harness(log=harness.log, quorum_state=text)
    assert not granted(again, vote(3, 4))
    assert granted(again, vote(2, 4))


@pytest.mark.parametrize(("end", "wanted"), [((1, 1), False), ((2, 1), True), ((1, 2), True)])
def test_a_vote_needs_a_log_that_is_as_new(end: tuple[int, int], wanted: bool) -> None:
    log = MemoryLog()
    log.append(data_batch([b"a", b"b"], 0, 1, 0))
    harness = Harness(log=log)
    assert granted(harness, vote(2, 4, end)) is wanted


def test_a_pre_vote_changes_nothing() -> None:
    harness = Harness()
    persisted = len(harness.of(PersistQuorumState))
    assert granted(harness, vote(2, 0, pre_vote=True))
    assert granted(harness, vote(3, 0, pre_vote=True))
    assert (harness.client.epoch, len(harness.of(PersistQuorumState))) == (0, persisted)


def test_a_leader_denies_pre_votes_once_it_commits() -> None:
    harness = Harness()
    harness.lead()
    end = harness.log.end
    assert granted(harness, vote(2, 1, end, pre_vote=True))
    harness.commit(2)
    assert not granted(harness, vote(2, 1, end, pre_vote=True))


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(2, 1), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(2, 4, (0, 4)), ErrorCode.INVALID_REQUEST),
        (vote(2, 4, (-1, 0)), ErrorCode.INVALID_REQUEST),
        (vote(-1, 4), ErrorCode.INVALID_REQUEST),
        (vote(2, 4, voter=3), ErrorCode.INVALID_VOTER_KEY),
        (vote(2, 4, directory_id=b"x" * 16), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_an_invalid_candidate_gets_an_error(request_: VoteRequest, error: ErrorCode) -> None:
    harness = Harness()
    assert granted(harness, vote(2, 2))
    partition = only(harness.request(request_, 2))
    assert (partition.error_code, partition.vote_granted) == (error, False)


def test_requests_of_other_clusters_and_topics_get_an_error() -> None:
    harness = Harness()
    other: Any = harness.request(vote(2, 4, cluster_id="other"), 2)
    assert other.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    topic: Any = harness.request(vote(2, 4, topic="other"), 2)
    assert topic.error_code == ErrorCode.INVALID_REQUEST
    for request, version in (
        (VoteRequest(), 0),
        (BeginQuorumEpochRequest(), 0),
        (EndQuorumEpochRequest(), 0),
        (FetchRequest(), 12),
        (FetchSnapshotRequest(), 0),
        (DescribeQuorumRequest(), 0),
    ):
        response: Any = harness.request(request, version)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        if not isinstance(request, DescribeQuorumRequest):
            request.cluster_id = "other"
            response = harness.request(request, version)
            assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert harness.client.epoch == 0


@pytest.mark.parametrize("version", [0, 1])
def test_votes_of_older_versions_are_served(version: int) -> None:
    assert granted(Harness(), vote(2, 4), version)


def test_a_voter_without_pre_votes_counts_as_granting_them() -> None:
    harness = Harness()
    harness.after(1.6)
    send = next(each for each, _ in harness.sent(VoteRequest) if each.node.id == 3)
    harness.handle(RequestFailed(send.correlation_id, unsupported=True))
    assert (harness.client.state, harness.client.epoch) == (State.CANDIDATE, 1)


def test_a_quorum_of_one_elects_itself_at_once() -> None:
    harness = Harness(voters=1)
    assert harness.client.state is State.LEADER
    harness.after(0.03)
    assert harness.of(BecameLeader) == [BecameLeader(1, 0)]


# -- the leader


def test_an_epoch_begins_with_the_leader_and_the_voters_of_the_bootstrap_snapshot() -> None:
    harness = Harness()
    harness.lead()
    (batch,) = RecordBatches(harness.log.read(0, 1000))
    assert batch.control
    assert batch.partition_leader_epoch == 1
    records = [control_record(record) for record in batch]
    assert [each.type for each in records] == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]
    change = LeaderChangeMessage.decode(records[0].value or b"", 0)  # what Kafka 4.3 reads
    assert (change.leader_id, [each.voter_id for each in change.voters]) == (1, [1, 2, 3])
    assert [each.voter_id for each in change.granting_voters] == [1, 2]


def test_static_voters_are_not_written() -> None:
    harness = Harness(dynamic=False)
    harness.lead()
    (batch,) = RecordBatches(harness.log.read(0, 1000))
    assert [control_record(each).type for each in batch] == [ControlType.LEADER_CHANGE]


def test_a_record_is_committed_when_a_majority_has_flushed_it() -> None:
    harness = Harness()
    harness.lead()
    harness.commit(2)
    committed = harness.of(Committed)[-1].offset
    harness.handle(Append(7, 1, (b"a", b"b")))
    assert harness.of(Appended) == [Appended(7, committed + 1)]
    harness.request(fetch(harness, 2), 17)
    assert harness.of(Committed)[-1].offset == committed  # not flushed by the leader
    harness.after(0.03)
    assert harness.of(Committed)[-1].offset == committed + 2


def test_records_of_older_epochs_are_committed_by_one_of_this_epoch_only() -> None:
    """Raft's figure 8: a majority has a record of an old epoch, which may still be replaced."""
    log = MemoryLog()
    log.append(data_batch([b"a", b"b"], 0, 1, 0))
    log.flush()
    harness = Harness(dynamic=False, log=log, quorum_state=None)
    harness.lead()
    harness.after(0.03)
    harness.request(fetch(harness, 2, 2, 1), 17)
    assert harness.of(Committed) == []
    harness.request(fetch(harness, 2), 17)
    assert harness.of(Committed) == [Committed(3)]


def test_only_the_leader_of_the_epoch_appends() -> None:
    harness = Harness()
    harness.handle(Append(1, 0, (b"a",)))
    harness.lead()
    harness.handle(Append(2, 0, (b"a",)))
    harness.handle(Append(3, 1, ()))
    assert harness.of(AppendFailed) == [
        AppendFailed(1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        AppendFailed(2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        AppendFailed(3, ErrorCode.INVALID_REQUEST),
    ]


def test_a_leader_that_nobody_fetches_from_resigns_and_goes_on_in_the_next_epoch() -> None:
    harness = Harness()
    harness.lead()
    harness.after(2.9)
    assert harness.client.state.value == "Leader"
    harness.after(0.2)
    assert harness.client.state is State.RESIGNED
    assert harness.of(Resigned) == [Resigned(1)]
    assert {each.node.id for each, _ in harness.sent(EndQuorumEpochRequest)} <= {2, 3}
    harness.after(1.6)
    assert (harness.client.state, harness.client.epoch) == (State.UNATTACHED, 2)


def test_who_led_when_it_stopped_does_not_lead_that_epoch_again() -> None:
    harness = Harness()
    harness.lead()
    text = harness.of(PersistQuorumState)[-1].text
    again = Harness(log=harness.log, quorum_state=text)
    assert (again.client.state, again.client.epoch) == (State.RESIGNED, 1)
    assert not granted(again, vote(2, 1, (9, 0)))


def test_a_resigning_leader_names_the_longest_log_first() -> None:
    harness = Harness()
    harness.lead()
    harness.commit(3)
    harness.handle(Resign(1))
    request = harness.sent(EndQuorumEpochRequest)[-1][1]
    candidates = request.topics[0].partitions[0].preferred_candidates
    assert [each.candidate_id for each in candidates] == [3, 2]


# -- Fetch


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (9, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_fetch_of_another_epoch_is_told_the_leader(epoch: int, error: ErrorCode) -> None:
    harness = Harness()
    harness.lead()
    response: Any = harness.request(fetch(harness, 2, 0, 0, epoch=epoch), 17)
    partition = only(response)
    assert partition.error_code == error
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 1)
    (node,) = response.node_endpoints
    assert (node.node_id, node.host, node.port) == (1, "node1", 9001)


def test_a_diverging_log_is_told_where_the_leaders_epoch_ends() -> None:
    log = MemoryLog()
    log.append(data_batch([b"a", b"b"], 0, 1, 0))
    log.append(data_batch([b"c"], 2, 3, 0))
    harness = Harness(dynamic=False, log=log)
    harness.lead()
    diverging = only(harness.request(fetch(harness, 2, 5, 2), 17)).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (1, 2)
    diverging = only(harness.request(fetch(harness, 2, 9, 3), 17)).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (3, 3)
    assert harness.of(Committed) == []


def test_a_fetch_waits_for_records_or_its_time() -> None:
    harness = Harness()
    harness.lead()
    assert harness.request(fetch(harness, 2, wait=500), 17) is None
    assert not [each for each in harness.after(0.4) if isinstance(each, Reply)]
    assert [each for each in harness.after(0.2) if isinstance(each, Reply)]
    assert harness.request(fetch(harness, 2, wait=500), 17) is None
    effects = harness.handle(Append(1, 1, (b"a",)))
    (reply,) = [each for each in effects if isinstance(each, Reply)]
    assert only(reply.response).records


def test_a_fetch_that_knows_an_older_high_watermark_does_not_wait() -> None:
    harness = Harness()
    harness.lead()
    harness.commit(2)
    committed = harness.client.high_watermark
    assert harness.request(fetch(harness, 2, wait=500, high_watermark=committed), 18) is None
    response = harness.request(fetch(harness, 3, wait=500, high_watermark=0), 18)
    assert only(response).high_watermark == committed


def test_a_waiting_fetch_is_ended_by_a_resignation() -> None:
    harness = Harness()
    harness.lead()
    assert harness.request(fetch(harness, 2, wait=500), 17) is None
    effects = harness.handle(Resign(1))
    (reply,) = [each for each in effects if isinstance(each, Reply)]
    assert only(reply.response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# -- snapshots


def snapshot_request(end: OffsetAndEpoch, position: int) -> FetchSnapshotRequest:
    partition = PartitionSnapshot(
        current_leader_epoch=1,
        snapshot_id=SnapshotId(end_offset=end.offset, epoch=end.epoch),
        position=position,
    )
    topic = TopicSnapshot(name=TOPIC, partitions=[partition])
    return FetchSnapshotRequest(cluster_id=CLUSTER, replica_id=2, max_bytes=100, topics=[topic])


def test_a_snapshot_is_served_in_parts() -> None:
    harness = Harness()
    harness.lead()
    harness.commit(2)
    end = harness.log.end
    data = harness.client.snapshot(end, [[b"state"]], harness.now)
    harness.handle(SnapshotTaken(end, data))
    found = only(harness.request(fetch(harness, 3, 0, 0), 17)).snapshot_id
    assert OffsetAndEpoch(found.end_offset, found.epoch) == end
    parts = b""
    while len(parts) < len(data):
        part = only(harness.request(snapshot_request(end, len(parts)), 1))
        assert (part.position, part.size) == (len(parts), len(data))
        parts += part.unaligned_records
    assert parts == data
    types = [
        control_record(record).type
        for batch in RecordBatches(data)
        if batch.control
        for record in batch
    ]
    assert types[0] == ControlType.SNAPSHOT_HEADER
    assert types[-1] == ControlType.SNAPSHOT_FOOTER


@pytest.mark.parametrize(
    ("end", "position", "error"),
    [
        (OffsetAndEpoch(7, 7), 0, ErrorCode.SNAPSHOT_NOT_FOUND),
        (OffsetAndEpoch(0, 0), -1, ErrorCode.POSITION_OUT_OF_RANGE),
        (OffsetAndEpoch(0, 0), 1 << 40, ErrorCode.POSITION_OUT_OF_RANGE),
    ],
)
def test_an_invalid_part_of_a_snapshot_gets_an_error(
    end: OffsetAndEpoch, position: int, error: ErrorCode
) -> None:
    harness = Harness()
    harness.lead()
    assert only(harness.request(snapshot_request(end, position), 1)).error_code == error


def test_no_snapshot_is_taken_of_what_is_not_committed() -> None:
    harness = Harness()
    harness.lead()
    with pytest.raises(ValueError, match="committed is 0"):
        harness.handle(SnapshotTaken(harness.log.end, b""))


# -- DescribeQuorum


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_leader_describes_the_quorum(version: int) -> None:
    harness = Harness()
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name=TOPIC, partitions=[PartitionData()])]
    )
    assert only(harness.request(request, version)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    harness.lead()
    harness.commit(2)
    harness.request(fetch(harness, 7), 17)
    response: Any = harness.request(request, version)
    partition = only(response)
    end = harness.log.end.offset
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 1, end)
    ends = [(each.replica_id, each.log_end_offset) for each in partition.current_voters]
    assert ends == [(1, end), (2, end), (3, -1)]
    assert [each.replica_id for each in partition.observers] == [7]
    fetched = int(harness.now * 1000) if version else -1
    assert partition.current_voters[1].last_fetch_timestamp == fetched
    assert [each.node_id for each in response.nodes] == ([1, 2, 3] if version == 2 else [])


def test_a_leader_knows_a_limited_number_of_observers() -> None:
    harness = Harness()
    harness.lead()
    harness.commit(2)
    for id in range(10, 10 + MOST_REPLICAS + 5):
        request = fetch(harness, 2)
        request.replica_state.replica_id = id
        harness.request(request, 17)
    describe = DescribeQuorumRequest(
        topics=[TopicData(topic_name=TOPIC, partitions=[PartitionData()])]
    )
    partition = only(harness.request(describe, 2))
    assert len(partition.observers) + 2 == MOST_REPLICAS
    assert [each.log_end_offset for each in partition.current_voters[:2]] == [
        harness.log.end.offset
    ] * 2


def test_sends_go_to_the_voters_listeners() -> None:
    harness = Harness()
    harness.after(1.6)
    nodes = {each.node for each in harness.of(Send)}
    assert {(each.id, each.host, each.port) for each in nodes} == {
        (2, "node2", 9002),
        (3, "node3", 9003),
    }
