"""A share partition under any order of deliveries, acknowledgements, time, failures and restarts.

Invariants: a record has one member at a time, and is acknowledged once, also over restarts; nobody
gets it again after that. None is delivered more often than the limit between two restarts, and in
the end each is acknowledged, rejected, or was delivered as often as the limit.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkawire.broker.share.acquiring import LogBatch, Wanted
from kafkawire.broker.share.config import ShareConfig
from kafkawire.broker.share.partition import AcknowledgementBatch, SharePartition, Write
from kafkawire.broker.share.states import AcknowledgeType, RecordState
from kafkawire.broker.share_coordinator.state import ShareState, StateUpdate
from kafkawire.protocol import ErrorCode
from tests.fuzzing import examples

LIMIT = 3
LOCK = 10.0
MEMBERS = st.sampled_from("abc")
TYPES = st.sampled_from(list(AcknowledgeType))
CONFIG = ShareConfig(lock_duration=LOCK, delivery_limit=LIMIT, max_locks=12)


class SharePartitionMachine(RuleBasedStateMachine):
    """Three members, a log that grows, and a share coordinator that may be away."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.log: list[LogBatch] = []
        self.stored = ShareState(start_offset=0)
        self.writes: list[tuple[Write, list[tuple[int, AcknowledgeType]]]] = []
        self.share = self.loaded()
        self.held: dict[int, tuple[str, float]] = {}
        """Offset -> who has it, until when."""
        self.done: Counter[int] = Counter()
        self.rejected: set[int] = set()
        self.deliveries: Counter[int] = Counter()
        self.exhausted: set[int] = set()
        """What was delivered as often as the limit, perhaps by a former leader."""

    def loaded(self) -> SharePartition:
        state = self.stored
        return SharePartition(0, 0, state.start_offset, state.batches, lambda: CONFIG)

    @property
    def end(self) -> int:
        return self.log[-1].last + 1 if self.log else 0

    @rule(size=st.integers(1, 5))
    def produce(self, size: int) -> None:
        if self.end < 40:
            self.log.append(LogBatch(self.end, self.end + size - 1))

    @rule(
        member=MEMBERS,
        most=st.integers(1, 8),
        size=st.integers(1, 4),
        strict=st.booleans(),
        batches=st.integers(1, 3),
    )
    def fetch(self, member: str, most: int, size: int, strict: bool, batches: int) -> None:
        offset = self.share.next_fetch_offset()
        read = [each for each in self.log if each.last >= offset][:batches]
        if not read or not self.share.can_acquire:
            return
        wanted = Wanted(member, most, size, strict)
        acquired = self.share.acquire(wanted, offset, read, self.now)
        count = 0
        for first, last, deliveries in acquired:
            assert 1 <= deliveries <= LIMIT
            for at in range(first, last + 1):
                count += 1
                owner = self.held.get(at)
                assert owner is None or owner[1] <= self.now, "two members have it"
                assert not self.done[at]
                assert at not in self.rejected
                self.held[at] = member, self.now + LOCK
                self.deliveries[at] += 1
                assert self.deliveries[at] <= LIMIT
                if self.deliveries[at] == LIMIT:
                    self.exhausted.add(at)
        assert count <= most or not strict

    @rule(member=MEMBERS, first=st.integers(0, 40), kinds=st.lists(TYPES, min_size=1, max_size=5))
    def acknowledge(self, member: str, first: int, kinds: list[AcknowledgeType]) -> None:
        batch = AcknowledgementBatch(first, first + len(kinds) - 1, tuple(kinds))
        offsets = [at for at in range(first, batch.last + 1) if at >= self.share.start_offset]
        write = self.share.acknowledge(member, [batch], self.now)
        owned = all(self.held.get(at, ("", 0.0))[0] == member for at in offsets)
        if isinstance(write, ErrorCode):
            assert not owned or not offsets
            return
        assert owned
        done: list[tuple[int, AcknowledgeType]] = []
        for at, kind in zip(range(first, batch.last + 1), kinds, strict=True):
            if at not in offsets:
                continue
            if kind is AcknowledgeType.RENEW:
                self.held[at] = member, self.now + LOCK
            else:
                del self.held[at]
                done.append((at, kind))
        if write.batches:
            self.writes.append((write, done))

    @rule(stores=st.booleans())
    def settle(self, stores: bool) -> None:
        """The share coordinator stores the oldest write, or fails."""
        if not self.writes:
            return
        write, done = self.writes.pop(0)
        self.share.written(write, stores)
        if stores:
            self.store(write, done)

    def store(self, write: Write, done: list[tuple[int, AcknowledgeType]]) -> None:
        update = StateUpdate(0, write.start_offset, write.complete_count, write.batches)
        self.stored = self.stored.updated(update)
        for at, kind in done:
            if kind is AcknowledgeType.ACCEPT:
                self.done[at] += 1
            elif kind is not AcknowledgeType.RELEASE:
                self.rejected.add(at)

    def undone(self) -> None:
        """What could not be stored is as before: whoever had records has them still."""
        for run in self.share.in_flight:
            for at in range(run.first, run.last + 1):
                if run.is_acquired:
                    self.held.setdefault(at, (run.member_id, run.lock_ends))

    @rule(seconds=st.sampled_from([1.0, 4.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.undone()
        write = self.share.advance(self.now)
        for first, last, _, _ in write.batches:
            for at in range(first, last + 1):
                assert self.held.pop(at)[1] <= self.now
        if write.batches:
            self.writes.append((write, []))

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        self.undone()
        write = self.share.release(member)
        released = [at for b in write.batches for at in range(b.first_offset, b.last_offset + 1)]
        for at in released:
            assert self.held.pop(at)[0] == member
        if write.batches:
            self.writes.append((write, [(at, AcknowledgeType.RELEASE) for at in released]))

    @rule(stored=st.integers(0, 3))
    def restart(self, stored: int) -> None:
        """Another leader begins with what is stored, of the writes in flight perhaps some."""
        for write, done in self.writes[:stored]:
            self.store(write, done)
        self.writes.clear()
        self.held.clear()
        self.share = self.loaded()
        self.deliveries = Counter(
            {
                at: batch.delivery_count
                for batch in self.stored.batches
                for at in range(batch.first_offset, batch.last_offset + 1)
            }
        )

    @invariant()
    def runs_are_in_order_and_what_is_done_stays_so(self) -> None:
        in_flight = self.share.in_flight
        expected = in_flight.start
        for run in in_flight:
            assert run.first >= expected
            assert run.last >= run.first
            expected = run.last + 1
        assert in_flight.next_offset >= expected
        assert 0 <= in_flight.complete_count <= in_flight.next_offset - in_flight.start
        assert all(count == 1 for count in self.done.values())

    @invariant()
    def undo(self) -> None:
        self.undone()

    def teardown(self) -> None:
        """Once all acknowledge and nothing fails, every record is done."""
        for _ in range(200):
            while self.writes:
                self.settle(stores=True)
            self.undone()
            if self.share.start_offset >= self.end:
                break
            for at, (member, _) in list(self.held.items()):
                self.acknowledge(member, at, [AcknowledgeType.ACCEPT])
            while self.writes:
                self.settle(stores=True)
            self.fetch("a", 8, 4, False, 3)
        assert self.share.start_offset == self.end
        archived = {at for at in range(self.end) if not self.done[at] and at not in self.rejected}
        assert archived <= self.exhausted
        super().teardown()


def test_what_is_stored_knows_no_acquired_records() -> None:
    share = SharePartition(0, 0, 0, (), lambda: CONFIG)
    share.acquire(Wanted("a", 5, 5, False), 0, [LogBatch(0, 4)], 0.0)
    write = share.acknowledge("a", [AcknowledgementBatch(1, 2, (AcknowledgeType.ACCEPT,))], 1.0)
    assert isinstance(write, Write)
    assert [each.delivery_state for each in write.batches] == [RecordState.ACKNOWLEDGED]


TestSharePartition = SharePartitionMachine.TestCase
TestSharePartition.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None
)
