"""Configurations of topics and brokers.

A broker's configuration is requested from that broker; a topic's from any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...client.failures import RequestFailed
from ...client.requests import CONTROLLER, LEAST_LOADED, Destination, Reason
from ...messages.api_key import ApiKey
from ...messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ...messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ...messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ...messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from .calls import CallRunner, check
from .values import ConfigEntry

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32
"""Resource types."""
SET: Final = 0
DELETE: Final = 1
"""Operations."""
DEFAULTED: Final = frozenset({-1, 4, 5})
"""Sources of a value not set for this resource: unknown, a broker's file, the default."""
TOPICS_OWN: Final = 1
MOST_RESOURCES: Final = 500
"""Topics of one DescribeConfigs request."""


async def describe(calls: CallRunner, kind: int, name: str) -> dict[str, ConfigEntry]:
    """Describe the configuration of one resource."""
    to: Destination = int(name) if kind == BROKER else LEAST_LOADED
    return (await _describe(calls, to, kind, [name], None))[name]


async def describe_topics(
    calls: CallRunner, names: list[str], keys: list[str] | None
) -> dict[str, dict[str, ConfigEntry]]:
    """Describe the configurations of topics; keys: None is all."""
    found: dict[str, dict[str, ConfigEntry]] = {}
    for start in range(0, len(names), MOST_RESOURCES):
        some = names[start : start + MOST_RESOURCES]
        found |= await _describe(calls, LEAST_LOADED, TOPIC, some, keys)
    return found


async def _describe(
    calls: CallRunner, to: Destination, kind: int, names: list[str], keys: list[str] | None
) -> dict[str, dict[str, ConfigEntry]]:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for name in names
    ]
    response = await calls.call(
        to,
        ApiKey.DESCRIBE_CONFIGS,
        DescribeConfigsResponse,
        lambda _: DescribeConfigsRequest(resources=resources),
        lambda response: [each.error_code for each in response.results],
    )
    for found in response.results:
        check(found.error_code, found.resource_name, found.error_message)
    described = {
        found.resource_name: {each.name: entry(each, kind) for each in found.configs}
        for found in response.results
    }
    if described.keys() != set(names):
        raise RequestFailed(Reason.INVALID_RESPONSE, "configurations of other resources")
    return described


async def alter(
    calls: CallRunner,
    kind: int,
    name: str,
    changes: Mapping[str, str | None],
    *,
    validate_only: bool = False,
) -> None:
    """Alter the given settings of one resource, no others (KIP-339)."""
    rows = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    response = await calls.call(
        CONTROLLER,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        IncrementalAlterConfigsResponse,
        lambda _: IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only),
        lambda response: [each.error_code for each in response.responses],
    )
    for each in response.responses:
        check(each.error_code, name, each.error_message)


def entry(row: DescribeConfigsResourceResult, kind: int) -> ConfigEntry:
    """Convert a setting of a response; version 0 only reports whether it is the default."""
    if row.config_source == -1:
        is_default = row.is_default
    elif kind == TOPIC:
        is_default = row.config_source != TOPICS_OWN
    else:
        is_default = row.config_source in DEFAULTED
    return ConfigEntry(row.name, row.value, row.read_only, is_default, row.is_sensitive)
