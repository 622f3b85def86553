"""Reads the input of `kafkawire produce`: lines, or the whole input, as records."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from typing import BinaryIO, Final, NamedTuple

import typer

from ..input.values import RecordEncoders

CHUNK: Final = 1 << 16
MAX_LINE: Final = 1 << 27
"""Bytes of a line; a message of Kafka's protocol has fewer."""


class LineFormat(NamedTuple):
    """The format of a line: the separator after its key, and the text that stands for null.

    headers, key: those of each record, unless the line has a key. encoders: of keys and values;
    None leaves these as they are.
    """

    separator: bytes | None
    null: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    key: bytes | None = None
    encoders: RecordEncoders | None = None

    def record(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        """Split a line into key and value; InvalidRecordValue or UnusableSchema if not encoded."""
        key = self.key
        if self.separator is not None and self.separator in line:
            key, _, line = line.partition(self.separator)
        value = None if line == self.null else line
        return (key, value) if self.encoders is None else self.encoders.record(key, value)


async def whole_input(source: BinaryIO) -> AsyncIterator[bytes]:
    """Read the whole input as one record; a record of more than MAX_LINE bytes is an error."""
    content = bytearray()
    async for chunk in _chunks(source):
        content += chunk
        _check_size(len(content), "a record")
    yield bytes(content)


async def lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """Read lines as they arrive."""
    rest: list[bytes] = []
    size = 0
    async for chunk in _chunks(source):
        first, *lines = chunk.split(b"\n")
        rest.append(first)
        for line in lines:
            yield b"".join(rest)
            rest = [line]
        size = len(rest[0]) if lines else size + len(first)
        _check_size(size, "a line")
    if size:
        yield b"".join(rest)


def _check_size(size: int, what: str) -> None:
    if size > MAX_LINE:
        raise typer.BadParameter(f"{what} of more than {MAX_LINE} bytes", param_hint="--input")


async def _chunks(source: BinaryIO) -> AsyncIterator[bytes]:
    """Read bytes as they arrive, without blocking the event loop.

    A daemon thread reads, so that an interrupt does not wait for more input.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue(1)
    stopped = threading.Event()

    def read() -> None:
        chunk = b"-"
        while chunk and not stopped.is_set():
            chunk = os.read(source.fileno(), CHUNK)
            if not stopped.is_set():
                asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()

    threading.Thread(target=read, name="input", daemon=True).start()
    try:
        while chunk := await chunks.get():
            yield chunk
    finally:
        stopped.set()
