"""The codecs of record batches, one row each, and compression with them.

A codec is written in the form that Kafka's own clients write; `decompression` reads more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from ...errors import UnsupportedCompression
from . import gzip, lz4, snappy, zstd
from .packages import Package


class Compression(IntEnum):
    """The codec in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Codec(NamedTuple):
    """One codec.

    from_magic: the first magic that may carry it. package: what it needs. compress: of (data,
    magic, level). decompress: of (data, magic, most bytes, most frames); pieces: the same, in
    pieces.
    """

    compression: Compression
    from_magic: int
    package: Package | None
    compress: Callable[[bytes, int, int | None], bytes]
    decompress: Callable[[bytes, int, int, int], bytes]
    pieces: Callable[[bytes, int, int, int], Iterator[bytes]]


def plain(data: bytes, _magic: int, _level: int | None) -> bytes:
    """Return the data: no codec."""
    return data


def plain_bytes(data: bytes, _magic: int, _limit: int, _max_frames: int) -> bytes:
    """Return the data: no codec."""
    return data


def plain_pieces(data: bytes, _magic: int, _limit: int, _max_frames: int) -> Iterator[bytes]:
    """Yield the data: no codec."""
    yield data


# fmt: off
CODECS: Final[tuple[Codec, ...]] = (
    Codec(Compression.NONE, 0, None, plain, plain_bytes, plain_pieces),
    Codec(Compression.GZIP, 0, gzip.PACKAGE, gzip.compress, gzip.decompress, gzip.pieces),
    Codec(Compression.SNAPPY, 0, snappy.PACKAGE, snappy.compress, snappy.decompress, snappy.pieces),
    Codec(Compression.LZ4, 0, lz4.PACKAGE, lz4.compress, lz4.decompress, lz4.pieces),
    Codec(Compression.ZSTD, 2, zstd.PACKAGE, zstd.compress, zstd.decompress, zstd.pieces),
)
"""By number."""

# fmt: on
COMPRESSION_BITS: Final = 0x07
"""The codec in a batch's attributes."""

CODEC_NAMES: Final = tuple([codec.compression.name.lower() for codec in CODECS])
"""Names of the codecs as clients configure them, by their numbers."""

TOPIC_CODEC_NAMES: Final = ("uncompressed", *CODEC_NAMES[1:])
"""The same as topics configure them."""


def codec_of(attributes: int, magic: int) -> Compression:
    """Return the codec; UnsupportedCompression if it is unknown or not allowed in that magic."""
    code = attributes & COMPRESSION_BITS
    if code >= len(CODECS):
        raise UnsupportedCompression(f"unknown codec {code}")
    codec = CODECS[code]
    if codec.from_magic > magic:
        raise UnsupportedCompression(f"{CODEC_NAMES[code]} is not allowed in magic {magic}")
    return codec.compression


def compress(codec: Compression, data: bytes, magic: int, level: int | None = None) -> bytes:
    """Compress `data` as a batch of that magic carries it; `level` None is the codec's default."""
    row = CODECS[codec]
    if row.from_magic > magic:
        raise UnsupportedCompression(f"{CODEC_NAMES[codec]} is not allowed in magic {magic}")
    write = row.compress
    return write(data, magic, level)
