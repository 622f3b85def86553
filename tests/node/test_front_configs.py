"""Dynamic configs of brokers on a node: checked, in effect at once, also after a restart."""

from __future__ import annotations

import pytest

from kafkawire.controller.operations.alter_configs import DELETE, SET
from kafkawire.messages import alter_configs_request as full
from kafkawire.messages import incremental_alter_configs_request as some
from kafkawire.messages.alter_configs_response import AlterConfigsResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.metadata import TopicIdPartition
from kafkawire.protocol import ErrorCode as E

from ..broker.log.test_log import batch, offset_at, produce
from .front_harness import NodeClient, NodeHarness

TOPIC, BROKER = 2, 4
DYNAMIC, OF_ALL = 2, 3
EARLIEST = -2


def altered(
    harness: NodeHarness,
    *changes: tuple[int, str, str, str | None],
    client: NodeClient | None = None,
) -> list[int]:
    """Set values, None to delete one; the error of each resource. client: None for a new one."""
    resources = [
        some.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                some.AlterableConfig(
                    name=key, config_operation=DELETE if value is None else SET, value=value
                )
            ],
        )
        for kind, name, key, value in changes
    ]
    request = some.IncrementalAlterConfigsRequest(resources=resources)
    sender = client or harness.client()
    response = sender.exchange(request, 1, IncrementalAlterConfigsResponse)
    assert [(each.resource_type, each.resource_name) for each in response.responses] == [
        (kind, name) for kind, name, _, _ in changes
    ]
    return [each.error_code for each in response.responses]


def described_broker(
    harness: NodeHarness, name: str
) -> dict[str, tuple[str | None, int, list[int]]]:
    """Describe a broker: value, source and sources of synonyms of each key."""
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=name)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    [result] = harness.client().exchange(request, 4, DescribeConfigsResponse).results
    return {
        each.name: (each.value, each.config_source, [synonym.source for synonym in each.synonyms])
        for each in result.configs
    }


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("", "message.max.bytes", "x"),
        ("", "no.such.key", "1"),
        ("1", "broker.id", "5"),
        ("", "listeners", "PLAINTEXT://x:1"),
        ("2", "message.max.bytes", "100"),
        ("x", "message.max.bytes", "100"),
    ],
)
def test_a_broker_refuses_what_it_could_not_apply(name: str, key: str, value: str) -> None:
    harness = NodeHarness(topics={"t": 1})
    valid = (TOPIC, "t", "retention.ms", "5000")
    wrong = (BROKER, name, key, value)
    assert altered(harness, wrong) == [E.INVALID_REQUEST]
    assert altered(harness, valid, wrong, (*valid[:1], "nobody", *valid[2:])) == [
        E.NONE,
        E.INVALID_REQUEST,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    whole = full.AlterConfigsResource(
        resource_type=BROKER,
        resource_name=name,
        configs=[full.AlterableConfig(name=key, value=value)],
    )
    request = full.AlterConfigsRequest(resources=[whole])
    response = harness.client().exchange(request, 2, AlterConfigsResponse)
    assert [each.error_code for each in response.responses] == [E.INVALID_REQUEST]
    assert produce(harness.client(), batch(b"x" * 200)).error_code == E.NONE


@pytest.mark.parametrize("name", ["", "1"], ids=["all brokers", "one broker"])
def test_a_retention_is_in_effect_with_the_next_check(name: str) -> None:
    harness = NodeHarness({"log.segment.bytes": "1048576"}, topics={"t": 1})
    produce(harness.client(), batch(b"a", b"b"))
    harness.advance(600.0)
    assert offset_at(harness.client(), EARLIEST).offset == 0
    assert altered(harness, (BROKER, name, "log.retention.ms", "1000")) == [E.NONE]
    harness.advance(600.0)
    assert offset_at(harness.client(), EARLIEST).offset == 2


def test_a_value_of_one_broker_precedes_that_of_all() -> None:
    harness = NodeHarness(topics={"t": 1})
    key = "message.max.bytes"
    assert altered(harness, (BROKER, "1", key, "2000"), (BROKER, "", key, "100")) == [
        E.NONE,
        E.NONE,
    ]

    def produced() -> int:
        return produce(harness.client(), batch(b"x" * 200)).error_code

    assert produced() == E.NONE
    harness.restart()
    assert produced() == E.NONE
    assert altered(harness, (BROKER, "1", key, None)) == [E.NONE]
    assert produced() == E.MESSAGE_TOO_LARGE
    assert altered(harness, (BROKER, "", key, None)) == [E.NONE]
    assert produced() == E.NONE


def test_connections_are_limited_at_once() -> None:
    harness = NodeHarness()
    client = harness.client()
    assert altered(harness, (BROKER, "", "max.connections", "2")) == [E.NONE]
    assert client.closed is None
    waiting = harness.client()
    waiting.send(MetadataRequest(topics=[]), 9)
    assert not waiting.received
    client.disconnect()
    harness.advance(0.0)
    assert waiting.receive(MetadataResponse)


@pytest.mark.parametrize("name", ["", "1"], ids=["all brokers", "one broker"])
def test_connections_to_a_listener_are_limited_at_once(name: str) -> None:
    harness = NodeHarness()
    key = "listener.name.plaintext.max.connections"
    [client, waiting] = [harness.client() for _ in range(2)]
    assert altered(harness, (BROKER, name, key, "3")) == [E.NONE]
    late = harness.client()
    late.send(MetadataRequest(topics=[]), 9)
    assert not late.received
    assert altered(harness, (BROKER, name, key, None), client=client) == [E.NONE]
    assert late.receive(MetadataResponse)
    assert altered(harness, (BROKER, name, key, "0"), client=waiting) == [E.INVALID_REQUEST]
    absent = key.replace("plaintext", "absent")
    assert altered(harness, (BROKER, name, absent, "0"), client=waiting) == [E.NONE]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("listener.name.plaintext.sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.plaintext.plain.connections.max.reauth.ms", "1"),
        ("listener.name.plaintext.max.connections.per.ip", "1"),
        ("listeners", "PLAINTEXT://node:9092,OTHER://node:9094"),
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,OTHER:SSL"),
        ("cordoned.log.dirs", "*"),
        ("ssl.engine.factory.class", "x"),
    ],
)
def test_a_key_that_would_have_no_effect_is_refused(key: str, value: str) -> None:
    """A real Kafka 4.4 accepts it; with the keys of a listener it goes on as before."""
    harness = NodeHarness()
    before = described_broker(harness, "1").get(key)
    assert altered(harness, (BROKER, "1", key, value)) == [E.INVALID_REQUEST]
    assert described_broker(harness, "1").get(key) == before


def test_replication_is_throttled_as_configured() -> None:
    harness = NodeHarness(topics={"t": 2})
    broker = harness.front.machines.node.parts.broker
    assert broker is not None
    [topic_id] = broker.loader.image.topics
    rate = (BROKER, "1", "leader.replication.throttled.rate", "1000")
    replicas = "leader.replication.throttled.replicas"
    assert altered(harness, rate, (TOPIC, "t", replicas, "1:1,0:2")) == [E.NONE, E.NONE]
    fetches = broker.replicas.fetches
    assert fetches.quota.rate == 1000
    described = described_broker(harness, "1")
    assert described["leader.replication.throttled.rate"] == ("1000", DYNAMIC, [DYNAMIC])
    assert "follower.replication.throttled.rate" not in described
    assert fetches.throttled == {(TopicIdPartition(topic_id, 1), 1)}
    followers = (TOPIC, "t", "follower.replication.throttled.replicas", "*")
    assert altered(harness, followers, (*rate[:3], None)) == [E.NONE, E.NONE]
    assert fetches.quota.rate is None
    assert "leader.replication.throttled.rate" not in described_broker(harness, "1")
    every = (BROKER, "", "leader.replication.throttled.rate", "2000")
    assert altered(harness, every) == [E.NONE]
    for name in ("", "1"):
        described = described_broker(harness, name)
        assert described["leader.replication.throttled.rate"] == ("2000", OF_ALL, [OF_ALL])
    assert broker.replicas._quota.partitions == {
        TopicIdPartition(topic_id, 0),
        TopicIdPartition(topic_id, 1),
    }


def test_a_controller_forwards_what_brokers_have_checked() -> None:
    harness = NodeHarness()
    client = harness.client(listener="CONTROLLER")
    change = some.AlterableConfig(name="num.io.threads", config_operation=SET, value="5")
    resource = some.AlterConfigsResource(resource_type=BROKER, resource_name="2", configs=[change])
    request = some.IncrementalAlterConfigsRequest(resources=[resource])
    response = client.exchange(request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == E.BROKER_ID_NOT_REGISTERED, "of the controller"


@pytest.mark.parametrize("key", ["group.streams.max.size", "log.remote.copy.lag.ms"])
def test_a_key_of_other_releases_is_stored_and_not_used(key: str) -> None:
    """As a real Kafka 3.9 does, whatever the value is."""
    harness = NodeHarness(release="3.9")
    settings = harness.front.broker.broker.settings
    assert altered(harness, (BROKER, "", key, "many")) == [E.NONE]
    assert key not in settings.effective
    assert altered(NodeHarness(), (BROKER, "", key, "many")) != [E.NONE]
