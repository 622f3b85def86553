"""Kafka's own share consumers and tools at our broker (KIP-932)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from kafkawire.configs import ResourceType
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.net.fixture import ClusterFixture
from tests.real.compiler import compiled
from tests.real.java import Installation
from tests.real.wire import Wire

SECONDS: Final = 120.0
COUNT: Final = 40
SOURCE: Final = Path(__file__).with_name("ShareConsumers.java")
GROUP_COMMAND: Final = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SETTINGS: Final = {
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "50",
    "group.share.min.heartbeat.interval.ms": "50",
}
pytestmark = pytest.mark.timeout(600)


def run(installation: Installation, main: str, *arguments: str) -> str:
    command = installation.command(main, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(installation: Installation, broker: ClusterFixture, *arguments: str) -> list[list[str]]:
    """Run kafka-share-groups; return the words of its rows."""
    shown = run(installation, GROUP_COMMAND, "--bootstrap-server", broker.bootstrap, *arguments)
    return [line.split() for line in shown.splitlines() if line.strip()]


def from_the_beginning(broker: ClusterFixture) -> None:
    """Let the group begin at the first record."""
    config = AlterableConfig(name="share.auto.offset.reset", value="earliest")
    resource = AlterConfigsResource(
        resource_type=ResourceType.GROUP, resource_name="g", configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    with Wire(int(broker.bootstrap.rpartition(":")[2])) as wire:
        response = wire.exchange(request, 1, IncrementalAlterConfigsResponse)
    assert not response.responses[0].error_code


@pytest.mark.kafka(topics={"t": 3}, settings=SETTINGS)
def test_javas_consumers_share_records(
    kafka_broker: ClusterFixture, installation: Installation
) -> None:
    bootstrap = kafka_broker.bootstrap
    from_the_beginning(kafka_broker)
    producer = Producer({"bootstrap.servers": bootstrap})
    for at in range(COUNT):
        producer.produce("t", str(at).encode(), partition=at % 3)
    assert producer.flush(10) == 0
    shown = run(compiled(installation, SOURCE), SOURCE.stem, bootstrap, str(COUNT))
    assert shown.splitlines() == [
        f"{at:03d} {'reject' if at % 7 == 0 else 'accept'} {2 if at % 5 == 0 else 1}"
        for at in range(COUNT)
    ]
    rows = tool(installation, kafka_broker, "--describe", "--group", "g")
    assert sorted(row[2:5:2] for row in rows if row[0] == "g") == [
        [str(at), "0"] for at in range(3)
    ]
    assert ["g", "Empty"] in [row[:1] + row[-1:] for row in tool(
        installation, kafka_broker, "--list", "--state")]  # fmt: skip
    tool(installation, kafka_broker, "--reset-offsets", "--group", "g", "--topic", "t:1",
         "--to-earliest", "--execute")  # fmt: skip
    rows = tool(installation, kafka_broker, "--describe", "--group", "g")
    [again] = [row for row in rows if row[:3] == ["g", "t", "1"]]
    assert again[3:5] == ["0", "13"]
    tool(installation, kafka_broker, "--delete", "--group", "g")
    assert not any(row[0] == "g" for row in tool(installation, kafka_broker, "--list"))
