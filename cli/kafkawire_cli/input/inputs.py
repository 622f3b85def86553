"""Recognises the input of `decode` by its first bytes: a capture, frames, hex text.

Any other input is refused with the reason; nothing is decoded on a guess.
"""

# over 300 lines: which format an input has, and how little of it is read to know that

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from enum import StrEnum
from errno import ENAMETOOLONG
from io import BufferedReader, BytesIO, RawIOBase
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple, cast

import typer

from kafkawire.magic_numbers import is_gzip, is_pcap, is_pcapng, is_zstd, other_format
from kafkawire.printed import HEAD, more_of_text, splitter_of, why_not_printed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import WriteableBuffer

    from kafkawire.capture.rows import Row


class Format(StrEnum):
    """Formats of input; `auto` is by the first bytes. text: packets as text."""

    AUTO = "auto"
    CAPTURE = "capture"
    FRAMES = "frames"
    HEX = "hex"
    TEXT = "text"


HEAD_BYTES: Final = 8
"""Bytes that are enough to recognise any format."""

MAX_BYTES: Final = 1 << 29
"""Bytes of an input, decompressed, that is read as a whole: frames, hex text, JSON."""

READ_AT_ONCE: Final = 1 << 20

READ_BYTES: Final = 4096
"""Bytes of an input that are read at a time."""

SHORTEST_FRAME: Final = 8
"""Bytes of a frame at least: its size and a correlation id."""
SHORTEST_FRAME_DIGITS: Final = 2 * SHORTEST_FRAME


ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}")


class InputError(Exception):
    """An input cannot be read; the message names it and the reason."""


class MissingOption(typer.BadParameter):
    """A usage error: other options require this one, or an argument; the message says which."""

    def format_message(self) -> str:
        """Return the message that is printed."""
        return f"Missing {self.param_hint}: {self.message}"


class Entry(NamedTuple):
    """A row and its origin.

    capture: the file as given. connection: number of the TCP connection in the file, counted from 0
    in order of appearance (like tshark's tcp.stream); None without packets. client, broker:
    `address:port`. first_ns: time of the first packet of the capture, if known.
    """

    capture: str
    connection: int | None
    client: str | None
    broker: str | None
    row: Row
    first_ns: int | None = None


def first_bytes(path: Path) -> bytes:
    """Read the first bytes of a file, decompressed; InputError if it cannot be opened."""
    with opened(path) as file:
        return unpacked_head(parts(file), str(path), HEAD)


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """Open a file; InputError if it cannot be opened or read."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}{cluster_hint(path)}") from None


def parts(file: BufferedReader) -> Iterator[bytes]:
    """Read a file, part by part, without waiting for more than there is."""
    while part := file.read1(READ_BYTES):
        yield part


def read_limited(file: IO[bytes], name: str) -> bytes:
    """Read a file to its end; InputError if it has more than MAX_BYTES."""
    size = 0
    read = []
    while part := file.read(READ_AT_ONCE):
        read.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise InputError(f"{name}: more than {MAX_BYTES} bytes, the most that is read at once")
    return b"".join(read)


def unpacked_head(stored: Iterable[bytes], name: str, enough: int) -> bytes:
    """Return the first bytes of a file, decompressed if it is gzip: `enough` or more, or all.

    Only the parts that are needed are taken. InputError if it is corrupt.
    """
    rest = iter(stored)
    head = b""
    while len(head) < enough and not is_gzip(head) and (part := next(rest, b"")):
        head += part
    if not is_gzip(head):
        return head
    from kafkawire.capture.files.recognition import unpacked_head as decompressed
    from kafkawire.errors import CaptureError

    try:
        return decompressed(chain([head], rest), enough)
    except CaptureError as error:
        raise InputError(f"{name}: {error.reason}") from None


def recognise(head: bytes, name: str) -> Format:
    """Recognise the format by the first bytes; InputError if it is unknown."""
    if is_capture(head):
        return Format.CAPTURE
    if not head:
        raise InputError(f"{name}: empty")
    from kafkawire import DEFAULT_LIMITS

    from . import hex_text  # compiles patterns, for which commands that read captures do not wait

    if reason := why_not_printed(head):
        raise InputError(f"{name}: {reason}")
    if hex_text.is_hex(head):
        return Format.HEX
    if other := other_format(head):
        raise InputError(f"{name}: {other}")
    size = int.from_bytes(head[:4], "big", signed=True)
    if len(head) >= HEAD_BYTES and 4 <= size <= DEFAULT_LIMITS.max_frame_bytes:
        return Format.FRAMES
    shown = head[:8].hex(" ")
    hint = "use --input-format to force one"
    if hex_text.is_base64(head.decode("latin-1")):
        hint = "base64 must be decoded first: base64 -d | kafkawire decode -"
    raise InputError(
        f"{name}: not a capture file, hex text or frames (starts with {shown}); {hint}"
    )


def is_capture(head: bytes) -> bool:
    """Return whether data starts like a capture, or like zstd, which is checked later."""
    return is_pcap(head) or is_pcapng(head) or is_zstd(head) or splitter_of(head) is not None


def hex_bytes(text: str) -> bytes:
    """Parse bytes in any notation of `hex_text`; InputError shows the first invalid character."""
    from . import hex_text

    try:
        return hex_text.hex_bytes(text)
    except hex_text.HexError as error:
        raise InputError(str(error)) from None


class Peeked:
    """A stream whose first bytes are read before it is read as a whole.

    Iterate it for the first parts; `whole` is a stream with all of its data.
    """

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self._parts: list[bytes] = []

    def __iter__(self) -> Iterator[bytes]:
        for part in parts(self._stream):
            self._parts.append(part)
            yield part

    def is_packed(self) -> bool:
        """Return whether it is compressed with gzip."""
        return is_gzip(b"".join(self._parts))

    def again(self) -> Iterator[bytes]:
        """Return the first parts again, and the next ones."""
        return chain(list(self._parts), self)

    def whole(self) -> BufferedReader:
        """Return a stream of what was read, and the rest."""
        return BufferedReader(_PeekedStream(b"".join(self._parts), self._stream))


class _PeekedStream(RawIOBase):
    """A stream that returns the bytes that were peeked first."""

    def __init__(self, head: bytes, rest: BufferedReader) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def fileno(self) -> int:
        return self._rest.fileno()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._head[: len(view)] or self._rest.read1(len(view))
        self._head = self._head[len(view) :]
        view[: len(data)] = data
        return len(data)


def peek(stream: BufferedReader, name: str) -> tuple[bytes, BufferedReader]:
    """Return the first bytes of a pipe, decompressed, and a stream with all of its data.

    A pipe may return only a few bytes at a time; of text, more is needed than of a capture.
    """
    peeked = Peeked(stream)
    head = unpacked_head(peeked, name, HEAD_BYTES)
    if not is_capture(head):
        if peeked.is_packed():
            head = unpacked_head(peeked.again(), name, HEAD)
        else:
            head = more_of_text(head, iter(peeked))
    return head, peeked.whole()


def is_stream(path: Path) -> bool:
    """Return whether a path can be read only once, such as the shell's `<(...)`."""
    try:
        return path.is_fifo() or path.is_char_device()
    except OSError:  # reported when it is read
        return False


def with_joined_hex(arguments: list[str]) -> list[str]:
    """Join hex text whose bytes came as arguments of their own: `00 00 00 24 ...`.

    Each is shorter than the shortest frame, so that they are not frames.
    """
    pieces = len(arguments) > 1 and all(
        len(each) < SHORTEST_FRAME_DIGITS and is_hex_argument(each) for each in arguments
    )
    return [" ".join(arguments)] if pieces else arguments


def looks_like_frame(data: bytes) -> bool:
    """Return whether data begins with its own size, as a whole frame does."""
    return len(data) >= SHORTEST_FRAME and int.from_bytes(data[:4], "big") == len(data) - 4


def is_hex_argument(text: str) -> bool:
    """Return whether an argument is hex text, or too long for the name of a file."""
    try:
        os.stat(text)
    except OSError as error:
        from .hex_text import is_hex

        return error.errno == ENAMETOOLONG or is_hex(os.fsencode(text))
    return False


def looks_like_address(name: str) -> bool:
    """Return whether an input is not a file but has the form HOST:PORT."""
    return ADDRESS.fullmatch(name) is not None and not os.path.exists(name)


def cluster_hint(path: Path) -> str:
    """Return which verb reads from a cluster, for the error of a missing file; "" for others."""
    if not looks_like_address(str(path)):
        return ""
    return f"; for a live cluster, see kafkawire cluster {path}"


def standard_input() -> BufferedReader:
    """Return standard input as a binary stream."""
    stream = sys.stdin.buffer
    if isinstance(stream, BufferedReader):
        return stream
    return BufferedReader(stream)  # type: ignore[arg-type]  # tests replace stdin


def unpacked(data: bytes, name: str) -> bytes:
    """Decompress gzip data, and return other data as it is; InputError if it is corrupt."""
    if not is_gzip(data[:2]):
        return data
    import gzip
    import zlib

    try:
        with gzip.open(BytesIO(data)) as file:
            return read_limited(cast("IO[bytes]", file), name)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: corrupt gzip data: {error}") from None
