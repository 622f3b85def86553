"""The transaction coordinator: transitions, fencing, timeouts, failover, transactions version 2."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from kafkawire.protocol import ErrorCode as E
from kafkawire.records import Batch
from kafkawire.transactions import (
    EPOCH_BUMPED,
    NONE,
    TRANSITIONS,
    ProducerIdNeeded,
    Result,
    TransactionConfig,
    TransactionState,
)
from kafkawire.transactions.requests import AbortExpired
from kafkawire.transactions.states import END, END_AGAIN, END_NEXT, IDLE, PREPARED, Trigger
from kafkawire.transactions.transaction import LAST_EPOCH, read_record

from .harness import EPOCH_MS, TIMEOUT_MS, A, B, Harness, error_of

S = TransactionState
ALL = tuple(S)
PREVIOUS = 99
"""The producer id that a transactional id had before."""


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_tables_are_total_and_consistent() -> None:
    for table in (END, END_AGAIN, END_NEXT):
        assert set(table) == set(S)
    for state in S:
        ends_by = {trigger for (of, trigger) in TRANSITIONS if of is state}
        verdict = END[state]
        assert (verdict.commit is None) == (Trigger.COMMIT in ends_by)
        assert (END_NEXT[state].abort is None) == (Trigger.ABORT in ends_by)
        assert (Trigger.MARKED in ends_by) == (state in PREPARED)
    assert {state for state, trigger in TRANSITIONS if trigger is Trigger.EXPIRED} == set(IDLE)
    reachable = {S.EMPTY, *TRANSITIONS.values()}
    assert reachable == set(S)
    assert not [key for key in TRANSITIONS if key[0] is S.DEAD]


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_when_its_markers_are_written(harness: Harness, commit: bool) -> None:
    producer = harness.ongoing(A, B)
    assert error_of(harness.end(producer, commit)) == E.NONE
    [marker] = harness.markers
    assert marker.partitions == {A, B}
    assert (marker.commit, marker.producer_epoch) == (commit, 0)
    prepared = S.PREPARE_COMMIT if commit else S.PREPARE_ABORT
    assert harness.transaction.state is prepared
    for result in (harness.init(), harness.end(producer, commit)):
        assert error_of(result) == E.CONCURRENT_TRANSACTIONS
    assert harness.add(producer, A) == E.CONCURRENT_TRANSACTIONS
    assert error_of(harness.end(producer, not commit)) == E.INVALID_TXN_STATE
    harness.write_markers()
    complete = S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT
    assert harness.transaction.state is complete
    assert error_of(harness.end(producer, commit)) == E.NONE, "a repeated request has its result"
    assert error_of(harness.end(producer, not commit)) == E.INVALID_TXN_STATE
    assert harness.add(producer, A) == E.NONE
    assert harness.transaction.partitions == {A}


def test_nothing_is_done_before_a_record_is_committed(harness: Harness) -> None:
    producer = harness.ongoing(A)
    harness.log.lag = True
    assert harness.end(producer, True) is None
    assert harness.markers == []
    assert error_of(harness.end(producer, True)) == E.CONCURRENT_TRANSACTIONS
    assert harness.add(producer, B) == E.CONCURRENT_TRANSACTIONS
    assert error_of(harness.init()) == E.CONCURRENT_TRANSACTIONS
    assert harness.transaction.state is S.ONGOING
    harness.commit_log()
    assert [each.commit for each in harness.markers] == [True]
    assert E.NONE in {each.error for each in harness.results.values()}


def test_markers_complete_a_transaction_once(harness: Harness) -> None:
    producer = harness.ongoing(A)
    assert error_of(harness.end(producer, True)) == E.NONE
    [marker] = harness.markers
    harness.log.lag = True
    for _ in range(2):
        harness.take(harness.coordinator.markers_written(marker, harness.now))
    assert len(harness.log.data) == len(["init", "add", "end", "complete"])
    harness.commit_log()
    assert harness.transaction.state is S.COMPLETE_COMMIT


def test_partitions_are_added_to_those_that_the_transaction_has(harness: Harness) -> None:
    producer = harness.ongoing(A)
    assert harness.add(producer, A, B) == E.NONE
    assert harness.transaction.partitions == {A, B}
    records = len(harness.log.data)
    assert harness.add(producer, B) == E.NONE
    assert len(harness.log.data) == records


def test_a_request_whose_record_is_not_committed_fails_in_time_and_its_state_stays_open(
    harness: Harness,
) -> None:
    producer = harness.ongoing(A)
    harness.log.lag = True
    number = next(harness.numbers) + 1
    assert harness.end(producer, True) is None
    harness.advance(harness.config.append_timeout)
    assert harness.results[number].error == E.COORDINATOR_NOT_AVAILABLE
    assert error_of(harness.end(producer, True)) == E.CONCURRENT_TRANSACTIONS
    harness.commit_log()
    assert harness.transaction.state is S.PREPARE_COMMIT


def test_each_producer_fences_those_before_it(harness: Harness) -> None:
    first, second = harness.started(), harness.started()
    assert second.producer_id == first.producer_id
    assert (first.producer_epoch, second.producer_epoch) == (0, 1)
    assert harness.add(first, A) == E.PRODUCER_FENCED
    assert error_of(harness.end(first, True)) == E.PRODUCER_FENCED
    assert error_of(harness.verify(first, A)) == E.PRODUCER_FENCED
    assert harness.add(second, A) == E.NONE
    stranger = second._replace(producer_id=7)
    assert harness.add(stranger, A) == E.INVALID_PRODUCER_ID_MAPPING
    assert error_of(harness.end(stranger, True)) == E.INVALID_PRODUCER_ID_MAPPING


def test_a_new_producer_aborts_the_transaction_of_the_one_before(harness: Harness) -> None:
    old = harness.ongoing(A)
    assert error_of(harness.init()) == E.CONCURRENT_TRANSACTIONS
    [marker] = harness.markers
    assert (marker.commit, marker.producer_epoch) == (False, 1)
    assert error_of(harness.init()) == E.CONCURRENT_TRANSACTIONS
    assert error_of(harness.end(old, True)) == E.PRODUCER_FENCED
    harness.write_markers()
    new = harness.started()
    assert new.producer_epoch == 2


def test_a_producer_bumps_its_own_epoch_once(harness: Harness) -> None:
    first = harness.started()
    identity = first.producer_id, first.producer_epoch
    bumped = harness.init(*identity)
    assert bumped is not None
    assert bumped.producer_epoch == 1
    again = harness.init(*identity)
    assert again is not None
    assert again.producer_epoch == 1, "its response was lost"
    harness.started()
    assert error_of(harness.init(*identity)) == E.PRODUCER_FENCED
    assert error_of(harness.init(7, 0)) == E.PRODUCER_FENCED


def test_a_new_producer_id_comes_after_the_last_epoch(harness: Harness) -> None:
    first = harness.started()
    for _ in range(LAST_EPOCH):
        last = harness.started()
    assert (last.producer_id, last.producer_epoch) == (first.producer_id, LAST_EPOCH)
    rotated = harness.init(last.producer_id, last.producer_epoch)
    assert rotated is not None
    assert rotated.producer_id != first.producer_id
    assert rotated.producer_epoch == 0
    assert harness.transaction.previous_producer_id == first.producer_id


def with_epoch(harness: Harness, epoch: int) -> Result:
    """Let the producer have an epoch, and another producer id before."""
    producer = harness.started()
    value = harness.transaction.initialised(TIMEOUT_MS, epoch, NONE, EPOCH_MS)
    harness.coordinator.transactions["x"] = replace(value, previous_producer_id=PREVIOUS)
    return producer._replace(producer_epoch=epoch)


def test_only_the_present_producer_bumps_its_epoch(harness: Harness) -> None:
    present = with_epoch(harness, 0)
    for stranger, epoch in ((7, 0), (PREVIOUS, 0), (PREVIOUS, LAST_EPOCH - 1)):
        assert error_of(harness.init(stranger, epoch)) == E.PRODUCER_FENCED
    assert harness.transaction.producer_epoch == 0
    assert error_of(harness.init(present.producer_id, 0)) == E.NONE


def test_a_producer_whose_epochs_are_used_up_repeats_its_request(harness: Harness) -> None:
    """Its response was lost: it names the producer id that it had."""
    last = with_epoch(harness, LAST_EPOCH)
    rotated = harness.init(last.producer_id, LAST_EPOCH)
    assert rotated is not None
    again = harness.init(last.producer_id, LAST_EPOCH)
    assert again is not None
    assert (again.error, again.producer_id) == (E.NONE, rotated.producer_id)


def test_epochs_that_are_used_up_give_no_fenced_producer_another_id(harness: Harness) -> None:
    last = with_epoch(harness, LAST_EPOCH)
    assert error_of(harness.init(last.producer_id, LAST_EPOCH - 1)) == E.PRODUCER_FENCED
    assert harness.transaction.producer_id == last.producer_id


def test_a_transaction_with_the_last_epoch_is_aborted_with_its_producer_id(
    harness: Harness,
) -> None:
    last = with_epoch(harness, LAST_EPOCH)
    assert harness.add(last, A) == E.NONE
    assert error_of(harness.init()) == E.CONCURRENT_TRANSACTIONS
    [marker] = harness.markers
    assert (marker.producer_id, marker.producer_epoch) == (last.producer_id, LAST_EPOCH + 1)
    harness.write_markers()
    rotated = harness.started()
    assert rotated.producer_id != last.producer_id
    assert rotated.producer_epoch == 0


def test_in_version_2_its_abort_rotates_the_producer_id(harness: Harness) -> None:
    last = with_epoch(harness, LAST_EPOCH)
    assert harness.add(last, A) == E.NONE
    assert error_of(harness.init(version=EPOCH_BUMPED)) == E.CONCURRENT_TRANSACTIONS
    [marker] = harness.markers
    assert (marker.producer_id, marker.producer_epoch) == (last.producer_id, LAST_EPOCH + 1)
    harness.write_markers()
    assert harness.transaction.producer_id != last.producer_id
    assert harness.transaction.producer_epoch == 0
    begun = harness.init(version=EPOCH_BUMPED)
    assert begun is not None
    assert (begun.producer_id, begun.producer_epoch) == (harness.transaction.producer_id, 1)


@pytest.mark.parametrize("version", [0, EPOCH_BUMPED])
def test_a_timeout_with_the_last_epoch_rotates_the_producer_id_as_well(
    harness: Harness, version: int
) -> None:
    last = with_epoch(harness, LAST_EPOCH)
    assert harness.add(last, A) == E.NONE
    harness.advance(TIMEOUT_MS / 1000 + harness.config.abort_interval, version)
    [marker] = harness.markers
    assert (marker.producer_id, marker.producer_epoch) == (last.producer_id, LAST_EPOCH + 1)
    harness.write_markers()
    has_rotated = harness.transaction.producer_id != last.producer_id
    assert has_rotated is (version >= EPOCH_BUMPED)
    assert harness.transaction.producer_epoch == (0 if has_rotated else LAST_EPOCH + 1)


def test_a_transaction_that_ended_meanwhile_is_not_aborted(harness: Harness) -> None:
    last = with_epoch(harness, LAST_EPOCH)
    assert harness.add(last, A) == E.NONE
    request = AbortExpired.of(harness.transaction, EPOCH_BUMPED)
    assert harness.coordinator.handle(request, harness.now) == [ProducerIdNeeded(request)]
    assert error_of(harness.end(last, True)) == E.NONE
    harness.write_markers()
    assert harness.add(harness.started(), A) == E.NONE
    again = request._replace(new_producer_id=999)
    assert harness.coordinator.handle(again, harness.now) == []
    assert harness.transaction.state is S.ONGOING


def test_a_fenced_producer_ends_nothing_where_no_transaction_has_begun(harness: Harness) -> None:
    fenced = harness.started()
    harness.started()
    for commit in (True, False):
        assert error_of(harness.end(fenced, commit, EPOCH_BUMPED)) == E.PRODUCER_FENCED


def test_an_epoch_that_was_not_assigned_ends_nothing(harness: Harness) -> None:
    producer = harness.ongoing(A)
    later = producer._replace(producer_epoch=producer.producer_epoch + 1)
    for version in (0, EPOCH_BUMPED):
        assert error_of(harness.end(later, True, version)) == E.PRODUCER_FENCED
    assert harness.transaction.state is S.ONGOING


def test_a_transaction_is_aborted_after_its_timeout(harness: Harness) -> None:
    producer = harness.ongoing(A)
    harness.advance(TIMEOUT_MS / 1000)
    assert harness.markers == []
    harness.advance(harness.config.abort_interval)
    [marker] = harness.markers
    assert (marker.commit, marker.producer_epoch) == (False, 1)
    assert error_of(harness.end(producer, True)) == E.PRODUCER_FENCED
    harness.write_markers()
    assert harness.transaction.state is S.COMPLETE_ABORT
    fenced = harness.init(producer.producer_id, producer.producer_epoch)
    assert error_of(fenced) == E.PRODUCER_FENCED


def test_in_version_2_the_producer_of_an_aborted_transaction_begins_anew(harness: Harness) -> None:
    producer = harness.ongoing(A)
    harness.advance(TIMEOUT_MS / 1000 + harness.config.abort_interval, EPOCH_BUMPED)
    harness.write_markers()
    for _ in range(2):  # its response may be lost
        begun = harness.init(producer.producer_id, producer.producer_epoch, EPOCH_BUMPED)
        assert begun is not None
        assert (begun.error, begun.producer_epoch) == (E.NONE, producer.producer_epoch + 1)
    assert error_of(harness.init(version=EPOCH_BUMPED)) == E.NONE
    late = harness.init(producer.producer_id, producer.producer_epoch, EPOCH_BUMPED)
    assert error_of(late) == E.PRODUCER_FENCED


def test_the_timeout_is_that_of_the_transaction_from_its_first_partition(harness: Harness) -> None:
    producer = harness.ongoing(A)
    assert error_of(harness.end(producer, True)) == E.NONE
    harness.write_markers()
    harness.advance(10 * TIMEOUT_MS / 1000)
    assert harness.add(producer, A) == E.NONE
    harness.advance(TIMEOUT_MS / 1000 - 1.0)
    assert harness.markers == []
    assert harness.add(producer, B) == E.NONE
    harness.advance(1.0 + harness.config.abort_interval)
    assert harness.transaction.state is S.PREPARE_ABORT
    harness.write_markers()
    harness.started()
    assert harness.transaction.start_ms == NONE


def test_a_transaction_in_time_is_not_aborted(harness: Harness) -> None:
    producer = harness.ongoing(A)
    assert error_of(harness.end(producer, True)) == E.NONE
    harness.advance(10 * TIMEOUT_MS / 1000)
    assert [each.commit for each in harness.markers] == [True]


def test_a_transaction_whose_end_is_not_committed_yet_is_not_aborted(harness: Harness) -> None:
    producer = harness.ongoing(A)
    harness.log.lag = True
    assert harness.end(producer, True) is None
    harness.advance(10 * TIMEOUT_MS / 1000)
    harness.commit_log()
    assert [each.commit for each in harness.markers] == [True]


def test_an_unused_transactional_id_expires(harness: Harness) -> None:
    harness.config = TransactionConfig(EPOCH_MS, expiration_ms=5_000_000)
    harness.fail_over()
    harness.started()
    harness.advance(5000.0)
    assert "x" in harness.coordinator.transactions
    harness.advance(3600.0)
    assert harness.coordinator.transactions == {}
    harness.fail_over()
    assert harness.coordinator.transactions == {}
    assert harness.started().producer_epoch == 0


def test_an_ongoing_transaction_does_not_expire(harness: Harness) -> None:
    harness.config = TransactionConfig(EPOCH_MS, abort_interval=1e9, expiration_ms=1)
    harness.fail_over()
    harness.ongoing(A)
    harness.advance(7200.0)
    assert harness.transaction.state is S.ONGOING


def test_transactional_ids_are_limited() -> None:
    harness = Harness(TransactionConfig(EPOCH_MS, ids=0))
    assert error_of(harness.init()) == E.POLICY_VIOLATION


# -- failover


@pytest.mark.parametrize(("state", "version"), list(product(ALL, (0, EPOCH_BUMPED))), ids=str)
def test_the_next_coordinator_goes_on_in_each_state(
    harness: Harness, state: TransactionState, version: int
) -> None:
    if state is S.DEAD:
        assert harness.coordinator.transactions == {}
        return
    producer = harness.started()
    if state is not S.EMPTY:
        assert harness.add(producer, A, version=version) == E.NONE
        commit = state in (S.PREPARE_COMMIT, S.COMPLETE_COMMIT)
        if state is not S.ONGOING:
            assert error_of(harness.end(producer, commit, version)) == E.NONE
        if state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
            harness.write_markers()
    before = harness.transaction
    assert before.state is state
    harness.fail_over()
    assert harness.transaction == before.__class__(
        **{name: getattr(before, name) for name in before.__slots__} | {"last_producer_epoch": -1}
    )
    expected = [(state is S.PREPARE_COMMIT, 1, frozenset({A}))] if state in PREPARED else []
    assert [(m.commit, m.coordinator_epoch, m.partitions) for m in harness.markers] == expected
    harness.write_markers()
    if state is S.ONGOING:
        assert error_of(harness.end(producer, True, version)) == E.NONE
        harness.write_markers()
    assert harness.transaction.is_idle


def test_what_was_not_committed_is_not_done_after_a_failover(harness: Harness) -> None:
    producer = harness.ongoing(A)
    harness.log.lag = True
    number = next(harness.numbers) + 1
    assert harness.end(producer, True) is None
    harness.fail_over(lose=1)
    assert harness.results[number].error == E.NOT_COORDINATOR
    assert (harness.transaction.state, harness.markers) == (S.ONGOING, [])
    assert error_of(harness.end(producer, False)) == E.NONE


def test_markers_of_a_loaded_transaction_wait_until_its_record_is_committed(
    harness: Harness,
) -> None:
    producer = harness.ongoing(A)
    assert error_of(harness.end(producer, True)) == E.NONE
    harness.markers.clear()
    harness.log.high_watermark = 0
    harness.epoch = 1
    harness._loaded()
    assert harness.markers == []
    harness.commit_log()
    assert [each.coordinator_epoch for each in harness.markers] == [1]


def test_markers_of_an_earlier_coordinator_complete_nothing(harness: Harness) -> None:
    producer = harness.ongoing(A)
    assert error_of(harness.end(producer, True)) == E.NONE
    [old] = harness.markers
    harness.fail_over()
    harness.take(harness.coordinator.markers_written(old, harness.now))
    states = [harness.transaction.state]
    harness.write_markers()
    assert [*states, harness.transaction.state] == [S.PREPARE_COMMIT, S.COMPLETE_COMMIT]


# -- verification, and transactions version 2 (KIP-890)


def test_partitions_are_verified(harness: Harness) -> None:
    producer = harness.ongoing(A)
    found = harness.verify(producer, A, B)
    assert found is not None
    assert found.error == E.NONE
    assert found.missing == {B}
    assert error_of(harness.end(producer, True)) == E.NONE
    assert error_of(harness.verify(producer, A)) == E.CONCURRENT_TRANSACTIONS
    harness.write_markers()
    found = harness.verify(producer, A)
    assert found is not None
    assert found.missing == {A}, "the transaction is over"


@pytest.mark.parametrize("commit", [True, False])
def test_each_transaction_of_version_2_has_an_epoch_of_its_own(
    harness: Harness, commit: bool
) -> None:
    first = harness.ongoing(A, version=EPOCH_BUMPED)
    second = harness.end(first, commit, EPOCH_BUMPED)
    assert second is not None
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, 1)
    markers = [(each.producer_epoch, each.version) for each in harness.markers]
    assert markers == [(1, EPOCH_BUMPED)]
    assert error_of(harness.end(first, commit, EPOCH_BUMPED)) == E.CONCURRENT_TRANSACTIONS
    assert error_of(harness.end(second, commit, EPOCH_BUMPED)) == E.PRODUCER_FENCED
    harness.write_markers()
    again = harness.end(first, commit, EPOCH_BUMPED)
    assert again is not None
    assert (again.error, again.producer_epoch) == (E.NONE, 1), "its response was lost"
    assert error_of(harness.end(first, not commit, EPOCH_BUMPED)) == E.INVALID_TXN_STATE
    assert harness.add(first, A, version=EPOCH_BUMPED) == E.PRODUCER_FENCED
    assert harness.add(second, A, version=EPOCH_BUMPED) == E.NONE
    assert error_of(harness.end(first, commit, EPOCH_BUMPED)) == E.PRODUCER_FENCED


def test_an_empty_transaction_of_version_2_can_be_aborted_only(harness: Harness) -> None:
    producer = harness.started()
    assert error_of(harness.end(producer, True, EPOCH_BUMPED)) == E.INVALID_TXN_STATE
    bumped = harness.end(producer, False, EPOCH_BUMPED)
    assert bumped is not None
    assert (bumped.error, bumped.producer_epoch) == (E.NONE, 1)
    assert [each.partitions for each in harness.markers] == [frozenset()]
    harness.write_markers()
    assert harness.transaction.state is S.COMPLETE_ABORT


def test_the_last_epoch_of_version_2_is_followed_by_a_new_producer_id(harness: Harness) -> None:
    producer = harness.started()
    harness.coordinator.transactions["x"] = harness.transaction.initialised(
        TIMEOUT_MS, LAST_EPOCH, -1, EPOCH_MS
    )
    producer = producer._replace(producer_epoch=LAST_EPOCH)
    assert harness.add(producer, A, version=EPOCH_BUMPED) == E.NONE
    rotated = harness.end(producer, True, EPOCH_BUMPED)
    assert rotated is not None
    assert rotated.producer_id != producer.producer_id
    assert rotated.producer_epoch == 0
    [marker] = harness.markers
    assert (marker.producer_id, marker.producer_epoch) == (producer.producer_id, LAST_EPOCH + 1)
    harness.fail_over()
    harness.write_markers()
    harness.fail_over()
    again = harness.end(producer, True, EPOCH_BUMPED)
    assert again is not None
    assert (again.error, again.producer_id) == (E.NONE, rotated.producer_id)
    earlier = producer._replace(producer_epoch=LAST_EPOCH - 1)
    error = error_of(harness.end(earlier, True, EPOCH_BUMPED))
    assert error == E.INVALID_PRODUCER_ID_MAPPING
    assert harness.add(rotated, A, version=EPOCH_BUMPED) == E.NONE


# -- the log


def test_records_are_those_of_kafka(harness: Harness) -> None:
    producer = harness.ongoing(A, B)
    assert error_of(harness.end(producer, True)) == E.NONE
    harness.write_markers()
    states = []
    for data in harness.log.data:
        for record in Batch(data, 0, len(data)).records():
            read = read_record(record)
            assert read is not None
            assert read[1] is not None
            states.append((read[0], read[1].state, read[1].partitions))
    assert states == [
        ("x", S.EMPTY, frozenset()),
        ("x", S.ONGOING, {A, B}),
        ("x", S.PREPARE_COMMIT, {A, B}),
        ("x", S.COMPLETE_COMMIT, frozenset()),
    ]
