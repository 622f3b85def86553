"""Requests of brokers and controllers about themselves, for a real Kafka's controller and ours."""

from __future__ import annotations

from collections.abc import Iterator

from kafkawire.controller import MetadataImage
from kafkawire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kafkawire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from kafkawire.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kafkawire.messages.controller_registration_response import ControllerRegistrationResponse
from kafkawire.primitives import Message


def controller(controller_id: int) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=controller_id,
        incarnation_id=bytes(range(16)),
        listeners=[Listener(name="CONTROLLER", host="host", port=9093, security_protocol=0)],
        features=[Feature(name="kraft.version", min_supported_version=0, max_supported_version=1)],
    )


def directories(
    broker_id: int, epoch: int, *rows: tuple[bytes, bytes, int]
) -> AssignReplicasToDirsRequest:
    """rows: directory, topic id, partition."""
    return AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=epoch,
        directories=[
            DirectoryData(
                id=id,
                topics=[
                    TopicData(topic_id=topic, partitions=[PartitionData(partition_index=index)])
                ],
            )
            for id, topic, index in rows
        ],
    )


def node_requests(
    image: MetadataImage, broker_id: int
) -> Iterator[tuple[Message, int, type[Message]]]:
    """Make requests with the ids and epochs of a cluster that has the topic `a`."""
    yield controller(7), 0, ControllerRegistrationResponse
    yield controller(7), 0, ControllerRegistrationResponse
    broker = image.brokers[broker_id]
    topic_id = image.topic_ids["a"]
    own = image.topics[topic_id].partitions[0].directories[0]
    rows = ((own, topic_id, 0), (own, topic_id, 99), (own, b"x" * 16, 0))
    yield directories(broker_id, broker.epoch, *rows), 0, AssignReplicasToDirsResponse
    yield directories(broker_id, broker.epoch + 1, *rows), 0, AssignReplicasToDirsResponse
    yield directories(99, broker.epoch, *rows), 0, AssignReplicasToDirsResponse
