"""Configurations of topics and brokers.

A broker's configuration is requested from that broker; a topic's from any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...client.arguments import INT32, text, topic_name
from ...client.failures import RequestFailed
from ...client.requests import CONTROLLER, LEAST_LOADED, Destination, Reason
from ...configs import ConfigSource, ConfigType
from ...errors import InvalidValue
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
from ...messages.list_config_resources_request import ListConfigResourcesRequest
from ...messages.list_config_resources_response import ListConfigResourcesResponse
from ...whole_numbers import whole_number
from .calls import CallRunner, check
from .values import ConfigEntry, ConfigResource, ConfigSynonym

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
"""Resource types."""
RESOURCE_TYPES: Final = {
    "TOPIC": TOPIC,
    "BROKER": BROKER,
    "BROKER_LOGGER": BROKER_LOGGER,
    "CLIENT_METRICS": CLIENT_METRICS,
    "GROUP": GROUP,
}
TYPE_NAMES: Final = {number: name for name, number in RESOURCE_TYPES.items()}
TYPES_FROM: Final = 1
"""ListConfigResources has types from this version on; before, it lists CLIENT_METRICS."""
SYNONYMS_FROM: Final = 1
DOCUMENTATION_FROM: Final = 3
SET: Final = 0
DELETE: Final = 1
"""Operations."""
DEFAULTED: Final = frozenset({-1, 4, 5})
"""Sources of a value not set for this resource: unknown, a broker's file, the default."""
TOPICS_OWN: Final = 1
MOST_RESOURCES: Final = 500
"""Resources of one DescribeConfigs request."""


class Details(NamedTuple):
    """What of each setting is requested besides its value."""

    synonyms: bool = False
    documentation: bool = False


NO_DETAILS: Final = Details()


def numbered(resource: object, argument: str) -> tuple[int, str]:
    """Return the type of a resource as requests have it, and its name. Raises InvalidValue."""
    if not isinstance(resource, ConfigResource):
        raise InvalidValue(f"expected ConfigResource, got {type(resource).__name__}", argument)
    number = RESOURCE_TYPES.get(resource.resource_type)
    if number is None:
        raise InvalidValue(
            f"{resource.resource_type!r}: expected one of {', '.join(RESOURCE_TYPES)}",
            f"{argument}.resource_type",
        )
    name = text(resource.name, f"{argument}.name")
    if number == TOPIC:
        topic_name(name, f"{argument}.name")
    if number == BROKER_LOGGER or (number == BROKER and name):
        _broker_id(name, f"{argument}.name")
    return number, name


def _broker_id(name: str, argument: str) -> int:
    broker_id = whole_number(name, INT32)
    if broker_id is None:
        raise InvalidValue(f"{name!r}: expected the id of a broker", argument)
    return broker_id


def destination(kind: int, name: str, otherwise: Destination) -> Destination:
    """Return where requests about a resource go: to the broker that it is about, if any."""
    is_of_broker = kind in (BROKER, BROKER_LOGGER) and name
    return int(name) if is_of_broker else otherwise


async def describe(calls: CallRunner, kind: int, name: str) -> dict[str, ConfigEntry]:
    """Describe the configuration of one resource."""
    to = destination(kind, name, LEAST_LOADED)
    return (await _describe(calls, to, kind, [name], None))[name]


async def describe_topics(
    calls: CallRunner, names: list[str], keys: list[str] | None
) -> dict[str, dict[str, ConfigEntry]]:
    """Describe the configurations of topics; keys: None is all."""
    entries: dict[str, dict[str, ConfigEntry]] = {}
    for start in range(0, len(names), MOST_RESOURCES):
        some = names[start : start + MOST_RESOURCES]
        entries |= await _describe(calls, LEAST_LOADED, TOPIC, some, keys)
    return entries


async def describe_resources(
    calls: CallRunner,
    resources: Iterable[ConfigResource],
    keys: list[str] | None,
    details: Details,
) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    """Describe resources of any type, in their order."""
    wanted = list(resources)
    groups: defaultdict[tuple[Destination, int], list[str]] = defaultdict(list)
    for index, resource in enumerate(wanted):
        kind, name = numbered(resource, f"resources[{index}]")
        groups[destination(kind, name, LEAST_LOADED), kind].append(name)
    described: dict[ConfigResource, dict[str, ConfigEntry]] = {}
    for (to, kind), names in groups.items():
        for start in range(0, len(names), MOST_RESOURCES):
            some = names[start : start + MOST_RESOURCES]
            rows = await _describe(calls, to, kind, some, keys, details)
            described |= {ConfigResource(TYPE_NAMES[kind], name): rows[name] for name in rows}
    return {resource: described[resource] for resource in wanted}


async def list_resources(calls: CallRunner, types: Iterable[str]) -> list[ConfigResource]:
    """List resources; types: () is all."""
    numbers = [
        numbered(ConfigResource(kind, "0"), f"resource_types[{index}]")[0]
        for index, kind in enumerate(types)
    ]
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.LIST_CONFIG_RESOURCES,
        ListConfigResourcesResponse,
        lambda version: ListConfigResourcesRequest(
            resource_types=numbers if version >= TYPES_FROM else []
        ),
        lambda response: [response.error_code],
        lowest=0 if numbers == [CLIENT_METRICS] else TYPES_FROM,
    )
    check(response.error_code, "resources")
    return sorted(
        ConfigResource(TYPE_NAMES[row.resource_type], row.resource_name)
        for row in response.config_resources
        if row.resource_type in TYPE_NAMES
    )


async def _describe(
    calls: CallRunner,
    to: Destination,
    kind: int,
    names: list[str],
    keys: list[str] | None,
    details: Details = NO_DETAILS,
) -> dict[str, dict[str, ConfigEntry]]:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for name in names
    ]
    response = await calls.call(
        to,
        ApiKey.DESCRIBE_CONFIGS,
        DescribeConfigsResponse,
        lambda version: DescribeConfigsRequest(
            resources=resources,
            include_synonyms=details.synonyms and version >= SYNONYMS_FROM,
            include_documentation=details.documentation and version >= DOCUMENTATION_FROM,
        ),
        lambda response: [each.error_code for each in response.results],
    )
    for result in response.results:
        check(result.error_code, result.resource_name, result.error_message)
    described = {
        result.resource_name: {each.name: entry(each, kind) for each in result.configs}
        for result in response.results
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
        destination(kind, name, CONTROLLER),
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
    return ConfigEntry(
        row.name,
        row.value,
        row.read_only,
        is_default,
        row.is_sensitive,
        source_name(row.config_source),
        "" if row.config_type == 0 else _name(ConfigType, row.config_type),
        tuple(
            ConfigSynonym(other.name, other.value, source_name(other.source))
            for other in row.synonyms
        ),
        row.documentation or None,
    )


def source_name(number: int) -> str:
    """Return Kafka's name of a config source; "" if the broker does not report it."""
    return "" if number < 0 else _name(ConfigSource, number)


def _name(names: type[ConfigSource] | type[ConfigType], number: int) -> str:
    return names(number).name if number in {*names} else str(number)
