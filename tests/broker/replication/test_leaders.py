"""Leaders and their epochs (KIP-320): elections, stopped brokers, unclean leaders."""

from __future__ import annotations

from kafkawire import ErrorCode
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkawire.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from tests.broker.fetches import fetch_of, fetched, only
from tests.broker.harness import Client, Harness, metadata
from tests.broker.log.test_log import batch, offset_at, produce

E = ErrorCode
LATEST = 12


def led(brokers: int = 3) -> Harness:
    harness = Harness(brokers)
    harness.create_topic("t", 1, brokers)
    return harness


def end_of(client: Client, epoch: int, current: int = -1) -> tuple[int, int, int]:
    requested = OffsetForLeaderPartition(
        partition=0, current_leader_epoch=current, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic="t", partitions=[requested])]
    )
    response = client.exchange(request, 4, OffsetForLeaderEpochResponse).topics[0].partitions[0]
    return response.error_code, response.leader_epoch, response.end_offset


def test_a_stopped_broker_gets_no_replicas_where_the_others_suffice() -> None:
    harness = Harness(3)
    harness.stop_broker(2)
    harness.create_topic("one", 6, 1)
    harness.create_topic("two", 6, 2)

    def replicas(topic: str) -> list[list[int]]:
        return [harness.partition(topic, index).replicas for index in range(6)]

    assert {node for each in replicas("one") for node in each} == {1, 3}
    assert all(set(each) == {1, 3} for each in replicas("two"))
    harness.create_topic("three", 6, 3)
    assert all(each[2:] == [2] for each in replicas("three"))


def test_leaders_are_spread() -> None:
    harness = Harness(3, topics={"t": 6})
    response = metadata(harness.client(), "t").topics[0]
    assert sorted(p.leader_id for p in response.partitions) == [1, 1, 2, 2, 3, 3]


def test_another_leader_has_another_epoch_and_the_old_one_says_so() -> None:
    harness = led()
    first = harness.leader_of("t")
    client = harness.client(first)
    produce(client, batch(b"a"))
    second = first % 3 + 1
    harness.move_leader("t", 0, second)
    response = produce(client, batch(b"b"), 10)
    assert response.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (response.current_leader.leader_id, response.current_leader.leader_epoch) == (second, 1)
    request = fetch_of(client, version=16)
    data = client.exchange(request, 16, FetchResponse)
    assert only(data).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert only(data).current_leader.leader_id == second
    assert [each.node_id for each in data.node_endpoints] == [second]
    moved = harness.client(second)
    assert produce(moved, batch(b"b")).base_offset == 1
    for epoch, error in ((0, E.FENCED_LEADER_EPOCH), (1, E.NONE), (2, E.UNKNOWN_LEADER_EPOCH)):
        request = fetch_of(moved, current_leader_epoch=epoch)
        assert only(moved.exchange(request, LATEST, FetchResponse)).error_code == error
    assert [end_of(moved, epoch)[1:] for epoch in (0, 1, 2)] == [(0, 1), (1, 2), (-1, -1)]


def test_a_fetch_delayed_at_an_old_leader_completes_with_an_error() -> None:
    harness = led()
    first = harness.leader_of("t")
    reader = harness.client(first)
    reader.send(fetch_of(reader, max_wait_ms=60_000, min_bytes=1), LATEST)
    harness.move_leader("t", 0, first % 3 + 1)
    assert only(reader.receive(FetchResponse)).error_code == E.NOT_LEADER_OR_FOLLOWER


def test_what_an_unclean_leader_lost_is_seen_by_its_epoch() -> None:
    harness = Harness(3)
    harness.create_topic("t", 1, 3, unclean_leader_election_enable="true")
    first = harness.leader_of("t")
    client = harness.client(first)

    def write_two() -> None:
        for _ in range(2):
            assert produce(client, batch(b"a")).error_code == E.NONE

    write_two()
    second = first % 3 + 1
    harness.elect_uncleanly("t", second, write_two)
    moved = harness.client(second)
    assert end_of(moved, 0) == (E.NONE, 0, 2)
    data = only(
        moved.exchange(fetch_of(moved, offset=4, last_fetched_epoch=0), LATEST, FetchResponse)
    )
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
    assert data.records == b""
    assert produce(moved, batch(b"b")).base_offset == 2


def test_a_broker_that_stops_gives_its_partitions_away_and_they_outlive_it() -> None:
    harness = led(2)
    first = harness.leader_of("t")
    other = 3 - first
    client = harness.client(first)
    produce(client, batch(b"a"))
    harness.stop_broker(first)
    assert client.closed == "the node has stopped"
    there = harness.client(other)
    response = metadata(there, "t")
    assert [each.node_id for each in response.brokers] == [other]
    partition = response.topics[0].partitions[0]
    assert (partition.leader_id, partition.isr_nodes) == (other, [other])
    assert partition.offline_replicas == [first]
    assert offset_at(there, -1).offset == 1
    harness.stop_broker(other)
    harness.start_broker(first)
    partition = metadata(harness.client(first), "t").topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (E.LEADER_NOT_AVAILABLE, -1), (
        "it may lack records"
    )
    harness.start_broker(other)
    assert harness.leader_of("t") == other


def test_a_partition_on_one_broker_is_not_led_while_that_is_down() -> None:
    harness = Harness(2)
    harness.create_topic("t", 1, 1)
    first = harness.leader_of("t")
    harness.stop_broker(first)
    other = harness.client(3 - first)
    partition = metadata(other, "t").topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (E.LEADER_NOT_AVAILABLE, -1)
    assert produce(other, batch(b"a")).error_code == E.NOT_LEADER_OR_FOLLOWER
    harness.start_broker(first)
    assert harness.leader_of("t") == first
    assert produce(harness.client(first), batch(b"a")).error_code == E.NONE
    assert fetched(harness.client(first)) != b""
