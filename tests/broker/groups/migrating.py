"""Members of one group at a broker, of the classic and of the consumer protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kafkawire import ErrorCode, Message
from kafkawire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafkawire.messages.consumer_protocol_assignment import TopicPartition as Assigned
from kafkawire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.heartbeat_response import HeartbeatResponse
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafkawire.messages.leave_group_response import LeaveGroupResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.protocol.versioned import decode_versioned, encode_versioned
from tests.broker.harness import Client, Harness
from tests.broker.members import coordinator

E = ErrorCode
GROUP, TOPIC, PARTITIONS = "g", "t", 4
SESSION_MS, REBALANCE_MS = 10_000, 60_000
NAME = "range"


def subscription(owned: Iterable[int] = (), version: int = 3, topic: str = TOPIC) -> bytes:
    partitions = sorted(owned)
    listed = [TopicPartition(topic=topic, partitions=partitions)] if partitions else []
    message = ConsumerProtocolSubscription(topics=[topic], owned_partitions=listed)
    return encode_versioned(message, version)


def assignment(partitions: Iterable[int], user_data: bytes | None = None) -> bytes:
    listed = [Assigned(topic=TOPIC, partitions=sorted(partitions))]
    message = ConsumerProtocolAssignment(assigned_partitions=listed, user_data=user_data)
    return encode_versioned(message, 3)


def partitions_in(data: bytes) -> set[int]:
    if not data:
        return set()
    _, message = decode_versioned("ConsumerProtocolAssignment", data)
    assert isinstance(message, ConsumerProtocolAssignment)
    return {index for each in message.assigned_partitions for index in each.partitions}


@dataclass
class Classic:
    """A client of the classic protocol, which follows the responses as Java's consumer does.

    owned: the partitions that it reads. cooperative: whether it keeps them in a rebalance.
    """

    client: Client
    cooperative: bool = False
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    owned: set[int] = field(default_factory=set)
    name: str = NAME
    wants: str = "join"
    leads: dict[str, set[int]] = field(default_factory=dict)
    """Member -> the partitions that it owns, if this one leads."""

    def act(self) -> Message | None:
        """Take the response to the request in flight, if it is there, or send the next one."""
        if self.client.in_flight:
            response = self.client.response()
            if response is not None:
                self.follow(response)
            return response
        match self.wants:
            case "join":
                self.send_join()
            case "sync":
                self.send_sync()
            case _:
                self.send_heartbeat()
        return self.act() if self.client.received else None

    def send_join(self, **more: Any) -> None:
        if not self.cooperative:
            self.owned = set()
        fields: dict[str, Any] = {
            "group_id": GROUP,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": [
                JoinGroupRequestProtocol(name=self.name, metadata=subscription(self.owned))
            ],
        }
        self.client.send(JoinGroupRequest(**(fields | more)), 9)

    def send_sync(self) -> None:
        shares = divided(self.leads) if self.leads else {}
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self.name,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=assignment(share))
                for each, share in shares.items()
            ],
        )
        self.client.send(request, 5)

    def send_heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        self.client.send(request, 4)

    def leave(self) -> LeaveGroupResponse:
        member = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        self.owned = set()
        request = LeaveGroupRequest(group_id=GROUP, members=[member])
        return self.client.exchange(request, 5, LeaveGroupResponse)

    def follow(self, response: Message) -> None:
        match response:
            case JoinGroupResponse(error_code=E.NONE):
                self.member_id, self.generation = response.member_id, response.generation_id
                self.leads = {}
                if response.leader == response.member_id:
                    self.leads = {each.member_id: owned(each.metadata) for each in response.members}
                self.wants = "sync"
            case JoinGroupResponse(error_code=E.MEMBER_ID_REQUIRED):
                self.member_id = response.member_id
            case SyncGroupResponse(error_code=E.NONE):
                assigned = partitions_in(response.assignment)
                revoked, self.owned = self.owned - assigned, assigned
                # a cooperative member says at once what it has given up
                self.wants = "join" if revoked and self.cooperative else "heartbeat"
            case HeartbeatResponse(error_code=E.NONE):
                self.wants = "heartbeat"
            case _:
                error = response.error_code  # type: ignore[attr-defined]
                self.wants = "join"
                if error != E.REBALANCE_IN_PROGRESS:
                    self.owned = set()
                    self.generation = -1
                if error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
                    self.member_id = ""


def owned(metadata: bytes) -> set[int]:
    _, message = decode_versioned("ConsumerProtocolSubscription", metadata)
    assert isinstance(message, ConsumerProtocolSubscription)
    return {index for each in message.owned_partitions for index in each.partitions}


def divided(has: dict[str, set[int]]) -> dict[str, set[int]]:
    """Divide the partitions as a cooperative leader does.

    A member gets a partition only when no other member says that it has it.
    """
    held = set().union(*has.values())
    most = -(-PARTITIONS // len(has))
    shares = {each: set(sorted(partitions)[:most]) for each, partitions in has.items()}
    for index in sorted(set(range(PARTITIONS)) - held):
        min(shares.values(), key=len).add(index)
    return shares


@dataclass
class Consumer:
    """A client of the consumer protocol. owned: the partitions that it reads."""

    harness: Harness
    client: Client
    member_id: str
    instance_id: str | None = None
    epoch: int = 0
    owned: set[int] = field(default_factory=set)

    def act(self) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat, and follow the response."""
        joins: dict[str, Any] = {}
        if self.epoch == 0:
            self.owned = set()
            joins = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": [TOPIC]}
        response = self.send(self.epoch, topic_partitions=self.listed(), **joins)
        if response.error_code:
            self.epoch, self.owned = 0, set()
            return response
        self.epoch = response.member_epoch
        if response.assignment is not None:
            topics = response.assignment.topic_partitions
            self.owned = {index for each in topics for index in each.partitions}
        return response

    def listed(self) -> list[TopicPartitions]:
        topic = self.harness.topic(TOPIC)
        assert topic is not None
        partitions = sorted(self.owned)
        listed = [TopicPartitions(topic_id=topic.topic_id, partitions=partitions)]
        return listed if partitions else []

    def send(self, epoch: int, **more: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            **more,
        )
        return self.client.exchange(request, 1, ConsumerGroupHeartbeatResponse)

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        self.owned = set()
        return self.send(epoch)


Member = Classic | Consumer


def classic(harness: Harness, cooperative: bool = False, **more: Any) -> Classic:
    return Classic(coordinator(harness, GROUP), cooperative, **more)


def consumer(harness: Harness, member_id: str, **more: Any) -> Consumer:
    return Consumer(harness, coordinator(harness, GROUP), member_id, **more)


def settle(harness: Harness, members: Iterable[Member], rounds: int = 30) -> None:
    """Let members act until each partition has one of them."""
    each_member = list(members)
    for _ in range(rounds):
        for each in each_member:
            each.act()
        harness.advance(1.0)
        shares = sorted(index for each in each_member for index in each.owned)
        busy = [
            each for each in each_member if isinstance(each, Classic) and each.wants != "heartbeat"
        ]
        if (
            shares == list(range(PARTITIONS))
            and all(each.owned for each in each_member)
            and not busy
        ):
            return
    raise AssertionError([each.owned for each in each_member])
