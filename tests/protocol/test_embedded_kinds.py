"""Embedded payloads: what says of which kind they are, and guessing where nothing does."""

from __future__ import annotations

import pytest

from kafkawire.messages import consumer_protocol_assignment as assignment
from kafkawire.messages import join_group_response as joined
from kafkawire.messages import sync_group_request as sync
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.protocol.connect import ConnectAssignment
from kafkawire.protocol.embedded import embedded_payloads
from kafkawire.protocol.versioned import encode_versioned
from tests.protocol.embedded_vectors import (
    ASSIGNED,
    CONNECT_ASSIGNMENT_V0,
    CONNECT_ASSIGNMENT_V1,
    ORDERS,
    join_request,
    only,
)


def test_an_unknown_protocol_type_gives_nothing() -> None:
    assert embedded_payloads(join_request(encode_versioned(ORDERS, 0), "sr"), 9) == []


def test_empty_fields_hold_nothing() -> None:
    assert embedded_payloads(join_request(b""), 9) == []
    assert embedded_payloads(SyncGroupResponse(), 3) == []


@pytest.mark.parametrize("protocol_name", ["range", "RoundRobinAssigner"])
def test_a_response_without_protocol_type(protocol_name: str) -> None:
    member = joined.JoinGroupResponseMember(metadata=encode_versioned(ORDERS, 1))
    message = joined.JoinGroupResponse(protocol_name=protocol_name, members=[member])
    assert only(message, 5).value == ORDERS


def test_a_version_without_the_field_has_no_payload() -> None:
    data = encode_versioned(ASSIGNED, 0)
    message = SyncGroupResponse(protocol_type="connect", assignment=data)
    assert only(message, 5).error is not None
    assert only(message, 4).value == ASSIGNED


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (encode_versioned(ASSIGNED, 1), "ConsumerProtocolAssignment"),
        (b"\0\0\0\0\0\0\xff\xff\xff\xff", "ConsumerProtocolAssignment"),
        (CONNECT_ASSIGNMENT_V0, "ConnectAssignment"),
        (CONNECT_ASSIGNMENT_V1, "ConnectAssignment"),
    ],
)
def test_content_that_leaves_no_doubt(data: bytes, kind: str) -> None:
    message = sync.SyncGroupRequest(assignments=[sync.SyncGroupRequestAssignment(assignment=data)])
    payload = only(message, 3)
    assert (payload.path, payload.kind, payload.error) == ("assignments[0].assignment", kind, None)


@pytest.mark.parametrize(
    "data",
    [
        b'{"topic-test":[2,5,4,1,3,0]}',
        b"\0\1\2\xff\x18",
        encode_versioned(ASSIGNED, 1) + b"\0",
        b"\0\7" + ASSIGNED.encode(3),
        encode_versioned(
            assignment.ConsumerProtocolAssignment(
                assigned_partitions=[assignment.TopicPartition(topic="no topic", partitions=[0])]
            ),
            0,
        ),
        encode_versioned(
            assignment.ConsumerProtocolAssignment(
                assigned_partitions=[assignment.TopicPartition(topic="orders", partitions=[-1])]
            ),
            0,
        ),
        encode_versioned(ConnectAssignment(assignment=[], leader_url="nowhere"), 0),
        encode_versioned(ConnectAssignment(assignment=[], leader_url="http://a/", error=2), 0),
    ],
)
def test_content_that_leaves_doubt_is_left_alone(data: bytes) -> None:
    assert embedded_payloads(SyncGroupResponse(assignment=data), 3) == []
