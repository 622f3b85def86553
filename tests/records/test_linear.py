"""Streams of many members, frames and blocks: work in proportion to the bytes, and a limit.

Work is bytes handed to a decompressor, or copied by it as what it left unread; never time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

import cramjam
import pytest
import zstandard
from lz4 import frame as lz4_frame
from zlib_ng import zlib_ng

from kafkawire.capture.files.source import Unpacked
from kafkawire.errors import CorruptBatch, LimitExceeded
from kafkawire.records import (
    DEFAULT_RECORD_LIMITS,
    BatchBuilder,
    Compression,
    RecordBatches,
    RecordLimits,
)
from kafkawire.records.compression.codecs import compress
from kafkawire.records.compression.decompression import decompress, readable_part
from kafkawire.records.compression.snappy import JAVA_HEADER

from .test_hostile import with_records

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SIZE: Final = Struct(">i")
SKIPPABLE: Final = b"\x50\x2a\x4d\x18" + bytes(4)
BLOCK: Final = bytes(cramjam.snappy.compress_raw(b"x"))
STREAMS: Final[dict[str, tuple[Compression, bytes, bytes]]] = {
    "gzip": (Compression.GZIP, b"", compress(Compression.GZIP, b"", 2)),
    "lz4": (Compression.LZ4, b"", compress(Compression.LZ4, b"", 2)),
    "lz4 skippable": (Compression.LZ4, compress(Compression.LZ4, b"", 2), SKIPPABLE),
    "zstd": (Compression.ZSTD, b"", compress(Compression.ZSTD, b"", 2)),
    "zstd skippable": (Compression.ZSTD, b"", SKIPPABLE),
    "snappy": (Compression.SNAPPY, JAVA_HEADER, SIZE.pack(len(BLOCK)) + BLOCK),
}
"""Codec, what comes first, and what is repeated."""


class Work:
    """Counts bytes."""

    def __init__(self) -> None:
        self.bytes = 0


class Counted:
    """A zlib-ng or zstd decompressor whose work is counted."""

    def __init__(self, inner: Any, work: Work) -> None:
        self._inner = inner
        self._work = work

    def decompress(self, data: bytes, *limit: int) -> bytes:
        self._work.bytes += len(data)
        out: bytes = self._inner.decompress(data, *limit)
        self._work.bytes += len(self._inner.unused_data)
        return out

    def copy(self) -> Counted:
        return Counted(self._inner.copy(), self._work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count what every decompressor is given."""
    found = Work()

    def counting(function: Callable[..., Any], at: int) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            found.bytes += len(args[at])
            return function(*args, **named)

        return counted

    def wrapping(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **named: Counted(make(*args, **named), found)

    monkeypatch.setattr(zlib_ng, "decompressobj", wrapping(zlib_ng.decompressobj))
    monkeypatch.setattr(zstd, "ZstdDecompressor", wrapping(zstd.ZstdDecompressor))
    monkeypatch.setattr(lz4_frame, "decompress_chunk", counting(lz4_frame.decompress_chunk, 1))
    raw = counting(cramjam.snappy.decompress_raw, 0)
    monkeypatch.setattr(cramjam.snappy, "decompress_raw", raw)
    return found


def counted(work: Work, run: Callable[..., object], *args: object) -> int:
    work.bytes = 0
    run(*args)
    assert work.bytes > 0
    return work.bytes


def unpacked_size(data: bytes) -> int:
    return sum(map(len, Unpacked(iter([data]))))


@pytest.mark.parametrize("name", STREAMS)
def test_frames_are_read_in_linear_time(name: str, work: Work) -> None:
    codec, first, each = STREAMS[name]
    few, many = (
        counted(work, decompress, codec, first + each * n, 2, 1 << 24, 10**6)
        for n in (2_000, 20_000)
    )
    assert many <= 12 * few


@pytest.mark.parametrize("name", STREAMS)
def test_corrupt_frames_are_read_in_linear_time(name: str, work: Work) -> None:
    """What comes out before a fault at the very end."""
    codec, first, each = STREAMS[name]
    few, many = (
        counted(work, readable_part, codec, first + each * n, 2, 1 << 24, 10**6)
        for n in (2_000, 20_000)
    )
    assert many <= 12 * few


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_one_large_member_cut_at_its_end_is_read_in_linear_time(
    codec: Compression, work: Work
) -> None:
    text = bytes(i * i % 251 for i in range(100_000))
    for times in (1, 10):
        stream = compress(codec, b"".join(bytes([i]) + text for i in range(times)), 2)[:-1]
        assert counted(work, readable_part, codec, stream, 2, 1 << 24) <= 4 * len(stream)


def test_members_of_capture_files_are_read_in_linear_time(work: Work) -> None:
    for pack in (STREAMS["gzip"][2], STREAMS["zstd"][2], SKIPPABLE):
        few, many = (counted(work, unpacked_size, pack * n) for n in (2_000, 20_000))
        assert many <= 12 * few


def test_a_bomb_in_a_capture_file_is_read_in_linear_time(work: Work) -> None:
    for pack in (lambda data: compress(Compression.GZIP, data, 2), zstd.compress):
        data = pack(bytes(200 << 20))
        assert counted(work, unpacked_size, data) <= 8 * len(data)


@pytest.mark.parametrize("name", STREAMS)
def test_frames_are_limited(name: str) -> None:
    codec, first, each = STREAMS[name]
    before = 1 if name == "lz4 skippable" else 0
    assert len(decompress(codec, first + each * 7, 2, 100, 7 + before)) in (0, 7)
    named = {"gzip": "members", "snappy": "blocks"}.get(codec.name.lower(), "frames")
    with pytest.raises(LimitExceeded, match=f"more than the 7 {named} allowed"):
        decompress(codec, first + each * 8, 2, 100, 7)
    limits = RecordLimits(max_frames=7)
    with pytest.raises(LimitExceeded, match=r"batch\[0\]: .*more than the 7"):
        list(RecordBatches(with_records(first + each * 8, 1, codec), limits).records())


def test_the_limit_is_far_above_what_clients_write() -> None:
    """The densest there are: the first Java clients put each KiB into a block of snappy."""
    block = bytes(cramjam.snappy.compress_raw(bytes(1024)))
    stream = JAVA_HEADER + (SIZE.pack(len(block)) + block) * 32_768
    assert len(decompress(Compression.SNAPPY, stream, 1, 1 << 26)) == 32 << 20
    assert DEFAULT_RECORD_LIMITS.max_frames == 65_536


def test_what_a_bomb_costs_is_spent() -> None:
    """A field of many bombs costs what a call may, not what each batch may."""
    bomb = with_records(compress(Compression.ZSTD, bytes(1 << 20), 2), 1, Compression.ZSTD)
    limits = RecordLimits(max_batch_bytes=1 << 16, max_bytes=1 << 18)
    faults: list[Any] = []
    assert list(RecordBatches(bomb * 20, limits).records(faults)) == []
    assert [str(fault.reason).split("more than the ")[1].split()[0] for fault in faults] == [
        *["65536"] * 4,
        *["0"] * 16,
    ]


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_frames_of_all_sizes(codec: Compression) -> None:
    parts = [bytes([i % 251]) * (i * i * 97 % 300_000) for i in range(60)]
    stream = b"".join(compress(codec, part, 2) for part in parts)
    assert decompress(codec, stream, 2, 1 << 25) == b"".join(parts)
    assert readable_part(codec, stream, 2, 1 << 25) == b"".join(parts)


def test_every_form_of_lz4_and_zstd_frames() -> None:
    data = bytes(range(256)) * 3000 + bytes(700_000)
    for linked in (True, False):
        for checksum in (True, False):
            for size in (0, lz4_frame.BLOCKSIZE_MAX4MB):
                frame = lz4_frame.compress(
                    data,
                    block_linked=linked,
                    content_checksum=checksum,
                    block_checksum=checksum,
                    store_size=linked,
                    block_size=size,
                )
                for stream in (frame, frame + frame, SKIPPABLE + frame):
                    read = decompress(Compression.LZ4, stream, 2, 1 << 24)
                    assert read == data * (len(stream) // len(frame))
                    assert readable_part(Compression.LZ4, stream, 2, 1 << 24) == read
                for cut in (frame[:-1], frame[: len(frame) // 2], frame[:10]):
                    part = readable_part(Compression.LZ4, cut, 2, 1 << 24)
                    assert data.startswith(part)
                    with pytest.raises(CorruptBatch):
                        decompress(Compression.LZ4, cut, 2, 1 << 24)
    for checksum in (True, False):
        for sized in (True, False):
            packer = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=sized)
            frame = packer.compress(data)
            for stream in (frame, frame + frame, SKIPPABLE + frame, frame + SKIPPABLE):
                read = decompress(Compression.ZSTD, stream, 2, 1 << 24)
                assert read == data * (len(stream) // len(frame))
                assert readable_part(Compression.ZSTD, stream, 2, 1 << 24) == read
            assert (
                readable_part(Compression.ZSTD, frame[:-1], 2, 1 << 24)[:131_072]
                == (data[:131_072])
            )


def test_good_batches_are_decompressed_at_once(work: Work) -> None:
    """One member or frame, as every client writes it, is handed over once."""
    for codec in (Compression.GZIP, Compression.LZ4):
        builder = BatchBuilder(compression=codec)
        for number in range(100):
            builder.append(b"key %d" % number, b"value %d" % number)
        data = builder.build()
        assert counted(work, RecordBatches(data).columns) <= len(data)
