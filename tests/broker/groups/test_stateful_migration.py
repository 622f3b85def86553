"""Members of both protocols that come and go in one group, in any order.

Invariants: no partition has two members that read it at once, whatever the type of the group; and
once nobody comes or goes any more, each member has its share within a few heartbeats.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafkawire.messages.join_group_response import JoinGroupResponse
from tests.broker.harness import Harness
from tests.fuzzing import examples

from .migrating import PARTITIONS, SESSION_MS, TOPIC, Classic, Member, classic, consumer, settle

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}
WHO = st.integers(0, 2)


class MigrationMachine(RuleBasedStateMachine):
    """Three clients, each of either protocol; those of the classic one are of one kind."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness(topics={TOPIC: PARTITIONS}, settings=SETTINGS)
        self.cooperative = False
        self.members: dict[int, Member] = {}
        self.heard: dict[int, float] = {}
        self.count = 0

    @initialize(cooperative=st.booleans())
    def begin(self, cooperative: bool) -> None:
        self.cooperative = cooperative

    @rule(who=WHO, is_classic=st.booleans())
    def come(self, who: int, is_classic: bool) -> None:
        if who not in self.members:
            self.count += 1
            self.members[who] = (
                classic(self.harness, self.cooperative)
                if is_classic
                else consumer(self.harness, f"m{self.count}")
            )
            self.act(who, 3)

    @rule(who=WHO, times=st.integers(1, 4))
    def act(self, who: int, times: int) -> None:
        for _ in range(times if who in self.members else 0):
            self.members[who].act()
            self.heard[who] = self.harness.now

    @rule(who=WHO)
    def leave(self, who: int) -> None:
        member = self.members.pop(who, None)
        if isinstance(member, Classic):
            if member.client.in_flight:
                member.client.disconnect()
                member = Classic(self.harness.client(1), member_id=member.member_id)
            member.leave()
        elif member is not None:
            member.leave()

    @rule(seconds=st.sampled_from([1.0, 4.0]))
    def wait(self, seconds: float) -> None:
        self.harness.advance(seconds)
        for who, member in self.members.items():
            waits = isinstance(member, Classic) and bool(member.client.in_flight)
            if self.harness.now - self.heard[who] >= SESSION_MS / 1000 and not waits:
                self.forget(member)

    def forget(self, member: Member) -> None:
        """Its session may be over: it stops reading, as clients do."""
        member.owned = set()
        if isinstance(member, Classic):
            member.member_id, member.generation, member.wants = "", -1, "join"
        else:
            member.epoch = 0

    @rule()
    def settle(self) -> None:
        if self.members:
            self.harness.advance(50.0)  # the sessions of those that are no longer there end
            for who, member in self.members.items():
                if isinstance(member, Classic) and member.client.in_flight:
                    response = member.client.response()
                    assert isinstance(response, JoinGroupResponse)
                    member.follow(response)
                else:
                    self.forget(member)
                self.heard[who] = self.harness.now
            settle(self.harness, self.members.values())
            for who in self.members:
                self.heard[who] = self.harness.now

    @invariant()
    def no_partition_has_two_readers(self) -> None:
        read = [index for each in self.members.values() for index in each.owned]
        assert len(read) == len(set(read)), {k: v.owned for k, v in self.members.items()}


MigrationMachine.TestCase.settings = settings(
    max_examples=examples(12), stateful_step_count=20, deadline=None
)
TestMigration = pytest.mark.fuzz(MigrationMachine.TestCase)
