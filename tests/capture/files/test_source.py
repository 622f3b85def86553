"""Format detection, decompression, and streams that are read while they are written."""

from __future__ import annotations

import gzip
import io
import os
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafkawire.capture.files.source import STEP, Capture, FileChunks, Unpacked, read_capture
from kafkawire.errors import BadMagic, CorruptCapture, TruncatedCapture
from tests.capture.wire import Packet, packets_of, pcap, pcapng, read

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LOTS = random.Random(5)
PACKETS = [Packet(LOTS.randbytes(200)) for _ in range(100)]
WANTED = [packet.data for packet in PACKETS]
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}
FORMATS = {"pcap": pcap(PACKETS), "pcapng": pcapng(PACKETS)}


@pytest.mark.parametrize("step", [1 << 23, 1, 999])
@pytest.mark.parametrize("compress", COMPRESS)
@pytest.mark.parametrize("kind", FORMATS)
def test_compressed(kind: str, compress: str, step: int) -> None:
    blocks, capture = read(COMPRESS[compress](FORMATS[kind]), step)
    assert packets_of(blocks) == WANTED
    assert capture.problems == []


@pytest.mark.parametrize("compress", COMPRESS)
def test_several_members_are_one_file(compress: str) -> None:
    data, pack = pcap(PACKETS), COMPRESS[compress]
    blocks, capture = read(pack(data[:1000]) + pack(data[1000:5000]) + pack(data[5000:]), 777)
    assert packets_of(blocks) == WANTED
    assert capture.problems == []


def test_skippable_zstd_frames_are_skipped() -> None:
    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    blocks, capture = read(skippable + zstd.compress(pcap(PACKETS)))
    assert packets_of(blocks) == WANTED
    assert capture.problems == []


def test_compressed_twice() -> None:
    blocks, _ = read(gzip.compress(zstd.compress(pcap(PACKETS))))
    assert packets_of(blocks) == WANTED


@pytest.mark.parametrize("compress", COMPRESS)
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_truncation_keeps_the_data_before(compress: str, share: float) -> None:
    big = pcap(Packet(LOTS.randbytes(200)) for _ in range(8000))
    whole = packets_of(read(big)[0])
    packed = COMPRESS[compress](big)
    blocks, capture = read(packed[: int(len(packed) * share)], 1000)
    found = packets_of(blocks)
    assert found == whole[: len(found)]
    assert len(found) > (share - 0.2) * len(whole)
    assert {type(problem) for problem in capture.problems} == {TruncatedCapture}


@pytest.mark.parametrize("compress", COMPRESS)
def test_corruption_keeps_the_data_before(compress: str) -> None:
    data, pack = pcap(PACKETS), COMPRESS[compress]
    packed = pack(data[:5000]) + pack(data[5000:])[:4] + b"\xff" * 50
    blocks, capture = read(packed, 100)
    assert packets_of(blocks) == WANTED[: (5000 - 24) // 216]
    assert [type(problem) for problem in capture.problems] == [TruncatedCapture, CorruptCapture]


def test_trailing_bytes_are_reported_unless_they_are_padding() -> None:
    packed = gzip.compress(pcap(PACKETS))
    assert read(packed + bytes(512))[1].problems == []
    problems = read(packed + b"more")[1].problems
    assert [type(problem) for problem in problems] == [CorruptCapture]


@pytest.mark.parametrize("compress", COMPRESS)
def test_a_decompression_bomb_is_decompressed_in_steps(compress: str) -> None:
    bomb = COMPRESS[compress](bytes(STEP * 8))
    sizes = [len(chunk) for chunk in Unpacked(iter([bomb]))]
    assert sum(sizes) == STEP * 8
    assert max(sizes) <= STEP


def test_a_compressed_file_that_is_not_a_capture() -> None:
    with pytest.raises(BadMagic):
        read(gzip.compress(b"hello, world"))


def test_a_path(tmp_path: Path) -> None:
    path = tmp_path / "any-name"
    path.write_bytes(pcap(PACKETS))
    assert packets_of(list(read_capture(path))) == WANTED
    assert packets_of(list(read_capture(str(path)))) == WANTED


@pytest.mark.parametrize("size", [1, 30, 999, 1 << 12, 1 << 20])
@pytest.mark.parametrize("damage", [b"", b"\xff" * 300])
@pytest.mark.parametrize("kind", FORMATS)
def test_the_chunks_of_a_file(kind: str, damage: bytes, size: int, tmp_path: Path) -> None:
    data = FORMATS[kind][:7000] + damage + FORMATS[kind][7000:-90]
    path = tmp_path / "capture"
    path.write_bytes(data)
    wanted, whole = read(data, size)
    capture = Capture(FileChunks(path, size))
    assert packets_of(list(capture)) == packets_of(wanted)
    assert list(map(repr, capture.problems)) == list(map(repr, whole.problems))
    assert capture.problems


@pytest.mark.parametrize("kind", FORMATS)
def test_packets_of_a_file_are_not_copied(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(FORMATS[kind])
    chunks: list[bytes] = []
    taken: list[int] = []

    class Noted(FileChunks):
        def __iter__(self) -> Iterator[bytes]:
            for chunk in super().__iter__():
                chunks.append(chunk)
                yield chunk

    for block in Capture(Noted(path, 4000), lambda size, _: taken.append(size)):
        assert block.data is chunks[-1]
    # each chunk begins with a packet, and only what is in front of that is read again
    assert sum(map(len, chunks)) - len(FORMATS[kind]) < len(chunks) * 300
    assert sum(taken) == len(FORMATS[kind])


def test_a_path_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        pool.submit(path.write_bytes, FORMATS["pcap"])
        assert packets_of(list(read_capture(path))) == WANTED


def test_a_stream_without_read1() -> None:
    assert packets_of(list(read_capture(io.BytesIO(pcap(PACKETS))))) == WANTED


def test_a_pipe_that_is_still_being_written() -> None:
    receiver, sender = os.pipe()
    data = pcap(PACKETS)
    with os.fdopen(receiver, "rb") as pipe, os.fdopen(sender, "wb", buffering=0) as writer:
        writer.write(data[:500])
        blocks = iter(read_capture(pipe))
        assert packets_of([next(blocks)]) == WANTED[:2]
        writer.write(data[500:1000])
        assert packets_of([next(blocks)]) == WANTED[2:4]
        writer.write(data[1000:])
        writer.close()
        assert packets_of(list(blocks)) == WANTED[4:]


def test_a_capture_without_packets() -> None:
    capture = Capture([pcap([])])
    assert list(capture) == []
    assert capture.problems == []
