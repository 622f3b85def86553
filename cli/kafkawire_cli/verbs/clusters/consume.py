"""`kafkawire consume`: prints the records of topics as they arrive.

A closed output pipe or an interrupt closes the consumer in order; an interrupt within seconds.
"""

# over 300 lines: one verb, most of it its options

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.panels import Panel
from ...input.values import NO_VALUES, ValueOptions, check_decoded, counted_values
from ...live.completion import complete_group, complete_topic
from ...live.interrupts import closed_soon, until_interrupted
from ...live.offset_spec import (
    FORMS,
    MILLISECONDS,
    OffsetKind,
    OffsetSpec,
    find_offsets,
    parse_offset,
)
from ...live.outputs import (
    ColumnFormat,
    Output,
    RecordOutput,
    column_format,
    column_output,
    written,
)
from ...live.reader import Reader, Until
from ...live.share_reader import read_shared
from ...live.unknown_names import check_partition, described_topics
from ...notes import print_note
from ...render.consumed_records import FORMATS, writer

if TYPE_CHECKING:
    from kafkawire.client.consumer import TopicPartition
    from kafkawire.net.consumer import Consumer

EARLIEST: Final = "earliest"
NOT_SHARED: Final = [
    "--group",
    "--offset",
    "--until",
    "--partition",
    "--exit-at-end",
    "--isolation",
]
"""Options that say what to read."""
ONLY_WITHOUT_SHARING: Final = (
    "not allowed together with --share: the group decides what its members read (kafkawire "
    "configs --group, share.auto.offset.reset)"
)
ONLY_WITHOUT_A_GROUP: Final = "not allowed together with --group, whose members share partitions"
WITHOUT_COLUMNS: Final = "records of share groups are not read as columns"
ONLY_COMPLETE_AT_THE_END: Final = (
    "parquet is not allowed with a group: offsets would be committed before the file is complete; "
    "arrow is a stream"
)


class Span(NamedTuple):
    """Which records are read. most: their number; to_end: to the end of the partitions."""

    begin: OffsetSpec
    end: OffsetSpec | None
    most: int | None
    to_end: bool


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
    share: Annotated[
        str | None,
        typer.Option(
            "--share",
            metavar="GROUP",
            autocompletion=complete_group,
            help="Join this share group, whose members share the records of each partition, and"
            " accept records once they are written out. A new group begins at the end, unless its"
            " share.auto.offset.reset is earliest. Needs Kafka 4.2 or later.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--offset",
            metavar=FORMS,
            help="Where to begin; -N: the last N records of each partition. With --group: earliest,"
            " latest or TIME, for partitions without a committed offset. TIME is ISO 8601, or @ "
            "and milliseconds since 1970.  [default: earliest]",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
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
            " %o offset, %T timestamp, %K and %S sizes, %v value decoded by --values. arrow (an IPC"
            " stream) and parquet are binary, for a file or a pipe.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = "table",
    decoding: ValueOptions = NO_VALUES,
) -> None:
    """Print the records of topics as they arrive.

    \b
    kafkawire consume orders -b localhost:9092
    kafkawire consume orders payments --group audit --offset latest -f json | jq .value
    kafkawire consume orders --share packers
    kafkawire consume orders --values avro --registry-url http://localhost:8081 -f json
    kafkawire consume orders --offset 2026-01-31T12:00:00Z --until 2026-01-31T13:00:00Z
    kafkawire consume orders -p 0 --offset -10 -e -f '%p:%o %k=%s\\n'
    kafkawire consume orders -e -f parquet > orders.parquet

    Runs until interrupted, unless --until, --max-records or --exit-at-end is given. Exit code 0:
    success or interrupted; 1: cluster or topic not found, an error response, or a key or value that
    was not decoded; 2: usage error.
    """
    from kafkawire.client.consumer import CONSUMER_KEYS

    names = list(dict.fromkeys(topics))
    values = counted_values(decoding)
    columns = column_format(form)
    if share is not None:
        _check_shared(group, start is not None, until, partitions, to_end, isolation)
        if columns is not None:
            raise typer.BadParameter(WITHOUT_COLUMNS, param_hint="--format")
        _consume_shared(names, share, cluster, most, RecordOutput(writer(form, names, values)))
        check_decoded(values)
        return
    begin = parse_offset(EARLIEST if start is None else start, "--offset")
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
    if columns is ColumnFormat.PARQUET and "group.id" in config:
        raise typer.BadParameter(ONLY_COMPLETE_AT_THE_END, param_hint="--format")
    output: AbstractContextManager[Output[Any]]
    if columns is None:
        output = nullcontext(RecordOutput(writer(form, names, values)))
    else:
        from kafkawire.capture.tables.arrow.importing import import_arrow

        import_arrow()
        output = column_output(columns, values)

    span = Span(begin, end, most, to_end)
    live.run(lambda: until_interrupted(_read(names, partitions, config, output, span)), client)
    check_decoded(values)


async def _read(
    names: list[str],
    partitions: list[int] | None,
    config: dict[str, Any],
    output: AbstractContextManager[Output[Any]],
    span: Span,
) -> None:
    """Read topics as a consumer, of a group or of all partitions."""
    from kafkawire.net.consumer import Consumer

    consumer = Consumer(config)  # validates the settings before any request
    chosen = await _partitions(names, partitions, config)
    timeout_s = float(config["default.api.timeout.ms"]) / MILLISECONDS
    async with closed_soon(consumer):
        if "group.id" in config:
            consumer.subscribe(names)
        else:
            consumer.assign(chosen)
            await _seek(consumer, span.begin, chosen)
        ends = None if span.end is None else await find_offsets(consumer, span.end, chosen)
        until = Until(span.most, span.to_end, ends, timeout_s)
        await written(output, lambda opened: Reader(consumer, opened, until).run())


def _check_shared(*values: object) -> None:
    """Check that there are only options that fit to a share group. values: of NOT_SHARED."""
    for option, value in zip(NOT_SHARED, values, strict=True):
        if value:
            raise typer.BadParameter(ONLY_WITHOUT_SHARING, param_hint=option)


def _consume_shared(
    names: list[str],
    group: str,
    cluster: ClusterOptions,
    most: int | None,
    output: RecordOutput,
) -> None:
    """Read as a member of a share group."""
    from kafkawire.client.share_consumer import SHARE_CONSUMER_KEYS
    from kafkawire.net.share_consumer import ShareConsumer

    client = live.configuration(cluster, SHARE_CONSUMER_KEYS, group_id=group)

    async def work() -> None:
        consumer = ShareConsumer(client.values)  # validates the settings before any request
        await _partitions(names, None, client.values)
        async with closed_soon(consumer):
            consumer.subscribe(names)
            await read_shared(consumer, output, most)

    live.run(lambda: until_interrupted(work()), client)


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
    for option, is_set in wrong.items():
        if is_set:
            raise typer.BadParameter(ONLY_WITHOUT_A_GROUP, param_hint=option)


async def _seek(consumer: Consumer, begin: OffsetSpec, partitions: list[TopicPartition]) -> None:
    """Seek to what auto.offset.reset cannot express."""
    if begin.reset is None:
        for partition, offset in (await find_offsets(consumer, begin, partitions)).items():
            consumer.seek(partition, offset)
            if begin.kind is OffsetKind.OFFSET and offset != begin.number:
                where = "after the end" if offset < begin.number else "before the first offset"
                name = f"{partition.topic}-{partition.partition}"
                print_note(f"{name}: offset {begin.number} is {where}, reading from {offset}")


async def _partitions(
    names: list[str], wanted: list[int] | None, config: dict[str, Any]
) -> list[TopicPartition]:
    """Look up the partitions of topics; this also reports an unreachable cluster early."""
    from kafkawire.client.consumer import TopicPartition

    async with live.admin_beside(config) as admin:
        described = await described_topics(admin, names)
    numbers = {name: [each.partition for each in described[name].partitions] for name in names}
    for name in names:
        for number in wanted or []:
            check_partition(described[name], number)
    return [TopicPartition(name, number) for name in names for number in wanted or numbers[name]]
