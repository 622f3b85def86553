"""Dynamic configs of brokers on a node: checked, in effect at once, also after a restart."""

from __future__ import annotations

import pytest

from kafkawire.broker.controller.operations.incremental_alter_configs import DELETE, SET
from kafkawire.messages import alter_configs_request as full
from kafkawire.messages import incremental_alter_configs_request as some
from kafkawire.messages.alter_configs_response import AlterConfigsResponse
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.metadata import TopicIdPartition
from kafkawire.protocol import ErrorCode as E

from ..broker.test_log import batch, offset_at, produce
from .front_scene import NodeScene

TOPIC, BROKER = 2, 4
EARLIEST = -2


def altered(scene: NodeScene, *changes: tuple[int, str, str, str | None]) -> list[int]:
    """Set values, None to delete one; the error of each resource."""
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
    response = scene.client().exchange(request, 1, IncrementalAlterConfigsResponse)
    assert [(each.resource_type, each.resource_name) for each in response.responses] == [
        (kind, name) for kind, name, _, _ in changes
    ]
    return [each.error_code for each in response.responses]


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
    scene = NodeScene(topics={"t": 1})
    valid = (TOPIC, "t", "retention.ms", "5000")
    wrong = (BROKER, name, key, value)
    assert altered(scene, wrong) == [E.INVALID_REQUEST]
    assert altered(scene, valid, wrong, (*valid[:1], "nobody", *valid[2:])) == [
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
    response = scene.client().exchange(request, 2, AlterConfigsResponse)
    assert [each.error_code for each in response.responses] == [E.INVALID_REQUEST]
    assert produce(scene.client(), batch(b"x" * 200)).error_code == E.NONE


@pytest.mark.parametrize("name", ["", "1"], ids=["all brokers", "one broker"])
def test_a_retention_is_in_effect_with_the_next_check(name: str) -> None:
    scene = NodeScene({"log.segment.bytes": "1048576"}, topics={"t": 1})
    produce(scene.client(), batch(b"a", b"b"))
    scene.advance(600.0)
    assert offset_at(scene.client(), EARLIEST).offset == 0
    assert altered(scene, (BROKER, name, "log.retention.ms", "1000")) == [E.NONE]
    scene.advance(600.0)
    assert offset_at(scene.client(), EARLIEST).offset == 2


def test_a_value_of_one_broker_precedes_that_of_all() -> None:
    scene = NodeScene(topics={"t": 1})
    key = "message.max.bytes"
    assert altered(scene, (BROKER, "1", key, "2000"), (BROKER, "", key, "100")) == [E.NONE, E.NONE]

    def produced() -> int:
        return produce(scene.client(), batch(b"x" * 200)).error_code

    assert produced() == E.NONE
    scene.restart()
    assert produced() == E.NONE
    assert altered(scene, (BROKER, "1", key, None)) == [E.NONE]
    assert produced() == E.MESSAGE_TOO_LARGE
    assert altered(scene, (BROKER, "", key, None)) == [E.NONE]
    assert produced() == E.NONE


def test_connections_are_limited_at_once() -> None:
    scene = NodeScene()
    client = scene.client()
    assert altered(scene, (BROKER, "", "max.connections", "2")) == [E.NONE]
    assert client.closed is None
    refused = scene.client()
    assert refused.closed == "too many connections: max.connections is 2"


def test_replication_is_throttled_as_configured() -> None:
    scene = NodeScene(topics={"t": 2})
    broker = scene.front.machines.node.parts.broker
    assert broker is not None
    [topic_id] = broker.loader.image.topics
    rate = (BROKER, "1", "leader.replication.throttled.rate", "1000")
    replicas = "leader.replication.throttled.replicas"
    assert altered(scene, rate, (TOPIC, "t", replicas, "1:1,0:2")) == [E.NONE, E.NONE]
    fetches = broker.replicas._fetches
    assert fetches.quota.rate == 1000
    assert fetches.throttled == {(TopicIdPartition(topic_id, 1), 1)}
    followers = (TOPIC, "t", "follower.replication.throttled.replicas", "*")
    assert altered(scene, followers, (*rate[:3], None)) == [E.NONE, E.NONE]
    assert fetches.quota.rate is None
    assert broker.replicas._quota.partitions == {
        TopicIdPartition(topic_id, 0),
        TopicIdPartition(topic_id, 1),
    }


def test_a_controller_forwards_what_brokers_have_checked() -> None:
    scene = NodeScene()
    client = scene.client(listener="CONTROLLER")
    change = some.AlterableConfig(name="num.io.threads", config_operation=SET, value="5")
    resource = some.AlterConfigsResource(resource_type=BROKER, resource_name="2", configs=[change])
    request = some.IncrementalAlterConfigsRequest(resources=[resource])
    response = client.exchange(request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == E.BROKER_ID_NOT_REGISTERED, "of the controller"
