"""IncrementalAlterConfigs: values are set, taken back, added to and taken from (KIP-339).

v0   the first
v1   flexible
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ...messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigKey, ConfigType, refusal
from ..connection import Connection
from ..request import Answer, Request

E = ErrorCode
TOPIC: Final = 2
BROKER: Final = 4
SET, DELETE, APPEND, SUBTRACT = range(4)
LONGEST_VALUE: Final = 2**15 - 1
"""Characters of a value, as in Kafka's controller: APPEND cannot make it grow for ever."""
Problem = tuple[ErrorCode, str]
Values = dict[str, str]


def handle(broker: Broker, request: Request, _connection: Connection, now: float) -> Answer:
    """Change each resource's configuration, all that is asked of one or nothing of it."""
    body = request.body
    assert isinstance(body, IncrementalAlterConfigsRequest)
    responses = []
    for asked in body.resources:
        problem = _alter(broker, asked, body.validate_only, now)
        error, message = problem or (E.NONE, None)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)


def _alter(
    broker: Broker, asked: AlterConfigsResource, validate_only: bool, now: float
) -> Problem | None:
    cluster, name = broker.cluster, asked.resource_name
    if asked.resource_type == TOPIC:
        topic = cluster.topics.get(name)
        if topic is None:
            return E.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        found = _altered(asked.configs, TOPIC_CONFIGS, topic.configs)
        if not isinstance(found, dict):
            return found
        if not validate_only:
            cluster.creation.configure(topic, found, now)
        return None
    if asked.resource_type != BROKER or name not in ("", *map(str, cluster.brokers)):
        return E.INVALID_REQUEST, f"There is no resource {name!r} of type {asked.resource_type}."
    found = _altered(asked.configs, BROKER_CONFIGS, cluster.settings.given)
    if not isinstance(found, dict):
        return found
    if not validate_only:
        changed = {each.name: found.get(each.name) for each in asked.configs}
        cluster.creation.configure_brokers(changed, now)
    return None


def _altered(
    changes: list[AlterableConfig], keys: Mapping[str, ConfigKey], values: Mapping[str, str]
) -> Values | Problem:
    """Say what values become of the changes, or why they cannot be made."""
    made = dict(values)
    if len({each.name for each in changes}) != len(changes):
        return E.INVALID_REQUEST, "A key is altered twice."
    for each in changes:
        key = keys.get(each.name)
        if each.config_operation == DELETE and key is not None:
            made.pop(each.name, None)
            continue
        if each.config_operation not in (SET, DELETE, APPEND, SUBTRACT):
            return E.INVALID_REQUEST, f"Unknown operation {each.config_operation}."
        value = each.value
        if each.config_operation in (APPEND, SUBTRACT) and key is not None:
            if key.type is not ConfigType.LIST:
                return E.INVALID_CONFIG, f"{each.name} is no list."
            value = _list(made.get(each.name, key.default), value or "", each.config_operation)
        if value is not None and len(value) > LONGEST_VALUE:
            return E.INVALID_CONFIG, (
                f"The value of {each.name} has {len(value)} characters; {LONGEST_VALUE} are allowed"
            )
        reason = refusal(key, each.name, value)
        if reason is not None or value is None:
            return E.INVALID_CONFIG, reason or f"Null value not supported for {each.name}"
        made[each.name] = value
    return made


def _list(current: str, given: str, operation: int) -> str:
    there = dict.fromkeys(part for part in current.split(",") if part)
    for part in (part.strip() for part in given.split(",")):
        if operation == SUBTRACT:
            there.pop(part, None)
        elif part:
            there[part] = None
    return ",".join(there)


def refused(
    body: IncrementalAlterConfigsRequest, error: ErrorCode
) -> IncrementalAlterConfigsResponse:
    """Answer with an error for each resource."""
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=error.name,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in body.resources
        ]
    )
