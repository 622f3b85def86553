"""CreatePartitions: adds partitions to topics.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
v3   no new fields │ THROTTLING_QUOTA_EXCEEDED may be returned
"""

from __future__ import annotations

from ...messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from ...messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request
from ..topics import Topic
from .create_topics import Problem, assignment_problem

E = ErrorCode


def handle(
    broker: Broker,
    _request: Request,
    body: CreatePartitionsRequest,
    _connection: Connection,
    now: float,
) -> CreatePartitionsResponse:
    """Add partitions to each topic, up to the requested count."""
    excess = broker.controller.partitions_error(_additional(broker, body))
    if excess is not None:
        return CreatePartitionsResponse(
            results=[_result(each.name, (E.POLICY_VIOLATION, excess)) for each in body.topics]
        )
    results = []
    for topic_request in body.topics:
        topic = broker.topics.get(topic_request.name)
        problem = _problem(broker, topic, topic_request)
        if problem is None and topic is not None and not body.validate_only:
            broker.controller.create_partitions(
                topic, _assignments(broker, topic, topic_request), now
            )
        results.append(_result(topic_request.name, problem))
    return CreatePartitionsResponse(results=results)


def _additional(broker: Broker, body: CreatePartitionsRequest) -> int:
    """Count the partitions that a request adds to the topics that exist."""
    found = ((broker.topics.get(each.name), each.count) for each in body.topics)
    return sum(max(0, count - len(topic.partitions)) for topic, count in found if topic is not None)


def _result(name: str, problem: Problem | None) -> CreatePartitionsTopicResult:
    error, message = problem or (E.NONE, None)
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=message)


def _assignments(
    broker: Broker, topic: Topic, topic_request: CreatePartitionsTopic
) -> list[list[int]]:
    if topic_request.assignments is not None:
        return [list(each.broker_ids) for each in topic_request.assignments]
    existing = len(topic.partitions)
    factor = len(topic.partitions[0].replicas)
    return broker.topics.spread(topic_request.count - existing, factor, existing)


def _problem(
    broker: Broker, topic: Topic | None, topic_request: CreatePartitionsTopic
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
    return assignment_problem(given, broker.topics.node_ids)


def error_response(body: CreatePartitionsRequest, error: ErrorCode) -> CreatePartitionsResponse:
    """Return a response with the error for each topic."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=error.name)
            for topic in body.topics
        ]
    )
