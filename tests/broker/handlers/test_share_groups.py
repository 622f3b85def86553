"""Share groups, bytes in, bytes out: membership, records, acknowledgements, offsets, restarts."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.groups.consumer_groups.assignors import MemberSpec
from kafkawire.broker.groups.share_groups.assignor import simple
from kafkawire.broker.topics import SHARE_STATE_TOPIC
from kafkawire.configs import ResourceType
from kafkawire.configs.features import GROUP, SHARE
from kafkawire.messages import share_acknowledge_request as acknowledging
from kafkawire.messages import write_share_group_state_request as writing
from kafkawire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafkawire.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from kafkawire.messages.delete_groups_request import DeleteGroupsRequest
from kafkawire.messages.delete_groups_response import DeleteGroupsResponse
from kafkawire.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kafkawire.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
)
from kafkawire.messages.share_acknowledge_response import ShareAcknowledgeResponse
from kafkawire.messages.share_fetch_request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from kafkawire.messages.share_fetch_response import ShareFetchResponse
from kafkawire.messages.share_group_describe_request import ShareGroupDescribeRequest
from kafkawire.messages.share_group_describe_response import ShareGroupDescribeResponse
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kafkawire.messages.write_share_group_state_response import WriteShareGroupStateResponse
from kafkawire.metadata.image import MetadataImage
from kafkawire.records import BatchBuilder, end_txn_batch
from tests.broker.harness import Harness
from tests.broker.members import coordinator

E = ErrorCode
SETTINGS = {"group.share.assignment.interval.ms": "0"}
ACCEPT, RELEASE, REJECT = 1, 2, 3


class Consumer:
    """A member of `g` that fetches partition 0 of `t` from its leader."""

    def __init__(self, harness: Harness, member: str = "a", group: str = "g") -> None:
        self.harness = harness
        self.member, self.group = member, group
        self.client = harness.client(harness.leader_of("t"))
        self.epoch = 0
        self.member_epoch = 0

    def beat(self, epoch: int | None = None, *names: str) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member,
            member_epoch=self.member_epoch if epoch is None else epoch,
            subscribed_topic_names=list(names) or None,
        )
        client = coordinator(self.harness, self.group)
        response = client.exchange(request, 1, ShareGroupHeartbeatResponse)
        self.member_epoch = max(0, response.member_epoch)
        return response

    def join(self) -> list[int]:
        """Join, and stay until there is an assignment; return the partitions of `t`."""
        self.beat(0, "t")
        self.harness.advance(1.0)
        response = self.beat(None, "t")
        assert response.assignment is not None
        return [at for each in response.assignment.topic_partitions for at in each.partitions]

    def request(self, *acknowledged: tuple[int, int, int], **fields: Any) -> ShareFetchRequest:
        topic = self.harness.topic("t")
        assert topic is not None
        batches = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
            for first, last, kind in acknowledged
        ]
        partition = FetchPartition(partition_index=0, acknowledgement_batches=batches)
        wanted: dict[str, Any] = {
            "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 100,
            "batch_size": 100, "share_session_epoch": self.epoch,
            "topics": [FetchTopic(topic_id=topic.topic_id, partitions=[partition])],
        }  # fmt: skip
        given = {"group_id": self.group, "member_id": self.member, **wanted, **fields}
        return ShareFetchRequest(**given)

    def fetch(self, *acknowledged: tuple[int, int, int], **fields: Any) -> list[tuple[int, ...]]:
        """Fetch; return what is acquired: (first, last, deliveries)."""
        response = self.client.exchange(
            self.request(*acknowledged, **fields), 2, ShareFetchResponse
        )
        return self.taken(response)

    def taken(self, response: ShareFetchResponse) -> list[tuple[int, ...]]:
        assert not response.error_code
        self.epoch += 1
        found: list[tuple[int, ...]] = []
        for topic in response.responses:
            for each in topic.partitions:
                assert not each.error_code, each
                assert not each.acknowledge_error_code, each
                found += [
                    (got.first_offset, got.last_offset, got.delivery_count)
                    for got in each.acquired_records
                ]
        return found

    def acknowledge(
        self, first: int, last: int, kind: int = ACCEPT, epoch: int | None = None
    ) -> ErrorCode:
        topic = self.harness.topic("t")
        assert topic is not None
        batch = acknowledging.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=[kind]
        )
        partition = acknowledging.AcknowledgePartition(
            partition_index=0, acknowledgement_batches=[batch]
        )
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[
                acknowledging.AcknowledgeTopic(topic_id=topic.topic_id, partitions=[partition])
            ],
        )
        response = self.client.exchange(request, 2, ShareAcknowledgeResponse)
        self.epoch += 1
        if response.error_code:
            return ErrorCode(response.error_code)
        return ErrorCode(response.responses[0].partitions[0].error_code)


def harness_of(brokers: int = 1, reset: str = "earliest", **settings: str) -> Harness:
    given = {each.replace("_", "."): value for each, value in settings.items()}
    harness = Harness(brokers, {}, SETTINGS | given)
    harness.create_topic("t", 1, factor=min(brokers, 3))
    configure(harness, **{"share.auto.offset.reset": reset})
    return harness


def configure(harness: Harness, group: str = "g", **configs: str) -> None:
    harness.alter_configs(ResourceType.GROUP, group, configs)


def produce(harness: Harness, count: int, **fields: Any) -> None:
    """Append a batch to partition 0 of `t`."""
    builder = BatchBuilder(**fields)
    for _ in range(count):
        builder.append(b"k", b"v", 1_700_000_000_000)
    front = harness.front(harness.leader_of("t"))
    front.machines.append(harness.key("t"), builder.build(), harness.now)
    harness.advance(1.0)


def offsets(harness: Harness, group: str = "g") -> list[tuple[int, int]]:
    """Return (start offset, lag) of each partition of a group."""
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)]
    )
    client = coordinator(harness, group)
    [found] = client.exchange(request, 1, DescribeShareGroupOffsetsResponse).groups
    assert not found.error_code
    return [(each.start_offset, each.lag) for topic in found.topics for each in topic.partitions]


@pytest.fixture
def harness() -> Harness:
    return harness_of()


def test_a_partition_that_is_requested_twice_is_described_once(harness: Harness) -> None:
    member = Consumer(harness)
    member.join()
    topic = DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0, 0])
    group = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[topic, topic])
    client = coordinator(harness, "g")
    request = DescribeShareGroupOffsetsRequest(groups=[group])
    [described] = client.exchange(request, 1, DescribeShareGroupOffsetsResponse).groups
    assert [len(each.partitions) for each in described.topics] == [1]


def test_records_are_shared_by_members_and_acknowledged_once(harness: Harness) -> None:
    first, second = Consumer(harness), Consumer(harness, "b")
    assert first.join() == [0]
    assert second.join() == [0]
    produce(harness, 3)
    produce(harness, 3)
    assert first.fetch(max_records=3) == [(0, 2, 1)]
    assert second.fetch() == [(3, 5, 1)]
    assert second.acknowledge(0, 2) is E.INVALID_RECORD_STATE
    assert first.acknowledge(0, 2) is E.NONE
    assert first.acknowledge(0, 2) is E.NONE, "what is before the start offset is done"
    assert second.fetch((3, 4, ACCEPT), (5, 5, RELEASE)) == [(5, 5, 2)]
    assert offsets(harness) == [(3, 1)], "the start offset before that, and what is complete"


def test_a_broker_limits_the_bytes_of_a_response() -> None:
    for limit, last in (("55000000", 199), ("1024", 79)):
        harness = harness_of(fetch_max_bytes=limit)
        consumer = Consumer(harness)
        consumer.join()
        for _ in range(10):
            produce(harness, 20)
        acquired = consumer.fetch(max_records=1000, batch_size=1000)
        assert max(each[1] for each in acquired) == last, limit


def test_members_are_described_and_go_when_their_session_expires(harness: Harness) -> None:
    consumer = Consumer(harness)
    consumer.join()
    request = ShareGroupDescribeRequest(group_ids=["g"])
    client = coordinator(harness, "g")

    def state() -> tuple[str, list[str]]:
        [found] = client.exchange(request, 1, ShareGroupDescribeResponse).groups
        return found.group_state, [each.member_id for each in found.members]

    assert state() == ("Stable", ["a"])
    harness.advance(44.0)
    assert consumer.beat().error_code == E.NONE
    harness.advance(44.0)
    assert state() == ("Stable", ["a"])
    harness.advance(2.0)
    assert state() == ("Empty", [])
    assert consumer.beat(2).error_code == E.UNKNOWN_MEMBER_ID


def test_locks_end_and_the_request_that_waits_gets_the_records(harness: Harness) -> None:
    first, second = Consumer(harness), Consumer(harness, "b")
    first.join()
    produce(harness, 2)
    assert first.fetch() == [(0, 1, 1)]
    second.client.send(second.request(max_wait_ms=100_000), 2)
    harness.advance(29.0)
    assert second.client.is_waiting()
    harness.advance(1.5)
    assert second.taken(second.client.receive(ShareFetchResponse)) == [(0, 1, 2)]
    assert first.acknowledge(0, 1) is E.INVALID_RECORD_STATE


def test_a_request_waits_for_records_and_for_its_time(harness: Harness) -> None:
    consumer = Consumer(harness)
    consumer.join()
    assert consumer.fetch() == []
    consumer.client.send(consumer.request(max_wait_ms=5_000), 2)
    harness.advance(4.0)
    assert consumer.client.is_waiting()
    produce(harness, 1)
    assert consumer.taken(consumer.client.receive(ShareFetchResponse)) == [(0, 0, 1)]
    consumer.client.send(consumer.request(max_wait_ms=5_000), 2)
    harness.advance(4.9)
    assert consumer.client.is_waiting()
    harness.advance(0.2)
    assert consumer.taken(consumer.client.receive(ShareFetchResponse)) == []


def test_what_a_member_has_is_released_when_it_disconnects(harness: Harness) -> None:
    first, second = Consumer(harness), Consumer(harness, "b")
    first.join()
    second.join()
    produce(harness, 2)
    assert first.fetch() == [(0, 1, 1)]
    assert second.fetch() == []
    second.client.send(second.request(max_wait_ms=100_000), 2)
    first.client.disconnect()
    assert second.taken(second.client.receive(ShareFetchResponse)) == [(0, 1, 2)]
    assert len(harness.broker().shares.sessions) == 1


def test_a_session_that_is_closed_is_no_more(harness: Harness) -> None:
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 2)
    assert consumer.fetch() == [(0, 1, 1)]
    assert consumer.acknowledge(0, 0, epoch=7) is E.INVALID_SHARE_SESSION_EPOCH
    assert consumer.acknowledge(0, 0, epoch=-1) is E.NONE
    assert consumer.acknowledge(1, 1) is E.SHARE_SESSION_NOT_FOUND
    assert len(harness.broker().shares.partitions) == 0
    consumer.epoch = 0
    assert consumer.fetch(max_wait_ms=5000) == [(1, 1, 2)]
    assert offsets(harness) == [(1, 1)]


def test_there_are_no_more_sessions_than_are_allowed() -> None:
    harness = harness_of(group_share_max_share_sessions="1")
    Consumer(harness).fetch()
    other = Consumer(harness, "b")
    response = other.client.exchange(other.request(), 2, ShareFetchResponse)
    assert response.error_code == E.SHARE_SESSION_LIMIT_REACHED


def test_only_new_records_are_delivered_unless_it_is_configured(harness: Harness) -> None:
    produce(harness, 2)
    consumer = Consumer(harness, group="other")
    consumer.join()
    assert consumer.fetch() == []
    assert consumer.fetch() == []
    produce(harness, 1)
    assert consumer.fetch() == [(2, 2, 1)]


def test_records_since_a_duration_are_delivered() -> None:
    harness = harness_of(reset="by_duration:PT1H")
    old, new = 1_700_000_000_000 - 3_600_000, 1_700_000_000_000
    for timestamp in (old, new):
        builder = BatchBuilder()
        builder.append(b"k", b"v", timestamp)
        harness.front().machines.append(harness.key("t"), builder.build(), harness.now)
    consumer = Consumer(harness)
    consumer.join()
    assert consumer.fetch() == [(1, 1, 1)]


def test_records_of_aborted_transactions_are_left_out(harness: Harness) -> None:
    configure(harness, **{"share.isolation.level": "read_committed"})
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 2, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert consumer.fetch() == []
    marker = end_txn_batch(
        False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=1_700_000_000_000
    )
    harness.front().machines.append(harness.key("t"), marker, harness.now)
    produce(harness, 1)
    [(first, last, _)] = consumer.fetch()
    assert first >= 2
    assert last == 3


def test_a_new_leader_goes_on_with_what_was_stored() -> None:
    harness = harness_of(3)
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 4)
    consumer.fetch(max_wait_ms=5000)
    assert consumer.acknowledge(1, 1) is E.NONE
    assert consumer.acknowledge(2, 2, RELEASE) is E.NONE
    former = harness.leader_of("t")
    moved = next(each for each in harness.partition("t").replicas if each != former)
    harness.move_leader("t", 0, moved)
    response = consumer.client.exchange(consumer.request(), 2, ShareFetchResponse)
    data = response.responses[0].partitions[0]
    assert data.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (data.current_leader.leader_id, response.node_endpoints[0].node_id) == (moved, moved)
    after = Consumer(harness)
    acquired = after.fetch(max_wait_ms=5000)
    assert acquired == [(0, 0, 1), (2, 2, 2), (3, 3, 1)]


def test_the_state_is_there_after_a_restart_of_all(harness: Harness) -> None:
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 4)
    consumer.fetch()
    assert consumer.acknowledge(0, 0) is E.NONE
    assert consumer.acknowledge(2, 2, REJECT) is E.NONE
    restored = harness.restored()
    restored.advance(1.0)
    assert offsets(restored) == [(1, 2)]
    again = Consumer(restored)
    assert again.fetch(max_wait_ms=5000) == [(1, 1, 1), (3, 3, 1)]
    member = Consumer(restored)
    member.member_epoch = consumer.member_epoch
    assert member.beat().error_code == E.NONE


def test_snapshots_and_updates_restore_the_same() -> None:
    harness = harness_of(share_coordinator_snapshot_update_records_per_snapshot="2")
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 12)
    consumer.fetch()
    for at in range(11, 1, -1):
        assert consumer.acknowledge(at, at, RELEASE if at % 3 else ACCEPT) is E.NONE
    assert offsets(harness) == [(0, 9)]
    restored = harness.restored()
    restored.advance(1.0)
    assert offsets(restored) == [(0, 9)]
    acquired = Consumer(restored).fetch(max_wait_ms=5000)
    assert acquired == [(0, 1, 1), (2, 2, 2), (4, 5, 2), (7, 8, 2), (10, 11, 2)]


@pytest.mark.parametrize("brokers", [1, 3])
def test_records_of_states_are_deleted_that_are_not_needed(brokers: int) -> None:
    harness = harness_of(brokers, share_coordinator_state_topic_num_partitions="1")
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 6)
    consumer.fetch(max_wait_ms=5000)
    for at in range(5):
        assert consumer.acknowledge(at, at, ACCEPT if at % 2 else RELEASE) is E.NONE
    log = harness.replica(SHARE_STATE_TOPIC).log
    end = log.log_end_offset
    coordinators = harness.broker(harness.leader_of(SHARE_STATE_TOPIC)).share_coordinators
    coordinators.prune(harness.now)
    assert log.log_start_offset < end
    for _ in range(2):  # the first one writes a snapshot
        coordinators.prune(harness.now + 300.0)
        harness.advance(1.0)
    assert end <= log.log_start_offset < log.log_end_offset
    restored = harness.restored()
    restored.advance(1.0)
    assert restored.replica(SHARE_STATE_TOPIC).log.log_start_offset >= end
    assert offsets(restored) == [(0, 4)]


def test_records_of_states_are_checked_every_five_minutes() -> None:
    harness = harness_of(share_coordinator_snapshot_update_records_per_snapshot="1")
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 4)
    consumer.fetch()
    starts = [harness.replica(SHARE_STATE_TOPIC, at).log for at in range(50)]
    for at in range(4):
        assert consumer.acknowledge(at, at) is E.NONE
    harness.advance(295.0)
    assert not any(each.log_start_offset for each in starts)
    harness.advance(6.0)
    assert any(each.log_start_offset for each in starts)


def test_a_group_is_deleted_with_its_state(harness: Harness) -> None:
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 2)
    consumer.fetch()
    consumer.acknowledge(0, 0)
    client = coordinator(harness, "g")

    def deleted() -> int:
        request = DeleteGroupsRequest(groups_names=["g"])
        return client.exchange(request, 2, DeleteGroupsResponse).results[0].error_code

    assert deleted() == E.NON_EMPTY_GROUP
    consumer.beat(-1)
    assert deleted() == E.NONE
    assert deleted() == E.GROUP_ID_NOT_FOUND
    assert harness.topic(SHARE_STATE_TOPIC) is not None
    restored = harness.restored()
    restored.advance(1.0)
    assert offsets(restored) == []
    state = restored.broker().share_coordinators
    assert not any(each.states for each in state._loaded.values())


def test_the_state_of_a_deleted_topic_is_deleted(harness: Harness) -> None:
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 2)
    consumer.fetch()
    harness.delete_topics("t")
    harness.advance(1.0)
    assert not any(each.states for each in harness.broker().share_coordinators._loaded.values())
    assert len(harness.broker().shares.partitions) == 0
    assert offsets(harness) == []


def starting_from(offset: int) -> AlterShareGroupOffsetsRequest:
    """Make a request that sets the start offset of partition 0."""
    partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[partition])
    return AlterShareGroupOffsetsRequest(group_id="g", topics=[topic])


def test_the_lag_of_any_start_offset_fits(harness: Harness) -> None:
    produce(harness, 4)
    consumer = Consumer(harness)
    consumer.join()
    consumer.beat(-1)
    client = coordinator(harness, "g")
    lowest = -(1 << 63) + 1
    altered = client.exchange(starting_from(lowest), 0, AlterShareGroupOffsetsResponse)
    assert altered.responses[0].partitions[0].error_code == E.NONE
    assert offsets(harness) == [(lowest, (1 << 63) - 1)]


def test_a_group_begins_where_its_offsets_are_set(harness: Harness) -> None:
    produce(harness, 4)
    consumer = Consumer(harness)
    consumer.join()
    consumer.fetch()
    consumer.acknowledge(0, 3, epoch=-1)
    request = starting_from(2)
    client = coordinator(harness, "g")
    refused = client.exchange(request, 0, AlterShareGroupOffsetsResponse)
    assert refused.error_code == E.NON_EMPTY_GROUP
    consumer.beat(-1)
    altered = client.exchange(request, 0, AlterShareGroupOffsetsResponse)
    assert altered.responses[0].partitions[0].error_code == E.NONE
    assert offsets(harness) == [(2, 2)]
    consumer.epoch = 0
    assert consumer.fetch(max_wait_ms=5000) == [(2, 3, 1)]


def test_share_groups_need_their_feature() -> None:
    harness = Harness(topics={"t": 1}, settings=SETTINGS, release="4.1")
    assert Consumer(harness).beat(0, "t").error_code == E.UNSUPPORTED_VERSION


@pytest.mark.parametrize("feature", [GROUP, SHARE])
def test_a_broker_that_has_no_metadata_yet_lets_clients_retry(feature: str) -> None:
    """It cannot know whether the cluster has the feature; UNSUPPORTED_VERSION would be fatal."""
    broker = Harness(topics={"t": 1}, settings=SETTINGS).broker()
    assert broker.feature_error(feature) is E.NONE
    published, broker.metadata.image = broker.metadata.image, MetadataImage()
    assert broker.feature_error(feature) is E.COORDINATOR_LOAD_IN_PROGRESS
    broker.metadata.image = published
    del published.features[feature]
    assert broker.feature_error(feature) is E.UNSUPPORTED_VERSION


def test_a_session_is_that_of_its_last_connection(harness: Harness) -> None:
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, 2)
    assert consumer.fetch() == [(0, 1, 1)]
    former, consumer.client = consumer.client, harness.client(harness.leader_of("t"))
    assert consumer.acknowledge(0, 0) is E.NONE
    former.disconnect()
    assert consumer.acknowledge(1, 1) is E.NONE
    consumer.client.disconnect()
    assert len(harness.broker().shares.sessions) == 0


def test_a_request_of_a_client_that_disconnects_acquires_nothing(harness: Harness) -> None:
    first, second = Consumer(harness), Consumer(harness, "b")
    first.join()
    assert first.fetch() == []
    first.client.send(first.request(max_wait_ms=1_000_000), 2)
    first.client.disconnect()
    assert len(harness.broker().shares.fetches) == 0
    produce(harness, 1)
    assert second.fetch(max_wait_ms=5000) == [(0, 0, 1)]


@pytest.mark.parametrize(("state", "start"), [(3, 0), (99, 0), (0, -1), (2, -1)])
def test_states_that_others_have_written_do_no_harm(
    harness: Harness, state: int, start: int
) -> None:
    produce(harness, 4)
    consumer = Consumer(harness)
    consumer.join()
    topic = harness.topic("t")
    assert topic is not None
    batch = writing.StateBatch(
        first_offset=1, last_offset=2, delivery_state=state, delivery_count=1
    )
    data = writing.PartitionData(
        partition=0, state_epoch=9, leader_epoch=0, start_offset=start, state_batches=[batch]
    )
    body = writing.WriteShareGroupStateRequest(
        group_id="g", topics=[writing.WriteStateData(topic_id=topic.topic_id, partitions=[data])]
    )
    written = harness.client().exchange(body, 1, WriteShareGroupStateResponse)
    assert written.results[0].partitions[0].error_code == E.NONE
    between = [] if state else [(1, 2, 2)]
    assert consumer.fetch(max_wait_ms=5000) == [(0, 0, 1), *between, (3, 3, 1)]
    batch.first_offset = -5
    refused = harness.client().exchange(body, 1, WriteShareGroupStateResponse)
    assert refused.results[0].partitions[0].error_code == E.INVALID_REQUEST


@pytest.mark.parametrize(("members", "partitions"), [(1, 3), (3, 1), (2, 3), (7, 3), (4, 4)])
def test_each_partition_and_each_member_is_assigned(members: int, partitions: int) -> None:
    assignable = frozenset((b"t", at) for at in range(partitions))
    specs = [MemberSpec(str(at), None, frozenset({b"t"}), frozenset()) for at in range(members)]
    found = simple(specs, assignable)
    counts = sorted(len(each) for each in found.values())
    assert counts[0] >= 1
    assert counts[-1] - counts[0] <= 1
    sharers = [sum((b"t", at) in each for each in found.values()) for at in range(partitions)]
    assert min(sharers) >= 1
    assert sum(sharers) == max(members, partitions) + (
        -members % partitions if members > partitions else 0
    )
    kept = [each._replace(partitions=frozenset(found[each.member_id])) for each in specs]
    assert simple(kept, assignable) == found


def test_each_partition_is_assigned_also_with_different_subscriptions() -> None:
    assignable = frozenset((topic, at) for topic in (b"t", b"u") for at in range(2))
    specs = [
        MemberSpec("a", None, frozenset({b"t"}), frozenset({(b"t", 0)})),
        MemberSpec("b", None, frozenset({b"t", b"u"}), frozenset()),
        MemberSpec("c", None, frozenset({b"x"}), frozenset()),
    ]
    found = simple(specs, assignable)
    assert set().union(*found.values()) == assignable
    assert (b"t", 0) in found["a"]
    assert not any(topic == b"u" for topic, _ in found["a"])
    assert found["b"]
    assert not found["c"]
