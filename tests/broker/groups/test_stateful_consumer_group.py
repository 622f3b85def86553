"""A consumer group under any order of heartbeats, revocations, leavings, silences and time.

Invariants: no partition has two members at once, not even one that still reads what it must revoke;
epochs never go back; its records restore the group at any time; and once nothing changes any more,
all settles within a few heartbeats, with each partition assigned once.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkawire.broker.groups.consumer_groups.checks import Refusal
from kafkawire.broker.groups.consumer_groups.group import ConsumerGroup, HeartbeatResult
from kafkawire.broker.groups.consumer_groups.members import ConsumerGroupState
from kafkawire.broker.groups.consumer_groups.metadata import GroupConfig
from tests.fuzzing import examples

from .consumer_group import NONE, Consumer, FakeTopics, topic_id

WHO = st.integers(0, 3)
NAMES = st.sampled_from([frozenset({"t"}), frozenset({"u"}), frozenset({"t", "u"})])
INTERVAL = 1.0


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Four clients, two of them static, whose requests and responses may be lost."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.topics = FakeTopics(t=3, u=2)
        self.group = ConsumerGroup("g", GroupConfig(assignment_interval=INTERVAL))
        self.restored = ConsumerGroup("g")
        self.clients = [self.client(at) for at in range(4)]
        self.count = 4
        self.epoch = self.assignment_epoch = 0

    def client(self, at: int, number: int | None = None) -> Consumer:
        instance = f"i{at}" if at < 2 else None
        number = at if number is None else number
        return Consumer(self.group, self.topics, f"m{number}", instance_id=instance)

    def is_member(self, client: Consumer) -> bool:
        return client.member_id in self.group.subscriptions

    @rule(who=WHO, names=NAMES, assignor=st.sampled_from([None, "range", "uniform"]))
    def subscribe(self, who: int, names: frozenset[str], assignor: str | None) -> None:
        client = self.clients[who]
        client.names, client.assignor = names, assignor
        self.send(client, full=True)

    @rule(who=WHO, revokes=st.booleans())
    def heartbeat(self, who: int, revokes: bool) -> None:
        self.clients[who].revokes = revokes
        self.send(self.clients[who])

    def send(self, client: Consumer, full: bool = False) -> None:
        before = client.epoch
        result = client.heartbeat(self.now, full or client.epoch == 0)
        if isinstance(result, HeartbeatResult):
            assert result.member_epoch >= before
        else:
            client.epoch, client.owned, client.assigned = 0, NONE, NONE  # fenced, or expelled

    @rule(who=WHO)
    def lose_the_response(self, who: int) -> None:
        client = self.clients[who]
        epoch, owned, assigned = client.epoch, client.owned, client.assigned
        if epoch:
            self.send(client)
            client.epoch, client.owned, client.assigned = epoch, owned, assigned
            client.uncertain = True  # after an error, clients send all fields

    @rule(who=WHO)
    def revoke(self, who: int) -> None:
        self.clients[who].revoke()

    @rule(who=WHO, for_a_while=st.booleans())
    def leave(self, who: int, for_a_while: bool) -> None:
        client = self.clients[who]
        static = client.instance_id is not None and for_a_while
        client.leave(-2 if static else -1, self.now)
        self.clients[who] = self.client(who, self.count)
        self.count += 1

    @rule(name=st.sampled_from("tu"), more=st.integers(1, 2))
    def add_partitions(self, name: str, more: int) -> None:
        self.topics.set(name, min(self.topics.counts[name] + more, 6))

    @rule(seconds=st.sampled_from([0.5, 5.0, 50.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.group.advance(self.topics, self.now)
        for client in self.clients:
            if client.epoch and not self.is_member(client):
                client.epoch, client.owned, client.assigned = 0, NONE, NONE  # it lost its session

    @rule()
    def settle(self) -> None:
        for client in self.clients:
            client.revokes = True
            client.revoke()
        for _ in range(14):  # a static member that is fenced waits for the end of its session
            self.wait(5.0)
            for client in self.clients:
                self.send(client, full=client.epoch == 0)
        members = [each for each in self.clients if self.is_member(each)]
        if len(members) == len(self.group.subscriptions):
            assert self.group.state is ConsumerGroupState.STABLE
            subscribed = frozenset().union(*(each.names for each in members))
            assigned = [each for client in members for each in client.assigned]
            assert sorted(assigned) == sorted(
                (topic_id(name), index)
                for name in subscribed
                for index in range(self.topics.counts[name])
            )

    @invariant()
    def no_partition_has_two_members(self) -> None:
        reading = [
            each for client in self.clients if self.is_member(client) for each in client.owned
        ]
        assert len(reading) == len(set(reading))
        held = [
            each
            for current in self.group.current.values()
            for each in current.assigned | current.pending_revocation
        ]
        assert len(held) == len(set(held))

    @invariant()
    def epochs_never_go_back(self) -> None:
        assert self.group.epoch >= self.epoch
        assert self.group.assignment_epoch >= self.assignment_epoch
        assert self.group.epoch >= self.group.assignment_epoch
        self.epoch, self.assignment_epoch = self.group.epoch, self.group.assignment_epoch

    @invariant()
    def its_changes_restore_it(self) -> None:
        for change in self.group.changes:
            self.restored.apply(change)
        self.group.changes.clear()
        assert self.restored.current == self.group.current
        assert self.restored.owners == self.group.owners
        assert self.restored.state is self.group.state


ConsumerGroupMachine.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=30)
TestConsumerGroup = pytest.mark.fuzz(ConsumerGroupMachine.TestCase)


def test_a_refused_request_changes_nothing() -> None:
    group, topics = ConsumerGroup("g"), FakeTopics(t=1)
    first = Consumer(group, topics, "a", instance_id="i")
    first.heartbeat()
    changes = len(group.changes)
    assert isinstance(Consumer(group, topics, "b", instance_id="i").heartbeat(), Refusal)
    first.epoch = 9
    assert isinstance(first.heartbeat(), Refusal)
    assert len(group.changes) == changes
