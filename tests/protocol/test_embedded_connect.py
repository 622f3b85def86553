"""Embedded payloads: what Kafka Connect workers tell each other."""

from __future__ import annotations

import json

import pytest

from kafkawire.errors import EncodeError, InvalidText
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.primitives import Message
from kafkawire.protocol.connect import ConnectAssignment, ConnectorAssignment, ConnectWorkerMetadata
from kafkawire.protocol.payload import Payload
from kafkawire.protocol.sticky import StickyUserData
from kafkawire.protocol.versioned import encode_versioned
from tests.protocol.embedded_vectors import (
    ASSIGNED,
    CONNECT_ASSIGNMENT_V0,
    CONNECT_ASSIGNMENT_V1,
    CONNECTORS,
    ORDERS,
    WORKER_V0,
    WORKER_V1,
    join_request,
    only,
)


def test_eager_connect() -> None:
    payload = only(join_request(WORKER_V0, "connect", "default"), 2)
    assert payload.value == ConnectWorkerMetadata(url="http://a:8083/", config_offset=7)
    named = only(SyncGroupResponse(protocol_type="connect", assignment=CONNECT_ASSIGNMENT_V0), 5)
    assert named.value == ConnectAssignment(
        leader="worker-1",
        leader_url="http://a:8083/",
        config_offset=7,
        assignment=[ConnectorAssignment(connector="sink", tasks=[-1, 0])],
    )


@pytest.mark.parametrize(("name", "version"), [("compatible", 1), ("sessioned", 2)])
def test_cooperative_connect(name: str, version: int) -> None:
    data = bytes([0, version]) + WORKER_V1[2:]
    payload = only(join_request(data, "connect", name), 2)
    assert (payload.version, payload.read_as) == (version, version)
    held = ConnectAssignment(
        leader="worker-1",
        leader_url="http://a:8083/",
        config_offset=7,
        assignment=[ConnectorAssignment(connector="sink", tasks=[-1, 0])],
        delay=300_000,
    )
    path = "protocols[0].metadata.allocation"
    assert payload.inner == Payload(path, "ConnectAssignment", 1, 1, held)


def test_connect_fields_missing_at_the_end_stand_at_their_defaults() -> None:
    ends = len(WORKER_V0)
    bare = only(join_request(b"\0\1" + WORKER_V1[2:ends], "connect", "compatible"), 2)
    assert bare.value == ConnectWorkerMetadata(url="http://a:8083/", config_offset=7)
    assert bare.read_as == 1
    for cut in (4, 8, 8 + len(CONNECTORS)):
        short = SyncGroupResponse(protocol_type="connect", assignment=CONNECT_ASSIGNMENT_V1[:-cut])
        value = only(short, 5).value
        assert isinstance(value, ConnectAssignment)
        assert (value.revoked, value.delay) == (None, 0)
        assert (value.assignment is None) == (cut > 8)


@pytest.mark.parametrize(
    "message",
    [
        ConnectWorkerMetadata(allocation=b""),
        ConnectAssignment(),
        ConnectAssignment(assignment=[], revoked=[]),
        ConnectAssignment(assignment=[], delay=1),
        ConnectAssignment(assignment=[], config_offset=1 << 63),
        ConnectAssignment(assignment=[], leader="\udc80"),
        ConnectAssignment(assignment=[], leader=5),  # type: ignore[arg-type]
        StickyUserData(generation=3),
    ],
)
def test_version_0_refuses_what_it_cannot_say(message: Message) -> None:
    with pytest.raises(EncodeError) as refused:
        message.encode(0)
    assert refused.value.path.startswith(type(message).__name__)


def test_a_strict_decode_refuses_text_that_is_not_utf_8() -> None:
    data = b"\0\1\xff" + bytes(8)
    with pytest.raises(InvalidText) as refused:
        ConnectWorkerMetadata.decode(data, 0)
    assert (refused.value.path, refused.value.offset) == ("ConnectWorkerMetadata", 3)
    kept = ConnectWorkerMetadata.decode(data, 0, lenient=True)
    assert kept.encode(0, lenient=True) == data


def test_json_of_connect_has_only_the_fields_of_its_version() -> None:
    eager = only(SyncGroupResponse(protocol_type="connect", assignment=CONNECT_ASSIGNMENT_V0), 5)
    assert eager.to_json()["value"] == {
        "error": 0,
        "leader": "worker-1",
        "leaderUrl": "http://a:8083/",
        "configOffset": 7,
        "assignment": [{"connector": "sink", "tasks": [-1, 0]}],
    }
    worker = only(join_request(WORKER_V1, "connect"), 2).to_json()["value"]
    assert worker["allocationDecoded"]["value"]["delay"] == 300_000
    assert worker["allocationDecoded"]["value"]["revoked"] is None


@pytest.mark.parametrize(
    ("protocol_type", "data", "ends"),
    [
        ("consumer", encode_versioned(ORDERS, 0), set[int]()),
        ("connect", WORKER_V0, set[int]()),
        ("connect", WORKER_V1, {len(WORKER_V0)}),
    ],
)
def test_truncated_metadata(protocol_type: str, data: bytes, ends: set[int]) -> None:
    for length in range(1, len(data)):
        payload = only(join_request(data[:length], protocol_type), 9)
        assert (payload.error is None) == (length in ends), length
        json.dumps(payload.to_json())


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (encode_versioned(ASSIGNED, 3), set[int]()),
        (CONNECT_ASSIGNMENT_V0, set[int]()),
        (
            CONNECT_ASSIGNMENT_V1,
            {len(CONNECT_ASSIGNMENT_V1) - cut for cut in (4, 8, 8 + len(CONNECTORS))},
        ),
    ],
)
def test_truncated_assignment(data: bytes, ends: set[int]) -> None:
    kind = "consumer" if b"orders" in data else "connect"
    for length in range(1, len(data)):
        payload = only(SyncGroupResponse(protocol_type=kind, assignment=data[:length]), 5)
        assert (payload.error is None) == (length in ends), length
