"""Creating, changing and deleting topics."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from ...messages.api_key import ApiKey
from ...messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from ...messages.create_partitions_response import CreatePartitionsResponse
from ...messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from ...messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from ...messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from ...messages.delete_topics_response import DeleteTopicsResponse
from ...messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ...messages.describe_configs_response import DescribeConfigsResponse
from ...messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ...messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ..behaviour import Behaviour, Feature, expect, expect_error, expect_success, expect_that
from ..session import Session

TOPIC: Final = 2
SET: Final = 0
"""Resource type, operation."""
NO_REPLICAS: Final = 30_000
BY_ID: Final = 6
"""DeleteTopics 6 has topic ids (KIP-516)."""


async def _created(
    s: Session, version: int, *, only_check: bool = False, **fields: Any
) -> CreatableTopicResult:
    wanted: dict[str, Any] = {
        "name": s.name(),
        "num_partitions": 1,
        "replication_factor": 1,
    } | fields
    request = CreateTopicsRequest(
        topics=[CreatableTopic(**wanted)], timeout_ms=s.timeout_ms, validate_only=only_check
    )
    response = await s.send(request, version, CreateTopicsResponse)
    return only(response.topics, str(wanted["name"]))


async def _creates(s: Session, version: int) -> None:
    topic = await s.topic(partitions=3, version=version)
    described = await s.described(topic.name)
    expect(
        [each.partition_index for each in sorted(described.partitions, key=_index)],
        [0, 1, 2],
        "partitions",
    )


def _index(partition: Any) -> int:
    return int(partition.partition_index)


async def _refuses_existing(s: Session, version: int) -> None:
    topic = await s.topic()
    result = await _created(s, version, name=topic.name)
    expect_error(result.error_code, ErrorCode.TOPIC_ALREADY_EXISTS, "error code")


async def _only_validates(s: Session, version: int) -> None:
    name = s.name()
    expect_success(
        (await _created(s, version, only_check=True, name=name)).error_code, "error code"
    )
    topic = only((await s.metadata([name])).topics, name)
    expect_error(topic.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Metadata afterwards")


def _refuses(
    expected: ErrorCode, **fields: Any
) -> Callable[[Session, int], Coroutine[Any, Any, None]]:
    async def check(s: Session, version: int) -> None:
        result = await _created(s, version, **fields)
        expect_error(result.error_code, expected, "error code")

    return check


async def _deletes(s: Session, version: int) -> None:
    topic = await s.topic()
    names = [topic.name]
    for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        request = DeleteTopicsRequest(timeout_ms=s.timeout_ms)
        if version >= BY_ID:
            request.topics = [DeleteTopicState(name=each) for each in names]
        else:
            request.topic_names = names
        response = await s.send(request, version, DeleteTopicsResponse)
        expect_error(only(response.responses, topic.name).error_code, expected, "error code")


async def _deletes_by_id(s: Session, version: int) -> None:
    topic = await s.topic()
    for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID):
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=None, topic_id=topic.id)], timeout_ms=s.timeout_ms
        )
        response = await s.send(request, version, DeleteTopicsResponse)
        expect_error(only(response.responses, topic.name).error_code, expected, "error code")


async def _adds_partitions(s: Session, version: int) -> None:
    topic = await s.topic()
    for count, expected in ((2, ErrorCode.NONE), (1, ErrorCode.INVALID_PARTITIONS)):
        wanted = CreatePartitionsTopic(name=topic.name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=s.timeout_ms)
        response = await s.send(request, version, CreatePartitionsResponse)
        expect_error(only(response.results, topic.name).error_code, expected, f"{count} partitions")


async def _altered(s: Session, version: int, topic: str, key: str, value: str) -> int:
    config = AlterableConfig(name=key, config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = await s.send(request, version, IncrementalAlterConfigsResponse)
    return only(response.responses, topic).error_code


async def _alters_configs(s: Session, version: int) -> None:
    topic = await s.topic()
    expect_success(await _altered(s, version, topic.name, "retention.ms", "1234567"), "error code")
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic.name, configuration_keys=["retention.ms"]
    )

    async def attempt() -> tuple[int, str | None]:
        response = await s.send(
            DescribeConfigsRequest(resources=[resource]),
            s.newest(ApiKey.DESCRIBE_CONFIGS, 4),
            DescribeConfigsResponse,
        )
        value = only(only(response.results, topic.name).configs, "retention.ms").value
        return ErrorCode.NONE if value == "1234567" else ErrorCode.LEADER_NOT_AVAILABLE, value

    await s.settled(attempt, "retention.ms afterwards")


async def _refuses_unknown_config(s: Session, version: int) -> None:
    topic = await s.topic()
    code = await _altered(s, version, topic.name, "kafkawire.no.such.key", "1")
    expect_error(code, ErrorCode.INVALID_CONFIG, "error code")


async def _refuses_invalid_config(s: Session, version: int) -> None:
    topic = await s.topic()
    code = await _altered(s, version, topic.name, "retention.ms", "soon")
    expect_error(code, ErrorCode.INVALID_CONFIG, "error code")


async def _has_ids(s: Session, version: int) -> None:
    first, second = await s.topic(version=version), await s.topic(version=version)
    expect_that(any(first.id), "a topic has no id")
    expect_that(first.id != second.id, "two topics have the same id")


T, A = Feature.TOPICS, ApiKey
BEHAVIOURS: Final = (
    Behaviour(T, A.CREATE_TOPICS, "creates a topic with as many partitions as requested", _creates),
    Behaviour(
        T, A.CREATE_TOPICS, "gives each topic an id of its own", _has_ids, needs={A.METADATA: 10}
    ),
    Behaviour(T, A.CREATE_TOPICS, "refuses a topic that exists", _refuses_existing),
    Behaviour(T, A.CREATE_TOPICS, "only validates if that is requested", _only_validates, lowest=1),
    Behaviour(
        T,
        A.CREATE_TOPICS,
        "refuses a name with a character that is not allowed",
        _refuses(ErrorCode.INVALID_TOPIC_EXCEPTION, name="kafkawire/conformance"),
    ),
    Behaviour(
        T,
        A.CREATE_TOPICS,
        "refuses a topic without partitions",
        _refuses(ErrorCode.INVALID_PARTITIONS, num_partitions=0),
    ),
    Behaviour(
        T,
        A.CREATE_TOPICS,
        "refuses more replicas than there are brokers",
        _refuses(ErrorCode.INVALID_REPLICATION_FACTOR, replication_factor=NO_REPLICAS),
    ),
    Behaviour(T, A.DELETE_TOPICS, "deletes a topic, once", _deletes),
    Behaviour(T, A.DELETE_TOPICS, "deletes a topic by id, once", _deletes_by_id, lowest=BY_ID),
    Behaviour(T, A.CREATE_PARTITIONS, "adds partitions, and removes none", _adds_partitions),
    Behaviour(
        T,
        A.INCREMENTAL_ALTER_CONFIGS,
        "alters a configuration",
        _alters_configs,
        needs={A.DESCRIBE_CONFIGS: 0},
    ),
    Behaviour(
        T, A.INCREMENTAL_ALTER_CONFIGS, "refuses a key that does not exist", _refuses_unknown_config
    ),
    Behaviour(
        T,
        A.INCREMENTAL_ALTER_CONFIGS,
        "refuses a value that is not of the key's type",
        _refuses_invalid_config,
    ),
)
