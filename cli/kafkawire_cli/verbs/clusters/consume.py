"""`kafkawire consume`: prints the records of topics as they arrive.

A closed output pipe or an interrupt closes the consumer in order; an interrupt within seconds.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from errno import EPIPE
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.panels import Panel
from ...input.values import NO_VALUES, ValueOptions, record_values
from ...live.completion import complete_group, complete_topic
from ...live.offset_spec import FORMS, MILLISECONDS, OffsetSpec, find_offsets, parse_offset
from ...live.reader import Reader, Until
from ...live.unknown_names import check_partition, described_topics
from ...pipes import at_closed_pipe
from ...render.consumed_records import FORMATS, writer

if TYPE_CHECKING:
    from kafkawire.client.consumer import TopicPartition
    from kafkawire.net.consumer import Consumer

LEAVE_SECONDS: Final = 1.0
"""How long an interrupted consumer may take to commit and to leave its group."""
END_SECONDS: Final = 3.0
"""How long after an interrupt the process ends at the latest, whatever it still does."""
ONLY_WITHOUT_A_GROUP: Final = "not allowed together with --group, whose members share partitions"


def consume(  # noqa: PLR0913 - options of the verb
    topics: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC...", help="Topics to read.", autocompletion=complete_topic),
    ],
    cluster: ClusterOptions = NO_OPTIONS,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="GROUP",
            autocompletion=complete_group,
            help="Join this consumer group and commit [default: read all partitions].",
        ),
    ] = None,
    group_protocol: Annotated[
        str | None,
        typer.Option(
            "--group-protocol",
            metavar="classic|consumer",
            help="With --group: who assigns partitions, a member or the coordinator (KIP-848)"
            " [default: classic].",
        ),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--offset",
            metavar=FORMS,
            help="Where to begin; -N: the last N records of each partition. With --group: earliest,"
            " latest or TIME, for partitions without a committed offset. TIME is ISO 8601, or @ "
            "and milliseconds since 1970.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = "earliest",
    until: Annotated[
        str | None,
        typer.Option(
            metavar="latest|OFFSET|-N|TIME",
            help="Exit before this offset, which is looked up at the start.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    partitions: Annotated[
        list[int] | None,
        typer.Option(
            "--partition",
            "-p",
            min=0,
            metavar="N",
            help="Read this partition; repeatable.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--max-records",
            "-n",
            min=1,
            metavar="N",
            help="Exit after N records.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    to_end: Annotated[
        bool,
        typer.Option(
            "--exit-at-end",
            "-e",
            help="Exit at the end of the partitions.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = False,
    isolation: Annotated[
        str | None,
        typer.Option(
            "--isolation",
            metavar="read_committed|read_uncommitted",
            help="read_committed: no records of transactions that are open or were aborted"
            " [default: read_uncommitted].",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar=FORMATS,
            help="Output format. TEMPLATE has %k key, %s value, %h headers, %t topic, %p partition,"
            " %o offset, %T timestamp, %K and %S sizes, %v value decoded by --values.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = "table",
    decoding: ValueOptions = NO_VALUES,
) -> None:
    """Print the records of topics as they arrive.

    \b
    kafkawire consume orders -b localhost:9092
    kafkawire consume orders payments --group audit --offset latest -f json | jq .value
    kafkawire consume orders --values avro --registry-url http://localhost:8081 -f json
    kafkawire consume orders --offset 2026-01-31T12:00:00Z --until 2026-01-31T13:00:00Z
    kafkawire consume orders -p 0 --offset -10 -e -f '%p:%o %k=%s\\n'

    Runs until interrupted, unless --until, --max-records or --exit-at-end is given. Exit code 0:
    success or interrupted; 1: cluster or topic not found, or an error response; 2: usage error.
    """
    from kafkawire.client.consumer import CONSUMER_KEYS
    from kafkawire.net.consumer import Consumer

    names = list(dict.fromkeys(topics))
    begin = parse_offset(start, "--offset")
    end = None if until is None else parse_offset(until, "--until")
    client = live.configuration(
        cluster,
        CONSUMER_KEYS,
        group_id=group,
        group_protocol=group_protocol,
        auto_offset_reset=begin.reset,
        isolation_level=isolation,
    )
    config = client.values
    if group_protocol is not None and "group.id" not in config:
        raise typer.BadParameter("requires --group", param_hint="--group-protocol")
    _check("group.id" in config, begin, end, to_end, partitions)
    write = writer(form, names, record_values(decoding))

    async def work() -> None:
        consumer = Consumer(config)  # validates the settings before any request
        chosen = await _partitions(names, partitions, config)
        timeout_s = float(config["default.api.timeout.ms"]) / MILLISECONDS
        async with _closed_soon(consumer):
            if "group.id" in config:
                consumer.subscribe(names)
            else:
                consumer.assign(chosen)
                await _seek(consumer, begin, chosen)
            ends = None if end is None else await find_offsets(consumer, end, chosen)
            await Reader(consumer, write, Until(most, to_end, ends, timeout_s)).run()

    live.run(lambda: _until_interrupted(work()), client)


def _check(
    in_group: bool,
    begin: OffsetSpec,
    end: OffsetSpec | None,
    to_end: bool,
    partitions: list[int] | None,
) -> None:
    """Check that options fit together."""
    if end is not None and to_end:
        raise typer.BadParameter("not allowed together", param_hint="--until, --exit-at-end")
    if not in_group:
        return
    wrong = {"--offset": begin.reset is None, "--until": end is not None, "--partition": partitions}
    for option, given in wrong.items():
        if given:
            raise typer.BadParameter(ONLY_WITHOUT_A_GROUP, param_hint=option)


async def _seek(consumer: Consumer, begin: OffsetSpec, partitions: list[TopicPartition]) -> None:
    """Seek to what auto.offset.reset cannot express."""
    if begin.reset is None:
        for partition, offset in (await find_offsets(consumer, begin, partitions)).items():
            consumer.seek(partition, offset)


@asynccontextmanager
async def _closed_soon(consumer: Consumer) -> AsyncIterator[None]:
    """Start and close a consumer; one that is interrupted does not wait long for its brokers."""
    await consumer.start()
    try:
        yield
    except asyncio.CancelledError:
        await consumer.close(LEAVE_SECONDS)
        raise
    finally:
        await consumer.close()


async def _until_interrupted(work: Any) -> None:
    """Run until done or interrupted; an interrupt cancels the task, which closes in order.

    So does a closed output; BrokenPipeError then. A second interrupt, or a close that takes too
    long (records in a full pipe), ends the process.
    """
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()

    def interrupt(number: int) -> None:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
        task.cancel()
        loop.call_later(END_SECONDS, os.kill, os.getpid(), number)

    output_closed = asyncio.Event()

    def closed() -> None:
        output_closed.set()
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt, number)
    with at_closed_pipe(closed):
        await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    if output_closed.is_set():
        raise BrokenPipeError(EPIPE, os.strerror(EPIPE))


async def _partitions(
    names: list[str], wanted: list[int] | None, config: dict[str, Any]
) -> list[TopicPartition]:
    """Look up the partitions of topics; this also reports an unreachable cluster early."""
    from kafkawire.client.consumer import TopicPartition

    async with live.admin_beside(config) as admin:
        found = await described_topics(admin, names)
    known = {name: [each.partition for each in found[name].partitions] for name in names}
    for name in names:
        for number in wanted or []:
            check_partition(found[name], number)
    return [TopicPartition(name, number) for name in names for number in wanted or known[name]]
