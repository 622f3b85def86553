"""A capture, from a path or a stream that may still be written: what it is, and its packets.

Law: the format is told by the first bytes, never by the name; packets come out as soon as their
bytes are there.

    file | stdin --> (gzip | zstd)* --> pcap | pcapng --> packet blocks
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from ...errors import BadMagic, CaptureError, TruncatedCapture
from .blocks import CaptureDecoder, PacketBlock
from .compression import Unpacked, is_compressed
from .pcap import PcapDecoder, is_pcap
from .pcapng import PcapngDecoder, is_pcapng

CHUNK: Final = 1 << 23
"""Bytes read from a file at a time."""

STREAM_CHUNK: Final = 1 << 20
"""Bytes read at a time from a stream, which gives less when it has less, and from a file that
somebody watches.
"""

MAX_NESTING: Final = 3
"""Compressions of a compression that are taken off."""

Watch: TypeAlias = Callable[[int, int], None]
"""Told as reading goes on: how many bytes of the source, how many packets more are done with."""


class Capture:
    """One capture file; iterate it once for its packet blocks.

    chunks: the bytes of the file. watch: told how far reading is. Raises BadMagic from the
    iteration if they are no capture at all; everything else that is wrong with them is in
    `problems`, and what was read before it stands.
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
        # Compressed data that is whole and holds nothing is an empty file; if it is damaged, the
        # problem of the layer says so.
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
    """Choose the decoder for a file that begins with these bytes. Raises BadMagic,
    TruncatedCapture.
    """
    if is_pcap(head):
        return PcapDecoder()
    if is_pcapng(head):
        return PcapngDecoder()
    if len(head) < 4:
        raise TruncatedCapture("the file ends before it says what it is", len(head))
    raise BadMagic(f"no capture format begins with {head[:4].hex()}")


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
    """Read what is there, without waiting for a full chunk: rows of a live capture must not wait
    for the next.
    """
    read = getattr(stream, "read1", stream.read)
    while chunk := read(STREAM_CHUNK):
        yield chunk


def _peek(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Look at the first 4 bytes; the iterator returned still gives them."""
    head = b""
    while len(head) < 4 and (chunk := next(chunks, b"")):
        head += chunk
    return head[:4], _chain(head, chunks)


def _chain(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from chunks
