"""A real Kafka's controller and ours get the same requests and write the same records.

Ids, epochs, offsets and directories are each one's own; all else of topics, partitions,
configs and quotas is equal, record by record.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import pytest

from kafkawire.configs.features import UNSERVED
from kafkawire.controller import ControllerConfig, MetadataLoader, snapshot
from kafkawire.messages import alter_client_quotas_request as quotas
from kafkawire.messages import alter_configs_request as full
from kafkawire.messages import incremental_alter_configs_request as some
from kafkawire.messages.access_control_entry_record import AccessControlEntryRecord
from kafkawire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kafkawire.messages.alter_configs_response import AlterConfigsResponse
from kafkawire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkawire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kafkawire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafkawire.messages.client_quota_record import ClientQuotaRecord
from kafkawire.messages.config_record import ConfigRecord
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kafkawire.messages.elect_leaders_response import ElectLeadersResponse
from kafkawire.messages.feature_level_record import FeatureLevelRecord
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.partition_change_record import PartitionChangeRecord
from kafkawire.messages.partition_record import PartitionRecord
from kafkawire.messages.producer_ids_record import ProducerIdsRecord
from kafkawire.messages.register_broker_record import RegisterBrokerRecord
from kafkawire.messages.register_controller_record import RegisterControllerRecord
from kafkawire.messages.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kafkawire.messages.remove_topic_record import RemoveTopicRecord
from kafkawire.messages.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kafkawire.messages.topic_record import TopicRecord
from kafkawire.messages.user_scram_credential_record import UserScramCredentialRecord
from kafkawire.metadata.loader import TRANSACTIONS
from kafkawire.primitives import Message

from ..real.broker import NODE_ID, USER, Broker
from ..real.metadata import loaded, metadata_log
from ..real.wire import Wire
from .harness import CLUSTER, Harness, codes_of
from .node_requests import node_requests
from .security_requests import REQUESTS

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

COMPARED: Final = (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
    *TRANSACTIONS,
)
OWN: Final = {
    "broker_epoch",
    "directories",
    "end_points",
    "incarnation_id",
    "features",
    "log_dirs",
    "unknown_tags",
}
"""Fields that each cluster has its own of."""
TOPIC, BROKER, GROUP = 2, 4, 32


def topic(name: str, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name=name, **({"num_partitions": 2, "replication_factor": 1} | fields))


def assigned(*replicas: list[int]) -> list[CreatableReplicaAssignment]:
    return [
        CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
        for index, ids in enumerate(replicas)
    ]


def incremental(type: int, name: str, *ops: tuple[str, int, str | None]) -> Message:
    return some.IncrementalAlterConfigsRequest(
        resources=[
            some.AlterConfigsResource(
                resource_type=type,
                resource_name=name,
                configs=[
                    some.AlterableConfig(name=key, config_operation=op, value=value)
                    for key, op, value in ops
                ],
            )
        ]
    )


def replaced(name: str, **values: str) -> Message:
    configs = [
        full.AlterableConfig(name=key.replace("_", "."), value=value)
        for key, value in values.items()
    ]
    return full.AlterConfigsRequest(
        resources=[
            full.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs)
        ]
    )


def quota(entity: dict[str, str | None], key: str, value: float, remove: bool = False) -> Message:
    entry = quotas.EntryData(
        entity=[
            quotas.EntityData(entity_type=type, entity_name=name) for type, name in entity.items()
        ],
        ops=[quotas.OpData(key=key, value=value, remove=remove)],
    )
    return quotas.AlterClientQuotasRequest(entries=[entry])


def partitions(name: str, count: int, *assignments: list[int]) -> Message:
    given = [CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=given or None)],
        timeout_ms=10_000,
    )


def created(*made: CreatableTopic) -> Message:
    return CreateTopicsRequest(topics=list(made), timeout_ms=10_000)


def reassigned(name: str, replicas: list[int] | None) -> Message:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=[partition])]
    )


Operation = tuple[Message, int, type[Message]]
CONFIGURED: Final = [
    CreatableTopicConfig(name="retention.ms", value="1000"),
    CreatableTopicConfig(name="cleanup.policy", value="compact"),
]
OPERATIONS: Final[tuple[Operation, ...]] = (
    (created(topic("a"), topic("b", configs=CONFIGURED)), 7, CreateTopicsResponse),
    (
        created(topic("m", num_partitions=-1, replication_factor=-1, assignments=assigned([1]))),
        7,
        CreateTopicsResponse,
    ),
    (created(topic("a"), topic("c.d"), topic("no/such")), 7, CreateTopicsResponse),
    (created(topic("c_d"), topic("e", replication_factor=2)), 7, CreateTopicsResponse),
    (
        created(topic("f", num_partitions=0), topic("g", replication_factor=0)),
        7,
        CreateTopicsResponse,
    ),
    (
        created(topic("h", configs=[CreatableTopicConfig(name="retention.ms", value="x")])),
        7,
        CreateTopicsResponse,
    ),
    (
        created(topic("i", num_partitions=-1, replication_factor=-1, assignments=assigned([2]))),
        7,
        CreateTopicsResponse,
    ),
    (partitions("a", 4), 3, CreatePartitionsResponse),
    (partitions("a", 4), 3, CreatePartitionsResponse),
    (partitions("a", 5, [1]), 3, CreatePartitionsResponse),
    (partitions("a", 7, [1]), 3, CreatePartitionsResponse),
    (partitions("nowhere", 7), 3, CreatePartitionsResponse),
    (
        incremental(TOPIC, "a", ("retention.ms", 0, "5"), ("cleanup.policy", 2, "compact")),
        1,
        IncrementalAlterConfigsResponse,
    ),
    (incremental(TOPIC, "a", ("retention.ms", 0, "5")), 1, IncrementalAlterConfigsResponse),
    (
        incremental(TOPIC, "a", ("retention.ms", 1, None), ("cleanup.policy", 3, "delete")),
        1,
        IncrementalAlterConfigsResponse,
    ),
    (incremental(TOPIC, "a", ("retention.ms", 2, "5")), 1, IncrementalAlterConfigsResponse),
    (incremental(TOPIC, "nowhere", ("retention.ms", 0, "5")), 1, IncrementalAlterConfigsResponse),
    (incremental(BROKER, "", ("log.retention.ms", 0, "77")), 1, IncrementalAlterConfigsResponse),
    (incremental(BROKER, "1", ("num.io.threads", 0, "5")), 1, IncrementalAlterConfigsResponse),
    (incremental(BROKER, "1", ("num.io.threads", 1, None)), 1, IncrementalAlterConfigsResponse),
    (
        incremental(GROUP, "g", ("consumer.session.timeout.ms", 0, "1800000")),
        1,
        IncrementalAlterConfigsResponse,
    ),
    (replaced("b", retention_ms="2000"), 2, AlterConfigsResponse),
    (quota({"user": "alice"}, "producer_byte_rate", 1000.0), 1, AlterClientQuotasResponse),
    (
        quota({"user": None, "client-id": "x"}, "request_percentage", 12.5),
        1,
        AlterClientQuotasResponse,
    ),
    (quota({"ip": "10.0.0.1"}, "connection_creation_rate", 3.0), 1, AlterClientQuotasResponse),
    (quota({"user": "alice"}, "producer_byte_rate", 0.0, True), 1, AlterClientQuotasResponse),
    (quota({"user": "alice"}, "no_such", 1.0), 1, AlterClientQuotasResponse),
    (reassigned("a", [1]), 1, AlterPartitionReassignmentsResponse),
    (reassigned("a", None), 1, AlterPartitionReassignmentsResponse),
    (reassigned("a", [9]), 1, AlterPartitionReassignmentsResponse),
    (
        ElectLeadersRequest(
            election_type=0, topic_partitions=[TopicPartitions(topic="a", partitions=[0, 99])]
        ),
        2,
        ElectLeadersResponse,
    ),
    (DeleteTopicsRequest(topic_names=["b"], timeout_ms=10_000), 5, DeleteTopicsResponse),
    (DeleteTopicsRequest(topic_names=["nowhere"], timeout_ms=10_000), 5, DeleteTopicsResponse),
    *REQUESTS,
)


@dataclass
class Compared:
    """What the two controllers responded and wrote, and the image of Kafka's log."""

    port: int
    theirs: list[Message]
    ours: list[Message]
    their_log: list[str]
    our_log: list[str]
    loader: MetadataLoader


def shown(records: list[Message]) -> list[str]:
    """Show records without what each cluster has its own of; ids of topics and ACLs as names.

    Configs of one change are sorted: Kafka writes them in the order of a hash table.
    """
    names: dict[bytes, str] = {}
    lines = []
    for record in records:
        if isinstance(record, TopicRecord):
            names[record.topic_id] = record.name
        elif isinstance(record, AccessControlEntryRecord):
            names[record.id] = f"{record.pattern_type} {record.resource_name}"
        if not isinstance(record, COMPARED):
            continue
        fields = {name: getattr(record, name) for name in record.__match_args__ if name not in OWN}
        for id in ("topic_id", "id"):
            if id in fields:
                fields[id] = names[fields[id]]
        lines.append(f"{type(record).__name__} {fields}")
    runs = groupby(lines, key=lambda line: line.startswith(ConfigRecord.__name__))
    return [line for configs, run in runs for line in (sorted(run) if configs else run)]


@pytest.fixture(scope="module")
def compared(own_kafka: Broker) -> Compared:
    theirs: list[Message] = []
    with Wire(own_kafka.port) as wire:
        _wait_until_unfenced(wire)
        theirs = [wire.exchange(*operation) for operation in OPERATIONS]
    with Wire(own_kafka.controller_port) as wire:
        requests = node_requests(loaded(own_kafka).image, NODE_ID)
        theirs += [wire.exchange(*operation) for operation in requests]
    static = {"authorizer.class.name": "an authorizer"}
    harness = Harness(ControllerConfig(CLUSTER, static=static))
    harness.start(NODE_ID)
    ours = [harness.exchange(body, expected, version) for body, version, expected in OPERATIONS]
    ours += [
        harness.exchange(body, expected, version)
        for body, version, expected in node_requests(harness.controller.image, NODE_ID)
    ]
    their_records = []
    for row in metadata_log(own_kafka):
        assert row.decoded is not None
        assert row.decoded.value is not None
        assert row.decoded.value.message is not None, row.decoded.value.error
        their_records.append(row.decoded.value.message)
    return Compared(
        own_kafka.port,
        theirs,
        ours,
        shown(their_records),
        shown([each.message for each in harness.log]),
        loaded(own_kafka),
    )


def _wait_until_unfenced(wire: Wire) -> None:
    deadline = time.monotonic() + 60
    while not wire.exchange(MetadataRequest(topics=[]), 12, MetadataResponse).brokers:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_responses_have_the_same_errors(compared: Compared) -> None:
    assert list(map(codes_of, compared.ours)) == list(map(codes_of, compared.theirs))


def test_the_records_are_the_same(compared: Compared) -> None:
    """Apart from what Kafka says of its directories, itself, and the users of a new cluster, and
    from the features whose APIs are not served here.
    """
    more = (
        *(f"FeatureLevelRecord {{'name': '{name}'" for name in UNSERVED),
        "'cordoned_log_dirs': []",
        f"UserScramCredentialRecord {{'name': '{USER}'",
        f"RegisterControllerRecord {{'controller_id': {NODE_ID},",
    )
    theirs = [each for each in compared.their_log if not any(text in each for text in more)]
    assert compared.our_log == theirs
    assert len(theirs) > 30


def test_the_image_agrees_with_metadata(compared: Compared) -> None:
    image = compared.loader.image
    with Wire(compared.port) as wire:
        found = wire.exchange(MetadataRequest(topics=None), 12, MetadataResponse)
    assert {topic.name: topic.topic_id for topic in found.topics} == image.topic_ids
    for topic in found.topics:
        assert topic.name is not None
        ours = image.topics[topic.topic_id].partitions
        assert len(ours) == len(topic.partitions)
        for each in topic.partitions:
            partition = ours[each.partition_index]
            assert list(partition.replicas) == each.replica_nodes
            assert list(partition.isr) == each.isr_nodes
            assert partition.leader == each.leader_id
            assert partition.leader_epoch == each.leader_epoch
    assert set(image.brokers) == {each.node_id for each in found.brokers}


def test_the_image_agrees_with_describe_configs(compared: Compared) -> None:
    image = compared.loader.image
    resources = [*((TOPIC, name) for name in image.topic_ids), (BROKER, ""), (GROUP, "g")]
    dynamic = {1, 3, 8}  # of a topic, of all brokers, of a group
    with Wire(compared.port) as wire:
        for type, name in resources:
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=type, resource_name=name, configuration_keys=None
                    )
                ]
            )
            [result] = wire.exchange(request, 4, DescribeConfigsResponse).results
            theirs = {
                each.name: each.value for each in result.configs if each.config_source in dynamic
            }
            if type == TOPIC:
                theirs = {
                    each.name: each.value for each in result.configs if each.config_source == 1
                }
            assert theirs == dict(image.config(type, name)), (type, name)


def test_the_image_of_kafkas_log_survives_a_snapshot(compared: Compared) -> None:
    again = MetadataLoader()
    image = compared.loader.image
    again.load_snapshot([each.message for each in snapshot(image)], image.offset)
    assert again.image == image
