"""Operations on a cluster of three brokers: what they refuse, write and complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.controller import BecameLeader, ControllerConfig, PartitionRegistration
from kafkawire.messages import alter_partition_request as isr
from kafkawire.messages import create_topics_request as creating
from kafkawire.messages import incremental_alter_configs_request as configs
from kafkawire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kafkawire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kafkawire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkawire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kafkawire.messages.alter_partition_response import AlterPartitionResponse, PartitionData
from kafkawire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kafkawire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kafkawire.messages.broker_registration_response import BrokerRegistrationResponse
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kafkawire.messages.elect_leaders_response import ElectLeadersResponse
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kafkawire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from kafkawire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kafkawire.messages.update_features_response import UpdateFeaturesResponse
from kafkawire.metadata.versions import NEWEST

from .harness import CLUSTER, Harness, registration

E = ErrorCode
WITHOUT_ELR = ControllerConfig(CLUSTER, bootstrap={"metadata.version": 30})


def cluster(config: ControllerConfig | None = None) -> Harness:
    harness = Harness(config)
    for broker_id in (1, 2, 3, 4):
        harness.start(broker_id, rack="ab"[broker_id % 2])
    return harness


def create(harness: Harness, *replicas: Sequence[int], name: str = "t", **values: str) -> None:
    topic = creating.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            creating.CreatableReplicaAssignment(partition_index=index, broker_ids=list(each))
            for index, each in enumerate(replicas)
        ],
        configs=[
            creating.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in values.items()
        ],
    )
    body = creating.CreateTopicsRequest(topics=[topic])
    [result] = harness.exchange(body, CreateTopicsResponse, 7).topics
    assert result.error_code == 0, result.error_message


def partition(harness: Harness, index: int = 0, name: str = "t") -> PartitionRegistration:
    topic = harness.controller.image.topic(name)
    assert topic is not None
    return topic.partitions[index]


def alter(harness: Harness, *members: int, index: int = 0, version: int = 3) -> PartitionData:
    """Let the leader set the ISR."""
    old = partition(harness, index)
    topic = harness.controller.image.topic("t")
    assert topic is not None
    brokers = harness.controller.image.brokers
    states = [isr.BrokerState(broker_id=each, broker_epoch=brokers[each].epoch) for each in members]
    body = isr.AlterPartitionRequest(
        broker_id=old.leader,
        broker_epoch=brokers[old.leader].epoch,
        topics=[
            isr.TopicData(
                topic_name="t",
                topic_id=topic.topic_id,
                partitions=[
                    isr.PartitionData(
                        partition_index=index,
                        leader_epoch=old.leader_epoch,
                        partition_epoch=old.partition_epoch,
                        new_isr=list(members),
                        new_isr_with_epochs=states,
                    )
                ],
            )
        ],
    )
    response = harness.exchange(body, AlterPartitionResponse, version)
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def reassign(harness: Harness, replicas: list[int] | None, factor: bool = True) -> int:
    one = ReassignablePartition(partition_index=0, replicas=replicas)
    body = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=factor,
        topics=[ReassignableTopic(name="t", partitions=[one])],
    )
    response = harness.exchange(body, AlterPartitionReassignmentsResponse, 1)
    result = response.responses[0].partitions[0]
    explained = result.error_code not in (E.NONE, E.NO_REASSIGNMENT_IN_PROGRESS)
    assert (result.error_message is not None) == explained
    return result.error_code


def listed(harness: Harness) -> list[tuple[list[int], list[int], list[int]]]:
    body = ListPartitionReassignmentsRequest(topics=None)
    response = harness.exchange(body, ListPartitionReassignmentsResponse)
    return [
        (each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in response.topics
        for each in topic.partitions
    ]


# -- reassignment


def test_a_reassignment_completes_when_the_new_replicas_are_in_sync() -> None:
    harness = cluster()
    create(harness, [1, 2])
    assert reassign(harness, [3, 4]) == 0
    assert partition(harness).replicas == (3, 4, 1, 2)
    assert listed(harness) == [([3, 4, 1, 2], [3, 4], [1, 2])]
    assert alter(harness, 1, 2, 3).error_code == 0
    assert partition(harness).is_reassigning
    response = alter(harness, 1, 2, 3, 4)
    assert response.error_code == E.NEW_LEADER_ELECTED
    found = partition(harness)
    assert (found.replicas, found.isr, found.leader) == ((3, 4), (3, 4), 3)
    assert found.directories == tuple(
        harness.controller.image.brokers[each].directories[0] for each in (3, 4)
    )
    assert listed(harness) == []


def test_a_reassignment_is_cancelled() -> None:
    harness = cluster()
    create(harness, [1, 2])
    assert reassign(harness, None) == E.NO_REASSIGNMENT_IN_PROGRESS
    reassign(harness, [1, 3])
    alter(harness, 1, 3)
    found = partition(harness)
    assert (found.replicas, found.isr) == ((1, 3), (1, 3))
    reassign(harness, [4, 2])
    assert reassign(harness, None) == 0
    found = partition(harness)
    assert (found.replicas, found.isr, found.is_reassigning) == ((1, 3), (1, 3), False)


def test_a_cancellation_that_needs_an_unclean_election_is_refused() -> None:
    harness = cluster(WITHOUT_ELR)
    create(harness, [1])
    reassign(harness, [2, 3])
    alter(harness, 1, 2)
    harness.advance(8.0)
    harness.heartbeat(2)
    harness.advance(2.0)  # broker 1 is fenced
    assert partition(harness).isr == (2,)
    assert reassign(harness, None) == E.INVALID_REPLICA_ASSIGNMENT


def test_what_a_reassignment_refuses() -> None:
    harness = cluster()
    create(harness, [1, 2])
    assert reassign(harness, [1, 9]) == E.INVALID_REPLICA_ASSIGNMENT
    assert reassign(harness, [1, 1]) == E.INVALID_REPLICA_ASSIGNMENT
    assert reassign(harness, []) == E.INVALID_REPLICA_ASSIGNMENT
    assert reassign(harness, [3], factor=False) == E.INVALID_REPLICATION_FACTOR
    assert reassign(harness, [3, 4], factor=False) == 0


def test_removing_replicas_only_completes_at_once_with_a_new_epoch() -> None:
    harness = cluster()
    create(harness, [1, 2, 3])
    before = partition(harness)
    reassign(harness, [1, 2])
    found = partition(harness)
    assert (found.replicas, found.isr, found.leader) == ((1, 2), (1, 2), 1)
    assert found.leader_epoch == before.leader_epoch + 1


# -- leaders


def fence(harness: Harness, *broker_ids: int) -> None:
    """Let sessions expire."""
    for _ in range(2):
        for broker_id, broker in harness.controller.image.brokers.items():
            if broker_id not in broker_ids and not broker.fenced:
                harness.heartbeat(broker_id)
        harness.advance(5.0)


def elect(harness: Harness, type: int, *partitions: int) -> list[int]:
    wanted = [TopicPartitions(topic="t", partitions=list(partitions))] if partitions else None
    body = ElectLeadersRequest(election_type=type, topic_partitions=wanted)
    response = harness.exchange(body, ElectLeadersResponse, 2)
    return [
        each.error_code
        for topic in response.replica_election_results
        for each in topic.partition_result
    ]


def test_preferred_leaders_are_elected_on_request_and_by_deadline() -> None:
    harness = cluster()
    create(harness, [1, 2], [2, 1])
    fence(harness, 1)
    assert partition(harness).leader == 2
    assert elect(harness, 0, 0) == [E.PREFERRED_LEADER_NOT_AVAILABLE]
    assert elect(harness, 0, 1) == [E.ELECTION_NOT_NEEDED]
    needless = ElectLeadersRequest(
        election_type=0, topic_partitions=[TopicPartitions(topic="t", partitions=[1])]
    )
    [topic] = harness.exchange(needless, ElectLeadersResponse, 2).replica_election_results
    message = "Leader election not needed for topic partition."
    assert topic.partition_result[0].error_message == message
    harness.heartbeat(1)
    alter(harness, 1, 2)
    assert elect(harness, 0) == [0]
    assert partition(harness).leader == 1
    fence(harness, 1)
    harness.heartbeat(1)
    alter(harness, 1, 2)
    assert partition(harness).leader == 2
    due = harness.controller.next_deadline()
    while due is not None and due <= 300.0 + 9.0:
        for each in (1, 2, 3, 4):
            harness.heartbeat(each)
        harness.advance(5.0)
        due = harness.now + 5.0
    assert partition(harness).leader == 1


def test_an_unclean_election_only_where_it_is_allowed() -> None:
    harness = cluster(WITHOUT_ELR)
    create(harness, [1, 2], [1, 2])
    alter(harness, 1)
    alter(harness, 1, index=1)
    body = configs.IncrementalAlterConfigsRequest(
        resources=[
            configs.AlterConfigsResource(
                resource_type=4,
                resource_name="",
                configs=[configs.AlterableConfig(name="min.insync.replicas", value="1")],
            )
        ]
    )
    harness.exchange(body, IncrementalAlterConfigsResponse, 1)
    fence(harness, 1)
    found = partition(harness)
    assert (found.leader, found.isr) == (-1, (1,))
    assert elect(harness, 1, 0) == [0]
    found = partition(harness)
    assert (found.leader, found.isr, found.leader_recovery_state) == (2, (2,), 1)
    assert partition(harness, 1).leader == -1
    assert elect(harness, 1, 0) == [E.ELECTION_NOT_NEEDED]
    assert elect(harness, 1, 7) == [E.UNKNOWN_TOPIC_OR_PARTITION]
    assert elect(harness, 5, 0) == []
    harness.heartbeat(1)
    assert partition(harness, 1).leader == 1  # the last of the ISR returns


def test_the_elr_elects_cleanly_what_the_isr_cannot() -> None:
    harness = cluster()
    create(harness, [1, 2, 3], min_insync_replicas="2")
    alter(harness, 1, 2)
    assert partition(harness).elr == ()
    alter(harness, 1)
    assert partition(harness).elr == (2,)
    fence(harness, 1)
    found = partition(harness)
    assert (found.leader, found.isr, found.elr) == (2, (2,), (1,))
    assert found.leader_recovery_state == 0
    harness.heartbeat(1)
    alter(harness, 2, 1)
    assert partition(harness).elr == ()


def test_a_controlled_shutdown_moves_leaders_first() -> None:
    harness = cluster()
    create(harness, [1, 2], [2, 1])
    heartbeat = harness.heartbeat(1, want_shut_down=True)
    assert (heartbeat.should_shut_down, heartbeat.is_fenced) == (False, False)
    assert [partition(harness, index).leader for index in (0, 1)] == [2, 2]
    assert partition(harness).isr == (2,)
    assert alter(harness, 2, 1).error_code == E.INELIGIBLE_REPLICA
    assert not harness.heartbeat(1, want_shut_down=True).should_shut_down
    for each in (2, 3, 4):
        harness.heartbeat(each)
    assert harness.heartbeat(1, want_shut_down=True).should_shut_down
    response = harness.exchange(registration(1, incarnation=2), BrokerRegistrationResponse, 4)
    assert response.error_code == 0


def test_a_controlled_shutdown_goes_on_at_another_controller() -> None:
    """It waits for records of metadata, not for those of the quorum, which brokers do not read."""
    harness = cluster()
    create(harness, [1, 2], [2, 1])

    def heartbeat(broker_id: int, *, stops: bool = False) -> bool:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=harness.controller.image.brokers[broker_id].epoch,
            current_metadata_offset=harness.controller.image.offset,
            want_shut_down=stops,
        )
        return harness.exchange(request, BrokerHeartbeatResponse, 2).should_shut_down

    assert not heartbeat(1, stops=True)
    harness.log.append(harness.log[-1])  # in place of a record of the quorum
    elected = BecameLeader(2, len(harness.log))
    harness.take(harness.controller.handle(elected, 0.0))
    assert not heartbeat(1, stops=True)
    for each in (2, 3, 4):
        heartbeat(each)
    assert heartbeat(1, stops=True)


def test_older_versions_of_alter_partition_name_topics_and_other_errors() -> None:
    harness = cluster()
    create(harness, [1, 2])
    fence(harness, 2)
    assert alter(harness, 1, 2, version=1).error_code == E.OPERATION_NOT_ATTEMPTED
    assert alter(harness, 1, version=0).error_code == 0
    assert alter(harness, 1, 1).error_code == E.INVALID_REQUEST
    assert alter(harness, 1, 3).error_code == E.INVALID_REQUEST


# -- log directories


def test_a_failed_directory_takes_its_replicas_out_of_isrs() -> None:
    harness = Harness(WITHOUT_ELR)
    harness.start(2)
    first, second = b"1" * 16, b"2" * 16
    harness.register(1, log_dirs=[first, second])
    harness.heartbeat(1)
    create(harness, [1, 2])
    at = next(iter(harness.controller.image.topics)), 0
    assert harness.controller.image.indexes.directories.of(first) == []  # the broker chooses
    newest = harness.controller.newest
    assert newest.partition(at) is not None
    response = harness.exchange(
        BrokerHeartbeatRequest(
            broker_id=1,
            broker_epoch=newest.brokers[1].epoch,
            current_metadata_offset=len(harness.log),
            offline_log_dirs=[first],
        ),
        BrokerHeartbeatResponse,
        1,
    )
    assert response.error_code == 0
    assert harness.controller.image.brokers[1].directories == (second,)


# -- registration, features, producer ids, topics


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "other"}, E.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, E.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, E.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, E.INVALID_REGISTRATION),
        ({"log_dirs": [b"a" * 16, b"a" * 16]}, E.INVALID_REGISTRATION),
        ({"features": []}, E.UNSUPPORTED_VERSION),
        ({"incarnation": 2}, E.DUPLICATE_BROKER_REGISTRATION),
        ({"broker_id": 9}, E.INVALID_REGISTRATION),  # with the directory of broker 1
    ],
)
def test_registrations_that_are_refused(fields: dict[str, object], error: ErrorCode) -> None:
    harness = cluster()
    taken = harness.controller.image.brokers[1].directories[0]
    given: dict[str, Any] = {"broker_id": 1, "log_dirs": [taken], **fields}
    response = harness.exchange(registration(**given), BrokerRegistrationResponse, 4)
    assert (response.error_code, response.broker_epoch) == (error, -1)


def test_the_same_incarnation_amends_its_registration() -> None:
    harness = cluster()
    before = harness.controller.image.brokers[1]
    epoch = harness.register(1, rack="z")
    after = harness.controller.image.brokers[1]
    assert epoch == before.epoch == after.epoch
    assert (after.rack, after.fenced) == ("z", False)


@pytest.mark.parametrize(
    ("name", "level", "type", "message"),
    [
        (
            "no.such",
            1,
            1,
            "Invalid update version 1 for feature no.such. "
            "Local controller 7 does not support this feature.",
        ),
        (
            "no.such",
            0,
            2,
            "Invalid update version 0 for feature no.such. Feature no.such not found.",
        ),
        (
            "transaction.version",
            3,
            1,
            "Invalid update version 3 for feature transaction.version. "
            "Local controller 7 only supports versions 0-2",
        ),
        (
            "metadata.version",
            7,
            2,
            f"Unsupported metadata.version downgrade from {NEWEST} to 7. Refusing to perform the "
            "requested downgrade because it might delete metadata information.",
        ),
    ],
)
def test_refused_features_are_explained_as_in_kafka(
    name: str, level: int, type: int, message: str
) -> None:
    harness = cluster(ControllerConfig(CLUSTER, node_id=7))
    update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=type)
    body = UpdateFeaturesRequest(feature_updates=[update])
    response = harness.exchange(body, UpdateFeaturesResponse, 2)
    assert response.error_code == E.INVALID_UPDATE_VERSION
    prefix = "The update failed for all features since the following feature had an error: "
    assert response.error_message == prefix + message
    assert harness.exchange(body, UpdateFeaturesResponse, 1).error_message == message


def features(harness: Harness, name: str, level: int, type: int = 1, version: int = 1) -> int:
    update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=type)
    body = UpdateFeaturesRequest(feature_updates=[update])
    return harness.exchange(body, UpdateFeaturesResponse, version).error_code


def test_features_are_updated_by_their_rules() -> None:
    harness = cluster()
    invalid = E.INVALID_UPDATE_VERSION
    image = harness.controller.image
    assert features(harness, "transaction.version", 0) == invalid
    assert features(harness, "transaction.version", 0, type=2) == 0
    assert "transaction.version" not in image.features
    assert features(harness, "transaction.version", 1, type=2) == invalid
    assert features(harness, "transaction.version", 1) == 0
    assert features(harness, "transaction.version", 3) == invalid
    assert features(harness, "transaction.version", -1) == invalid
    assert features(harness, "no.such", 1) == invalid
    assert features(harness, "transaction.version", 1, type=9) == invalid
    assert features(harness, "metadata.version", 29, type=2) == invalid
    assert features(harness, "metadata.version", 29, type=3) == invalid
    assert features(harness, "metadata.version", NEWEST + 1) == invalid
    assert image.features["metadata.version"] == NEWEST


def test_an_older_metadata_version_is_upgraded_when_all_nodes_support_it() -> None:
    config = ControllerConfig(CLUSTER, bootstrap={"metadata.version": 20})
    harness = Harness(config)
    harness.start(1)
    create(harness, [1])
    assert {each.version for each in harness.log} <= {0, 1, 3}
    assert features(harness, "metadata.version", 19, type=2) == 0
    assert features(harness, "metadata.version", 16, type=2) == E.INVALID_UPDATE_VERSION
    assert features(harness, "metadata.version", NEWEST) == 0
    assert features(harness, "eligible.leader.replicas.version", 1) == 0
    assert harness.controller.image.config(4, "")["min.insync.replicas"] == "1"
    create(harness, [1], name="u")
    assert harness.log[-1].version == 2


def test_blocks_of_producer_ids_follow_each_other() -> None:
    harness = cluster()
    epoch = harness.controller.image.brokers[1].epoch
    body = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
    starts = [
        harness.exchange(body, AllocateProducerIdsResponse).producer_id_start for _ in range(3)
    ]
    assert starts == [0, 1000, 2000]
    body.broker_epoch += 1
    assert harness.exchange(body, AllocateProducerIdsResponse).error_code == E.STALE_BROKER_EPOCH


def test_a_topic_is_spread_over_racks_and_validated_without_being_created() -> None:
    harness = cluster()
    topic = creating.CreatableTopic(name="r", num_partitions=8, replication_factor=2)
    body = creating.CreateTopicsRequest(topics=[topic], validate_only=True)
    [result] = harness.exchange(body, CreateTopicsResponse, 7).topics
    assert (result.error_code, result.num_partitions, result.topic_id) == (0, 8, bytes(16))
    assert not harness.controller.image.topics
    body.validate_only = False
    harness.exchange(body, CreateTopicsResponse, 7)
    for index in range(8):
        assert sum(each % 2 for each in partition(harness, index, "r").replicas) == 1


def test_topics_are_deleted_by_id() -> None:
    harness = cluster()
    create(harness, [1])
    topic_id = harness.controller.image.topic_ids["t"]
    wanted = [
        DeleteTopicState(name="t", topic_id=topic_id),
        DeleteTopicState(name=None, topic_id=topic_id),
        DeleteTopicState(name=None, topic_id=topic_id),
    ]
    response = harness.exchange(DeleteTopicsRequest(topics=wanted), DeleteTopicsResponse, 6)
    assert [each.error_code for each in response.responses] == [
        E.INVALID_REQUEST,
        0,
        E.UNKNOWN_TOPIC_ID,
    ]
    assert not harness.controller.image.topics
