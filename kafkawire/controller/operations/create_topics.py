"""CreateTopics: by count, by explicit assignment, or validated only.

The topics of a request are created whole and together, or not at all; two topics never have
names that one metric could mean (`a.b` and `a_b`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from ...configs import ConfigSource, ResourceType
from ...configs.rules import key_error, topic_error
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
from ...primitives import ZERO_UUID, Message
from ...protocol import ErrorCode
from ..mutation_quotas import UNBOUNDED, MutationQuota
from ..state import ControllerState
from .assignments import Refused, charge, excess_partitions, given, placed

E = ErrorCode
T = TypeVar("T")
Work = Generator[None, None, T]
DEFAULT: Final = -1
EXCESS_RECORDS: Final = "Unable to perform excessively large batch operation."
Shown = dict[str, CreatableTopicConfigs]
"""The effective configs of a topic by name, in order."""


class _NewTopic(NamedTuple):
    """A topic that is to be created."""

    name: str
    topic_id: bytes
    configs: Mapping[str, str]
    partitions: Sequence[PartitionRegistration]

    def __len__(self) -> int:
        """Return the number of its records."""
        return 1 + len(self.configs) + len(self.partitions)

    def records(self) -> Iterator[Message]:
        """Iterate over its records."""
        yield TopicRecord(name=self.name, topic_id=self.topic_id)
        for name, value in self.configs.items():
            yield ConfigRecord(
                resource_type=ResourceType.TOPIC.value,
                resource_name=self.name,
                name=name,
                value=value,
            )
        for index, partition in enumerate(self.partitions):
            yield partition.record(self.topic_id, index)


def create_topics(
    state: ControllerState,
    body: CreateTopicsRequest,
    _version: int,
    _now: float,
    quota: MutationQuota = UNBOUNDED,
) -> Work[CreateTopicsResponse]:
    """Create the topics that are valid, all of them at once, or only validate them."""
    times = Counter(each.name for each in body.topics)
    excess = excess_partitions(state, sum(_count(state, each) for each in body.topics))
    defaults = _defaults(state)
    results = {}
    topics: list[_NewTopic] = []
    names: dict[str, str] = {}
    records = 0
    for topic in body.topics:
        try:
            if times[topic.name] > 1:
                raise Refused(E.INVALID_REQUEST, f"Duplicate topic name: {topic.name}")
            if excess is not None:
                raise excess
            _check_name(state, topic.name, names)
            new = yield from _new_topic(state, topic, quota, body.validate_only)
            records += len(new)
            if records > state.config.max_records_per_request:
                return _all_refused(body)
            topics.append(new)
            names[normalised(topic.name)] = topic.name
            results[topic.name] = _result(new, defaults)
        except Refused as error:
            results[topic.name] = CreatableTopicResult(
                name=topic.name, error_code=error.error, error_message=error.message
            )
        yield
    if not body.validate_only:
        all_records = chain.from_iterable(each.records() for each in topics)
        yield from state.write_together("CreateTopics", all_records, records)
    return CreateTopicsResponse(topics=list(results.values()))


def _all_refused(body: CreateTopicsRequest) -> CreateTopicsResponse:
    """Refuse a request that would write more records than one may."""
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=name, error_code=E.POLICY_VIOLATION, error_message=EXCESS_RECORDS
            )
            for name in dict.fromkeys(each.name for each in body.topics)
        ]
    )


def _count(state: ControllerState, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == DEFAULT:
        return int(state.broker_value("num.partitions"))
    return max(0, topic.num_partitions)


def _new_topic(
    state: ControllerState, topic: CreatableTopic, quota: MutationQuota, validate_only: bool
) -> Work[_NewTopic]:
    """Validate a topic and place its partitions. Raises Refused."""
    configs = _configs(state, topic)
    partitions = yield from _partitions(state, topic)
    charge(quota, len(partitions))
    topic_id = ZERO_UUID if validate_only else state.new_uuid()
    return _NewTopic(topic.name, topic_id, configs, partitions)


def _result(topic: _NewTopic, defaults: Shown) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=list((defaults | _own(topic.configs)).values()),
    )


def _check_name(state: ControllerState, name: str, others: Mapping[str, str]) -> None:
    """Check a name. others: those of the request, as metrics have them. Raises Refused."""
    reason = topic_name_error(name)
    if reason is not None:
        raise Refused(E.INVALID_TOPIC_EXCEPTION, reason)
    if name in state.image.topic_ids:
        raise Refused(E.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    metric = normalised(name)
    colliding = next(iter(state.image.colliding.get(metric, ())), others.get(metric))
    if colliding is not None:
        raise Refused(
            E.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {colliding}",
        )


def _configs(state: ControllerState, topic: CreatableTopic) -> dict[str, str]:
    configs: dict[str, str] = {}
    for each in topic.configs:
        reason = key_error(state.config.topic_configs, "topic", each.name, each.value)
        if reason is not None or each.value is None:
            raise Refused(E.INVALID_CONFIG, reason or "")
        configs[each.name] = each.value
    reason = topic_error(lambda key: state.value_of_topic(configs, key))
    if reason is not None:
        raise Refused(E.INVALID_CONFIG, reason)
    return configs


def _defaults(state: ControllerState) -> Shown:
    """Show the configs of a topic that has none of its own, and where they are from."""
    dynamic = state.image.config(ResourceType.BROKER, "")
    shown = {}
    for name, key in sorted(state.config.topic_configs.items()):
        if key.internal:
            continue
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


def _partitions(state: ControllerState, topic: CreatableTopic) -> Work[list[PartitionRegistration]]:
    if topic.assignments:
        return (yield from _manual(state, topic))
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
    partitions = []
    for each in placed(state, _count(state, topic), factor):
        partitions.append(each)
        yield
    return partitions


def _manual(state: ControllerState, topic: CreatableTopic) -> Work[list[PartitionRegistration]]:
    for value, name in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if value != DEFAULT:
            raise Refused(
                E.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    partitions: dict[int, PartitionRegistration] = {}
    factor = None
    for each in topic.assignments:
        if each.partition_index in partitions:
            raise Refused(
                E.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {each.partition_index}",
            )
        partitions[each.partition_index] = given(
            state, each.broker_ids, factor, each.partition_index
        )
        factor = len(each.broker_ids)
        yield
    if set(partitions) != set(range(len(partitions))):
        raise Refused(
            E.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [partitions[index] for index in range(len(partitions))]
