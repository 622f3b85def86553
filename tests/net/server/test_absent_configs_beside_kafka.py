"""Configuration keys that a release does not have: a real Apache Kafka 3.9 and our broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from kafkawire.messages import alter_configs_request as replacing
from kafkawire.messages import incremental_alter_configs_request as incremental
from kafkawire.messages.alter_configs_response import AlterConfigsResponse
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.net.server_config import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.client.real.test_kafka_3_9 import VERSION

from ...real.broker import running
from ...real.java import install
from ...real.wire import Wire

pytestmark = [pytest.mark.java, pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
BROKER: Final = 4
RELEASE: Final = VERSION.rpartition(".")[0]
SET, DELETE, APPEND = range(3)
Outcome = tuple[int, str | None]
CASES: Final = (
    ("group.streams.max.size", "7"),  # from 4.1 on, read-only
    ("group.streams.max.size", "many"),
    ("errors.deadletterqueue.auto.create.topics.enable", "true"),  # dynamic, from 4.4 on
    ("errors.deadletterqueue.auto.create.topics.enable", "perhaps"),
    ("log.remote.copy.lag.ms", "-7"),
    ("cordoned.log.dirs", "*"),  # of one broker
    ("quota.producer.default", "7"),  # before 3.0
    ("host.name", "localhost"),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """The ports of a real 3.9, and of our broker as one of 3.9."""
    config = ServerConfig(release=RELEASE)
    with (
        running(install(version=VERSION), tmp_path_factory.mktemp(RELEASE)) as real,
        ServerThread(config) as ours,
    ):
        yield real.port, ours.ports()[1]


def incrementally(wire: Wire, name: str, key: str, value: str | None, operation: int) -> Outcome:
    change = incremental.AlterableConfig(name=key, config_operation=operation, value=value)
    resource = incremental.AlterConfigsResource(
        resource_type=BROKER, resource_name=name, configs=[change]
    )
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    [result] = wire.exchange(request, 1, IncrementalAlterConfigsResponse).responses
    return result.error_code, result.error_message


def replaced(wire: Wire, name: str, values: dict[str, str]) -> Outcome:
    configs = [replacing.AlterableConfig(name=key, value=value) for key, value in values.items()]
    resource = replacing.AlterConfigsResource(
        resource_type=BROKER, resource_name=name, configs=configs
    )
    request = replacing.AlterConfigsRequest(resources=[resource])
    [result] = wire.exchange(request, 2, AlterConfigsResponse).responses
    return result.error_code, result.error_message


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize(("key", "value"), CASES)
def test_changes(both: tuple[int, int], key: str, value: str, name: str) -> None:
    of_both = []
    for port in both:
        with Wire(port) as wire:
            outcomes = [
                incrementally(wire, name, key, value, SET),
                incrementally(wire, name, key, value, APPEND),
                incrementally(wire, name, key, None, DELETE),
                replaced(wire, name, {key: value}),
                replaced(wire, name, {}),
            ]
            of_both.append(outcomes)
    real, ours = of_both
    assert ours == real
