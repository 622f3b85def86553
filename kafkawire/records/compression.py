"""The codecs of record batches, each bounded: bytes out never exceed what the caller allows.

Law: memory is taken for what a stream proves to hold, never for what it claims. Each codec's
package is imported when first needed; a missing one is UnsupportedCompression that names it.

    gzip    RFC 1952, one or more members                    zlib
    snappy  Java's framing (xerial), or one raw block        cramjam
    lz4     frames; magic 0 has a header checksum of its own lz4
    zstd    RFC 8878 frames                                  zstandard

Most batches are of few bytes: making what a frame of lz4 or zstd is read with takes ten times as
long as reading it. So such contexts are kept, for who takes one next.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache, partial
from typing import Any, Final

from ..errors import CorruptBatch, LimitExceeded, UnsupportedCompression
from . import lz4, snappy


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

FIRST_BUFFER: Final = 32_768
GROWTH: Final = 8

PACKAGES: Final = {"snappy": "cramjam", "lz4": "lz4", "zstd": "zstandard"}

MODULES: Final = {"lz4": "lz4.frame"}
"""What is imported of them, where that is a module inside."""

ZSTD_LEVEL: Final = 3
"""zstd's own default, and Kafka's."""

DEAREST_LEVEL: Final = 9
"""The highest level of zstd whose context is kept: those above take tens of megabytes."""

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
def package_of(codec: str) -> Any:
    """Import the package that a codec needs."""
    name = PACKAGES[codec]
    try:
        return importlib.import_module(MODULES.get(codec, name))
    except ImportError as error:
        raise UnsupportedCompression(
            f"{codec} needs the package {name}, which is not installed"
        ) from error


def bomb(codec: str, size: int, limit: int) -> LimitExceeded:
    """Make the error for `size` bytes that become more than `limit`."""
    ratio = limit / max(size, 1)
    return LimitExceeded(
        f"{codec}: {size} bytes become more than the {limit} allowed (over {ratio:.1f}:1)"
    )


def capacity(data: bytes, limit: int) -> int:
    """Say how much memory is taken at first for what `data` becomes."""
    return min(limit, max(FIRST_BUFFER, GROWTH * len(data)))


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
    package = package_of("snappy")
    try:
        return bytes(package.snappy.decompress_raw(block))
    except package.DecompressionError as error:
        raise CorruptBatch(f"snappy: {error}") from None


MOST_KEPT: Final = 4
"""Contexts of a kind that are kept, for as many threads at a time."""

_kept: Final[dict[str, list[Any]]] = {}


def _taken(kind: str, make: Callable[[], Any]) -> Any:
    """Take a context, which nobody else has until it is given back."""
    try:
        return _kept.setdefault(kind, []).pop()
    except IndexError:
        return make()


def _give_back(kind: str, context: Any) -> None:
    idle = _kept[kind]
    if len(idle) < MOST_KEPT:
        idle.append(context)


def unlz4(data: bytes, magic: int, limit: int) -> bytes:
    """Read lz4 frames; in magic 0 the header checksum is put right first."""
    frames = lz4.with_standard_checksum(data) if magic == 0 else data
    context = _taken("lz4", package_of("lz4").create_decompression_context)
    read = _lz4_frames(context, frames, limit)
    _give_back("lz4", context)  # not after an error, which it would remember
    return read


def _lz4_frames(context: Any, data: bytes, limit: int) -> bytes:
    package = package_of("lz4")
    parts: list[bytes] = []
    left, rest = limit, data
    while True:
        # more than may come out, for the end of a frame comes with the byte after the last
        most = capacity(rest, left) + 1
        try:
            part, read, ended = package.decompress_chunk(context, rest, max_length=most)
        except RuntimeError as error:
            raise CorruptBatch(f"lz4: {error}") from None
        parts.append(part)
        rest = rest[read:]
        left -= len(part)
        if left < 0:
            raise bomb("lz4", len(data), limit)
        if ended and not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        if not ended and len(part) < most:
            raise CorruptBatch("lz4: the stream ends inside a frame")


def unzstd(data: bytes, _magic: int, limit: int) -> bytes:
    """Read zstd frames."""
    read = _short_zstd(data, capacity(data, limit))
    return _zstd_frames(data, limit) if read is None else read


def _short_zstd(data: bytes, limit: int) -> bytes | None:
    """Read one frame of not more than `limit` bytes; None of others."""
    package = package_of("zstd")
    reader = _taken("zstd", package.ZstdDecompressor)
    try:
        if package.frame_content_size(data) > limit:
            return None
        read: bytes = reader.decompress(data, max_output_size=limit, allow_extra_data=False)
        return read
    except package.ZstdError:
        return None
    finally:
        _give_back("zstd", reader)


def _zstd_frames(data: bytes, limit: int) -> bytes:
    """Read frame after frame."""
    if sys.version_info >= (3, 14):
        from compression import zstd as frames
    else:
        from backports import zstd as frames

    parts: list[bytes] = []
    left = limit
    rest = data
    while True:
        frame = frames.ZstdDecompressor()
        try:
            part = frame.decompress(rest, left + 1)
        except frames.ZstdError as error:
            raise CorruptBatch(f"zstd: {error}") from None
        left -= len(part)
        if left < 0:
            raise bomb("zstd", len(data), limit)
        if not frame.eof:
            raise CorruptBatch("zstd: the stream ends inside a frame")
        parts.append(part)
        rest = frame.unused_data
        if not rest:
            return b"".join(parts)


def gzip(data: bytes, _magic: int, level: int | None) -> bytes:
    """Write one gzip member."""
    stream = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, GZIP_WINDOW)
    return stream.compress(data) + stream.flush()


def to_snappy(data: bytes, _magic: int, _level: int | None) -> bytes:
    """Write Java's framing, which every Kafka client reads; snappy has no levels."""
    module = package_of("snappy").snappy
    return snappy.framed([bytes(module.compress_raw(part)) for part in snappy.parts(data)])


def to_lz4(data: bytes, magic: int, level: int | None) -> bytes:
    """Write one lz4 frame; a level chooses the slow, dense mode."""
    package_of("lz4")
    from lz4.block import compress

    dense = {} if level is None else {"mode": "high_compression", "compression": level}
    return lz4.frame(data, magic, lambda part: compress(part, store_size=False, **dense))


def to_zstd(data: bytes, _magic: int, level: int | None) -> bytes:
    """Write one zstd frame."""
    chosen = ZSTD_LEVEL if level is None else level
    make = partial(package_of("zstd").ZstdCompressor, level=chosen)
    writer = _taken(f"zstd {chosen}", make)
    written: bytes = writer.compress(data)
    if chosen <= DEAREST_LEVEL:
        _give_back(f"zstd {chosen}", writer)
    return written


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
