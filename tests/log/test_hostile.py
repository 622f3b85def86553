"""Damaged files of every kind: random bytes, flipped bits, cuts.

Rows and findings come out, never an exception; what is changed under a checksum is found.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.log import Finding, RecordRow, read, recognise, walk

from . import written
from .written import BASE, both, known

KINDS: Final = (
    f"{BASE:020}.log",
    f"{BASE:020}.index",
    f"{BASE:020}.timeindex",
    f"{BASE:020}.txnindex",
    f"{BASE:020}.snapshot",
    f"{BASE:020}-{7:010}.checkpoint",
    "leader-epoch-checkpoint",
    "replication-offset-checkpoint",
    "partition.metadata",
    "meta.properties",
    "quorum-state",
)


@cache
def valid_files() -> dict[str, bytes]:
    """Return one valid file of every kind."""
    with TemporaryDirectory() as folder:
        made = written.partition(Path(folder, "orders-3"), count=10)
        found = {path.name: path.read_bytes() for path in walk(made.folder)}
    return found | {
        f"{BASE:020}-{7:010}.checkpoint": written.metadata_snapshot(),
        "replication-offset-checkpoint": b"0\n2\norders 3 42\norders 4 7\n",
        "meta.properties": b"#\nversion=1\nnode.id=1\ncluster.id=x\\:y\n",
        "quorum-state": b'{"leaderId":1,"leaderEpoch":4,"data_version":1}',
    }


def write_files(folder: Path) -> None:
    for name, data in valid_files().items():
        (folder / name).write_bytes(data)


def test_the_valid_files_have_no_findings(tmp_path: Path) -> None:
    write_files(tmp_path)
    assert set(valid_files()) == set(KINDS)
    for name in KINDS:
        made, found = both(tmp_path / name)
        assert made, name
        assert found == [], name


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=400))
def test_random_bytes(name: str, data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        for found in read(known(path), known(path).log):
            assert isinstance(found, tuple)


@pytest.mark.parametrize("name", KINDS)
def test_flipped_bits(name: str, tmp_path: Path) -> None:
    write_files(tmp_path)
    draw = random.Random(name)
    for _ in range(150):
        raw = bytearray(valid_files()[name])
        for _ in range(draw.choice([1, 1, 2, 8])):
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
        (tmp_path / name).write_bytes(raw)
        both(tmp_path / name)


@pytest.mark.parametrize("name", KINDS)
def test_truncated_files(name: str, tmp_path: Path) -> None:
    write_files(tmp_path)
    whole = valid_files()[name]
    complete = len(both(tmp_path / name)[0])
    for cut in range(0, len(whole), max(1, len(whole) // 120)):
        (tmp_path / name).write_bytes(whole[:cut])
        assert len(both(tmp_path / name)[0]) <= complete


def test_every_flipped_bit_under_the_checksum_is_found(tmp_path: Path) -> None:
    path = tmp_path / f"{BASE:020}.log"
    whole = written.batch(BASE, 1) + written.batch(BASE + 1, 1)
    one = len(whole) // 2
    for bit in range(17 * 8, one * 8):
        raw = bytearray(whole)
        raw[bit // 8] ^= 1 << bit % 8
        path.write_bytes(raw)
        made, found = both(path)
        assert any(each.is_error and each.position == 0 for each in found), bit
        last = made[-1]
        assert isinstance(last, RecordRow), bit
        assert (last.offset, last.crc_valid) == (BASE + 1, True), bit


def test_a_flipped_bit_in_a_length_hides_no_other_batch(tmp_path: Path) -> None:
    path = tmp_path / f"{BASE:020}.log"
    parts = [written.batch(BASE + n, 1) for n in range(4)]
    for bit in range(32):
        raw = bytearray(b"".join(parts))
        raw[len(parts[0]) + 8 + bit // 8] ^= 1 << bit % 8
        path.write_bytes(raw)
        made, found = both(path)
        assert any(each.is_error for each in found), bit
        sure = [row.offset for row in made if isinstance(row, RecordRow) and row.crc_valid]
        assert sure == [BASE, BASE + 2, BASE + 3], bit


def test_a_file_of_false_batch_starts_takes_bounded_time(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    head = bytes(8) + (50_000).to_bytes(4, "big") + bytes(4) + b"\x02"
    path.write_bytes(b"\xff" * 20 + head * 100_000)
    file = recognise(path)
    assert file is not None
    made = list(read(file))
    assert len(made) == 1
    assert isinstance(made[0], Finding)
