"""A leader: high watermark, ISR, acknowledgements, fencing, reads."""

from __future__ import annotations

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
from kafkawire.replication import (
    AppendCompleted,
    AppendRequested,
    CheckpointHighWatermarks,
    IsrState,
    ReplicationConfig,
    ThrottleChanged,
)

from .clients import batch
from .scene import CONFIG, KEY, Scene, broker

E = ErrorCode


def leader(config: ReplicationConfig = CONFIG, min_isr: int = 2) -> Scene:
    scene = Scene(config, min_isr)
    scene.metadata()
    return scene


def test_acks_all_waits_for_the_slowest_in_sync_replica() -> None:
    scene = leader()
    token = scene.produce(b"a", b"b")
    assert scene.log.high_watermark == 0
    scene.fetch(2, 2)
    assert token not in scene.responses
    scene.fetch(3, 2)
    assert scene.log.high_watermark == 2
    assert (scene.produced(token).error_code, scene.produced(token).base_offset) == (0, 0)


def test_acks_1_and_0_do_not_wait() -> None:
    scene = leader()
    assert scene.produced(scene.produce(b"a", acks=1)).error_code == 0
    assert scene.responses[scene.produce(b"a", acks=0)] is None
    assert scene.produced(scene.produce(b"a", acks=2)).error_code == E.INVALID_REQUIRED_ACKS


def test_an_append_times_out() -> None:
    scene = leader()
    token = scene.produce(b"a", timeout_ms=300)
    scene.advance(0.2)
    assert token not in scene.responses
    scene.advance(0.4)
    assert scene.produced(token).error_code == E.REQUEST_TIMED_OUT


def test_too_few_in_sync_replicas() -> None:
    scene = leader()
    scene.metadata(isr=(1,), version=1)
    token = scene.produce(b"a")
    assert scene.produced(token).error_code == E.NOT_ENOUGH_REPLICAS
    assert scene.log.log_end_offset == 0


@pytest.mark.parametrize("elr", [True, False])
def test_the_isr_shrinks_after_the_append(elr: bool) -> None:
    """With KIP-966 the high watermark stays, so the append waits; before, it fails."""
    scene = leader(ReplicationConfig(eligible_leader_replicas=elr))
    token = scene.produce(b"a")
    scene.metadata(isr=(1,), version=1)
    assert scene.log.high_watermark == (0 if elr else 1)
    scene.advance(2.0)
    expected = E.REQUEST_TIMED_OUT if elr else E.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert scene.produced(token).error_code == expected


def test_an_append_of_a_former_leader_fails() -> None:
    scene = leader()
    token = scene.produce(b"a")
    scene.metadata(leader=2, epoch=1, version=1)
    assert scene.produced(token).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert scene.produced(token).current_leader.leader_id == 2


def test_lagging_followers_leave_the_isr_when_the_controller_says_so() -> None:
    scene = leader()
    scene.produce(b"a", acks=1)
    scene.advance(20.0)
    scene.fetch(2, 1, max_wait_ms=0)
    scene.advance(46.0)
    assert scene.proposals() == [[(1, 1), (2, 2)]]
    assert scene.partition.isr.state is IsrState.PENDING_SHRINK
    assert scene.log.high_watermark == 0, "the controller may still elect broker 3"
    scene.verdict(isr=(1, 2))
    assert scene.log.high_watermark == 1
    assert scene.partition.partition_epoch == 1


def test_a_follower_joins_when_it_caught_up() -> None:
    scene = leader()
    scene.metadata(isr=(1, 2), version=1)
    scene.produce(b"a", acks=1)
    scene.fetch(2, 1)
    assert scene.log.high_watermark == 1
    scene.fetch(3, 0)
    assert scene.proposals() == []
    scene.fetch(3, 1, replica_epoch=3)
    assert scene.proposals() == [[(1, 1), (2, 2), (3, 3)]]
    scene.produce(b"b", acks=1)
    scene.fetch(2, 2)
    assert scene.log.high_watermark == 1, "the pending member counts"
    scene.verdict(isr=(1, 2, 3), version=2)
    scene.fetch(3, 2)
    assert scene.log.high_watermark == 2


def test_the_start_of_the_epoch_counts() -> None:
    """KAFKA-7128: the high watermark of a new leader may be behind."""
    scene = Scene()
    scene.log.append_as_leader(batch([b"a", b"b"]), 0)
    scene.metadata(epoch=1, isr=(1, 2))
    scene.fetch(3, 1, epoch=1)
    assert scene.proposals() == []
    scene.fetch(3, 2, epoch=1)
    assert len(scene.proposals()) == 1


@pytest.mark.parametrize(
    "going",
    [
        broker(3, fenced=True),
        broker(3, in_controlled_shutdown=True),
    ],
)
def test_brokers_that_go_do_not_join(going: BrokerRegistration) -> None:
    scene = leader()
    scene.metadata(isr=(1, 2), version=1)
    scene.publish(registration_record(going))
    scene.fetch(3, 0)
    assert scene.proposals() == []


def test_fetches_of_a_former_incarnation_do_not_count() -> None:
    scene = leader()
    scene.produce(b"a", acks=1)
    scene.publish(registration_record(broker(3, 9)))
    token = scene.fetch(3, 1, replica_epoch=3)
    assert scene.fetched(token).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert scene.partition.followers[3].log_end_offset == -1


@pytest.mark.parametrize("error", [E.INELIGIBLE_REPLICA, E.OPERATION_NOT_ATTEMPTED])
def test_a_refused_change_is_dropped(error: ErrorCode) -> None:
    scene = leader()
    scene.metadata(isr=(1, 2), version=1)
    scene.fetch(3, 0)
    scene.verdict(error)
    assert scene.partition.isr.state is IsrState.COMMITTED
    scene.fetch(3, 0)
    assert len(scene.proposals()) == 2


def test_a_superseded_change_counts_until_newer_metadata() -> None:
    scene = leader()
    scene.metadata(isr=(1, 2), version=1)
    scene.fetch(3, 0)
    scene.verdict(E.INVALID_UPDATE_VERSION)
    scene.advance(5.0)
    assert len(scene.proposals()) == 1
    assert scene.partition.isr.maximal == {1, 2, 3}
    scene.metadata(isr=(1, 2), version=2)
    assert scene.partition.isr.maximal == {1, 2}


def test_a_lost_change_is_sent_again() -> None:
    scene = leader()
    scene.metadata(isr=(1, 2), version=1)
    scene.fetch(3, 0)
    scene.verdict(E.NOT_CONTROLLER)
    scene.advance(1.0)
    assert len(scene.proposals()) == 2


def test_epochs_are_fenced() -> None:
    scene = leader()
    scene.metadata(epoch=5, version=1)
    for epoch, error in ((4, E.FENCED_LEADER_EPOCH), (6, E.UNKNOWN_LEADER_EPOCH), (5, E.NONE)):
        assert scene.fetched(scene.fetch(2, 0, epoch=epoch)).error_code == error
    scene.metadata(epoch=3, version=0)
    assert scene.partition.leader_epoch == 5


def test_divergence() -> None:
    scene = Scene()
    scene.log.append_as_leader(batch([b"a", b"b"]), 0)
    scene.metadata(epoch=2)
    diverging = scene.fetched(scene.fetch(2, 5, epoch=2, last_epoch=1)).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (0, 2)
    assert scene.partition.followers[2].log_end_offset == -1
    topic = OffsetForLeaderTopic(
        topic="t", partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=1)]
    )
    token = scene.request(4, OffsetForLeaderEpochRequest(topics=[topic]))
    end = scene.responses[token].topics[0].partitions[0]
    assert (end.leader_epoch, end.end_offset) == (0, 2)


def test_the_latest_offset_of_a_new_leader() -> None:
    """KIP-207."""
    scene = Scene()
    scene.log.append_as_leader(batch([b"a", b"b"]), 0)
    scene.metadata(epoch=1)
    body = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
        ],
    )
    found = scene.responses[scene.request(7, body)].topics[0].partitions[0]
    assert found.error_code == E.OFFSET_NOT_AVAILABLE
    for follower in (2, 3):
        scene.fetch(follower, 2, epoch=1)
    found = scene.responses[scene.request(7, body)].topics[0].partitions[0]
    assert (found.error_code, found.offset) == (0, 2)


def test_a_consumer_waits_for_the_high_watermark() -> None:
    scene = leader()
    token = scene.fetch(-1, 0, min_bytes=1, max_wait_ms=500)
    scene.produce(b"a", acks=1)
    assert token not in scene.responses
    scene.fetch(2, 1)
    scene.fetch(3, 1)
    assert scene.fetched(token).records
    assert scene.fetched(token).high_watermark == 1
    token = scene.fetch(-1, 1, min_bytes=1, max_wait_ms=500)
    scene.advance(0.6)
    assert scene.fetched(token).records == b""


def test_a_follower_that_has_everything_changes_nothing() -> None:
    scene = leader()
    for follower in (2, 3):
        scene.fetch(follower, 0)
    before = scene.machine.replicas.changes
    token = scene.fetch(2, 0, min_bytes=1, max_wait_ms=500)
    scene.advance(0.6)
    assert scene.fetched(token).high_watermark == 0
    assert scene.machine.replicas.changes == before


def test_a_fetch_that_waited_has_the_newest_high_watermark() -> None:
    scene = leader()
    scene.produce(b"a", acks=1)
    token = scene.fetch(2, 1, min_bytes=1, max_wait_ms=500)
    scene.fetch(3, 1)
    assert token not in scene.responses
    scene.advance(0.6)
    assert scene.fetched(token).high_watermark == 1


def test_consumers_are_sent_to_their_rack() -> None:
    scene = leader(ReplicationConfig(rack_aware=True))
    scene.fetch(2, 0)
    token = scene.fetch(-1, 0, rack_id="r2", max_wait_ms=500)
    assert scene.fetched(token).preferred_read_replica == 2
    assert scene.fetched(scene.fetch(-1, 0, rack_id="r3")).preferred_read_replica == -1


def test_deleted_records_are_gone_everywhere() -> None:
    scene = leader()
    scene.produce(b"a", b"b", acks=1)
    for follower in (2, 3):
        scene.fetch(follower, 2)
    body = DeleteRecordsRequest(
        timeout_ms=1000,
        topics=[
            DeleteRecordsTopic(
                name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)]
            )
        ],
    )
    token = scene.request(2, body)
    scene.fetch(2, 2, start=2)
    assert token not in scene.responses
    scene.fetch(3, 2, start=2)
    result = scene.responses[token].topics[0].partitions[0]
    assert (result.error_code, result.low_watermark) == (0, 2)


def test_appends_of_the_broker_itself() -> None:
    scene = leader()
    scene.handle(AppendRequested(5, 1, 1.0, ((KEY, batch([b"a"])), (KEY, b"no batch"))))
    (done,) = [each for each in scene.effects if isinstance(each, AppendCompleted)]
    assert [each.error for each in done.results] == [E.NONE, E.INVALID_RECORD]


def test_high_watermarks_are_checkpointed() -> None:
    scene = leader()
    scene.produce(b"a", acks=1)
    scene.fetch(2, 1)
    scene.fetch(3, 1)
    scene.advance(6.0)
    assert CheckpointHighWatermarks({KEY: 1}) in scene.effects


def test_followers_that_are_not_in_sync_may_be_throttled() -> None:
    scene = leader()
    scene.metadata(isr=(1, 2), version=1)
    for _ in range(3):
        scene.produce(b"x" * 1000, acks=1)
    scene.handle(ThrottleChanged(leader_rate=500.0, leader_replicas=frozenset({(KEY, 3)})))
    assert len(scene.fetched(scene.fetch(3, 0)).records) > 1000
    assert scene.fetched(scene.fetch(3, 0)).records == b""
    assert scene.fetched(scene.fetch(2, 0)).records
    scene.advance(60.0)
    assert scene.fetched(scene.fetch(3, 0)).records
