"""Consumer groups for tests: topics, and clients that do what Kafka's do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kafkawire.broker.groups.consumer_groups.checks import Refusal
from kafkawire.broker.groups.consumer_groups.group import ConsumerGroup, HeartbeatResult
from kafkawire.broker.groups.consumer_groups.members import HeartbeatRequest, Partitions
from kafkawire.broker.groups.topics import Racks, Topic

EPOCH_MS = 1_700_000_000_000
NONE: Partitions = frozenset()


class FakeTopics:
    """Topics by name, whose ids are made of their names."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts
        self.of_racks: dict[str, str] = {}
        self.version = self.created = 1

    def find(self, name: str) -> Topic | None:
        count = self.counts.get(name)
        return None if count is None else Topic(topic_id(name), count)

    def names(self) -> Iterable[str]:
        return list(self.counts)

    def name(self, found: bytes) -> str | None:
        return next((name for name in self.counts if topic_id(name) == found), None)

    def racks(self, name: str) -> Racks:
        rack = self.of_racks.get(name)
        return () if rack is None else ((0, (rack,)),)

    def move(self, name: str, rack: str) -> None:
        self.of_racks[name] = rack
        self.version += 1

    def set(self, name: str, count: int) -> None:
        self.version += 1
        if name not in self.counts:
            self.created = self.version
        self.counts[name] = count


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def partitions(*names: str) -> Partitions:
    """Return e.g. those of `t-0`, `t-1`."""
    split = [name.rsplit("-", 1) for name in names]
    return frozenset((topic_id(topic), int(index)) for topic, index in split)


@dataclass
class Consumer:
    """A client. owned: what it reads. revokes: whether it gives up what it must at once.

    describes: the topics that it may describe; None for all.
    """

    group: ConsumerGroup
    topics: FakeTopics
    member_id: str
    names: frozenset[str] = frozenset({"t"})
    instance_id: str | None = None
    regex: str | None = None
    describes: frozenset[str] | None = None
    assignor: str | None = None
    epoch: int = 0
    owned: Partitions = NONE
    assigned: Partitions = NONE
    revokes: bool = True
    uncertain: bool = False
    results: list[HeartbeatResult] = field(default_factory=list)

    def heartbeat(
        self, now: float = 0.0, full: bool = False, **fields: Any
    ) -> HeartbeatResult | Refusal:
        """Send a heartbeat, and follow the response."""
        joins, self.uncertain = self.epoch == 0 or full or self.uncertain, False
        if joins and self.epoch == 0:
            self.owned = NONE
        request = HeartbeatRequest(
            self.group.group_id,
            self.member_id,
            self.epoch,
            self.instance_id,
            rebalance_timeout_ms=60_000 if joins else -1,
            topic_names=self.names if joins else None,
            topic_regex=self.regex if joins else None,
            server_assignor=self.assignor if joins else None,
            owned=self.owned,
            may_describe=self._may_describe,
        )._replace(**fields)
        result = self.group.handle(request, self.topics, now, EPOCH_MS + int(now * 1000))
        if isinstance(result, HeartbeatResult):
            self.results.append(result)
            self.epoch = result.member_epoch
            if result.assigned is not None:
                self.assigned = result.assigned
            if self.revokes:
                self.owned = self.assigned
            else:
                self.owned |= self.assigned
        return result

    def _may_describe(self, topic: str) -> bool:
        return self.describes is None or topic in self.describes

    def revoke(self) -> None:
        """Give up what is no longer assigned."""
        self.owned = self.assigned

    def leave(self, epoch: int = -1, now: float = 0.0) -> HeartbeatResult | Refusal:
        """Leave the group."""
        request = HeartbeatRequest(self.group.group_id, self.member_id, epoch, self.instance_id)
        return self.group.handle(request, self.topics, now, EPOCH_MS + int(now * 1000))


def settle(consumers: Iterable[Consumer], now: float = 0.0, rounds: int = 6) -> None:
    """Let consumers send heartbeats until nothing changes any more."""
    members = list(consumers)
    for _ in range(rounds):
        before = [(each.epoch, each.assigned) for each in members]
        for each in members:
            assert isinstance(each.heartbeat(now), HeartbeatResult)
        if before == [(each.epoch, each.assigned) for each in members]:
            return
    raise AssertionError(f"not settled after {rounds} rounds")
