"""Reads a capture, compressed or not, from a path, or from a stream that is still being written.

The format is detected by the first bytes, never by the file name; packets are returned as soon
as their bytes are available. At most STEP bytes are decompressed at a time, so a decompression bomb
costs time but no memory. A member or frame is read in chunks of doubling size, so that the unread
rest, which the decompressor copies, is not much larger than the part read: time is linear in the
input. The valid data before truncation or corruption is returned, then the problem.

    file | stdin --> (gzip | zstd)* --> pcap | pcapng | printed packets --> packet blocks
"""

# over 300 lines: files and streams, and their compression

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from os import SEEK_CUR
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeAlias

from ...errors import BadMagic, CaptureError, CorruptCapture, TruncatedCapture
from ...magic_numbers import is_gzip, is_pcap, is_pcapng, is_zstd, other_format
from ...printed import HEAD, more_of_text, splitter_of, why_not_printed
from ...records.compression.gzip import FIRST_PIECE, LARGEST_PIECE, Member
from .blocks import Block, CaptureDecoder, PacketBlock
from .pcap import PcapDecoder

CHUNK: Final = 1 << 23
"""Bytes read from a file at a time."""

STREAM_CHUNK: Final = 1 << 20
"""Bytes read at a time from a stream, which may return fewer, and from a file with progress
reports.
"""

STEP: Final = 1 << 22
"""Bytes decompressed at a time."""

MAX_NESTING: Final = 3
"""Nested compressions that are decompressed."""

Watch: TypeAlias = Callable[[int, int], None]
"""Called with the progress: how many more bytes of the source, and packets, were read."""


class Capture:
    """One capture file; iterate it once for its packet blocks.

    chunks: the bytes of the file. watch: called with the progress. decoder: what decodes it if its
    first bytes are not those of a capture. `blocks` does as the iteration, but leaves packet
    headers undecoded where it can. Both raise BadMagic if the file is not a capture; all other
    errors are in `problems`, after the packets before them.
    key_logs: the TLS key logs in the file so far, in front of the packets that they decrypt.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        watch: Watch | None = None,
        decoder: CaptureDecoder | None = None,
    ) -> None:
        self.problems: list[CaptureError] = []
        self.key_logs: list[bytes] = []
        self._watch = watch
        self._decoder = decoder
        self._file = chunks if isinstance(chunks, FileChunks) else None
        self._chunks = iter(chunks) if watch is None else _watched(chunks, watch)

    def __iter__(self) -> Iterator[PacketBlock]:
        for block in self.blocks():
            yield block.columns()

    def blocks(self) -> Iterator[Block]:
        """Read the file."""
        head, chunks, layers = decompressed(self._chunks)
        # Complete compressed data without content is an empty file; damaged data has a problem
        # of its layer.
        if head or all(layer.problem is None for layer in layers):
            head, chunks = recognised(head, chunks)
            decoder = decoder_for(head, self._decoder)
            for block in self._decode(decoder, chunks, None if layers else self._file):
                yield block
                if self._watch is not None:
                    self._watch(0, len(block))
        self.problems += [layer.problem for layer in layers if layer.problem is not None]

    def _decode(
        self, decoder: CaptureDecoder, chunks: Iterator[bytes], file: FileChunks | None
    ) -> Iterator[Block]:
        self.problems = decoder.problems
        self.key_logs = decoder.key_logs
        for chunk in chunks:
            yield from decoder.feed(chunk)
            if file is not None:
                file.unread(decoder.give_back())
        yield from decoder.finish()


def decoder_for(head: bytes, otherwise: CaptureDecoder | None = None) -> CaptureDecoder:
    """Return the decoder of a file that begins with these bytes; `otherwise` if none does.

    Raises BadMagic, TruncatedCapture.
    """
    if is_pcap(head):
        return PcapDecoder()
    if is_pcapng(head):
        from .pcapng import PcapngDecoder  # imports numpy

        return PcapngDecoder()
    if splitter := splitter_of(head):
        from .printed import PrintedDecoder  # imports numpy

        return PrintedDecoder(splitter)
    if otherwise is not None:
        return otherwise
    if len(head) < 4:
        raise TruncatedCapture("truncated file: too short for a magic number", len(head))
    raise BadMagic(not_a_capture(head, 4))


def not_a_capture(head: bytes, shown: int) -> str:
    """Return why a file that begins with these bytes is refused: its format, or bytes of it."""
    other = other_format(head) or why_not_printed(head)
    what = f": {other}" if other else f" (starts with {head[:shown].hex(' ')})"
    return f"not a capture file{what}"


def read_capture(
    source: str | Path | BinaryIO,
    watch: Watch | None = None,
    decoder: CaptureDecoder | None = None,
) -> Capture:
    """Read a capture from a path or a binary stream such as `sys.stdin.buffer`.

    watch, decoder: as in `Capture`.
    """
    if not isinstance(source, str | Path):
        return Capture(read_stream(source), watch, decoder)
    path, size = Path(source), CHUNK if watch is None else STREAM_CHUNK
    chunks = FileChunks(path, size) if path.is_file() else _read_pipe(path)
    return Capture(chunks, watch, decoder)


class FileChunks:
    """The chunks of a regular file; each ends at a multiple of `size`, or with the file.

    To join a chunk with the incomplete packet at the end of the one before would copy the whole
    file once more, which takes longer than to read it: such bytes are read again.
    fresh: bytes of the current chunk that are read for the first time.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.fresh = self._unread = 0
        self._path, self._size = path, size

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb", buffering=0) as file:
            end = 0
            while chunk := file.read(self._unread + self._size - end % self._size):
                self.fresh = len(chunk) - self._unread
                end += self.fresh
                self._unread = 0
                yield chunk
                file.seek(-self._unread, SEEK_CUR)

    def unread(self, count: int) -> None:
        """Let the next chunk begin with the last `count` bytes of this one."""
        self._unread = count


def _read_pipe(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        yield from read_stream(file)


def _watched(chunks: Iterable[bytes], watch: Watch) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        watch(chunks.fresh if isinstance(chunks, FileChunks) else len(chunk), 0)


def read_stream(stream: BinaryIO) -> Iterator[bytes]:
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


def recognised(head: bytes, chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Read on in a file that begins as text does, until printed packets are recognised in it.

    head: its first 4 bytes. Returns as many as are needed, and an iterator that still yields them.
    """
    if is_pcap(head) or is_pcapng(head):
        return head, chunks
    head = more_of_text(next(chunks, b""), chunks)
    return head[:HEAD], _chain(head, chunks)


def _chain(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from chunks


# -- compression


def decompressed(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes], list[Unpacked]]:
    """Return the first 4 bytes of the content of a file, all of it, and the layers around it.

    A layer has a problem, if any, once the content was read.
    """
    layers: list[Unpacked] = []
    head, chunks = _peek(chunks)
    while is_compressed(head) and len(layers) < MAX_NESTING:
        layers.append(Unpacked(chunks))
        head, chunks = _peek(iter(layers[-1]))
    return head, chunks, layers


class _Unpacker(Protocol):
    """A member (gzip) or frame (zstd). unread: bytes of the last chunk behind it.

    fault: the error, after `decompress` returned the data before it. hungry: it needs more bytes.
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
        if sys.version_info >= (3, 14):  # imported only if there is such a file
            from compression import zstd
        else:
            from backports import zstd

        self._inner = zstd.ZstdDecompressor()
        self._error = zstd.ZstdError
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
        except self._error as error:
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
