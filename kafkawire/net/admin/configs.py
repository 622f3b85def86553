"""Configurations of topics and brokers.

Law: a broker's configuration is requested from that broker; a topic's from any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...client.requests import CONTROLLER, LEAST_LOADED, Destination
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
"""Resource types."""
SET: Final = 0
DELETE: Final = 1
"""Operations."""
DEFAULTED: Final = frozenset({-1, 4, 5})
"""Sources of a value not set for this resource: unknown, a broker's file, the default."""
TOPICS_OWN: Final = 1


async def describe(calls: CallRunner, kind: int, name: str) -> dict[str, ConfigEntry]:
    """Describe the configuration of one resource."""
    row = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    to: Destination = int(name) if kind == BROKER else LEAST_LOADED
    response = await calls.call(
        to,
        ApiKey.DESCRIBE_CONFIGS,
        DescribeConfigsResponse,
        lambda _: DescribeConfigsRequest(resources=[row]),
        lambda response: [each.error_code for each in response.results],
    )
    (found,) = response.results
    check(found.error_code, name, found.error_message)
    return {each.name: entry(each, kind) for each in found.configs}


async def alter(calls: CallRunner, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
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
        lambda _: IncrementalAlterConfigsRequest(resources=[resource]),
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
