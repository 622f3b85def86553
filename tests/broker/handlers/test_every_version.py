"""Every version of every API that is served, and every API that is not: each gets its response."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kafkawire
from kafkawire import REGISTRY, ApiKey, ErrorCode, Message
from kafkawire.broker import Fault
from kafkawire.broker.apis import Listener, served_on, supported_apis
from kafkawire.broker.releases import ALL
from kafkawire.messages.add_raft_voter_request import AddRaftVoterRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kafkawire.messages.elect_leaders_response import ElectLeadersResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.join_group_request import JoinGroupRequest
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.node.local_cluster import CONTROLLER_ID, Killed
from kafkawire.records import MessageSetBuilder
from tests.broker.harness import Client, Harness
from tests.real.requests import Known, filled
from tests.real.responses import errors, structures

E = ErrorCode
TOPIC = "surface"
TRANSACTION = 1
METADATA_LOG = "__cluster_metadata"
SERVED = supported_apis(ALL, served_on(Listener.BROKER)).served
CASES = [
    (REGISTRY.request(key).name, version)  # type: ignore[union-attr]
    for key, versions in SERVED.items()
    for version in range(versions.first, versions.last + 1)
]
EXPECTED = {
    "ApiVersionsRequest": {E.REBOOTSTRAP_REQUIRED},
    "AddOffsetsToTxnRequest": {E.INVALID_PRODUCER_ID_MAPPING},
    "AddRaftVoterRequest": {E.UNSUPPORTED_VERSION},
    "AlterReplicaLogDirsRequest": {E.LOG_DIR_NOT_FOUND},
    "AlterUserScramCredentialsRequest": {E.RESOURCE_NOT_FOUND},
    "ConsumerGroupDescribeRequest": {E.GROUP_ID_NOT_FOUND},
    "CreateAclsRequest": {E.SECURITY_DISABLED},
    "CreateDelegationTokenRequest": {E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    "DescribeDelegationTokenRequest": {E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    "ExpireDelegationTokenRequest": {E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    "RenewDelegationTokenRequest": {E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    "UnregisterControllerRequest": {E.CONTROLLER_ID_NOT_REGISTERED},
    "DeleteAclsRequest": {E.SECURITY_DISABLED},
    "DescribeAclsRequest": {E.SECURITY_DISABLED},
    "DescribeTransactionsRequest": {E.TRANSACTIONAL_ID_NOT_FOUND},
    "ElectLeadersRequest": {E.ELECTION_NOT_NEEDED},
    "EndTxnRequest": {E.INVALID_PRODUCER_ID_MAPPING},
    "PushTelemetryRequest": {E.INVALID_REQUEST},
    "RemoveRaftVoterRequest": {E.UNSUPPORTED_VERSION},
    "TxnOffsetCommitRequest": {E.INVALID_PRODUCER_ID_MAPPING},
    "DeleteShareGroupOffsetsRequest": {E.GROUP_ID_NOT_FOUND},
    "DeleteShareGroupStateRequest": {E.COORDINATOR_NOT_AVAILABLE},
    "InitializeShareGroupStateRequest": {E.COORDINATOR_NOT_AVAILABLE},
    "ReadShareGroupStateRequest": {E.COORDINATOR_NOT_AVAILABLE},
    "ReadShareGroupStateSummaryRequest": {E.COORDINATOR_NOT_AVAILABLE},
    "ShareAcknowledgeRequest": {E.SHARE_SESSION_NOT_FOUND},
    "ShareGroupDescribeRequest": {E.GROUP_ID_NOT_FOUND},
    "StreamsGroupDescribeRequest": {E.GROUP_ID_NOT_FOUND},
    "StreamsGroupTopologyDescriptionUpdateRequest": {E.UNSUPPORTED_VERSION},
    "UnregisterBrokerRequest": {E.BROKER_ID_NOT_REGISTERED},
    "WriteShareGroupStateRequest": {E.COORDINATOR_NOT_AVAILABLE},
    "SyncGroupRequest": {E.UNKNOWN_MEMBER_ID, E.INCONSISTENT_GROUP_PROTOCOL},
    "HeartbeatRequest": {E.UNKNOWN_MEMBER_ID},
    "LeaveGroupRequest": {E.UNKNOWN_MEMBER_ID},
    "DescribeGroupsRequest": {E.GROUP_ID_NOT_FOUND},
    "DeleteGroupsRequest": {E.GROUP_ID_NOT_FOUND},
    "OffsetDeleteRequest": {E.GROUP_SUBSCRIBED_TO_TOPIC},
    "DeleteTopicsRequest": {E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_REQUEST},
    "JoinGroupRequest": {E.MEMBER_ID_REQUIRED},
    "SaslHandshakeRequest": {E.ILLEGAL_SASL_STATE},
    "SaslAuthenticateRequest": {E.ILLEGAL_SASL_STATE},
}
"""What a request may meet that is filled as for any broker, and finds no group of its own."""


def known(harness: Harness) -> Known:
    topic = harness.topic(TOPIC)
    assert topic is not None
    return Known(TOPIC, topic_id=topic.topic_id, leader_epoch=0)


def request_of(name: str, version: int, harness: Harness) -> Message:
    of_quorum = name == "DescribeQuorumRequest"
    request = filled(name, version, Known(METADATA_LOG) if of_quorum else known(harness))
    if isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
        request.cluster_id = harness.front().config.cluster_id
    if isinstance(request, ProduceRequest) and version < 3:
        builder = MessageSetBuilder(0 if version < 2 else 1)
        builder.append(b"key", b"value", 1_700_000_000_000)
        request.topic_data[0].partition_data[0].records = builder.build()
    return request


def lived_in(harness: Harness) -> Client:
    """Give the cluster coordinators, records, a group with a static member, and offsets."""
    client = harness.client()
    client.send(request_of("FindCoordinatorRequest", 0, harness), 0)
    transactions = request_of("FindCoordinatorRequest", 1, harness)
    assert isinstance(transactions, FindCoordinatorRequest)
    transactions.key_type = TRANSACTION
    client.send(transactions, 1)
    for name, version in (("Produce", 12), ("OffsetCommit", 9)):
        client.send(request_of(f"{name}Request", version, harness), version)
    join = filled("JoinGroupRequest", 9, known(harness))
    assert isinstance(join, JoinGroupRequest)
    join.group_id = known(harness).group_of("")
    client.send(join, 9)
    responses = [client.response() for _ in range(5)]
    joined = responses[-1]
    assert isinstance(joined, JoinGroupResponse)
    assert not any(errors(response) for response in responses if response is not None)
    sync = SyncGroupRequest(
        group_id=join.group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=join.group_instance_id,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")],
    )
    client.send(sync, 5)
    response = client.response()
    assert response is not None
    assert not errors(response)
    return client


@pytest.fixture
def harness() -> Harness:
    harness = Harness(topics={TOPIC: 1}, settings={"group.initial.rebalance.delay.ms": "0"})
    lived_in(harness)
    return harness


@pytest.mark.parametrize(("name", "version"), CASES)
def test_every_version_gets_its_response(harness: Harness, name: str, version: int) -> None:
    client = harness.client()
    client.send(request_of(name, version, harness), version)
    harness.advance(1.0)
    response = client.response()
    assert response is not None, client.closed
    assert errors(response) <= EXPECTED.get(name, set()), response


@pytest.mark.parametrize(("name", "version"), CASES)
def test_every_version_can_say_an_error(harness: Harness, name: str, version: int) -> None:
    key = REGISTRY.get(name).api_key
    harness.faults.append(Fault(ApiKey(key or 0), error=E.NOT_CONTROLLER))
    client = harness.client()
    client.send(request_of(name, version, harness), version)
    response = client.response()
    assert response is not None, client.closed
    has_error_field = any(
        row.attribute == "error_code" and row.first <= version <= row.last
        for one in structures(response)
        for row in one.__fields__
    )
    assert errors(response) == ({E.NOT_CONTROLLER} if has_error_field else set()), response


def not_served() -> Iterator[tuple[str, int]]:
    for key in ApiKey:
        info = REGISTRY.request(key)
        if info is not None and key not in SERVED:
            for version in range(info.first, info.last + 1):
                yield info.name, version


@pytest.mark.parametrize(("name", "version"), list(not_served()))
def test_an_api_that_is_not_offered_closes_with_a_reason(
    harness: Harness, name: str, version: int
) -> None:
    client = harness.client()
    client.send(filled(name, version, known(harness)), version)
    assert client.response() is None
    key = ApiKey(REGISTRY.get(name).api_key or 0)
    assert client.closed == f"{key.name}: brokers of Kafka all do not offer it"


def test_an_election_without_a_controller_is_refused_in_every_version() -> None:
    harness = Harness(2, topics={TOPIC: 1})
    harness.handle(Killed(CONTROLLER_ID))
    for version in range(3):
        client = harness.client()
        elected = TopicPartitions(topic=TOPIC, partitions=[0])
        client.send(ElectLeadersRequest(topic_partitions=[elected]), version)
        harness.wait(lambda client=client: not client.is_waiting())  # type: ignore[misc]
        assert errors(client.receive(ElectLeadersResponse)) == {E.REQUEST_TIMED_OUT}


def assert_still_there(client: Client, harness: Harness) -> None:
    assert client.closed is None
    client.send(filled("ApiVersionsRequest", 3, known(harness)), 3)
    assert client.receive(ApiVersionsResponse).error_code == E.NONE


@pytest.mark.parametrize("key", [-1, 999, 32767])
def test_an_unknown_api_key_closes_with_a_reason(harness: Harness, key: int) -> None:
    client = harness.client()
    header = key.to_bytes(2, "big", signed=True) + bytes.fromhex("0000 0000002a 0004 74657374")
    client.send_bytes(len(header).to_bytes(4, "big") + header)
    assert (client.frame(), client.closed) == (None, f"unknown API key {key}")


@pytest.mark.parametrize("version", [-1, 6, 100, 32767])
def test_an_unknown_version_of_api_versions_gets_error_35_in_version_0(
    harness: Harness, version: int
) -> None:
    client = harness.client()
    header = bytes.fromhex("0012") + version.to_bytes(2, "big", signed=True)
    body = header + bytes.fromhex("00000007 0004 74657374 00 0261 0261 00".replace(" ", ""))
    client.send_bytes(len(body).to_bytes(4, "big") + body)
    data = client.frame()
    assert data is not None
    frame = kafkawire.decode_frame(data, response_to=(18, 0))
    assert frame.correlation_id == 7
    assert isinstance(frame.body, ApiVersionsResponse)
    assert frame.body.error_code == E.UNSUPPORTED_VERSION
    [ours] = frame.body.api_keys
    assert (ours.api_key, ours.min_version, ours.max_version) == (18, 0, 5)
    assert_still_there(client, harness)


@pytest.mark.parametrize(("release", "version"), [("4.3", 2), ("4.3", 14), ("2.2", 8)])
def test_a_version_that_the_release_does_not_take_closes_with_a_reason(
    release: str, version: int
) -> None:
    harness = Harness(topics={TOPIC: 1}, release=release)
    client = harness.client()
    client.send_bytes(
        b"\0\0\0\x0f" + bytes([0, 0, 0, version]) + bytes.fromhex("00000001 0004 74657374 00")
    )
    assert client.response() is None
    assert client.closed is not None
    assert f"PRODUCE v{version}" in client.closed
    assert f"Kafka {release}" in client.closed
