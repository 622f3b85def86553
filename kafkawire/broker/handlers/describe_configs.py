"""DescribeConfigs: returns configs with their values and sources.

v0   the first
v1   request +include_synonyms; response +config_source +synonyms -is_default
v2   no new fields │ throttled after the response
v3   request +include_documentation; response +config_type +documentation
v4   flexible
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ...messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..config_descriptions import Described, broker_described, default_described, described
from ..configs import TOPIC_CONFIGS, ConfigSource
from ..connection import Connection
from ..request import HandlerResult, Request, Work
from ..topics import topic_name_error

E = ErrorCode
TOPIC: Final = 2
BROKER: Final = 4
SOURCE_FROM: Final = 1
TYPE_FROM: Final = 3


def handle(broker: Broker, request: Request, _connection: Connection, _now: float) -> HandlerResult:
    """Describe topics and brokers, duplicates once: a few bytes name a resource, thousands
    describe it.
    """
    body = request.body
    assert isinstance(body, DescribeConfigsRequest)
    return _results(broker, body, request.version)


def _results(broker: Broker, body: DescribeConfigsRequest, version: int) -> Work:
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
    found = _found(broker, resource)
    if isinstance(found, tuple):
        return _failed(resource, *found)
    keys = None if resource.configuration_keys is None else frozenset(resource.configuration_keys)
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_message="",
        configs=[
            _config(each, body.include_synonyms, version)
            for each in found
            if not keys or each.name in keys
        ],
    )


def _found(
    broker: Broker, resource: DescribeConfigsResource
) -> list[Described] | tuple[ErrorCode, str]:
    settings, name = broker.cluster.settings, resource.resource_name
    if resource.resource_type == TOPIC:
        reason = topic_name_error(name)
        if reason is not None:
            return E.INVALID_TOPIC_EXCEPTION, reason
        topic = broker.cluster.topics.get(name)
        if topic is None:
            return E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION.name
        return described(settings, TOPIC_CONFIGS, topic.configs)
    if resource.resource_type == BROKER:
        if name == "":
            return default_described(settings)
        if name != str(broker.node_id):
            return E.INVALID_REQUEST, (
                f"Unexpected broker id, expected {broker.node_id} or empty string, "
                f"but received {name}"
            )
        return broker_described(broker)
    return (
        E.INVALID_REQUEST,
        f"Resources of type {resource.resource_type} are not supported.",
    )


def _config(each: Described, include_synonyms: bool, version: int) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=each.name,
        value=each.value,
        read_only=each.read_only,
        is_sensitive=each.sensitive,
        documentation=None,
    )
    if version < SOURCE_FROM:
        result.is_default = each.source is ConfigSource.DEFAULT_CONFIG
        return result
    result.config_source = each.source
    if include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in each.synonyms
        ]
    if version >= TYPE_FROM:
        result.config_type = each.type
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
