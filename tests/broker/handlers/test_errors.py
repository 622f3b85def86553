"""Errors of the broker's own: the request gets an error response or a closed connection, logged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkawire import ApiKey, ErrorCode
from kafkawire.broker.handlers import HANDLERS
from kafkawire.errors import NullNotAllowed
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.primitives.structure import ZERO_UUID
from tests.broker.conftest import errors_of
from tests.broker.harness import CLUSTER_ID, Client, Harness, metadata

E = ErrorCode


def topics_of(client: Client, version: int, *topics: MetadataRequestTopic) -> list[Any]:
    response = client.exchange(MetadataRequest(topics=list(topics)), version, MetadataResponse)
    return [(each.error_code, each.name, each.topic_id) for each in response.topics]


@pytest.mark.parametrize("version", [10, 11])
def test_ids_and_null_names_are_rejected_before_metadata_12(version: int) -> None:
    """As Kafka 4.3 does: each topic with INVALID_REQUEST, a null name as the empty one."""
    harness = Harness(topics={"t": 1})
    client = harness.client()
    topic = harness.topic("t")
    assert topic is not None
    by_id = MetadataRequestTopic(name=None, topic_id=topic.topic_id)
    both = MetadataRequestTopic(name="t", topic_id=topic.topic_id)
    nothing = MetadataRequestTopic(name=None)
    named = MetadataRequestTopic(name="t")
    invalid = E.INVALID_REQUEST
    assert topics_of(client, version, by_id) == [(invalid, "", topic.topic_id)]
    assert topics_of(client, version, both) == [(invalid, "t", topic.topic_id)]
    assert topics_of(client, version, nothing) == [(invalid, "", ZERO_UUID)]
    assert topics_of(client, version, named, by_id) == [
        (invalid, "t", ZERO_UUID),
        (invalid, "", topic.topic_id),
    ]
    assert topics_of(client, version, named) == [(E.NONE, "t", topic.topic_id)]


@pytest.mark.parametrize("version", [12, 13])
def test_where_an_id_is_given_names_are_ignored(version: int) -> None:
    harness = Harness(topics={"t": 1, "u": 1})
    client = harness.client()
    topic = harness.topic("t")
    assert topic is not None
    found = (E.NONE, "t", topic.topic_id)
    by_id = MetadataRequestTopic(name=None, topic_id=topic.topic_id)
    other = MetadataRequestTopic(name="u", topic_id=topic.topic_id)
    assert topics_of(client, version, by_id) == [found]
    assert topics_of(client, version, other) == [found]
    assert topics_of(client, version, MetadataRequestTopic(name="u"), by_id) == [found]
    unknown = MetadataRequestTopic(name=None, topic_id=b"x" * 16)
    assert topics_of(client, version, unknown) == [(E.UNKNOWN_TOPIC_ID, None, b"x" * 16)]
    nothing = MetadataRequestTopic(name=None)
    assert topics_of(client, version, nothing) == [(E.UNKNOWN_SERVER_ERROR, "", ZERO_UUID)]


def with_handler(
    monkeypatch: pytest.MonkeyPatch, key: ApiKey, handle: Any, error_response: Any
) -> None:
    handler = SimpleNamespace(handle=handle, error_response=error_response)
    monkeypatch.setitem(HANDLERS._modules, key, handler)


def unwritable(*_: object) -> MetadataResponse:
    return MetadataResponse(topics=[MetadataResponseTopic(name=None)])


def refusing(_body: object, error: ErrorCode) -> MetadataResponse:
    return MetadataResponse(topics=[MetadataResponseTopic(name="", error_code=error)])


def failing(*_: object) -> MetadataResponse:
    raise ZeroDivisionError("a mistake")


@pytest.mark.parametrize("handle", [unwritable, failing])
def test_a_handler_at_fault_gets_an_error_response(
    monkeypatch: pytest.MonkeyPatch, expected_errors: pytest.LogCaptureFixture, handle: Any
) -> None:
    with_handler(monkeypatch, ApiKey.METADATA, handle, refusing)
    harness = Harness()
    client = harness.client()
    for _ in range(2):  # and the connection stays open
        response = client.exchange(MetadataRequest(topics=[]), 9, MetadataResponse)
        assert [each.error_code for each in response.topics] == [E.UNKNOWN_SERVER_ERROR]
    assert not harness.broker().channel.pending
    [first, _] = errors_of(expected_errors)
    assert "METADATA v9" in first
    assert ("ZeroDivisionError" if handle is failing else NullNotAllowed.__name__) in first


@pytest.mark.parametrize("handle", [unwritable, failing])
@pytest.mark.parametrize("error_response", [unwritable, failing])
def test_where_the_error_response_fails_too_the_connection_closes(
    monkeypatch: pytest.MonkeyPatch,
    expected_errors: pytest.LogCaptureFixture,
    handle: Any,
    error_response: Any,
) -> None:
    with_handler(monkeypatch, ApiKey.METADATA, handle, error_response)
    harness = Harness()
    client, other = harness.client(), harness.client()
    client.send(MetadataRequest(topics=[]), 9)
    assert client.frame() is None
    assert client.closed is not None
    assert client.closed.startswith("unexpected error in the broker: ")
    assert errors_of(expected_errors)
    client.disconnect()
    assert not harness.broker().channel.pending
    monkeypatch.undo()
    assert metadata(other).cluster_id == CLUSTER_ID


def test_a_produce_without_acks_at_fault_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch, expected_errors: pytest.LogCaptureFixture
) -> None:
    with_handler(monkeypatch, ApiKey.PRODUCE, failing, refusing)
    client = Harness().client()
    client.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 9)
    assert client.frame() is None
    assert client.closed == "unexpected error in the broker: ZeroDivisionError: a mistake"
    assert errors_of(expected_errors)


def test_the_coordinator_of_the_group_without_a_name_exists_as_in_kafka() -> None:
    client = Harness().client()
    request = FindCoordinatorRequest(coordinator_keys=[""])
    client.exchange(request, 4, FindCoordinatorResponse)  # creates the topic of offsets
    [found] = client.exchange(request, 4, FindCoordinatorResponse).coordinators
    assert (found.error_code, found.error_message) == (E.NONE, "")


def test_an_absent_topic_is_explained_as_in_kafka() -> None:
    client = Harness().client()
    resource = DescribeConfigsResource(resource_type=2, resource_name="absent")
    describe = DescribeConfigsRequest(resources=[resource])
    [described] = client.exchange(describe, 4, DescribeConfigsResponse).results
    assert (described.error_code, described.error_message) == (E.UNKNOWN_TOPIC_OR_PARTITION, "")
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="absent")])
    [deleted] = client.exchange(delete, 6, DeleteTopicsResponse).responses
    assert deleted.error_message == "This server does not host this topic-partition."
