"""Fetch sessions against a broker's side of them, as KIP-227 describes it: both always agree."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkawire.client.consumer import ConsumerConfig, TopicPartition
from kafkawire.client.consumer.fetch.sessions import (
    FINAL_EPOCH,
    MAX_EPOCH,
    NO_ID,
    FetchSession,
    PartitionFetch,
    fetch,
)
from kafkawire.messages.fetch_request import FetchRequest
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.protocol.error_code import ErrorCode
from tests.fuzzing import examples

IDS = {"a": b"a" * 16, "b": b"b" * 16}
ANEW = b"n" * 16
Key = tuple[str, bytes, int]
WANTED = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 3)), st.integers(0, 5)
)


class Peer:
    """A broker's sessions: what it would fetch for a request, or why not."""

    def __init__(self) -> None:
        self.sessions: dict[int, tuple[int, dict[Key, int]]] = {}
        self.made = 0

    def take(self, message: FetchRequest, by_id: bool) -> tuple[ErrorCode, int, dict[Key, int]]:
        listed = {
            ("" if by_id else topic.topic, topic.topic_id if by_id else NO_ID, each.partition): (
                each.fetch_offset
            )
            for topic in message.topics
            for each in topic.partitions
        }
        if message.session_epoch in (0, FINAL_EPOCH):
            self.sessions.pop(message.session_id, None)
            if message.session_epoch == FINAL_EPOCH:
                return ErrorCode.NONE, 0, listed
            self.made += 1
            self.sessions[self.made] = 1, listed
            return ErrorCode.NONE, self.made, listed
        if message.session_id not in self.sessions:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, {}
        epoch, held = self.sessions[message.session_id]
        if epoch != message.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, {}
        for topic in message.forgotten_topics_data:
            for number in topic.partitions:
                held.pop(("" if by_id else topic.topic, topic.topic_id if by_id else NO_ID, number))
        held |= listed
        self.sessions[message.session_id] = epoch % MAX_EPOCH + 1, held
        return ErrorCode.NONE, message.session_id, held


class Agreeing(RuleBasedStateMachine):
    """Requests that arrive, or do not, or whose answers do not; brokers that forget."""

    def __init__(self) -> None:
        super().__init__()
        self.session, self.peer = FetchSession(), Peer()
        self.ids, self.anew = dict(IDS), ANEW
        self.wrong = 0

    def exchange(self, offsets: dict[TopicPartition, int], by_id: bool) -> tuple[object, ...]:
        wanted = {
            each: PartitionFetch(self.ids[each.topic] if by_id else NO_ID, offset)
            for each, offset in offsets.items()
        }
        request = self.session.next(wanted)
        used = self.session.by_id
        message = fetch(ConsumerConfig(), request, by_id=used).build(18 if used else 12)
        assert isinstance(message, FetchRequest)
        # what is written can be read in that version
        version = 18 if used else 12
        message = FetchRequest.decode(message.encode(version), version)
        expected = {
            ("" if used else each.topic, what.topic_id if used else NO_ID, each.partition): (
                what.fetch_offset
            )
            for each, what in wanted.items()
        }
        return message, used, expected

    @rule(offsets=WANTED, by_id=st.booleans())
    def arrives(self, offsets: dict[TopicPartition, int], by_id: bool) -> None:
        message, used, expected = self.exchange(offsets, by_id)
        assert isinstance(message, FetchRequest)
        code, session_id, fetched = self.peer.take(message, bool(used))
        if code == ErrorCode.NONE:
            self.wrong = 0
            assert fetched == expected
            self.session.on_response(FetchResponse(session_id=session_id))
        else:
            self.wrong += 1
            self.session.on_error(code)

    @rule(offsets=WANTED, by_id=st.booleans())
    def answer_is_lost(self, offsets: dict[TopicPartition, int], by_id: bool) -> None:
        message, used, _ = self.exchange(offsets, by_id)
        assert isinstance(message, FetchRequest)
        self.peer.take(message, bool(used))
        self.session.on_no_response()

    @rule(offsets=WANTED, by_id=st.booleans())
    def request_is_lost(self, offsets: dict[TopicPartition, int], by_id: bool) -> None:
        self.exchange(offsets, by_id)
        self.session.on_no_response()

    @rule()
    def broker_forgets(self) -> None:
        self.peer.sessions.clear()

    @rule()
    def broker_is_another(self) -> None:
        self.peer.sessions = {
            key: (epoch + 5, held) for key, (epoch, held) in self.peer.sessions.items()
        }

    @rule()
    def topic_is_made_anew(self) -> None:
        self.ids["a"], self.anew = self.anew, self.ids["a"]

    @rule()
    def epochs_run_out(self) -> None:
        if self.session.epoch > 0 and self.session.session_id in self.peer.sessions:
            _, held = self.peer.sessions[self.session.session_id]
            self.peer.sessions[self.session.session_id] = MAX_EPOCH, held
            self.session.epoch = MAX_EPOCH

    @invariant()
    def one_refusal_is_the_last(self) -> None:
        assert self.wrong <= 1


TestAgreeing = pytest.mark.fuzz(Agreeing.TestCase)
TestAgreeing.settings = settings(max_examples=examples(70), stateful_step_count=30, deadline=None)


def test_a_topic_that_is_made_anew_is_forgotten_by_its_old_id() -> None:
    session, a = FetchSession(), TopicPartition("a", 0)
    session.next({a: PartitionFetch(IDS["a"], 5)})
    session.on_response(FetchResponse(session_id=3))
    request = session.next({a: PartitionFetch(ANEW, 0)})
    assert request.to_send == {a: PartitionFetch(ANEW, 0)}
    assert request.to_forget == {a: IDS["a"]}


def test_before_sessions_everything_is_said_every_time() -> None:
    session = FetchSession()
    a, b = TopicPartition("a", 0), TopicPartition("b", 1)
    session.next({a: PartitionFetch(NO_ID, 1)})
    session.on_response(FetchResponse(session_id=0))
    request = session.next({a: PartitionFetch(NO_ID, 1), b: PartitionFetch(NO_ID, 2)})
    body = fetch(ConsumerConfig(), request, by_id=False)
    for version in range(body.lowest, body.highest + 1):
        message = body.build(version)
        assert isinstance(message, FetchRequest)
        assert FetchRequest.decode(message.encode(version), version)
        assert [topic.topic for topic in message.topics] == ["a", "b"]


def test_the_end_of_a_session() -> None:
    session = FetchSession()
    assert session.close() is None
    session.next({TopicPartition("a", 0): PartitionFetch(IDS["a"], 1)})
    session.on_response(FetchResponse(session_id=5))
    request = session.close()
    assert request is not None
    message = fetch(ConsumerConfig(), request, by_id=True).build(17)
    assert isinstance(message, FetchRequest)
    assert (message.session_id, message.session_epoch, message.topics) == (5, FINAL_EPOCH, [])
