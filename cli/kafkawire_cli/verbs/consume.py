"""`kafkawire consume`: prints the records of topics as they arrive.

Law: in a group, only offsets of records that have been written out are committed. A closed output
pipe or an interrupt closes the consumer in order. A failed connection is retried, and reported.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from kafkawire.display import printable

from ..input import cluster as live
from ..input.cluster import BootstrapOption, SettingOption
from ..render.consumed_records import Form, Write, writer

if TYPE_CHECKING:
    from kafkawire.client.consumer import ConsumerRecord
    from kafkawire.net.consumer import Consumer

IDLE_SECONDS: Final = 0.5
"""Seconds without a record after which `--exit-at-end` checks the end offsets."""
MILLISECONDS: Final = 1000
LOG: Final = logging.getLogger("kafkawire.client")


def consume(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Topics to read.")],
    bootstrap: BootstrapOption = "localhost:9092",
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="GROUP",
            help="Join this consumer group and commit [default: read all partitions].",
        ),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="earliest|latest|TIME",
            help="Start offset; with --group, only for partitions without a committed offset. "
            "TIME is ISO 8601 or milliseconds since 1970.",
        ),
    ] = "earliest",
    most: Annotated[
        int | None,
        typer.Option("--max-records", "-n", min=1, metavar="N", help="Exit after N records."),
    ] = None,
    to_end: Annotated[
        bool, typer.Option("--exit-at-end", "-e", help="Exit at the end of the partitions.")
    ] = False,
    form: Annotated[Form, typer.Option("--format", "-f", help="Output format.")] = Form.TABLE,
    setting: SettingOption = None,
) -> None:
    """Print the records of topics as they arrive.

    \b
    kafkawire consume orders -b localhost:9092
    kafkawire consume orders payments --group audit --from latest --format json | jq .value
    kafkawire consume orders --from 2026-01-31T12:00:00Z --max-records 10

    Runs until interrupted, unless --max-records or --exit-at-end is given. Exit code 0: success or
    interrupted; 1: cluster or topic not found, or an error response; 2: usage error.
    """
    from kafkawire.client.consumer import CONSUMER_KEYS
    from kafkawire.net.consumer import Consumer

    names = list(dict.fromkeys(topics))
    config = live.settings(
        bootstrap,
        setting,
        CONSUMER_KEYS,
        group_id=group,
        auto_offset_reset=_reset(start),
    )

    async def work() -> None:
        consumer = Consumer(config)  # validates the settings before any request
        partitions = await _partitions(names, config)
        timeout_s = float(config["default.api.timeout.ms"]) / MILLISECONDS
        reader = Reader(consumer, writer(form, names), most, timeout_s if to_end else None)
        async with consumer:
            if "group.id" in config:
                consumer.subscribe(names)
            else:
                consumer.assign(partitions)
            await reader.run()

    live.run(lambda: _until_interrupted(work()))


async def _until_interrupted(work: Any) -> None:
    """Run until done or interrupted; an interrupt cancels the task, which closes in order."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


async def _partitions(names: list[str], config: dict[str, Any]) -> list[Any]:
    """Look up the partitions of topics; this also reports an unreachable cluster early."""
    from kafkawire.client.consumer import TopicPartition

    async with live.admin_client(config) as admin:
        found = await admin.describe_topics(names)
    return [
        TopicPartition(name, each.partition) for name in names for each in found[name].partitions
    ]


class ConnectionLog(logging.Handler):
    """Prints why connections failed, each reason once until records arrive again."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        self._printed: set[str] = set()

    def __enter__(self) -> Self:
        LOG.setLevel(logging.INFO)
        LOG.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        LOG.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
        if self.last not in self._printed:
            self._printed.add(self.last)
            typer.echo(printable(f"kafkawire consume: {self.last}; reconnecting"), err=True)

    def reset(self) -> None:
        """Records have arrived."""
        self.last = ""
        self._printed.clear()


class Reader:
    """Polls records and writes them out before the next poll.

    end_timeout_s: read to the end of the partitions, and fail if connections fail and no records
    arrive for so long; None: read on.

    A thread writes, so that heartbeats continue while the output pipe is full.
    """

    def __init__(
        self, consumer: Consumer, write: Write, most: int | None, end_timeout_s: float | None
    ) -> None:
        self._consumer = consumer
        self._write = write
        self._left = most
        self._end_timeout_s = end_timeout_s

    async def run(self) -> None:
        """Read until the requested end."""
        from kafkawire.client.failures import RequestFailed
        from kafkawire.client.requests import Reason

        clock = asyncio.get_running_loop().time
        last_records = clock()
        with ConnectionLog() as log:
            while self._left != 0:
                wait = IDLE_SECONDS if self._end_timeout_s is not None else None
                records = await self._consumer.poll(wait, max_records=self._left)
                if records:
                    log.reset()
                    await self._write_out(records)
                    self._left = None if self._left is None else self._left - len(records)
                    last_records = clock()
                elif self._end_timeout_s is None or await self._at_end():
                    return
                elif log.last and clock() > last_records + self._end_timeout_s:
                    raise RequestFailed(Reason.TIMED_OUT, f"the end was not reached: {log.last}")

    async def _write_out(self, records: list[ConsumerRecord]) -> None:
        data = b"".join(self._write(record) for record in records)
        writing = asyncio.ensure_future(asyncio.to_thread(_print, data))
        try:
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:  # interrupted: finish writing first
                await writing
                raise
        except OSError:
            self._seek_back(records)
            raise

    def _seek_back(self, records: list[ConsumerRecord]) -> None:
        """Seek back to records that could not be written, so that they are not committed."""
        from kafkawire.client.consumer import TopicPartition

        for record in reversed(records):
            partition = TopicPartition(record.topic, record.partition)
            if partition in self._consumer.assignment():
                self._consumer.seek(partition, record.offset)

    async def _at_end(self) -> bool:
        assigned = self._consumer.assignment()
        if not assigned:
            return False
        ends = await self._consumer.end_offsets(*assigned)
        return all([await self._consumer.position(each) >= ends[each] for each in assigned])


def _print(data: bytes) -> None:
    """Write all data to standard output, or raise."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _reset(start: str) -> str:
    """Parse --from."""
    if start in ("earliest", "latest"):
        return start
    if start.isascii() and start.isdecimal():
        return f"by_timestamp:{start}"
    try:
        when = datetime.fromisoformat(start)
    except ValueError:
        raise typer.BadParameter(
            f"invalid start {start!r}: expected earliest, latest, an ISO 8601 time or milliseconds",
            param_hint="--from",
        ) from None
    at = round(when.timestamp() * MILLISECONDS)  # a time without a zone is local time
    if at < 0:
        raise typer.BadParameter(f"{start} is before 1970", param_hint="--from")
    return f"by_timestamp:{at}"
