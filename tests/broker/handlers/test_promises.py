"""Brokers promise nothing that they do not serve: clients would wait for it."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.configs.features import UNSERVED
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kafkawire.messages.update_features_response import UpdateFeaturesResponse
from tests.broker.harness import Client, Harness, metadata
from tests.node.front_harness import NodeHarness

E = ErrorCode
TRANSACTION = 1


def finalized(client: Client) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = client.exchange(request, 4, ApiVersionsResponse)
    return {each.name: each.max_version_level for each in response.finalized_features}


@pytest.mark.parametrize("release", ["4.0", "4.3", "trunk", "all"])
def test_features_without_their_apis_are_not_finalized(release: str) -> None:
    names = finalized(Harness(release=release).client()).keys()
    assert "metadata.version" in names
    assert not names & UNSERVED


def test_a_node_finalizes_what_the_metadata_has_and_it_serves() -> None:
    client = NodeHarness().client()
    levels = finalized(client)
    assert levels["transaction.version"] == 2
    assert not levels.keys() & UNSERVED
    updates = [
        FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2),
        FeatureUpdateKey(feature="group.version", max_version_level=1, upgrade_type=1),
    ]
    request = UpdateFeaturesRequest(timeout_ms=1000, feature_updates=updates)
    response = client.exchange(request, 1, UpdateFeaturesResponse)
    assert response.error_code == E.NONE
    levels = finalized(client)
    assert levels["transaction.version"] == 1
    assert not levels.keys() & UNSERVED


def initialised(client: Client, transactional_id: str | None) -> tuple[int, int]:
    """Get a producer id and its epoch."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    response = client.exchange(request, 4, InitProducerIdResponse)
    assert response.error_code == E.NONE
    return response.producer_id, response.producer_epoch


def test_a_transactional_id_keeps_its_producer_id_and_others_get_new_ones() -> None:
    client = Harness().client()
    find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["x"])
    client.exchange(find, 4, FindCoordinatorResponse)
    ids = [initialised(client, each) for each in ("x", None, None, "x")]
    assert len(set(ids[:3])) == 3
    assert ids[3] == (ids[0][0], ids[0][1] + 1)


def created(client: Client, *names: str) -> list[int]:
    topics = [CreatableTopic(name=each, num_partitions=1, replication_factor=1) for each in names]
    request = CreateTopicsRequest(topics=topics, timeout_ms=1000)
    response = client.exchange(request, 7, CreateTopicsResponse)
    return [each.error_code for each in response.topics]


@pytest.mark.parametrize("harness", [Harness, NodeHarness])
def test_topics_may_not_differ_in_dots_and_underscores_only(
    harness: type[Harness] | type[NodeHarness],
) -> None:
    """Their metrics would have one name."""
    client = harness().client()
    assert created(client, "a.b_c") == [E.NONE]
    assert created(client, "a.b.c", "a_b_c", "a-b_c") == [
        E.INVALID_TOPIC_EXCEPTION, E.INVALID_TOPIC_EXCEPTION, E.NONE]  # fmt: skip
    assert created(client, "a.b_c") == [E.TOPIC_ALREADY_EXISTS]
    [topic] = metadata(client, "a_b.c").topics
    assert topic.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="a.b_c")], timeout_ms=1000)
    assert client.exchange(deletion, 6, DeleteTopicsResponse).responses[0].error_code == E.NONE
    assert created(client, "a_b_c") == [E.NONE]
