"""Each method of Kafka's `Admin` has its call in ours, or is listed as missing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from kafkawire import blocking
from kafkawire.net.admin import Admin
from tests.real.java import Installation

INTERFACE: Final = "org.apache.kafka.clients.admin.Admin"
METHOD: Final = re.compile(r" (\w+)\(")
CALLS: Final = {
    "abortTransaction": "abort_hanging_transaction",
    "alterClientQuotas": "alter_client_quotas",
    "alterConsumerGroupOffsets": "alter_group_offsets",
    "alterPartitionReassignments": "alter_partition_reassignments",
    "alterReplicaLogDirs": "alter_replica_log_dirs",
    "alterShareGroupOffsets": "alter_share_group_offsets",
    "alterUserScramCredentials": "upsert_user_scram_credential",
    "close": "close",
    "createAcls": "create_acls",
    "createDelegationToken": "create_delegation_token",
    "createPartitions": "create_partitions",
    "createTopics": "create_topic",
    "deleteAcls": "delete_acls",
    "deleteConsumerGroupOffsets": "delete_group_offsets",
    "deleteConsumerGroups": "delete_group",
    "deleteRecords": "delete_records",
    "deleteShareGroupOffsets": "delete_share_group_offsets",
    "deleteShareGroups": "delete_group",
    "deleteStreamsGroups": "delete_group",
    "deleteTopics": "delete_topic",
    "describeAcls": "describe_acls",
    "describeClassicGroups": "describe_group",
    "describeClientQuotas": "describe_client_quotas",
    "describeCluster": "describe_cluster",
    "describeConfigs": "describe_configs",
    "describeConsumerGroups": "describe_consumer_groups",
    "describeDelegationToken": "describe_delegation_tokens",
    "describeFeatures": "broker_versions",
    "describeLogDirs": "describe_log_dirs",
    "describeMetadataQuorum": "describe_quorum",
    "describeProducers": "describe_producers",
    "describeReplicaLogDirs": "describe_replicas",
    "describeShareGroups": "describe_share_groups",
    "describeStreamsGroups": "describe_streams_groups",
    "describeTopics": "describe_topics",
    "describeTransactions": "describe_transaction",
    "describeUserScramCredentials": "describe_user_scram_credentials",
    "electLeaders": "elect_leaders",
    "expireDelegationToken": "expire_delegation_token",
    "fenceProducers": "fence_producer",
    "incrementalAlterConfigs": "alter_configs",
    "listClientMetricsResources": "list_config_resources",
    "listConfigResources": "list_config_resources",
    "listConsumerGroupOffsets": "group_offsets",
    "listConsumerGroups": "list_groups",
    "listGroups": "list_groups",
    "listOffsets": "list_offsets",
    "listPartitionReassignments": "list_partition_reassignments",
    "listShareGroupOffsets": "share_group_offsets",
    "listTopics": "list_topics",
    "listTransactions": "list_transactions",
    "metrics": "metrics",
    "removeMembersFromConsumerGroup": "remove_members_from_group",
    "renewDelegationToken": "renew_delegation_token",
    "unregisterBroker": "unregister_broker",
    "updateFeatures": "update_features",
}
"""A method of Kafka's -> the call of ours that does it."""
MISSING: Final = {
    "addRaftVoter",
    "alterStreamsGroupOffsets",
    "clientInstanceId",
    "deleteStreamsGroupOffsets",
    "forceTerminateTransaction",
    "listStreamsGroupOffsets",
    "registerMetricForSubscription",
    "removeRaftVoter",
    "unregisterController",
    "unregisterMetricFromSubscription",
}
"""Methods that ours has no call for, nor a tested one for that kind of group."""


def methods(installation: Installation) -> set[str]:
    """Return the names of the methods of Kafka's `Admin`, without those that create a client."""
    javap = Path(installation.java).resolve().with_name("javap")
    printed = subprocess.run(
        [javap, "-cp", installation.class_path, INTERFACE],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [line for line in printed.splitlines() if " static " not in line]
    return {matched[1] for matched in map(METHOD.search, lines) if matched is not None}


def test_each_method_has_its_call_or_is_listed_as_missing(installation: Installation) -> None:
    assert methods(installation) == CALLS.keys() | MISSING
    assert not CALLS.keys() & MISSING


def test_the_calls_exist_in_both_clients() -> None:
    names = set(CALLS.values())
    assert not [each for each in names if not callable(getattr(Admin, each, None))]
    assert not [each for each in names if not callable(getattr(blocking.Admin, each, None))]
