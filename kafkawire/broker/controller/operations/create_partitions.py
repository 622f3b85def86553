"""Adds partitions to topics.

Law: partitions are only added; those that exist stay as they are.
"""

from __future__ import annotations

from ....messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from ....messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ....protocol import ErrorCode
from ...request import Request
from ...topics import Topic
from ..controller import Controller
from .create_topics import Problem, assignment_problem

E = ErrorCode


def create_partitions(
    controller: Controller, _request: Request, body: CreatePartitionsRequest, now: float
) -> CreatePartitionsResponse:
    """Add partitions to each topic, up to the requested count."""
    excess = controller.partitions_error(_additional(controller, body))
    if excess is not None:
        return CreatePartitionsResponse(
            results=[_result(each.name, (E.POLICY_VIOLATION, excess)) for each in body.topics]
        )
    results = []
    for topic_request in body.topics:
        topic = controller.topics.get(topic_request.name)
        problem = _problem(controller, topic, topic_request)
        if problem is None and topic is not None and not body.validate_only:
            controller.create_partitions(topic, _assignments(controller, topic, topic_request), now)
        results.append(_result(topic_request.name, problem))
    return CreatePartitionsResponse(results=results)


def _additional(controller: Controller, body: CreatePartitionsRequest) -> int:
    """Count the partitions that a request adds to the topics that exist."""
    found = ((controller.topics.get(each.name), each.count) for each in body.topics)
    return sum(max(0, count - len(topic.partitions)) for topic, count in found if topic is not None)


def _result(name: str, problem: Problem | None) -> CreatePartitionsTopicResult:
    error, message = problem or (E.NONE, None)
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=message)


def _assignments(
    controller: Controller, topic: Topic, topic_request: CreatePartitionsTopic
) -> list[list[int]]:
    if topic_request.assignments is not None:
        return [list(each.broker_ids) for each in topic_request.assignments]
    existing = len(topic.partitions)
    factor = len(topic.partitions[0].replicas)
    return controller.topics.spread(topic_request.count - existing, factor, existing)


def _problem(
    controller: Controller, topic: Topic | None, topic_request: CreatePartitionsTopic
) -> Problem | None:
    if topic is None:
        return E.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
    existing = len(topic.partitions)
    if topic_request.count == existing:
        return E.INVALID_PARTITIONS, f"Topic already has {existing} partition(s)."
    if topic_request.count < existing:
        return (
            E.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {existing} partition(s); "
            f"{topic_request.count} would not be an increase.",
        )
    if topic_request.assignments is None:
        return None
    if len(topic_request.assignments) != topic_request.count - existing:
        return E.INVALID_REPLICA_ASSIGNMENT, "One assignment for each new partition is needed."
    given = [list(each.broker_ids) for each in topic_request.assignments]
    return assignment_problem(given, controller.topics.node_ids)
