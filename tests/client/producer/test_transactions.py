"""Transactions of a producer's machine, as stories with nodes in memory."""

from __future__ import annotations

from copy import copy
from itertools import groupby

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.broker.topics import TRANSACTIONS_TOPIC
from kafkawire.client.config import Setting
from kafkawire.client.group_metadata import ConsumerGroupMetadata
from kafkawire.client.producer import (
    BeginTransaction,
    Cancel,
    CloseProducer,
    Delivered,
    Failed,
    InitTransactions,
    ProducerClosed,
    TransactionDone,
)
from kafkawire.client.producer.transactions.states import TransactionState
from kafkawire.client.requests import Reason
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.api_key import ApiKey as A
from kafkawire.protocol.error_code import ErrorCode
from tests.client.consumer.users import User as Reader

from .transactional import VERSION_1, Stage, abort, commit, offsets

S = TransactionState
RELEASES = [None, VERSION_1]
both = pytest.mark.parametrize("release", RELEASES, ids=["version 2", "version 1"])


@both
def test_what_is_committed_is_there_and_what_is_aborted_is_not(release: str | None) -> None:
    stage = Stage(release)
    user = stage.producer("p")
    for values, end in (((b"a", b"b"), commit), ((b"no",), abort), ((b"c",), commit)):
        user.begin()
        user.send(*values)
        user.flush()
        user.done(end)
    assert stage.committed() == [b"a", b"b", b"c"]


def test_version_2_needs_no_request_to_add_partitions_or_groups() -> None:
    stage = Stage()
    user = stage.producer("p")
    user.begin()
    user.send(b"a")
    user.done(offsets(1))
    user.done(commit)
    explicit = {A.ADD_PARTITIONS_TO_TXN, A.ADD_OFFSETS_TO_TXN}
    assert not explicit.intersection(api for api, _ in stage.requests)
    versions = dict(stage.requests)
    assert versions[A.PRODUCE] >= 12
    assert (versions[A.TXN_OFFSET_COMMIT], versions[A.END_TXN]) == (5, 5)


def test_offsets_name_topics_by_their_ids_once_they_are_known() -> None:
    """Also those of topics that it produces nothing to, and not of one that is deleted."""
    stage = Stage()
    stage.simulation.create("consumed", [[1]])
    user = stage.producer("p")
    for _ in range(2):
        user.begin()
        user.send(b"a")
        user.done(offsets(1, topic="consumed"))
        user.flush()
        user.done(commit)
    versions = [version for api, version in stage.requests if api is A.TXN_OFFSET_COMMIT]
    assert versions[-1] == 6
    stage.simulation.trouble(Fault("TxnOffsetCommit", nth=1, error=ErrorCode.UNKNOWN_TOPIC_ID))
    user.begin()
    user.send(b"a")
    user.done(offsets(2, topic="consumed"))
    user.done(commit)
    again = [version for api, version in stage.requests if api is A.TXN_OFFSET_COMMIT]
    assert again == [*versions, 6, 6]


def test_version_1_adds_each_partition_and_group_once_and_first() -> None:
    stage = Stage(VERSION_1)
    user = stage.producer("p")
    for _ in range(2):
        user.begin()
        for value in (b"a", b"b"):
            user.send(value)
            user.flush()
        user.done(offsets(1))
        user.done(offsets(2))
        user.done(commit)
    one = [
        A.ADD_PARTITIONS_TO_TXN,
        A.PRODUCE,
        A.ADD_OFFSETS_TO_TXN,
        A.TXN_OFFSET_COMMIT,
        A.END_TXN,
    ]
    # one of several in a row may be refused, while the coordinator writes records or markers
    apis = [api for api, _ in groupby(api for api, _ in stage.requests)]
    assert apis == [A.INIT_PRODUCER_ID, *one, *one]
    versions = dict(stage.requests)
    assert versions[A.PRODUCE] < 12
    assert max(versions[A.TXN_OFFSET_COMMIT], versions[A.END_TXN]) < 5


@both
def test_an_empty_transaction_needs_no_coordinator(release: str | None) -> None:
    stage = Stage(release)
    user = stage.producer("p")
    for end in (commit, abort):
        user.begin()
        user.done(end)
    assert [api for api, _ in stage.requests] == [A.INIT_PRODUCER_ID]


@both
def test_a_commit_sends_what_lingers(release: str | None) -> None:
    stage = Stage(release)
    user = stage.producer("p", linger_ms=60_000, delivery_timeout_ms=200_000)
    user.begin()
    [token] = user.send(b"a")
    user.done(commit)
    assert stage.simulation.now < 10
    assert isinstance(user.outcome(token), Delivered)
    assert stage.committed() == [b"a"]


@both
def test_an_abort_discards_what_is_not_sent(release: str | None) -> None:
    stage = Stage(release)
    user = stage.producer("p", linger_ms=60_000, delivery_timeout_ms=200_000)
    user.begin()
    [token] = user.send(b"no")
    [blocked] = user.send(b"no", topic="unknown")
    user.done(abort)
    for each in (token, blocked):
        outcome = user.outcome(each)
        assert isinstance(outcome, Failed)
        assert outcome.failure.reason is Reason.ABORTED
    assert A.PRODUCE not in [api for api, _ in stage.requests]
    user.begin()
    user.send(b"yes")
    user.done(commit)
    assert stage.committed() == [b"yes"]


@both
@pytest.mark.parametrize("end", [commit, abort])
def test_a_zombie_is_fenced(release: str | None, end: object) -> None:
    stage = Stage(release)
    zombie, user = stage.producer("zombie"), stage.producer("p")
    zombie.begin()
    zombie.send(b"zombie")
    zombie.flush()
    user.begin()
    failed = zombie.failed(end)  # type: ignore[arg-type]
    assert failed.fatal
    assert failed.failure.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    again = zombie.failed(BeginTransaction)
    assert again.failure == failed.failure
    user.send(b"new")
    user.done(commit)
    assert stage.committed() == [b"new"]


@both
def test_records_of_a_zombie_are_refused(release: str | None) -> None:
    """A leader only says that the epoch is old (KIP-588): the coordinator that it is fenced."""
    stage = Stage(release)
    zombie, user = stage.producer("zombie"), stage.producer("p")
    zombie.begin()
    zombie.send(b"zombie")
    zombie.flush()
    user.begin()
    user.send(b"new")
    user.done(commit)
    [token] = zombie.send(b"late")
    zombie.flush()
    assert isinstance(zombie.outcome(token), Failed)
    assert zombie.state is S.ABORTABLE_ERROR
    assert zombie.failed(abort).fatal
    assert stage.committed() == [b"new"]


@both
def test_a_producer_that_crashed_amid_a_transaction_begins_anew(release: str | None) -> None:
    stage = Stage(release)
    first = stage.producer("first")
    first.begin()
    first.send(b"lost")
    first.done(offsets(5))
    first.flush()
    first.crash()
    second = stage.producer("second")
    second.begin()
    second.send(b"again")
    second.done(offsets(7))
    second.done(commit)
    assert stage.committed() == [b"again"]


@both
def test_a_transaction_that_takes_too_long_is_the_end(release: str | None) -> None:
    stage = Stage(release)
    user = stage.producer("p", transaction_timeout_ms=5_000)
    user.begin()
    user.send(b"late")
    user.flush()
    stage.simulation.pass_time(20.0)
    failed = user.failed(commit)
    assert failed.fatal
    codes = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert failed.failure.code in (*codes, ErrorCode.INVALID_TXN_STATE)  # of version 2
    assert stage.committed() == []


@both
def test_a_record_that_fails_fails_its_transaction(release: str | None) -> None:
    stage = Stage(release)
    user = stage.producer("p", linger_ms=0)
    user.begin()
    user.send(b"before")
    user.flush()
    refused = ErrorCode.INVALID_RECORD
    fault = Fault("Produce", nth=1, action=Action.ERROR, error=refused)
    stage.simulation.trouble(fault)
    user.send(b"bad")
    failed = user.failed(commit)
    assert (failed.failure.code, failed.fatal) == (refused, False)
    [late] = user.send(b"late")
    assert isinstance(user.outcome(late), Failed)
    assert user.failed(offsets(1)).failure.code is refused
    user.done(abort)
    user.begin()
    user.send(b"after")
    user.done(commit)
    assert stage.committed() == [b"after"]


@both
def test_a_record_without_a_batch_fails_its_transaction(release: str | None) -> None:
    stage = Stage(release)
    user = stage.producer("p", max_request_size=500)
    user.begin()
    user.send(b"good")
    user.send(b"x" * 1000)
    failed = user.failed(commit)
    assert failed.failure.code is ErrorCode.MESSAGE_TOO_LARGE
    user.done(abort)
    assert stage.committed() == []


def test_records_that_were_sent_and_lost_are_followed_by_another_epoch() -> None:
    """Sequence numbers have a gap then: version 1 has the epoch bumped after the abort."""
    stage = Stage(VERSION_1)
    user = stage.producer("p", linger_ms=0)
    user.begin()
    user.send(b"a")
    user.flush()
    assert user.transactions.current is not None
    before = user.transactions.current
    lost = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    stage.simulation.trouble(Fault("Produce", nth=1, action=Action.ERROR, error=lost))
    user.send(b"b")
    user.failed(commit)
    user.done(abort)
    after = user.transactions.current
    assert after.producer_id == before.producer_id
    assert after.producer_epoch == before.producer_epoch + 1
    assert stage.requests[-1][0] is A.INIT_PRODUCER_ID
    user.begin()
    user.send(b"c")
    user.done(commit)
    assert stage.committed() == [b"c"]


@both
def test_a_producer_that_its_coordinator_forgot_recovers_with_another_epoch(
    release: str | None,
) -> None:
    forgotten = {
        "transactional.id.expiration.ms": "60000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    }
    stage = Stage(release, settings=forgotten)
    user = stage.producer("p")
    user.begin()
    user.send(b"a")
    user.done(commit)
    stage.simulation.pass_time(120.0)
    user.begin()
    user.send(b"no")
    failed = user.failed(commit)
    assert failed.failure.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert not failed.fatal
    user.done(abort)
    user.begin()
    user.send(b"b")
    user.done(commit)
    assert stage.committed() == [b"a", b"b"]


def test_version_2_has_an_epoch_for_each_transaction() -> None:
    stage = Stage()
    user = stage.producer("p")
    epochs = []
    for end in (commit, abort, commit):
        user.begin()
        user.send(b"a")
        user.flush()
        user.done(end)
        assert user.transactions.current is not None
        epochs.append(user.transactions.current.producer_epoch)
    assert epochs == [1, 2, 3]


def test_the_transaction_after_an_upgrade_has_version_2_and_another_epoch() -> None:
    stage = Stage()
    user = stage.producer("p")
    user.done(InitTransactions)
    user.transactions.version = 1  # as before the cluster finalized version 2
    user.begin()
    user.send(b"a")
    user.done(commit)
    assert [each for each in stage.requests if each[0] is A.END_TXN] == [(A.END_TXN, 4)]
    assert stage.requests[-1][0] is A.INIT_PRODUCER_ID
    assert user.transactions.current is not None
    assert user.transactions.current.producer_epoch == 1
    user.begin()
    user.send(b"b")
    user.done(commit)
    assert stage.requests[-1] == (A.END_TXN, 5)
    assert stage.committed() == [b"a", b"b"]


@both
@pytest.mark.parametrize(
    "fault",
    [
        Fault("EndTxn", nth=1, action=Action.DISCONNECT, carried_out=True),
        Fault("EndTxn", nth=1, action=Action.DISCONNECT),
        Fault("EndTxn", nth=1, error=ErrorCode.NOT_COORDINATOR),
        Fault("EndTxn", nth=1, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        Fault("AddPartitionsToTxn", nth=1, action=Action.DISCONNECT, carried_out=True),
        Fault("TxnOffsetCommit", nth=1, action=Action.DISCONNECT, carried_out=True),
        Fault("InitProducerId", nth=1, action=Action.DISCONNECT, carried_out=True),
        Fault("Produce", nth=1, action=Action.DISCONNECT, carried_out=True),
    ],
    ids=repr,
)
def test_a_response_that_is_lost_changes_nothing(release: str | None, fault: Fault) -> None:
    stage = Stage(release)
    stage.simulation.trouble(copy(fault))  # which counts
    user = stage.producer("p")
    for values, end in (((b"a",), commit), ((b"no",), abort), ((b"b",), commit)):
        user.begin()
        user.send(*values)
        user.done(offsets(len(values)))
        user.flush()
        user.done(end)
    assert stage.committed() == [b"a", b"b"]


@both
def test_a_commit_is_repeated_while_its_coordinator_moves(release: str | None) -> None:
    stage = Stage(release, brokers=3)
    user = stage.producer("p", request_timeout_ms=2_000)
    user.begin()
    user.send(b"a")
    user.flush()
    where = stage.simulation.brokers.partition(TRANSACTIONS_TOPIC, 0)
    assert where is not None
    coordinator = where.leader
    token = user.give(commit)
    stage.simulation.stop(coordinator)
    stage.simulation.run(lambda: user.result(token) is not None)
    assert user.result(token) == TransactionDone(token)
    moved = stage.simulation.brokers.partition(TRANSACTIONS_TOPIC, 0)
    assert moved is not None
    assert moved.leader != coordinator
    user.begin()
    user.send(b"b")
    user.done(commit)
    stage.simulation.start(coordinator)
    stage.simulation.run(lambda: stage.committed() == [b"a", b"b"])


def test_a_member_that_lost_its_partitions_commits_nothing() -> None:
    """KIP-447: the group's coordinator refuses, and the transaction can only be aborted."""
    stage = Stage()
    user = stage.producer("p")
    user.begin()
    user.send(b"no")
    failed = user.failed(offsets(1, ConsumerGroupMetadata("g", 3, "gone")))
    assert failed.failure.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    assert not failed.fatal
    assert not user.failed(commit).fatal
    user.done(abort)
    assert stage.committed() == []


def test_a_member_that_was_expelled_still_names_its_generation() -> None:
    """With none, the coordinator would accept offsets of partitions that others have now."""
    stage = Stage()
    user = stage.producer("p")
    reading: dict[str, Setting] = {"group.id": "g", "max.poll.interval.ms": 7_000}
    reader = Reader(stage.simulation, "c", {**reading, "session.timeout.ms": 6_000})
    reader.subscribe("t")
    stage.simulation.run(lambda: bool(reader.assignment))
    member = reader.machine.group_metadata
    assert member.names_a_member
    reader.stop()
    stage.simulation.run(lambda: not reader.machine.membership.in_group)
    assert reader.machine.group_metadata == member
    user.begin()
    failed = user.failed(offsets(1, reader.machine.group_metadata))
    assert failed.failure.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert not failed.fatal


def test_a_call_that_nobody_waits_for_goes_on_and_the_next_one_has_its_result() -> None:
    stage = Stage()
    user = stage.producer("p")
    for end in (commit, abort):
        user.begin()
        user.send(b"v")
        user.flush()
        token = user.give(end)
        stage.simulation.send_event("p", Cancel(token))
        joined = user.give(end)
        stage.simulation.run(lambda t=joined: user.result(t) is not None)  # type: ignore[misc]
        user.begin()
        user.send(b"w")
        user.flush()
        token = user.give(end)
        stage.simulation.send_event("p", Cancel(token))
        stage.simulation.pass_time(1.0)
        assert user.state is S.READY
        user.done(end)  # that has its result already
        with pytest.raises(LocalProtocolError):
            user.give(end)
    assert stage.committed() == [b"v", b"w"]


def test_a_result_that_did_not_reach_its_caller_is_that_of_the_next_call() -> None:
    stage = Stage()
    user = stage.producer("p")
    for end in (commit, abort):
        user.begin()
        user.send(b"v")
        user.flush()
        token = user.give(end)
        stage.simulation.run(lambda t=token: user.result(t) is not None)  # type: ignore[misc]
        stage.simulation.send_event("p", Cancel(token))
        user.done(end)
        with pytest.raises(LocalProtocolError):
            user.give(end)
    user.begin()
    stage.simulation.send_event("p", Cancel(token))  # too late: another transaction is open
    user.send(b"w")
    user.done(commit)
    assert stage.committed() == [b"v", b"w"]


def test_a_close_aborts_the_transaction_that_is_open() -> None:
    stage = Stage()
    user = stage.producer("p", linger_ms=1_000)
    user.begin()
    user.send(b"sent")
    user.flush()
    user.send(b"lingers")
    stage.simulation.send_event("p", CloseProducer())
    stage.simulation.run(lambda: ProducerClosed() in user.news)
    assert A.END_TXN in [api for api, _ in stage.requests]
    other = stage.producer("q", "y")
    other.begin()
    other.send(b"other")
    other.done(commit)
    assert stage.committed() == [b"other"]


def test_records_are_sent_in_transactions_only() -> None:
    stage = Stage()
    user = stage.producer("p")
    with pytest.raises(LocalProtocolError, match="Uninitialized"):
        user.send(b"a")
    user.done(InitTransactions)
    with pytest.raises(LocalProtocolError, match="Ready"):
        user.send(b"a")
    user.begin()
    user.send(b"a")
    user.give(commit)
    with pytest.raises(LocalProtocolError, match="Committing"):
        user.send(b"b")
    assert not user.machine.join(1, "t", 0, None, b"b", 0)


def test_calls_about_transactions_need_a_transactional_id() -> None:
    stage = Stage()
    user = stage.producer("p")
    user.machine.transactions = None
    with pytest.raises(LocalProtocolError, match=r"transactional\.id"):
        stage.simulation.send_event("p", BeginTransaction(1))
