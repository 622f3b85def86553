"""Builds requests of every version that a broker offers, with useful values.

A field gets the first known value: by message, by struct, by name, by entity type (a topic, a
group); otherwise it keeps its default. Arrays of structs get one element.

    message model ─▶ filled(name, version, known) ─▶ request ─▶ Wire
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafkawire import Message
from kafkawire.messages import REGISTRY
from kafkawire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkawire.protocol import encode_versioned
from kafkawire.records import BatchBuilder
from kafkawire.reference.schemas import message_model
from kafkawire_codegen import model

from .broker import CLUSTER_ID, MECHANISMS, NODE_ID, PASSWORD, USER

TOPIC_RESOURCE: Final = 2
ANY: Final = 1
LITERAL: Final = 3
READ: Final = 3
ALLOW: Final = 3
NOBODY: Final = "nobody"
NO_NODE: Final = 99
A_MINUTE_MS: Final = 60_000
PLAIN: Final = f"\0{USER}\0{PASSWORD}".encode()

BY_NAME: Final[Mapping[str, object]] = {
    "broker_ids": [NODE_ID],
    "client_software_name": "kafkawire",
    "client_software_version": "tests",
    "cluster_id": CLUSTER_ID,
    "committed_metadata": "written by a test",
    "committed_offset": 1,
    "group_instance_id": None,
    "host_filter": None,
    "include_authorized_operations": True,
    "include_cluster_authorized_operations": True,
    "include_topic_authorized_operations": True,
    "max_bytes": 1 << 20,
    "max_records": 100,
    "mechanism": MECHANISMS[0],
    "min_bytes": 0,
    "partition_indexes": [0],
    "partition_max_bytes": 1 << 20,
    "partitions": [0],
    "principal_filter": None,
    "rebalance_timeout_ms": A_MINUTE_MS,
    "replicas": [NODE_ID],
    "resource_name_filter": None,
    "timeout_ms": 10_000,
    "validate_only": True,
}

UNLIMITED: Final = "-1"
"""A retention: the records are older than any other, and tests on a busy machine take minutes."""

BY_MESSAGE: Final[Mapping[str, Mapping[str, object]]] = {
    "AddRaftVoterRequest": {"voter_id": NO_NODE, "timeout_ms": 0},
    "AlterClientQuotasRequest": {
        "EntityData.entity_type": "user",
        "entity_name": "bob",
        "key": "producer_byte_rate",
        "value": 1e6,
    },
    "AlterConfigsRequest": {
        "resource_type": TOPIC_RESOURCE,
        "AlterableConfig.name": "retention.ms",
        "value": UNLIMITED,
    },
    "AlterReplicaLogDirsRequest": {"path": "/nowhere"},
    "AlterUserScramCredentialsRequest": {"name": NOBODY, "mechanism": 1, "upsertions": []},
    "ApiVersionsRequest": {"node_id": NODE_ID},
    "BrokerHeartbeatRequest": {"broker_id": NO_NODE},
    "BrokerRegistrationRequest": {"broker_id": NO_NODE, "listeners": [], "features": []},
    "ControllerRegistrationRequest": {"controller_id": NO_NODE, "listeners": [], "features": []},
    "CreateAclsRequest": {
        "resource_type": TOPIC_RESOURCE,
        "principal": "User:bob",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    },
    "CreateDelegationTokenRequest": {
        "owner_principal_type": None,
        "renewers": [],
        "max_lifetime_ms": A_MINUTE_MS,
    },
    "CreatePartitionsRequest": {"count": 4, "assignments": None},
    "CreateTopicsRequest": {
        "CreatableTopic.name": "made-{version}",
        "num_partitions": 2,
        "replication_factor": 1,
        "assignments": [],
        "CreatableTopicConfig.name": "retention.ms",
        "value": UNLIMITED,
        "validate_only": False,
    },
    "DeleteAclsRequest": {
        "resource_type_filter": ANY,
        "principal_filter": f"User:{NOBODY}",
        "operation": ANY,
        "permission_type": ANY,
    },
    "DeleteGroupsRequest": {"groups_names": [NOBODY]},
    "DeleteShareGroupStateRequest": {"group_id": NOBODY},
    "DeleteTopicsRequest": {"topic_names": [NOBODY], "name": NOBODY, "topic_id": bytes(16)},
    "DescribeAclsRequest": {
        "resource_type_filter": ANY,
        "pattern_type_filter": ANY,
        "operation": ANY,
        "permission_type": ANY,
    },
    "DescribeClientQuotasRequest": {"entity_type": "user", "match_type": 2, "match": None},
    "DescribeClusterRequest": {"include_fenced_brokers": True},
    "DescribeConfigsRequest": {
        "resource_type": TOPIC_RESOURCE,
        "configuration_keys": None,
        "include_synonyms": True,
        "include_documentation": True,
    },
    "DescribeDelegationTokenRequest": {"owners": None},
    "DescribeLogDirsRequest": {"topics": None},
    "DescribeTopicPartitionsRequest": {"cursor": None},
    "DescribeUserScramCredentialsRequest": {"users": None},
    "EndQuorumEpochRequest": {"leader_endpoints": [], "preferred_candidates": []},
    "ConsumerGroupHeartbeatRequest": {
        "group_id": "consumer-group",
        "instance_id": None,
        "server_assignor": None,
        "subscribed_topic_regex": None,
        "topic_partitions": [],
    },
    "FetchRequest": {"forgotten_topics_data": [], "fetch_offset": 0},
    "IncrementalAlterConfigsRequest": {
        "resource_type": TOPIC_RESOURCE,
        "AlterableConfig.name": "retention.ms",
        "value": UNLIMITED,
    },
    "InitProducerIdRequest": {
        "transactional_id": "initialised-{version}",
        "transaction_timeout_ms": A_MINUTE_MS,
        "producer_id": -1,
    },
    "JoinGroupRequest": {
        "group_id": "joined-{version}",
        "session_timeout_ms": 30 * A_MINUTE_MS,
        "group_instance_id": "static",
        "protocol_type": "consumer",
        "JoinGroupRequestProtocol.name": "range",
        "member_id": "",
    },
    "ListOffsetsRequest": {"replica_id": -1, "timestamp": -1},
    "ListTransactionsRequest": {"producer_id_filters": []},
    "MetadataRequest": {"topic_id": bytes(16)},
    "OffsetFetchRequest": {"member_id": None},
    "ProduceRequest": {"transactional_id": None, "acks": -1},
    "RemoveRaftVoterRequest": {"voter_id": NO_NODE},
    "SaslAuthenticateRequest": {"auth_bytes": PLAIN},
    "ShareFetchRequest": {"forgotten_topics_data": [], "acknowledgement_batches": []},
    "StreamsGroupHeartbeatRequest": {
        "group_id": "streams-group",
        "process_id": "process",
        "subtopology_id": "0",
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "task_offsets": None,
        "task_end_offsets": None,
        "user_endpoint": None,
        "client_tags": None,
        "instance_id": None,
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
    },
    "SyncGroupRequest": {"assignments": []},
    "UnregisterBrokerRequest": {"broker_id": NO_NODE},
    "UpdateFeaturesRequest": {"feature_updates": []},
    "UpdateRaftVoterRequest": {"voter_id": NO_NODE, "listeners": []},
    "VoteRequest": {"voter_id": NODE_ID, "replica_id": NO_NODE},
}
"""Values for single messages; `Struct.attribute` if a message uses a name twice.

No value deletes what another request needs: deletions name unknown entities.
"""


@dataclass(frozen=True)
class Known:
    """The broker's entities that requests can refer to.

    groups: kind of group, as in message names -> a group of that kind.
    """

    topic: str
    topic_id: bytes = bytes(16)
    leader_epoch: int = 0
    transactional_id: str = "transaction"
    producer_id: int = 0
    groups: tuple[tuple[str, str], ...] = (
        ("ConsumerGroup", "consumer-group"),
        ("ShareGroup", "share-group"),
        ("StreamsGroup", "streams-group"),
        ("Share", "share-group"),
        ("Offset", "offsets-group"),
        ("", "classic-group"),
    )

    def group_of(self, message: str) -> str:
        """Return the group of a message's kind."""
        return next(group for kind, group in self.groups if kind in message)

    def values(self, message: str) -> dict[str, object]:
        """Return the value for a field's name."""
        group = self.group_of(message)
        records = BatchBuilder()
        records.append(b"key", b"value", 1_700_000_000_000)
        return {
            **BY_NAME,
            "coordinator_keys": [group],
            "current_leader_epoch": self.leader_epoch,
            "group_id": group,
            "key": group,
            "last_fetched_epoch": 0,
            "member_id": f"{message}-member",
            "metadata": encode_versioned(ConsumerProtocolSubscription(topics=[self.topic]), 3),
            "records": records.build(),
            "resource_name": self.topic,
            "topic_id": self.topic_id,
            **BY_MESSAGE.get(message, {}),
        }

    def referred(self, message: str) -> dict[str | None, object]:
        """Return the value for a field's entity type."""
        return {
            "topicName": self.topic,
            "groupId": self.group_of(message),
            "transactionalId": self.transactional_id,
            "producerId": self.producer_id,
        }


def filled(message: str, version: int, known: Known) -> Message:
    """Build a request of a version."""
    values, referred = known.values(message), known.referred(message)
    module = sys.modules[REGISTRY.load(message).__module__]

    def instance(struct: model.Struct) -> Any:
        there = {f.attribute: value(struct, f) for f in struct.fields if version in f.versions}
        return getattr(module, struct.name)(**there)

    def value(struct: model.Struct, f: model.Field) -> object:
        for name in (f"{struct.name}.{f.attribute}", f.attribute):
            if name in values:
                found = values[name]
                if f.struct is None or not found:
                    return found.format(version=version) if isinstance(found, str) else found
        if f.struct is not None:
            return [instance(f.struct)] if f.is_array else instance(f.struct)
        if f.entity_type in referred:
            found = referred[f.entity_type]
            return [found] if f.is_array else found
        return [] if f.is_array else f.default

    filled = instance(message_model(message).root)
    assert isinstance(filled, Message)
    return filled
