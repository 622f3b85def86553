"""The cluster itself: brokers, their versions and log directories, the quorum of controllers.

An API or version that a broker lacks is RequestFailed with Reason.NO_VERSION.
"""

from __future__ import annotations

from typing import Final

from ...client.failures import RequestFailed
from ...client.requests import CONTROLLER, LEAST_LOADED, Reason
from ...messages import REGISTRY
from ...messages.api_key import ApiKey
from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.api_versions_response import ApiVersionsResponse
from ...messages.describe_cluster_request import DescribeClusterRequest
from ...messages.describe_cluster_response import DescribeClusterResponse
from ...messages.describe_log_dirs_request import DescribeLogDirsRequest
from ...messages.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from ...messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from ...messages.describe_quorum_response import DescribeQuorumResponse, ReplicaState
from ...messages.unregister_broker_request import UnregisterBrokerRequest
from ...messages.unregister_broker_response import UnregisterBrokerResponse
from ..clients.open_client import SOFTWARE
from . import topics
from .calls import CallRunner, check
from .values import (
    ApiRange,
    BrokerInfo,
    BrokerVersions,
    ClusterInfo,
    Feature,
    LogDirInfo,
    QuorumInfo,
    QuorumReplica,
)

FENCED_FROM: Final = 2
"""DescribeCluster lists fenced brokers from this version on (KIP-1073)."""
METADATA_TOPIC: Final = "__cluster_metadata"


async def describe(calls: CallRunner) -> ClusterInfo:
    """Describe the cluster by its Metadata, which every release has."""
    response = await topics.metadata(calls, [])
    brokers = tuple(
        BrokerInfo(row.node_id, row.host, row.port, row.rack) for row in response.brokers
    )
    return ClusterInfo(response.cluster_id, response.controller_id, brokers)


async def describe_with_fenced(calls: CallRunner) -> ClusterInfo:
    """Describe the cluster, with the registered brokers that are fenced."""
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.DESCRIBE_CLUSTER,
        DescribeClusterResponse,
        lambda _: DescribeClusterRequest(include_fenced_brokers=True),
        lambda response: [response.error_code],
        lowest=FENCED_FROM,
    )
    check(response.error_code, "cluster", response.error_message)
    brokers = tuple(
        BrokerInfo(row.broker_id, row.host, row.port, row.rack, row.is_fenced)
        for row in response.brokers
    )
    return ClusterInfo(response.cluster_id, response.controller_id, brokers)


async def describe_quorum(calls: CallRunner) -> QuorumInfo:
    """Describe the quorum of the controllers (DescribeQuorum, KIP-595)."""
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.DESCRIBE_QUORUM,
        DescribeQuorumResponse,
        lambda _: DescribeQuorumRequest(topics=[topic]),
        lambda response: [
            response.error_code,
            *(row.error_code for topic in response.topics for row in topic.partitions),
        ],
    )
    check(response.error_code, "quorum", response.error_message)
    rows = [row for topic in response.topics for row in topic.partitions]
    if len(rows) != 1:
        raise RequestFailed(Reason.INVALID_RESPONSE, f"{len(rows)} partitions of {METADATA_TOPIC}")
    row = rows[0]
    check(row.error_code, "quorum", row.error_message)
    return QuorumInfo(
        row.leader_id,
        row.leader_epoch,
        row.high_watermark,
        tuple(sorted(map(_quorum_replica, row.current_voters))),
        tuple(sorted(map(_quorum_replica, row.observers))),
    )


def _quorum_replica(row: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        row.replica_id,
        row.replica_directory_id,
        row.log_end_offset,
        row.last_fetch_timestamp,
        row.last_caught_up_timestamp,
    )


async def describe_log_dirs(calls: CallRunner, broker: int) -> tuple[LogDirInfo, ...]:
    """Describe the log directories of a broker (KIP-113)."""
    return tuple(sorted(map(_log_dir, await log_dirs(calls, broker))))


async def log_dirs(calls: CallRunner, broker: int) -> list[DescribeLogDirsResult]:
    """Return the log directories of a broker, with their replicas."""
    response = await calls.call(
        broker,
        ApiKey.DESCRIBE_LOG_DIRS,
        DescribeLogDirsResponse,
        lambda _: DescribeLogDirsRequest(topics=None),
        lambda response: [response.error_code],
    )
    check(response.error_code, f"log directories of broker {broker}")
    return response.results


def _log_dir(row: DescribeLogDirsResult) -> LogDirInfo:
    sizes = [each.partition_size for topic in row.topics for each in topic.partitions]
    return LogDirInfo(
        row.log_dir, row.error_code, len(sizes), sum(sizes), row.total_bytes, row.usable_bytes
    )


async def unregister_broker(calls: CallRunner, broker: int) -> None:
    """Remove the registration of a broker (UnregisterBroker)."""
    response = await calls.call(
        CONTROLLER,
        ApiKey.UNREGISTER_BROKER,
        UnregisterBrokerResponse,
        lambda _: UnregisterBrokerRequest(broker_id=broker),
        lambda response: [response.error_code],
    )
    check(response.error_code, f"broker {broker}", response.error_message)


async def broker_versions(calls: CallRunner, broker: int) -> BrokerVersions:
    """Return the APIs and features of a broker (ApiVersions)."""
    response = await calls.call(
        broker,
        ApiKey.API_VERSIONS,
        ApiVersionsResponse,
        lambda _: ApiVersionsRequest(
            client_software_name=SOFTWARE[0], client_software_version=SOFTWARE[1]
        ),
        lambda response: [response.error_code],
    )
    check(response.error_code, f"broker {broker}")
    levels = {row.name: row.max_version_level for row in response.finalized_features}
    apis = [
        ApiRange(row.api_key, _api_name(row.api_key), row.min_version, row.max_version)
        for row in response.api_keys
    ]
    features = [
        Feature(row.name, row.min_version, row.max_version, levels.get(row.name, 0))
        for row in response.supported_features
    ]
    return BrokerVersions(tuple(sorted(apis)), tuple(sorted(features)))


def _api_name(key: int) -> str:
    info = REGISTRY.find("request", key)
    return "" if info is None else info.name.removesuffix("Request")
