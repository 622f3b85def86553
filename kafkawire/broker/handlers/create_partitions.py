"""CreatePartitions: topics grow.

v0   the first
v1   no new fields │ throttled after the answer
v2   flexible
v3   no new fields │ THROTTLING_QUOTA_EXCEEDED may come
"""

from __future__ import annotations

from ...messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from ...messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..connection import Connection
from ..request import Answer, Request
from ..topics import Topic
from .create_topics import Problem, assignment_problem

E = ErrorCode


def handle(broker: Broker, request: Request, _connection: Connection, now: float) -> Answer:
    """Add partitions to each topic, up to the number that is asked for."""
    body = request.body
    assert isinstance(body, CreatePartitionsRequest)
    excess = broker.cluster.creation.excess(_additional(broker, body))
    if excess is not None:
        return CreatePartitionsResponse(
            results=[_result(each.name, (E.POLICY_VIOLATION, excess)) for each in body.topics]
        )
    results = []
    for asked in body.topics:
        topic = broker.cluster.topics.get(asked.name)
        problem = _problem(broker, topic, asked)
        if problem is None and topic is not None and not body.validate_only:
            broker.cluster.creation.extend(topic, _assignments(broker, topic, asked), now)
        results.append(_result(asked.name, problem))
    return CreatePartitionsResponse(results=results)


def _additional(broker: Broker, body: CreatePartitionsRequest) -> int:
    """Count the partitions that a request adds to the topics that exist."""
    found = ((broker.cluster.topics.get(each.name), each.count) for each in body.topics)
    return sum(max(0, count - len(topic.partitions)) for topic, count in found if topic is not None)


def _result(name: str, problem: Problem | None) -> CreatePartitionsTopicResult:
    error, message = problem or (E.NONE, None)
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=message)


def _assignments(broker: Broker, topic: Topic, asked: CreatePartitionsTopic) -> list[list[int]]:
    if asked.assignments is not None:
        return [list(each.broker_ids) for each in asked.assignments]
    there = len(topic.partitions)
    factor = len(topic.partitions[0].replicas)
    return broker.cluster.topics.spread(asked.count - there, factor, there)


def _problem(broker: Broker, topic: Topic | None, asked: CreatePartitionsTopic) -> Problem | None:
    if topic is None:
        return E.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
    there = len(topic.partitions)
    if asked.count == there:
        return E.INVALID_PARTITIONS, f"Topic already has {there} partition(s)."
    if asked.count < there:
        return (
            E.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {there} partition(s); {asked.count} would not "
            "be an increase.",
        )
    if asked.assignments is None:
        return None
    if len(asked.assignments) != asked.count - there:
        return E.INVALID_REPLICA_ASSIGNMENT, "One assignment for each new partition is needed."
    given = [list(each.broker_ids) for each in asked.assignments]
    return assignment_problem(given, broker.cluster.topics.node_ids)


def refused(body: CreatePartitionsRequest, error: ErrorCode) -> CreatePartitionsResponse:
    """Answer with an error for each topic."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=error.name)
            for topic in body.topics
        ]
    )
