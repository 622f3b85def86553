"""ListConfigResources (KIP-1142): what has a configuration, by type."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.list_config_resources_request import ListConfigResourcesRequest
from kafkawire.messages.list_config_resources_response import ListConfigResourcesResponse
from tests.broker.harness import Client, Harness

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def resources(client: Client, *types: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(types) if version else [])
    response = client.exchange(request, version, ListConfigResourcesResponse)
    assert response.error_code == ErrorCode.NONE
    return sorted((each.resource_type, each.resource_name) for each in response.config_resources)


@pytest.fixture
def client() -> Client:
    """Of a cluster of two brokers with two topics and the configuration of a group."""
    client = Harness(brokers=2, topics={"a": 1, "b": 1}, release="4.4").client()
    key = AlterableConfig(name="consumer.heartbeat.interval.ms", value="6000")
    group = AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=[key])
    altered = client.exchange(
        IncrementalAlterConfigsRequest(resources=[group]), 1, IncrementalAlterConfigsResponse
    )
    assert altered.responses[0].error_code == ErrorCode.NONE
    return client


def test_resources_are_listed_by_type(client: Client) -> None:
    groups, topics = [(GROUP, "g")], [(TOPIC, "a"), (TOPIC, "b")]
    brokers = [(type, name) for type in (BROKER, LOGGER) for name in ("1", "2")]
    assert resources(client, GROUP, TOPIC, GROUP) == [*topics, *groups]
    assert resources(client, METRICS) == []
    assert set(resources(client)) >= {*topics, *brokers, *groups}


def test_the_first_version_lists_client_metrics_only(client: Client) -> None:
    assert resources(client, version=0) == []


def test_an_unknown_type_is_refused(client: Client) -> None:
    request = ListConfigResourcesRequest(resource_types=[TOPIC, 3])
    response = client.exchange(request, 1, ListConfigResourcesResponse)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
