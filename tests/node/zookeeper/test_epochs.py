"""The epochs that fence controllers and earlier lives of brokers, and the errors of partitions."""

from __future__ import annotations

import pytest

import kafkawire
from kafkawire import ErrorCode, Message
from kafkawire.broker import Fault
from kafkawire.broker.apis import between_brokers
from kafkawire.broker.releases import with_zookeeper
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.controlled_shutdown_request import ControlledShutdownRequest
from kafkawire.messages.controlled_shutdown_response import ControlledShutdownResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kafkawire.messages.leader_and_isr_response import LeaderAndIsrResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from kafkawire.messages.stop_replica_response import StopReplicaResponse
from kafkawire.messages.update_metadata_request import UpdateMetadataRequest
from kafkawire.messages.update_metadata_response import UpdateMetadataResponse

from ...real.requests import Known, filled
from ...real.responses import errors
from .links import Links

E = ErrorCode


def lead(epoch: int, leader_epoch: int, replicas: list[int], index: int = 0) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=index, leader=1, leader_epoch=leader_epoch, isr=[1], replicas=replicas
    )
    topics = [LeaderAndIsrTopicState(topic_name="t", partition_states=[state])]
    return LeaderAndIsrRequest(controller_id=9, controller_epoch=epoch, topic_states=topics)


def stop(leader_epoch: int, delete: bool = False) -> StopReplicaRequest:
    state = StopReplicaPartitionState(
        partition_index=0, leader_epoch=leader_epoch, delete_partition=delete
    )
    topics = [StopReplicaTopicState(topic_name="t", partition_states=[state])]
    return StopReplicaRequest(controller_id=9, controller_epoch=7, topic_states=topics)


def with_topic() -> Links:
    links = Links("2.7")
    links.create("t", [[1, 2]])
    links.take()
    return links


@pytest.mark.parametrize(
    "request_of",
    [
        lambda epoch: (LeaderAndIsrRequest(controller_id=9, controller_epoch=epoch), 4),
        lambda epoch: (StopReplicaRequest(controller_id=9, controller_epoch=epoch), 3),
        lambda epoch: (UpdateMetadataRequest(controller_id=9, controller_epoch=epoch), 6),
    ],
    ids=["LeaderAndIsr", "StopReplica", "UpdateMetadata"],
)
def test_a_newer_controller_fences_the_older_one(request_of) -> None:  # type: ignore[no-untyped-def]
    links = with_topic()

    def error(node_id: int, epoch: int) -> int:
        response = links.exchange(node_id, *request_of(epoch))
        assert isinstance(
            response, LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse
        )
        return response.error_code

    assert error(1, 1) == E.NONE
    assert error(1, 5) == E.NONE
    assert error(1, 4) == E.STALE_CONTROLLER_EPOCH
    assert error(1, 5) == E.NONE
    assert error(2, 1) == E.NONE, "each broker compares with what it has seen itself"
    links.stop(1)
    links.start(1)
    assert error(1, 4) == E.NONE, "a broker that starts again has forgotten controllers"


def test_the_second_controller_fences_the_first() -> None:
    links = with_topic()
    links.shut_down(1)
    assert links.cluster.registry.controller_id == 2
    response = links.exchange(3, UpdateMetadataRequest(controller_id=1, controller_epoch=1), 6)
    assert isinstance(response, UpdateMetadataResponse)
    assert response.error_code == E.STALE_CONTROLLER_EPOCH
    links.start(1)
    assert links.cluster.registry.controller_id == 2, "it remains the controller"


def test_requests_for_an_earlier_life_of_a_broker_are_stale() -> None:
    links = with_topic()
    first = links.broker_epoch(2)
    links.stop(2)
    links.start(2)
    assert links.broker_epoch(2) > first

    def error(broker_epoch: int) -> int:
        request = UpdateMetadataRequest(
            controller_id=1, controller_epoch=1, broker_epoch=broker_epoch
        )
        response = links.exchange(2, request, 6)
        assert isinstance(response, UpdateMetadataResponse)
        return response.error_code

    assert error(first) == E.STALE_BROKER_EPOCH
    assert error(links.broker_epoch(2)) == E.NONE
    assert error(links.broker_epoch(2) + 10) == E.NONE, "the controller may know it first"
    assert error(-1) == E.NONE, "a controller before KIP-380 knows no broker epochs"


def partition_errors(response: Message) -> list[int]:
    assert isinstance(response, LeaderAndIsrResponse | StopReplicaResponse)
    assert response.error_code == E.NONE
    return [each.error_code for each in response.partition_errors]


def test_a_partition_is_led_from_a_newer_leader_epoch_on() -> None:
    links = with_topic()
    assert partition_errors(links.exchange(1, lead(1, 0, [1, 2]), 4)) == [E.STALE_CONTROLLER_EPOCH]
    assert partition_errors(links.exchange(1, lead(1, 3, [1, 2]), 4)) == [E.NONE]
    assert partition_errors(links.exchange(1, lead(1, 2, [1, 2]), 4)) == [E.STALE_CONTROLLER_EPOCH]
    unknown = [E.UNKNOWN_TOPIC_OR_PARTITION]
    assert partition_errors(links.exchange(1, lead(1, 4, [2]), 4)) == unknown
    assert partition_errors(links.exchange(3, lead(1, 4, [3]), 4)) == unknown
    assert partition_errors(links.exchange(1, lead(1, 4, [1], index=8), 4)) == unknown


def test_an_older_version_lists_partitions_without_topics() -> None:
    links = with_topic()
    request = lead(1, 3, [1, 2])
    state = request.topic_states[0].partition_states[0]
    state.topic_name = "t"
    flat = LeaderAndIsrRequest(
        controller_id=9, controller_epoch=1, ungrouped_partition_states=[state]
    )
    response = links.exchange(1, flat, 1)
    assert partition_errors(response) == [E.NONE]
    stopped = StopReplicaRequest(
        controller_id=9,
        controller_epoch=1,
        ungrouped_partitions=[StopReplicaPartitionV0(topic_name="t", partition_index=0)],
    )
    assert partition_errors(links.exchange(1, stopped, 0)) == [E.NONE]


def test_a_replica_is_stopped_from_a_newer_leader_epoch_on() -> None:
    links = with_topic()
    assert partition_errors(links.exchange(1, stop(0), 3)) == [E.FENCED_LEADER_EPOCH]
    assert partition_errors(links.exchange(1, stop(1), 3)) == [E.NONE]
    assert partition_errors(links.exchange(1, stop(-2, delete=True), 3)) == [E.NONE]
    assert partition_errors(links.exchange(1, lead(7, 0, [1, 2]), 4)) == [E.NONE], "it is new again"


def shutdown_error(links: Links, node_id: int, broker_id: int, epoch: int = -1) -> int:
    request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=epoch)
    response = links.exchange(node_id, request, 3)
    assert isinstance(response, ControlledShutdownResponse)
    return response.error_code


def test_a_controlled_shutdown_is_for_the_controller_and_a_registered_broker() -> None:
    links = with_topic()
    assert shutdown_error(links, 2, 3) == E.STALE_CONTROLLER_EPOCH
    assert shutdown_error(links, 1, 8) == E.BROKER_NOT_AVAILABLE
    assert shutdown_error(links, 1, 3, 1) == E.STALE_BROKER_EPOCH
    assert shutdown_error(links, 1, 3, links.broker_epoch(3)) == E.NONE


def test_only_the_controller_creates_topics() -> None:
    links = with_topic()
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)], timeout_ms=1
    )
    for node_id, error in ((2, E.NOT_CONTROLLER), (1, E.NONE)):
        response = links.exchange(node_id, request, 5)
        assert isinstance(response, CreateTopicsResponse)
        assert [each.error_code for each in response.topics] == [error]


@pytest.mark.parametrize(
    ("release", "versions"),
    [("2.2", {4: 2, 5: 1, 6: 5, 7: 2}), ("2.7", {4: 4, 5: 3, 6: 6, 7: 3})],
)
def test_clients_see_the_apis_and_the_controller(release: str, versions: dict[int, int]) -> None:
    links = Links(release)
    response = links.exchange(2, ApiVersionsRequest(), 0)
    assert isinstance(response, ApiVersionsResponse)
    listed = {each.api_key: each.max_version for each in response.api_keys}
    assert {key: listed[key] for key in versions} == versions
    metadata = links.exchange(2, MetadataRequest(topics=None), 5)
    assert isinstance(metadata, MetadataResponse)
    assert metadata.controller_id == 1


@pytest.mark.parametrize("release", with_zookeeper())
def test_every_version_gets_its_response(release: str) -> None:
    links = Links(release)
    links.create("t", [[1, 2]])
    known = Known("t", topic_id=bytes(16), leader_epoch=0)
    for key, versions in between_brokers(release).items():
        info = kafkawire.REGISTRY.request(key)
        assert info is not None
        for version in range(versions.first, versions.last + 1):
            response = links.exchange(1, filled(info.name, version, known), version)
            assert type(response).__name__ == info.name.replace("Request", "Response")


def test_a_fault_has_the_error_of_each_api() -> None:
    links = Links("2.7", brokers=1)
    links.create("t", [[1]])
    links.cluster.faults.append(Fault(error=E.CLUSTER_AUTHORIZATION_FAILED))
    for request, version in (
        (lead(1, 3, [1]), 4),
        (stop(3), 3),
        (UpdateMetadataRequest(), 6),
        (ControlledShutdownRequest(broker_id=1), 3),
    ):
        response = links.exchange(1, request, version)
        assert set(errors(response)) == {E.CLUSTER_AUTHORIZATION_FAILED}
