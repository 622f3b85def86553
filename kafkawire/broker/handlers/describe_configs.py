"""DescribeConfigs: returns configs with their values and sources.

v0   the first
v1   request +include_synonyms; response +config_source +synonyms -is_default
v2   no new fields │ throttled after the response
v3   request +include_documentation; response +config_type +documentation
v4   flexible
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from re import compile
from typing import Final

from ...configs import (
    ConfigSource,
    ResourceType,
    group_configs,
    has_resources,
)
from ...configs.topic_names import topic_name_error
from ...display import host_and_port
from ...messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ...messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..configs import loggers
from ..configs.descriptions import (
    NO_DOCUMENTATION,
    Described,
    broker_described,
    client_metrics_described,
    default_described,
    group_described,
    loggers_described,
    topic_described,
)
from ..network.connection import Connection
from ..releases import before
from ..request import Request, Work
from ..security.protocols import SecurityProtocol

E = ErrorCode
SOURCE_FROM: Final = 1
TYPE_FROM: Final = 3
NODE_ID: Final = compile(r"[+-]?[0-9]{1,10}")


def handle(
    broker: Broker,
    request: Request,
    body: DescribeConfigsRequest,
    _connection: Connection,
    _now: float,
) -> Work[DescribeConfigsResponse]:
    """Describe topics, brokers, groups, loggers and subscriptions of client metrics.

    Duplicates are described once: a few bytes name a resource, thousands describe it.
    """
    return _results(broker, body, request.version)


def _results(
    broker: Broker, body: DescribeConfigsRequest, version: int
) -> Work[DescribeConfigsResponse]:
    requested = {(each.resource_type, each.resource_name): each for each in body.resources}
    results = []
    for each in requested.values():
        results.append(_describe(broker, each, body, version))
        yield 1 + len(results[-1].configs)
    return DescribeConfigsResponse(results=results)


def _describe(
    broker: Broker,
    resource: DescribeConfigsResource,
    body: DescribeConfigsRequest,
    version: int,
) -> DescribeConfigsResult:
    entries = _found(broker, resource)
    if isinstance(entries, tuple):
        return _failed(resource, *entries)
    keys = None if resource.configuration_keys is None else frozenset(resource.configuration_keys)
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_message="",
        configs=[_config(each, body, version) for each in entries if not keys or each.name in keys],
    )


Found = list[Described] | tuple[ErrorCode, str]
"""The values of a resource, or an error and its message."""


def _found(broker: Broker, resource: DescribeConfigsResource) -> Found:
    describe = _RESOURCES.get(resource.resource_type)
    if describe is None or not has_resources(broker.apis.release, resource.resource_type):
        reason = f"Resources of type {resource.resource_type} are not supported."
        return E.INVALID_REQUEST, reason
    return describe(broker, resource.resource_name)


def _topic(broker: Broker, name: str) -> Found:
    reason = topic_name_error(name)
    if reason is not None:
        return E.INVALID_TOPIC_EXCEPTION, reason
    topic = broker.topics.get(name)
    if topic is None:
        return E.UNKNOWN_TOPIC_OR_PARTITION, ""
    return topic_described(broker.settings, topic.configs)


def _broker(broker: Broker, name: str) -> Found:
    if name == "":
        return default_described(broker.settings)
    if name != str(broker.node_id):
        return E.INVALID_REQUEST, (
            f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
        )
    return broker_described(broker.settings, _own(broker))


def _group(broker: Broker, name: str) -> Found:
    if name == "":
        return E.INVALID_REQUEST, "Group name must not be empty"
    keys = group_configs(broker.apis.release)
    return group_described(broker.settings, keys, broker.metadata.group_configs(name))


DEFAULTS_SHOWN_FROM: Final = "4.0"
"""Before this release, a subscription of client metrics has only the keys that were set."""


def _client_metrics(broker: Broker, name: str) -> Found:
    if name == "":
        return E.INVALID_REQUEST, "Client metrics subscription name must not be empty"
    described = client_metrics_described(broker.metadata.client_metrics_configs(name))
    if before(broker.apis.release, DEFAULTS_SHOWN_FROM):
        return [each for each in described if each.source is not ConfigSource.DEFAULT_CONFIG]
    return described


def _loggers(broker: Broker, name: str) -> Found:
    reason = _other_broker(broker, name)
    if name == "":
        reason = "Broker id must not be empty"
    if reason is not None:
        return E.INVALID_REQUEST, reason
    return loggers_described(loggers.levels())


def _other_broker(broker: Broker, name: str) -> str | None:
    """Return why a name is not that of this broker."""
    if not NODE_ID.fullmatch(name):
        return f"Broker id must be an integer, but it is: {name}"
    if int(name) != broker.node_id:
        return f"Unexpected broker id, expected {broker.node_id} but received {name}"
    return None


_RESOURCES: Final[Mapping[int, Callable[[Broker, str], Found]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _loggers,
    ResourceType.CLIENT_METRICS: _client_metrics,
    ResourceType.GROUP: _group,
}


def _own(broker: Broker) -> dict[str, str]:
    """Return the static keys of a broker: its node id and listeners."""
    node_id, rack = broker.node_id, broker.endpoint.rack
    settings = broker.settings
    sasl = bool(settings.items("sasl.enabled.mechanisms"))
    own = {SecurityProtocol.with_(sasl=sasl, tls=False).name: broker.endpoint}
    listeners = (broker.listeners or own).items()
    listener = ",".join(
        f"{name}://{host_and_port(each.host, each.port)}" for name, each in listeners
    )
    values = {
        "advertised.listeners": listener,
        "broker.id": str(node_id),
        "controller.listener.names": "CONTROLLER",
        "listeners": listener,
        "node.id": str(node_id),
        "process.roles": "broker,controller",
    }
    if rack is not None:
        values["broker.rack"] = rack
    return values


def _config(
    row: Described, body: DescribeConfigsRequest, version: int
) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        is_sensitive=row.sensitive,
        documentation=None,
    )
    if version < SOURCE_FROM:
        result.is_default = row.source is ConfigSource.DEFAULT_CONFIG
        return result
    result.config_source = row.source
    if body.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in row.synonyms
        ]
    if version >= TYPE_FROM:
        result.config_type = row.type
        if body.include_documentation or row.documentation == NO_DOCUMENTATION:
            result.documentation = row.documentation
    return result


def _failed(
    resource: DescribeConfigsResource, error: ErrorCode, message: str
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(body: DescribeConfigsRequest, error: ErrorCode) -> DescribeConfigsResponse:
    """Return a response with the error for each resource."""
    return DescribeConfigsResponse(
        results=[_failed(each, error, error.name) for each in body.resources]
    )
