"""A cluster with an authorizer, topics and groups, and a client of it."""

from __future__ import annotations

import pytest

from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from tests.broker.harness import Client, Harness
from tests.broker.members import coordinator
from tests.broker.security.acls import (
    STANDARD,
    everything,
    set_acls,
)
from tests.broker.security.authorized import HIDDEN, SEEN, committing


@pytest.fixture
def harness() -> Harness:
    harness = Harness(settings=STANDARD | {"auto.create.topics.enable": "true"})
    set_acls(harness, *everything())
    for name in (SEEN, HIDDEN):
        harness.create_topic(name)
    for group in (SEEN, HIDDEN):
        client = coordinator(harness, group)
        request = committing(group, SEEN, HIDDEN)
        committed = client.exchange(request, 9, OffsetCommitResponse)
        assert not any(p.error_code for each in committed.topics for p in each.partitions)
    return harness


@pytest.fixture
def client(harness: Harness) -> Client:
    return harness.client()
