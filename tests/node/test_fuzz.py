"""Random requests of every API and version to a node: a response or a closed connection each.

Whatever one client sends to brokers or controllers, others are served: a topic can be created
afterwards, and its records are stored.
"""

from __future__ import annotations

import random
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkawire import REGISTRY, ApiKey, Message
from kafkawire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from kafkawire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
)
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.create_topics_request import CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_acls_request import DeleteAclsRequest
from kafkawire.messages.delete_acls_response import DeleteAclsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.node import NodeConfig

from ..broker.requests import chosen, varied
from ..broker.test_fuzz import send
from ..fuzzing import replayable, seeds
from ..real.requests import Known, filled
from .front_harness import NodeHarness

TOPIC: Final = "surface"
LISTENERS: Final = ("PLAINTEXT", "CONTROLLER")
LEFT_OUT: Final = frozenset({ApiKey.UNREGISTER_BROKER, ApiKey.CONTROLLED_SHUTDOWN})
"""These end the node's registration, as they should."""
REQUESTS: Final = 40
DELAYED: Final = 1.0
"""Seconds of virtual time after which each has its response."""


def known(harness: NodeHarness) -> Known:
    """Describe what exists in the cluster."""
    topic = harness.cluster.topics.get(TOPIC)
    assert topic is not None
    return Known(TOPIC, topic_id=topic.topic_id, leader_epoch=0)


def offered(harness: NodeHarness, listener: str) -> list[tuple[str, int]]:
    """List the requests that a listener offers, with their versions."""
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = harness.client(listener=listener).exchange(request, 3, ApiVersionsResponse)
    assert not response.error_code
    found = []
    for each in response.api_keys:
        entry = REGISTRY.request(each.api_key)
        if entry is not None and each.api_key not in LEFT_OUT:
            versions = range(each.min_version, each.max_version + 1)
            found += [(entry.name, version) for version in versions]
    return found


def serves(harness: NodeHarness, name: str) -> bool:
    """Whether a topic can be created, and stores records."""
    if TOPIC not in harness.cluster.topics:
        harness.create_topic(TOPIC)  # a request deleted it
    request = filled("ProduceRequest", 9, known(harness))
    assert isinstance(request, ProduceRequest)
    request.topic_data[0].name = name
    harness.create_topic(name)
    response = harness.client().exchange(request, 9, ProduceResponse)
    return not response.responses[0].partition_responses[0].error_code


@pytest.mark.parametrize(
    ("request_", "version", "expected"),
    [
        (CreateTopicsRequest(timeout_ms=10_000), 7, CreateTopicsResponse),
        (DeleteTopicsRequest(timeout_ms=10_000), 6, DeleteTopicsResponse),
        (IncrementalAlterConfigsRequest(), 1, IncrementalAlterConfigsResponse),
        (AlterUserScramCredentialsRequest(), 0, AlterUserScramCredentialsResponse),
        (DeleteAclsRequest(), 3, DeleteAclsResponse),
    ],
)
def test_a_request_that_names_nothing_is_responded_to_at_once(
    request_: Message, version: int, expected: type[Message]
) -> None:
    """Its response is the same whether the controller is active or not."""
    harness = NodeHarness()
    before = harness.now
    harness.client().exchange(request_, version, expected)
    assert harness.now - before < DELAYED


@given(epoch_ms=st.integers(0, 1 << 43), passed_ms=st.integers(0, 1 << 36))
@example(epoch_ms=0, passed_ms=64_853)
def test_at_its_deadline_the_wall_clock_shows_it(epoch_ms: int, passed_ms: int) -> None:
    """An earlier deadline would be due again and again, at the same time."""
    config = NodeConfig(1, "a-cluster", epoch_ms=epoch_ms)
    deadline = config.time_of(epoch_ms + passed_ms)
    assert config.wall_ms(deadline) == epoch_ms + passed_ms
    assert deadline == pytest.approx(passed_ms / 1000)


@pytest.mark.fuzz
@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("seed", seeds(4))
def test_every_request_comes_to_an_end(seed: int, listener: str) -> None:
    with replayable(seed):
        rng = random.Random(seed)
        harness = NodeHarness(topics={TOPIC: 1})
        cases = offered(harness, listener)
        for _ in range(REQUESTS):
            name, version = chosen(cases, rng)
            if TOPIC not in harness.cluster.topics:
                harness.create_topic(TOPIC)
            request = varied(filled(name, version, known(harness)), version, rng)
            client = harness.client(listener=listener)
            if send(client, request, version, rng):
                harness.advance(DELAYED)
                assert (client.frame() is not None) or client.closed, (name, version, request)
                assert client.frame() is None, "a second response"
            client.disconnect()
        harness.advance(60.0)
        assert serves(harness, f"after-{seed}")
