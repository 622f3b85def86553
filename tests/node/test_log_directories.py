"""Brokers with two log directories, of which one fails: the broker goes on without it (KIP-112)."""

from __future__ import annotations

import errno
import os

import pytest

from kafkawire.broker.metadata_cache import TopicsMetadata
from kafkawire.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from kafkawire.messages.describe_log_dirs_response import DescribeLogDirsResult
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode
from kafkawire.storage import MemoryDisk, TopicPartition

from .clients import (
    FETCH_VERSION,
    MOVE_VERSION,
    PRODUCE_VERSION,
    fetch,
    fetched,
    moved,
    produce,
    produced,
)
from .cluster import Cluster, combined

E = ErrorCode
DESCRIBE_VERSION = 5
TOPIC = "orders"
ORDERS = TopicPartition(TOPIC, 0)


def broken(_operation: str, path: str) -> float:
    raise OSError(errno.EIO, os.strerror(errno.EIO), path)


def disk_of(cluster: Cluster, broker: int) -> MemoryDisk:
    """Return the second disk of a broker."""
    found = cluster.processes[broker].other
    assert found is not None
    return found


def directory_of(cluster: Cluster, broker: int, index: int = 0) -> str | None:
    """Return the directory that has a log of a broker."""
    found = cluster.broker(broker).logs.directory_of(TopicPartition(TOPIC, index))
    return None if found is None else found.name


def with_topic(partitions: int = 2, replicas: int = 3, nodes: int = 3) -> Cluster:
    """Return a cluster with two directories per broker, and a topic in both."""
    cluster = Cluster(combined(nodes), two=True)
    cluster.create(TOPIC, partitions, replicas)
    for index in range(partitions):
        cluster.leader(TOPIC, index)
        cluster.wait(lambda index=index: is_assigned(cluster, index))
    return cluster


def is_assigned(cluster: Cluster, index: int) -> bool:
    """Whether the controller knows in which directories the replicas of a partition are."""
    found = cluster.partition(TOPIC, index)
    known = [
        cluster.broker(each).logs.directory_of(TopicPartition(TOPIC, index))
        for each in found.replicas
    ]
    return [each and each.directory_id for each in known] == list(found.directories)


def partition_on_other(cluster: Cluster, broker: int) -> int:
    """Return a partition whose log is in the second directory of a broker."""
    return next(index for index in (0, 1) if directory_of(cluster, broker, index) == "other")


def in_sync(cluster: Cluster, index: int) -> set[int]:
    return set(cluster.partition(TOPIC, index).isr)


def fail(cluster: Cluster, broker: int, index: int) -> None:
    """Let the second disk of the leader of a partition fail, with the next Produce."""
    disk_of(cluster, broker).fault = broken
    body = cluster.exchange(broker, PRODUCE_VERSION, produce(TOPIC, index, b"refused"))
    assert produced(body).error_code == E.KAFKA_STORAGE_ERROR


def offline_replicas(cluster: Cluster, index: int) -> list[int]:
    """Return the offline replicas that clients see in Metadata."""
    topics = TopicsMetadata()
    topics.publish(cluster.newest(), None)
    found = topics.partition(TOPIC, index)
    assert found is not None
    return found.offline


def leads_on_other(cluster: Cluster) -> tuple[int, int]:
    """Return a partition that is led from a second directory, and its leader."""
    for index in (0, 1):
        leader = cluster.leader(TOPIC, index)
        if directory_of(cluster, leader, index) == "other":
            return index, leader
    raise AssertionError("no leader in a second directory")


def test_the_controller_knows_the_directory_of_each_replica() -> None:
    cluster = with_topic()
    for index in (0, 1):
        assert len({*cluster.partition(TOPIC, index).directories}) == 3
    assert {directory_of(cluster, 1, 0), directory_of(cluster, 1, 1)} == {"data", "other"}


def test_others_lead_what_was_in_a_directory_that_fails() -> None:
    cluster = with_topic()
    index, leader = leads_on_other(cluster)
    assert cluster.produce(TOPIC, b"before", index=index).error_code == E.NONE
    fail(cluster, leader, index)
    cluster.wait(lambda: cluster.leader(TOPIC, index) != leader)
    cluster.wait(lambda: leader not in in_sync(cluster, index))
    assert offline_replicas(cluster, index) == [leader]
    assert cluster.produce(TOPIC, b"after", index=index).error_code == E.NONE
    assert cluster.read(TOPIC, index) == [b"before", b"after"]
    assert leader in cluster.live()
    assert leader in in_sync(cluster, 1 - index)
    assert offline_replicas(cluster, 1 - index) == []


def test_a_replica_is_back_once_its_broker_restarts_with_the_directory() -> None:
    cluster = with_topic()
    index, leader = leads_on_other(cluster)
    fail(cluster, leader, index)
    assert cluster.produce(TOPIC, b"meanwhile", index=index).error_code == E.NONE
    cluster.kill(leader)
    cluster.start(leader)
    cluster.unfenced(3)
    cluster.wait(lambda: len(in_sync(cluster, 1 - index)) == 3)
    assert directory_of(cluster, leader, index) is None  # still broken: not created elsewhere
    assert leader not in in_sync(cluster, index)
    disk_of(cluster, leader).fault = None
    cluster.kill(leader)
    cluster.start(leader)
    cluster.wait(lambda: len(in_sync(cluster, index)) == 3)
    assert directory_of(cluster, leader, index) == "other"
    assert cluster.read(TOPIC, index) == [b"meanwhile"]


def test_a_delayed_request_of_an_offline_replica_fails_at_once() -> None:
    """Of a producer that waits for the others, and of a consumer that waits for bytes."""
    cluster = with_topic()
    index, leader = leads_on_other(cluster)
    followers = [each for each in cluster.live() if each != leader]
    for each in followers:
        cluster.block(leader, each, 1.0)
    results: list[Message | None] = []
    key = cluster.key(TOPIC, index)
    assert key is not None
    delayed = {PRODUCE_VERSION: produce(TOPIC, index, b"x")}
    waiting = fetch(key.topic_id, index, 0, wait_ms=20_000)
    for version, body in {**delayed, FETCH_VERSION: waiting}.items():
        cluster.request(-1, leader, "PLAINTEXT", version, body, results.append, 25.0)
    cluster.run(cluster.now + 0.1)
    assert results == []
    fail(cluster, leader, index)
    cluster.run(cluster.now + 0.1)
    found = [each(body) for body in results for each in (produced, fetched)]
    codes = [each.error_code for each in found if each is not None]
    assert codes == [E.KAFKA_STORAGE_ERROR] * 2


def test_a_partition_with_one_replica_has_no_leader_until_its_directory_is_back() -> None:
    cluster = with_topic(partitions=2, replicas=1, nodes=1)
    index = partition_on_other(cluster, 1)
    assert cluster.produce(TOPIC, b"kept", index=index).error_code == E.NONE
    fail(cluster, 1, index)
    cluster.wait(lambda: cluster.partition(TOPIC, index).leader == -1)
    body = cluster.exchange(1, PRODUCE_VERSION, produce(TOPIC, index, b"refused"))
    assert produced(body).error_code == E.KAFKA_STORAGE_ERROR
    assert cluster.produce(TOPIC, b"other", index=1 - index).error_code == E.NONE
    disk_of(cluster, 1).fault = None
    cluster.kill(1)
    cluster.start(1)
    cluster.unfenced(1)
    cluster.wait(lambda: cluster.partition(TOPIC, index).leader == 1)
    assert cluster.read(TOPIC, index) == [b"kept"]


def test_the_controller_learns_of_a_directory_that_fails_before_it_is_assigned() -> None:
    """It does not know then which partitions are in it: the broker reports these, too."""
    cluster = Cluster(combined(3), two=True)
    cluster.create(TOPIC, 2, 3)
    index, leader = leads_on_other(cluster)
    assert not is_assigned(cluster, index)
    fail(cluster, leader, index)
    cluster.wait(lambda: cluster.leader(TOPIC, index) != leader)
    assert cluster.produce(TOPIC, b"one", index=index).error_code == E.NONE


def test_a_log_that_was_created_anew_outranks_the_copy_in_a_directory_that_comes_back() -> None:
    cluster = with_topic(nodes=1, replicas=1)
    index = partition_on_other(cluster, 1)
    cluster.produce(TOPIC, b"of the first topic", index=index)
    fail(cluster, 1, index)
    first = cluster.key(TOPIC)
    cluster.delete(TOPIC)
    cluster.create(TOPIC, 2, 1)
    assert cluster.key(TOPIC) != first
    assert cluster.produce(TOPIC, b"of the second", index=index).error_code == E.NONE
    disk_of(cluster, 1).fault = None
    for _ in range(2):
        cluster.kill(1)
        cluster.start(1)
        cluster.unfenced(1)
        assert cluster.read(TOPIC, index) == [b"of the second"]
        assert directory_of(cluster, 1, index) == "data"


def described(
    cluster: Cluster, broker: int, topics: list[DescribableLogDirTopic] | None = None
) -> dict[str, DescribeLogDirsResult]:
    body = cluster.exchange(broker, DESCRIBE_VERSION, DescribeLogDirsRequest(topics=topics))
    return {each.log_dir: each for each in body.results}


def replicas(result: DescribeLogDirsResult) -> list[tuple[str, int, bool]]:
    return [
        (topic.name, each.partition_index, each.is_future_key)
        for topic in result.topics
        for each in topic.partitions
    ]


def test_a_broker_describes_its_directories() -> None:
    cluster = with_topic()
    disk = disk_of(cluster, 1)
    disk.capacity = disk.used + 10_000
    cluster.produce(TOPIC, b"x" * 100)
    found = described(cluster, 1)
    assert list(found) == ["data", "other"]
    assert sorted(replicas(found["data"]) + replicas(found["other"])) == [
        (TOPIC, 0, False),
        (TOPIC, 1, False),
    ]
    name = directory_of(cluster, 1) or ""
    [topic] = found[name].topics
    log = cluster.broker(1).logs.log(ORDERS)
    assert log is not None
    assert topic.partitions[0].partition_size == log.size > 100
    assert found["other"].total_bytes == disk.capacity
    assert found["other"].usable_bytes == disk.capacity - disk.used
    one = described(cluster, 1, [DescribableLogDirTopic(topic=TOPIC, partitions=[0])])
    assert replicas(one["data"]) + replicas(one["other"]) == [(TOPIC, 0, False)]
    old = cluster.exchange(1, 1, DescribeLogDirsRequest(topics=None))
    assert [each.log_dir for each in old.results] == ["data", "other"]
    disk.fault = broken
    failed = described(cluster, 1)
    assert failed["other"].error_code == E.KAFKA_STORAGE_ERROR
    assert replicas(failed["other"]) == []
    assert failed["data"].error_code == E.NONE


def move(cluster: Cluster, path: str, topic: str = TOPIC, index: int = 0) -> int:
    """Move a log of broker 1; return the error."""
    body = cluster.exchange(1, MOVE_VERSION, moved(TopicPartition(topic, index), path))
    code: int = body.results[0].partitions[0].error_code
    return code


def test_a_replica_is_moved_and_the_controller_knows() -> None:
    cluster = with_topic(partitions=1)
    [source] = [each for each in ("data", "other") if each == directory_of(cluster, 1)]
    [target] = {"data", "other"} - {source}
    cluster.produce(TOPIC, b"x" * 500)
    assert move(cluster, target) == E.NONE
    futures = described(cluster, 1)[target]
    assert replicas(futures) in ([(TOPIC, 0, True)], [(TOPIC, 0, False)])
    cluster.wait(lambda: directory_of(cluster, 1) == target)
    cluster.wait(lambda: is_assigned(cluster, 0))
    assert replicas(described(cluster, 1)[target]) == [(TOPIC, 0, False)]
    assert cluster.produce(TOPIC, b"after").error_code == E.NONE
    cluster.wait(lambda: len(in_sync(cluster, 0)) == 3)


def test_a_move_that_is_under_way_is_a_future_replica() -> None:
    cluster = with_topic(partitions=1)
    [target] = {"data", "other"} - {directory_of(cluster, 1)}
    cluster.produce(TOPIC, b"x" * 500)
    logs = cluster.broker(1).logs
    logs.move(ORDERS, target, logs.next_deadline() or 0)
    [future] = described(cluster, 1)[target].topics[0].partitions
    assert future.is_future_key
    assert future.offset_lag == 1


@pytest.mark.parametrize(
    ("path", "topic", "index", "error"),
    [
        ("absent", TOPIC, 0, E.LOG_DIR_NOT_FOUND),
        ("other", TOPIC, 9, E.REPLICA_NOT_AVAILABLE),
        ("other", "absent", 0, E.REPLICA_NOT_AVAILABLE),
    ],
)
def test_what_cannot_be_moved(path: str, topic: str, index: int, error: ErrorCode) -> None:
    cluster = with_topic(partitions=1)
    assert move(cluster, path, topic, index) == error


def test_nothing_is_moved_to_a_directory_that_has_failed() -> None:
    cluster = with_topic()
    index = 1 - partition_on_other(cluster, 1)
    disk_of(cluster, 1).fault = broken
    assert described(cluster, 1)["other"].error_code == E.KAFKA_STORAGE_ERROR
    assert move(cluster, "other", index=index) == E.KAFKA_STORAGE_ERROR
    assert directory_of(cluster, 1, index) == "data"
