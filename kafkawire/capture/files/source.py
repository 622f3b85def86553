"""Reads a capture from a path, or from a stream that is still being written.

Law: the format is detected by the first bytes, never by the file name; packets are returned as soon
as their bytes are available.

    file | stdin --> (gzip | zstd)* --> pcap | pcapng --> packet blocks
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from ...errors import BadMagic, CaptureError, TruncatedCapture
from ...magic_numbers import is_pcap, is_pcapng
from .blocks import CaptureDecoder, PacketBlock
from .compression import Unpacked, is_compressed
from .pcap import PcapDecoder
from .pcapng import PcapngDecoder

CHUNK: Final = 1 << 23
"""Bytes read from a file at a time."""

STREAM_CHUNK: Final = 1 << 20
"""Bytes read at a time from a stream, which may return fewer, and from a file with progress
reports.
"""

MAX_NESTING: Final = 3
"""Nested compressions that are decompressed."""

Watch: TypeAlias = Callable[[int, int], None]
"""Called with the progress: how many more bytes of the source, and packets, were read."""


class Capture:
    """One capture file; iterate it once for its packet blocks.

    chunks: the bytes of the file. watch: called with the progress. The iteration raises BadMagic if
    the file is not a capture; all other errors are in `problems`, after the packets before them.
    """

    def __init__(self, chunks: Iterable[bytes], watch: Watch | None = None) -> None:
        self.problems: list[CaptureError] = []
        self._watch = watch
        self._chunks = iter(chunks) if watch is None else _watched(chunks, watch)

    def __iter__(self) -> Iterator[PacketBlock]:
        layers: list[Unpacked] = []
        head, chunks = _peek(self._chunks)
        while is_compressed(head) and len(layers) < MAX_NESTING:
            layers.append(Unpacked(chunks))
            head, chunks = _peek(iter(layers[-1]))
        # Complete compressed data without content is an empty file; damaged data has a problem
        # of its layer.
        if head or all(layer.problem is None for layer in layers):
            for block in self._decode(decoder_for(head), chunks):
                yield block
                if self._watch is not None:
                    self._watch(0, len(block))
        self.problems += [layer.problem for layer in layers if layer.problem is not None]

    def _decode(self, decoder: CaptureDecoder, chunks: Iterator[bytes]) -> Iterator[PacketBlock]:
        self.problems = decoder.problems
        for chunk in chunks:
            yield from decoder.feed(chunk)
        yield from decoder.finish()


def decoder_for(head: bytes) -> CaptureDecoder:
    """Return the decoder of a file that begins with these bytes.

    Raises BadMagic, TruncatedCapture.
    """
    if is_pcap(head):
        return PcapDecoder()
    if is_pcapng(head):
        return PcapngDecoder()
    if len(head) < 4:
        raise TruncatedCapture("truncated file: too short for a magic number", len(head))
    raise BadMagic(f"not a capture file (starts with {head[:4].hex(' ')})")


def read_capture(source: str | Path | BinaryIO, watch: Watch | None = None) -> Capture:
    """Read a capture from a path or a binary stream such as `sys.stdin.buffer`."""
    if isinstance(source, str | Path):
        size = CHUNK if watch is None else STREAM_CHUNK
        return Capture(_read_path(Path(source), size), watch)
    return Capture(_read_stream(source), watch)


def _watched(chunks: Iterable[bytes], watch: Watch) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        watch(len(chunk), 0)


def _read_path(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(size):
            yield chunk


def _read_stream(stream: BinaryIO) -> Iterator[bytes]:
    """Read the available bytes without waiting for a full chunk.

    Otherwise rows of a live capture would be delayed.
    """
    read = getattr(stream, "read1", stream.read)
    while chunk := read(STREAM_CHUNK):
        yield chunk


def _peek(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first 4 bytes, and an iterator that still yields them."""
    head = b""
    while len(head) < 4 and (chunk := next(chunks, b"")):
        head += chunk
    return head[:4], _chain(head, chunks)


def _chain(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from chunks
