"""Sockets: responses larger than what a socket takes at once."""

from __future__ import annotations

import socket

import pytest

import kafkawire
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.net.server_thread import ServerThread
from kafkawire.records import BatchBuilder

from ...real.wire import HOST, Wire

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 1})]
BATCHES = 40
VALUE = bytes(500_000)
LARGE = 1 << 30


@pytest.fixture
def port(kafka_broker: ServerThread) -> int:
    """A broker with 20 MB of records."""
    port = int(kafka_broker.bootstrap.rpartition(":")[2])
    builder = BatchBuilder()
    builder.append(None, VALUE, 1_700_000_000_000)
    data = PartitionProduceData(index=0, records=builder.build())
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )
    with Wire(port) as wire:
        for _ in range(BATCHES):
            wire.exchange(request, 9, ProduceResponse)
    return port


def fetch_frame() -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=LARGE)
    topics = [FetchTopic(topic="t", partitions=[partition])]
    fetch = FetchRequest(max_wait_ms=0, session_epoch=-1, topics=topics)
    return kafkawire.encode_frame(fetch, 12, 5, client_id="me")


def received(client: socket.socket) -> bytes:
    """Read to the end of the connection."""
    data = bytearray()
    while chunk := client.recv(1 << 16):
        data += chunk
    return bytes(data)


def connected(port: int) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect((HOST, port))
    return client


def test_a_client_that_sends_no_more_gets_its_whole_response(port: int) -> None:
    with connected(port) as client:
        client.sendall(fetch_frame())
        first = client.recv(4)
        client.shutdown(socket.SHUT_WR)
        frame = kafkawire.decode_frame(first + received(client), response_to=(1, 12))
    assert isinstance(frame.body, FetchResponse)
    records = frame.body.responses[0].partitions[0].records
    assert records is not None
    assert len(records) > BATCHES * len(VALUE)


def test_a_broker_that_closes_sends_first_what_is_unsent(
    kafka_broker: ServerThread, port: int
) -> None:
    """The second response closes the connection, while the first is not read."""
    keep = BATCHES * len(VALUE) // 2
    kafka_broker.fault("Fetch", nth=1, action="truncate", keep=keep)
    with connected(port) as client:
        client.sendall(fetch_frame())
        assert len(received(client)) == keep
