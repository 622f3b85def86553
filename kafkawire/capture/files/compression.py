"""Decompresses gzip and zstd streams incrementally.

Law: at most STEP bytes are decompressed at a time, so a decompression bomb costs time but no
memory. A member or frame is read in chunks of doubling size, so that the unread rest, which the
decompressor copies, is not much larger than the part read: time is linear in the input. The valid
data before truncation or corruption is returned, then the problem.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from ...errors import CaptureError, CorruptCapture, TruncatedCapture
from ...magic_numbers import is_gzip, is_zstd
from ...records.gzip import FIRST_PIECE, LARGEST_PIECE, Member

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STEP: Final = 1 << 22
"""Bytes decompressed at a time."""


class _Unpacker(Protocol):
    """One member (gzip) or frame (zstd).

    unread: bytes of the last chunk behind the member or frame. fault: the error, after `decompress`
    returned the data before it. hungry: whether `decompress` needs more bytes.
    """

    @property
    def ended(self) -> bool: ...

    @property
    def unread(self) -> int: ...

    @property
    def fault(self) -> str | None: ...

    @property
    def hungry(self) -> bool: ...

    def decompress(self, data: bytes, most: int) -> bytes: ...


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstd.ZstdDecompressor()
        self.fault: str | None = None

    @property
    def ended(self) -> bool:
        return self._inner.eof

    @property
    def unread(self) -> int:
        return len(self._inner.unused_data)

    @property
    def hungry(self) -> bool:
        return self._inner.needs_input

    def decompress(self, data: bytes, most: int) -> bytes:
        try:
            return self._inner.decompress(data, most)
        except zstd.ZstdError as error:
            self.fault = str(error)
            return b""


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with these 4 bytes is gzip or zstd."""
    return _kind(head) is not None


def _kind(head: bytes) -> Callable[[], _Unpacker] | None:
    if is_gzip(head):
        return Member
    if is_zstd(head):
        return _Zstd
    return None


class Unpacked:
    """The decompressed bytes of all members or frames of a stream.

    Iterate it once; afterwards `problem` is None if the stream was complete and valid.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.problem: CaptureError | None = None
        self._chunks = chunks
        self._chunk = b""
        self._at = 0
        self._position = 0

    def __iter__(self) -> Iterator[bytes]:
        while self.problem is None:
            while len(self._chunk) - self._at < 4 and (more := next(self._chunks, b"")):
                self._chunk, self._at = self._chunk[self._at :] + more, 0
            kind = _kind(self._chunk[self._at : self._at + 4])
            if kind is None:
                # Zeros behind the last member are padding (tapes, preallocated files).
                if self._chunk[self._at :].strip(b"\0"):
                    self.problem = CorruptCapture(
                        "trailing bytes behind the compressed data", self._position
                    )
                return
            yield from self._member(kind())

    def _member(self, unpacker: _Unpacker) -> Iterator[bytes]:
        size = FIRST_PIECE
        while not unpacker.ended:
            data = b""
            if unpacker.hungry:
                data = self._piece(size)
                size = min(2 * size, LARGEST_PIECE)
                if not data:
                    self.problem = TruncatedCapture("truncated compressed data", self._position)
                    return
            out = unpacker.decompress(data, STEP)
            self._position += len(out)
            if out:
                yield out
            if unpacker.fault is not None:
                self.problem = CorruptCapture(
                    f"corrupt compressed data: {unpacker.fault}", self._position
                )
                return
        self._at -= unpacker.unread

    def _piece(self, most: int) -> bytes:
        """Return up to `most` bytes of the current or the next chunk; none at the end."""
        if self._at == len(self._chunk):
            self._chunk, self._at = next(self._chunks, b""), 0
        piece = self._chunk[self._at : self._at + most]
        self._at += len(piece)
        return piece
