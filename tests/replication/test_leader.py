"""A leader: high watermark, ISR, acknowledgements, fencing, reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkawire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkawire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkawire.metadata import BrokerRegistration
from kafkawire.metadata.snapshot import registration_record
from kafkawire.records import end_txn_batch
from kafkawire.replication import (
    Append,
    AppendCompleted,
    AppendRejected,
    AppendResult,
    CheckpointHighWatermarks,
    IsrState,
    ReplicationConfig,
    ThrottleChanged,
    whole_batches,
)

from .clients import batch
from .harness import CONFIG, KEY, Harness, broker

E = ErrorCode


def leader(config: ReplicationConfig = CONFIG, min_isr: int = 2) -> Harness:
    harness = Harness(config, min_isr)
    harness.metadata()
    return harness


def test_acks_all_waits_for_the_slowest_in_sync_replica() -> None:
    harness = leader()
    token = harness.produce(b"a", b"b")
    assert harness.log.high_watermark == 0
    harness.fetch(2, 2)
    assert token not in harness.responses
    harness.fetch(3, 2)
    assert harness.log.high_watermark == 2
    assert (harness.produced(token).error_code, harness.produced(token).base_offset) == (0, 0)


def test_acks_1_and_0_do_not_wait() -> None:
    harness = leader()
    assert harness.produced(harness.produce(b"a", acks=1)).error_code == 0
    assert harness.responses[harness.produce(b"a", acks=0)] is None
    assert harness.produced(harness.produce(b"a", acks=2)).error_code == E.INVALID_REQUIRED_ACKS


def test_an_append_times_out() -> None:
    harness = leader()
    token = harness.produce(b"a", timeout_ms=300)
    harness.advance(0.2)
    assert token not in harness.responses
    harness.advance(0.4)
    assert harness.produced(token).error_code == E.REQUEST_TIMED_OUT


def test_too_few_in_sync_replicas() -> None:
    harness = leader()
    harness.metadata(isr=(1,), version=1)
    token = harness.produce(b"a")
    assert harness.produced(token).error_code == E.NOT_ENOUGH_REPLICAS
    assert harness.log.log_end_offset == 0


@pytest.mark.parametrize("elr", [True, False])
def test_the_isr_shrinks_after_the_append(elr: bool) -> None:
    """With KIP-966 the high watermark stays, so the append waits; before, it fails."""
    harness = leader(ReplicationConfig(eligible_leader_replicas=elr))
    token = harness.produce(b"a")
    harness.metadata(isr=(1,), version=1)
    assert harness.log.high_watermark == (0 if elr else 1)
    harness.advance(2.0)
    expected = E.REQUEST_TIMED_OUT if elr else E.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert harness.produced(token).error_code == expected


def test_an_append_of_a_former_leader_fails() -> None:
    harness = leader()
    token = harness.produce(b"a")
    harness.metadata(leader=2, epoch=1, version=1)
    assert harness.produced(token).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert harness.produced(token).current_leader.leader_id == 2


def test_lagging_followers_leave_the_isr_when_the_controller_says_so() -> None:
    harness = leader()
    harness.produce(b"a", acks=1)
    harness.advance(20.0)
    harness.fetch(2, 1, max_wait_ms=0)
    harness.advance(46.0)
    assert harness.proposals() == [[(1, 1), (2, 2)]]
    assert harness.partition.isr.state is IsrState.PENDING_SHRINK
    assert harness.log.high_watermark == 0, "the controller may still elect broker 3"
    harness.verdict(isr=(1, 2))
    assert harness.log.high_watermark == 1
    assert harness.partition.partition_epoch == 1


def test_a_follower_joins_when_it_caught_up() -> None:
    harness = leader()
    harness.metadata(isr=(1, 2), version=1)
    harness.produce(b"a", acks=1)
    harness.fetch(2, 1)
    assert harness.log.high_watermark == 1
    harness.fetch(3, 0)
    assert harness.proposals() == []
    harness.fetch(3, 1, replica_epoch=3)
    assert harness.proposals() == [[(1, 1), (2, 2), (3, 3)]]
    harness.produce(b"b", acks=1)
    harness.fetch(2, 2)
    assert harness.log.high_watermark == 1, "the pending member counts"
    harness.verdict(isr=(1, 2, 3), version=2)
    harness.fetch(3, 2)
    assert harness.log.high_watermark == 2


def test_the_start_of_the_epoch_counts() -> None:
    """KAFKA-7128: the high watermark of a new leader may be behind."""
    harness = Harness()
    harness.log.append_as_leader(whole_batches(batch([b"a", b"b"])), 0)
    harness.metadata(epoch=1, isr=(1, 2))
    harness.fetch(3, 1, epoch=1)
    assert harness.proposals() == []
    harness.fetch(3, 2, epoch=1)
    assert len(harness.proposals()) == 1


@pytest.mark.parametrize(
    "going",
    [
        broker(3, fenced=True),
        broker(3, in_controlled_shutdown=True),
    ],
)
def test_brokers_that_go_do_not_join(going: BrokerRegistration) -> None:
    harness = leader()
    harness.metadata(isr=(1, 2), version=1)
    harness.publish(registration_record(going))
    harness.fetch(3, 0)
    assert harness.proposals() == []


def test_fetches_of_a_former_incarnation_do_not_count() -> None:
    harness = leader()
    harness.produce(b"a", acks=1)
    harness.publish(registration_record(broker(3, 9)))
    token = harness.fetch(3, 1, replica_epoch=3)
    assert harness.fetched(token).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert harness.partition.followers[3].log_end_offset == -1


@pytest.mark.parametrize("error", [E.INELIGIBLE_REPLICA, E.OPERATION_NOT_ATTEMPTED])
def test_a_refused_change_is_dropped(error: ErrorCode) -> None:
    harness = leader()
    harness.metadata(isr=(1, 2), version=1)
    harness.fetch(3, 0)
    harness.verdict(error)
    assert harness.partition.isr.state is IsrState.COMMITTED
    harness.fetch(3, 0)
    assert len(harness.proposals()) == 2


def test_a_superseded_change_counts_until_newer_metadata() -> None:
    harness = leader()
    harness.metadata(isr=(1, 2), version=1)
    harness.fetch(3, 0)
    harness.verdict(E.INVALID_UPDATE_VERSION)
    harness.advance(5.0)
    assert len(harness.proposals()) == 1
    assert harness.partition.isr.maximal == {1, 2, 3}
    harness.metadata(isr=(1, 2), version=2)
    assert harness.partition.isr.maximal == {1, 2}


def test_a_lost_change_is_sent_again() -> None:
    harness = leader()
    harness.metadata(isr=(1, 2), version=1)
    harness.fetch(3, 0)
    harness.verdict(E.NOT_CONTROLLER)
    harness.advance(1.0)
    assert len(harness.proposals()) == 2


def test_epochs_are_fenced() -> None:
    harness = leader()
    harness.metadata(epoch=5, version=1)
    for epoch, error in ((4, E.FENCED_LEADER_EPOCH), (6, E.UNKNOWN_LEADER_EPOCH), (5, E.NONE)):
        assert harness.fetched(harness.fetch(2, 0, epoch=epoch)).error_code == error
    harness.metadata(epoch=3, version=0)
    assert harness.partition.leader_epoch == 5


def test_divergence() -> None:
    harness = Harness()
    harness.log.append_as_leader(whole_batches(batch([b"a", b"b"])), 0)
    harness.metadata(epoch=2)
    diverging = harness.fetched(harness.fetch(2, 5, epoch=2, last_epoch=1)).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (0, 2)
    assert harness.partition.followers[2].log_end_offset == -1
    topic = OffsetForLeaderTopic(
        topic="t", partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=1)]
    )
    token = harness.request(4, OffsetForLeaderEpochRequest(topics=[topic]))
    end = harness.responses[token].topics[0].partitions[0]
    assert (end.leader_epoch, end.end_offset) == (0, 2)


def test_the_latest_offset_of_a_new_leader() -> None:
    """KIP-207."""
    harness = Harness()
    harness.log.append_as_leader(whole_batches(batch([b"a", b"b"])), 0)
    harness.metadata(epoch=1)
    body = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
        ],
    )
    found = harness.responses[harness.request(7, body)].topics[0].partitions[0]
    assert found.error_code == E.OFFSET_NOT_AVAILABLE
    for follower in (2, 3):
        harness.fetch(follower, 2, epoch=1)
    found = harness.responses[harness.request(7, body)].topics[0].partitions[0]
    assert (found.error_code, found.offset) == (0, 2)


def test_a_consumer_waits_for_the_high_watermark() -> None:
    harness = leader()
    token = harness.fetch(-1, 0, min_bytes=1, max_wait_ms=500)
    harness.produce(b"a", acks=1)
    assert token not in harness.responses
    harness.fetch(2, 1)
    harness.fetch(3, 1)
    assert harness.fetched(token).records
    assert harness.fetched(token).high_watermark == 1
    token = harness.fetch(-1, 1, min_bytes=1, max_wait_ms=500)
    harness.advance(0.6)
    assert harness.fetched(token).records == b""


def test_a_follower_that_has_everything_changes_nothing() -> None:
    harness = leader()
    for follower in (2, 3):
        harness.fetch(follower, 0)
    before = harness.machine.replicas.changes
    token = harness.fetch(2, 0, min_bytes=1, max_wait_ms=500)
    harness.advance(0.6)
    assert harness.fetched(token).high_watermark == 0
    assert harness.machine.replicas.changes == before


def test_a_fetch_that_waited_has_the_newest_high_watermark() -> None:
    harness = leader()
    harness.produce(b"a", acks=1)
    token = harness.fetch(2, 1, min_bytes=1, max_wait_ms=500)
    harness.fetch(3, 1)
    assert token not in harness.responses
    harness.advance(0.6)
    assert harness.fetched(token).high_watermark == 1


def test_consumers_are_sent_to_their_rack() -> None:
    harness = leader(ReplicationConfig(rack_aware=True))
    harness.fetch(2, 0)
    token = harness.fetch(-1, 0, rack_id="r2", max_wait_ms=500)
    assert harness.fetched(token).preferred_read_replica == 2
    assert harness.fetched(harness.fetch(-1, 0, rack_id="r3")).preferred_read_replica == -1


def test_deleted_records_are_gone_everywhere() -> None:
    harness = leader()
    harness.produce(b"a", b"b", acks=1)
    for follower in (2, 3):
        harness.fetch(follower, 2)
    body = DeleteRecordsRequest(
        timeout_ms=1000,
        topics=[
            DeleteRecordsTopic(
                name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)]
            )
        ],
    )
    token = harness.request(2, body)
    harness.fetch(2, 2, start=2)
    assert token not in harness.responses
    harness.fetch(3, 2, start=2)
    result = harness.responses[token].topics[0].partitions[0]
    assert (result.error_code, result.low_watermark) == (0, 2)


def test_appends_of_the_broker_itself() -> None:
    harness = leader()
    appends, now = harness.machine.appends, harness.now
    at_once = Append(1, 1.0, internal=True)
    results = [
        appends.append(5, KEY, records, at_once, now) for records in (batch([b"a"]), b"no batch")
    ]
    assert [each and each.error for each in results] == [E.NONE, E.INVALID_RECORD]
    assert appends.append(6, KEY, batch([b"b"]), Append(-1, 1.0, internal=True), now) is None
    harness.fetch(2, 2)
    harness.fetch(3, 2)
    assert (
        AppendCompleted(6, AppendResult(E.NONE, 1, log_start_offset=0, last_offset=1))
        in harness.effects
    )


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"?"])
def test_damaged_batches_are_rejected(damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(AppendRejected):
        whole_batches(damage(batch([b"abc"])))


def test_control_batches_of_clients_are_rejected() -> None:
    marker = end_txn_batch(True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=0)
    with pytest.raises(AppendRejected):
        whole_batches(marker)
    assert len(whole_batches(marker, internal=True)) == 1


def test_high_watermarks_are_checkpointed() -> None:
    harness = leader()
    harness.produce(b"a", acks=1)
    harness.fetch(2, 1)
    harness.fetch(3, 1)
    harness.advance(6.0)
    assert CheckpointHighWatermarks({KEY: 1}) in harness.effects


def test_followers_that_are_not_in_sync_may_be_throttled() -> None:
    harness = leader()
    harness.metadata(isr=(1, 2), version=1)
    for _ in range(3):
        harness.produce(b"x" * 1000, acks=1)
    harness.handle(ThrottleChanged(leader_rate=500.0, leader_replicas=frozenset({(KEY, 3)})))
    assert len(harness.fetched(harness.fetch(3, 0)).records) > 1000
    assert harness.fetched(harness.fetch(3, 0)).records == b""
    assert harness.fetched(harness.fetch(2, 0)).records
    harness.advance(60.0)
    assert harness.fetched(harness.fetch(3, 0)).records


@pytest.mark.parametrize("min_bytes", [1, 100])
def test_a_fetch_of_a_throttled_follower_waits(min_bytes: int) -> None:
    """Or the follower would fetch again at once, again and again, until the quota is paid."""
    harness = leader()
    harness.metadata(isr=(1, 2), version=1)
    harness.produce(b"x" * 1000, acks=1)
    harness.handle(ThrottleChanged(leader_rate=10.0, leader_replicas=frozenset({(KEY, 3)})))
    wait = {"min_bytes": min_bytes, "max_wait_ms": 500}
    assert harness.fetched(harness.fetch(3, 0, **wait)).records
    token = harness.fetch(3, 0, **wait)
    assert token not in harness.responses
    harness.produce(b"y" * 1000, acks=1)
    assert token not in harness.responses
    harness.advance(0.5)
    assert harness.fetched(token).records == b""


def test_a_fetch_of_a_throttled_follower_waits_until_the_quota_is_paid() -> None:
    """Not for its whole time, or the limit would be one response in each."""
    harness = leader()
    harness.metadata(isr=(1, 2), version=1)
    harness.produce(b"x" * 1000, acks=1)
    rate = 10_000.0
    harness.handle(ThrottleChanged(leader_rate=rate, leader_replicas=frozenset({(KEY, 3)})))
    size = len(harness.fetched(harness.fetch(3, 0, min_bytes=1, max_wait_ms=500)).records)
    token = harness.fetch(3, 0, min_bytes=1, max_wait_ms=500)
    harness.advance(size / rate - 0.01)
    assert token not in harness.responses
    harness.advance(size / rate + 0.01)
    assert len(harness.fetched(token).records) == size
