"""Commits: one at a time, in order, none older behind a newer one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.consumer import (
    CommitFailed,
    CommitKind,
    ConsumerConfig,
    OffsetAndMetadata,
    TopicPartition,
)
from kafkawire.client.consumer.group.requests import Identity
from kafkawire.client.consumer.offsets.committing import (
    CommitOffsets,
    CommitRefused,
    Committed,
    Committing,
)
from kafkawire.client.requests import (
    ForgetCoordinator,
    NoResponse,
    Reason,
    ResponseReceived,
    SendRequest,
)
from kafkawire.messages.offset_commit_request import OffsetCommitRequest
from kafkawire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkawire.protocol.error_code import ErrorCode

E = ErrorCode
WHERE = TopicPartition("orders", 0)
ME = Identity(3, "me")
LATER = Identity(4, "me")


class Desk:
    """Commits, and a coordinator that the test plays; stored: what it has taken, in order."""

    def __init__(self) -> None:
        self.it = Committing(ConsumerConfig(group_id="g"), owner="consumer", rng=Random(0).random)
        self.now = 0.0
        self.asks: list[SendRequest] = []
        self.done: list[Committed] = []
        self.said: list[object] = []
        self.stored: list[int] = []

    def commit(self, key: int, kind: CommitKind, me: Identity = ME, deadline: float = 60.0) -> None:
        offsets = {WHERE: OffsetAndMetadata(key)}
        event = CommitOffsets(key, offsets, me, kind, self.now + deadline)
        self.hear(self.it.handle(event, self.now))

    def answer(self, code: ErrorCode = E.NONE, *, stores: bool | None = None) -> None:
        ask = self.asks.pop(0)
        if stores if stores is not None else code == E.NONE:
            self.stored.append(self.asked(ask))
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
        topic = OffsetCommitResponseTopic(name="orders", partitions=[partition])
        self.hear(
            self.it.handle(ResponseReceived(ask, 9, OffsetCommitResponse(topics=[topic])), self.now)
        )

    def lose(self, *, stores: bool) -> None:
        ask = self.asks.pop(0)
        if stores:
            self.stored.append(self.asked(ask))
        self.hear(self.it.handle(NoResponse(ask, Reason.DISCONNECTED, True), self.now))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.hear(self.it.advance(self.now))

    def asked(self, ask: SendRequest) -> int:
        message = ask.body.build(9)
        assert isinstance(message, OffsetCommitRequest)
        return message.topics[0].partitions[0].committed_offset

    def hear(self, effects: list[object]) -> None:
        self.asks += [each for each in effects if isinstance(each, SendRequest)]
        self.done += [each for each in effects if isinstance(each, Committed)]
        self.said += [each for each in effects if not isinstance(each, SendRequest | Committed)]

    @property
    def results(self) -> list[tuple[object, int]]:
        return [(each.commit.key, each.error.code if each.error else 0) for each in self.done]


def test_what_waits_goes_together_and_each_gets_its_result_in_order() -> None:
    desk = Desk()
    for key in (1, 2, 3):
        desk.commit(key, CommitKind.ASYNC)
    assert [desk.asked(each) for each in desk.asks] == [1]
    desk.answer()
    assert [desk.asked(each) for each in desk.asks] == [3]
    desk.answer()
    assert desk.results == [(1, 0), (2, 0), (3, 0)]


def test_a_commit_is_made_as_who_asked_for_it() -> None:
    desk = Desk()
    desk.commit(1, CommitKind.ASYNC, ME)
    desk.commit(2, CommitKind.ASYNC, ME)
    desk.commit(3, CommitKind.ASYNC, LATER)
    desk.answer()
    assert desk.asked(desk.asks[0]) == 2
    desk.answer(E.ILLEGAL_GENERATION)
    assert CommitRefused(E.ILLEGAL_GENERATION, ME) in desk.said
    message = desk.asks[0].body.build(9)
    assert isinstance(message, OffsetCommitRequest)
    assert message.generation_id_or_member_epoch == 4


@pytest.mark.parametrize(
    "code", [E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.UNKNOWN_TOPIC_OR_PARTITION]
)
def test_sync_is_tried_again_and_async_is_not(code: ErrorCode) -> None:
    desk = Desk()
    desk.commit(1, CommitKind.ASYNC)
    desk.answer(code)
    assert desk.results == [(1, code)]
    desk.commit(2, CommitKind.SYNC)
    desk.answer(code)
    assert not desk.asks
    desk.pass_time(2.0)
    desk.answer()
    assert desk.results == [(1, code), (2, 0)]
    forgotten = any(isinstance(each, ForgetCoordinator) for each in desk.said)
    assert forgotten == (code == E.NOT_COORDINATOR)


def test_sync_is_tried_again_before_what_was_asked_for_later() -> None:
    """What is newer does not go with it, or there would be nothing to try again."""
    desk = Desk()
    desk.commit(1, CommitKind.ASYNC)
    desk.commit(2, CommitKind.SYNC)
    desk.commit(3, CommitKind.ASYNC)
    desk.answer()
    assert desk.asked(desk.asks[0]) == 2
    desk.answer(E.COORDINATOR_LOAD_IN_PROGRESS)
    assert not desk.asks, "what is newer waits as well"
    desk.pass_time(2.0)
    desk.answer()
    desk.answer()
    assert desk.stored == [1, 2, 3]
    assert desk.results == [(1, 0), (2, 0), (3, 0)]


def test_sync_gives_up_at_its_deadline() -> None:
    desk = Desk()
    desk.commit(1, CommitKind.SYNC, deadline=1.0)
    while not desk.done:
        if desk.asks:
            assert desk.asks[0].timeout_s <= 1.0
            desk.answer(E.COORDINATOR_LOAD_IN_PROGRESS)
        desk.pass_time(0.05)
    assert desk.now <= 1.0
    (ended,) = desk.done
    assert isinstance(ended.error, CommitFailed)
    assert ended.error.code == E.COORDINATOR_LOAD_IN_PROGRESS


KINDS = st.sampled_from(CommitKind)
STEPS = st.lists(st.sampled_from(["sync", "async", "ok", "late", "bad", "lost", "stored", "time"]))


@given(steps=STEPS)
def test_no_older_commit_behind_a_newer_one(steps: list[str]) -> None:
    """Whatever the coordinator does, also if it stored what it did not answer."""
    desk, made = Desk(), 0
    for step in [*steps, *["ok", "time"] * (len(steps) + 1)]:
        if step in ("sync", "async"):
            made += 1
            desk.commit(made, CommitKind[step.upper()])
        elif step == "time":
            desk.pass_time(5.0)
        elif desk.asks:
            assert len(desk.asks) == 1
            match step:
                case "ok":
                    desk.answer()
                case "late":
                    desk.answer(E.COORDINATOR_LOAD_IN_PROGRESS)
                case "bad":
                    desk.answer(E.INVALID_COMMIT_OFFSET_SIZE)
                case "lost":
                    desk.lose(stores=False)
                case "stored":
                    desk.lose(stores=True)
    assert desk.stored == sorted(desk.stored)
    assert [key for key, _ in desk.results] == list(range(1, made + 1))
