"""What a person hands to `decode`: a capture, frames, hex text, standard input; recognised from the
first bytes.

Law: a thing that is none of these is refused with the reason; nothing is decoded on a guess.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from enum import StrEnum
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import WriteableBuffer

    from kafkawire.capture.rows import Row


class Format(StrEnum):
    """Kinds of input; `auto` looks."""

    AUTO = "auto"
    CAPTURE = "capture"
    FRAMES = "frames"
    HEX = "hex"


_CAPTURE: Final = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\xcd\x34",
    b"\x34\xcd\xb2\xa1",
    b"\x1c\x00\x01\xab",
    b"\xab\x01\x00\x1c",
    b"\x1c\x00\x01\xac",
    b"\xac\x01\x00\x1c",
    b"\x0a\x0d\x0d\x0a",
)
LEAST_HEAD: Final = 8
"""Bytes that tell every format from the others, where there are so many."""

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_NO_DIGIT: Final = re.compile(r"[\s:,_-]|\\x|(?<![0-9a-fA-F])0[xX]")
"""What people write between the digits of hex text, and before them."""


class InputError(Exception):
    """Something given cannot be read; the text says what and why."""


class Entry(NamedTuple):
    """A row with where it comes from.

    capture: the file as given. connection: number of the TCP connection in the file, counted from 0
    in order of appearance (as tshark's tcp.stream); None without packets. client, broker:
    `address:port`.
    """

    capture: str
    connection: int | None
    client: str | None
    broker: str | None
    row: Row


def expand(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield files in order; a directory stands for the captures in it, sorted by name."""
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if looks_like_capture_name(p.name))
            if not found:
                raise InputError(
                    f"{path}: a directory without captures (*.pcap, *.pcapng, also .gz)"
                )
            yield from found
        else:
            yield path


def looks_like_capture_name(name: str) -> bool:
    """Whether a file of that name in a directory is meant."""
    return re.search(r"\.(pcap|pcapng|cap)\d*(\.gz|\.zst)?$", name) is not None


def first_bytes(path: Path) -> bytes:
    """Read the first bytes of a file, through gzip; InputError where it cannot be opened."""
    try:
        with path.open("rb") as file:
            return unpacked_head(file.read(4096), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def unpacked_head(head: bytes, name: str) -> bytes:
    """Decompress the first bytes of a gzip file; InputError where none can be."""
    if head[:2] != _GZIP:
        return head
    from kafkawire.capture.files.recognition import unpacked_head as decompressed
    from kafkawire.errors import CaptureError

    try:
        return decompressed(head)
    except CaptureError as error:
        raise InputError(f"{name}: corrupt gzip data: {error.reason}") from None


def recognise(head: bytes, name: str) -> Format:
    """Tell the format from the first bytes; InputError where it is none."""
    from kafkawire import DEFAULT_LIMITS

    if is_capture(head):
        return Format.CAPTURE
    if not head:
        raise InputError(f"{name}: empty")
    if is_hex(head):
        return Format.HEX
    size = int.from_bytes(head[:4], "big", signed=True)
    if len(head) >= LEAST_HEAD and 4 <= size <= DEFAULT_LIMITS.max_frame_bytes:
        return Format.FRAMES
    shown = head[:8].hex(" ")
    raise InputError(
        f"{name}: not a capture file, hex text or frames (starts with {shown}); "
        "--input-format forces one"
    )


def is_capture(head: bytes) -> bool:
    """Whether bytes begin a capture, or something compressed, which is looked into later."""
    return head[:4] in _CAPTURE or head[:4] == _ZSTD


def is_hex(head: bytes) -> bool:
    """Whether bytes are, or begin, text of hexadecimal digits, with the usual separators."""
    text = head.removesuffix(b"\\").decode("latin-1")
    return bool(text) and _bad_digit(text) is None


def hex_bytes(text: str) -> bytes:
    """Read hex text: digits, with spaces, newlines, `:`, `,`, `_`, `-`, `0x` and `\\x` as people
    put them. InputError says which character is none of it, and where.
    """
    at = _bad_digit(text)
    if at is not None:
        around = f"{text[max(0, at - 8) : at]}>{text[at]}<{text[at + 1 : at + 9]}"
        raise InputError(f"{text[at]!r} at character {at + 1} is no hexadecimal digit: {around}")
    plain = _NO_DIGIT.sub("", text)
    if len(plain) % 2:
        raise InputError(
            f"{len(plain)} hexadecimal digits: half a byte is missing, or one digit is too many"
        )
    return bytes.fromhex(plain)


def _bad_digit(text: str) -> int | None:
    """Find the first character that is neither a digit nor what may stand beside one."""
    blanked = _NO_DIGIT.sub(lambda found: " " * len(found[0]), text)
    bad = re.search(r"[^0-9a-fA-F ]", blanked)
    return None if bad is None else bad.start()


class _Replayed(RawIOBase):
    """A stream whose first bytes were taken to be looked at, and come again."""

    def __init__(self, head: bytes, rest: BufferedReader) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._head[: len(view)] or self._rest.read1(len(view))
        self._head = self._head[len(view) :]
        view[: len(data)] = data
        return len(data)


def looked_at(stream: BufferedReader, name: str) -> tuple[bytes, BufferedReader]:
    """Take the first bytes of a pipe, through gzip, however few come at a time; then the stream as
    it was.
    """
    head = b""
    while len(unpacked_head(head, name)) < LEAST_HEAD:
        more = stream.read1(4096)
        if not more:
            break
        head += more
    return unpacked_head(head, name), BufferedReader(_Replayed(head, stream))


def is_stream(path: Path) -> bool:
    """Whether a path is read once, as a pipe that the shell made of `<(...)`."""
    return path.is_fifo() or path.is_char_device()


def is_hex_argument(text: str) -> bool:
    """Whether an argument is hex text rather than the name of a file."""
    try:
        there = Path(text).exists()
    except OSError:  # too long for a name
        there = False
    return not there and is_hex(os.fsencode(text))


def standard_input() -> BufferedReader:
    """Get standard input as a stream of bytes."""
    stream = sys.stdin.buffer
    if isinstance(stream, BufferedReader):
        return stream
    return BufferedReader(stream)  # type: ignore[arg-type]  # a stand-in for stdin is enough


def unpacked(data: bytes, name: str) -> bytes:
    """Take off gzip, where there is any; InputError where it is broken."""
    if data[:2] != _GZIP:
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: corrupt gzip data: {error}") from None
