"""`kafkawire consume`: records of topics, as they come, until interrupted.

Law: a group's offsets are committed for what has been written out, never for more; whoever stops
reading us, or interrupts, ends the command in order.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kafkawire.escaping import printable_lines

from ..input import cluster as live
from ..input.cluster import BootstrapOption, SettingOption
from ..render.messages import printable

if TYPE_CHECKING:
    from kafkawire.client.consumer import ConsumerRecord
    from kafkawire.net.consumer import Consumer

LOOK_SECONDS: Final = 0.5
"""How long no record has to come before it is asked whether this is the end."""
MILLISECONDS: Final = 1000


class Form(StrEnum):
    """How records are written: a line each for people, a JSON object each, values only (their bytes
    as they are; on a terminal escaped).
    """

    TABLE = "table"
    JSON = "json"
    VALUE = "value"


Write = Callable[["ConsumerRecord"], bytes]


def consume(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="What to read.")],
    bootstrap: BootstrapOption = "localhost:9092",
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", help="Read as a member, and commit; else all partitions."),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="earliest|latest|TIME",
            help="Where to begin, in a group where it has committed nothing. TIME is ISO 8601, or "
            "milliseconds since 1970.",
        ),
    ] = "earliest",
    most: Annotated[
        int | None, typer.Option("--max-records", "-n", min=1, help="End after so many.")
    ] = None,
    to_end: Annotated[
        bool, typer.Option("--exit-at-end", "-e", help="End when all there is has been read.")
    ] = False,
    form: Annotated[
        Form, typer.Option("--format", "-f", help="For people, for programs, or just the values.")
    ] = Form.TABLE,
    setting: SettingOption = None,
) -> None:
    """Print the records of topics as they come, until interrupted.

    \b
    kafkawire consume orders -b localhost:9092
    kafkawire consume orders payments --group audit --from latest --format json | jq .value
    kafkawire consume orders --from 2026-01-31T12:00:00Z --max-records 10

    Exit code 0 also where interrupted; 1: no such cluster or topic, or refused; 2: usage.
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
        consumer = Consumer(config)  # a setting that is wrong is told before anything is asked
        partitions = await _partitions(names, config)
        reading = Reading(consumer, _writer(form, names), most, to_end)
        async with consumer:
            if "group.id" in config:
                consumer.subscribe(names)
            else:
                consumer.assign(partitions)
            await reading.run()

    live.run(lambda: _until_interrupted(work()))


async def _until_interrupted(work: Any) -> None:
    """Run until done or interrupted; then what is open is closed in order."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


async def _partitions(names: list[str], config: dict[str, Any]) -> list[Any]:
    """Find the partitions of topics; this also tells at once what is wrong with the cluster."""
    from kafkawire.client.consumer import TopicPartition

    async with live.asking(config) as admin:
        found = await admin.describe_topics(names)
    return [
        TopicPartition(name, each.partition) for name in names for each in found[name].partitions
    ]


class Reading:
    """Polls, and writes out what came before it polls again.

    While a slow reader makes us wait, the group still hears of us: a thread writes.
    """

    def __init__(self, consumer: Consumer, write: Write, most: int | None, to_end: bool) -> None:
        self._consumer = consumer
        self._write = write
        self._left = most
        self._to_end = to_end

    async def run(self) -> None:
        """Read until the end that was asked for."""
        while self._left != 0:
            wait = LOOK_SECONDS if self._to_end else None
            records = await self._consumer.poll(wait, max_records=self._left)
            if records:
                await self._out(records)
                self._left = None if self._left is None else self._left - len(records)
            elif await self._at_end():
                return

    async def _out(self, records: list[ConsumerRecord]) -> None:
        data = b"".join(self._write(record) for record in records)
        writing = asyncio.ensure_future(asyncio.to_thread(_print, data))
        try:
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:  # interrupted: first what was read is out
                await writing
                raise
        except OSError:
            self._take_back(records)
            raise

    def _take_back(self, records: list[ConsumerRecord]) -> None:
        """Be again where these were not read, so that they are not committed."""
        from kafkawire.client.consumer import TopicPartition

        for record in reversed(records):
            where = TopicPartition(record.topic, record.partition)
            if where in self._consumer.assignment():
                self._consumer.seek(where, record.offset)

    async def _at_end(self) -> bool:
        held = self._consumer.assignment()
        if not held:
            return False
        ends = await self._consumer.end_offsets(*held)
        return all([await self._consumer.position(each) >= ends[each] for each in held])


def _print(data: bytes) -> None:
    """Write all of it, or raise."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _reset(start: str) -> str:
    """Read --from."""
    if start in ("earliest", "latest"):
        return start
    if start.isascii() and start.isdecimal():
        return f"by_timestamp:{start}"
    try:
        when = datetime.fromisoformat(start)
    except ValueError:
        raise typer.BadParameter(
            f"{start!r} is none of earliest, latest, an ISO 8601 time, milliseconds",
            param_hint="--from",
        ) from None
    at = round(when.timestamp() * MILLISECONDS)  # without a zone it is the local time
    if at < 0:
        raise typer.BadParameter(f"{start} is before 1970", param_hint="--from")
    return f"by_timestamp:{at}"


# -- how a record is written


def _writer(form: Form, names: list[str]) -> Write:
    if form is Form.JSON:
        return _json
    if form is Form.VALUE and sys.stdout.isatty():
        return lambda record: f"{_lines(record.value or b'')}\n".encode()
    if form is Form.VALUE:
        return lambda record: (record.value or b"") + b"\n"
    width = max(map(len, names)) + 4
    return lambda record: _line(record, width).encode(errors="backslashreplace")


def _json(record: ConsumerRecord) -> bytes:
    from ..render.contents import form

    said = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": record.timestamp_type.name,
        "key": form(record.key, redact=False),
        "value": form(record.value, redact=False),
        "headers": [
            {"key": key, "value": form(value, redact=False)} for key, value in record.headers
        ],
    }
    return json.dumps(said).encode() + b"\n"


def _line(record: ConsumerRecord, width: int) -> str:
    place = f"{record.topic}-{record.partition}"
    headers = " ".join(f"{printable(key)}={_text(value)}" for key, value in record.headers)
    said = f"{place:{width}} {record.offset:>8} {_time(record.timestamp):24}"
    key = "-" if record.key is None else _text(record.key)
    return f"{printable(said)}  {key}  {_text(record.value)}  {headers}".rstrip() + "\n"


def _time(timestamp: int) -> str:
    try:
        when = datetime.fromtimestamp(timestamp / MILLISECONDS, UTC)
    except (ValueError, OverflowError, OSError):  # a producer may write any number
        return str(timestamp)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _lines(data: bytes) -> str:
    """Show a value on a terminal: escaped but for the ends of its lines."""
    return printable_lines(data.decode(errors="backslashreplace"))


def _text(data: bytes | None) -> str:
    """Show bytes in a line: as text where they are, with what would move the cursor escaped."""
    if data is None:
        return "null"
    return printable(data.decode(errors="backslashreplace"))
