"""Checks by its first bytes whether a file is a capture.

`kafkawire decode` and the Spark job reject the same files, because both use this check; a
rejected file has no packets.

    first bytes --> (gzip | zstd)* --> pcap | pcapng | printed packets: a capture
                                  `--> empty | corrupt | anything else: rejected with the reason

As much of a file is read as the first bytes of its content need: a block of zstd has up to 128 KiB
and no content before its end, a gzip header has texts of any length, and skippable frames come
before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...errors import BadMagic, CorruptCapture, TruncatedCapture
from ...magic_numbers import is_pcap, is_pcapng
from ...printed import splitter_of
from .source import MAX_NESTING, Unpacked, is_compressed, not_a_capture, recognised

HEAD: Final = 1 << 12
"""Bytes of content that are checked, and of a file that are read at a time."""

MAGIC: Final = 8
"""Bytes of content that are enough to recognise a capture, and to show what else it is."""

STORED: Final = 1 << 22
"""Bytes of a file, as stored, in which its content must begin."""

STEP: Final = 1 << 6
"""Bytes decompressed at a time, so that data before damage is still checked."""


def check_head(stored: Iterable[bytes]) -> None:
    """Check the first bytes of a file, as stored; only those that are needed are taken.

    Raises TruncatedCapture if it is empty, CorruptCapture if no byte decompresses or none of the
    first STORED bytes is content, BadMagic if it is not a capture.
    """
    content, more = _content(stored, MAGIC)
    if not content:
        raise TruncatedCapture("empty")
    if is_pcap(content) or is_pcapng(content):
        return
    head, more = recognised(content, _joined(content, more))
    if splitter_of(head) is None:
        raise BadMagic(not_a_capture(_start(more, HEAD)[0], MAGIC))


def unpacked_head(stored: Iterable[bytes], enough: int = HEAD) -> bytes:
    """Return the first bytes of the content of a file: `enough`, or all that there are.

    stored: the file in parts, as stored; only those that are needed are taken. Raises
    CorruptCapture if no byte decompresses, or none of the first STORED bytes is content.
    """
    return _content(stored, enough)[0][:enough]


def _content(stored: Iterable[bytes], enough: int) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes of the content, `enough` or all that there are, and the rest."""
    layers: list[Unpacked] = []
    first = _Stored(stored)
    head, parts = _start(iter(first), 4)
    while is_compressed(head[:4]) and len(layers) < MAX_NESTING:
        layers.append(Unpacked(_slices(_joined(head, parts))))
        head, parts = _start(iter(layers[-1]), 4)
    content, rest = _start(_joined(head, parts), enough)
    for layer in layers:
        if not content and isinstance(layer.problem, CorruptCapture):
            raise layer.problem
    if layers and not content and first.ended_early:
        raise CorruptCapture(f"no content in the first {STORED} bytes")
    return content, rest


class _Stored:
    """The first STORED bytes of a file. ended_early: whether there are more."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = parts
        self.ended_early = False

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._parts:
            yield part
            size += len(part)
            if size >= STORED:
                self.ended_early = True
                return


def _start(parts: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """Return the first `size` bytes or more, or all, and the rest."""
    head = bytearray()
    while len(head) < size and (part := next(parts, b"")):
        head += part
    return bytes(head), parts


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _slices(parts: Iterator[bytes]) -> Iterator[bytes]:
    for data in parts:
        for start in range(0, len(data), STEP):
            yield data[start : start + STEP]
