"""What a client without all permissions gets: a part, and nothing of what it may not see."""

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
from kafkawire.configs import ResourceType
from kafkawire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkawire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kafkawire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafkawire.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from kafkawire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafkawire.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kafkawire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kafkawire.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
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
from kafkawire.messages.describe_transactions_request import DescribeTransactionsRequest
from kafkawire.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.list_groups_response import ListGroupsResponse
from kafkawire.messages.list_transactions_request import ListTransactionsRequest
from kafkawire.messages.list_transactions_response import ListTransactionsResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.messages.share_fetch_request import FetchPartition as FetchPartitionOfShare
from kafkawire.messages.share_fetch_request import FetchTopic as FetchTopicOfShare
from kafkawire.messages.share_fetch_request import ShareFetchRequest
from kafkawire.messages.share_fetch_response import ShareFetchResponse
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kafkawire.records import BatchBuilder
from tests.broker.fetches import fetch_of
from tests.broker.harness import Client, Harness, metadata
from tests.broker.members import coordinator
from tests.broker.security.acls import (
    ALL,
    CLUSTER,
    DENY,
    PREFIXED,
    STANDARD,
    acl,
    everything,
    set_acls,
)

E, O, R = ErrorCode, Operation, AclResource  # noqa: E741
SEEN, HIDDEN = "seen", "hidden"
TXN = "id"


@pytest.fixture
def harness() -> Harness:
    harness = Harness(settings=STANDARD | {"auto.create.topics.enable": "true"})
    set_acls(harness, *everything())
    for name in (SEEN, HIDDEN):
        harness.create_topic(name)
    for group in (SEEN, HIDDEN):
        client = coordinator(harness, group)
        request = committing(group, SEEN, HIDDEN)
        committed = client.exchange(request, 9, OffsetCommitResponse)
        assert not any(p.error_code for each in committed.topics for p in each.partitions)
    return harness


@pytest.fixture
def client(harness: Harness) -> Client:
    return harness.client()


def committing(group: str, *topics: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in topics],
    )


def producing(*topics: str, acks: int = -1) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(b"k", b"v", 1_700_000_000_000)
    data = PartitionProduceData(index=0, records=builder.build())
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=name, partition_data=[data]) for name in topics],
    )


def codes(topics: Any) -> dict[str, int]:
    return {each.name: each.error_code for each in topics}


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


# -- records


def test_only_what_may_be_written_is(harness: Harness, client: Client) -> None:
    set_acls(harness, acl(R.TOPIC, SEEN, O.WRITE))
    response = client.exchange(producing(HIDDEN, SEEN), 12, ProduceResponse)
    assert {each.name: each.partition_responses[0].error_code for each in response.responses} == {
        SEEN: E.NONE,
        HIDDEN: E.TOPIC_AUTHORIZATION_FAILED,
    }
    assert harness.replica(SEEN).log.log_end_offset == 1
    assert harness.replica(HIDDEN).log.log_end_offset == 0


def test_without_a_response_the_connection_is_closed(harness: Harness, client: Client) -> None:
    set_acls(harness, acl(R.TOPIC, SEEN, O.WRITE))
    client.send(producing(SEEN, acks=0), 12)
    assert client.closed is None
    client.send(producing(HIDDEN, SEEN, acks=0), 12)
    assert client.closed == "PRODUCE without a response is not authorized"
    assert harness.replica(SEEN).log.log_end_offset == 2
    assert harness.replica(HIDDEN).log.log_end_offset == 0


@pytest.mark.parametrize("version", [12, 17])
def test_a_session_reads_what_may_be_read_now(
    harness: Harness, client: Client, version: int
) -> None:
    for topic in (SEEN, HIDDEN):
        assert client.exchange(producing(topic), 12, ProduceResponse).responses
    readable = [acl(R.TOPIC, each, O.READ) for each in (SEEN, HIDDEN)]
    set_acls(harness, readable[0])
    session_id, epoch = 0, 0

    def read(first: bool = False) -> dict[str, int]:
        nonlocal session_id, epoch
        keys = [harness.key(topic) for topic in (SEEN, HIDDEN)] if first else []
        request = fetching(keys, version, session_id, epoch)
        response = client.exchange(request, version, FetchResponse)
        assert response.error_code == E.NONE
        session_id, epoch = response.session_id, epoch + 1
        ids = {harness.key(topic).topic_id: topic for topic in (SEEN, HIDDEN)}
        return {
            each.topic or ids[each.topic_id]: each.partitions[0].error_code
            for each in response.responses
        }

    def fetching(keys: Any, version: int, session_id: int, epoch: int) -> FetchRequest:
        names = {harness.key(topic).topic_id: topic for topic in (SEEN, HIDDEN)}
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic=names[key.topic_id] if version < 13 else "",
                    topic_id=key.topic_id if version >= 13 else bytes(16),
                    partitions=[
                        FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
                    ],
                )
                for key in keys
            ],
        )

    assert read(first=True) == {SEEN: E.NONE, HIDDEN: E.TOPIC_AUTHORIZATION_FAILED}
    set_acls(harness, *readable)
    assert read() == {SEEN: E.NONE, HIDDEN: E.NONE}
    set_acls(harness, readable[1])
    assert read() == {SEEN: E.TOPIC_AUTHORIZATION_FAILED, HIDDEN: E.NONE}


def test_a_client_that_claims_to_be_a_replica_needs_a_cluster_action(
    harness: Harness, client: Client
) -> None:
    set_acls(harness, acl(R.TOPIC, "*", ALL))
    request = fetch_of(client, SEEN)
    request.replica_id = 2
    response = client.exchange(request, 12, FetchResponse)
    assert response.responses[0].partitions[0].error_code == E.TOPIC_AUTHORIZATION_FAILED
    set_acls(harness, acl(R.CLUSTER, CLUSTER, O.CLUSTER_ACTION))
    response = client.exchange(request, 12, FetchResponse)
    assert response.responses[0].partitions[0].error_code != E.TOPIC_AUTHORIZATION_FAILED


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


# -- groups


def test_groups_are_listed_to_who_may_describe_them_or_the_cluster(
    harness: Harness, client: Client
) -> None:
    def listed(*acls: Any) -> list[str]:
        set_acls(harness, *acls)
        groups = client.exchange(ListGroupsRequest(), 4, ListGroupsResponse).groups
        return sorted(each.group_id for each in groups)

    assert listed() == []
    assert listed(acl(R.GROUP, SEEN, O.READ)) == [SEEN]
    assert listed(acl(R.CLUSTER, CLUSTER, O.DESCRIBE)) == [HIDDEN, SEEN]


@pytest.mark.parametrize("version", [9, 5])
def test_offsets_of_hidden_topics_are_left_out_or_refused(harness: Harness, version: int) -> None:
    client = coordinator(harness, SEEN)
    set_acls(harness, acl(R.GROUP, SEEN, O.DESCRIBE), acl(R.TOPIC, SEEN, O.DESCRIBE))
    request = OffsetFetchRequest(group_id=SEEN, topics=None)
    if version > 7:
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in (SEEN, HIDDEN)]
        )
    response = client.exchange(request, version, OffsetFetchResponse)
    topics: Any = response.topics
    if version > 7:
        groups = {each.group_id: each for each in response.groups}
        assert groups[HIDDEN].error_code == E.GROUP_AUTHORIZATION_FAILED
        topics = groups[SEEN].topics
    assert [(each.name, each.partitions[0].committed_offset) for each in topics] == [(SEEN, 1)]


def test_offsets_are_committed_for_topics_that_may_be_read(harness: Harness) -> None:
    client = coordinator(harness, SEEN)
    set_acls(harness, acl(R.GROUP, SEEN, O.READ), acl(R.TOPIC, SEEN, O.READ))
    found = client.exchange(committing(SEEN, HIDDEN, SEEN), 9, OffsetCommitResponse).topics
    assert {each.name: each.partitions[0].error_code for each in found} == {
        SEEN: E.NONE,
        HIDDEN: E.TOPIC_AUTHORIZATION_FAILED,
    }


def test_offsets_of_share_groups_are_changed_for_topics_that_may_be_read(
    harness: Harness,
) -> None:
    client = coordinator(harness, SEEN + "-share")
    group = SEEN + "-share"
    for epoch in (0, -1):
        beat = ShareGroupHeartbeatRequest(
            group_id=group, member_id="m", member_epoch=epoch, subscribed_topic_names=[SEEN]
        )
        assert not client.exchange(beat, 1, ShareGroupHeartbeatResponse).error_code
    set_acls(harness, acl(R.GROUP, group, ALL), acl(R.TOPIC, SEEN, O.READ))
    partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    altering = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[partition])
            for name in (HIDDEN, SEEN)
        ],
    )
    altered = client.exchange(altering, 0, AlterShareGroupOffsetsResponse)
    assert altered.error_code == E.NONE
    assert {each.topic_name: each.partitions[0].error_code for each in altered.responses} == {
        SEEN: E.NONE,
        HIDDEN: E.TOPIC_AUTHORIZATION_FAILED,
    }
    deleting = DeleteShareGroupOffsetsRequest(
        group_id=group,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in (HIDDEN, SEEN)],
    )
    deleted = client.exchange(deleting, 0, DeleteShareGroupOffsetsResponse)
    assert {each.topic_name: each.error_code for each in deleted.responses} == {
        SEEN: E.NONE,
        HIDDEN: E.TOPIC_AUTHORIZATION_FAILED,
    }


def test_a_share_session_reads_what_may_be_read_now(harness: Harness, client: Client) -> None:
    group = SEEN + "-share"
    coordinator(harness, group)
    harness.alter_configs(ResourceType.GROUP, group, {"share.auto.offset.reset": "earliest"})
    for topic in (SEEN, HIDDEN):
        assert client.exchange(producing(topic), 12, ProduceResponse).responses
    keys = {topic: harness.key(topic) for topic in (SEEN, HIDDEN)}
    names = {key.topic_id: topic for topic, key in keys.items()}
    beat = ShareGroupHeartbeatRequest(
        group_id=group, member_id="m", member_epoch=0, subscribed_topic_names=[SEEN, HIDDEN]
    )
    assert not client.exchange(beat, 1, ShareGroupHeartbeatResponse).error_code
    harness.advance(1.0)
    rights = [acl(R.GROUP, group, O.READ), acl(R.TOPIC, SEEN, O.READ)]

    def read(epoch: int) -> dict[str, tuple[int, bool]]:
        request = ShareFetchRequest(
            group_id=group,
            member_id="m",
            share_session_epoch=epoch,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=10,
            batch_size=10,
            topics=[
                FetchTopicOfShare(
                    topic_id=key.topic_id, partitions=[FetchPartitionOfShare(partition_index=0)]
                )
                for key in ({} if epoch else keys).values()
            ],
        )
        found = client.exchange(request, 1, ShareFetchResponse)
        assert found.error_code == E.NONE
        return {
            names[each.topic_id]: (each.partitions[0].error_code, bool(each.partitions[0].records))
            for each in found.responses
        }

    refused = (E.TOPIC_AUTHORIZATION_FAILED, False)
    set_acls(harness, *rights)
    assert read(0) == {SEEN: (E.NONE, True), HIDDEN: refused}
    set_acls(harness, rights[0])
    assert read(1) == {SEEN: refused, HIDDEN: refused}
    set_acls(harness, rights[0], acl(R.TOPIC, HIDDEN, O.READ))
    assert read(2) == {SEEN: refused, HIDDEN: (E.NONE, True)}


# -- producers


def test_who_may_write_to_any_topic_may_be_an_idempotent_producer(
    harness: Harness, client: Client
) -> None:
    def initialised(*acls: Any) -> int:
        set_acls(harness, *acls)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return client.exchange(request, 4, InitProducerIdResponse).error_code

    write = acl(R.TOPIC, SEEN, O.WRITE)
    assert initialised() == E.CLUSTER_AUTHORIZATION_FAILED
    assert initialised(acl(R.TOPIC, SEEN, O.READ)) == E.CLUSTER_AUTHORIZATION_FAILED
    assert initialised(write) == E.NONE
    denied = acl(R.TOPIC, "s", O.WRITE, DENY, pattern=PREFIXED)
    assert initialised(write, denied) == E.CLUSTER_AUTHORIZATION_FAILED
    assert initialised(acl(R.CLUSTER, CLUSTER, O.IDEMPOTENT_WRITE)) == E.NONE


def test_a_partition_that_may_not_be_written_keeps_all_out_of_a_transaction(
    harness: Harness, client: Client
) -> None:
    set_acls(
        harness,
        acl(R.TRANSACTIONAL_ID, TXN, O.WRITE),
        *(acl(R.TOPIC, name, O.WRITE) for name in (SEEN, "absent", "__consumer_offsets")),
    )
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=[0])
            for name in (SEEN, HIDDEN, "absent", "__consumer_offsets")
        ],
    )
    response = client.exchange(request, 3, AddPartitionsToTxnResponse)
    found = {
        each.name: each.results_by_partition[0].partition_error_code
        for each in response.results_by_topic_v3_and_below
    }
    assert found == {
        SEEN: E.OPERATION_NOT_ATTEMPTED,
        HIDDEN: E.TOPIC_AUTHORIZATION_FAILED,
        "absent": E.UNKNOWN_TOPIC_OR_PARTITION,
        "__consumer_offsets": E.TOPIC_AUTHORIZATION_FAILED,
    }


def test_transactions_are_listed_to_who_may_describe_them(harness: Harness) -> None:
    client = harness.client()
    for name in (SEEN, HIDDEN):
        find = FindCoordinatorRequest(key=name, key_type=1)
        harness.wait(
            lambda find=find: (  # type: ignore[misc]
                not client.exchange(find, 3, FindCoordinatorResponse).error_code
            )
        )
        begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        harness.wait(
            lambda begin=begin: (  # type: ignore[misc]
                not client.exchange(begin, 4, InitProducerIdResponse).error_code
            )
        )
    writable = [acl(R.TRANSACTIONAL_ID, "*", O.WRITE), acl(R.TOPIC, "*", O.WRITE)]
    set_acls(harness, *writable)
    adding = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=SEEN,
        v3_and_below_producer_id=described_transaction(client, SEEN).producer_id,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (SEEN, HIDDEN)
        ],
    )
    added = client.exchange(adding, 3, AddPartitionsToTxnResponse)
    for each in added.results_by_topic_v3_and_below:
        assert not each.results_by_partition[0].partition_error_code
    for acls, listed, topics in (
        ([], [], []),
        ([acl(R.TRANSACTIONAL_ID, SEEN, O.DESCRIBE)], [SEEN], []),
        ([acl(R.TRANSACTIONAL_ID, SEEN, O.WRITE), acl(R.TOPIC, SEEN, O.READ)], [SEEN], [SEEN]),
        (writable, [HIDDEN, SEEN], [HIDDEN, SEEN]),
    ):
        set_acls(harness, *acls)
        found = client.exchange(ListTransactionsRequest(), 0, ListTransactionsResponse)
        assert sorted(each.transactional_id for each in found.transaction_states) == listed
        state = described_transaction(client, SEEN)
        assert sorted(each.topic for each in state.topics) == topics
        refused = E.NONE if listed else E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert state.error_code == refused


def described_transaction(client: Client, name: str) -> TransactionState:
    request = DescribeTransactionsRequest(transactional_ids=[name])
    [state] = client.exchange(request, 0, DescribeTransactionsResponse).transaction_states
    return state


def test_a_group_with_topics_that_may_not_be_described_is_hidden(harness: Harness) -> None:
    group = "new-protocol"
    client = coordinator(harness, group)
    beat = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[SEEN, HIDDEN],
        topic_partitions=[],
    )
    set_acls(harness, acl(R.GROUP, group, O.READ), acl(R.TOPIC, SEEN, O.READ))
    refused = client.exchange(beat, 1, ConsumerGroupHeartbeatResponse)
    assert refused.error_code == E.TOPIC_AUTHORIZATION_FAILED
    set_acls(harness, *everything())
    assert not client.exchange(beat, 1, ConsumerGroupHeartbeatResponse).error_code
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True)
    describe = acl(R.GROUP, group, O.DESCRIBE)
    for acls, error, members in (
        ([describe], E.TOPIC_AUTHORIZATION_FAILED, 0),
        ([describe, acl(R.TOPIC, SEEN, O.READ)], E.TOPIC_AUTHORIZATION_FAILED, 0),
        ([describe, acl(R.TOPIC, "*", O.READ)], E.NONE, 1),
    ):
        set_acls(harness, *acls)
        [found] = client.exchange(request, 0, ConsumerGroupDescribeResponse).groups
        assert (found.error_code, len(found.members)) == (error, members)
    assert found.authorized_operations == bits(O.DESCRIBE)


# -- hosts


def test_an_acl_is_for_the_host_that_it_names(harness: Harness) -> None:
    set_acls(harness, acl(R.TOPIC, SEEN, O.READ, host="10.0.0.7"))
    here, elsewhere = harness.client(host="10.0.0.7"), harness.client(host="10.0.0.8")
    assert codes(metadata(here, SEEN).topics) == {SEEN: E.NONE}
    assert codes(metadata(elsewhere, SEEN).topics) == {SEEN: E.TOPIC_AUTHORIZATION_FAILED}
