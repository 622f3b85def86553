"""JSON lines: payloads are written once for equal content, by programs as by the decoder."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from kafkawire.capture.frames.decoding import RawFrame, located
from kafkawire.capture.jsonl import wire_layouts, writer
from kafkawire.capture.jsonl.payload_texts import PayloadTexts
from kafkawire.capture.jsonl.rows import Lines
from kafkawire.capture.multifile import Traffic
from kafkawire.messages import REGISTRY
from kafkawire.messages import consumer_protocol_assignment as assigned
from kafkawire.messages import sync_group_request as sync
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.primitives import DEFAULT_LIMITS, Message
from kafkawire.protocol import embedded
from kafkawire.protocol.embedded import payload_of_kinds
from kafkawire.protocol.payload import Payload
from kafkawire.protocol.payload_fields import PAYLOAD_FIELDS, kinds_of
from kafkawire.protocol.versioned import encode_versioned
from tests.capture.truth import capture_of, captures
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

    def counted(*args: Any) -> Payload | None:
        decoded.append(args[-1])
        return payload_of_kinds(*args)

    monkeypatch.setattr(embedded, "payload_of_kinds", counted)
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


# -- by programs

NATIVE = not str(writer.__file__).endswith(".py")
NAMES = ("JoinGroupRequest", "JoinGroupResponse", "SyncGroupRequest", "SyncGroupResponse")
GROUPS = (11, 14)
"""The API keys of JoinGroup and SyncGroup."""


def numbers() -> list[int]:
    """Return the numbers of the fields with payloads of the messages."""
    for name in NAMES:
        info = REGISTRY.get(name)
        for version in range(info.first, info.last + 1):
            assert wire_layouts.payload_roles(REGISTRY.load(name), version) is not None
    return [wire_layouts.number_of(field) for name in NAMES for field in PAYLOAD_FIELDS[name]]


def payloads() -> list[bytes]:
    """Give payloads of all versions and damaged ones."""
    rng = random.Random(7)
    topics = ["orders", "a b", "x" * 249, "x" * 250, "é", "__consumer_offsets"]
    made = [b"", b"\0", STICKY_V1, CONNECT_ASSIGNMENT_V1]
    for name in ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment"):
        info = REGISTRY.get(name)
        cls: Any = REGISTRY.load(name)
        for version in range(info.first, info.last + 1):
            for _ in range(6):
                value = cls()
                if name == "ConsumerProtocolSubscription":
                    value.topics = rng.sample(topics, rng.randrange(4))
                else:
                    value.assigned_partitions = [
                        assigned.TopicPartition(topic=topic, partitions=rng.sample(range(-1, 3), 2))
                        for topic in rng.sample(topics, rng.randrange(3))
                    ]
                value.user_data = rng.choice([None, b"", b"abc", STICKY_V1])
                made.append(encode_versioned(value, version))
    made.append(ASSIGNMENT)
    for data in list(made):
        for _ in range(4 if data else 0):
            bad = bytearray(data)
            bad[rng.randrange(len(bad))] = rng.choice([0, 1, 2, 3, 4, 47, 127, 128, 255])
            made += [bytes(bad), data[: rng.randrange(len(data))]]
    return made


@pytest.mark.parametrize("secrets", [True, False])
def test_the_text_of_a_program_is_that_of_the_payload(secrets: bool) -> None:
    fields = numbers()
    for _ in range(2):  # what nulls are allowed is known the second time
        texts = PayloadTexts(secrets)
        for data in payloads():
            for number in fields:
                for protocol_type, name in (
                    ("consumer", "range"),
                    ("consumer", "sticky"),
                    (None, "range"),
                    (None, None),
                    ("connect", "default"),
                    ("other", None),
                ):
                    field = wire_layouts.field_of(number)
                    kinds = kinds_of(field, protocol_type, name)
                    payload = payload_of_kinds(kinds, field, name, "", data, DEFAULT_LIMITS)
                    expected = None if payload is None else payload.to_json_text(secrets=secrets)
                    assert texts.text(number, protocol_type, name, data) == expected, (kinds, data)


def test_messages_with_payloads_are_written_without_decoding_them() -> None:
    seen = 0
    for truth in captures():
        items = [item for batch in Traffic([capture_of(truth)]).item_batches() for item in batch]
        lines = Lines("c")
        lines.view(items).release()  # what nulls are allowed is known then
        for one in items:
            frame = one.item
            if not isinstance(frame, RawFrame) or frame.request is None:
                continue
            row = located(one).row
            if frame.request.api_key in GROUPS and row.status == "ok" and not _has_error(row):
                assert lines.put(frame, DEFAULT_LIMITS) == NATIVE
                seen += 1
    assert seen > 20


def _has_error(row: Any) -> bool:
    return bool(getattr(row.message, "error_code", 0))
