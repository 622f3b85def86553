"""Nodes by themselves and together: topics, records, restarts, failover, shutdown."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from kafkawire.errors import LocalProtocolError
from kafkawire.log import InternalLog, decode_log_record
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.node import ProcessRole, RequestReceived
from kafkawire.node.quorum import raft_manager
from kafkawire.node.quorum.metadata_log import KafkaMetadataLog
from kafkawire.protocol import ErrorCode
from kafkawire.protocol.log_records import LogRecord
from kafkawire.raft import read_quorum_state
from kafkawire.storage import TopicPartition

from .clients import (
    CREATE_VERSION,
    FETCH_VERSION,
    PRODUCE_VERSION,
    create_topic,
    fetch,
    produce,
    produced,
)
from .cluster import WAIT_SECONDS, Cluster, combined
from .network import CLIENT, config_of, voters

E = ErrorCode


def test_a_node_keeps_everything_over_a_restart() -> None:
    cluster = Cluster(combined(1))
    cluster.create("orders", 2, 1, **{"min.insync.replicas": "1"})
    assert cluster.produce("orders", b"one", index=1).error_code == E.NONE
    assert cluster.produce("orders", b"two", index=1).base_offset == 1
    for _ in range(2):
        cluster.kill(1)
        cluster.start(1)
        assert cluster.read("orders", 1) == [b"one", b"two"]
    assert cluster.produce("orders", b"three", index=1).base_offset == 2
    assert cluster.newest().config(2, "orders") == {"min.insync.replicas": "1"}


def test_what_a_machine_did_not_flush_is_lost_with_one_replica_alone() -> None:
    cluster = Cluster(combined(3))
    cluster.create("one", 1, 1)
    cluster.create("three", 1, 3)
    assert cluster.produce("one", b"lost").error_code == E.NONE
    assert cluster.produce("three", b"kept").error_code == E.NONE
    leaders = {cluster.leader("one"), cluster.leader("three")}
    for each in leaders:
        cluster.kill(each, lambda _below: 0)
        cluster.start(each)
        cluster.unfenced(3)
    assert cluster.read("one") == []
    assert cluster.read("three") == [b"kept"]


def test_another_node_leads_when_a_leader_is_gone() -> None:
    cluster = Cluster(combined(3))
    cluster.create("orders", 1, 3)
    leader = cluster.leader("orders")
    assert cluster.produce("orders", b"one").error_code == E.NONE
    cluster.kill(leader)
    assert cluster.leader("orders") != leader
    assert cluster.produce("orders", b"two").error_code == E.NONE
    cluster.start(leader)
    key = cluster.key("orders")
    assert key is not None

    def all_in_sync() -> bool:
        found = cluster.newest().partition(key)
        return found is not None and len(found.isr) == 3

    cluster.wait(all_in_sync)
    assert cluster.read("orders") == [b"one", b"two"]


def test_controllers_and_brokers_may_be_processes_of_their_own() -> None:
    quorum = voters(range(1, 4))
    controllers = [config_of(id, quorum, frozenset({ProcessRole.CONTROLLER})) for id in (1, 2, 3)]
    brokers = [config_of(id, quorum, frozenset({ProcessRole.BROKER})) for id in (4, 5)]
    cluster = Cluster(controllers + brokers)
    cluster.create("orders", 1, 2)
    assert cluster.produce("orders", b"one").error_code == E.NONE
    active = cluster.active_controller()
    assert active is not None
    cluster.kill(active)
    cluster.create("more", 1, 2)
    assert cluster.active_controller() not in (None, active)
    assert cluster.read("orders") == [b"one"]


def test_a_shutdown_moves_leaders_and_needs_no_recovery() -> None:
    cluster = Cluster(combined(3))
    cluster.create("orders", 3, 3)
    leader = cluster.leader("orders")
    cluster.shut_down(leader)
    at_end = cluster.newest()
    topic = at_end.topic("orders")
    assert topic is not None
    assert all(each.leader not in (leader, -1) for each in topic.partitions.values())
    assert all(leader not in each.elr for each in topic.partitions.values())
    epoch = at_end.brokers[leader].epoch
    cluster.start(leader)
    assert cluster.broker(leader).logs.clean_shutdown_epoch == epoch
    cluster.unfenced(3)


def test_a_broker_that_may_have_lost_records_is_not_eligible() -> None:
    quorum = voters(range(4, 5))
    brokers = [config_of(id, quorum, frozenset({ProcessRole.BROKER})) for id in (1, 2, 3)]
    cluster = Cluster([*brokers, config_of(4, quorum, frozenset({ProcessRole.CONTROLLER}))])
    cluster.create("orders", 1, 3, **{"min.insync.replicas": "2"})
    leader = cluster.leader("orders")
    lossy, away = (each for each in cluster.brokers if each != leader)
    assert cluster.produce("orders", b"kept").error_code == E.NONE
    cluster.shut_down(away)
    cluster.kill(lossy, lambda _below: 0)
    cluster.wait(lambda: cluster.partition("orders").elr == (lossy,))
    cluster.start(away)
    cluster.block(lossy, leader, 60.0)
    cluster.block(away, leader, 60.0)
    cluster.start(lossy)
    cluster.wait(lambda: not cluster.partition("orders").elr)
    cluster.kill(leader)
    cluster.wait(lambda: cluster.partition("orders").leader == -1)
    cluster.blocked.clear()
    cluster.start(leader)
    assert cluster.leader("orders") == leader
    assert cluster.read("orders") == [b"kept"]


def test_a_topic_of_the_same_name_has_nothing_of_the_one_before() -> None:
    cluster = Cluster(combined(3))
    cluster.create("orders", 1, 3)
    assert cluster.produce("orders", b"old").error_code == E.NONE
    away = next(each for each in cluster.live() if each != cluster.leader("orders"))
    cluster.shut_down(away)
    first = cluster.key("orders")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1000)
    assert not cluster.exchange(cluster.live()[0], 6, request).responses[0].error_code
    cluster.wait(lambda: cluster.key("orders") is None)
    cluster.create("orders", 1, 2)
    cluster.start(away)
    cluster.unfenced(3)
    assert cluster.key("orders") != first
    assert cluster.read("orders") == []
    for each in cluster.live():
        log = cluster.broker(each).logs.log(TopicPartition("orders", 0))
        assert log is None or log.log_end_offset == 0


def test_a_node_whose_disk_fails_stops() -> None:
    cluster = Cluster(combined(3))
    cluster.create("orders", 1, 3)
    leader = cluster.leader("orders")
    process = cluster.processes[leader]

    def fail(operation: str, path: str) -> float:
        if operation == "append" and path.startswith("orders-0"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return 0.0

    process.disk.fault = fail
    assert produced(cluster.exchange(leader, PRODUCE_VERSION, produce("orders", 0, b"x"))) is None
    assert process.node is None
    assert "offline" in (process.failure or "")
    assert cluster.leader("orders") != leader
    assert cluster.produce("orders", b"one").error_code == E.NONE


def test_the_metadata_log_has_snapshots() -> None:
    cluster = Cluster(combined(3, snapshot_bytes=2_000))
    for number in range(8):
        cluster.create(f"topic-{number}", 1, 3)
    leader = cluster.active_controller()
    assert leader is not None
    latest = cluster.node(leader).parts.raft.log.latest_snapshot
    assert latest is not None
    away = next(each for each in cluster.live() if each != leader)
    cluster.processes[away].disk = type(cluster.processes[away].disk)()
    cluster.kill(away)
    cluster.start(away)
    cluster.wait(lambda: cluster.broker(away).is_published)
    cluster.wait(lambda: cluster.broker(away).loader.offset == cluster.newest().offset)
    others = cluster.broker(leader).loader.image
    assert not cluster.broker(away).loader.image.differences(others)
    assert cluster.node(away).parts.raft.log.start_offset > 0


def test_an_active_controller_does_not_decode_what_it_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[bytes | None] = []

    def decode(log: InternalLog, key: bytes | None, value: bytes | None) -> LogRecord:
        decoded.append(value)
        return decode_log_record(log, key, value)

    monkeypatch.setattr(raft_manager, "decode_log_record", decode)
    cluster = Cluster(combined(1))
    cluster.create("orders", 2, 1)
    assert decoded == []
    cluster.kill(1)
    cluster.start(1)
    assert cluster.produce("orders", b"one").error_code == E.NONE
    assert len(decoded) > 10


def test_a_start_writes_the_state_of_the_quorum_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a voter that elects itself: only its last state is needed."""
    texts: list[str] = []
    monkeypatch.setattr(KafkaMetadataLog, "write_quorum_state", lambda _, text: texts.append(text))
    Cluster(combined(1))
    assert [read_quorum_state(each).leader_id for each in texts] == [1]


def test_clients_ask_any_broker_about_the_quorum() -> None:
    cluster = Cluster(combined(3))
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])]
    )
    for each in cluster.live():
        found = cluster.exchange(each, 1, request).topics[0].partitions[0]
        assert found.leader_id == cluster.active_controller()
        assert len(found.current_voters) == 3


def test_without_a_quorum_requests_time_out() -> None:
    cluster = Cluster(combined(3))
    for each in (2, 3):
        cluster.kill(each)
    response = cluster.exchange(1, CREATE_VERSION, create_topic("t", 1, 1))
    assert cluster.active_controller() is None
    assert response.topics[0].error_code == E.REQUEST_TIMED_OUT


def test_requests_at_the_wrong_listener_are_errors() -> None:
    cluster = Cluster(combined(1))
    node = cluster.node(1)
    for listener in ("PLAINTEXT", "CONTROLLER"):
        with pytest.raises(LocalProtocolError):
            node.handle(RequestReceived(0, listener, 0, HeartbeatRequest()), cluster.now)


def test_a_topic_is_deleted_while_a_fetch_waits_for_two_of_its_partitions() -> None:
    cluster = Cluster(combined(1))
    cluster.create("t", 2, 1)
    for index in (0, 1):
        cluster.leader("t", index)
    key = cluster.key("t")
    assert key is not None
    body = fetch(key.topic_id, 0, 0, wait_ms=20_000)
    body.topics[0].partitions += fetch(key.topic_id, 1, 0).topics[0].partitions
    responses: list[Any] = []
    cluster.request(CLIENT, 1, "PLAINTEXT", FETCH_VERSION, body, responses.append, WAIT_SECONDS)
    cluster.run(cluster.now + 0.5)
    assert responses == []
    cluster.exchange(
        1, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    )
    cluster.wait(lambda: bool(responses))
    found = responses[0].responses[0].partitions
    assert [each.error_code for each in found] == 2 * [E.UNKNOWN_TOPIC_ID]
    assert cluster.live() == [1]
