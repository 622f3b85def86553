"""Each API in each version: with a permission missing, Kafka's error; with all, none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from kafkawire import ApiKey, ErrorCode, Message
from kafkawire.broker.apis import APIS
from kafkawire.broker.guards.table import checks_of
from kafkawire.broker.security.operations import AclResource, Operation
from kafkawire.messages.access_control_entry_record import AccessControlEntryRecord
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from tests.broker.handlers.test_every_version import (
    CASES,
    TOPIC,
    lived_in,
    request_of,
)
from tests.broker.harness import Client, Harness
from tests.broker.security.acls import CLUSTER, STANDARD, acl, everything, set_acls
from tests.real.responses import structures

E, O, R = ErrorCode, Operation, AclResource  # noqa: E741
ERRORS: Final = {
    R.TOPIC: E.TOPIC_AUTHORIZATION_FAILED,
    R.GROUP: E.GROUP_AUTHORIZATION_FAILED,
    R.CLUSTER: E.CLUSTER_AUTHORIZATION_FAILED,
    R.TRANSACTIONAL_ID: E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Need(NamedTuple):
    """A permission that a request needs, in some versions."""

    operation: Operation
    resource: AclResource
    first: int = 0
    last: int = 99


TOPIC_READ, TOPIC_DESCRIBE = Need(O.READ, R.TOPIC), Need(O.DESCRIBE, R.TOPIC)
GROUP_READ, GROUP_DESCRIBE = Need(O.READ, R.GROUP), Need(O.DESCRIBE, R.GROUP)
GROUP_DELETE, TXN_WRITE = Need(O.DELETE, R.GROUP), Need(O.WRITE, R.TRANSACTIONAL_ID)
ALTER, DESCRIBE = Need(O.ALTER, R.CLUSTER), Need(O.DESCRIBE, R.CLUSTER)
ACTION = Need(O.CLUSTER_ACTION, R.CLUSTER)
NEEDS: Final = {
    "Produce": [Need(O.WRITE, R.TOPIC)],
    "Fetch": [TOPIC_READ],
    "ListOffsets": [TOPIC_DESCRIBE],
    "Metadata": [TOPIC_DESCRIBE],
    "OffsetCommit": [GROUP_READ, TOPIC_READ],
    "OffsetFetch": [GROUP_DESCRIBE, TOPIC_DESCRIBE],
    "FindCoordinator": [GROUP_DESCRIBE],
    "JoinGroup": [GROUP_READ],
    "Heartbeat": [GROUP_READ],
    "LeaveGroup": [GROUP_READ],
    "SyncGroup": [Need(O.READ, R.GROUP, 0, 4)],  # v5 of the test has no protocol
    "DescribeGroups": [GROUP_DESCRIBE],
    "ListGroups": [],
    "CreateTopics": [Need(O.CREATE, R.TOPIC), Need(O.DESCRIBE_CONFIGS, R.TOPIC, 5)],
    "DeleteTopics": [Need(O.DELETE, R.TOPIC)],
    "DeleteRecords": [Need(O.DELETE, R.TOPIC)],
    "InitProducerId": [TXN_WRITE],
    "OffsetForLeaderEpoch": [TOPIC_DESCRIBE],
    "AddPartitionsToTxn": [
        Need(O.WRITE, R.TRANSACTIONAL_ID, 0, 3),
        Need(O.WRITE, R.TOPIC, 0, 3),
        Need(O.CLUSTER_ACTION, R.CLUSTER, 4),
    ],
    "AddOffsetsToTxn": [TXN_WRITE, GROUP_READ],
    "EndTxn": [TXN_WRITE],
    "WriteTxnMarkers": [ACTION],
    "TxnOffsetCommit": [TXN_WRITE, GROUP_READ, TOPIC_READ],
    "DescribeAcls": [DESCRIBE],
    "CreateAcls": [ALTER],
    "DeleteAcls": [ALTER],
    "DescribeConfigs": [Need(O.DESCRIBE_CONFIGS, R.TOPIC)],
    "AlterConfigs": [Need(O.ALTER_CONFIGS, R.TOPIC)],
    "AlterReplicaLogDirs": [ALTER],
    "DescribeLogDirs": [Need(O.DESCRIBE, R.CLUSTER, 3)],
    "CreatePartitions": [Need(O.ALTER, R.TOPIC)],
    "DeleteGroups": [GROUP_DELETE],
    "ElectLeaders": [ALTER],
    "IncrementalAlterConfigs": [Need(O.ALTER_CONFIGS, R.TOPIC)],
    "AlterPartitionReassignments": [ALTER],
    "ListPartitionReassignments": [DESCRIBE],
    "OffsetDelete": [GROUP_DELETE, TOPIC_READ],
    "DescribeClientQuotas": [Need(O.DESCRIBE_CONFIGS, R.CLUSTER)],
    "AlterClientQuotas": [Need(O.ALTER_CONFIGS, R.CLUSTER)],
    "DescribeUserScramCredentials": [DESCRIBE],
    "AlterUserScramCredentials": [ALTER],
    "DescribeQuorum": [DESCRIBE],
    "UpdateFeatures": [ALTER],
    "DescribeCluster": [],
    "DescribeProducers": [TOPIC_READ],
    "UnregisterBroker": [ALTER],
    "DescribeTransactions": [Need(O.DESCRIBE, R.TRANSACTIONAL_ID)],
    "ListTransactions": [],
    "ConsumerGroupHeartbeat": [GROUP_READ, TOPIC_DESCRIBE],
    "ConsumerGroupDescribe": [GROUP_DESCRIBE],
    "ListConfigResources": [Need(O.DESCRIBE_CONFIGS, R.CLUSTER)],
    "DescribeTopicPartitions": [TOPIC_DESCRIBE],
    "ShareGroupHeartbeat": [GROUP_READ, TOPIC_DESCRIBE],
    "ShareGroupDescribe": [GROUP_DESCRIBE],
    "ShareFetch": [GROUP_READ, TOPIC_READ],
    "ShareAcknowledge": [GROUP_READ],
    "AddRaftVoter": [ALTER],
    "RemoveRaftVoter": [ALTER],
    "InitializeShareGroupState": [ACTION],
    "ReadShareGroupState": [ACTION],
    "WriteShareGroupState": [ACTION],
    "DeleteShareGroupState": [ACTION],
    "ReadShareGroupStateSummary": [ACTION],
    "StreamsGroupHeartbeat": [GROUP_READ, TOPIC_DESCRIBE],
    "StreamsGroupDescribe": [GROUP_DESCRIBE],
    "StreamsGroupTopologyDescriptionUpdate": [GROUP_READ],
    "DescribeShareGroupOffsets": [GROUP_DESCRIBE, TOPIC_DESCRIBE],
    "AlterShareGroupOffsets": [GROUP_READ],
    "DeleteShareGroupOffsets": [GROUP_DELETE],
    "UnregisterController": [ALTER],
    "CreateDelegationToken": [],
    "RenewDelegationToken": [],
    "ExpireDelegationToken": [],
    "DescribeDelegationToken": [],
    "SaslHandshake": [],
    "SaslAuthenticate": [],
    "ApiVersions": [],
    "GetTelemetrySubscriptions": [],
    "PushTelemetry": [],
}
"""API -> the permissions that the request of the test needs, as Kafka's documentation has them.

Those for topics of groups are in `test_authorized.py`: they count once the group is there.
"""
BESIDES: Final = {
    "AlterShareGroupOffsets": [TOPIC_READ],
    "DeleteShareGroupOffsets": [TOPIC_READ],
    "ConsumerGroupDescribe": [TOPIC_DESCRIBE],
    "ShareGroupDescribe": [TOPIC_DESCRIBE],
    "StreamsGroupDescribe": [TOPIC_DESCRIBE],
}
"""API -> permissions that it has in each case."""


def needs(name: str, version: int) -> list[Need]:
    return [
        each for each in NEEDS[name.removesuffix("Request")] if each.first <= version <= each.last
    ]


def permitted(needed: list[Need]) -> Iterator[AccessControlEntryRecord]:
    for each in needed:
        yield acl(each.resource, CLUSTER if each.resource is R.CLUSTER else "*", each.operation)


def failures(response: Message) -> set[ErrorCode]:
    """Collect the errors of authorization, by whatever name their fields go."""
    codes = {
        getattr(one, row.attribute)
        for one in structures(response)
        for row in one.__fields__
        if row.attribute.endswith("error_code")
    }
    return {ErrorCode(code) for code in codes} & {*ERRORS.values()}


@pytest.fixture(scope="module")
def cluster() -> Harness:
    harness = Harness(topics={}, settings=STANDARD | {"group.initial.rebalance.delay.ms": "0"})
    set_acls(harness, *everything())
    harness.create_topic(TOPIC)
    lived_in(harness)
    return harness


def exchange(harness: Harness, client: Client, name: str, version: int) -> Message:
    client.send(request_of(name, version, harness), version)
    harness.advance(1.0)
    response = client.response()
    assert response is not None, client.closed
    return response


@pytest.mark.parametrize(("name", "version"), CASES)
def test_each_missing_permission_is_an_error_of_its_resource(
    cluster: Harness, name: str, version: int
) -> None:
    needed = needs(name, version)
    besides = BESIDES.get(name.removesuffix("Request"), [])
    client = cluster.client()
    for missing in needed:
        set_acls(cluster, *permitted([*besides, *(each for each in needed if each is not missing)]))
        response = exchange(cluster, client, name, version)
        assert failures(response) == {ERRORS[missing.resource]}, (missing, response)
    set_acls(cluster, *permitted([*besides, *needed]))
    assert not failures(exchange(cluster, client, name, version))
    client.disconnect()


@pytest.mark.parametrize("key", sorted(APIS))
def test_the_checks_of_an_api_are_about_the_permissions_of_its_row(key: ApiKey) -> None:
    checked = {permission for check in checks_of(key) for permission in check.permissions}
    assert checked == set(APIS[key].permissions)


def test_a_client_is_refused_before_the_acls_are_loaded() -> None:
    harness = Harness(settings=STANDARD)
    authorizer = harness.broker().authorizer
    assert authorizer is not None
    authorizer.is_loaded = False
    client = harness.client()
    client.send(FindCoordinatorRequest(key="group"), 3)
    assert client.closed == "FIND_COORDINATOR before the ACLs are loaded"
