"""Streams as they occur: several members, frames, blocks; old checksums, missing packages, cuts."""

from __future__ import annotations

import re
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from struct import pack

import cramjam
import pytest
import zstandard
from lz4 import frame as lz4_frame

from kafkawire.capture.tables import records
from kafkawire.errors import CorruptBatch, LimitExceeded, UnsupportedCompression
from kafkawire.magic_numbers import LZ4
from kafkawire.records import DEFAULT_RECORD_LIMITS, Budget, Compression, RecordBatches
from kafkawire.records.compression import codecs, lz4, snappy
from kafkawire.records.compression.codecs import compress
from kafkawire.records.compression.decompression import decompress, opened

CODECS = [codec for codec in Compression if codec != Compression.NONE]
TEXT = b"the quick brown fox jumps over the lazy dog. " * 3000
DATA = {"empty": b"", "one": b"x", "text": TEXT, "dense": zlib.compress(TEXT, 9) * 3}
PLENTY = 1 << 24


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("codec", list(Compression))
def test_round_trip(codec: Compression, data: bytes) -> None:
    for magic in (0, 1, 2) if codec != Compression.ZSTD else (2,):
        for level in (None, 1, 9):
            stream = compress(codec, data, magic, level)
            assert decompress(codec, stream, magic, len(data)) == data


def test_compress_stays_what_it_is() -> None:
    """Compiled, an import inside a function replaced it when lz4 was first used."""
    compress(Compression.LZ4, TEXT, 2)
    assert codecs.compress is compress


def test_zstd_is_not_for_old_magic() -> None:
    with pytest.raises(UnsupportedCompression, match="zstd is not allowed in magic 1"):
        compress(Compression.ZSTD, b"", 1)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_several_members_or_frames(codec: Compression) -> None:
    stream = b"".join(compress(codec, part, 2) for part in (b"one", b"", b"two"))
    assert decompress(codec, stream, 2, PLENTY) == b"onetwo"


def test_gzip_and_what_is_no_member() -> None:
    stream = compress(Compression.GZIP, b"one", 2)
    with pytest.raises(CorruptBatch, match="gzip"):
        decompress(Compression.GZIP, stream + b"garbage", 2, PLENTY)


def test_snappy_raw_and_framed() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(Compression.SNAPPY, raw, 2, PLENTY) == TEXT
    framed = snappy.framed([raw, bytes(cramjam.snappy.compress_raw(b"!"))])
    assert decompress(Compression.SNAPPY, framed, 2, PLENTY) == TEXT + b"!"
    assert compress(Compression.SNAPPY, TEXT, 2).startswith(snappy.JAVA_HEADER)


def java_stream(*blocks: bytes, versions: bytes = snappy.JAVA_HEADER[8:]) -> bytes:
    """Write a stream in Java's framing."""
    framed = snappy.framed([bytes(cramjam.snappy.compress_raw(block)) for block in blocks])
    return framed[:8] + versions + framed[16:]


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize(
    "stream",
    [
        java_stream(b"one") + java_stream(b"two", TEXT),
        java_stream() + java_stream(b"one", b"two") + java_stream() + java_stream(TEXT),
        java_stream(b"one", versions=bytes(8)) + java_stream(b"two", TEXT, versions=b"\xff" * 8),
    ],
    ids=["two", "with empty ones", "of other versions"],
)
def test_snappy_streams_one_after_another(stream: bytes, partial: bool) -> None:
    budget = Budget(DEFAULT_RECORD_LIMITS)
    assert opened(Compression.SNAPPY, stream, 2, budget, partial) == (b"onetwo" + TEXT, None)


@pytest.mark.parametrize("cut", [1, 8, 15, 17, 19, 23])
def test_a_second_snappy_stream_that_is_cut(cut: int) -> None:
    stream = java_stream(b"one") + java_stream(b"two")[:cut]
    with pytest.raises(CorruptBatch, match="snappy"):
        decompress(Compression.SNAPPY, stream, 2, PLENTY)
    read, fault = opened(Compression.SNAPPY, stream, 2, Budget(DEFAULT_RECORD_LIMITS), True)
    assert (read, type(fault)) == (b"one", CorruptBatch)


def test_snappy_streams_of_the_field() -> None:
    """6 records in two streams."""
    data = Path("fixtures/field/09-snappy/orders-0/00000000000000000000.log").read_bytes()
    field = RecordBatches(data)
    assert [record.key for record in field.records()] == [b"key%d" % at for at in range(6)]
    assert field.columns().to_arrow()["offset"].to_pylist() == list(range(6))


SKIPPABLE = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"


@pytest.mark.parametrize("codec", [Compression.LZ4, Compression.ZSTD])
@pytest.mark.parametrize("at", range(3))
def test_skippable_frames(codec: Compression, at: int) -> None:
    frames = [compress(codec, part, 2) for part in (b"one", b"two")]
    frames.insert(at, SKIPPABLE)
    assert decompress(codec, b"".join(frames), 2, PLENTY) == b"onetwo"


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]
)
def test_xxh32_of_published_vectors(data: bytes, expected: int) -> None:
    assert lz4.xxh32(data) == expected


def test_lz4_of_magic_0_has_its_own_header_checksum() -> None:
    old = compress(Compression.LZ4, TEXT, 0)
    standard = compress(Compression.LZ4, TEXT, 1)
    assert [place for place in range(len(old)) if old[place] != standard[place]] == [6]
    with pytest.raises(CorruptBatch, match="lz4"):
        decompress(Compression.LZ4, old, 1, PLENTY)
    assert decompress(Compression.LZ4, standard, 0, PLENTY) == TEXT
    wrong = old[:6] + bytes([old[6] ^ 1]) + old[7:]
    with pytest.raises(CorruptBatch, match="wrong header checksum"):
        decompress(Compression.LZ4, wrong, 0, PLENTY)


def test_lz4_with_content_size_in_magic_0() -> None:
    descriptor = b"\x68\x40" + pack("<Q", len(TEXT))
    for covered in (descriptor, LZ4 + descriptor):
        header = LZ4 + descriptor + bytes([lz4.checksum(covered)])
        frame = header + compress(Compression.LZ4, TEXT, 1)[7:]
        assert decompress(Compression.LZ4, frame, 0, PLENTY) == TEXT


def test_lz4_blocks_are_independent_for_java() -> None:
    assert compress(Compression.LZ4, TEXT, 2)[4] & 0x20


@pytest.mark.parametrize("magic", [0, 2])
@pytest.mark.parametrize("codec", CODECS)
def test_cut_streams_are_refused(codec: Compression, magic: int) -> None:
    if codec == Compression.ZSTD and magic == 0:
        return
    stream = compress(codec, TEXT[:200], magic)
    for end in range(len(stream)):
        try:
            read = decompress(codec, stream[:end], magic, PLENTY)
        except CorruptBatch:
            continue
        # Java's snappy framing has no end: after its header, and after each block, it is whole
        assert codec == Compression.SNAPPY
        assert end == len(snappy.JAVA_HEADER)
        assert read == b""


def zstd_frames() -> dict[str, tuple[bytes, bytes | None]]:
    """Frames and what they hold, None for those that are wrong: all that has to be told apart."""
    sized = compress(Compression.ZSTD, TEXT, 2)
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert zstandard.frame_content_size(sized) == len(TEXT)
    assert zstandard.frame_content_size(unsized) == -1
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    lying = zstandard.ZstdCompressor().compress(b"x" * 300)
    at = lying.index((300 - 256).to_bytes(2, "little"))
    return {
        "sized": (sized, TEXT),
        "unsized": (unsized, TEXT),
        "large": (compress(Compression.ZSTD, TEXT * 40, 2), TEXT * 40),
        "two": (sized + unsized, TEXT + TEXT),
        "trailing": (sized + b"x", None),
        "cut": (sized[:-1], None),
        "empty": (b"", None),
        "skippable": (b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + sized, TEXT),
        "checksum": (checked, TEXT),
        "wrong checksum": (checked[:-1] + bytes([checked[-1] ^ 1]), None),
        "says less": (lying[:at] + b"\x00\x00" + lying[at + 2 :], None),
        "says more": (lying[:at] + b"\x00\xff" + lying[at + 2 :], None),
    }


@pytest.mark.parametrize("name", zstd_frames())
@pytest.mark.parametrize("limit", [0, 100, len(TEXT) - 1, len(TEXT), PLENTY])
def test_frames_of_zstd_by_a_reader_that_is_kept(name: str, limit: int) -> None:
    frame, content = zstd_frames()[name]
    for _ in range(2):
        if content is None:
            with pytest.raises((CorruptBatch, LimitExceeded)):
                decompress(Compression.ZSTD, frame, 2, limit)
        elif len(content) > limit:
            with pytest.raises(LimitExceeded, match="zstd"):
                decompress(Compression.ZSTD, frame, 2, limit)
        else:
            assert decompress(Compression.ZSTD, frame, 2, limit) == content
        after = compress(Compression.ZSTD, b"after it", 2)
        assert decompress(Compression.ZSTD, after, 2, PLENTY) == b"after it"


@pytest.mark.parametrize("flags", [0x60, 0x64, 0x68, 0x6C, 0x70, 0x40])
@pytest.mark.parametrize("limit", [0, 100, len(TEXT) - 1, len(TEXT), PLENTY])
def test_frames_of_lz4_by_a_reader_that_is_kept(flags: int, limit: int) -> None:
    frame = lz4_frame.compress(
        TEXT,
        block_size=lz4_frame.BLOCKSIZE_MAX64KB,
        block_linked=not flags & 0x20,
        block_checksum=bool(flags & 0x10),
        store_size=bool(flags & 0x08),
        content_checksum=bool(flags & 0x04),
    )
    assert frame[4] == flags
    for cut in (len(frame) - 1, len(frame)):
        if limit < len(TEXT) or cut < len(frame):
            with pytest.raises((CorruptBatch, LimitExceeded)):
                decompress(Compression.LZ4, frame[:cut], 2, limit)
        else:
            assert decompress(Compression.LZ4, frame, 2, limit) == TEXT
        after = compress(Compression.LZ4, b"after it", 2)
        assert decompress(Compression.LZ4, after, 2, PLENTY) == b"after it"
    if flags & 0x04:
        with pytest.raises(CorruptBatch, match="hecksum"):
            decompress(Compression.LZ4, frame[:-1] + bytes([frame[-1] ^ 1]), 2, PLENTY)


@pytest.mark.parametrize("codec", [Compression.LZ4, Compression.ZSTD])
def test_no_two_threads_share_what_is_kept(codec: Compression) -> None:
    def through(size: int) -> bytes:
        return decompress(codec, compress(codec, TEXT[:size], 2, 1), 2, PLENTY)

    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(through, range(3000)))
    assert found == [TEXT[:size] for size in range(3000)]


@pytest.mark.parametrize("codec", [Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_missing_package_is_named(codec: Compression, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = compress(codec, b"data", 2)
    package = codecs.CODECS[codec].package
    assert package is not None
    for module in [package.name, f"{package.name}.frame"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(vars(package), "module")
    with pytest.raises(UnsupportedCompression, match=f"needs the package {package.name}"):
        decompress(codec, stream, 2, PLENTY)
    assert decompress(Compression.GZIP, compress(Compression.GZIP, b"", 2), 2, 0) == b""


def test_every_codec_has_its_row() -> None:
    """One that is added to `Compression` is missing nowhere, nor in the names that are texts."""
    assert [row.compression for row in codecs.CODECS] == list(Compression)
    packages = [row.package for row in codecs.CODECS if row.package is not None]
    assert [package.codec for package in packages] == list(codecs.CODEC_NAMES[1:])
    (column,) = (each for each in records.COLUMNS if each.name == "codec")
    assert re.findall(r"`(\w+)`", column.description) == list(codecs.CODEC_NAMES)
    dissector = resources.files("kafkawire_codegen") / "templates" / "wireshark" / "fields.lua"
    listed = re.search(r"CODECS = \{(.*)\}", dissector.read_text())
    assert listed is not None
    assert re.findall(r"\[(\d)\] = \"(\w+)\"", listed[1]) == [
        (str(int(codec)), codecs.CODEC_NAMES[codec]) for codec in Compression
    ]
