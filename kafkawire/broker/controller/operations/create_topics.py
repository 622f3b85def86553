"""Creates topics, or only validates them.

Law: a topic is created whole or not at all; what fails says why.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ....configs import TOPIC_CONFIGS, config_error
from ....configs.topic_names import topic_name_error
from ....messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from ....messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from ....protocol import ErrorCode
from ...configs.descriptions import described
from ...request import Request, Work
from ...topics import INTERNAL, OFFSETS_TOPIC
from ..controller import Controller

E = ErrorCode
DEFAULT: Final = -1
DEFAULTS_FROM: Final = 4
DETAILS_FROM: Final = 5
CONFIGS: Final = len(TOPIC_CONFIGS)
Shown = dict[frozenset[tuple[str, str]], list[CreatableTopicConfigs]]
"""Configs set for a topic -> all its configs: mostly equal for the topics of one request."""
Problem = tuple[ErrorCode, str]


def create_topics(
    controller: Controller, request: Request, body: CreateTopicsRequest, now: float
) -> CreateTopicsResponse | Work[CreateTopicsResponse]:
    """Create each topic, or only validate it."""
    excess = controller.partitions_error(sum(_count(controller, each) for each in body.topics))
    if excess is not None:
        names = dict.fromkeys(topic.name for topic in body.topics)
        return CreateTopicsResponse(
            topics=[_failed(name, E.POLICY_VIOLATION, excess) for name in names]
        )
    return _results(controller, body, request.version, now)


def _results(
    controller: Controller, body: CreateTopicsRequest, version: int, now: float
) -> Work[CreateTopicsResponse]:
    times = Counter(topic.name for topic in body.topics)
    results = {}
    shown: Shown = {}
    for topic in body.topics:
        yield CONFIGS + _count(controller, topic)
        if times[topic.name] > 1:
            results[topic.name] = _failed(
                topic.name, E.INVALID_REQUEST, f"Duplicate topic name: {topic.name}"
            )
        else:
            results[topic.name] = _create(
                controller, topic, body.validate_only, version, now, shown
            )
    return CreateTopicsResponse(topics=list(results.values()))


def _count(controller: Controller, topic: CreatableTopic) -> int:
    """Count the partitions of a topic before it is validated, as Kafka's controller does."""
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == DEFAULT:
        return controller.context.settings.number("num.partitions")
    return max(0, topic.num_partitions)


def _create(
    controller: Controller,
    topic: CreatableTopic,
    validate_only: bool,
    version: int,
    now: float,
    shown: Shown,
) -> CreatableTopicResult:
    problem = _problem(controller, topic)
    assignments: list[list[int]] | None = None
    if problem is None:
        assignments, problem = _assignments(controller, topic, version)
    if problem is not None:
        return _failed(topic.name, *problem)
    assert assignments is not None
    excess = None if validate_only else controller.partitions_error(len(assignments))
    if excess is not None:  # other requests have created topics meanwhile
        return _failed(topic.name, E.POLICY_VIOLATION, excess)
    configs = {each.name: each.value or "" for each in topic.configs}
    result = CreatableTopicResult(name=topic.name, error_message=None)
    if not validate_only and topic.name == OFFSETS_TOPIC:
        result.topic_id = controller.ensure_offsets_topic(now).topic_id
    elif not validate_only:
        made = controller.create_topic(topic.name, assignments, configs, now)
        result.topic_id = made.topic_id
    if version >= DETAILS_FROM:
        result.num_partitions = len(assignments)
        result.replication_factor = len(assignments[0])
        key = frozenset(configs.items())
        if key not in shown:
            shown[key] = _configs(controller, configs)
        result.configs = shown[key]
    return result


def _configs(controller: Controller, configs: dict[str, str]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=each.name,
            value=each.value,
            read_only=False,
            config_source=each.source,
            is_sensitive=False,
        )
        for each in described(controller.context.settings, TOPIC_CONFIGS, configs)
    ]


def _problem(controller: Controller, topic: CreatableTopic) -> Problem | None:
    reason = topic_name_error(topic.name)
    if reason is not None:
        return E.INVALID_TOPIC_EXCEPTION, reason
    if topic.name in controller.topics:
        return E.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists."
    colliding = controller.topics.colliding(topic.name)
    if colliding is not None:
        return (
            E.INVALID_TOPIC_EXCEPTION,
            f"Topic '{topic.name}' collides with existing topic: {colliding}",
        )
    if topic.name in INTERNAL and topic.name != OFFSETS_TOPIC:
        return E.INVALID_TOPIC_EXCEPTION, f"Topic '{topic.name}' is an internal topic."
    for each in topic.configs:
        reason = config_error(TOPIC_CONFIGS.get(each.name), each.name, each.value)
        if reason is not None:
            return E.INVALID_CONFIG, reason
    return None


def _assignments(
    controller: Controller, topic: CreatableTopic, version: int
) -> tuple[list[list[int]] | None, Problem | None]:
    topics, settings = controller.topics, controller.context.settings
    count, factor = topic.num_partitions, topic.replication_factor
    if topic.assignments:
        if count != DEFAULT or factor != DEFAULT:
            return None, (
                E.INVALID_REQUEST,
                "Both partition or replica counts and assignments are given.",
            )
        by_index = {each.partition_index: list(each.broker_ids) for each in topic.assignments}
        given = [by_index.get(index, []) for index in range(len(topic.assignments))]
        return given, assignment_problem(given, topics.node_ids)
    if version >= DEFAULTS_FROM:
        count = settings.number("num.partitions") if count == DEFAULT else count
        if factor == DEFAULT:
            factor = settings.number("default.replication.factor")
    if count <= 0:
        return None, (E.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if factor <= 0:
        return None, (E.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if factor > len(topics.node_ids):
        return None, (
            E.INVALID_REPLICATION_FACTOR,
            f"Replication factor {factor} exceeds the number of brokers, {len(topics.node_ids)}.",
        )
    return topics.spread(count, factor), None


def assignment_problem(given: list[list[int]], node_ids: list[int]) -> Problem | None:
    """Return the error of a replica assignment, None if it is valid."""
    for replicas in given:
        if not replicas or len(set(replicas)) != len(replicas) or len(replicas) != len(given[0]):
            return (
                E.INVALID_REPLICA_ASSIGNMENT,
                "All partitions must have the same number of distinct replicas.",
            )
        if not set(replicas) <= set(node_ids):
            return (
                E.INVALID_REPLICA_ASSIGNMENT,
                f"Unknown broker in the replica assignment {replicas}.",
            )
    return None


def _failed(name: str, error: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error, error_message=message)
