"""Committed offsets of groups over the wire: who may commit, and when offsets expire."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.protocol import encode_versioned
from tests.broker.consumer import (
    AT_ONCE,
    GROUP,
    SESSION,
    Consumer,
    commit,
    committed,
    coordinator,
    described,
    stable,
)
from tests.broker.harness import Harness

E = ErrorCode


@pytest.fixture
def harness() -> Harness:
    harness = Harness(topics={"t": 1}, settings=AT_ONCE)
    coordinator(harness.client())
    return harness


def test_who_may_commit(harness: Harness) -> None:
    one = Consumer(harness)
    assert commit(one.client, "t", 1) == E.NONE, "a group that is only its offsets"
    assert commit(one.client, "t", 2, 7, "nobody") == E.UNKNOWN_MEMBER_ID
    stable(one)
    assert commit(one.client, "t", 3) == E.UNKNOWN_MEMBER_ID, "the group has members"
    assert commit(one.client, "t", 3, one.generation_id + 1, one.member_id) == E.ILLEGAL_GENERATION
    assert one.commits(4) == E.NONE
    assert one.commits(5, "absent") == E.UNKNOWN_TOPIC_OR_PARTITION
    assert committed(one.client) == 4
    one.joins()
    one.is_in()
    assert one.commits(6) == E.REBALANCE_IN_PROGRESS
    assert committed(one.client) == 4


def test_committing_keeps_a_member_alive(harness: Harness) -> None:
    one = Consumer(harness)
    stable(one)
    for offset in range(5):
        harness.advance(SESSION - 1)
        assert one.commits(offset) == E.NONE


def test_offsets_and_groups_expire() -> None:
    settings = {**AT_ONCE, "offsets.retention.minutes": "30"}
    harness = Harness(topics={"t": 1}, settings=settings)
    coordinator(harness.client())
    one = Consumer(harness)
    wants_another = encode_versioned(ConsumerProtocolSubscription(topics=["u"]), 0)
    one.joins([("range", wants_another)])
    one.is_in()
    one.syncs()
    assert one.assigned() == b""
    assert one.commits(7) == E.NONE
    for _ in range(200):
        harness.advance(SESSION - 1)
        assert one.beats() == E.NONE
    # as long as a member wants the topic its offsets stay; this one wants another
    assert committed(one.client) == -1
    assert one.commits(8) == E.NONE
    assert one.disconnect() == E.NONE
    harness.advance(29 * 60)
    harness.client()
    client = harness.client()
    assert committed(client) == 8
    harness.advance(11 * 60)
    client = harness.client()
    assert committed(client) == -1
    assert described(client).group_state == "Dead"


def commit_for(harness: Harness, retention_ms: int) -> int:
    """Commit offset 3 for a time; return the error code."""
    coordinator(harness.client())
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    response = harness.client().exchange(request, 4, OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def test_an_offset_may_be_kept_as_long_as_there_are_times() -> None:
    harness = Harness(topics={"t": 1}, settings=AT_ONCE)
    assert commit_for(harness, (1 << 63) - 1) == 0
    harness.advance(20 * 60)
    assert committed(harness.client()) == 3


def test_an_offset_may_say_when_it_expires() -> None:
    harness = Harness(topics={"t": 1}, settings=AT_ONCE)
    assert commit_for(harness, 60_000) == 0
    client = harness.client()
    assert committed(client) == 3
    harness.advance(599)
    assert committed(client) == 3, "it is looked for every ten minutes"
    harness.advance(2)
    assert committed(harness.client()) == -1
