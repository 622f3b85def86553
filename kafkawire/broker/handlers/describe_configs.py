"""DescribeConfigs: what is configured, and where each value is from.

v0   the first
v1   request +include_synonyms; response +config_source +synonyms -is_default
v2   no new fields │ throttled after the answer
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
from ..request import Answer, Request, Work
from ..topics import name_refusal

E = ErrorCode
TOPIC: Final = 2
BROKER: Final = 4
SOURCE_FROM: Final = 1
TYPE_FROM: Final = 3


def handle(broker: Broker, request: Request, _connection: Connection, _now: float) -> Answer:
    """Describe topics and brokers, one that is named several times once: a few bytes name it, and
    thousands describe it.
    """
    body = request.body
    assert isinstance(body, DescribeConfigsRequest)
    return _results(broker, body, request.version)


def _results(broker: Broker, body: DescribeConfigsRequest, version: int) -> Work:
    wanted = {(each.resource_type, each.resource_name): each for each in body.resources}
    results = []
    for each in wanted.values():
        results.append(_describe(broker, each, body, version))
        yield 1 + len(results[-1].configs)
    return DescribeConfigsResponse(results=results)


def _describe(
    broker: Broker,
    asked: DescribeConfigsResource,
    body: DescribeConfigsRequest,
    version: int,
) -> DescribeConfigsResult:
    found = _found(broker, asked)
    if isinstance(found, tuple):
        return _failed(asked, *found)
    keys = None if asked.configuration_keys is None else frozenset(asked.configuration_keys)
    return DescribeConfigsResult(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        error_message="",
        configs=[
            _config(each, body.include_synonyms, version)
            for each in found
            if not keys or each.name in keys
        ],
    )


def _found(
    broker: Broker, asked: DescribeConfigsResource
) -> list[Described] | tuple[ErrorCode, str]:
    settings, name = broker.cluster.settings, asked.resource_name
    if asked.resource_type == TOPIC:
        reason = name_refusal(name)
        if reason is not None:
            return E.INVALID_TOPIC_EXCEPTION, reason
        topic = broker.cluster.topics.get(name)
        if topic is None:
            return E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION.name
        return described(settings, TOPIC_CONFIGS, topic.configs)
    if asked.resource_type == BROKER:
        if name == "":
            return default_described(settings)
        if name != str(broker.node_id):
            return E.INVALID_REQUEST, f"Broker {broker.node_id} was asked about broker {name}."
        return broker_described(broker)
    return E.INVALID_REQUEST, f"Resources of type {asked.resource_type} have no configuration here."


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
    asked: DescribeConfigsResource, error: ErrorCode, message: str
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


def refused(body: DescribeConfigsRequest, error: ErrorCode) -> DescribeConfigsResponse:
    """Answer with an error for each resource."""
    return DescribeConfigsResponse(
        results=[_failed(each, error, error.name) for each in body.resources]
    )
