"""A capture file that is followed by its name: what is read is one capture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kafkawire.capture.files.packet_offsets import packets
from kafkawire_cli.input.captures.followed import CHUNK, FollowedFile
from kafkawire_cli.input.inputs import InputError
from tests.conftest import FIXTURES

DATA = (FIXTURES / "captures" / "ck-group-range.pcap").read_bytes()
HEADER = 24
PCAPNG = b"\x0a\x0d\x0d\x0a" + bytes(40)


def until(number: int) -> int:
    """Return where so many packets end."""
    end: int = packets(DATA, HEADER, 16, False, 1 << 18, number)[1]
    return end


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.pcap"


@pytest.fixture
def file(path: Path) -> Iterator[FollowedFile]:
    path.write_bytes(DATA[: until(50) + 9])
    with closing(FollowedFile(path)) as opened:
        yield opened


def read(file: FollowedFile, size: int = 1000) -> bytes:
    pieces = []
    while piece := file.read1(size):
        assert len(piece) <= size
        pieces.append(piece)
    return b"".join(pieces)


def test_a_file_that_grows(file: FollowedFile, path: Path) -> None:
    assert read(file) == DATA[: until(50)], "the packet is not complete"
    with path.open("ab") as more:
        more.write(DATA[until(50) + 9 :])
    assert read(file) == DATA[until(50) :]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_file_that_is_renamed(file: FollowedFile, path: Path, size: int) -> None:
    """Also the rest that is written to it after that is read first."""
    found = read(file, size)
    with path.open("ab") as older:
        path.rename(path.with_suffix(".1"))
        found += read(file, size)
        older.write(DATA[until(50) + 9 : until(60)])
    path.write_bytes(DATA[: HEADER - 3])
    found += read(file, size)
    assert found == DATA[: until(60)]
    path.write_bytes(DATA[:HEADER] + DATA[until(60) : until(90)])
    found += read(file, size)
    path.unlink()
    assert read(file) == b""
    path.write_bytes(DATA[:HEADER] + DATA[until(90) :])
    assert found + read(file, size) == DATA


def test_a_file_that_is_truncated(file: FollowedFile, path: Path) -> None:
    """A packet that was incomplete is left out."""
    found = read(file)
    path.write_bytes(b"")
    assert read(file) == b""
    path.write_bytes(DATA[:HEADER] + DATA[until(60) : until(70)])
    found += read(file)
    path.write_bytes(DATA[:HEADER] + DATA[until(80) : until(81)])
    found += read(file)
    assert found == DATA[: until(50)] + DATA[until(60) : until(70)] + DATA[until(80) : until(81)]


def test_sections_of_pcapng(path: Path) -> None:
    path.write_bytes(PCAPNG)
    with closing(FollowedFile(path)) as file:
        assert read(file) == PCAPNG
        path.write_bytes(PCAPNG[:-4])
        assert read(file) == PCAPNG[:-4]


@pytest.mark.parametrize("other", [PCAPNG, DATA[:20] + b"\x71" + DATA[21:], b"no capture" * 9])
def test_a_file_that_does_not_continue(file: FollowedFile, path: Path, other: bytes) -> None:
    read(file)
    path.rename(path.with_suffix(".1"))
    path.write_bytes(other)
    with pytest.raises(InputError, match="does not continue"):
        read(file)


def test_damage_is_passed_on(path: Path) -> None:
    """What does not become a packet is left to the reader of captures, not held for ever."""
    damaged = DATA[:HEADER] + b"\xff" * 10 * CHUNK
    path.write_bytes(damaged)
    with closing(FollowedFile(path)) as file:
        assert b"".join(read(file, CHUNK) for _ in range(len(damaged) // CHUNK + 2)) == damaged
