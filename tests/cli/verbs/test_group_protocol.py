"""`consume --group-protocol`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkawire import ApiKey
from kafkawire.blocking import Consumer, Producer
from kafkawire.client.consumer import TopicPartition
from kafkawire.net.fixture import ClusterFixture
from tests.cli.reports import run

GROUP = ("--group", "g", "-f", "value")


@pytest.mark.kafka(topics={"t": 1})
@pytest.mark.parametrize("file", [False, True])
def test_a_group_whose_coordinator_assigns(
    kafka_broker: ClusterFixture, tmp_path: Path, file: bool
) -> None:
    """By the option, or by the properties of Kafka's own tools."""
    properties = tmp_path / "consumer.properties"
    properties.write_text("group.protocol=consumer\ngroup.remote.assignor=range\n")
    words = ("--config", str(properties)) if file else ("--group-protocol", "consumer")
    with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
        for value in (b"a", b"b"):
            producer.deliver("t", value, partition=0)
    done = run("consume", "t", "-b", kafka_broker.bootstrap, *GROUP, "-n", "2", *words)
    assert (done.exit_code, done.stdout.split()) == (0, ["a", "b"]), done.stderr
    assert kafka_broker.committed("g") == {TopicPartition("t", 0): 2}
    apis = {each.request.api_key for each in kafka_broker.requests}
    assert ApiKey.CONSUMER_GROUP_HEARTBEAT in apis
    assert ApiKey.JOIN_GROUP not in apis


@pytest.mark.kafka(topics={"t": 2})
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_members_of_groups_of_both_protocols_are_shown(
    kafka_broker: ClusterFixture, protocol: str
) -> None:
    here = ("-b", kafka_broker.bootstrap)
    config = {"bootstrap.servers": kafka_broker.bootstrap, "group.id": "g"}
    with Consumer({**config, "group.protocol": protocol, "client.id": "c"}) as consumer:
        consumer.subscribe(["t"])

        def is_assigned() -> bool:
            consumer.poll(0.05)
            return len(consumer.assignment()) == 2

        kafka_broker.wait(is_assigned)
        listed = json.loads(run("groups", *here, "-f", "json").stdout)["groups"]
        text = run("groups", *here).stdout
    [group] = listed
    [member] = group["members"]
    assert (group["state"], group["type"].lower(), member["client_id"]) == ("Stable", protocol, "c")
    assert member["assigned"] == {"t": [0, 1]}
    assert "?" not in text


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--group-protocol", "consumer"), "--group"),
        (("--group", "g", "--group-protocol", "newest"), "group.protocol"),
        (
            ("--group", "g", "--group-protocol", "consumer", "-X", "session.timeout.ms=6000"),
            "session.timeout.ms",
        ),
    ],
)
def test_settings_that_do_not_fit_are_usage_errors(words: tuple[str, ...], named: str) -> None:
    done = run("consume", "t", "-b", "127.0.0.1:1", *words)
    assert done.exit_code == 2, done.stderr
    assert named in done.stderr


@pytest.mark.kafka(topics={"t": 1}, release="3.9")
def test_a_cluster_without_such_groups_is_named(kafka_broker: ClusterFixture) -> None:
    done = run("consume", "t", "-b", kafka_broker.bootstrap, *GROUP, "--group-protocol", "consumer")
    assert done.exit_code == 1
    assert kafka_broker.bootstrap in done.stderr
    assert "group.protocol=classic" in done.stderr
