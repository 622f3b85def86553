"""ApiVersions, and requests that only read: brokers, coordinators, groups, configurations."""

from __future__ import annotations

from typing import Final

from ...display import host_and_port
from ...messages.api_key import ApiKey
from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.api_versions_response import ApiVersionsResponse
from ...messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from ...messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from ...messages.describe_cluster_request import DescribeClusterRequest
from ...messages.describe_cluster_response import DescribeClusterResponse
from ...messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ...messages.describe_configs_response import DescribeConfigsResponse
from ...messages.describe_groups_request import DescribeGroupsRequest
from ...messages.describe_groups_response import DescribeGroupsResponse
from ...messages.describe_transactions_request import DescribeTransactionsRequest
from ...messages.describe_transactions_response import DescribeTransactionsResponse
from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...messages.find_coordinator_response import FindCoordinatorResponse
from ...messages.list_groups_request import ListGroupsRequest
from ...messages.list_groups_response import ListGroupsResponse
from ...messages.list_transactions_request import ListTransactionsRequest
from ...messages.list_transactions_response import ListTransactionsResponse
from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...messages.metadata_response import MetadataResponse
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ..behaviour import (
    CONSUMER_GROUPS_OFF,
    Behaviour,
    Feature,
    NotOffered,
    api_name,
    expect,
    expect_error,
    expect_success,
    expect_that,
)
from ..connection import SOFTWARE
from ..session import TRANSACTION, Session

TOPIC: Final = 2
"""Resource type."""
RANGES_OF_ALL: Final = (ApiKey.API_VERSIONS, ApiKey.METADATA)
DEAD: Final = "Dead"
NOT_FOUND_FROM: Final = 6
"""DescribeGroups 6 has an error for a group that does not exist (KIP-1043)."""
BATCHED: Final = 4
"""FindCoordinator 4 has several keys (KIP-699)."""


def _api_versions(version: int) -> ApiVersionsRequest:
    if version < 3:
        return ApiVersionsRequest()
    return ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version="1")


async def _lists_apis(s: Session, version: int) -> None:
    response = await s.send(_api_versions(version), version, ApiVersionsResponse)
    expect_success(response.error_code, "error code")
    keys = [each.api_key for each in response.api_keys]
    expect(len(set(keys)), len(keys), "different keys among those listed")
    for api in RANGES_OF_ALL:
        expect_that(api in keys, f"{api_name(api)} is not listed")
    for each in response.api_keys:
        if each.min_version > each.max_version:
            expect_that(each.max_version < 0, f"key {each.api_key}: its versions are in no order")


async def _lists_apis_for_unknown_version(s: Session, version: int) -> None:
    """KIP-511: a version that the broker does not have gets a body of version 0."""
    beyond = s.versions[ApiKey.API_VERSIONS][-1]
    connection = await s.connection()
    data = bytearray(connection.encoded(_api_versions(version), version))
    data[6:8] = (0x7FFF).to_bytes(2, "big")
    await connection.write(bytes(data))
    frame = connection.decoded(await connection.read(), ApiKey.API_VERSIONS, 0)
    body = frame.body
    assert isinstance(body, ApiVersionsResponse)
    expect_error(body.error_code, ErrorCode.UNSUPPORTED_VERSION, "error code")
    ranges = {each.api_key: each.max_version for each in body.api_keys}
    expect_that(ranges.get(ApiKey.API_VERSIONS, -1) >= beyond, "its own versions are not listed")


async def _lists_brokers(s: Session, version: int) -> None:
    request = MetadataRequest(topics=[] if version == 0 else None)
    response = await s.send(request, version, MetadataResponse)
    nodes = [each.node_id for each in response.brokers]
    expect_that(bool(nodes), "no broker is listed")
    expect(len(set(nodes)), len(nodes), "different brokers among those listed")
    for topic in response.topics:
        for each in topic.partitions:
            expect_that(
                each.error_code != 0 or each.leader_id in nodes,
                f"{topic.name}-{each.partition_index}: leader {each.leader_id} is not listed",
            )


async def _does_not_create(s: Session, version: int) -> None:
    name = s.name()
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    for _ in range(2):  # the second would see the topic that the first created
        topic = only((await s.send(request, version, MetadataResponse)).topics, name)
        expect_error(topic.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "error code")


async def _describes_cluster(s: Session, version: int) -> None:
    response = await s.send(DescribeClusterRequest(), version, DescribeClusterResponse)
    expect_success(response.error_code, "error code")
    expect_that(bool(response.cluster_id), "the cluster has no id")
    expect_that(bool(response.brokers), "no broker is listed")


async def _finds_coordinator(s: Session, version: int) -> None:
    for kind in (0, TRANSACTION) if version else (0,):
        key = s.name()

        async def attempt(key: str = key, kind: int = kind) -> tuple[int, tuple[str, int]]:
            if version < BATCHED:
                request = FindCoordinatorRequest(key=key, key_type=kind)
                response = await s.send(request, version, FindCoordinatorResponse)
                return response.error_code, (response.host, response.port)
            request = FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)
            response = await s.send(request, version, FindCoordinatorResponse)
            coordinator = only(response.coordinators, key)
            expect(coordinator.key, key, "key")
            return coordinator.error_code, (coordinator.host, coordinator.port)

        host, port = await s.settled(attempt, "error code")
        brokers = {(each.host, each.port) for each in (await s.metadata([])).brokers}
        expect_that(
            (host, port) in brokers, f"{host_and_port(host, port)} is not a broker of Metadata"
        )


async def _lists_groups(s: Session, version: int) -> None:
    async def attempt() -> tuple[int, ListGroupsResponse]:
        response = await s.send(ListGroupsRequest(), version, ListGroupsResponse)
        return response.error_code, response

    await s.settled(attempt, "error code")


async def _describes_dead_group(s: Session, version: int) -> None:
    name = s.name()
    to = await s.coordinator(name)
    request = DescribeGroupsRequest(groups=[name])
    group = only((await to.send(request, version, DescribeGroupsResponse)).groups, name)
    missing = version >= NOT_FOUND_FROM
    expected = ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE
    expect_error(group.error_code, expected, "error code")
    expect(group.group_state, DEAD, "state")


async def _describes_no_consumer_group(s: Session, version: int) -> None:
    name = s.name()
    to = await s.coordinator(name)
    request = ConsumerGroupDescribeRequest(group_ids=[name])
    group = only((await to.send(request, version, ConsumerGroupDescribeResponse)).groups, name)
    if group.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise NotOffered(CONSUMER_GROUPS_OFF)
    expect_error(group.error_code, ErrorCode.GROUP_ID_NOT_FOUND, "error code")


async def _describes_topic_configs(s: Session, version: int) -> None:
    topic = await s.topic(configs={"retention.ms": "86400000"})
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic.name, configuration_keys=None
    )
    response = await s.send(
        DescribeConfigsRequest(resources=[resource]), version, DescribeConfigsResponse
    )
    result = only(response.results, topic.name)
    expect_success(result.error_code, "error code")
    values = {each.name: each.value for each in result.configs}
    expect(values.get("retention.ms"), "86400000", "retention.ms")
    expect_that("cleanup.policy" in values, "cleanup.policy is not described")


async def _describes_wanted_configs(s: Session, version: int) -> None:
    topic = await s.topic()
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic.name, configuration_keys=["retention.ms"]
    )
    response = await s.send(
        DescribeConfigsRequest(resources=[resource]), version, DescribeConfigsResponse
    )
    names = [each.name for each in only(response.results, topic.name).configs]
    expect(names, ["retention.ms"], "configurations")


async def _lists_transactions(s: Session, version: int) -> None:
    async def attempt() -> tuple[int, ListTransactionsResponse]:
        response = await s.send(ListTransactionsRequest(), version, ListTransactionsResponse)
        return response.error_code, response

    await s.settled(attempt, "error code")


async def _describes_no_transaction(s: Session, version: int) -> None:
    name = s.name()
    to = await s.coordinator(name, TRANSACTION)
    request = DescribeTransactionsRequest(transactional_ids=[name])
    response = await to.send(request, version, DescribeTransactionsResponse)
    state = only(response.transaction_states, name)
    expect_error(state.error_code, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "error code")


BEHAVIOURS: Final = (
    Behaviour(Feature.APIS, ApiKey.API_VERSIONS, "lists its APIs", _lists_apis),
    Behaviour(
        Feature.APIS,
        ApiKey.API_VERSIONS,
        "responds to a version that it does not have with UNSUPPORTED_VERSION in version 0",
        _lists_apis_for_unknown_version,
        lowest=3,
    ),
    Behaviour(
        Feature.APIS,
        ApiKey.METADATA,
        "lists its brokers and topics with their leaders",
        _lists_brokers,
    ),
    Behaviour(
        Feature.TOPICS,
        ApiKey.METADATA,
        "creates no topic if the request does not allow it",
        _does_not_create,
        lowest=4,
    ),
    Behaviour(Feature.APIS, ApiKey.DESCRIBE_CLUSTER, "has an id and brokers", _describes_cluster),
    Behaviour(
        Feature.APIS,
        ApiKey.FIND_COORDINATOR,
        "finds coordinators among its brokers",
        _finds_coordinator,
    ),
    Behaviour(Feature.GROUPS, ApiKey.LIST_GROUPS, "lists groups", _lists_groups),
    Behaviour(
        Feature.GROUPS,
        ApiKey.DESCRIBE_GROUPS,
        "describes a group that does not exist as dead",
        _describes_dead_group,
    ),
    Behaviour(
        Feature.CONSUMER_GROUPS,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        "does not describe a group that does not exist",
        _describes_no_consumer_group,
    ),
    Behaviour(
        Feature.TOPICS,
        ApiKey.DESCRIBE_CONFIGS,
        "describes the configuration of a topic",
        _describes_topic_configs,
    ),
    Behaviour(
        Feature.TOPICS,
        ApiKey.DESCRIBE_CONFIGS,
        "describes only the keys that are wanted",
        _describes_wanted_configs,
    ),
    Behaviour(
        Feature.TRANSACTIONS, ApiKey.LIST_TRANSACTIONS, "lists transactions", _lists_transactions
    ),
    Behaviour(
        Feature.TRANSACTIONS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        "does not describe a transactional id that it does not have",
        _describes_no_transaction,
    ),
)
