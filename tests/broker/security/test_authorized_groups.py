"""What a client without all permissions gets of groups: a part, or an error."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.security.operations import (
    AclResource,
    Operation,
)
from kafkawire.configs import ResourceType
from kafkawire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafkawire.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from kafkawire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kafkawire.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.list_groups_response import ListGroupsResponse
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.messages.share_fetch_request import FetchPartition as FetchPartitionOfShare
from kafkawire.messages.share_fetch_request import FetchTopic as FetchTopicOfShare
from kafkawire.messages.share_fetch_request import ShareFetchRequest
from kafkawire.messages.share_fetch_response import ShareFetchResponse
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from tests.broker.harness import Client, Harness
from tests.broker.members import coordinator
from tests.broker.security.acls import (
    ALL,
    CLUSTER,
    acl,
    everything,
    set_acls,
)
from tests.broker.security.authorized import HIDDEN, SEEN, committing, producing

E, O, R = ErrorCode, Operation, AclResource  # noqa: E741
TXN = "id"


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


def test_a_regular_expression_matches_topics_that_may_be_described(harness: Harness) -> None:
    group = SEEN + "-consumers"
    client = coordinator(harness, group)
    names = {harness.key(topic).topic_id: topic for topic in (SEEN, HIDDEN)}
    read = acl(R.GROUP, group, O.READ)

    def assigned(*acls: Any) -> set[str]:
        set_acls(harness, read, *acls)
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_regex=f"{SEEN}|{HIDDEN}",
            topic_partitions=[],
        )
        assignment = client.exchange(beat, 1, ConsumerGroupHeartbeatResponse).assignment
        assert assignment is not None
        leaving = ConsumerGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=-1)
        assert not client.exchange(leaving, 1, ConsumerGroupHeartbeatResponse).error_code
        return {names[each.topic_id] for each in assignment.topic_partitions}

    assert assigned() == set()
    assert assigned(acl(R.TOPIC, SEEN, O.DESCRIBE)) == {SEEN}
    assert assigned(acl(R.TOPIC, HIDDEN, O.READ)) == {HIDDEN}
    assert assigned(acl(R.TOPIC, "*", ALL)) == {SEEN, HIDDEN}


def test_an_expression_is_looked_up_again_for_a_new_topic_not_for_another_change(
    harness: Harness,
) -> None:
    group = SEEN + "-consumers"
    client = coordinator(harness, group)
    beat = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=f"{SEEN}|{HIDDEN}|new",
        topic_partitions=[],
    )

    def heartbeat() -> set[bytes] | None:
        response = client.exchange(beat, 1, ConsumerGroupHeartbeatResponse)
        assert not response.error_code
        beat.member_epoch = response.member_epoch
        assignment, beat.topic_partitions = response.assignment, None
        beat.rebalance_timeout_ms, beat.subscribed_topic_regex = -1, None
        if assignment is None:
            return None
        return {each.topic_id for each in assignment.topic_partitions}

    seen, hidden = (harness.key(topic).topic_id for topic in (SEEN, HIDDEN))
    set_acls(harness, acl(R.GROUP, group, O.READ), acl(R.TOPIC, SEEN, O.DESCRIBE))
    assert heartbeat() == {seen}
    set_acls(harness, *everything())
    harness.alter_configs(ResourceType.TOPIC, SEEN, {"retention.ms": "1000"})
    harness.advance(15.0)
    assert heartbeat() is None
    harness.create_topic("new")
    harness.advance(15.0)
    assert heartbeat() == {seen, hidden, harness.key("new").topic_id}


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
