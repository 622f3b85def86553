"""Embedded payloads: the work that finding and decoding them takes."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire.messages import join_group_response as joined
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.primitives import Reader
from kafkawire.protocol import embedded, versioned
from kafkawire.protocol.versioned import encode_versioned
from tests.calls import functions_called
from tests.protocol.embedded_vectors import ASSIGNED, CONNECT_ASSIGNMENT_V1, only

CALLS_PER_FIELD = 2
"""Into the two generators."""


def members(count: int, metadata: bytes) -> JoinGroupResponse:
    member = joined.JoinGroupResponseMember(metadata=metadata)
    return JoinGroupResponse(protocol_name="range", members=[member] * count)


def calls_of_walk(message: JoinGroupResponse) -> int:
    def work() -> None:
        for _ in embedded.carried_bytes(message, 5):
            pass

    work()  # facts about the class are found once
    return sum(each.co_filename == embedded.__file__ for each in functions_called(work))


def test_finding_a_field_takes_few_calls() -> None:
    more = calls_of_walk(members(1000, b"a")) - calls_of_walk(members(100, b"a"))
    assert more <= CALLS_PER_FIELD * 900


def test_an_empty_field_takes_no_call() -> None:
    assert calls_of_walk(members(1000, b"")) == calls_of_walk(members(1, b""))


@pytest.mark.parametrize(
    ("data", "kind", "decoded"),
    [
        (encode_versioned(ASSIGNED, 1), "ConsumerProtocolAssignment", 1),
        (CONNECT_ASSIGNMENT_V1, "ConnectAssignment", 2),
    ],
)
def test_a_guessed_payload_is_decoded_once_per_kind(
    monkeypatch: pytest.MonkeyPatch, data: bytes, kind: str, decoded: int
) -> None:
    made: list[bytes] = []

    def reader(data: bytes, *args: Any, **options: Any) -> Reader:
        made.append(data)
        return Reader(data, *args, **options)

    monkeypatch.setattr(versioned, "Reader", reader)
    assert only(SyncGroupResponse(assignment=data), 3).kind == kind
    assert made == [data] * decoded
