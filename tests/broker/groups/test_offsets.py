"""What is committed in one version is fetched in any other: by topic name, by topic id."""

from __future__ import annotations

import pytest

from kafkawire import REGISTRY, ErrorCode
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from tests.broker.harness import Client, Harness
from tests.broker.members import coordinator

E = ErrorCode
GROUP = "g"
EACH_COMMIT = range(REGISTRY.get("OffsetCommitRequest").last + 1)
EACH_FETCH = range(REGISTRY.get("OffsetFetchRequest").last + 1)
BY_ID_FROM, GROUPS_FROM, ALL_FROM = 10, 8, 2
NOBODYS = bytes(range(16))


@pytest.fixture
def harness() -> Harness:
    return Harness(topics={"t": 2, "other": 1}, settings={"group.initial.rebalance.delay.ms": "0"})


def id_of(harness: Harness, name: str) -> bytes:
    topic = harness.topic(name)
    assert topic is not None
    return topic.topic_id


def commits(
    client: Client, version: int, offset: int, *, name: str = "t", topic_id: bytes = bytes(16)
) -> list[ErrorCode]:
    """Commit an offset of partition 0, and of one that is not there."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata="m"
        )
        for index in (0, 9)
    ]
    topic = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=partitions)
    request = OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=-1, member_id="", topics=[topic]
    )
    [response] = client.exchange(request, version, OffsetCommitResponse).topics
    assert (response.topic_id == topic_id) if version >= BY_ID_FROM else (response.name == name)
    return [ErrorCode(each.error_code) for each in response.partitions]


Found = list[tuple[str | bytes, int, int, ErrorCode]]


def fetched(client: Client, version: int, topics: list[tuple[str, bytes]] | None) -> Found:
    """Fetch offsets of partition 0 of topics, or all; gives what the topic is called, partition,
    offset, error.
    """
    by_id = version >= BY_ID_FROM
    if version < GROUPS_FROM:
        old = [OffsetFetchRequestTopic(name=n, partition_indexes=[0]) for n, _ in topics or []]
        request = OffsetFetchRequest(group_id=GROUP, topics=None if topics is None else old)
        response = client.exchange(request, version, OffsetFetchResponse)
        assert response.error_code == E.NONE
        return [
            (each.name, p.partition_index, p.committed_offset, ErrorCode(p.error_code))
            for each in response.topics
            for p in each.partitions
        ]
    new = [
        OffsetFetchRequestTopics(name=n, topic_id=i, partition_indexes=[0]) for n, i in topics or []
    ]
    requested = OffsetFetchRequestGroup(group_id=GROUP, topics=None if topics is None else new)
    [group] = client.exchange(
        OffsetFetchRequest(groups=[requested]), version, OffsetFetchResponse
    ).groups
    assert (group.group_id, group.error_code) == (GROUP, E.NONE)
    return [
        (
            each.topic_id if by_id else each.name,
            p.partition_index,
            p.committed_offset,
            ErrorCode(p.error_code),
        )
        for each in group.topics
        for p in each.partitions
    ]


@pytest.mark.parametrize("version", EACH_COMMIT)
def test_what_one_version_commits_each_version_fetches(harness: Harness, version: int) -> None:
    client, topic_id = coordinator(harness, GROUP), id_of(harness, "t")
    errors = commits(client, version, 7, topic_id=topic_id)
    assert errors == [E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION]
    for each in EACH_FETCH:
        name: str | bytes = topic_id if each >= BY_ID_FROM else "t"
        assert fetched(client, each, [("t", topic_id)]) == [(name, 0, 7, E.NONE)], each
        if each >= ALL_FROM:
            assert fetched(client, each, None) == [(name, 0, 7, E.NONE)], each


def test_an_id_that_no_topic_has(harness: Harness) -> None:
    client = coordinator(harness, GROUP)
    assert commits(client, BY_ID_FROM, 7, topic_id=NOBODYS) == [E.UNKNOWN_TOPIC_ID] * 2
    both = [("t", NOBODYS), ("other", id_of(harness, "other"))]
    assert fetched(client, BY_ID_FROM, both) == [
        (NOBODYS, 0, -1, E.UNKNOWN_TOPIC_ID),
        (id_of(harness, "other"), 0, -1, E.NONE),
    ]


def test_a_topic_that_is_made_again_has_no_offsets_of_the_one_before(harness: Harness) -> None:
    client = coordinator(harness, GROUP)
    assert commits(client, 9, 7)[0] == E.NONE
    before = id_of(harness, "t")
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    assert client.exchange(delete, 6, DeleteTopicsResponse).responses[0].error_code == E.NONE
    assert fetched(client, 9, None) == []
    harness.create_topic("t")
    client = coordinator(harness, GROUP)
    assert id_of(harness, "t") != before
    assert fetched(client, 9, [("t", b"")]) == [("t", 0, -1, E.NONE)]
    assert commits(client, BY_ID_FROM, 8, topic_id=before)[0] == E.UNKNOWN_TOPIC_ID
    again = coordinator(harness.restored(), GROUP)
    assert fetched(again, 9, None) == [], "nor when all is read again"
