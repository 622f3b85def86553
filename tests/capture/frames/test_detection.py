"""The library, the command line and Spark accept the same files as captures."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import struct
import sys
import tarfile
from collections.abc import Callable, Iterator

import pytest

from kafkawire.capture.files.pcap import VARIANTS
from kafkawire.capture.files.recognition import HEAD, STORED, check_head, unpacked_head
from kafkawire.capture.files.source import Capture, decoder_for
from kafkawire.errors import BadMagic, CaptureError, CorruptCapture, TruncatedCapture
from kafkawire_cli.input.inputs import Format, InputError, recognise
from tests.log import written

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGICS = [
    *(magic.to_bytes(4, order) for magic in VARIANTS for order in ("big", "little")),
    b"\x0a\x0d\x0d\x0a",
]
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": zstd.compress,
    "gzip in gzip": lambda data: gzip.compress(gzip.compress(data)),
}


@pytest.mark.parametrize("magic", MAGICS, ids=lambda magic: magic.hex())
@pytest.mark.parametrize("packed", PACKED)
def test_every_format_that_is_read_is_recognised(magic: bytes, packed: str) -> None:
    head = magic + bytes(60)
    decoder_for(head[:4])
    check_head([PACKED[packed](head)])
    assert recognise(head, "x") is Format.CAPTURE


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (b"", TruncatedCapture, "empty"),
        (b"\xd4\xc3\xb2", BadMagic, "not a capture file (starts with d4 c3 b2)"),
        (b"GET / HTTP/1.1", BadMagic, "not a capture file (starts with 47 45 54 20 2f 20 48 54)"),
    ],
)
def test_what_is_not_a_capture_is_refused_by_all(
    packed: str, data: bytes, kind: type[CaptureError], reason: str
) -> None:
    stored = PACKED[packed](data)
    with pytest.raises(kind) as refused:
        check_head([stored])
    assert refused.value.reason == reason
    with pytest.raises(CaptureError):
        list(Capture([stored] if stored else []))


OTHERS: dict[str, tuple[bytes, str]] = {
    "xz": (lzma.compress(bytes(60)), "compressed with xz; decompress it first: xz -d"),
    "bzip2": (bz2.compress(bytes(60)), "compressed with bzip2; decompress it first: bzip2 -d"),
    "lz4": (b"\x04\x22\x4d\x18" + bytes(60), "compressed with lz4; decompress it first: lz4 -d"),
    "tar": (
        tarfile.TarInfo(bytes(range(33, 127)).decode()).tobuf(),
        "a tar archive; unpack it first: tar -xf",
    ),
    "snoop": (
        b"snoop\0\0\0" + bytes(60),
        "a capture in the format of snoop; convert it first: editcap OLD NEW.pcapng",
    ),
    "LANalyzer": (
        b"\x01\x10\x4c\0\x01\x05Trace Display Trace File" + bytes(60),
        "a capture in the format of LANalyzer; convert it first: editcap OLD NEW.pcapng",
    ),
    "segment": (written.batch(0), "a segment of a broker's log; read it with kafkawire log"),
}


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("other", OTHERS)
def test_other_formats_are_named_with_what_makes_captures_of_them(other: str, packed: str) -> None:
    data, expected = OTHERS[other]
    with pytest.raises(BadMagic) as refused:
        check_head([PACKED[packed](data)])
    assert refused.value.reason == f"not a capture file: {expected}"
    with pytest.raises(InputError) as unknown:
        recognise(data, "x")  # not as frames: the magic number of lz4 is a size, too
    assert str(unknown.value) == f"x: {expected}"


def test_damage_hides_nothing_that_stands_before_it() -> None:
    whole = gzip.compress(bytes(range(256)) * 64, compresslevel=0)
    broken = whole[:3000] + b"\xff" * (len(whole) - 3000)
    assert unpacked_head([broken])[:2000] == (bytes(range(256)) * 64)[:2000]
    with pytest.raises(CorruptCapture):
        unpacked_head([b"\x1f\x8b\x08\xff" + bytes(20)])


def test_a_bomb_is_looked_at_no_further_than_its_head() -> None:
    bomb = gzip.compress(bytes(1 << 26))
    assert len(unpacked_head([bomb])) <= 2 * HEAD


NOISE = random.Random(3).randbytes(1 << 19)
CAPTURE = MAGICS[0] + NOISE
"""It does not compress: the first block of zstd has 128 KiB."""

SKIPPABLE = struct.pack("<II", 0x184D2A53, 100_000) + NOISE[:100_000]


def gzip_with(flags: int, fields: bytes) -> bytes:
    """Compress a capture in gzip whose header has some optional fields."""
    plain = gzip.compress(CAPTURE, mtime=0)
    return plain[:3] + bytes([flags]) + plain[4:10] + fields + plain[10:]


LARGE_HEADS: dict[str, bytes] = {
    "zstd": zstd.compress(CAPTURE),
    "zstd after skippable frames": SKIPPABLE * 20 + zstd.compress(CAPTURE),
    "zstd in zstd": zstd.compress(zstd.compress(CAPTURE)),
    "zstd in gzip": gzip.compress(zstd.compress(CAPTURE)),
    "gzip with an extra field": gzip_with(4, struct.pack("<H", 65_535) + NOISE[:65_535]),
    "gzip with a file name": gzip_with(8, b"n" * 1_000_000 + b"\0"),
    "gzip with a comment": gzip_with(16, b"c" * 1_000_000 + b"\0"),
    "gzip after empty members": gzip.compress(b"") * 1000 + gzip.compress(CAPTURE),
    "zstd after empty frames": zstd.compress(b"") * 1000 + zstd.compress(CAPTURE),
}


def parts(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [100, HEAD, 1 << 23])
@pytest.mark.parametrize("kind", LARGE_HEADS)
def test_content_that_begins_late_is_recognised(kind: str, size: int) -> None:
    check_head(parts(LARGE_HEADS[kind], size))
    assert unpacked_head(parts(LARGE_HEADS[kind], size)) == CAPTURE[:HEAD]


def test_no_more_is_taken_than_the_content_needs() -> None:
    taken = 0

    def counted(data: bytes) -> Iterator[bytes]:
        nonlocal taken
        for part in parts(data, HEAD):
            taken += len(part)
            yield part

    check_head(counted(LARGE_HEADS["zstd"]))
    assert taken <= (1 << 17) + HEAD
    taken = 0
    endless = struct.pack("<II", 0x184D2A53, 1 << 30) + bytes(1 << 23)
    with pytest.raises(CorruptCapture):
        check_head(counted(endless))
    assert taken <= STORED
