"""Compresses and decompresses gzip members (RFC 1952), in whole and in pieces.

The unread rest that zlib-ng copies after a member is at most as long as the member or
FIRST_PIECE, so time is linear in the input for any number of members. Of corrupt data, everything
before the fault is returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

from ...errors import CorruptBatch
from .bounds import bomb, too_many
from .packages import Package

PACKAGE: Final[Package] = Package("gzip", "zlib-ng", "zlib_ng.zlib_ng")

GZIP_WINDOW: Final = 31
"""The code of zlib's interface for a gzip header and trailer."""

FIRST_PIECE: Final = 4096
LARGEST_PIECE: Final = 1 << 18
"""Bytes of a member that are decompressed at a time, at first and at most."""

LARGEST_PART: Final = 1 << 22
"""Bytes that a part of a member becomes at most."""


@final
class Member:
    """Decompresses one gzip member.

    ended: whether its end was reached. unread: bytes of the last piece after the member. fault:
    what is wrong with the data, once `decompress` has returned everything before it.
    """

    def __init__(self) -> None:
        self._stream: Any = PACKAGE.module.decompressobj(GZIP_WINDOW)
        self._fresh: bool = True
        self.ended: bool = False
        self.unread: int = 0
        self.fault: str | None = None

    @property
    def hungry(self) -> bool:
        """Whether all data was consumed."""
        return not self._stream.unconsumed_tail

    def decompress(self, data: bytes, most: int) -> bytes:
        """Decompress the rest of the last call and `data`, to at most `most` bytes."""
        stream, package = self._stream, PACKAGE.module
        if stream.unconsumed_tail:
            data = stream.unconsumed_tail + data
        before = None if self._fresh else stream.copy()
        self._fresh = False
        try:
            read: bytes = stream.decompress(data, most)
        except package.error as error:
            self.fault = str(error)
            return until_fault(before or package.decompressobj(GZIP_WINDOW), data, most)
        self.ended = stream.eof
        self.unread = len(stream.unused_data)
        return read


def until_fault(stream: Any, data: bytes, most: int) -> bytes:
    """Decompress up to where `data` is corrupt, to at most `most` bytes.

    zlib-ng drops its output when it meets a fault, so halves are tried on copies.
    """
    parts: list[bytes] = []
    while len(data) > 1 and most > 0:
        half = data[: len(data) // 2]
        attempt = stream.copy()
        try:
            part = attempt.decompress(half, most)
        except PACKAGE.module.error:
            data = half
            continue
        parts.append(part)
        most -= len(part)
        stream, data = attempt, data[len(half) :]
    return b"".join(parts)


# -- streams of members


def compress(data: bytes, _magic: int, level: int | None) -> bytes:
    """Write one gzip member."""
    package = PACKAGE.module
    stream = package.compressobj(-1 if level is None else level, package.DEFLATED, GZIP_WINDOW)
    written: bytes = stream.compress(data) + stream.flush()
    return written


def decompress(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read every member of a gzip stream."""
    package = PACKAGE.module
    member = package.decompressobj(GZIP_WINDOW)
    try:
        first: bytes = member.decompress(data, limit + 1)
    except package.error as error:
        raise CorruptBatch(f"gzip: {error}") from None
    if len(first) > limit:
        raise bomb("gzip", len(data), limit)
    if not member.eof:
        raise CorruptBatch("gzip: the stream ends inside a member")
    if not member.unused_data:
        return first
    return b"".join(pieces(data, magic, limit, max_frames))


def pieces(data: bytes, _magic: int, limit: int, max_frames: int) -> Iterator[bytes]:
    """Read the members of a gzip stream in pieces."""
    left = limit
    at = members = 0
    while at < len(data) or not members:
        members += 1
        if members > max_frames:
            raise too_many("gzip", "members", max_frames)
        member = Member()
        size = FIRST_PIECE
        is_full = False
        while not member.ended:
            piece = b""
            if member.hungry and not is_full:  # what fills a part may have more output
                piece = data[at : at + size]
                if not piece:
                    raise CorruptBatch("gzip: the stream ends inside a member")
                at += len(piece)
                size = min(2 * size, LARGEST_PIECE)
            part = member.decompress(piece, min(left + 1, LARGEST_PART))
            is_full = len(part) == LARGEST_PART
            left -= len(part)
            if left < 0:
                raise bomb("gzip", len(data), limit)
            yield part
            if member.fault is not None:
                raise CorruptBatch(f"gzip: {member.fault}")
        at -= member.unread
