"""`kafkawire log-dirs`: log directories of a live cluster, and the replicas in them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kafkawire.display import bytes_text, plural
from kafkawire.whole_numbers import MAX_INT32, whole_number

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import EveryOption, Form, FormOption, MostOption, entries_shown
from ...input.panels import Panel
from ...live.changes import Change, ChangeOptions, ChangeReport, DryRunOption
from ...live.completion import complete_topic
from ...live.unknown_names import broker_ids, check_brokers, described_topics
from ...render.cluster import LOG_DIR_HEAD, log_dir_cells
from ...render.report import Section, print_report, top

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, LogDirInfo, ReplicaInfo

MOVE = "--move"
TO = "--to"
FUTURE = "moves here"


class BrokerDirs(NamedTuple):
    """The log directories of a broker, and the replicas that are shown."""

    broker_id: int
    log_dirs: tuple[LogDirInfo, ...]
    replicas: list[ReplicaInfo]


def log_dirs(  # noqa: PLR0913 - options of the verb
    options: ClusterOptions = NO_OPTIONS,
    broker: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Of this broker; repeatable.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Show the replicas of this topic; repeatable [default: of all].",
            autocompletion=complete_topic,
            show_default=False,
        ),
    ] = None,
    move: Annotated[
        list[str] | None,
        typer.Option(
            MOVE,
            metavar="NAME:PARTITION",
            help="Move the replica of this partition on one --broker; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            TO,
            metavar="PATH",
            help=f"With {MOVE}: the log directory for the replicas.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    most: MostOption = None,
    every: EveryOption = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Show log directories and replicas; move replicas between directories.

    \b
    kafkawire log-dirs -b localhost:9092
    kafkawire log-dirs -b localhost:9092 --broker 1 --topic orders -f json
    kafkawire log-dirs -b localhost:9092 --broker 1 --move orders:0 --to /disk2/kafka --dry-run

    The largest replicas are shown first. The lag of a replica is what it lacks of the high
    watermark; that of one that moves, what it lacks of the replica that it will replace.

    Exit code 1: an error of the cluster, such as an unknown broker, or a log directory that is
    offline; 2: usage error.
    """
    numbers = broker_ids(broker or (), "--broker")
    if (to is None) != (not move):
        raise typer.BadParameter("not allowed without the other", param_hint=f"{MOVE}, {TO}")
    if move and len(numbers) != 1:
        raise typer.BadParameter(f"expected one broker with {MOVE}", param_hint="--broker")
    if move and topic:
        raise typer.BadParameter(f"not allowed together with {MOVE}", param_hint="--topic")
    moved = [_partition(text) for text in move or ()]
    ChangeOptions(dry_run=dry_run).check(None, changing=bool(move))
    limit = entries_shown(most, form, every=every)
    client = live.admin_configuration(options)
    if to is not None:
        _move(client, numbers[0], moved, to, form, dry_run=dry_run)
        return
    described: list[BrokerDirs] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if topic:
                await described_topics(admin, topic)
            ids = sorted(row.broker_id for row in (await admin.describe_cluster()).brokers)
            check_brokers(numbers, ids)
            brokers = numbers or ids
            described.extend(
                await asyncio.gather(*(_describe(admin, number, topic) for number in brokers))
            )

    live.run(work, client)
    print_report(
        form,
        lambda: _sections(described, limit),
        lambda: {"brokers": [_json(one) for one in described]},
    )
    if any(directory.error for one in described for directory in one.log_dirs):
        raise typer.Exit(1)


def _partition(text: str) -> tuple[str, int]:
    topic, _, digits = text.rpartition(":")
    partition = whole_number(digits, MAX_INT32)
    if not topic or partition is None:
        raise typer.BadParameter(f"{text!r}: expected NAME:PARTITION", param_hint=MOVE)
    return topic, partition


async def _describe(admin: Admin, broker: int, topics: list[str] | None) -> BrokerDirs:
    directories = await admin.describe_log_dirs(broker)
    replicas = await admin.describe_replicas(broker)
    return BrokerDirs(
        broker,
        directories,
        [replica for replica in replicas if not topics or replica.topic in topics],
    )


def _sections(described: list[BrokerDirs], limit: int | None) -> list[Section]:
    directories = [
        (str(one.broker_id), *log_dir_cells(directory))
        for one in described
        for directory in one.log_dirs
    ]
    replicas = [(one.broker_id, replica) for one in described for replica in one.replicas]
    shown = top(sorted(replicas, key=lambda row: (-row[1].size, row)), limit)
    rows = [
        (
            str(broker),
            replica.path,
            replica.topic,
            str(replica.partition),
            bytes_text(replica.size),
            f"{replica.offset_lag:,}",
            FUTURE if replica.is_future else "",
        )
        for broker, replica in shown.first
    ]
    head = (">broker", "directory", "topic", ">partition", ">size", ">lag", "")
    return [
        Section("Log directories", (">broker", *LOG_DIR_HEAD), directories),
        Section("Replicas", head, rows, shown.more("replica"), ("lag", "directory")),
    ]


def _json(one: BrokerDirs) -> dict[str, Any]:
    return {
        "broker_id": one.broker_id,
        "log_dirs": [
            directory._asdict()
            | {"replicas": [_replica(row) for row in one.replicas if row.path == directory.path]}
            for directory in one.log_dirs
        ],
    }


def _replica(row: ReplicaInfo) -> dict[str, Any]:
    return {name: value for name, value in row._asdict().items() if name != "path"}


def _move(
    client: live.Configuration,
    broker: int,
    partitions: list[tuple[str, int]],
    path: str,
    form: Form,
    *,
    dry_run: bool,
) -> None:
    """Move replicas that the broker has to another directory that it has."""
    report = ChangeReport(form, dry_run=dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            current = await _places(admin, broker, partitions, path)
            if not dry_run:
                await admin.alter_replica_log_dirs(broker, dict.fromkeys(partitions, path))
            for (topic, number), before in current.items():
                fields = {"broker_id": broker, "topic": topic, "partition": number}
                report.add(
                    Change(
                        "alter",
                        "replica",
                        f"{topic}-{number} of broker {broker}: from {before} to {path}",
                        fields={**fields, "path": path, "previous_path": before},
                    )
                )

    with report.printed():
        live.run(work, client)


async def _places(
    admin: Admin, broker: int, partitions: list[tuple[str, int]], path: str
) -> dict[tuple[str, int], str]:
    """Return where replicas are; the BrokerError names a replica or directory that is missing."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    paths = [directory.path for directory in await admin.describe_log_dirs(broker)]
    if path not in paths:
        detail = f"broker {broker} has no {path}; it has {', '.join(paths)}"
        raise BrokerError(ErrorCode.LOG_DIR_NOT_FOUND, detail)
    current = {
        (replica.topic, replica.partition): replica.path
        for replica in await admin.describe_replicas(broker)
        if not replica.is_future
    }
    for topic, number in partitions:
        if (topic, number) not in current:
            detail = (
                f"{topic}-{number}: broker {broker} has {plural(len(current), 'replica')} of others"
            )
            raise BrokerError(ErrorCode.REPLICA_NOT_AVAILABLE, detail)
    return {partition: current[partition] for partition in partitions}
