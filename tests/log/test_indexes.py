"""Tests indexes: entries, preallocated space, and every mismatch with the segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.log import AbortedTransaction, OffsetIndexEntry, Rule, TimeIndexEntry

from . import written
from .written import ABORTED, BASE, INDEX_ENTRY, TIME_ENTRY, Partition, findings, rows


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return written.partition(tmp_path / "orders-3")


def rewrite(path: Path, at: int, data: bytes) -> None:
    """Write bytes into a file; a negative position counts from its end."""
    raw = bytearray(path.read_bytes())
    at = at if at >= 0 else len(raw) + at
    raw[at : at + len(data)] = data
    path.write_bytes(raw)


def rules(path: Path) -> list[tuple[Rule, int]]:
    return [(found.rule, found.position) for found in findings(path)]


def test_an_offset_index(partition: Partition) -> None:
    every = partition.batches[3::3]
    assert rows(partition.file("index")) == [
        OffsetIndexEntry(n, each.last_offset, each.position) for n, each in enumerate(every)
    ]


def test_a_time_index(partition: Partition) -> None:
    every = partition.batches[3::3]
    assert rows(partition.file("timeindex")) == [
        TimeIndexEntry(n, each.max_timestamp, each.last_offset) for n, each in enumerate(every)
    ]


def test_an_index_of_aborted_transactions(partition: Partition) -> None:
    assert rows(partition.file("txnindex")) == [
        AbortedTransaction(0, 0, 7, 100, 106, 100),
        AbortedTransaction(1, 0, 8, 108, 114, 110),
    ]


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_an_index_of_preallocated_space(partition: Partition, suffix: str) -> None:
    partition.file(suffix).write_bytes(b"" if suffix == "txnindex" else bytes(12 * 8 * 9000))
    assert rows(partition.file(suffix)) == []


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_half_an_entry_at_the_end(partition: Partition, suffix: str) -> None:
    path = partition.file(suffix)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"\1\2\3")
    assert rules(path) == [(Rule.ENTRY_SIZE, size)]


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_without_a_segment_there_is_a_note(partition: Partition, suffix: str) -> None:
    partition.segment.unlink()
    (found,) = findings(partition.file(suffix))
    assert (found.rule, found.is_error) == (Rule.NO_SEGMENT, False)
    assert findings(partition.file(suffix), verify=False) == []


@pytest.mark.parametrize("off", [-1, 1, 10**8])
def test_a_position_without_a_batch(partition: Partition, off: int) -> None:
    path = partition.file("index")
    rewrite(path, 8, INDEX_ENTRY.pack(26, partition.batches[6].position + off))
    assert (Rule.INDEX_POSITION, 8) in rules(path)
    assert findings(path, verify=False) == []


def test_an_offset_before_its_batch(partition: Partition) -> None:
    path = partition.file("index")
    rewrite(path, 8, INDEX_ENTRY.pack(23, partition.batches[6].position))
    assert rules(path) == [(Rule.INDEX_OFFSET, 8)]
    assert findings(path)[0].text.endswith("has offsets 124-126")


def test_offsets_beyond_their_batches_are_one_note(partition: Partition) -> None:
    # what an append of two batches at once leaves: the last offset, the first position
    path = partition.file("index")
    for at in (3, 6):
        first, second = partition.batches[at], partition.batches[at + 1]
        rewrite(
            path, (at // 3 - 1) * 8, INDEX_ENTRY.pack(second.last_offset - BASE, first.position)
        )
    (found,) = findings(path)
    assert (found.rule, found.is_error) == (Rule.INDEX_BEYOND, False)
    assert "(2 such entries)" in found.text


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_entries_out_of_order(partition: Partition, suffix: str) -> None:
    path = partition.file(suffix)
    size = {"index": INDEX_ENTRY, "timeindex": TIME_ENTRY}[suffix].size
    raw = path.read_bytes()
    path.write_bytes(raw[size : 2 * size] + raw[:size] + raw[2 * size :])
    assert (Rule.ENTRY_ORDER, size) in rules(path)


def test_zero_entries_between_others_are_entries(partition: Partition) -> None:
    path = partition.file("index")
    rewrite(path, 8, bytes(8))
    assert (Rule.ENTRY_ORDER, 8) in rules(path)


def test_a_timestamp_that_differs_from_the_batch(partition: Partition) -> None:
    path = partition.file("timeindex")
    batch = partition.batches[6]
    rewrite(path, 12, TIME_ENTRY.pack(batch.max_timestamp + 1, batch.last_offset - BASE))
    assert rules(path) == [(Rule.TIME_TIMESTAMP, 12)]


def test_an_earlier_batch_with_a_later_timestamp(partition: Partition) -> None:
    rewrite(partition.segment, 35, (2**42).to_bytes(8, "big"))  # the first batch's max timestamp
    found = rules(partition.file("timeindex"))
    assert found == [(Rule.TIME_TIMESTAMP, at) for at in (0, 12, 24)]


def test_an_offset_outside_all_batches(partition: Partition) -> None:
    path = partition.file("timeindex")
    rewrite(path, 24, TIME_ENTRY.pack(2**42, 5000))
    assert rules(path) == [(Rule.TIME_OFFSET, 24)]


def test_legacy_segments_have_indexes_too(tmp_path: Path) -> None:
    parts = [written.old(BASE, 1), written.old(BASE + 3, 1)]
    whole = b"".join(parts)
    (tmp_path / f"{BASE:020}.log").write_bytes(whole)
    index = tmp_path / f"{BASE:020}.index"
    index.write_bytes(INDEX_ENTRY.pack(3, len(parts[0])))
    assert rows(index) == [OffsetIndexEntry(0, BASE + 3, len(parts[0]))]


def test_a_transaction_of_an_unknown_version_ends_the_reading(partition: Partition) -> None:
    path = partition.file("txnindex")
    rewrite(path, ABORTED.size, b"\0\x07")
    assert rules(path) == [(Rule.VERSION, ABORTED.size)]


def test_transactions_out_of_order(partition: Partition) -> None:
    path = partition.file("txnindex")
    rewrite(path, ABORTED.size, ABORTED.pack(0, 8, 101, 106, 110))
    assert rules(path) == [(Rule.ENTRY_ORDER, ABORTED.size)]
    rewrite(path, ABORTED.size, ABORTED.pack(0, 8, 120, 119, 110))
    assert rules(path) == [(Rule.ENTRY_ORDER, ABORTED.size)]
