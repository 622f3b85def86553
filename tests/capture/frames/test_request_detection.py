"""Requests are detected in the middle of a stream: those without a client id need a second one."""

from __future__ import annotations

import struct
from typing import Final

import pytest

from kafkawire import encode_frame
from kafkawire.capture.frames.detection import Confidence, Found, check_request, find_request
from kafkawire.messages.list_groups_request import ListGroupsRequest

MAX_FRAME_BYTES: Final = 1 << 20
EMPTY_PRODUCE: Final = struct.pack(">ihhihhii", 20, 0, 0, 0, 0, 2, 0, 0)
"""Zeros and small numbers, as in responses: Produce v0 with an empty client id and no topics."""


def test_numbers_of_a_response_are_not_a_request() -> None:
    behind = bytes([0, 0, 0xFF]) * 11
    assert check_request(EMPTY_PRODUCE + behind, 0, MAX_FRAME_BYTES) is Confidence.NO
    assert check_request(EMPTY_PRODUCE * 2, 0, MAX_FRAME_BYTES) is Confidence.PROVEN


@pytest.mark.parametrize("client_id", ["", None])
def test_requests_without_a_client_id_follow_each_other(client_id: str | None) -> None:
    data = encode_frame(ListGroupsRequest(), 2, 7, client_id=client_id)
    assert find_request(b"\xff" * 7 + data * 2, MAX_FRAME_BYTES) == Found(7, True)
