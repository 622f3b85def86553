"""The fixtures `kafka_broker` and `kafka_cluster`: what tests can do with either of them."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kafkawire import ErrorCode
from kafkawire.capture import decode_capture
from kafkawire.client.failures import BrokerError
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.net.brokers.recording import Recording
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig, read_marker
from kafkawire.net.server_thread import ServerThread
from kafkawire.storage import StorageError
from tests.interop.implementations import Implementation
from tests.interop.implementations.librdkafka import Confluent

from .test_produce_and_consume import all_seen, values
from .test_transactions import SECONDS, consumer, producer, read, send

E = ErrorCode
CLIENT: Implementation = Confluent()
KINDS: dict[str, Callable[..., ServerThread]] = {
    "memory": ServerThread,
    "nodes": ClusterThread,
}
NODES = "kafkawire-node-"
"""How the client ids of nodes begin."""
RECORDED: dict[Any, set[str]] = {
    ServerThread: set(),
    ClusterThread: {"BrokerHeartbeat", "Fetch", "Vote"},
}
"""Kind -> APIs between nodes that its recordings have."""
REPLICATED = {"default.replication.factor": "3", "group.initial.rebalance.delay.ms": "0"}
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Callable[..., ServerThread]:
    """Either kind of cluster."""
    return KINDS[request.param]


@pytest.fixture
def cluster(kind: Callable[..., ServerThread]) -> Iterator[ServerThread]:
    """Three brokers of either kind."""
    with kind(ServerConfig(brokers=3, settings=REPLICATED)) as running:
        yield running


def produced(cluster: ServerThread) -> list[tuple[int, list[int]]]:
    """Return the broker of each Produce, and the errors of the response."""
    return [
        (
            report.request.node_id,
            [
                partition.error_code
                for topic in report.response.responses
                for partition in topic.partition_responses
            ],
        )
        for report in list(cluster.requests)
        if isinstance(report.response, ProduceResponse)
    ]


def consumed(cluster: ServerThread, group: str, count: int) -> list[bytes | None]:
    """Return the first records of the topic t."""
    member = CLIENT.member(cluster.bootstrap, "t", group)
    member.until(lambda: all_seen([member], count))
    member.leave()
    return [each.value for each in member.seen]


def test_leaders_move_and_requests_show_where_records_went(cluster: ServerThread) -> None:
    cluster.create_topic("t")
    assert cluster.isr("t") == [1, 2, 3]
    for leader in (2, 3, 1):
        cluster.move_leader("t", 0, leader)
        assert cluster.leader("t") == leader
        CLIENT.produce(cluster.bootstrap, "t", values(1))
    assert produced(cluster) == [(2, [0]), (3, [0]), (1, [0])]
    requests = [each.request for each in cluster.requests]
    connections = {(each.node_id, each.connection) for each in requests}
    assert len({number for _, number in connections}) == len(connections), "each has its number"
    assert consumed(cluster, "g", 3) == values(1) * 3


def test_a_leader_moves_to_a_broker_without_a_replica(cluster: ServerThread) -> None:
    cluster.create_topic("t", factor=1)
    CLIENT.produce(cluster.bootstrap, "t", values(1))
    other = cluster.leader("t") % 3 + 1
    cluster.move_leader("t", 0, other)
    assert (cluster.leader("t"), cluster.isr("t")) == (other, [other])
    assert consumed(cluster, "g", 1) == values(1)


def test_topics_that_exist_and_leaders_that_cannot_be_are_refused(cluster: ServerThread) -> None:
    cluster.create_topic("t")
    with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
        cluster.create_topic("t")
    with pytest.raises(ValueError, match="no such partition: t-7"):
        cluster.move_leader("t", 7, 1)
    cluster.kill(2)
    with pytest.raises(ValueError, match="broker 2"):
        cluster.move_leader("t", 0, 2)


def test_brokers_stop_are_killed_and_start(cluster: ServerThread) -> None:
    cluster.create_topic("t")
    for end in (cluster.stop, cluster.kill):
        leader = cluster.leader("t")
        end(leader)
        assert leader not in cluster.nodes
        assert cluster.leader("t") != leader
        with pytest.raises(ValueError, match="does not run"):
            end(leader)
        CLIENT.produce(cluster.bootstrap, "t", values(1))
        cluster.start(leader)
        cluster.wait(lambda: cluster.isr("t") == [1, 2, 3])
    with pytest.raises(ValueError, match="runs already"):
        cluster.start(1)
    with pytest.raises(ValueError, match="1 to 3"):
        cluster.stop(4)
    assert consumed(cluster, "g", 2) == values(1) * 2


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_nobody_gets_the_port_of_a_broker_that_does_not_run(
    cluster: ServerThread, end: str
) -> None:
    broker = cluster.bootstrap.split(",")[1]
    host, port = broker.split(":")
    getattr(cluster, end)(2)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((host, int(port)))
    cluster.start(2)
    socket.create_connection((host, int(port))).close()


def test_a_fault_is_counted_over_all_brokers_and_those_that_start_later(
    cluster: ServerThread,
) -> None:
    cluster.create_topic("t")
    cluster.move_leader("t", 0, 1)
    fault = cluster.fault("Produce", nth=2, error="NOT_LEADER_OR_FOLLOWER")
    CLIENT.produce(cluster.bootstrap, "t", values(1))
    cluster.kill(2)
    cluster.start(2)
    cluster.wait(lambda: cluster.isr("t") == [1, 2, 3])
    cluster.move_leader("t", 0, 2)
    CLIENT.produce(cluster.bootstrap, "t", values(1))
    assert (fault.hit, fault.seen) == (1, 3), "and once more after the error"
    assert produced(cluster) == [(1, [0]), (2, [E.NOT_LEADER_OR_FOLLOWER]), (2, [0])]
    cluster.clear_faults()
    CLIENT.produce(cluster.bootstrap, "t", values(1))
    assert fault.seen == 3


def test_a_fault_of_fetches_does_not_meet_followers(cluster: ServerThread) -> None:
    cluster.create_topic("t")
    fault = cluster.fault("Fetch", nth=1, action="disconnect")
    CLIENT.produce(cluster.bootstrap, "t", values(5))  # acknowledged by all replicas
    assert fault.seen == 0
    assert consumed(cluster, "g", 5) == values(5)
    assert fault.hit == 1
    assert "a fault: disconnect" in [each.reason for each in cluster.closed]


def test_a_fault_of_an_api_that_the_release_lacks_is_refused(
    kind: Callable[..., ServerThread],
) -> None:
    with kind(ServerConfig(release="3.9")) as older:
        with pytest.raises(ValueError, match=r"'ShareFetch': brokers of release 3\.9"):
            older.fault("ShareFetch")
        assert older.fault("ConsumerGroupHeartbeat").seen == 0


def test_what_the_fixture_does_itself_is_no_request_of_a_client(cluster: ServerThread) -> None:
    fault = cluster.fault()
    cluster.create_topic("t")
    cluster.move_leader("t", 0, 2)
    cluster.wait(lambda: cluster.isr("t") == [1, 2, 3])
    assert (cluster.requests, fault.seen) == ([], 0)


def cluster_id_of(cluster: ServerThread | ClusterThread) -> str:
    """Return the id that the cluster tells its clients."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return str(client.list_topics(timeout=SECONDS).cluster_id)


def test_two_clusters_have_different_ids(kind: Callable[..., Any]) -> None:
    config = ServerConfig(brokers=1)
    with kind(config) as first, kind(config) as second:
        assert cluster_id_of(first) != cluster_id_of(second)


def test_a_cluster_goes_on_where_another_was(kind: Callable[..., Any]) -> None:
    config = ServerConfig(brokers=3, settings=REPLICATED)
    with kind(config) as first:
        cluster_id = cluster_id_of(first)
        first.create_topic("t", configs={"retention.ms": "-1"})
        CLIENT.produce(first.bootstrap, "t", values(20))
        assert consumed(first, "g", 20) == values(20)
    with kind(config, persisted=first.persisted) as second:
        assert cluster_id_of(second) == cluster_id
        with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
            second.create_topic("t")
        CLIENT.produce(second.bootstrap, "t", values(3, "later"))
        assert consumed(second, "g", 3) == values(3, "later"), "the group had read the others"


@pytest.mark.kafka_cluster(brokers=1)
def test_what_is_persisted_is_as_it_was_then(kafka_cluster: ClusterThread) -> None:
    CLIENT.produce(kafka_cluster.bootstrap, "t", values(3, "before"))
    persisted = kafka_cluster.persisted
    CLIENT.produce(kafka_cluster.bootstrap, "t", values(3, "after"))
    for group in ("g", "h"):  # what was restored from is unchanged
        with ClusterThread(ServerConfig(brokers=1), persisted=persisted) as restored:
            CLIENT.produce(restored.bootstrap, "t", values(1, group))
            assert consumed(restored, "g", 4) == values(3, "before") + values(1, group)


def test_the_traffic_of_all_brokers_is_recorded(kind: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "traffic.pcap"
    config = ServerConfig(brokers=3, settings=REPLICATED)
    with kind(config, recording=Recording(path)) as cluster:
        cluster.create_topic("t", 3)
        for partition in range(3):
            cluster.move_leader("t", partition, partition + 1)
        CLIENT.produce(cluster.bootstrap, "t", values(30))
        leaders = {cluster.bootstrap.split(",")[node - 1] for node, _ in produced(cluster)}
    messages = list(decode_capture(path))
    brokers = {each.broker for each in messages if each.row.api_name == "Produce"}
    assert brokers == leaders
    assert {each.row.error for each in messages} == {""}
    between = {
        each.row.api_name for each in messages if (each.row.client_id or "").startswith(NODES)
    }
    assert between & {"BrokerHeartbeat", "Fetch", "Vote"} == RECORDED[kind]


# -- what may fail


def test_an_isolated_leader_is_replaced_until_the_network_is_whole_again(
    cluster: ServerThread,
) -> None:
    cluster.create_topic("t")
    leader = cluster.leader("t")
    cluster.isolate(leader)
    cluster.wait(lambda: cluster.leader("t") != leader)
    assert leader not in cluster.isr("t")
    cluster.heal()
    cluster.wait(lambda: cluster.isr("t") == [1, 2, 3])
    cluster.invariants()


def test_a_broker_whose_disk_fails_stops_and_starts_once_it_is_repaired(
    cluster: ServerThread,
) -> None:
    cluster.create_topic("t")
    CLIENT.produce(cluster.bootstrap, "t", values(3))
    leader = cluster.leader("t")
    cluster.fail_disk(leader)
    CLIENT.produce(cluster.bootstrap, "t", values(3))
    cluster.wait(lambda: leader not in cluster.nodes)
    with pytest.raises(StorageError, match="Input/output error"):
        cluster.start(leader)
    assert leader not in cluster.nodes
    cluster.repair_disks(leader)
    cluster.start(leader)
    cluster.wait(lambda: cluster.isr("t") == [1, 2, 3])
    assert cluster.offline_directories(leader) == {}
    assert cluster.directory("t", leader) == "disk-1"
    cluster.invariants()


def test_brokers_that_do_not_exist_or_run_are_refused(cluster: ServerThread) -> None:
    for refused in (cluster.isolate, cluster.fail_disk, cluster.offline_directories):
        with pytest.raises(ValueError, match="no broker 4: they are 1 to 3"):
            refused(4)
    with pytest.raises(ValueError, match="no broker '1': they are 1 to 3"):
        cluster.kill("1")  # type: ignore[arg-type]
    cluster.kill(2)
    with pytest.raises(ValueError, match="broker 2 does not run"):
        cluster.directory("t", 2)
    with pytest.raises(ValueError, match="no listener 'SSL': PLAINTEXT"):
        cluster.ports("SSL")


# -- transactions, at nodes


def apis(cluster: ServerThread) -> list[ApiKey]:
    return [report.request.api_key for report in list(cluster.requests)]


def test_requests_show_the_steps_of_a_transaction(
    kafka_cluster: ClusterThread,
) -> None:
    writer = producer(kafka_cluster)
    send(writer, "t", [b"a"])
    writer.commit_transaction(SECONDS)
    steps = [ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE, ApiKey.END_TXN]
    seen = [each for each in apis(kafka_cluster) if each in steps]
    assert [each for at, each in enumerate(seen) if each not in seen[:at]] == steps


def test_a_commit_whose_response_is_lost_is_repeated_and_commits_once(
    kafka_cluster: ClusterThread,
) -> None:
    writer = producer(kafka_cluster)
    lost = kafka_cluster.fault("EndTxn", nth=1, action="disconnect", carried_out=True)
    again = kafka_cluster.fault("Produce", nth=1, error="NOT_LEADER_OR_FOLLOWER")
    send(writer, "t", [b"a", b"b"])
    writer.commit_transaction(SECONDS)
    assert (lost.hit, again.hit) == (1, 1)
    assert apis(kafka_cluster).count(ApiKey.END_TXN) >= 2
    with consumer(kafka_cluster, "t", "g") as reader:
        assert read(reader, 2) == [b"a", b"b"]
    kafka_cluster.invariants()


def test_a_transaction_that_a_coordinator_refuses_is_aborted_as_a_whole(
    kafka_cluster: ClusterThread,
) -> None:
    writer = producer(kafka_cluster)
    fenced = kafka_cluster.fault("EndTxn", nth=1, error="INVALID_PRODUCER_EPOCH")
    send(writer, "t", [b"lost"])
    with pytest.raises(KafkaException):
        writer.commit_transaction(SECONDS)
    assert fenced.hit == 1
    again = producer(kafka_cluster)
    send(again, "t", [b"kept"])
    again.commit_transaction(SECONDS)
    with consumer(kafka_cluster, "t", "g") as reader:
        assert read(reader, 1) == [b"kept"]


# -- configuration


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"broker": 3}, "unknown argument 'broker' of the marker kafka; did you mean 'brokers'?"),
        ({"nodes": 3}, "unknown argument 'nodes' of the marker kafka; did you mean 'brokers'?"),
        ({"brokers": "3"}, "marker kafka: brokers='3'"),
        ({"topics": ["t"]}, "marker kafka: topics="),
        ({"topics": ["t"]}, r"expected names with numbers of partitions, as \{'orders': 1\}"),
        ({"topics": {"a/b": 1}}, "marker kafka: topics: "),
        ({"settings": {"num.partition": "3"}}, "marker kafka: .*num.partition"),
        ({"settings": {"num.partitions": "x"}}, "marker kafka: settings: .*num.partitions"),
        ({"settings": {"num.partitions": 0.5}}, "marker kafka: settings: .*num.partitions"),
        ({"settings": {"num.partitions": None}}, "marker kafka: settings: num.partitions=None"),
        ({"settings": {"authorizer.class.name": "a.B"}}, "authorizer.class.name='a.B': expected"),
        ({"settings": {"auto.create.topic.enable": "x"}}, "mean 'auto.create.topics.enable'"),
        ({"settings": {"max.message.bytes": "1"}}, "mean 'message.max.bytes'"),
        ({"passwords": {"alice": None}}, "marker kafka: passwords: "),
        ({"brokers": 3, "racks": ["a"]}, "marker kafka: racks: .* 3 brokers"),
        ({"brokers": 2, "ports": [0, 0, 0]}, "marker kafka: ports: .* 2 brokers"),
        ({"ports": ["x"]}, "marker kafka: ports="),
        ({"racks": "a"}, "marker kafka: racks="),
        ({"seed": "x"}, "marker kafka: seed='x'"),
        ({"tls": True}, "marker kafka: tls=True"),
        ({"host": None}, "marker kafka: host=None"),
        ({"bounds": 5}, "marker kafka: bounds=5"),
        ({"zookeeper": 1}, "marker kafka: zookeeper=1"),
        ({"release": "9.9"}, "marker kafka: .*9.9"),
        ({"release": "4.4", "zookeeper": True}, "marker kafka: .*zookeeper|ZooKeeper"),
    ],
)
def test_wrong_arguments_name_the_marker(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_marker("kafka", arguments)


def test_a_kind_refuses_what_only_the_other_has() -> None:
    with pytest.raises(ValueError, match="zookeeper=True"):
        ClusterThread(ServerConfig(release="2.7", zookeeper=True))
    for kind in (ServerThread, ClusterThread):
        with pytest.raises(ValueError, match=r"persisted: of brokers \[2\]"):
            kind(ServerConfig(brokers=1), persisted={2: {}})


def test_a_marker_that_is_wrong_fails_its_test_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent("""
            import pytest

            @pytest.mark.kafka(broker=3)
            def test_one(kafka_broker): ...

            @pytest.mark.kafka_cluster(3)
            def test_two(kafka_cluster): ...

            @pytest.mark.kafka(brokers=5)
            def test_three(tmp_path): ...

            @pytest.mark.kafka(brokers=5)
            class TestFour:
                def test_four(self, kafka_cluster): ...
                def test_without_a_broker(self): ...

            @pytest.mark.kafka(brokers=2)
            @pytest.mark.kafka_cluster(brokers=5)
            def test_when_it_runs(request):
                assert len(request.getfixturevalue("kafka_broker").nodes) == 2
        """)
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "the marker kafka; did you mean 'brokers'?" in ran.stdout
    assert "the marker kafka_cluster takes arguments by name" in ran.stdout
    assert "the marker kafka configures `kafka_broker`, which this test does not" in ran.stdout
    assert "that of `kafka_cluster` is kafka_cluster" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert "During handling" not in ran.stdout
    assert "1 failed, 2 passed, 3 errors" in ran.stdout


def test_a_failed_test_shows_why_connections_were_closed(tmp_path: Path) -> None:
    """A client without SASL only logs that it was disconnected."""
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent("""
            import pytest
            from confluent_kafka import Producer
            from kafkawire.broker import Close

            @pytest.fixture
            def producer(kafka_broker):
                producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
                producer.produce("orders", b"apples")
                kafka_broker.wait(lambda: producer.poll(0.1) or kafka_broker.closed)

            @pytest.mark.kafka(passwords={"alice": "secret"})
            def test_plain(kafka_broker, producer):
                assert kafka_broker.closed == []

            @pytest.mark.kafka(passwords={"alice": "secret"})
            def test_that_passes(kafka_broker, producer): ...

            @pytest.mark.kafka_cluster(brokers=1)
            def test_many(kafka_cluster):
                for number in range(30):
                    kafka_cluster.closed.append(Close(number, f"reason {min(number, 20)}\\x1b[2J"))
                pytest.fail()
        """)
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 failed, 1 passed" in ran.stdout, ran.stdout
    _, plain, many = re.split("-+ kafka_.*: connections that were closed -+\n", ran.stdout)
    assert re.match(r"\d+ connections?: METADATA before authentication\n", plain), plain
    lines = many.splitlines()[:10]
    assert lines[0] == r"1 connection: reason 0\x1b[2J"
    assert lines[9] == "... and 12 more reasons (`.closed` has all)"
    assert "\x1b[2J" not in ran.stdout


def test_a_fault_that_no_request_met_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "test_faults.py").write_text(
        textwrap.dedent("""
            from kafkawire.blocking import Admin


            def metadata(cluster):
                with Admin({"bootstrap.servers": cluster.bootstrap}) as admin:
                    admin.describe_cluster()


            def test_green(kafka_broker):
                kafka_broker.fault("Produce", nth=1, action="disconnect")


            def test_too_late(kafka_cluster):
                kafka_cluster.fault("ApiVersions", nth=1000, action="delay")
                metadata(kafka_cluster)


            def test_of_chance(kafka_broker):
                kafka_broker.fault("ApiVersions", probability=0.0)
                metadata(kafka_broker)


            def test_failed(kafka_broker):
                kafka_broker.fault("Fetch", action="drop")
                assert False
        """)
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    shown = ran.stdout
    assert "1 failed, 3 passed, 2 warnings" in shown, shown
    warning = r"test_faults.py:\d+: UnusedFaultWarning: no request met <Fault "
    assert re.search(rf"{warning}Produce action=disconnect nth=1: 0 matched", shown), shown
    assert re.search(rf"{warning}ApiVersions action=delay nth=1000 .*: [1-9]\d* matched", shown), (
        shown
    )
    ignored = [*command, "-W", "ignore::kafkawire.net.pytest_plugin.UnusedFaultWarning"]
    ran = subprocess.run(ignored, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "warning" not in ran.stdout, ran.stdout


def test_a_cluster_that_cannot_elect_a_controller_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkawire.net.server.MOST_START", 2.0)
    config = ServerConfig(3, settings={"controller.quorum.election.timeout.ms": "1000000"})
    with (
        pytest.raises(TimeoutError, match="brokers did not start within 2 seconds"),
        ClusterThread(config),
    ):
        pass


def test_a_seed_repeats_the_ids_of_a_node() -> None:
    ids = []
    for seed in (7, 7, 8):
        with ClusterThread(ServerConfig(brokers=1, seed=seed)) as cluster:
            producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
            cluster.create_topic("t")
            producer.list_topics("t", SECONDS)
            ids.append(cluster.server.machine.image().topic_ids["t"])
    assert ids[0] == ids[1] != ids[2]


def test_the_text_of_a_request_is_a_line_with_its_errors(kafka_broker: ServerThread) -> None:
    """A failed assertion on the requests shows them."""
    kafka_broker.fault("Produce", nth=1, error="NOT_LEADER_OR_FOLLOWER")
    sender = Producer({"bootstrap.servers": kafka_broker.bootstrap, "client.id": "app"})
    sender.produce("orders", b"apples")
    assert sender.flush(30) == 0
    failed, retried = kafka_broker.requests_of("Produce")
    version = failed.request.version
    assert repr(failed) == f"<Produce v{version}, client app, broker 1: NOT_LEADER_OR_FOLLOWER>"
    assert repr(retried) == f"<Produce v{version}, client app, broker 1: ok>"
    unanswered = retried._replace(response=None, request=retried.request._replace(client_id=None))
    assert repr(unanswered) == f"<Produce v{version}, broker 1: no response>"
    hostile = unanswered._replace(request=retried.request._replace(client_id="\x1b[2J"))
    assert repr(hostile) == f"<Produce v{version}, client \\x1b[2J, broker 1: no response>"


@pytest.mark.parametrize("seconds", [-5, float("inf"), float("nan")])
def test_the_clock_does_not_go_back(kafka_broker: ServerThread, seconds: float) -> None:
    with pytest.raises(ValueError, match=f"seconds={seconds}: expected a number from 0"):
        kafka_broker.advance(seconds)
    with pytest.raises(ValueError, match=f"seconds={seconds}: expected a number from 0"):
        kafka_broker.slow_disk(1, seconds)


@pytest.mark.parametrize("seconds", ["5", None, timedelta(seconds=5)])
def test_the_clock_takes_numbers(kafka_broker: ServerThread, seconds: Any) -> None:
    with pytest.raises(TypeError) as raised:
        kafka_broker.advance(seconds)
    assert str(raised.value) == f"seconds={seconds!r}: expected a number from 0"


def test_the_text_of_a_cluster_is_short(kafka_broker: ServerThread) -> None:
    assert repr(kafka_broker) == "<ServerThread: 1 broker>"


@pytest.mark.parametrize("kind", [ServerThread, ClusterThread])
def test_a_cluster_outside_its_block_says_so(kind: Callable[..., Any]) -> None:
    """A call would wait for a loop that nothing runs in."""
    config = ServerConfig(topics={"t": 1})
    for cluster, reason in (
        (kind(config), "^the cluster was not started: `with` does$"),
        (ended(kind(config)), "^the cluster is closed$"),
    ):
        calls: list[Callable[[ServerThread], object]] = [
            lambda each: each.records("t"),
            lambda each: each.create_topic("other"),
            lambda each: each.leader("t"),
            lambda each: each.start(1),
            lambda each: each.fault("Produce"),
            lambda each: each.invariants(),
        ]
        for call in calls:
            with pytest.raises(LocalProtocolError, match=reason):
                call(cluster)
        assert cluster.nodes == []


def ended(cluster: ServerThread) -> ServerThread:
    with cluster:
        assert cluster.nodes == [1]
    return cluster
