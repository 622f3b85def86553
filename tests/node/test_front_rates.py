"""Quotas of request time, of changes of topics and of new connections, in virtual time."""

from __future__ import annotations

from itertools import count
from typing import Final, NamedTuple

import pytest

from kafkawire.broker.forwarding.envelope import EnclosedPlan
from kafkawire.broker.request import Request
from kafkawire.messages import alter_client_quotas_request as alter
from kafkawire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.describe_quorum_request import DescribeQuorumRequest
from kafkawire.messages.describe_quorum_response import DescribeQuorumResponse
from kafkawire.messages.envelope_response import EnvelopeResponse
from kafkawire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kafkawire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.metadata.client_quotas import (
    CONNECTION_CREATION,
    CONTROLLER_MUTATION,
    REQUEST,
    quota_of_address,
)
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode as E

from .front_harness import NodeClient, NodeHarness

Entity = dict[str, str | None]
CLIENT: Final[Entity] = {"client-id": "tester"}
WINDOWS: Final = 11
TOPIC: Final = "t"
EXCEEDED: Final = E.THROTTLING_QUOTA_EXCEEDED


def set_quota(harness: NodeHarness, entity: Entity, key: str, value: float | None) -> None:
    """Set or remove a quota, by a client that has none."""
    op = alter.OpData(key=key, value=value or 0.0, remove=value is None)
    entry = alter.EntryData(
        entity=[
            alter.EntityData(entity_type=type_, entity_name=name) for type_, name in entity.items()
        ],
        ops=[op],
    )
    client = harness.client()
    client.send(alter.AlterClientQuotasRequest(entries=[entry]), 1, client_id="operator")
    harness.wait(lambda: len(client.received) >= 4)
    response = client.receive(AlterClientQuotasResponse)
    assert response.entries[0].error_code == E.NONE


class Change(NamedTuple):
    """What became of a change of topics."""

    error: int
    throttle_ms: int


def changed(client: NodeClient, request: Message, version: int) -> Change:
    match request:
        case CreateTopicsRequest():
            created = client.exchange(request, version, CreateTopicsResponse)
            return Change(created.topics[0].error_code, created.throttle_time_ms)
        case CreatePartitionsRequest():
            grown = client.exchange(request, version, CreatePartitionsResponse)
            return Change(grown.results[0].error_code, grown.throttle_time_ms)
        case _:
            deleted = client.exchange(request, version, DeleteTopicsResponse)
            return Change(deleted.responses[0].error_code, deleted.throttle_time_ms)


def creation(partitions: int, name: str = "new", validate_only: bool = False) -> Message:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000, validate_only=validate_only)


def growth(partitions: int) -> Message:
    topic = CreatePartitionsTopic(name=TOPIC, count=partitions, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=1000)


def deletion(version: int) -> Message:
    by_name = DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1000)
    by_state = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=1000)
    return by_name if version < 6 else by_state


@pytest.fixture
def harness() -> NodeHarness:
    return NodeHarness(topics={TOPIC: 5})


def spend(harness: NodeHarness, partitions: int) -> None:
    """Use up tokens with a topic, by a version that has the error."""
    spent = changed(harness.client(), creation(partitions, "spent"), 7)
    assert spent == Change(E.NONE, 0), "changes are made while there are tokens"


PERMISSIVE: Final = [(creation(5), 5), (growth(10), 2), (deletion(4), 4)]
STRICT: Final = [
    *((creation(5), version) for version in (6, 7)),
    (growth(10), 3),
    *((deletion(version), version) for version in (5, 6)),
]


@pytest.mark.parametrize(("request_", "version"), STRICT)
def test_a_change_beyond_the_quota_has_an_error(
    harness: NodeHarness, request_: Message, version: int
) -> None:
    set_quota(harness, CLIENT, CONTROLLER_MUTATION, 1.0)
    spend(harness, WINDOWS + 5)
    client = harness.client()
    refused = changed(client, request_, version)
    assert refused.error == EXCEEDED
    assert refused.throttle_ms == pytest.approx(5_000, abs=200)
    before = harness.now
    assert changed(client, request_, version) == Change(E.NONE, 0)
    waited = harness.now - before
    assert waited == pytest.approx(refused.throttle_ms / 1000, abs=0.1), "the channel was muted"


@pytest.mark.parametrize(("request_", "version"), PERMISSIVE)
def test_a_version_without_the_error_is_throttled_after_the_change(
    harness: NodeHarness, request_: Message, version: int
) -> None:
    set_quota(harness, CLIENT, CONTROLLER_MUTATION, 1.0)
    spend(harness, WINDOWS)
    client = harness.client()
    change = changed(client, request_, version)
    assert change.error == E.NONE
    assert change.throttle_ms == pytest.approx(5_000, abs=200)
    client.send(MetadataRequest(topics=[]), 9)
    harness.advance(change.throttle_ms / 1000 - 0.5)
    assert not client.received, "the channel is muted"
    harness.advance(0.6)
    assert client.receive(MetadataResponse)


def test_only_what_is_carried_out_is_charged(harness: NodeHarness) -> None:
    set_quota(harness, CLIENT, CONTROLLER_MUTATION, 1.0)
    for _ in range(20):
        assert changed(harness.client(), creation(5, TOPIC), 7).error == E.TOPIC_ALREADY_EXISTS
    spend(harness, WINDOWS)


def test_others_are_not_charged(harness: NodeHarness) -> None:
    set_quota(harness, {"client-id": "other"}, CONTROLLER_MUTATION, 1.0)
    spend(harness, 100)
    assert changed(harness.client(), growth(100), 3) == Change(E.NONE, 0)


def test_a_removed_quota_does_not_throttle(harness: NodeHarness) -> None:
    set_quota(harness, CLIENT, CONTROLLER_MUTATION, 1.0)
    spend(harness, 100)
    set_quota(harness, CLIENT, CONTROLLER_MUTATION, None)
    assert changed(harness.client(), growth(10), 3) == Change(E.NONE, 0)


def test_a_change_without_an_active_controller_has_its_error() -> None:
    """As without a quota, for which it would not be in an Envelope."""
    body = creation(5)
    request = Request(1, 1, 0, ApiKey.CREATE_TOPICS, 7, 0, None, "", body, 0.0)
    response = EnclosedPlan(request).response(EnvelopeResponse(error_code=E.REQUEST_TIMED_OUT), 0.0)
    assert isinstance(response, CreateTopicsResponse)
    assert [each.error_code for each in response.topics] == [E.REQUEST_TIMED_OUT]


# -- request time


def work(harness: NodeHarness, seconds: float) -> None:
    """Let each look at the clock be so many seconds later, as if the thread had worked."""
    ticks = count()
    harness.clock = lambda: next(ticks) * seconds


@pytest.mark.parametrize(
    "entity", [CLIENT, {"user": "ANONYMOUS"}, {"user": None}, {"user": None, "client-id": None}]
)
def test_a_client_that_uses_more_time_than_its_share_waits(
    harness: NodeHarness, entity: Entity
) -> None:
    set_quota(harness, entity, REQUEST, 1.0)
    work(harness, 0.1)
    client = harness.client()
    response = client.exchange(MetadataRequest(topics=[]), 9, MetadataResponse)
    assert response.throttle_time_ms == 0, "10% in one of 10 windows"
    response = client.exchange(MetadataRequest(topics=[]), 9, MetadataResponse)
    assert response.throttle_time_ms == 1000, "at most a window"
    client.send(MetadataRequest(topics=[]), 0)
    harness.advance(0.9)
    assert not client.received
    harness.advance(0.2)
    assert client.receive(MetadataResponse).throttle_time_ms == 0, "not in version 0"
    client.send(ApiVersionsRequest(), 0)
    harness.advance(0.8)
    assert not client.received, "throttled all the same"
    harness.advance(0.3)
    assert client.receive(ApiVersionsResponse)


def test_a_controller_counts_time_for_itself(harness: NodeHarness) -> None:
    """But not that of the quorum's own APIs."""
    set_quota(harness, CLIENT, REQUEST, 1.0)
    work(harness, 1.0)
    client = harness.client()
    assert client.exchange(MetadataRequest(topics=[]), 9, MetadataResponse).throttle_time_ms
    controller = harness.client(listener="CONTROLLER")
    quorum = DescribeQuorumRequest(topics=[])
    assert controller.exchange(quorum, 2, DescribeQuorumResponse)
    controller.send(quorum, 2)
    assert controller.receive(DescribeQuorumResponse), "at once"
    request = ListPartitionReassignmentsRequest(topics=None)
    response = controller.exchange(request, 0, ListPartitionReassignmentsResponse)
    assert response.throttle_time_ms == 1000
    controller.send(request, 0)
    harness.advance(0.9)
    assert not controller.received
    harness.advance(0.2)
    assert controller.receive(ListPartitionReassignmentsResponse)


def test_work_that_takes_no_time_is_not_throttled(harness: NodeHarness) -> None:
    set_quota(harness, CLIENT, REQUEST, 0.001)
    client = harness.client()
    for _ in range(100):
        response = client.exchange(MetadataRequest(topics=[]), 9, MetadataResponse)
        assert response.throttle_time_ms == 0


# -- connections


def test_connections_beyond_the_quota_of_an_address_are_closed_later(harness: NodeHarness) -> None:
    set_quota(harness, {"ip": "127.0.0.1"}, CONNECTION_CREATION, 1.0)
    accepted = [harness.client() for _ in range(10)]
    throttled = harness.client()
    for client in (*accepted, throttled):
        client.send(MetadataRequest(topics=[]), 9)
    assert all(client.receive(MetadataResponse) for client in accepted)
    assert not throttled.received
    assert throttled.closed is None
    harness.advance(0.9)
    assert throttled.closed is None
    harness.advance(0.2)
    assert throttled.closed == f"127.0.0.1 exceeds its {CONNECTION_CREATION}"
    throttled.disconnect()
    harness.advance(12.0)
    assert harness.client().exchange(MetadataRequest(topics=[]), 9, MetadataResponse)


def test_the_quota_of_an_address_is_for_all_listeners_of_a_node(harness: NodeHarness) -> None:
    set_quota(harness, {"ip": "127.0.0.1"}, CONNECTION_CREATION, 1.0)
    clients = [
        harness.client(listener=name) for name in ("CONTROLLER", "PLAINTEXT") for _ in range(6)
    ]
    for client in clients:
        client.send(ApiVersionsRequest(), 0)
    assert [bool(each.received) for each in clients] == [True] * 10 + [False] * 2
    throttled = harness.client(listener="CONTROLLER")
    harness.advance(1.1)
    assert throttled.closed == f"127.0.0.1 exceeds its {CONNECTION_CREATION}"
    harness.advance(12.0)
    set_quota(harness, {"ip": "127.0.0.1"}, CONNECTION_CREATION, None)
    clients = [harness.client(listener="CONTROLLER") for _ in range(20)]
    assert [each.exchange(ApiVersionsRequest(), 0, ApiVersionsResponse) for each in clients]


def test_the_quota_of_an_address_is_its_own_or_the_default() -> None:
    quotas = {
        frozenset({("ip", None)}): {CONNECTION_CREATION: 5.0},
        frozenset({("ip", "10.0.0.1")}): {CONNECTION_CREATION: 7.0},
    }
    assert quota_of_address(quotas, "10.0.0.1") == 7.0
    assert quota_of_address(quotas, "10.0.0.2") == 5.0
    assert quota_of_address({}, "10.0.0.2") is None
