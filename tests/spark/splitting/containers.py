"""Compressed files of many members, made by independent writers."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def bgzf_member(data: bytes) -> bytes:
    """Write a member as section 4.1 of the SAM specification has it."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = packer.compress(data) + packer.flush()
    head = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff\x06\0BC\x02\0"
    size = struct.pack("<H", len(body) + 25)
    return head + size + body + struct.pack("<II", zlib.crc32(data), len(data))


def bgzf(pieces: Iterable[bytes]) -> bytes:
    return b"".join(map(bgzf_member, pieces)) + bgzf_member(b"")


def zstd_frames(pieces: Iterable[bytes], skippable: int = 7) -> bytes:
    """Write frames, before every few a skippable one."""
    out = []
    for number, piece in enumerate(pieces):
        if number % skippable == skippable - 1:
            out.append(struct.pack("<II", 0x184D2A53, 5) + b"notes")
        out.append(zstd.compress(piece, 3))
    return b"".join(out)


def seekable_zstd(pieces: Sequence[bytes]) -> bytes:
    """Write frames without sizes of their own, and the seek table that has them."""
    packed = []
    for piece in pieces:
        packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.content_size_flag: 0})
        packed.append(packer.compress(piece) + packer.flush())
    sizes = zip(map(len, packed), map(len, pieces), strict=True)
    table = b"".join(struct.pack("<II", *each) for each in sizes)
    footer = struct.pack("<IBI", len(pieces), 0, 0x8F92EAB1)
    head = struct.pack("<II", 0x184D2A5E, len(table) + len(footer))
    return b"".join(packed) + head + table + footer


def pieces_of(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Cut bytes into pieces of sizes that repeat."""
    places = [0]
    while places[-1] < len(data):
        places.append(min(len(data), places[-1] + sizes[len(places) % len(sizes)]))
    return [data[low:high] for low, high in pairwise(places)]
