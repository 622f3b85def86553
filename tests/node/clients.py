"""Requests of clients, and what they read in responses."""

from __future__ import annotations

from typing import Any

from kafkawire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafkawire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.primitives import Message
from kafkawire.records import BatchBuilder
from kafkawire.storage import TopicPartition

CREATE_VERSION = 7
PRODUCE_VERSION = 9
FETCH_VERSION = 17
MOVE_VERSION = 2


def create_topic(name: str, partitions: int, replicas: int, **configs: str) -> CreateTopicsRequest:
    """Create a topic."""
    made = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, configs=made
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def batch(values: list[bytes], **fields: Any) -> bytes:
    """Return a batch of records."""
    builder = BatchBuilder(**fields)
    for value in values:
        builder.append(None, value, 1_700_000_000_000)
    return builder.build()


def produce(topic: str, index: int, *values: bytes, acks: int = -1) -> ProduceRequest:
    """Produce records to a partition."""
    data = PartitionProduceData(index=index, records=batch(list(values)))
    made = TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=1500, topic_data=[made])


def fetch(topic_id: bytes, index: int, offset: int, wait_ms: int = 100) -> FetchRequest:
    """Fetch as a consumer."""
    partition = FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=-1
    )
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
    )


def moved(partition: TopicPartition, directory: str) -> AlterReplicaLogDirsRequest:
    """Move a replica to another log directory of its broker."""
    named = AlterReplicaLogDirTopic(name=partition.topic, partitions=[partition.partition])
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=directory, topics=[named])])


def produced(body: Message | None) -> Any:
    """Return the partition of a Produce response; None if there is no response."""
    if not isinstance(body, ProduceResponse):
        return None
    return body.responses[0].partition_responses[0]


def fetched(body: Message | None) -> Any:
    """Return the partition of a Fetch response; None if there is none."""
    if not isinstance(body, FetchResponse) or body.error_code or not body.responses:
        return None
    return body.responses[0].partitions[0]
