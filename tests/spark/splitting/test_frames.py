"""Members of compressed files: where they begin, and wrong indexes."""

from __future__ import annotations

import random
import struct
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from kafkawire.spark.splitting import Mark, inputs, plan
from kafkawire.spark.splitting.frames import marks
from kafkawire.spark.splitting.stores import opened

from ...capture.wire import START_NS, Packet, pcap
from .containers import bgzf, bgzf_member, pieces_of, seekable_zstd, zstd_frames
from .law import obeys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LOTS = random.Random(2)
DATA = pcap([Packet(LOTS.randbytes(400), START_NS + i * 10**6) for i in range(300)])
PIECES = pieces_of(DATA, [5000, 300, 20_000])


def found(data: bytes, spacing: int, tmp_path: Path) -> list[Mark]:
    path = tmp_path / "file"
    path.write_bytes(data)
    (file,) = inputs([path])
    with opened(file) as reader:
        return marks(reader, file.size, spacing)


def ends(members: list[bytes]) -> list[int]:
    return [sum(map(len, members[:count])) for count in range(len(members))]


def test_every_member_is_marked(tmp_path: Path) -> None:
    members = [bgzf_member(piece) for piece in PIECES]
    expected = [Mark(*both) for both in zip(ends(members), ends(PIECES), strict=True)]
    assert found(bgzf(PIECES), 1, tmp_path) == expected
    frames = [zstd.compress(piece, 3) for piece in PIECES]
    expected = [Mark(*both) for both in zip(ends(frames), ends(PIECES), strict=True)]
    assert found(zstd_frames(PIECES, 10**6), 1, tmp_path) == expected
    assert [mark.position for mark in found(seekable_zstd(PIECES), 1, tmp_path)] == ends(PIECES)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_791, 65_792, 300_000])
@pytest.mark.parametrize("checksum", [0, 1])
def test_frame_headers_of_every_width(size: int, checksum: int, tmp_path: Path) -> None:
    options = {int(zstd.CompressionParameter.checksum_flag): checksum}
    frame = zstd.compress(bytes(size), options=options)
    data = frame + zstd.compress(DATA)
    wanted = [Mark(0, 0), Mark(len(frame), size)] if size else [Mark(0, 0)]
    assert found(data, 1, tmp_path) == wanted


def test_marks_keep_their_distance(tmp_path: Path) -> None:
    places = [mark.packed for mark in found(bgzf(PIECES), 30_000, tmp_path)]
    assert all(b - a >= 30_000 for a, b in pairwise(places))
    assert len(places) > 2


def test_a_seek_table_is_all_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkawire.spark.splitting import stores

    path = tmp_path / "file"
    path.write_bytes(seekable_zstd(PIECES))
    (file,) = inputs([path])
    sizes: list[int] = []
    with opened(file) as reader:
        plain = stores.LocalReader.read

        def noted(self: stores.LocalReader, offset: int, size: int) -> bytes:
            sizes.append(size)
            return plain(self, offset, size)

        monkeypatch.setattr(stores.LocalReader, "read", noted)
        assert len(marks(reader, file.size, 1)) == len(PIECES)
    assert sum(sizes) < 2000


def _other_size(data: bytes, number: int, change: int) -> bytes:
    """Make the member of a BGZF claim another size of its content."""
    members = [bgzf_member(piece) for piece in PIECES]
    at = sum(map(len, members[: number + 1])) - 4
    (size,) = struct.unpack_from("<I", data, at)
    return data[:at] + struct.pack("<I", size + change) + data[at + 4 :]


def _other_table(data: bytes, number: int, packed: int, size: int) -> bytes:
    at = len(data) - 9 - 8 * (len(PIECES) - number)
    entries = struct.unpack_from("<IIII", data, at)
    wrong = struct.pack(
        "<IIII", entries[0] + packed, entries[1] + size, entries[2] - packed, entries[3] - size
    )
    return data[:at] + wrong + data[at + 16 :]


def _other_member_size(data: bytes, number: int) -> bytes:
    """Make a BGZF member claim that it reaches to the end of the next."""
    members = [bgzf_member(piece) for piece in PIECES]
    at = sum(map(len, members[:number]))
    both = len(members[number]) + len(members[number + 1])
    return data[: at + 16] + struct.pack("<H", both - 1) + data[at + 18 :]


LIES = {
    "content of a member": _other_size(bgzf(PIECES), 4, 7),
    "size of a member": _other_member_size(bgzf(PIECES), 3),
    "place of a frame": _other_table(seekable_zstd(PIECES), 4, 9, 0),
    "content of a frame": _other_table(seekable_zstd(PIECES), 4, 0, 100),
    "damaged frame": (packed := zstd_frames(PIECES))[:40_000] + b"damage" + packed[40_006:],
    "damaged member": (packed := bgzf(PIECES))[:40_000] + b"damage" + packed[40_006:],
    "cut in a member": bgzf(PIECES)[:70_000],
    "cut in a frame": zstd_frames(PIECES)[:70_000],
    "a frame missing its end": zstd_frames(PIECES[:4])[:-3] + zstd_frames(PIECES[4:]),
}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("split_bytes", [1, 6000, 30_000])
def test_a_wrong_index_changes_nothing(name: str, split_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(LIES[name])
    (file,) = inputs([path])
    assert len(plan(file, split_bytes)) > 1 or split_bytes == 30_000
    obeys(path, split_bytes)
