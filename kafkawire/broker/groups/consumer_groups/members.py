"""The members of a consumer group: what they send, what they are subscribed to, what they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import Any, Final, NamedTuple

from ..requests import Protocols

LEAVE: Final = -1
"""The member epoch of a member that leaves."""
LEAVE_STATIC: Final = -2
"""The member epoch of a static member that will be back."""
JOIN: Final = 0
INITIAL_EPOCH: Final = 1
"""The epoch of a new group, as since Kafka 4.3."""
NOT_SET: Final = -1
"""The rebalance timeout of a request that does not change it."""

TopicPartition = tuple[bytes, int]
"""(topic id, partition)."""
Partitions = frozenset[TopicPartition]
NOTHING: Final[Partitions] = frozenset()


class ConsumerGroupState(Enum):
    """A state; its value is its name in ListGroups."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """How far a member is from its target assignment, as in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has partitions to revoke."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that other members have to revoke."""


class ClassicMember(NamedTuple):
    """What a member that uses the classic protocol sent in its JoinGroup."""

    session_timeout_ms: int
    protocols: Protocols

    @property
    def size(self) -> int:
        """Bytes of its protocols."""
        return sum(len(name) + len(metadata) for name, metadata in self.protocols)


MayDescribe = Callable[[str], bool]
"""Whether the sender of a request may DESCRIBE a topic."""


def may_describe_any(_topic: str) -> bool:
    """Return what holds for all topics without an authorizer."""
    return True


class HeartbeatRequest(NamedTuple):
    """A ConsumerGroupHeartbeat, or a JoinGroup as one; None for what does not change.

    owned: the partitions that the member has. owned_topics: the ids of their topics, also of
    those without partitions. classic: of a JoinGroup. may_describe: decides which topics a regular
    expression matches.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NOT_SET
    topic_names: frozenset[str] | None = None
    topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    classic: ClassicMember | None = None
    may_describe: MayDescribe = may_describe_any
    owned_topics: frozenset[bytes] = frozenset()

    @property
    def is_full(self) -> bool:
        """Whether it has all fields, so that its response has the assignment."""
        subscribed = self.topic_names is not None or self.topic_regex is not None
        complete = self.rebalance_timeout_ms != NOT_SET and subscribed and self.owned is not None
        return self.member_epoch == JOIN or complete


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member said of itself.

    topic_regex: "" for none. classic: None for a member that uses the consumer protocol.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    rebalance_timeout_ms: int = NOT_SET
    server_assignor: str | None = None
    classic: ClassicMember | None = None

    def updated(self, request: HeartbeatRequest) -> Subscription:
        """Return what it is after a heartbeat."""
        fields = {
            "instance_id": request.instance_id,
            "rack_id": request.rack_id,
            "topic_names": request.topic_names,
            "topic_regex": request.topic_regex,
            "server_assignor": request.server_assignor,
        }
        changed: dict[str, Any] = {
            name: value for name, value in fields.items() if value is not None
        }
        if request.rebalance_timeout_ms != NOT_SET:
            changed["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        return replace(
            self,
            client_id=request.client_id,
            client_host=request.client_host,
            classic=request.classic,
            **changed,
        )

    def subscribes_as(self, other: Subscription) -> bool:
        """Whether two subscriptions are for the same topics."""
        return (self.topic_names, self.topic_regex) == (other.topic_names, other.topic_regex)

    @property
    def size(self) -> int:
        """Characters of its texts, and bytes of its protocols."""
        texts = (self.instance_id, self.rack_id, self.client_id, self.client_host, self.topic_regex)
        size = sum(len(text or "") for text in texts) + sum(map(len, self.topic_names))
        return size + (0 if self.classic is None else self.classic.size)


@dataclass(frozen=True, slots=True)
class Current:
    """What a member has now.

    epoch: which it has reached. previous_epoch: that of a member that missed the last response.
    assigned: the partitions that it may read. pending_revocation: those that it must give up first.
    since: the epochs since which it has the partitions of both (KIP-1251).
    """

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NOTHING
    pending_revocation: Partitions = NOTHING
    since: Mapping[TopicPartition, int] = field(default_factory=dict, compare=False)

    def since_epoch(self, partition: TopicPartition) -> int | None:
        """Return the epoch since which it has a partition; None if it does not have it."""
        if partition not in self.assigned and partition not in self.pending_revocation:
            return None
        return self.since.get(partition, self.epoch)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has its target assignment of an epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch
