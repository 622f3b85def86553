"""Which records of a response are delivered, and what becomes of the other acquired offsets."""

from __future__ import annotations

import pytest

from kafkawire.client.consumer import FetchFailed
from kafkawire.client.share_consumer import AcknowledgeType, SharePartition, ShareRecord
from kafkawire.client.share_consumer.acknowledgements import GAP, ranges_of
from kafkawire.client.share_consumer.records import DecodedRecords, decode
from kafkawire.messages.share_fetch_response import AcquiredRecords
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.records import end_txn_batch

from .scripted import ORDERS_ID, acquired, batch

ORDERS = SharePartition("orders", 0, ORDERS_ID)
ACCEPT, RELEASE, REJECT = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
)
MARKER = end_txn_batch(
    True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=0, offset=3
)


def decoded(data: bytes, *ranges: AcquiredRecords) -> DecodedRecords:
    return decode(ORDERS, data, list(ranges))


def records(found: DecodedRecords) -> list[tuple[int, int]]:
    """Return offsets with delivery counts."""
    return [
        (each.offset, each.delivery_count) for each in found.items if isinstance(each, ShareRecord)
    ]


def errors(found: DecodedRecords) -> list[FetchFailed]:
    return [each for each in found.items if isinstance(each, FetchFailed)]


def corrupt(data: bytes) -> bytes:
    return data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]


def test_only_acquired_records_are_delivered_with_their_counts() -> None:
    found = decoded(batch(0, 5) + batch(5, 5), acquired(1, 2), acquired(4, 6, count=3))
    assert records(found) == [(1, 1), (2, 1), (4, 3), (5, 3), (6, 3)]
    assert found.ranges == []
    first = found.items[0]
    assert isinstance(first, ShareRecord)
    assert first.value == b"1"
    assert first.consumer_record == first[:-1]


def test_acquired_offsets_without_a_record_are_gaps() -> None:
    found = decoded(batch(0, 2) + batch(6, 2), acquired(0, 9))
    assert records(found) == [(0, 1), (1, 1), (6, 1), (7, 1)]
    assert found.ranges == [(2, 5, GAP), (8, 9, GAP)]


def test_control_records_are_gaps() -> None:
    found = decoded(batch(0, 3) + MARKER + batch(4, 1), acquired(0, 4))
    assert records(found) == [(0, 1), (1, 1), (2, 1), (4, 1)]
    assert found.ranges == [(3, 3, GAP)]


def test_a_corrupt_batch_is_rejected_and_reported_in_its_place() -> None:
    found = decoded(batch(0, 2) + corrupt(batch(2, 3)) + batch(5, 1), acquired(0, 5))
    assert records(found) == [(0, 1), (1, 1), (5, 1)]
    assert found.ranges == [(2, 4, REJECT)]
    (error,) = errors(found)
    assert found.items.index(error) == 2
    assert error.code == ErrorCode.CORRUPT_MESSAGE
    assert "checksum" in str(error)
    assert "orders-0" in str(error)


def test_checksums_that_are_not_verified() -> None:
    found = decode(ORDERS, corrupt(batch(2, 3)), [acquired(2, 4)], check_crcs=False)
    assert len(records(found)) == 3


def test_a_corrupt_batch_without_acquired_records_is_skipped() -> None:
    found = decoded(corrupt(batch(0, 2)) + batch(2, 1), acquired(2, 2))
    assert (records(found), found.ranges, errors(found)) == ([(2, 1)], [], [])


def test_what_follows_a_malformed_length_is_released() -> None:
    malformed = (2).to_bytes(8, "big") + (-5).to_bytes(4, "big", signed=True) + bytes(30)
    found = decoded(batch(0, 2) + malformed, acquired(0, 9))
    assert records(found) == [(0, 1), (1, 1)]
    assert found.ranges == [(2, 9, RELEASE)]
    assert len(errors(found)) == 1


@pytest.mark.parametrize(
    "ranges", [((5, 4),), ((-3, 4),), ((0, 4), (4, 6)), ((0, 9), (2, 3)), ((0, 4), (0, 4))]
)
def test_invalid_ranges_are_an_error(ranges: tuple[tuple[int, int], ...]) -> None:
    found = decoded(batch(0, 10), *(acquired(*each) for each in ranges))
    assert (records(found), found.ranges) == ([], [])
    assert "invalid acquired records" in str(errors(found)[0])


def test_the_order_of_the_ranges_does_not_matter() -> None:
    found = decoded(batch(0, 6), acquired(4, 5, count=2), acquired(0, 1))
    assert records(found) == [(0, 1), (1, 1), (4, 2), (5, 2)]


def test_a_range_that_is_far_too_long_costs_nothing() -> None:
    found = decoded(batch(0, 2), acquired(0, 0x7FFF_FFFF_FFFF_FFFF))
    assert records(found) == [(0, 1), (1, 1)]
    assert found.ranges == [(2, 0x7FFF_FFFF_FFFF_FFFF, GAP)]


def test_offsets_of_a_type_are_joined() -> None:
    types = {3: ACCEPT, 1: ACCEPT, 2: ACCEPT, 4: REJECT, 6: REJECT}
    assert ranges_of(types) == ((1, 3, ACCEPT), (4, 4, REJECT), (6, 6, REJECT))
    assert ranges_of({}) == ()
