"""Requests that a broker forwards in an Envelope, as a real Kafka's brokers do."""

from __future__ import annotations

import pytest

from kafkawire import ApiKey
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.envelope_request import EnvelopeRequest
from kafkawire.messages.envelope_response import EnvelopeResponse
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode, decode_response_header, encode_frame

from .front_harness import NodeHarness

CORRELATION_ID = 77
CREATE = CreateTopicsRequest(
    topics=[CreatableTopic(name="orders", num_partitions=2, replication_factor=1)], timeout_ms=1000
)


def content(message: Message, version: int) -> bytes:
    return encode_frame(message, version, CORRELATION_ID, client_id="behind")[4:]


def responded(data: bytes) -> EnvelopeResponse:
    """The response of a new node to an Envelope with this content."""
    client = NodeHarness().client(listener="CONTROLLER")
    request = EnvelopeRequest(request_data=data, client_host_address=bytes([127, 0, 0, 1]))
    return client.exchange(request, 0, EnvelopeResponse)


@pytest.mark.parametrize("version", [5, 7])
def test_the_controller_decides_on_what_is_in_it(version: int) -> None:
    found = responded(content(CREATE, version))
    assert found.error_code == ErrorCode.NONE
    assert found.response_data is not None
    head = decode_response_header(found.response_data, ApiKey.CREATE_TOPICS, version)
    assert head.header.correlation_id == CORRELATION_ID
    response = CreateTopicsResponse.decode(found.response_data[head.end :], version)
    assert [(each.name, each.error_code) for each in response.topics] == [("orders", 0)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 20,
        content(CREATE, 7)[:-3],
        content(HeartbeatRequest(group_id="g"), 4),
        content(EnvelopeRequest(request_data=content(CREATE, 7)), 0),
    ],
    ids=["empty", "garbage", "truncated", "not for controllers", "another envelope"],
)
def test_what_is_invalid(data: bytes) -> None:
    assert responded(data) == EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
