"""Requests of members of both protocols to one group, as `test_beside_kafka` sends them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkawire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafkawire.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from kafkawire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from kafkawire.protocol.versioned import encode_versioned

GROUP: Final = "beside-migrating"
TOPIC: Final = "beside"
"""A topic with three partitions."""
INTERVAL: Final = "consumer.assignment.interval.ms"
Fields = dict[str, Any]
Step = tuple[str, str, int, Fields]


def subscription(owned: Sequence[int] = ()) -> str:
    partitions = [TopicPartition(topic=TOPIC, partitions=list(owned))] if owned else []
    message = ConsumerProtocolSubscription(topics=[TOPIC], owned_partitions=partitions)
    return b64encode(encode_versioned(message, 3)).decode()


def assignment(partitions: Sequence[int]) -> str:
    assigned = [AssignedTopic(topic=TOPIC, partitions=list(partitions))]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return b64encode(encode_versioned(message, 3)).decode()


def join(member_id: str, *owned: int, name: str = "range", **more: Any) -> Fields:
    return {
        "groupId": GROUP,
        "sessionTimeoutMs": 30_000,
        "rebalanceTimeoutMs": 30_000,
        "memberId": member_id,
        "protocolType": "consumer",
        "protocols": [{"name": name, "metadata": subscription(owned)}],
        **more,
    }


def beat(member_id: str, epoch: int = 0, **more: Any) -> Fields:
    joins = {"rebalanceTimeoutMs": 30_000, "subscribedTopicNames": [TOPIC]}
    joins = joins | {"topicPartitions": []} if epoch == 0 else {}
    return {"groupId": GROUP, "memberId": member_id, "memberEpoch": epoch, **joins, **more}


def of(member_id: str, generation: int, **more: Any) -> Fields:
    return {"groupId": GROUP, "memberId": member_id, "generationId": generation, **more}


def commit(member_id: str, generation: int) -> Fields:
    partition = {"partitionIndex": 0, "committedOffset": 1, "committedMetadata": "m"}
    return {
        "groupId": GROUP,
        "generationIdOrMemberEpoch": generation,
        "memberId": member_id,
        "topics": [{"name": TOPIC, "partitions": [partition]}],
    }


def leave(*members: tuple[str, str | None]) -> Fields:
    named = [{"memberId": each, "groupInstanceId": instance} for each, instance in members]
    return {"groupId": GROUP, "members": named}


CONSUMER: Final = "ConsumerGroupHeartbeat"
NAMED: Final = {"protocolType": "consumer", "protocolName": "range"}
DESCRIBED: Final = {"groupIds": [GROUP], "includeAuthorizedOperations": False}


def steps() -> Iterator[Step]:
    """Return the requests in order."""
    change = {"name": INTERVAL, "configOperation": 0, "value": "0"}
    resource = {"resourceType": 32, "resourceName": GROUP, "configs": [change]}
    changed = {"resources": [resource], "validateOnly": False}
    yield "assign at once", "IncrementalAlterConfigs", 1, changed
    yield from joining()
    yield from revoking_again()
    yield from downgrading()
    yield from upgrading()
    yield from static()


def joining() -> Iterator[Step]:
    """A member of the classic protocol joins a consumer group."""
    yield "a consumer joins", CONSUMER, 1, beat("a")
    yield "another kind joins", "JoinGroup", 9, join("k", protocolType="connect")
    yield "no protocols", "JoinGroup", 9, join("k", protocols=[])
    bad = [{"name": "range", "metadata": "AA=="}]
    yield "malformed metadata", "JoinGroup", 9, join("k", protocols=bad)
    yield "a member that is not there", "JoinGroup", 9, join("k", groupInstanceId="nobody")
    yield "a classic member joins", "JoinGroup", 9, join("k")
    yield "another protocol", "JoinGroup", 9, join("l", name="roundrobin")
    yield "describe", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "an old generation", "Heartbeat", 4, of("k", 1)
    yield "heartbeat", "Heartbeat", 4, of("k", 3)
    yield "heartbeat of a consumer", "Heartbeat", 4, of("a", 2)
    yield "sync of an old generation", "SyncGroup", 5, of("k", 1, assignments=[], **NAMED)
    other = NAMED | {"protocolName": "roundrobin"}
    yield "sync of another protocol", "SyncGroup", 5, of("k", 3, assignments=[], **other)
    yield "sync, nothing yet", "SyncGroup", 5, of("k", 3, assignments=[], **NAMED)
    for version in (8, 9):
        yield "commit", "OffsetCommit", version, commit("k", 3)
        yield "commit of another generation", "OffsetCommit", version, commit("k", 2)
        yield "commit of a later generation", "OffsetCommit", version, commit("k", 9)
    yield "the consumer revokes", CONSUMER, 1, beat("a", 2)
    yield "a heartbeat in between", "Heartbeat", 4, of("k", 3)
    yield "describe who revokes", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "the consumer rejoins", CONSUMER, 1, beat("a")
    yield "describe who has rejoined", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "free partitions", "Heartbeat", 4, of("k", 3)
    yield "join again", "JoinGroup", 9, join("k")
    yield "sync", "SyncGroup", 5, of("k", 3, assignments=[], **NAMED)
    yield "sync by an old version", "SyncGroup", 3, of("k", 3, assignments=[])
    yield "settled", "Heartbeat", 4, of("k", 3)
    yield "describe, settled", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "list", "ListGroups", 5, {"typesFilter": ["consumer"], "statesFilter": ["Stable"]}


def revoking_again() -> Iterator[Step]:
    """Another one joins, and leaves."""
    yield "a second classic member", "JoinGroup", 9, join("l")
    yield "it is to revoke", "Heartbeat", 4, of("k", 3)
    yield "it revokes what it has", "JoinGroup", 9, join("k", 2)
    yield "sync of who has", "SyncGroup", 5, of("k", 4, assignments=[], **NAMED)
    yield "sync of the second", "SyncGroup", 5, of("l", 4, assignments=[], **NAMED)
    yield "describe three", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "leave", "LeaveGroup", 5, leave(("l", None), ("x", None), ("l", "i"))
    yield "the consumer computes", CONSUMER, 1, beat("a", 4)
    yield "describe two", "ConsumerGroupDescribe", 1, DESCRIBED


def downgrading() -> Iterator[Step]:
    """The last member of the consumer protocol leaves."""
    yield "the last consumer leaves", CONSUMER, 1, beat("a", -1)
    yield "describe a consumer group no more", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "describe a classic group", "DescribeGroups", 5, {"groups": [GROUP]}
    for generation in range(3, 8):
        yield f"heartbeat in {generation}", "Heartbeat", 4, of("k", generation)
    yield "join the classic group", "JoinGroup", 9, join("k")
    for generation in range(5, 9):
        shares = [{"memberId": "k", "assignment": assignment((0, 1, 2))}]
        fields = of("k", generation, assignments=shares, **NAMED)
        yield f"sync, leading {generation}", "SyncGroup", 5, fields
    yield "describe the classic group", "DescribeGroups", 5, {"groups": [GROUP]}


def upgrading() -> Iterator[Step]:
    """A member of the consumer protocol joins the classic group."""
    yield "a consumer in a wrong epoch", CONSUMER, 1, beat("a", 3)
    yield "a consumer that is refused", CONSUMER, 1, beat("a", instanceId="")
    yield "a consumer joins again", CONSUMER, 1, beat("a")
    yield "describe an upgraded group", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "describe it as classic", "DescribeGroups", 6, {"groups": [GROUP]}
    for generation in range(6, 9):
        yield f"heartbeat of {generation}", "Heartbeat", 4, of("k", generation)
    yield "rejoin, cooperatively", "JoinGroup", 9, join("k", 0, 1, 2)
    for generation in range(6, 9):
        fields = of("k", generation, assignments=[], **NAMED)
        yield f"sync of {generation}", "SyncGroup", 5, fields
    yield "describe who is to revoke", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "rejoin, revoked", "JoinGroup", 9, join("k", 0, 1)
    for generation in range(6, 9):
        fields = of("k", generation, assignments=[], **NAMED)
        yield f"sync again of {generation}", "SyncGroup", 5, fields
    for epoch in range(6, 9):
        yield f"the consumer gets it in {epoch}", CONSUMER, 1, beat("a", epoch)
    yield "describe, settled again", "ConsumerGroupDescribe", 1, DESCRIBED


def static() -> Iterator[Step]:
    """A static member changes its protocol."""
    yield "a static consumer", CONSUMER, 1, beat("s", instanceId="i")
    yield "the other leaves", CONSUMER, 1, beat("a", -1)
    yield "a static classic member, with an id", "JoinGroup", 9, join("t", groupInstanceId="i")
    yield "the consumer returns by its new protocol", CONSUMER, 1, beat("k")
    yield "describe two consumers", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "a classic member takes the place", "JoinGroup", 9, join("s", groupInstanceId="i")
    yield "describe, still a consumer group", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "who has left", "LeaveGroup", 5, leave(("", "i"), ("k", None))
    yield "describe the empty group", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "join the empty group as a member", "JoinGroup", 9, join("k")
    yield "a consumer joins after it: a new group", CONSUMER, 1, beat("z")
    yield "describe the new group", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "the consumer leaves", CONSUMER, 1, beat("z", -1)
    yield "join as a member once more", "JoinGroup", 9, join("k")
    yield "join without an id", "JoinGroup", 9, join("")
    yield "describe no consumer group", "ConsumerGroupDescribe", 1, DESCRIBED
    yield "describe a new classic group", "DescribeGroups", 6, {"groups": [GROUP]}
