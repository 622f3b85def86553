"""Every version of the APIs that a cluster in memory serves, too, at a node."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse

from ..broker.handlers.test_every_version import CASES, EXPECTED, TOPIC, request_of
from ..real.responses import errors
from .front_harness import NodeHarness

E = ErrorCode
ERRORS = EXPECTED | {"OffsetDeleteRequest": {E.GROUP_ID_NOT_FOUND}}
"""What a request meets that finds no group."""


@pytest.fixture
def harness() -> NodeHarness:
    """A node that coordinates groups and transactions."""
    harness = NodeHarness(release="all", topics={TOPIC: 1})
    for key_type in range(2):
        request = FindCoordinatorRequest(key="any", key_type=key_type)
        harness.client().exchange(request, 3, FindCoordinatorResponse)
    harness.advance(1.0)
    return harness


@pytest.mark.parametrize(("name", "version"), CASES)
def test_a_version_has_its_response(harness: NodeHarness, name: str, version: int) -> None:
    client = harness.client()
    client.send(request_of(name, version, harness), version)  # type: ignore[arg-type]
    harness.wait(lambda: len(client.received) >= 4 or client.closed is not None)
    response = client.response()
    assert response is not None, client.closed
    assert type(response).__name__ == name.replace("Request", "Response")
    assert errors(response) <= ERRORS.get(name, set()), response
