"""Compresses record batches; names the codecs.

A codec is written in the form that Kafka's own clients write; `decompression` reads more.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Final

from ...errors import UnsupportedCompression
from . import lz4, snappy
from .gzip import GZIP_WINDOW
from .packages import give_back, package_of, taken


class Compression(IntEnum):
    """The codec in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


COMPRESSION_BITS: Final = 0x07
"""The codec in a batch's attributes."""
CODECS: Final = tuple(Compression)
CODEC_NAMES: Final = tuple([codec.name.lower() for codec in CODECS])
"""Names of the codecs as clients configure them, by their numbers."""

TOPIC_CODEC_NAMES: Final = ("uncompressed", *CODEC_NAMES[1:])
"""The same as topics configure them."""

FROM_MAGIC: Final = (0, 0, 0, 0, 2)
"""The first magic that may carry each codec."""

ZSTD_LEVEL: Final = 3
"""zstd's own default, and Kafka's."""

DEAREST_LEVEL: Final = 9
"""The highest level of zstd whose contexts are reused: those above take tens of megabytes."""


def codec_of(attributes: int, magic: int) -> Compression:
    """Return the codec; UnsupportedCompression if it is unknown or not allowed in that magic."""
    code = attributes & COMPRESSION_BITS
    if code >= len(CODECS):
        raise UnsupportedCompression(f"unknown codec {code}")
    codec = CODECS[code]
    if FROM_MAGIC[code] > magic:
        raise UnsupportedCompression(f"{CODEC_NAMES[codec]} is not allowed in magic {magic}")
    return codec


def compress(codec: Compression, data: bytes, magic: int, level: int | None = None) -> bytes:
    """Compress `data` as a batch of that magic carries it; `level` None is the codec's default."""
    if FROM_MAGIC[codec] > magic:
        raise UnsupportedCompression(f"{CODEC_NAMES[codec]} is not allowed in magic {magic}")
    return COMPRESSORS[codec](data, magic, level)


def gzip(data: bytes, _magic: int, level: int | None) -> bytes:
    """Write one gzip member."""
    package = package_of("gzip")
    stream = package.compressobj(-1 if level is None else level, package.DEFLATED, GZIP_WINDOW)
    written: bytes = stream.compress(data) + stream.flush()
    return written


def to_snappy(data: bytes, _magic: int, _level: int | None) -> bytes:
    """Write Java's framing, which every Kafka client reads; snappy has no levels."""
    module = package_of("snappy").snappy
    return snappy.framed([bytes(module.compress_raw(part)) for part in snappy.parts(data)])


def to_lz4(data: bytes, magic: int, level: int | None) -> bytes:
    """Write one lz4 frame; a level chooses the slow, dense mode."""
    package_of("lz4")
    # compiled code puts imported names into the module: one called `compress` would replace ours
    from lz4.block import compress as compress_block

    dense = {} if level is None else {"mode": "high_compression", "compression": level}
    return lz4.frame(data, magic, lambda part: compress_block(part, store_size=False, **dense))


def to_zstd(data: bytes, _magic: int, level: int | None) -> bytes:
    """Write one zstd frame."""
    chosen = ZSTD_LEVEL if level is None else level
    make = partial(package_of("zstd").ZstdCompressor, level=chosen)
    writer = taken(f"zstd {chosen}", make)
    written: bytes = writer.compress(data)
    if chosen <= DEAREST_LEVEL:
        give_back(f"zstd {chosen}", writer)
    return written


def as_it_is(data: bytes, _magic: int, _third: int | None) -> bytes:
    """Return the data: no codec."""
    return data


COMPRESSORS: Final[tuple[Callable[[bytes, int, int | None], bytes], ...]] = (
    as_it_is,
    gzip,
    to_snappy,
    to_lz4,
    to_zstd,
)
"""By codec."""
