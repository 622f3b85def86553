"""CreatePartitions and DeleteTopics, and what changes of topics cost their client (KIP-599).

Partitions are numbered without gaps; a topic is deleted with its partitions and configs. Brokers
send these requests in an Envelope, which names the client, where clients have quotas of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import repeat
from typing import Any, Final, NamedTuple

from ...messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from ...messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ...messages.create_topics_request import CreateTopicsRequest
from ...messages.delete_topics_request import DeleteTopicsRequest
from ...messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from ...messages.remove_topic_record import RemoveTopicRecord
from ...metadata import PartitionRegistration, TopicImage
from ...primitives import ZERO_UUID, Message
from ...protocol import ErrorCode
from ..mutation_quotas import UNBOUNDED, MutationQuota
from ..state import ControllerState
from .assignments import Refused, charge, excess_partitions, given, placed
from .create_topics import create_topics

E = ErrorCode
TOPICS_FROM = 6
"""The version of DeleteTopics that has topic ids."""


def create_partitions(
    state: ControllerState,
    body: CreatePartitionsRequest,
    _version: int,
    _now: float,
    quota: MutationQuota = UNBOUNDED,
) -> Generator[None, None, CreatePartitionsResponse]:
    """Add partitions to each topic, up to the requested count: to all that are valid, at once."""
    results = []
    seen: set[str] = set()
    records: list[Message] = []
    additional = sum(_additional(state, each) for each in body.topics)
    excess = excess_partitions(state, additional, "additional partitions")
    for each in body.topics:
        error, message = E.NONE, None
        try:
            if each.name in seen:
                raise Refused(E.INVALID_REQUEST, "Duplicate topic name.")
            seen.add(each.name)
            if excess is not None:
                raise excess
            topic = _growing(state, each)
            added = yield from _new_partitions(state, topic, each, quota)
            first = len(topic.partitions)
            records += [one.record(topic.topic_id, at) for at, one in enumerate(added, first)]
        except Refused as refused:
            error, message = refused.error, refused.message
        results.append(
            CreatePartitionsTopicResult(name=each.name, error_code=error, error_message=message)
        )
        yield
    if not body.validate_only:
        yield from state.write_together("CreatePartitions", records, len(records))
    return CreatePartitionsResponse(results=results)


def _additional(state: ControllerState, wanted: CreatePartitionsTopic) -> int:
    topic = state.image.topic(wanted.name)
    return 0 if topic is None else max(0, wanted.count - len(topic.partitions))


def _growing(state: ControllerState, wanted: CreatePartitionsTopic) -> TopicImage:
    """Find a topic that may have so many partitions. Raises Refused."""
    topic = state.image.topic(wanted.name)
    if topic is None:
        raise Refused(
            E.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    existing = len(topic.partitions)
    if wanted.count == existing:
        raise Refused(E.INVALID_PARTITIONS, f"Topic already has {existing} partition(s).")
    if wanted.count < existing:
        raise Refused(
            E.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {existing} partition(s); {wanted.count} would "
            "not be an increase.",
        )
    return topic


def _new_partitions(
    state: ControllerState, topic: TopicImage, wanted: CreatePartitionsTopic, quota: MutationQuota
) -> Generator[None, None, list[PartitionRegistration]]:
    existing = len(topic.partitions)
    additional = wanted.count - existing
    factor = len(next(iter(topic.partitions.values())).replicas)
    if wanted.assignments is not None and len(wanted.assignments) != additional:
        raise Refused(
            E.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(wanted.assignments)} assignment(s) were specified.",
        )
    charge(quota, additional)
    partitions: Iterable[PartitionRegistration]
    if wanted.assignments is None:
        partitions = placed(state, additional, factor)
    else:
        partitions = (
            given(state, each.broker_ids, factor, index)
            for index, each in enumerate(wanted.assignments, existing)
        )
    added = []
    for each in partitions:
        added.append(each)
        yield
    return added


def delete_topics(
    state: ControllerState,
    body: DeleteTopicsRequest,
    version: int,
    _now: float,
    quota: MutationQuota = UNBOUNDED,
) -> Generator[None, None, DeleteTopicsResponse]:
    """Delete each topic, by name or by id: all that exist, at once.

    A record removes a topic with its partitions, each of which counts in a slice.
    """
    if version >= TOPICS_FROM:
        wanted = [(each.name, each.topic_id) for each in body.topics]
    else:
        wanted = [(name, ZERO_UUID) for name in body.topic_names]
    results: list[DeletableTopicResult] = []
    deleted: dict[bytes, TopicImage] = {}
    for name, topic_id in wanted:
        try:
            topic = _existing(state, name, topic_id, deleted)
            charge(quota, len(topic.partitions))
            deleted[topic.topic_id] = topic
            results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
        except Refused as refused:
            results.append(
                DeletableTopicResult(
                    name=name,
                    topic_id=topic_id,
                    error_code=refused.error,
                    error_message=refused.message,
                )
            )
        yield
    partitions = [len(each.partitions) for each in deleted.values()]
    count = len(deleted) + sum(partitions) if len(deleted) > 1 else 1  # one is not divided
    records = (RemoveTopicRecord(topic_id=each) for each in deleted)
    writing = state.write_together("DeleteTopics", records, count)
    for _, removed in zip(writing, partitions, strict=True):
        yield from repeat(None, 1 + removed)
    return DeleteTopicsResponse(responses=results)


def _existing(
    state: ControllerState, name: str | None, topic_id: bytes, deleted: Mapping[bytes, TopicImage]
) -> TopicImage:
    """Find a topic that may be deleted, and is not deleted by the same request. Raises Refused."""
    if (name is None) == (topic_id == ZERO_UUID):
        raise Refused(E.INVALID_REQUEST, "Either the name or the id of a topic is needed.")
    topic = state.image.topics.get(topic_id) if name is None else state.image.topic(name)
    if topic is None or topic.topic_id in deleted:
        if name is None:
            raise Refused(E.UNKNOWN_TOPIC_ID)
        reason = "This server does not host this topic-partition."
        raise Refused(E.UNKNOWN_TOPIC_OR_PARTITION, reason)
    if len(deleted) == state.config.max_records_per_request:  # as in Kafka, not POLICY_VIOLATION
        raise Refused(E.UNKNOWN_SERVER_ERROR)
    return topic


Work = Generator[None, None, Any]


class Mutation(NamedTuple):
    """A request that creates or deletes partitions.

    strict_from: the version of the request that has THROTTLING_QUOTA_EXCEEDED.
    """

    operation: Callable[[ControllerState, Any, int, float, MutationQuota], Work]
    strict_from: int


MUTATIONS: Final[Mapping[type[Message], Mutation]] = {
    CreatePartitionsRequest: Mutation(create_partitions, 3),
    CreateTopicsRequest: Mutation(create_topics, 6),
    DeleteTopicsRequest: Mutation(delete_topics, 5),
}


def charged(
    state: ControllerState,
    request: Message,
    version: int,
    client: tuple[str, str | None],
    now: float,
) -> Work:
    """Carry out a request at the expense of a client. client: user and client id."""
    mutation = MUTATIONS[type(request)]
    strict = version >= mutation.strict_from
    quota = state.mutation_quotas.of_client(state.image.quotas, *client, strict, now)
    response = yield from mutation.operation(state, request, version, now, quota)
    response.throttle_time_ms = quota.throttle_ms
    return response
