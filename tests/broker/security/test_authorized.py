"""What a client without all permissions gets of topics: a part, and not what it may not see."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.security.operations import (
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    TOPIC_OPERATIONS,
    AclResource,
    Operation,
    bits,
)
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.describe_cluster_request import DescribeClusterRequest
from kafkawire.messages.describe_cluster_response import DescribeClusterResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribeGroupsResponse
from kafkawire.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
)
from kafkawire.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
)
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from tests.broker.harness import Client, Harness, metadata
from tests.broker.security.acls import (
    ALL,
    CLUSTER,
    DENY,
    PREFIXED,
    acl,
    everything,
    set_acls,
)
from tests.broker.security.authorized import HIDDEN, SEEN, codes

E, O, R = ErrorCode, Operation, AclResource  # noqa: E741
TXN = "id"


# -- Metadata


def test_all_topics_are_those_that_may_be_described(harness: Harness, client: Client) -> None:
    set_acls(harness, acl(R.TOPIC, SEEN, O.WRITE))
    everywhere = client.exchange(MetadataRequest(topics=None), 12, MetadataResponse)
    assert [each.name for each in everywhere.topics] == [SEEN]
    oldest = client.exchange(MetadataRequest(topics=[]), 0, MetadataResponse)
    assert [each.name for each in oldest.topics] == [SEEN]


@pytest.mark.parametrize("version", [0, 1, 9, 12])
def test_a_hidden_topic_is_refused_as_one_that_does_not_exist(
    harness: Harness, client: Client, version: int
) -> None:
    set_acls(harness)
    found = metadata(client, HIDDEN, "absent", version=version)
    assert found.brokers
    assert codes(found.topics) == dict.fromkeys((HIDDEN, "absent"), E.TOPIC_AUTHORIZATION_FAILED)
    assert not any(each.partitions for each in found.topics)
    assert {each.topic_id for each in found.topics} == {bytes(16)}
    set_acls(harness, acl(R.TOPIC, SEEN, O.DESCRIBE))
    found = metadata(client, SEEN, HIDDEN, version=version)
    assert codes(found.topics) == {SEEN: E.NONE, HIDDEN: E.TOPIC_AUTHORIZATION_FAILED}


def test_an_id_does_not_reveal_a_name(harness: Harness, client: Client) -> None:
    topic_id = harness.key(HIDDEN).topic_id
    set_acls(harness)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)])
    [found] = client.exchange(request, 12, MetadataResponse).topics
    assert (found.error_code, found.name) == (E.TOPIC_AUTHORIZATION_FAILED, None)
    request.topics = [MetadataRequestTopic(name=None, topic_id=b"?" * 16)]
    [found] = client.exchange(request, 12, MetadataResponse).topics
    assert found.error_code == E.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("resource", "name"), [(R.CLUSTER, CLUSTER), (R.TOPIC, "new")])
def test_a_topic_is_created_for_who_may_create_it(
    harness: Harness, client: Client, resource: AclResource, name: str
) -> None:
    describe = acl(R.TOPIC, "new", O.DESCRIBE)
    set_acls(harness, describe)
    assert codes(metadata(client, "new").topics) == {"new": E.TOPIC_AUTHORIZATION_FAILED}
    assert harness.topic("new") is None
    without = metadata(client, "new", allow_auto_topic_creation=False)
    assert codes(without.topics) == {"new": E.UNKNOWN_TOPIC_OR_PARTITION}
    set_acls(harness, describe, acl(resource, name, O.CREATE))
    assert codes(metadata(client, "new").topics) == {"new": E.NONE}


def test_authorized_operations_are_those_of_the_acls(harness: Harness, client: Client) -> None:
    rules = [
        acl(R.TOPIC, "se", O.READ, pattern=PREFIXED),
        acl(R.TOPIC, "*", O.ALTER_CONFIGS),
        acl(R.TOPIC, SEEN, O.DESCRIBE_CONFIGS, DENY),
        acl(R.GROUP, SEEN, O.DELETE),
        acl(R.CLUSTER, CLUSTER, O.DESCRIBE),
    ]
    set_acls(harness, *rules)
    wanted = {
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }
    found = metadata(client, SEEN, version=9, **wanted)
    assert found.cluster_authorized_operations == bits(O.DESCRIBE)
    [topic] = found.topics
    assert topic.topic_authorized_operations == bits(O.READ, O.DESCRIBE, O.ALTER_CONFIGS)
    groups = DescribeGroupsRequest(groups=[SEEN, HIDDEN], include_authorized_operations=True)
    described = client.exchange(groups, 5, DescribeGroupsResponse).groups
    assert [(each.error_code, each.authorized_operations) for each in described] == [
        (E.NONE, bits(O.DELETE, O.DESCRIBE)),
        (E.GROUP_AUTHORIZATION_FAILED, -(1 << 31)),
    ]
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    for acls, operations in ((rules, bits(O.DESCRIBE)), ([], 0), (everything(), -1)):
        set_acls(harness, *acls)
        cluster = client.exchange(request, 0, DescribeClusterResponse)
        assert cluster.cluster_authorized_operations == operations & CLUSTER_OPERATIONS
    found = metadata(client, SEEN, version=9, **wanted)
    assert found.topics[0].topic_authorized_operations == TOPIC_OPERATIONS
    [first, _] = client.exchange(groups, 5, DescribeGroupsResponse).groups
    assert first.authorized_operations == GROUP_OPERATIONS


def test_pages_of_topics_have_no_hidden_ones(harness: Harness, client: Client) -> None:
    set_acls(harness, acl(R.TOPIC, SEEN, O.READ))
    request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=1)
    found = client.exchange(request, 0, DescribeTopicPartitionsResponse)
    assert [each.name for each in found.topics] == [SEEN]
    assert found.topics[0].topic_authorized_operations == bits(O.READ, O.DESCRIBE)
    assert found.next_cursor is None
    set_acls(harness)
    assert not client.exchange(request, 0, DescribeTopicPartitionsResponse).topics


# -- topics


def test_topics_are_created_one_by_one_and_configs_hidden(harness: Harness, client: Client) -> None:
    set_acls(harness, acl(R.TOPIC, "a", O.CREATE), acl(R.TOPIC, "b", O.CREATE))
    topics = [
        CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in ("a", "c")
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=1000)
    found = client.exchange(request, 7, CreateTopicsResponse).topics
    assert codes(found) == {"a": E.NONE, "c": E.TOPIC_AUTHORIZATION_FAILED}
    made = found[0]
    assert (made.num_partitions, made.replication_factor, made.configs) == (-1, -1, [])
    assert made.topic_config_error_code == E.TOPIC_AUTHORIZATION_FAILED
    assert harness.topic("c") is None
    set_acls(harness, acl(R.CLUSTER, CLUSTER, O.CREATE), acl(R.TOPIC, "d", O.DESCRIBE_CONFIGS))
    request.topics = [CreatableTopic(name="d", num_partitions=2, replication_factor=1)]
    [made] = client.exchange(request, 7, CreateTopicsResponse).topics
    assert (made.error_code, made.num_partitions) == (E.NONE, 2)
    assert made.configs


def test_who_may_not_describe_a_topic_does_not_get_its_name_when_deleting(
    harness: Harness, client: Client
) -> None:
    topic_id = harness.key(HIDDEN).topic_id
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])

    def names(request: DeleteTopicsRequest) -> list[tuple[str | None, int]]:
        found = client.exchange(request, 6, DeleteTopicsResponse).responses
        return [(each.name, each.error_code) for each in found]

    failed = E.TOPIC_AUTHORIZATION_FAILED
    set_acls(harness)
    assert names(by_id) == [(None, failed)]
    set_acls(harness, acl(R.TOPIC, HIDDEN, O.DESCRIBE))
    assert names(by_id) == [(HIDDEN, failed)]
    set_acls(harness, acl(R.TOPIC, SEEN, O.DELETE))
    both = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in (HIDDEN, "absent", SEEN)]
    )
    assert sorted(names(both)) == [("absent", failed), (HIDDEN, failed), (SEEN, E.NONE)]
    assert harness.topic(HIDDEN) is not None
    set_acls(harness, acl(R.CLUSTER, CLUSTER, ALL))
    assert names(by_id) == [(HIDDEN, E.NONE)]


def test_configs_are_described_by_the_type_of_their_resource(
    harness: Harness, client: Client
) -> None:
    wanted = [(2, SEEN), (2, HIDDEN), (4, "1"), (32, "g")]
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[])
            for kind, name in wanted
        ]
    )

    def found(*acls: Any) -> dict[tuple[int, str], int]:
        set_acls(harness, *acls)
        results = client.exchange(request, 4, DescribeConfigsResponse).results
        return {(each.resource_type, each.resource_name): each.error_code for each in results}

    topic, cluster, group = (
        E.TOPIC_AUTHORIZATION_FAILED,
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.GROUP_AUTHORIZATION_FAILED,
    )
    assert found() == dict(zip(wanted, (topic, topic, cluster, group), strict=True))
    assert found(acl(R.TOPIC, SEEN, O.ALTER_CONFIGS), acl(R.GROUP, "g", O.DESCRIBE_CONFIGS)) == (
        dict(zip(wanted, (E.NONE, topic, cluster, E.NONE), strict=True))
    )
    assert found(acl(R.CLUSTER, CLUSTER, O.DESCRIBE_CONFIGS))[4, "1"] == E.NONE


# -- hosts


def test_an_acl_is_for_the_host_that_it_names(harness: Harness) -> None:
    set_acls(harness, acl(R.TOPIC, SEEN, O.READ, host="10.0.0.7"))
    here, elsewhere = harness.client(host="10.0.0.7"), harness.client(host="10.0.0.8")
    assert codes(metadata(here, SEEN).topics) == {SEEN: E.NONE}
    assert codes(metadata(elsewhere, SEEN).topics) == {SEEN: E.TOPIC_AUTHORIZATION_FAILED}
