"""Tests segments: all formats, every rule violated once, incomplete batches, recovery."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Final

import pytest

from kafkawire.log import FileKind, Finding, RecordRow, Rule, read, recognise
from kafkawire.records import BatchBuilder, Compression, RecordLimits

from . import written
from .written import BASE, batch, both, findings, old, rows

NAME: Final = f"{BASE:020}.log"


def segment(folder: Path, *parts: bytes) -> Path:
    path = folder / NAME
    path.write_bytes(b"".join(parts))
    return path


def records(path: Path) -> list[RecordRow]:
    made = both(path)[0]
    assert all(isinstance(row, RecordRow) for row in made)
    return [row for row in made if isinstance(row, RecordRow)]


def offsets(path: Path) -> list[int]:
    return [row.offset for row in records(path)]


def test_all_columns_of_a_record_row(tmp_path: Path) -> None:
    data = batch(BASE, 2, Compression.LZ4, producer_id=7, producer_epoch=1, base_sequence=9)
    assert rows(segment(tmp_path, data))[1] == RecordRow(
        position=0,
        base_offset=BASE,
        offset=BASE + 1,
        timestamp=written.TIME + BASE + 1,
        timestamp_type="CREATE_TIME",
        magic=2,
        compression="lz4",
        crc_valid=True,
        producer_id=7,
        producer_epoch=1,
        sequence=10,
        partition_leader_epoch=-1,
        transactional=False,
        control=None,
        key=b"key 101",
        value=b"value",
        headers=(("h", b"x"),),
        decoded=None,
    )


def test_formats_and_codecs_mixed(tmp_path: Path) -> None:
    parts = [old(BASE, 0), old(BASE + 3, 0, Compression.LZ4), old(BASE + 6, 1, Compression.GZIP)]
    parts += [batch(BASE + 9 + 3 * n, 3, codec) for n, codec in enumerate(Compression)]
    path = segment(tmp_path, *parts)
    made = [row for row in rows(path) if isinstance(row, RecordRow)]
    assert [row.offset for row in made] == list(range(BASE, BASE + 24))
    assert [row.magic for row in made] == [0] * 6 + [1] * 3 + [2] * 15
    assert made[3].base_offset == BASE + 3


def test_control_records_are_named(tmp_path: Path) -> None:
    (row,) = rows(segment(tmp_path, written.transaction_end(BASE)))
    assert isinstance(row, RecordRow)
    assert row.control == "ABORT"
    assert row.transactional
    assert row.decoded is not None
    assert row.decoded.value is not None
    assert row.decoded.value.to_json()["message"] == {"coordinatorEpoch": 3}


def test_records_of_internal_logs_are_decoded(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-12"
    folder.mkdir()
    commit, tombstone = rows(segment(folder, written.offset_commits()))
    assert isinstance(commit, RecordRow)
    assert isinstance(tombstone, RecordRow)
    assert commit.decoded is not None
    assert commit.decoded.value is not None
    assert commit.decoded.value.name == "OffsetCommitValue"
    assert tombstone.decoded is not None
    assert tombstone.decoded.value is None
    assert tombstone.decoded.key == commit.decoded.key


def test_empty_and_preallocated_segments(tmp_path: Path) -> None:
    assert rows(segment(tmp_path)) == []
    assert rows(segment(tmp_path, bytes(100_000))) == []


def test_preallocated_space_is_not_an_error(tmp_path: Path) -> None:
    path = segment(tmp_path, batch(BASE), bytes(3_000_000))
    assert len(rows(path)) == 3


@pytest.mark.parametrize("left", [8, 11, 16, 17, 60, 80])
def test_an_incomplete_batch_in_the_active_segment_is_a_note(tmp_path: Path, left: int) -> None:
    path = segment(tmp_path, batch(BASE), batch(BASE + 3)[:left])
    (found,) = findings(path)
    assert (found.rule, found.position) == (Rule.ACTIVE_TAIL, len(batch(BASE)))
    assert not found.is_error
    assert offsets(path) == [BASE, BASE + 1, BASE + 2]


def test_an_incomplete_batch_before_a_later_segment_is_an_error(tmp_path: Path) -> None:
    path = segment(tmp_path, batch(BASE), batch(BASE + 3)[:60])
    (tmp_path / f"{BASE + 6:020}.log").write_bytes(batch(BASE + 6))
    (found,) = findings(path)
    assert (found.rule, found.is_error) == (Rule.CUT, True)


def test_a_wrong_checksum_is_reported_and_the_records_are_read(tmp_path: Path) -> None:
    first, second = batch(BASE), batch(BASE + 3)
    bad = first.replace(b"key 101", b"key 1O1")
    path = segment(tmp_path, bad, second)
    (found,) = findings(path)
    assert (found.rule, found.position) == (Rule.CRC, 0)
    assert [row.crc_valid for row in records(path)] == [False] * 3 + [True] * 3
    assert findings(path, verify=False) == []


def test_corrupt_records_do_not_affect_the_next_batch(tmp_path: Path) -> None:
    first = batch(BASE, 3, Compression.GZIP)
    path = segment(tmp_path, first[:-20] + bytes(20), batch(BASE + 3))
    assert [found.rule for found in findings(path)] == [Rule.CRC, Rule.RECORDS]
    assert offsets(path) == [BASE, BASE + 3, BASE + 4, BASE + 5]  # one comes before the fault


def test_offsets_that_go_back(tmp_path: Path) -> None:
    path = segment(tmp_path, batch(BASE + 3), batch(BASE))
    (found,) = findings(path)
    assert found.rule is Rule.OFFSET_ORDER
    assert found.text == f"base offset {BASE} after offset {BASE + 5}"
    assert findings(path, verify=False) == []


def test_offsets_before_the_base_offset_of_the_segment(tmp_path: Path) -> None:
    (found,) = findings(segment(tmp_path, batch(BASE - 10)))
    assert (found.rule, found.position) == (Rule.SEGMENT_OFFSET, 0)


def test_records_outside_their_batch(tmp_path: Path) -> None:
    builder = BatchBuilder(base_offset=BASE)
    builder.append(None, b"a", offset=BASE + 1)
    builder.append(None, b"b", offset=BASE + 1)
    (found,) = findings(segment(tmp_path, builder.build()))
    assert found.rule is Rule.RECORD_OFFSETS
    (found,) = findings(segment(tmp_path, builder.build(last_offset=BASE)))
    assert found.rule is Rule.RECORD_OFFSETS


def test_an_unknown_magic_is_skipped(tmp_path: Path) -> None:
    future = bytearray(batch(BASE))
    future[16] = 3
    path = segment(tmp_path, bytes(future), batch(BASE + 3))
    (found,) = findings(path)
    assert (found.rule, found.position) == (Rule.BATCH_HEADER, 0)
    assert offsets(path) == [BASE + 3, BASE + 4, BASE + 5]


@pytest.mark.parametrize("length", [-1, 0, 13, 14, 49, 120, 10_000, 2**31 - 1])
def test_after_a_wrong_length_reading_continues_at_the_next_batch(
    tmp_path: Path, length: int
) -> None:
    parts = [batch(BASE + 3 * n) for n in range(4)]
    broken = bytearray(parts[1])
    broken[8:12] = length.to_bytes(4, "big", signed=True)
    path = segment(tmp_path, parts[0], bytes(broken), *parts[2:])
    made, found = both(path)
    assert any(one.is_error and one.position == len(parts[0]) for one in found)
    assert [row.offset for row in made if isinstance(row, RecordRow)] == [
        *range(BASE, BASE + 3),
        *range(BASE + 6, BASE + 12),
    ]


def test_garbage_before_the_first_batch_is_skipped(tmp_path: Path) -> None:
    path = segment(tmp_path, b"\xff" * 1000, batch(BASE))
    (found,) = findings(path)
    assert (found.rule, found.position) == (Rule.BATCH_LENGTH, 0)
    assert "1000 bytes skipped, next batch at 1000" in found.text
    assert len(records(path)) == 3


def test_a_batch_above_the_limit_is_skipped(tmp_path: Path) -> None:
    path = segment(tmp_path, batch(BASE, 50), batch(BASE + 50, 1))
    file = recognise(path)
    assert file is not None
    limits = RecordLimits(max_batch_bytes=500)
    one, row = read(file, limits=limits)
    assert isinstance(one, Finding)
    assert one.rule is Rule.BATCH_SIZE
    assert isinstance(row, RecordRow)
    assert row.offset == BASE + 50


def test_a_decompression_bomb_is_a_finding(tmp_path: Path) -> None:
    builder = BatchBuilder(base_offset=BASE, compression=Compression.ZSTD)
    builder.append(None, bytes(10_000_000))
    path = segment(tmp_path, builder.build(), batch(BASE + 1))
    file = recognise(path)
    assert file is not None
    made = list(read(file, limits=RecordLimits(max_batch_bytes=1_000_000)))
    assert isinstance(made[0], Finding)
    assert made[0].rule is Rule.RECORDS
    assert len(made) == 4


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    builder = BatchBuilder(base_offset=BASE)
    builder.append(None, bytes(100_000))
    data = bytearray(builder.build())
    with (tmp_path / NAME).open("wb") as out:
        for n in range(400):
            data[:8] = (BASE + n).to_bytes(8, "big")
            out.write(data)
    file = recognise(tmp_path / NAME)
    assert file is not None
    tracemalloc.start()
    try:
        assert sum(isinstance(found, RecordRow) for found in read(file)) == 400
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_snapshot_of_the_metadata_log(tmp_path: Path) -> None:
    path = tmp_path / f"{42:020}-{7:010}.checkpoint"
    path.write_bytes(written.metadata_snapshot())
    made = [row for row in rows(path) if isinstance(row, RecordRow)]
    assert [row.control for row in made] == ["SNAPSHOT_HEADER", None, "SNAPSHOT_FOOTER"]
    assert made[1].decoded is not None
    assert made[1].decoded.value is not None
    assert made[1].decoded.value.to_json()["message"]["name"] == "orders"


def test_a_snapshot_without_header_or_footer(tmp_path: Path) -> None:
    path = tmp_path / "bootstrap.checkpoint"
    whole = written.metadata_snapshot()
    path.write_bytes(whole[:-75])
    assert [found.rule for found in findings(path)] == [Rule.SNAPSHOT_FOOTER]
    path.write_bytes(batch(0))
    assert [found.rule for found in findings(path)] == [Rule.SNAPSHOT_HEADER, Rule.SNAPSHOT_FOOTER]


def test_a_missing_file_is_a_finding(tmp_path: Path) -> None:
    file = recognise(tmp_path / NAME)
    assert file is not None
    assert file.kind is FileKind.SEGMENT
    (found,) = read(file)
    assert isinstance(found, Finding)
    assert (found.rule, found.text) == (Rule.UNREADABLE, "No such file or directory")
