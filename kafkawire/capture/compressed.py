"""gzip and zstd, taken off as the bytes come.

Law: never more than STEP bytes are unpacked at a time, however small the input, so that a bomb
costs time and no memory; a stream that is cut or damaged gives what it holds, then ends with the
reason.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from ..errors import CaptureError, CorruptCapture, TruncatedCapture

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STEP: Final = 1 << 22
"""Bytes unpacked at a time."""

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
SKIPPABLE: Final = 0x184D2A50
"""zstd's skippable frames begin with this number, the last 4 bits free."""


class _Unpacker(Protocol):
    """One member (gzip) or frame (zstd)."""

    @property
    def ended(self) -> bool: ...

    @property
    def rest(self) -> bytes: ...

    def unpack(self, data: bytes) -> bytes: ...

    @property
    def hungry(self) -> bool: ...


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def ended(self) -> bool:
        return self._inner.eof

    @property
    def rest(self) -> bytes:
        return self._inner.unused_data

    @property
    def hungry(self) -> bool:
        return not self._inner.unconsumed_tail

    def unpack(self, data: bytes) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, STEP)


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstd.ZstdDecompressor()

    @property
    def ended(self) -> bool:
        return self._inner.eof

    @property
    def rest(self) -> bytes:
        return self._inner.unused_data

    @property
    def hungry(self) -> bool:
        return self._inner.needs_input

    def unpack(self, data: bytes) -> bytes:
        return self._inner.decompress(data, STEP)


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with these 4 bytes is gzip or zstd."""
    return _kind(head) is not None


def _kind(head: bytes) -> Callable[[], _Unpacker] | None:
    if head[:2] == GZIP:
        return _Gzip
    if head[:4] == ZSTD or int.from_bytes(head[:4], "little") & ~0xF == SKIPPABLE:
        return _Zstd
    return None


class Unpacked:
    """The bytes inside a compressed stream, all its members or frames one after another.

    Iterate it once; afterwards `problem` says whether the stream was whole.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.problem: CaptureError | None = None
        self._chunks = chunks
        self._position = 0

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        while True:
            while len(rest) < 4 and (chunk := next(self._chunks, b"")):
                rest += chunk
            kind = _kind(rest)
            if kind is None:
                # Zeros behind the last member are padding (tapes, preallocated files).
                if rest.strip(b"\0"):
                    self.problem = CorruptCapture(
                        "bytes behind the compressed data", self._position
                    )
                return
            unpacker = kind()
            yield from self._member(unpacker, rest)
            if self.problem is not None:
                return
            rest = unpacker.rest

    def _member(self, unpacker: _Unpacker, data: bytes) -> Iterator[bytes]:
        while True:
            try:
                out = unpacker.unpack(data)
            except (zlib.error, zstd.ZstdError) as error:
                self.problem = CorruptCapture(f"compressed data: {error}", self._position)
                return
            self._position += len(out)
            if out:
                yield out
            if unpacker.ended:
                return
            data = b""
            if unpacker.hungry and not (data := next(self._chunks, b"")):
                self.problem = TruncatedCapture("the compressed data is cut", self._position)
                return
