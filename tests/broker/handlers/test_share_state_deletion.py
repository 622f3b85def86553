"""The deletion of share state: of deleted topics, and over failovers of the group coordinator."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from kafkawire.messages.delete_groups_request import DeleteGroupsRequest
from kafkawire.messages.delete_groups_response import DeleteGroupsResponse
from kafkawire.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kafkawire.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from kafkawire.primitives import Message
from tests.broker.harness import Harness
from tests.broker.members import coordinator

from .test_share_groups import Consumer, harness_of, offsets

E = ErrorCode


def states(harness: Harness) -> int:
    """Return the number of share partitions with state on brokers that are alive."""
    return sum(
        len(each.states)
        for node_id in harness.alive
        for each in harness.broker(node_id).share_coordinators._loaded.values()
    )


def harness_apart() -> Harness:
    """Return brokers of which one has `g`, which has no members, and another its share state."""
    harness = harness_of(
        3,
        offsets_topic_num_partitions="1",
        offsets_topic_replication_factor="3",
        share_coordinator_state_topic_num_partitions="1",
        share_coordinator_state_topic_replication_factor="1",
    )
    consumer = Consumer(harness)
    consumer.join()
    consumer.beat(-1)
    assert states(harness) == 1
    share_state = harness.leader_of(SHARE_STATE_TOPIC)
    apart = next(each for each in harness.alive if each != share_state)
    if harness.leader_of(OFFSETS_TOPIC) == share_state:
        harness.move_leader(OFFSETS_TOPIC, 0, apart)
        harness.advance(1.0)
    return harness


def fail_over_while_deleting(harness: Harness, request: Message, version: int) -> None:
    """Begin to delete state that cannot be reached; the group has another coordinator then."""
    share_state, former = harness.leader_of(SHARE_STATE_TOPIC), harness.leader_of(OFFSETS_TOPIC)
    harness.kill_broker(share_state)
    harness.client(former).send(request, version)
    harness.advance(1.0)
    others = harness.alive - {former}
    harness.move_leader(OFFSETS_TOPIC, 0, min(others))
    harness.advance(20.0)
    harness.start_broker(share_state)
    harness.wait(lambda: states(harness) == 1)


def test_a_group_that_is_deleted_after_a_failover_leaves_no_state() -> None:
    harness = harness_apart()
    request = DeleteGroupsRequest(groups_names=["g"])
    fail_over_while_deleting(harness, request, 2)
    response = coordinator(harness, "g").exchange(request, 2, DeleteGroupsResponse)
    assert response.results[0].error_code == E.NONE
    assert states(harness) == 0


def test_offsets_are_deleted_again_after_a_failover() -> None:
    harness = harness_apart()
    topic = DeleteShareGroupOffsetsRequestTopic(topic_name="t")
    request = DeleteShareGroupOffsetsRequest(group_id="g", topics=[topic])
    fail_over_while_deleting(harness, request, 0)

    def deleted() -> int:
        client = coordinator(harness, "g")
        response = client.exchange(request, 0, DeleteShareGroupOffsetsResponse)
        assert response.error_code == E.NONE
        return response.responses[0].error_code

    assert deleted() == E.NONE
    assert states(harness) == 0
    assert deleted() == E.UNKNOWN_TOPIC_OR_PARTITION, "what is confirmed is over"


@pytest.mark.parametrize(
    ("group", "topic", "messages"),
    [
        ("g", "absent", ("", "This server does not host this topic-partition.")),
        ("absent", "t", ("Group absent not found.", None)),
    ],
)
def test_absent_groups_and_topics_are_explained_as_in_kafka(
    group: str, topic: str, messages: tuple[str, str | None]
) -> None:
    request = DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic)]
    )
    client = coordinator(harness_apart(), group)
    response = client.exchange(request, 0, DeleteShareGroupOffsetsResponse)
    topics = [each.error_message for each in response.responses] or [None]
    assert (response.error_message or "", *topics) == messages


def test_share_coordinators_delete_the_state_of_deleted_topics_by_themselves() -> None:
    harness = harness_apart()
    fail_over_while_deleting(harness, DeleteGroupsRequest(groups_names=["g"]), 2)
    harness.delete_topics("t")
    harness.wait(lambda: states(harness) == 0)
    harness.advance(1.0)
    assert offsets(harness) == []
    restored = harness.restored()
    restored.advance(1.0)
    assert states(restored) == 0
