"""A group under any order of joins, syncs, heartbeats, leavings, silences and time.

The model knows who should be a member and what each was reported last; the laws are those a client
relies on: each request with one response or delayed, one leader and one protocol a generation,
generations never go back, who behaves is never expelled, and with time all settles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkawire import ErrorCode
from kafkawire.broker.groups.classic_groups.group import Group
from kafkawire.broker.groups.classic_groups.states import GroupState
from kafkawire.broker.groups.requests import (
    Effect,
    GroupRequest,
    Heartbeat,
    HeartbeatResult,
    Join,
    Joined,
    Leave,
    Left,
    Store,
    Sync,
    Synced,
)
from tests.fuzzing import examples

E, S = ErrorCode, GroupState
SESSION, REBALANCE, DELAY = 10.0, 30.0, 3.0
PROTOCOLS = st.sampled_from(
    [(("range", b"1"),), (("range", b"2"), ("sticky", b"2")), (("sticky", b"3"), ("range", b"3"))]
)
WHO = st.integers(0, 3)


@dataclass
class Consumer:
    """A client: what it knows of itself, and the request of its that is open."""

    instance: str | None
    member_id: str = ""
    generation_id: int = -1
    leads: bool = False
    members: tuple[str, ...] = ()
    protocols: tuple[tuple[str, bytes], ...] = (("range", b"1"),)
    open: int | None = None
    synced: bool = False
    last_active: float = 0.0
    wants: str = "join"


@dataclass
class Generation:
    """The responses to members of one generation."""

    leaders: set[str] = field(default_factory=set)
    protocols: set[str | None] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)


class GroupMachine(RuleBasedStateMachine):
    """Four clients, one of them static, and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.count = 0
        self.ids = 0
        self.group = Group("g", new_member_id=self.new_id, initial_delay=DELAY)
        self.consumers = [Consumer("static" if at == 3 else None) for at in range(4)]
        self.in_flight: dict[int, Consumer] = {}
        self.responded: set[int] = set()
        self.generations: dict[int, Generation] = {}
        self.stored = 0

    def new_id(self, name: str) -> str:
        self.ids += 1
        return f"{name}-{self.ids}"

    def send(self, consumer: Consumer, request: GroupRequest) -> None:
        self.in_flight[request.reply_to] = consumer
        consumer.open = request.reply_to
        self.take(self.group.handle(request, self.now))

    def next_reply(self) -> int:
        self.count += 1
        return self.count

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Store):
                self.stored += 1
                continue
            assert effect.reply_to in self.in_flight, "an response to nobody"
            assert effect.reply_to not in self.responded, "responded twice"
            self.responded.add(effect.reply_to)
            consumer = self.in_flight[effect.reply_to]
            if consumer.open == effect.reply_to:
                consumer.open = None
                self.receive(consumer, effect)

    def receive(self, consumer: Consumer, response: Effect) -> None:
        consumer.last_active = self.now
        match response:
            case Joined(error=E.NONE):
                self.receive_joined(consumer, response)
            case Joined(error=E.MEMBER_ID_REQUIRED):
                consumer.member_id = response.member_id
            case Joined(error=E.UNKNOWN_MEMBER_ID | E.FENCED_INSTANCE_ID):
                consumer.member_id, consumer.wants = "", "join"
            case Synced(error=E.NONE):
                consumer.synced, consumer.wants = True, "beat"
                inherits = consumer.instance is not None  # from the id it had before
                own = consumer.member_id.encode(), b""
                assert inherits or response.assignment in own
            case Synced() | HeartbeatResult(error=E.REBALANCE_IN_PROGRESS):
                consumer.wants = "join"
                if response.error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
                    consumer.member_id = ""
            case HeartbeatResult(
                error=E.UNKNOWN_MEMBER_ID | E.FENCED_INSTANCE_ID | E.ILLEGAL_GENERATION
            ):
                consumer.member_id, consumer.wants = "", "join"
            case Left():
                consumer.member_id, consumer.wants = "", "join"

    def receive_joined(self, consumer: Consumer, response: Joined) -> None:
        assert response.generation_id >= consumer.generation_id or consumer.member_id == ""
        consumer.member_id, consumer.generation_id = response.member_id, response.generation_id
        consumer.leads = response.leader == response.member_id
        consumer.members = tuple(member_id for member_id, _, _ in response.members)
        consumer.synced, consumer.wants = False, "sync"
        reported = self.generations.setdefault(response.generation_id, Generation())
        reported.protocols.add(response.protocol_name)
        reported.members.add(response.member_id)
        if not response.skip_assignment and consumer.instance is None:
            reported.leaders.add(response.leader)
        if consumer.leads:
            assert response.member_id in consumer.members, "the leader is reported of itself"

    # -- what clients do

    @rule(who=WHO, protocols=PROTOCOLS, requires_known_member_id=st.booleans())
    def joins(
        self, who: int, protocols: tuple[tuple[str, bytes], ...], requires_known_member_id: bool
    ) -> None:
        consumer = self.consumers[who]
        if consumer.open is not None and self.is_delayed(consumer):
            return  # a client waits for its response
        consumer.protocols = protocols
        self.join(consumer, requires_known_member_id)

    def join(self, consumer: Consumer, requires_known_member_id: bool = True) -> None:
        self.send(
            consumer,
            Join(
                self.next_reply(),
                consumer.member_id,
                consumer.instance,
                "client",
                "/host",
                SESSION,
                REBALANCE,
                "consumer",
                consumer.protocols,
                requires_known_member_id,
            ),
        )

    def is_delayed(self, consumer: Consumer) -> bool:
        return consumer.open is not None and consumer.open not in self.responded

    @rule(who=WHO)
    def syncs(self, who: int) -> None:
        consumer = self.consumers[who]
        if consumer.wants == "sync" and not self.is_delayed(consumer):
            self.sync(consumer)

    def sync(self, consumer: Consumer) -> None:
        assignments = {member_id: member_id.encode() for member_id in consumer.members}
        self.send(
            consumer,
            Sync(
                self.next_reply(),
                consumer.member_id,
                consumer.generation_id,
                consumer.instance,
                assignments if consumer.leads else {},
            ),
        )

    @rule(who=WHO)
    def beats(self, who: int) -> None:
        consumer = self.consumers[who]
        if consumer.member_id and consumer.generation_id >= 0 and not self.is_delayed(consumer):
            self.beat(consumer)

    def beat(self, consumer: Consumer) -> None:
        self.send(
            consumer,
            Heartbeat(
                self.next_reply(), consumer.member_id, consumer.generation_id, consumer.instance
            ),
        )

    @rule(who=WHO)
    def leaves(self, who: int) -> None:
        consumer = self.consumers[who]
        if consumer.member_id and not self.is_delayed(consumer):
            self.send(
                consumer, Leave(self.next_reply(), ((consumer.member_id, consumer.instance),))
            )

    @rule(who=WHO)
    def crashes(self, who: int) -> None:
        consumer = self.consumers[who]
        consumer.open, consumer.member_id, consumer.wants = None, "", "join"
        consumer.generation_id = -1

    @rule(seconds=st.sampled_from([0.5, 2.0, 5.0, 12.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := self.group.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.take(self.group.advance(self.now))
        self.now = end

    @precondition(lambda self: self.group.state is not S.EMPTY)
    @rule()
    def all_behave_and_settle(self) -> None:
        """If all members follow their responses, the group becomes stable with all of them."""
        for consumer in self.consumers:
            consumer.protocols = (("range", b"x"),)
        for _ in range(400):
            for consumer in self.consumers:
                self.behave(consumer)
            self.advance(0.5)
            if self.is_settled():
                break
        assert self.is_settled(), (self.group.state, self.consumers)
        for _ in range(30):  # and stays so: nobody who behaves is expelled
            self.advance(SESSION / 3)
            for consumer in self.consumers:
                self.beat(consumer)
            assert self.is_settled()

    def is_settled(self) -> bool:
        return (
            self.group.state is S.STABLE
            and len(self.group.members) == len(self.consumers)
            and all(consumer.synced and consumer.wants == "beat" for consumer in self.consumers)
            and len({consumer.generation_id for consumer in self.consumers}) == 1
        )

    def behave(self, consumer: Consumer) -> None:
        if self.is_delayed(consumer):
            return
        if consumer.wants == "join":
            self.join(consumer)
        elif consumer.wants == "sync":
            self.sync(consumer)
        else:
            self.beat(consumer)

    # -- the laws

    @invariant()
    def a_generation_has_one_leader_and_one_protocol(self) -> None:
        for reported in self.generations.values():
            assert len(reported.protocols) == 1
            assert len(reported.leaders) <= 1 or "static" in "".join(reported.leaders)

    @invariant()
    def what_waits_has_an_end(self) -> None:
        delayed = [member for member in self.group.members if member.delayed is not None]
        if delayed:
            assert self.group.next_deadline() is not None
            assert self.group.state in (S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE)

    @invariant()
    def states_have_the_members_they_should(self) -> None:
        if self.group.state is S.EMPTY:
            assert len(self.group.members) == 0
        if self.group.state in (S.STABLE, S.COMPLETING_REBALANCE):
            assert self.group.members.leader in self.group.members


GroupMachine.TestCase.settings = settings(max_examples=examples(70), stateful_step_count=40)
TestGroup = pytest.mark.fuzz(GroupMachine.TestCase)
