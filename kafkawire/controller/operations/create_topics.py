"""CreateTopics: by count, by explicit assignment, or validated only.

Law: a topic is created whole or not at all; two topics never have names that one metric could mean
(`a.b` and `a_b`). Many topics are created in slices: other requests are decided on in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from typing import Final

from ...configs import TOPIC_CONFIGS, ConfigSource, ResourceType, config_error
from ...configs.topic_names import normalised, topic_name_error
from ...messages.config_record import ConfigRecord
from ...messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from ...messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from ...messages.topic_record import TopicRecord
from ...metadata import PartitionRegistration
from ...protocol import ErrorCode
from ..state import ControllerState
from .assignments import Refused, excess_partitions, given, placed

E = ErrorCode
DEFAULT: Final = -1
SLICE: Final = 256
"""Partitions that are created before other requests are decided on; a topic may have more."""
Shown = dict[str, CreatableTopicConfigs]
"""The effective configs of a topic by name, in order."""


def create_topics(
    state: ControllerState, body: CreateTopicsRequest, _version: int, _now: float
) -> Generator[None, None, CreateTopicsResponse]:
    """Create each topic, or only validate it; yield after each slice of partitions."""
    times = Counter(each.name for each in body.topics)
    left = sum(_count(state, each) for each in body.topics)
    excess = excess_partitions(state, left)
    defaults = _defaults(state)
    room = SLICE
    results = {}
    for topic in body.topics:
        if room <= 0:
            yield
            room = SLICE
            excess = excess or excess_partitions(state, left)
            defaults = _defaults(state)
        count = _count(state, topic)
        left -= count
        room -= max(1, count)
        try:
            if times[topic.name] > 1:
                raise Refused(E.INVALID_REQUEST, f"Duplicate topic name: {topic.name}")
            if excess is not None:
                raise excess
            results[topic.name] = _create(state, topic, body.validate_only, defaults)
        except Refused as error:
            results[topic.name] = CreatableTopicResult(
                name=topic.name, error_code=error.error, error_message=error.message
            )
    return CreateTopicsResponse(topics=list(results.values()))


def _count(state: ControllerState, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == DEFAULT:
        return int(state.broker_value("num.partitions"))
    return max(0, topic.num_partitions)


def _create(
    state: ControllerState, topic: CreatableTopic, validate_only: bool, defaults: Shown
) -> CreatableTopicResult:
    _check_name(state, topic.name)
    configs = _configs(topic)
    partitions = _partitions(state, topic)
    result = CreatableTopicResult(
        name=topic.name,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=list((defaults | _own(configs)).values()),
    )
    if validate_only:
        return result
    result.topic_id = state.new_uuid()
    state.write(TopicRecord(name=topic.name, topic_id=result.topic_id))
    for name, value in configs.items():
        state.write(
            ConfigRecord(
                resource_type=ResourceType.TOPIC.value,
                resource_name=topic.name,
                name=name,
                value=value,
            )
        )
    for index, partition in enumerate(partitions):
        state.write(partition.record(result.topic_id, index))
    return result


def _check_name(state: ControllerState, name: str) -> None:
    reason = topic_name_error(name)
    if reason is not None:
        raise Refused(E.INVALID_TOPIC_EXCEPTION, reason)
    if name in state.image.topic_ids:
        raise Refused(E.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    colliding = next(iter(state.image.colliding.get(normalised(name), ())), None)
    if colliding is not None:
        raise Refused(
            E.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {colliding}",
        )


def _configs(topic: CreatableTopic) -> dict[str, str]:
    configs: dict[str, str] = {}
    for each in topic.configs:
        reason = config_error(TOPIC_CONFIGS.get(each.name), each.name, each.value)
        if reason is not None or each.value is None:
            raise Refused(E.INVALID_CONFIG, reason or "")
        configs[each.name] = each.value
    return configs


def _defaults(state: ControllerState) -> Shown:
    """Show the configs of a topic that has none of its own, and where they are from."""
    dynamic = state.image.config(ResourceType.BROKER, "")
    shown = {}
    for name, key in sorted(TOPIC_CONFIGS.items()):
        synonym = key.synonym or ""
        if synonym in dynamic:
            value, source = dynamic[synonym], ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        elif synonym in state.config.static:
            value, source = state.config.static[synonym], ConfigSource.STATIC_BROKER_CONFIG
        else:
            value, source = key.default or "", ConfigSource.DEFAULT_CONFIG
        shown[name] = _config(name, value, source)
    return shown


def _own(configs: Mapping[str, str]) -> Shown:
    """Show the configs that a topic has itself."""
    source = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return {name: _config(name, value, source) for name, value in configs.items()}


def _config(name: str, value: str, source: ConfigSource) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=name, value=value, read_only=False, config_source=source, is_sensitive=False
    )


def _partitions(state: ControllerState, topic: CreatableTopic) -> list[PartitionRegistration]:
    if topic.assignments:
        return _manual(state, topic)
    factor, count = topic.replication_factor, topic.num_partitions
    if factor < DEFAULT or factor == 0:
        raise Refused(
            E.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < DEFAULT or count == 0:
        raise Refused(
            E.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    if factor == DEFAULT:
        factor = int(state.broker_value("default.replication.factor"))
    return placed(state, _count(state, topic), factor)


def _manual(state: ControllerState, topic: CreatableTopic) -> list[PartitionRegistration]:
    for value, name in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if value != DEFAULT:
            raise Refused(
                E.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    made: dict[int, PartitionRegistration] = {}
    factor = None
    for each in topic.assignments:
        if each.partition_index in made:
            raise Refused(
                E.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {each.partition_index}",
            )
        made[each.partition_index] = given(state, each.broker_ids, factor, each.partition_index)
        factor = len(each.broker_ids)
    if set(made) != set(range(len(made))):
        raise Refused(
            E.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [made[index] for index in range(len(made))]
