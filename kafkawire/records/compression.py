"""The codecs of record batches, each bounded: bytes out never exceed what the caller allows.

Law: memory is taken for what a stream proves to hold, never for what it claims. Each codec's
package is imported when first needed; a missing one is UnsupportedCompression that names it.

    gzip    RFC 1952, one or more members                    zlib
    snappy  Java's framing (xerial), or one raw block        cramjam
    lz4     frames; magic 0 has a header checksum of its own cramjam
    zstd    RFC 8878 frames                                  cramjam, zstandard if there; Python's
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, Final

from ..errors import CorruptBatch, LimitExceeded, UnsupportedCompression
from . import lz4, snappy, zstd


class Compression(IntEnum):
    """The codec in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


COMPRESSION_BITS: Final = 0x07
"""Where a batch's attributes say the codec."""
CODECS: Final = tuple(Compression)
FROM_MAGIC: Final = (0, 0, 0, 0, 2)
"""The first magic that may carry each codec."""

OVERFLOW: Final = "failed to write whole buffer"
"""What Rust's standard library, and so cramjam, says when the output buffer is full."""

FIRST_BUFFER: Final = 32_768
GROWTH: Final = 8

GZIP_WINDOW: Final = 31
"""zlib's code for a gzip header and trailer."""


def codec_of(attributes: int, magic: int) -> Compression:
    """Name the codec; UnsupportedCompression if it is unknown or not allowed in that magic."""
    code = attributes & COMPRESSION_BITS
    if code >= len(CODECS):
        raise UnsupportedCompression(f"codec {code} is not known")
    codec = CODECS[code]
    if FROM_MAGIC[code] > magic:
        raise UnsupportedCompression(f"{codec.name.lower()} is not allowed in magic {magic}")
    return codec


def decompress(codec: Compression, data: bytes, magic: int, limit: int) -> bytes:
    """Decompress `data` to at most `limit` bytes.

    Raises LimitExceeded with the ratio reached, CorruptBatch where the stream is broken.
    """
    return DECOMPRESSORS[codec](data, magic, limit)


def compress(codec: Compression, data: bytes, magic: int, level: int | None = None) -> bytes:
    """Compress `data` as a batch of that magic carries it; `level` None is the codec's default."""
    if FROM_MAGIC[codec] > magic:
        raise UnsupportedCompression(f"{codec.name.lower()} is not allowed in magic {magic}")
    return COMPRESSORS[codec](data, magic, level)


@cache
def cramjam(codec: str) -> Any:
    """Import cramjam, which that codec needs."""
    try:
        return importlib.import_module("cramjam")
    except ImportError as error:
        raise UnsupportedCompression(
            f"{codec} needs the package cramjam, which is not installed"
        ) from error


def bomb(codec: str, size: int, limit: int) -> LimitExceeded:
    """Make the error for `size` bytes that become more than `limit`."""
    ratio = limit / max(size, 1)
    return LimitExceeded(
        f"{codec}: {size} bytes become more than the {limit} allowed (over {ratio:.1f}:1)"
    )


def into_buffer(codec: str, data: bytes, limit: int) -> bytes:
    """Decompress frames into a buffer that grows with what they turn out to hold."""
    package = cramjam(codec)
    module = getattr(package, codec)
    capacity = min(limit, max(FIRST_BUFFER, GROWTH * len(data)))
    while True:
        buffer = bytearray(capacity)
        try:
            size = module.decompress_into(data, memoryview(buffer))
            return bytes(memoryview(buffer)[:size])
        except package.DecompressionError as error:
            if OVERFLOW not in str(error):
                raise CorruptBatch(f"{codec}: {error}") from None
        if capacity == limit:
            raise bomb(codec, len(data), limit)
        capacity = min(limit, capacity * GROWTH)


def gunzip(data: bytes, _magic: int, limit: int) -> bytes:
    """Read every member of a gzip stream."""
    parts: list[bytes] = []
    left = limit
    rest = data
    while True:
        member = zlib.decompressobj(GZIP_WINDOW)
        try:
            part = member.decompress(rest, left + 1)
        except zlib.error as error:
            raise CorruptBatch(f"gzip: {error}") from None
        left -= len(part)
        if left < 0:
            raise bomb("gzip", len(data), limit)
        if not member.eof:
            raise CorruptBatch("gzip: the stream ends inside a member")
        parts.append(part)
        rest = member.unused_data
        if not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)


def unsnappy(data: bytes, _magic: int, limit: int) -> bytes:
    """Read Java's framing, or one raw block."""
    parts: list[bytes] = []
    left = limit
    for block in snappy.blocks(data):
        size = snappy.block_size(block)
        if size > left:
            raise bomb("snappy", len(data), limit)
        left -= size
        parts.append(unsnappy_block(block))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def unsnappy_block(block: bytes) -> bytes:
    """Decompress one raw block whose size is known to be credible."""
    package = cramjam("snappy")
    try:
        return bytes(package.snappy.decompress_raw(block))
    except package.DecompressionError as error:
        raise CorruptBatch(f"snappy: {error}") from None


def unlz4(data: bytes, magic: int, limit: int) -> bytes:
    """Read lz4 frames; in magic 0 the header checksum is put right first."""
    frames = lz4.with_standard_checksum(data) if magic == 0 else data
    return into_buffer("lz4", frames, limit)


def unzstd(data: bytes, _magic: int, limit: int) -> bytes:
    """Read zstd frames."""
    content = zstd.decompressed(data, limit)
    return into_buffer("zstd", data, limit) if content is None else content


def gzip(data: bytes, _magic: int, level: int | None) -> bytes:
    """Write one gzip member."""
    stream = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, GZIP_WINDOW)
    return stream.compress(data) + stream.flush()


def to_snappy(data: bytes, _magic: int, _level: int | None) -> bytes:
    """Write Java's framing, which every Kafka client reads; snappy has no levels."""
    module = cramjam("snappy").snappy
    return snappy.framed([bytes(module.compress_raw(part)) for part in snappy.parts(data)])


def to_lz4(data: bytes, magic: int, level: int | None) -> bytes:
    """Write one lz4 frame; a level chooses the slow, dense mode."""
    module = cramjam("lz4").lz4
    dense = {} if level is None else {"mode": "high_compression", "compression": level}
    return lz4.frame(
        data, magic, lambda part: bytes(module.compress_block(part, store_size=False, **dense))
    )


def to_zstd(data: bytes, _magic: int, level: int | None) -> bytes:
    """Write one zstd frame."""
    return zstd.compressed(data, level)


def as_it_is(data: bytes, _magic: int, _third: int | None) -> bytes:
    """Return the data: no codec."""
    return data


DECOMPRESSORS: Final[tuple[Callable[[bytes, int, int], bytes], ...]] = (
    as_it_is,
    gunzip,
    unsnappy,
    unlz4,
    unzstd,
)
COMPRESSORS: Final[tuple[Callable[[bytes, int, int | None], bytes], ...]] = (
    as_it_is,
    gzip,
    to_snappy,
    to_lz4,
    to_zstd,
)
"""By codec."""
