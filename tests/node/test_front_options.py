"""A node's listeners, users and ACLs, in virtual time."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from kafkawire.controller.operations.acls import AUTHORIZER
from kafkawire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kafkawire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
)
from kafkawire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafkawire.messages.create_acls_response import CreateAclsResponse
from kafkawire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kafkawire.messages.delete_acls_response import DeleteAclsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.describe_acls_request import DescribeAclsRequest
from kafkawire.messages.describe_acls_response import DescribeAclsResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafkawire.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.protocol import ErrorCode as E
from kafkawire.raft import Endpoint

from ..broker.harness import metadata
from .front_harness import BROKER, NodeHarness

SASL = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}
STANDARD = {
    AUTHORIZER: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
CLIENTS = Endpoint("SASL_PLAINTEXT", "node", 9094)
OTHER = Endpoint("OTHER", "node", 9095)
"""Without SASL and TLS."""
SALTED = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 4096)


def test_a_node_describes_the_listeners_that_it_has() -> None:
    harness = NodeHarness(SASL, listeners=(BROKER, Endpoint("SASL_SSL", "node", 9094)))
    resource = DescribeConfigsResource(resource_type=4, resource_name="1")
    request = DescribeConfigsRequest(resources=[resource])
    [described] = harness.client().exchange(request, 4, DescribeConfigsResponse).results
    found = {each.name: each.value for each in described.configs}
    assert found["listeners"] == "PLAINTEXT://node:9092,SASL_SSL://node:9094"
    [registered] = harness.front.broker.metadata.image.brokers.values()
    protocols = {each.name: each.security_protocol for each in registered.endpoints}
    assert protocols == {"PLAINTEXT": 0, "SASL_SSL": 3}


def test_only_clients_authenticate() -> None:
    harness = NodeHarness(SASL, listeners=(BROKER, CLIENTS))
    client = harness.client(listener="SASL_PLAINTEXT")
    client.send(MetadataRequest(topics=None), 9)
    assert client.closed == "METADATA before authentication"
    [shown] = metadata(harness.client()).brokers
    assert (shown.host, shown.port) == ("node", 9092)


def test_scram_credentials_are_described() -> None:
    client = NodeHarness().client()
    bob = ScramCredentialUpsertion(
        name="bob", mechanism=1, iterations=4096, salt=b"salt", salted_password=SALTED
    )
    altered = client.exchange(
        AlterUserScramCredentialsRequest(upsertions=[bob]), 0, AlterUserScramCredentialsResponse
    )
    assert altered.results[0].error_code == E.NONE

    def described(*users: str) -> list[tuple[str, int, list[tuple[int, int]]]]:
        names = [UserName(name=each) for each in users]
        response = client.exchange(
            DescribeUserScramCredentialsRequest(users=names),
            0,
            DescribeUserScramCredentialsResponse,
        )
        return [
            (
                each.user,
                each.error_code,
                [(info.mechanism, info.iterations) for info in each.credential_infos],
            )
            for each in response.results
        ]

    assert described() == [("bob", E.NONE, [(1, 4096)])]
    assert described("eve", "bob") == [
        ("eve", E.RESOURCE_NOT_FOUND, []),
        ("bob", E.NONE, [(1, 4096)]),
    ]
    assert described("bob", "bob") == [("bob", E.DUPLICATE_RESOURCE, [])]


ACL: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def found_acls(harness: NodeHarness, kind: int = 1) -> DescribeAclsResponse:
    """Describe the ACLs of resources of a type; 1: any."""
    request = DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return harness.client().exchange(request, 3, DescribeAclsResponse)


def test_acls_are_created_described_and_deleted() -> None:
    harness = NodeHarness(STANDARD)
    acls = [AclCreation(**ACL | {"operation": each}) for each in (3, 8)]
    created = harness.client().exchange(CreateAclsRequest(creations=acls), 3, CreateAclsResponse)
    assert [each.error_code for each in created.results] == [E.NONE, E.NONE]
    harness.restart()
    [resource] = found_acls(harness).resources
    assert (resource.resource_type, resource.resource_name) == (2, "orders")
    assert [(each.principal, each.operation) for each in resource.acls] == [
        ("User:alice", 3),
        ("User:alice", 8),
    ]
    assert not found_acls(harness, kind=3).resources
    assert found_acls(harness, kind=99).error_code == E.INVALID_REQUEST
    reads = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="orders",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=3,
        permission_type=1,
    )
    deleted = harness.client().exchange(DeleteAclsRequest(filters=[reads]), 3, DeleteAclsResponse)
    assert len(deleted.filter_results[0].matching_acls) == 1
    [resource] = found_acls(harness).resources
    assert [each.operation for each in resource.acls] == [8]


def test_without_an_authorizer_there_are_no_acls() -> None:
    harness = NodeHarness()
    request = CreateAclsRequest(creations=[AclCreation(**ACL)])
    created = harness.client().exchange(request, 3, CreateAclsResponse)
    assert created.results[0].error_code == E.SECURITY_DISABLED
    described = found_acls(harness)
    assert described.error_code == E.SECURITY_DISABLED
    assert described.error_message == "No Authorizer is configured."


@pytest.mark.parametrize("first", [BROKER.name, OTHER.name])
def test_delayed_responses_go_to_the_listener_of_their_request(first: str) -> None:
    harness = NodeHarness(listeners=(BROKER, OTHER))
    clients = [
        harness.client(listener=first),
        harness.client(),
        harness.client(listener=OTHER.name),
    ]
    for client in clients:
        client.send(InitProducerIdRequest(transactional_id=None), 4)
    harness.advance(1.0)
    found = [client.receive(InitProducerIdResponse) for client in clients]
    assert [each.producer_id for each in found] == [0, 1, 2]


def test_initial_topics_are_created_when_they_do_not_exist() -> None:
    harness = NodeHarness(initial={"t": 2, "bad name": 1})
    harness.wait(lambda: "t" in harness.cluster.topics)
    assert len(metadata(harness.client(), "t").topics[0].partitions) == 2
    state = DeleteTopicState(name="t")
    deletion = DeleteTopicsRequest(topics=[state], timeout_ms=1000)
    harness.client().exchange(deletion, 6, DeleteTopicsResponse)
    harness.advance(60.0)
    assert not list(harness.cluster.topics), "it was deleted on purpose"
    harness.restart()
    harness.wait(lambda: "t" in harness.cluster.topics)


def test_initial_topics_wait_for_enough_brokers() -> None:
    harness = NodeHarness({"default.replication.factor": "2"}, initial={"t": 1})
    harness.advance(60.0)
    assert not list(harness.cluster.topics)
