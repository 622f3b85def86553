"""`kafkawire produce`: lines become records of a topic.

Law: what was read and not delivered is told, line by line, and the exit code is 1 then.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, NamedTuple

import typer

from kafkawire.escaping import printable

from ..input import cluster as live
from ..input.cluster import BootstrapOption, SettingOption

if TYPE_CHECKING:
    from kafkawire.client.failures import ClientError
    from kafkawire.net.producer import Producer, RecordMetadata

MOST_PENDING: Final = 1000
CHUNK: Final = 1 << 16


class Form(NamedTuple):
    """How a line is read: what ends its key, and which value means null."""

    separator: bytes | None
    null: bytes | None

    def record(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        """Take key and value out of a line."""
        key: bytes | None = None
        if self.separator is not None and self.separator in line:
            key, _, line = line.partition(self.separator)
        return key, None if line == self.null else line


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    bootstrap: BootstrapOption = "localhost:9092",
    source: Annotated[
        typer.FileBinaryRead, typer.Option("--input", "-i", help="Where lines are; - for stdin.")
    ] = "-",  # type: ignore[assignment]  # typer opens it
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", help="Ends the key in each line; no key without it."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="For all; else by key.")
    ] = None,
    null: Annotated[
        str | None, typer.Option("--null", help="A value that means null (a tombstone).")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell where each record went.")
    ] = False,
    setting: SettingOption = None,
) -> None:
    """Send each line of the input as a record; tell how many were delivered.

    \b
    echo 'alice:apples' | kafkawire produce orders -b localhost:9092 -K :
    kafkawire produce orders -i lines.txt -o compression.type=zstd -o acks=1

    Exit code 1: a record was not delivered, or there is no such cluster or topic; 2: usage.
    """
    from kafkawire.client.producer import PRODUCER_KEYS
    from kafkawire.net.producer import Producer

    if key_separator == "":
        raise typer.BadParameter("is empty", param_hint="--key-separator")
    form = Form(_bytes(key_separator), _bytes(null))
    config = live.settings(bootstrap, setting, PRODUCER_KEYS)
    told = DeliveryCounts(verbose)

    async def work() -> None:
        async with Producer(config) as producer:
            try:
                await _send(producer, topic, source, form, partition, told)
            finally:
                await told.rest()

    try:
        live.run(work)
    finally:
        if told.lines:
            typer.echo(f"{told.delivered} delivered, {told.failed} failed", err=True)
    if told.failed:
        raise typer.Exit(1)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="surrogateescape")


class DeliveryCounts:
    """What became of each line, in the order of lines; a person is told of those that failed."""

    def __init__(self, verbose: bool) -> None:
        self.lines = self.delivered = self.failed = 0
        self._verbose = verbose
        self._pending: deque[asyncio.Future[RecordMetadata]] = deque()

    async def take(self, future: asyncio.Future[RecordMetadata]) -> ClientError | None:
        """Take in the future of the next line; give the error of one that failed on the spot."""
        self.lines += 1
        self._pending.append(future)
        while self._pending and (self._pending[0].done() or len(self._pending) > MOST_PENDING):
            await self._tell()
        failed = future.exception() if future.done() and not future.cancelled() else None
        return failed if failed is None else _client_error(failed)

    async def rest(self) -> None:
        """Wait for all."""
        while self._pending:
            await self._tell()

    async def _tell(self) -> None:
        from kafkawire.client.failures import ClientError

        line = self.delivered + self.failed + 1
        try:
            found = await self._pending[0]
        except ClientError as error:
            self.failed += 1
            typer.echo(printable(f"line {line}: {error}"), err=True)
        else:
            self.delivered += 1
            if self._verbose:
                sys.stdout.write(
                    printable(f"{found.topic}-{found.partition} {found.offset}") + "\n"
                )
        self._pending.popleft()


def _client_error(error: BaseException) -> ClientError | None:
    from kafkawire.client.failures import ClientError

    return error if isinstance(error, ClientError) else None


async def _send(
    producer: Producer,
    topic: str,
    source: BinaryIO,
    form: Form,
    partition: int | None,
    told: DeliveryCounts,
) -> None:
    """Send lines, so many at a time that memory stays small; up to one whose failure is that of
    all: then nothing more is read.
    """
    async for line in _lines(source):
        key, value = form.record(line)
        future = await producer.send(topic, value, key=key, partition=partition)
        error = await told.take(future)
        if error is not None and _hopeless(error):
            return
    await producer.flush()


def _hopeless(error: ClientError) -> bool:
    """Say whether what failed one record will fail the next: no topic, no broker, no entry."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError, RequestFailed

    if isinstance(error, BrokerError):
        return error.code in {
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        }
    return isinstance(error, RequestFailed)


async def _lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """Read lines as they come, without keeping the loop waiting. A thread that nobody waits for
    reads, so that an interrupt need not wait for the next line.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue(1)
    ended = threading.Event()

    def read() -> None:
        chunk = b"-"
        while chunk and not ended.is_set():
            chunk = os.read(source.fileno(), CHUNK)
            if not ended.is_set():
                asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()

    threading.Thread(target=read, name="lines", daemon=True).start()
    left = b""
    try:
        while chunk := await chunks.get():
            *lines, left = (left + chunk).split(b"\n")
            for line in lines:
                yield line
        if left:
            yield left
    finally:
        ended.set()
