"""IncrementalAlterConfigs (KIP-339) and AlterConfigs: of topics, brokers, groups, client metrics.

The changes of one resource are made all together or not at all; a value that stays is not
written again, except of a broker, which may have to read a file again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...configs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    TOPIC_CONFIGS,
    ConfigType,
    ResourceType,
    config_error,
)
from ...configs.features import ELR
from ...configs.rules import (
    MATCH,
    PUSH_INTERVAL,
    key_error,
    match_error,
    push_interval_error,
    resource_error,
    topic_error,
)
from ...configs.topic_names import topic_name_error
from ...messages import alter_configs_response as legacy
from ...messages import incremental_alter_configs_response as incremental
from ...messages.alter_configs_request import AlterConfigsRequest
from ...messages.alter_configs_response import AlterConfigsResponse
from ...messages.config_record import ConfigRecord
from ...messages.incremental_alter_configs_request import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
)
from ...messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from ...protocol import ErrorCode
from ..partition_change import PartitionTarget, change_partition
from ..state import MIN_ISR, ControllerState
from .assignments import Refused

E = ErrorCode
TOPIC: Final = int(ResourceType.TOPIC)
BROKER: Final = int(ResourceType.BROKER)
CLIENT_METRICS: Final = int(ResourceType.CLIENT_METRICS)
GROUP: Final = int(ResourceType.GROUP)
ALTERED: Final = frozenset({TOPIC, BROKER, CLIENT_METRICS, GROUP})
"""The types of resources with a configuration in the metadata."""
LONGEST_VALUE: Final = 2**15 - 1
SET, DELETE, APPEND, SUBTRACT = range(4)
Values = dict[str, str | None]
NO_NAME: Final[Mapping[int, str]] = {
    TOPIC: "Default topic resources are not allowed.",
    CLIENT_METRICS: "Subscription name can't be empty",
    GROUP: "Default group resources are not allowed.",
}


def incremental_alter_configs(
    state: ControllerState, body: IncrementalAlterConfigsRequest, _version: int, _now: float
) -> IncrementalAlterConfigsResponse:
    """Apply the operations on each resource."""
    return IncrementalAlterConfigsResponse(
        responses=_altered(state, body, incremental.AlterConfigsResourceResponse)
    )


def alter_configs(
    state: ControllerState, body: AlterConfigsRequest, _version: int, _now: float
) -> AlterConfigsResponse:
    """Replace the values of each resource."""
    return AlterConfigsResponse(
        responses=_altered(state, body, legacy.AlterConfigsResourceResponse)
    )


def changes(
    body: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    configs: Sequence[Any],
    values: Mapping[str, str],
    type: int,
) -> Values:
    """Return what a request sets of a resource, None for a key that it deletes. Raises Refused.

    configs: those of the resource in the request. values: its present ones.
    """
    if len({config.name for config in configs}) != len(configs):
        raise Refused(E.INVALID_REQUEST, "duplicate configuration keys")
    if isinstance(body, IncrementalAlterConfigsRequest):
        return {each.name: _operated(each, values.get(each.name), type) for each in configs}
    for each in configs:
        if each.value is None:
            raise Refused(E.INVALID_REQUEST, f"null is not a valid value of {each.name}")
    replaced: Values = {each.name: each.value for each in configs}
    return replaced | {name: None for name in values if name not in replaced}


def _altered(
    state: ControllerState,
    body: IncrementalAlterConfigsRequest | AlterConfigsRequest,
    response: Callable[..., Any],
) -> list[Any]:
    responses = []
    seen: set[tuple[int, str]] = set()
    for each in body.resources:
        type, name = each.resource_type, each.resource_name
        error, message = E.NONE, None
        try:
            if (type, name) in seen:
                raise Refused(E.INVALID_REQUEST, "Each resource must appear at most once.")
            seen.add((type, name))
            _check_name(type, name)
            changed = changes(body, each.configs, state.image.config(type, name), type)
            _check_values(state, type, name, changed)
            _check_exists(state, type, name)
            if not body.validate_only:
                _write(state, type, name, changed)
        except Refused as refused:
            error, message = refused.error, refused.message
        responses.append(
            response(
                error_code=error, error_message=message, resource_type=type, resource_name=name
            )
        )
    return responses


def _check_name(type: int, name: str) -> None:
    if type not in ALTERED:
        raise Refused(E.INVALID_REQUEST, f"Unknown resource type {type}")
    if type == BROKER:
        if name and not name.isdecimal():
            raise Refused(E.INVALID_REQUEST, f"Invalid broker name {name}")
    elif not name:
        raise Refused(E.INVALID_REQUEST, NO_NAME[type])
    elif type == TOPIC and (reason := topic_name_error(name)) is not None:
        raise Refused(E.INVALID_TOPIC_EXCEPTION, reason)


def _check_exists(state: ControllerState, type: int, name: str) -> None:
    image = state.image
    if type == TOPIC and name not in image.topic_ids:
        raise Refused(E.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    nodes = image.brokers, image.controllers
    if type == BROKER and name and not any(int(name) in each for each in nodes):
        raise Refused(E.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def _operated(each: AlterableConfig, old: str | None, type: int) -> str | None:
    """Return the value after an operation, None for none. Raises Refused."""
    operation = each.config_operation
    if operation == DELETE:
        return None
    if operation not in (SET, APPEND, SUBTRACT):
        raise Refused(E.INVALID_REQUEST, f"Unknown operation type {operation}")
    if each.value is None:
        raise Refused(E.INVALID_REQUEST, f"Null value not supported for {each.name}")
    if operation == SET:
        return each.value
    key = (TOPIC_CONFIGS if type == TOPIC else BROKER_CONFIGS).get(each.name)
    if key is None or key.type is not ConfigType.LIST:
        verb = "APPEND" if operation == APPEND else "SUBTRACT"
        raise Refused(
            E.INVALID_CONFIG, f"Can't {verb} to key {each.name} because its type is not LIST."
        )
    before = (key.default or "") if old is None else old
    parts = dict.fromkeys(part for part in before.split(",") if part)
    for part in each.value.split(","):
        if operation == SUBTRACT:
            parts.pop(part, None)
        elif part:
            parts[part] = None
    return ",".join(parts)


def _check_values(state: ControllerState, type: int, name: str, values: Values) -> None:
    for key, value in values.items():
        if value is None:
            continue
        if len(value) > LONGEST_VALUE:
            raise Refused(
                E.INVALID_CONFIG,
                f"The configuration value of {key} is longer than {LONGEST_VALUE} characters.",
            )
    check = _CHECKS.get(type)
    if check is not None:
        check(state, state.image.config(type, name), values)
    if MIN_ISR in values:
        _check_min_isr(state, type, name, values[MIN_ISR])


def _check_topic(state: ControllerState, old: Mapping[str, str], changed: Values) -> None:
    """Check all values that the topic would have, also those that stay."""
    merged = {key: value for key, value in {**old, **changed}.items() if value is not None}
    for key, value in merged.items():
        keys = state.config.topic_configs
        reason = key_error(keys, "topic", key, value)
        if reason is not None and (key in changed or key in keys):
            raise Refused(E.INVALID_CONFIG, reason)
    reason = topic_error(lambda key: state.value_of_topic(merged, key))
    if reason is not None:
        raise Refused(E.INVALID_CONFIG, reason)


def _check_client_metrics(
    _state: ControllerState, _old: Mapping[str, str], changed: Values
) -> None:
    for key, value in changed.items():
        if value is None:
            continue
        if key not in CLIENT_METRICS_CONFIGS:
            raise Refused(E.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
        reason = resource_error(CLIENT_METRICS_CONFIGS[key], key, value)
        if reason is None and key == MATCH:
            reason = match_error(value)
        if reason is not None:
            raise Refused(E.INVALID_CONFIG, reason)
        reason = push_interval_error(value) if key == PUSH_INTERVAL else None
        if reason is not None:
            raise Refused(E.INVALID_REQUEST, reason)


_CHECKS: Final[Mapping[int, Callable[[ControllerState, Mapping[str, str], Values], None]]] = {
    TOPIC: _check_topic,
    CLIENT_METRICS: _check_client_metrics,
}
"""Type of resource -> what is checked of its values; the nodes that apply the others check them."""


def _check_min_isr(state: ControllerState, type: int, name: str, value: str | None) -> None:
    """With ELR, a change of one broker's or of none's `min.insync.replicas` has no meaning."""
    reason = None if value is None else config_error(BROKER_CONFIGS[MIN_ISR], MIN_ISR, value)
    if reason is not None:
        raise Refused(E.INVALID_CONFIG, reason)
    if type != BROKER or not state.image.features.get(ELR, 0):
        return
    if name:
        raise Refused(
            E.INVALID_CONFIG, f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        )
    if value is None:
        raise Refused(
            E.INVALID_CONFIG, f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        )


def _write(state: ControllerState, type: int, name: str, values: Values) -> None:
    old = state.image.config(type, name)
    changed = {
        key: value for key, value in values.items() if type == BROKER or old.get(key) != value
    }
    for key, value in changed.items():
        state.write(ConfigRecord(resource_type=type, resource_name=name, name=key, value=value))
    if MIN_ISR in changed and type in (TOPIC, BROKER):
        _update_elr(state, name if type == TOPIC else None)


def _update_elr(state: ControllerState, topic: str | None) -> None:
    """Make the ELR of partitions anew: there is none from min.insync.replicas on."""
    elr = state.image.indexes.elr
    partitions = dict.fromkeys(key for broker in list(elr) for key in elr.of(broker))
    for key in partitions:
        if topic in (None, state.image.topics[key[0]].name):
            change_partition(state, key, PartitionTarget())
