"""Peers that misbehave over real sockets, brokers that come and go, and the fixture itself."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

import kafkawire
from kafkawire import ErrorCode
from kafkawire.capture import decode_capture
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.net.brokers.recording import Recording
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.records import BatchBuilder
from tests.interop.implementations import IMPLEMENTATIONS, Implementation, until

from ...real.wire import Wire

pytestmark = pytest.mark.timeout(600)
LARGE = 1 << 30


def port_of(server: ServerThread, node_id: int = 1) -> int:
    return server.server.endpoints[node_id - 1].port


def produce(wire: Wire, size: int) -> None:
    builder = BatchBuilder()
    builder.append(None, os.urandom(size))
    data = PartitionProduceData(index=0, records=builder.build())
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    response = wire.exchange(request, 9, ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == 0


def whole_topic() -> FetchRequest:
    requests = FetchPartition(partition=0, partition_max_bytes=LARGE)
    topic = FetchTopic(topic="t", partitions=[requests])
    return FetchRequest(max_bytes=LARGE, session_epoch=-1, topics=[topic])


def closes(hostile: socket.socket) -> bool:
    """Whether the server closed without a response: unread bytes cause a reset."""
    try:
        return hostile.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.kafka(topics={"t": 1})
def test_hostile_bytes_close_their_connection_and_no_other(kafka_broker: ServerThread) -> None:
    chance = random.Random(11)
    port = port_of(kafka_broker)
    with Wire(port) as good:
        for size in (0x7FFFFFFF, 0x80000000, 200 << 20):
            with socket.create_connection(("127.0.0.1", port)) as hostile:
                hostile.sendall(size.to_bytes(4, "big") + chance.randbytes(64))
                assert closes(hostile)
        for _ in range(50):
            data = chance.randbytes(chance.randrange(2, 300))
            with socket.create_connection(("127.0.0.1", port)) as hostile:
                hostile.sendall(len(data).to_bytes(4, "big") + data)
        response = good.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
        assert [topic.name for topic in response.topics] == ["t"]
    until(lambda: len(kafka_broker.server.connections) == 0)


@pytest.mark.kafka(topics={"t": 1})
def test_a_reader_that_does_not_read_costs_little_and_disturbs_nobody(
    kafka_broker: ServerThread,
) -> None:
    with Wire(port_of(kafka_broker)) as good, Wire(port_of(kafka_broker)) as slow:
        # or the system may take in several responses, as much as it likes
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        for _ in range(8):
            produce(good, 1_000_000)
        for number in range(200):
            slow.socket.sendall(kafkawire.encode_frame(whole_topic(), 12, number, client_id="slow"))
        for _ in range(20):
            good.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
        fetches = [r for r in kafka_broker.requests if r.request.client_id == "slow"]
        assert 1 <= len(fetches) <= 4, "responses as far as it reads, not 200 times 8 MB"
        assert held(kafka_broker) < 17_000_000, "an response more than may be unsent"
        # and when it reads, it gets them, in order
        for number in range(8):
            size = int.from_bytes(slow._read(4), "big")
            assert size > 8_000_000
            assert slow._read(size)[:4] == number.to_bytes(4, "big")
    until(lambda: len(kafka_broker.server.connections) == 0)


def held(server: ServerThread) -> int:
    """Count the bytes that a server buffers for its clients: requests and responses."""
    buffered = server.server.machine.front(1).broker.server.connections.values()
    requests = sum(len(each.buffer) for each in list(buffered))
    connections = list(server.server.connections.values())
    return requests + sum(each.transport.get_write_buffer_size() for each in connections)


@pytest.mark.kafka(topics={"t": 1}, settings={"socket.request.max.bytes": "3000000"})
def test_frames_that_never_end_cost_what_a_frame_may(kafka_broker: ServerThread) -> None:
    port = port_of(kafka_broker)
    with Wire(port) as good, Wire(port) as hostile:
        hostile.socket.sendall((3_000_000).to_bytes(4, "big"))
        for _ in range(29):
            hostile.socket.sendall(bytes(100_000))
        until(lambda: held(kafka_broker) == 2_900_004)
        good.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
        hostile.socket.sendall(bytes(200_000))  # whole now, and no request
        assert closes(hostile.socket)
        until(lambda: held(kafka_broker) == 0)
        with Wire(port) as giant:
            giant.socket.sendall((3_000_001).to_bytes(4, "big") + bytes(64))
            assert closes(giant.socket), "before a byte of it is kept"
        good.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
    reasons = [each.reason for each in kafka_broker.closed]
    assert len(reasons) == 2
    assert "socket.request.max.bytes (3000000)" in reasons[1]


@pytest.mark.kafka(topics={"t": 1})
def test_a_delayed_response_waits_for_the_clock_that_the_test_advances(
    kafka_broker: ServerThread,
) -> None:
    kafka_broker.fault("Metadata", nth=1, action="delay", delay=3600)
    with Wire(port_of(kafka_broker)) as wire:
        frame = kafkawire.encode_frame(MetadataRequest(topics=None), 9, 1, client_id="c")
        wire.socket.sendall(frame)
        until(lambda: len(kafka_broker.requests) == 1)
        wire.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        kafka_broker.advance(3600)
        wire.socket.settimeout(100)
        assert len(wire._read(4)) == 4


@pytest.mark.kafka(topics={"t": 1})
def test_requests_are_reported_with_their_responses(kafka_broker: ServerThread) -> None:
    with Wire(port_of(kafka_broker)) as wire:
        wire.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
    [report] = kafka_broker.requests
    assert (report.request.api_key.name, report.request.version) == ("METADATA", 9)
    assert isinstance(report.response, MetadataResponse)
    assert report.request.client_id == "kafkawire-tests"


@pytest.mark.kafka(brokers=3, topics={"t": 3})
def test_a_broker_goes_and_comes_back(kafka_broker: ServerThread, make: Implementation) -> None:
    kafka_broker.create_topic("r", 3, 3)
    bootstrap = kafka_broker.bootstrap
    make.produce(bootstrap, "r", [b"before%d" % at for at in range(30)])
    member = make.member(bootstrap, "r", "g")
    member.until(lambda: len(member.seen) == 30)
    kafka_broker.stop(2)
    make.produce(bootstrap, "r", [b"during%d" % at for at in range(30)])
    member.until(lambda: len({each[:3] for each in member.seen}) == 60)
    kafka_broker.start(2)
    kafka_broker.move_leader("r", 0, 2)
    make.produce(bootstrap, "r", [b"after%d" % at for at in range(30)])
    member.until(lambda: len({each[:3] for each in member.seen}) == 90)
    member.leave()


def test_traffic_is_recorded_as_a_capture(tmp_path: Path) -> None:
    path = tmp_path / "traffic.pcap"
    config = ServerConfig(topics={"t": 1})
    with ServerThread(config, recording=Recording(path)) as server:
        IMPLEMENTATIONS[0].produce(server.bootstrap, "t", [b"x" * 60_000 for _ in range(20)])
    reported = [report.request.api_key.name for report in server.requests]
    rows = list(decode_capture(str(path)))
    assert {found.row.status.value for found in rows} == {"ok"}
    requests = [f for f in rows if f.row.direction == "request"]
    responses = [f for f in rows if f.row.direction == "response"]
    assert len(requests) == len(responses) == len(reported)
    names = sorted(name.replace("_", "").lower() for name in reported)
    assert sorted((f.row.api_name or "").lower() for f in requests) == names


def test_a_cluster_is_up_at_once() -> None:
    config = ServerConfig(brokers=3, topics={"t": 6})
    with ServerThread(config) as server, Wire(port_of(server, 3)) as wire:
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        response = wire.exchange(request, 3, ApiVersionsResponse)
        assert response.error_code == ErrorCode.NONE


def test_the_fixture_imports_nothing_until_it_is_used(tmp_path: Path) -> None:
    test = tmp_path / "test_nothing.py"
    test.write_text(
        "import sys\n"
        "def test_it(): assert not any(n.startswith('kafkawire.broker') for n in sys.modules)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=240)
    assert done.returncode == 0, done.stdout
    help = subprocess.run(
        [sys.executable, "-m", "pytest", "--markers"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=240,
    )
    assert "@pytest.mark.kafka" in help.stdout


def test_a_fetch_over_a_socket_gets_what_was_produced() -> None:
    config = ServerConfig(topics={"t": 1})
    with ServerThread(config) as server, Wire(port_of(server)) as wire:
        produce(wire, 100)
        response = wire.exchange(whole_topic(), 12, FetchResponse)
        assert response.responses[0].partitions[0].high_watermark == 1


def test_unknown_topics_are_created_by_metadata() -> None:
    with ServerThread(ServerConfig()) as server, Wire(port_of(server)) as wire:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
        response = wire.exchange(request, 9, MetadataResponse)
        assert response.topics[0].error_code == ErrorCode.NONE
        assert len(response.topics[0].partitions) == 1


@pytest.mark.kafka(topics={"t": 1})
def test_small_responses_do_not_wait_for_each_other(kafka_broker: ServerThread) -> None:
    with Wire(port_of(kafka_broker)) as wire:
        wire.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
        [held] = kafka_broker.server.connections.values()
        plug = held.transport.get_extra_info("socket")
        assert plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_connection_that_reuses_a_port_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sequence numbers differ; those of the first one would be retransmissions."""
    clock = count(1_700_000_000_000_000_000, 1_000_000)
    monkeypatch.setattr("time.time_ns", lambda: next(clock))
    recording = Recording(tmp_path / "session.pcap")
    frame = kafkawire.encode_frame(HeartbeatRequest(group_id="g"), 4, 7, client_id="app")
    for _ in range(2):
        stream = recording.open(("127.0.0.1", 50_000), ("127.0.0.1", 9092))
        recording.received(stream, frame)
        recording.closed(stream)
    recording.close()
    rows = list(decode_capture(tmp_path / "session.pcap"))
    assert [(located.connection, located.row.correlation_id) for located in rows] == [
        (0, 7),
        (1, 7),
    ]
