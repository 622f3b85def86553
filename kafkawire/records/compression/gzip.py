"""Decompresses gzip members (RFC 1952) in pieces.

The unread rest that zlib-ng copies after a member is at most as long as the member or
FIRST_PIECE, so time is linear in the input for any number of members. Of corrupt data, everything
before the fault is returned.
"""

from __future__ import annotations

from typing import Any, Final, final

from .packages import package_of

GZIP_WINDOW: Final = 31
"""The code of zlib's interface for a gzip header and trailer."""

FIRST_PIECE: Final = 4096
LARGEST_PIECE: Final = 1 << 18
"""Bytes of a member that are decompressed at a time, at first and at most."""


@final
class Member:
    """Decompresses one gzip member.

    ended: whether its end was reached. unread: bytes of the last piece after the member. fault:
    what is wrong with the data, once `decompress` has returned everything before it.
    """

    def __init__(self) -> None:
        self._stream: Any = package_of("gzip").decompressobj(GZIP_WINDOW)
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
        stream, package = self._stream, package_of("gzip")
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
        except package_of("gzip").error:
            data = half
            continue
        parts.append(part)
        most -= len(part)
        stream, data = attempt, data[len(half) :]
    return b"".join(parts)
