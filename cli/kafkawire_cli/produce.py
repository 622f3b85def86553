"""`kafkawire produce`: lines become records of a topic.

Law: what was read and not delivered is told, line by line, and the exit code is 1 then.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from . import live
from .live import BootstrapOption, SettingOption

if TYPE_CHECKING:
    from kafkawire.net.producer import Producer, RecordMetadata

MOST_PENDING: Final = 1000
Pending = list[tuple[int, "asyncio.Future[RecordMetadata]"]]


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    bootstrap: BootstrapOption = "localhost:9092",
    source: Annotated[
        typer.FileBinaryRead, typer.Option("--input", "-i", help="Where lines are. [default: -]")
    ] = "-",  # type: ignore[assignment]  # typer opens it
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", help="Ends the key in each line; no key without it."),
    ] = None,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0)] = None,
    null: Annotated[
        str | None, typer.Option("--null", help="A value that means null (a tombstone).")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell where each record went.")
    ] = False,
    setting: SettingOption = None,
) -> None:
    """Send each line of the input as a record; tell how many were delivered."""
    from kafkawire.net.producer import Producer

    separator = None if key_separator is None else key_separator.encode()
    nothing = None if null is None else null.encode()
    config = live.settings(bootstrap, setting)
    failed = 0

    async def work() -> None:
        nonlocal failed
        delivered = 0
        async with Producer(config) as producer:
            async for results in _sent(producer, topic, source, separator, nothing, partition):
                for line, future in results:
                    fault = await _told(line, future, verbose)
                    delivered += not fault
                    failed += fault
        typer.echo(f"{delivered} delivered, {failed} failed", err=True)

    live.run(work)
    if failed:
        raise typer.Exit(1)


async def _sent(
    producer: Producer,
    topic: str,
    source: BinaryIO,
    separator: bytes | None,
    nothing: bytes | None,
    partition: int | None,
) -> AsyncIterator[Pending]:
    """Send lines, and give the results of so many at a time that memory stays small."""
    pending: Pending = []
    number = 0
    while line := await asyncio.to_thread(source.readline):
        number += 1
        key: bytes | None = None
        value: bytes | None = line.removesuffix(b"\n")
        if separator is not None and value is not None and separator in value:
            key, _, value = value.partition(separator)
        value = None if value == nothing else value
        pending.append((number, await producer.send(topic, value, key=key, partition=partition)))
        done = [each for each in pending if each[1].done()]
        if len(done) > MOST_PENDING:
            pending = [each for each in pending if not each[1].done()]
            yield done
    await producer.flush()
    yield pending


async def _told(line: int, future: asyncio.Future[RecordMetadata], verbose: bool) -> bool:
    """Tell what became of a line; whether it failed."""
    from kafkawire.client.failures import ClientError

    try:
        found = await future
    except ClientError as error:
        typer.echo(f"line {line}: {error}", err=True)
        return True
    if verbose:
        sys.stdout.write(f"{found.topic}-{found.partition} {found.offset}\n")
    return False
