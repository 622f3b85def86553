"""The requests of an administrator, for the clusters that clients of a simulation meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkawire.configs import ResourceType
from kafkawire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkawire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)


def create_topic(
    name: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str]
) -> CreateTopicsRequest:
    """Return the request for a topic. replicas: of each partition, the first one leads."""
    topic = CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(replicas)
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def create_partitions(
    name: str, count: int, added: Sequence[Sequence[int]]
) -> CreatePartitionsRequest:
    """Return the request for more partitions. count: of all then. added: replicas of the new."""
    topic = CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=[CreatePartitionsAssignment(broker_ids=list(each)) for each in added],
    )
    return CreatePartitionsRequest(topics=[topic], timeout_ms=1000)


def alter_topic(name: str, configs: Mapping[str, str]) -> IncrementalAlterConfigsRequest:
    """Return the request that sets values of a topic."""
    resource = AlterConfigsResource(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs.items()],
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


def reassign(topic: str, index: int, replicas: Sequence[int]) -> AlterPartitionReassignmentsRequest:
    """Return the request that gives a partition other replicas, or another preferred one."""
    partition = ReassignablePartition(partition_index=index, replicas=list(replicas))
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[partition])], timeout_ms=1000
    )


def elect(topic: str, index: int) -> ElectLeadersRequest:
    """Return the request that lets a partition's preferred replica lead, if it is in sync."""
    partitions = TopicPartitions(topic=topic, partitions=[index])
    return ElectLeadersRequest(topic_partitions=[partitions], timeout_ms=1000)
