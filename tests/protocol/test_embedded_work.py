"""Embedded payloads: the work that finding and decoding them takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from kafkawire.messages import join_group_response as joined
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.protocol import embedded

CALLS_PER_FIELD = 2
"""Into the two generators."""


def calls(work: Callable[[], object]) -> int:
    """Count the functions of `embedded` that some work calls or resumes."""
    made = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal made
        made += event == "call" and frame.f_code.co_filename == embedded.__file__

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return made


def members(count: int, metadata: bytes) -> JoinGroupResponse:
    member = joined.JoinGroupResponseMember(metadata=metadata)
    return JoinGroupResponse(protocol_name="range", members=[member] * count)


def calls_of_walk(message: JoinGroupResponse) -> int:
    def work() -> None:
        for _ in embedded.carried_bytes(message, 5):
            pass

    work()  # facts about the class are found once
    return calls(work)


def test_finding_a_field_takes_few_calls() -> None:
    more = calls_of_walk(members(1000, b"a")) - calls_of_walk(members(100, b"a"))
    assert more <= CALLS_PER_FIELD * 900


def test_an_empty_field_takes_no_call() -> None:
    assert calls_of_walk(members(1000, b"")) == calls_of_walk(members(1, b""))
