"""JSON lines: the texts of embedded payloads are written once for equal content."""

from __future__ import annotations

import json

import pytest

from kafkawire.capture.jsonl import rows
from kafkawire.capture.jsonl.rows import Lines
from kafkawire.messages import sync_group_request as sync
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.primitives import Message
from kafkawire.protocol.embedded import Carried, payload_of
from kafkawire.protocol.payload import Payload
from kafkawire.protocol.versioned import encode_versioned
from tests.protocol.embedded_vectors import (
    ASSIGNED,
    CONNECT_ASSIGNMENT_V1,
    ORDERS,
    STICKY_V1,
    join_request,
)

ASSIGNMENT = encode_versioned(ASSIGNED, 1)


def request(assignment: bytes) -> sync.SyncGroupRequest:
    return sync.SyncGroupRequest(
        assignments=[sync.SyncGroupRequestAssignment(assignment=assignment)]
    )


def texts_and_decoded(
    monkeypatch: pytest.MonkeyPatch, *messages: tuple[Message, int]
) -> tuple[list[str], list[bytes]]:
    """Write messages; return the payloads of each, and the bytes that were decoded."""
    decoded: list[bytes] = []

    def counted(carried: Carried) -> Payload | None:
        decoded.append(carried.value)
        return payload_of(carried)

    monkeypatch.setattr(rows, "payload_of", counted)
    lines = Lines("a.pcap")
    made = [json.loads(f"{{{lines.message_text(*message)}}}") for message in messages]
    return [str(row.get("embedded")) for row in made], decoded


def test_a_response_has_the_text_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, decoded = texts_and_decoded(
        monkeypatch, (request(ASSIGNMENT), 3), (SyncGroupResponse(assignment=ASSIGNMENT), 3)
    )
    assert decoded == [ASSIGNMENT]
    assert shown[0].replace("assignments[0].assignment", "assignment") == shown[1] != "None"


@pytest.mark.parametrize("protocol_type", ["connect", "sr"])
def test_the_same_bytes_of_another_kind_have_another_text(
    monkeypatch: pytest.MonkeyPatch, protocol_type: str
) -> None:
    data = CONNECT_ASSIGNMENT_V1
    response = SyncGroupResponse(protocol_type=protocol_type, assignment=data)
    consumer = SyncGroupResponse(protocol_type="consumer", assignment=data)
    shown, _ = texts_and_decoded(monkeypatch, (consumer, 5), (response, 5), (consumer, 5))
    assert shown[0] == shown[2]
    assert ("ConnectAssignment" in shown[1]) == (protocol_type == "connect")
    assert "ConsumerProtocolAssignment" in shown[0]


def test_the_same_bytes_of_another_protocol_have_another_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = type(ORDERS)(topics=["orders"], user_data=STICKY_V1)
    data = encode_versioned(held, 1)
    shown, _ = texts_and_decoded(
        monkeypatch, (join_request(data, name="range"), 9), (join_request(data, name="sticky"), 9)
    )
    assert "StickyUserData" not in shown[0]
    assert "StickyUserData" in shown[1]
