"""What a share partition gives to whom: acquisition, acknowledgements, storing."""

from __future__ import annotations

import pytest

from kafkawire.broker.share.acknowledging import checked
from kafkawire.broker.share.acquiring import LogBatch, Wanted
from kafkawire.broker.share.config import ShareConfig
from kafkawire.broker.share.partition import AcknowledgementBatch, SharePartition, Write
from kafkawire.broker.share.states import AcknowledgeType
from kafkawire.broker.share_coordinator.state import StateBatch, combined
from kafkawire.configs.durations import duration_seconds, is_offset_reset
from kafkawire.messages.share_acknowledge_request import AcknowledgementBatch as Requested
from kafkawire.protocol import ErrorCode

E, K = ErrorCode, AcknowledgeType
LOG = [LogBatch(0, 4), LogBatch(5, 9), LogBatch(10, 14)]


def partition(*batches: StateBatch, start: int = 0, **config: int) -> SharePartition:
    given = ShareConfig(lock_duration=10.0)._replace(**config)  # type: ignore[arg-type]
    return SharePartition(0, 0, start, batches, lambda: given)


def acquire(
    share: SharePartition, member: str = "a", most: int = 100, size: int = 100, strict: bool = False
) -> list[tuple[int, int, int]]:
    offset = share.next_fetch_offset()
    read = [each for each in LOG if each.last >= offset]
    if not read:
        return []
    wanted = Wanted(member, most, size, strict)
    return [tuple(each) for each in share.acquire(wanted, offset, read, 0.0)]  # type: ignore[misc]


def acknowledge(
    share: SharePartition, first: int, last: int, kind: AcknowledgeType = K.ACCEPT
) -> Write | ErrorCode:
    return share.acknowledge("a", [AcknowledgementBatch(first, last, (kind,))], 1.0)


def stored(share: SharePartition, write: Write | ErrorCode) -> None:
    assert isinstance(write, Write)
    share.written(write, is_stored=True)


def test_records_are_acquired_by_batches_of_the_log() -> None:
    assert acquire(partition(), size=5) == [(0, 4, 1), (5, 9, 1), (10, 14, 1)]
    assert acquire(partition(), most=3) == [(0, 4, 1)]
    assert acquire(partition(), most=6, size=6) == [(0, 9, 1)]


def test_a_strict_request_gets_no_more_than_it_wants() -> None:
    share = partition()
    assert acquire(share, most=3, strict=True) == [(0, 2, 1)]
    assert acquire(share, "b", most=4, strict=True) == [(3, 6, 1)]
    stored(share, acknowledge(share, 0, 2, K.RELEASE))
    assert acquire(share, "b", most=2, strict=True) == [(0, 1, 2)]
    assert acquire(share, "b", most=2, strict=True) == [(2, 2, 2), (7, 7, 1)]


def test_what_is_not_stored_yet_is_neither_acquired_nor_acknowledged_again() -> None:
    share = partition()
    acquire(share, most=5)
    write = acknowledge(share, 0, 4, K.RELEASE)
    assert acknowledge(share, 0, 4) is E.INVALID_RECORD_STATE
    assert acquire(share, "b", most=5) == [(5, 9, 1)]
    assert share.advance(50.0).batches == (StateBatch(5, 9, 0, 1),)
    stored(share, write)
    assert acquire(share, "b", most=5) == [(0, 4, 2)]


def test_a_record_is_not_acknowledged_twice_in_a_request() -> None:
    share = partition()
    acquire(share)
    batches = [AcknowledgementBatch(*each, (K.ACCEPT,)) for each in ((0, 2), (2, 4))]
    assert share.acknowledge("a", batches, 1.0) is E.INVALID_RECORD_STATE
    assert share.acknowledge("b", batches[:1], 1.0) is E.INVALID_RECORD_STATE
    assert share.acknowledge("a", batches[:1], 1.0) == Write(1, 0, 3, (StateBatch(0, 2, 2, 1),))


def test_renewing_a_lock_moves_its_end() -> None:
    share = partition()
    acquire(share, most=5)
    renewed = share.acknowledge("a", [AcknowledgementBatch(1, 2, (K.RENEW,))], 6.0)
    assert isinstance(renewed, Write)
    assert not renewed.batches
    assert share.next_deadline() == 10.0
    write = share.advance(10.0)
    assert [each[:2] for each in write.batches] == [(0, 0), (3, 4)]
    assert share.next_deadline() == 16.0
    assert partition(renews=False).acknowledge("a", [], 0.0) == Write(1, 0, 0, ())
    refusing = partition(renews=False)
    acquire(refusing)
    assert acknowledge(refusing, 0, 1, K.RENEW) is E.INVALID_RECORD_STATE


def test_the_last_delivery_of_a_record_is_alone_and_then_it_is_archived() -> None:
    share = partition(StateBatch(0, 3, 0, 1), StateBatch(4, 4, 2, 1), delivery_limit=4)
    assert acquire(share, most=4) == [(0, 3, 2)]
    stored(share, acknowledge(share, 0, 3, K.RELEASE))
    assert acquire(share) == [(0, 1, 3)]
    stored(share, acknowledge(share, 0, 1, K.RELEASE))
    assert acquire(share) == [(0, 0, 4)]
    assert acquire(share) == [(1, 1, 4)]
    stored(share, acknowledge(share, 0, 1, K.RELEASE))
    assert share.start_offset == 2


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_late_acknowledgement_is_refused_until_the_end_of_the_last_lock_is_stored(
    is_stored: bool,
) -> None:
    share = partition(delivery_limit=1)
    assert acquire(share, most=5) == [(0, 4, 1)]
    write = share.advance(10.0)
    assert write.batches == (StateBatch(0, 4, 4, 1),)
    assert acknowledge(share, 0, 4) is E.INVALID_RECORD_STATE
    assert acquire(share, "b", most=5) == [(5, 9, 1)]
    assert share.start_offset == 0
    share.written(write, is_stored)
    assert share.start_offset == 5


def test_records_that_were_delivered_often_are_not_delivered_with_others() -> None:
    share = partition(StateBatch(0, 3, 0, 1), StateBatch(4, 4, 0, 2), delivery_limit=4)
    assert acquire(share) == [(0, 3, 2)]
    assert acquire(share) == [(4, 4, 3)]
    assert acquire(share) == [(5, 14, 1)]


def test_no_more_than_the_limit_is_in_flight_but_what_is_released_is_delivered() -> None:
    share = partition(max_locks=6)
    assert acquire(share, size=5) == [(0, 4, 1), (5, 9, 1)]
    assert not share.can_acquire
    stored(share, acknowledge(share, 1, 2, K.RELEASE))
    assert share.can_acquire
    assert acquire(share) == [(1, 2, 2)]


def test_what_the_log_does_not_have_any_more_is_archived() -> None:
    share = partition()
    share.acquire(Wanted("a", 100, 100, False), 0, [LogBatch(10, 14)], 0.0)
    assert share.start_offset == 10
    share.log_starts_at(12)
    assert (share.start_offset, share.in_flight.count) == (12, 3)
    assert acknowledge(share, 10, 11) == Write(1, 12, 0, ())


def test_gaps_of_what_was_stored_are_read_again() -> None:
    share = partition(StateBatch(2, 3, 2, 1), StateBatch(7, 8, 0, 1))
    assert acquire(share) == [(0, 1, 1), (4, 6, 1), (7, 8, 2), (9, 14, 1)]


def test_records_of_aborted_transactions_are_not_delivered() -> None:
    share = partition()
    acquired = share.acquire(Wanted("a", 100, 100, False), 0, LOG, 0.0)
    kept = share.remove(acquired, [LogBatch(5, 9)])
    assert [each[:2] for each in kept] == [(0, 4), (10, 14)]
    assert acknowledge(share, 5, 9) is E.INVALID_RECORD_STATE
    assert share.remove(kept, [LogBatch(0, 4)]) == kept[1:]
    assert share.start_offset == 10


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([(0, 9, 0, 1), (2, 5, 2, 1)], [(0, 1, 0, 1), (2, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 4, 4, 2), (0, 4, 0, 1)], [(0, 4, 4, 2)]),
        ([(0, 4, 0, 1), (5, 9, 0, 1)], [(0, 9, 0, 1)]),
        ([(5, 4, 0, 1)], []),
    ],
)
def test_states_of_batches_are_combined(
    batches: list[tuple[int, int, int, int]], expected: list[tuple[int, int, int, int]]
) -> None:
    assert list(combined([StateBatch(*each) for each in batches], 0)) == expected
    kept = [each for each in expected if each[1] >= 3]
    found = list(combined([StateBatch(*each) for each in batches], 3))
    assert found == [(max(3, first), *rest) for first, *rest in kept]


@pytest.mark.parametrize(
    ("batches", "is_valid"),
    [
        ([(0, 2, [1])], True),
        ([(0, 2, [1, 0, 3])], True),
        ([(0, 2, [1, 0])], False),
        ([(0, 2, [])], False),
        ([(2, 0, [1])], False),
        ([(0, 2, [5])], False),
        ([(0, 2, [4])], False),
        ([(5, 6, [1]), (0, 1, [1])], False),
    ],
)
def test_acknowledgements_are_checked(
    batches: list[tuple[int, int, list[int]]], is_valid: bool
) -> None:
    requested = [
        Requested(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in batches
    ]
    assert (checked(requested, may_renew=False) is not E.INVALID_REQUEST) == is_valid


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("by_duration:PT1H", 3600.0),
        ("by_duration:P1DT1.5S", 86401.5),
        ("by_duration:PT", None),
        ("by_duration:P", None),
        ("by_duration:-PT1H", None),
        ("by_duration:1h", None),
        (f"by_duration:PT{(1 << 63) - 1}S", float(1 << 63)),
        (f"by_duration:PT{1 << 63}S", None),
        (f"by_duration:P{'9' * 5_000}D", None),
        ("none", None),
    ],
)
def test_durations(value: str, seconds: float | None) -> None:
    assert duration_seconds(value) == seconds
    assert is_offset_reset(value) == (seconds is not None)
