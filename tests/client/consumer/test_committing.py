"""Commits: one at a time, in order, no older one after a newer one."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.consumer import (
    CommitFailed,
    CommitKind,
    ConsumerConfig,
    LookupFailed,
    OffsetAndMetadata,
    TopicPartition,
)
from kafkawire.client.consumer.group.requests import Identity
from kafkawire.client.consumer.offsets.committed import (
    CommittedFetched,
    CommittedOffsets,
    FetchCommitted,
)
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
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.protocol.error_code import ErrorCode

E = ErrorCode
WHERE = TopicPartition("orders", 0)
ME = Identity(3, "me")
LATER = Identity(4, "me")


class Committer:
    """Commits, with the test as coordinator. stored: the offsets it has stored, in order."""

    def __init__(self) -> None:
        self.committing = Committing(
            ConsumerConfig(group_id="g"), owner="consumer", rng=Random(0).random
        )
        self.now = 0.0
        self.requests: list[SendRequest] = []
        self.done: list[Committed] = []
        self.effects: list[object] = []
        self.stored: list[int] = []

    def commit(self, key: int, kind: CommitKind, me: Identity = ME, deadline: float = 60.0) -> None:
        offsets = {WHERE: OffsetAndMetadata(key)}
        event = CommitOffsets(key, offsets, me, kind, self.now + deadline)
        self._collect(self.committing.handle(event, self.now))

    def respond(self, code: ErrorCode = E.NONE, *, stores: bool | None = None) -> None:
        request = self.requests.pop(0)
        if stores if stores is not None else code == E.NONE:
            self.stored.append(self.committed_offset(request))
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
        topic = OffsetCommitResponseTopic(name="orders", partitions=[partition])
        self._collect(
            self.committing.handle(
                ResponseReceived(request, 9, OffsetCommitResponse(topics=[topic])), self.now
            )
        )

    def disconnect(self, *, stores: bool) -> None:
        request = self.requests.pop(0)
        if stores:
            self.stored.append(self.committed_offset(request))
        self._collect(
            self.committing.handle(NoResponse(request, Reason.DISCONNECTED, True), self.now)
        )

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self._collect(self.committing.advance(self.now))

    def committed_offset(self, request: SendRequest) -> int:
        message = request.body.build(9)
        assert isinstance(message, OffsetCommitRequest)
        return message.topics[0].partitions[0].committed_offset

    def _collect(self, effects: Iterable[object]) -> None:
        self.requests += [each for each in effects if isinstance(each, SendRequest)]
        self.done += [each for each in effects if isinstance(each, Committed)]
        self.effects += [each for each in effects if not isinstance(each, SendRequest | Committed)]

    @property
    def results(self) -> list[tuple[object, int]]:
        return [(each.commit.key, each.error.code if each.error else 0) for each in self.done]


def test_queued_commits_are_sent_together_and_completed_in_order() -> None:
    committer = Committer()
    for key in (1, 2, 3):
        committer.commit(key, CommitKind.ASYNC)
    assert [committer.committed_offset(each) for each in committer.requests] == [1]
    committer.respond()
    assert [committer.committed_offset(each) for each in committer.requests] == [3]
    committer.respond()
    assert committer.results == [(1, 0), (2, 0), (3, 0)]


def test_a_commit_has_the_identity_of_its_caller() -> None:
    committer = Committer()
    committer.commit(1, CommitKind.ASYNC, ME)
    committer.commit(2, CommitKind.ASYNC, ME)
    committer.commit(3, CommitKind.ASYNC, LATER)
    committer.respond()
    assert committer.committed_offset(committer.requests[0]) == 2
    committer.respond(E.ILLEGAL_GENERATION)
    assert CommitRefused(E.ILLEGAL_GENERATION, ME) in committer.effects
    message = committer.requests[0].body.build(9)
    assert isinstance(message, OffsetCommitRequest)
    assert message.generation_id_or_member_epoch == 4


@pytest.mark.parametrize(
    "code", [E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.UNKNOWN_TOPIC_OR_PARTITION]
)
def test_sync_commits_are_retried_and_async_are_not(code: ErrorCode) -> None:
    committer = Committer()
    committer.commit(1, CommitKind.ASYNC)
    committer.respond(code)
    assert committer.results == [(1, code)]
    committer.commit(2, CommitKind.SYNC)
    committer.respond(code)
    assert not committer.requests
    committer.pass_time(2.0)
    committer.respond()
    assert committer.results == [(1, code), (2, 0)]
    forgotten = any(isinstance(each, ForgetCoordinator) for each in committer.effects)
    assert forgotten == (code == E.NOT_COORDINATOR)


def test_a_sync_commit_is_retried_before_later_commits() -> None:
    """A newer commit is not in the same request, so that the older one can be retried."""
    committer = Committer()
    committer.commit(1, CommitKind.ASYNC)
    committer.commit(2, CommitKind.SYNC)
    committer.commit(3, CommitKind.ASYNC)
    committer.respond()
    assert committer.committed_offset(committer.requests[0]) == 2
    committer.respond(E.COORDINATOR_LOAD_IN_PROGRESS)
    assert not committer.requests, "newer commits wait too"
    committer.pass_time(2.0)
    committer.respond()
    committer.respond()
    assert committer.stored == [1, 2, 3]
    assert committer.results == [(1, 0), (2, 0), (3, 0)]


def test_a_sync_commit_fails_at_its_deadline() -> None:
    committer = Committer()
    committer.commit(1, CommitKind.SYNC, deadline=1.0)
    while not committer.done:
        if committer.requests:
            assert committer.requests[0].timeout_s <= 1.0
            committer.respond(E.COORDINATOR_LOAD_IN_PROGRESS)
        committer.pass_time(0.05)
    assert committer.now <= 1.0
    (ended,) = committer.done
    assert isinstance(ended.error, CommitFailed)
    assert ended.error.code == E.COORDINATOR_LOAD_IN_PROGRESS


KINDS = st.sampled_from(CommitKind)
STEPS = st.lists(st.sampled_from(["sync", "async", "ok", "late", "bad", "lost", "stored", "time"]))


@given(steps=STEPS)
def test_no_older_commit_after_a_newer_one(steps: list[str]) -> None:
    """Whatever the coordinator does, even if it stores a commit without responding."""
    committer, count = Committer(), 0
    for step in [*steps, *["ok", "time"] * (len(steps) + 1)]:
        if step in ("sync", "async"):
            count += 1
            committer.commit(count, CommitKind[step.upper()])
        elif step == "time":
            committer.pass_time(5.0)
        elif committer.requests:
            assert len(committer.requests) == 1
            match step:
                case "ok":
                    committer.respond()
                case "late":
                    committer.respond(E.COORDINATOR_LOAD_IN_PROGRESS)
                case "bad":
                    committer.respond(E.INVALID_COMMIT_OFFSET_SIZE)
                case "lost":
                    committer.disconnect(stores=False)
                case "stored":
                    committer.disconnect(stores=True)
    assert committer.stored == sorted(committer.stored)
    assert [key for key, _ in committer.results] == list(range(1, count + 1))


def test_a_response_without_the_group_is_an_error_not_a_group_without_offsets() -> None:
    lookups = CommittedOffsets(ConsumerConfig(group_id="g"), owner="consumer", rng=Random(0).random)
    (request,) = lookups.handle(FetchCommitted("k", (WHERE,)), 0.0)
    assert isinstance(request, SendRequest)
    response = ResponseReceived(request, 9, OffsetFetchResponse(groups=[]))
    (fetched,) = lookups.handle(response, 0.0)
    assert isinstance(fetched, CommittedFetched)
    assert fetched.offsets == {}
    assert isinstance(fetched.error, LookupFailed)
    assert fetched.error.code == E.UNKNOWN_SERVER_ERROR


def before_a_revocation(committer: Committer) -> None:
    """Start the commit that comes before a revocation, as a member of a consumer group."""
    committer.committing.on_member_epoch(ME)
    event = CommitOffsets(1, {WHERE: OffsetAndMetadata(1)}, ME, CommitKind.SYNC, 60.0, True)
    committer._collect(committer.committing.handle(event, committer.now))


def epoch_of(request: SendRequest) -> int:
    message = request.body.build(9)
    assert isinstance(message, OffsetCommitRequest)
    return message.generation_id_or_member_epoch


def test_a_commit_before_a_revocation_follows_the_member_epoch() -> None:
    committer = Committer()
    before_a_revocation(committer)
    committer.respond(E.STALE_MEMBER_EPOCH)
    committer.committing.on_member_epoch(LATER)
    committer.pass_time(0.2)
    assert epoch_of(committer.requests[0]) == LATER.generation_id
    committer.respond()
    assert committer.results == [(1, 0)]


@pytest.mark.parametrize("in_flight", [True, False])
def test_a_commit_does_not_follow_a_member_that_was_removed_and_joined_again(
    in_flight: bool,
) -> None:
    """Its partitions may be assigned to others, whose offsets it would set back."""
    committer = Committer()
    before_a_revocation(committer)
    if not in_flight:
        committer.respond(E.STALE_MEMBER_EPOCH)
    committer.committing.on_member_epoch(Identity())
    committer.committing.on_member_epoch(LATER)
    committer.pass_time(0.2)
    assert epoch_of(committer.requests[0]) == ME.generation_id
    committer.respond(E.STALE_MEMBER_EPOCH)
    assert committer.results == [(1, E.STALE_MEMBER_EPOCH)]
