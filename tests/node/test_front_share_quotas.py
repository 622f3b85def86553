"""Quotas on what members of share groups fetch, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.share_fetch_request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from kafkawire.messages.share_fetch_response import PartitionData, ShareFetchResponse
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kafkawire.metadata.client_quotas import FETCH
from kafkawire.protocol import ErrorCode as E

from ..broker.harness import metadata
from .front_harness import NodeHarness
from .test_front_quotas import produced, set_quota

SETTINGS = {
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
ACCEPT = 1


class Member:
    """A member of `g` that has partition 0 of `t`, from the end of its log on."""

    def __init__(self, harness: NodeHarness) -> None:
        self.harness = harness
        self.client = harness.client()
        self.epoch = 0
        self.topic_id = metadata(harness.client(), "t").topics[0].topic_id
        harness.client().exchange(
            FindCoordinatorRequest(coordinator_keys=["g"]), 4, FindCoordinatorResponse
        )
        harness.wait(self.joined)
        self.fetch(max_wait_ms=1000)  # responds when the start offset is set

    def joined(self) -> bool:
        """Send the first heartbeat until there is an assignment."""
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id="a", member_epoch=0, subscribed_topic_names=["t"]
        )
        response = self.harness.client().exchange(request, 1, ShareGroupHeartbeatResponse)
        assert response.error_code in (E.NONE, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
        return response.assignment is not None and bool(response.assignment.topic_partitions)

    def fetch(self, *accepted: AcknowledgementBatch, **fields: Any) -> ShareFetchResponse:
        partition = FetchPartition(partition_index=0, acknowledgement_batches=list(accepted))
        request = ShareFetchRequest(
            group_id="g",
            member_id="a",
            share_session_epoch=self.epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=100,
            batch_size=100,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=[partition])],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        response = self.client.exchange(request, 2, ShareFetchResponse)
        assert response.error_code == E.NONE
        self.epoch += 1
        return response


def partitions(response: ShareFetchResponse) -> list[PartitionData]:
    return [each for topic in response.responses for each in topic.partitions]


def size(response: ShareFetchResponse) -> int:
    return sum(len(each.records or b"") for each in partitions(response))


def accepted(offset: int) -> AcknowledgementBatch:
    return AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=[ACCEPT])


@pytest.fixture
def member() -> Member:
    """A member with a quota, and four records of 3,000 bytes for it."""
    member = Member(NodeHarness(SETTINGS, topics={"t": 1}))
    for _ in range(4):
        produced(member.harness.client(), 3_000)
    set_quota(member.harness, FETCH)
    return member


def test_a_quota_limits_a_share_fetch(member: Member) -> None:
    first = member.fetch()
    assert first.throttle_time_ms == 0
    assert 9_000 < size(first) < 10_000, "no more than the windows allow"
    set_quota(member.harness, FETCH, None)
    rest = member.fetch()
    assert (rest.throttle_time_ms, 3_000 < size(rest) < 4_000) == (0, True)


def test_a_share_fetch_that_waits_for_more_than_its_quota_does_not_wait(member: Member) -> None:
    before = member.harness.now
    assert size(member.fetch(min_bytes=11_000, max_wait_ms=20_000)) > 9_000
    assert member.harness.now - before < 1.0


def test_a_throttled_member_gets_nothing_until_it_may(member: Member) -> None:
    member.fetch()
    before = member.harness.now
    throttled = member.fetch(*map(accepted, range(3)))
    assert size(throttled) == 0
    assert throttled.throttle_time_ms > 1_000
    [acknowledged] = partitions(throttled)
    assert (acknowledged.acquired_records, acknowledged.acknowledge_error_code) == ([], E.NONE)
    member.fetch()
    waited = member.harness.now - before
    assert waited >= throttled.throttle_time_ms / 1000, "the connection is muted"


def test_what_is_not_sent_is_not_counted(member: Member) -> None:
    member.fetch()
    member.harness.advance(9.0)
    assert member.fetch().throttle_time_ms > 0
    member.harness.advance(3.0)  # the first response is out of the windows
    produced(member.harness.client(), 8_000)
    again = member.fetch()
    assert (again.throttle_time_ms, size(again) > 8_000) == (0, True)


def test_records_of_a_throttled_fetch_are_delivered_again_when_their_locks_expire(
    member: Member,
) -> None:
    member.fetch()
    assert member.fetch(*map(accepted, range(3))).throttle_time_ms > 0
    assert size(member.fetch()) == 0, "the member has acquired the last record"
    member.harness.advance(31.0)
    [data] = partitions(member.fetch())
    [acquired] = data.acquired_records
    assert (acquired.first_offset, acquired.delivery_count) == (3, 2)


def test_a_partition_that_was_not_sent_to_a_throttled_session_is_sent_later(
    member: Member,
) -> None:
    member.fetch()
    member.client, member.epoch = member.harness.client(), 0  # a new session
    throttled = member.fetch()
    assert throttled.throttle_time_ms > 0
    assert partitions(throttled) == []
    assert len(partitions(member.fetch(topics=[]))) == 1
