"""`kafkawire transactions`: the transactions in captures, or those of a live cluster.

A transaction hangs where a partition has records of it that no coordinator knows of (KIP-664).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import DEFAULTS, Form, OptionalFiles, ReportOptions
from ...input.panels import Panel
from ...live.changes import NO_CHANGE_OPTIONS, Change, ChangeOptions, ChangeReport
from ...live.completion import complete_topic
from ...live.unknown_names import described_topics
from ...render.consumed_records import timestamp_text
from ...render.report import Section, print_report, ranges_text
from ..captures.capture_transactions import IdOrder
from ..captures.capture_transactions import transactions as of_captures

if TYPE_CHECKING:
    from kafkawire.net.admin import (
        Admin,
        HangingTransaction,
        ProducerInfo,
        TransactionInfo,
        TransactionListing,
    )

ABORT: Final = "--abort-hanging"
AGE_S: Final = 900
"""As `transaction.max.timeout.ms` of brokers by default."""


def transactions(  # noqa: PLR0913 - options of the verb
    context: typer.Context,
    files: OptionalFiles = None,
    cluster: ClusterOptions = NO_OPTIONS,
    named: Annotated[
        list[str] | None,
        typer.Option("--transactional-id", metavar="ID", help="Describe this id; repeatable."),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE", help="List only those in this state; repeatable."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="List only ids that match this as a whole (RE2)."),
    ] = None,
    longer_than: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", min=0, help="List only those that take longer."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Show the producers of this topic's partitions, or find hanging transactions in "
            "it; repeatable.",
            autocompletion=complete_topic,
        ),
    ] = None,
    hanging: Annotated[
        bool, typer.Option("--hanging", help="Find transactions that no coordinator will end.")
    ] = False,
    older_than: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="With --hanging: age of the last record, at least transaction.max.timeout.ms "
            f"[default: {AGE_S}].",
            show_default=False,
        ),
    ] = None,
    abort_hanging: Annotated[
        bool,
        typer.Option(
            ABORT,
            help="Abort the transactions that --hanging finds.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = False,
    confirmation: ChangeOptions = NO_CHANGE_OPTIONS,
    sort: Annotated[
        IdOrder, typer.Option(help="Sort transactional ids of captures by this.")
    ] = IdOrder.HARM,
    options: ReportOptions = DEFAULTS,
) -> None:
    """Show transactions: partitions, aborts, hanging ones.

    \b
    kafkawire transactions trace*.pcap
    kafkawire transactions trace.pcap -f json | jq '.transactional_ids[]'
    kafkawire transactions -b localhost:9092 --state Ongoing --longer-than 60
    kafkawire transactions -b localhost:9092 --transactional-id billing
    kafkawire transactions -b localhost:9092 --topic orders
    kafkawire transactions -b localhost:9092 --hanging
    kafkawire transactions -b localhost:9092 --abort-hanging --topic orders --dry-run

    With --bootstrap-server, shows the transactions of a live cluster. A hanging one keeps consumers
    with read_committed from reading on; in captures, it is one without an end.

    In captures, each transactional id has its producers, counts of committed and aborted
    transactions, and their duration. Of each id, the last 100 committed transactions are listed,
    and the last 100 others.

    Exit code 1: an error of the cluster, such as an unknown id, or a change that was refused at
    the prompt; 2: usage error, such as --abort-hanging without --yes where no terminal can confirm.
    """
    if not live.is_live(context, files, cluster, "sort"):
        of_captures(files or [], options, sort)
        return
    finds = hanging or abort_hanging
    filters = bool(state or pattern or longer_than is not None)
    _check_alone(named=bool(named), filters=filters, topic=bool(topic), finds=finds)
    if older_than is not None and not finds:
        raise typer.BadParameter("only allowed with --hanging", param_hint="--older-than")
    confirmation.check(ABORT if abort_hanging else None, changing=abort_hanging)
    client = live.admin_configuration(cluster)
    without_end: list[HangingTransaction] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if finds:
                age_s = AGE_S if older_than is None else older_than
                without_end.extend(await _hanging(admin, topic, age_s))
            elif named:
                _print_described([await admin.describe_transaction(each) for each in named], form)
            elif topic:
                _print_producers(await _producers(admin, topic), form)
            else:
                listed = await admin.list_transactions(
                    states=state or (),
                    longer_than_ms=-1 if longer_than is None else longer_than * 1000,
                    pattern=pattern,
                )
                _print_list(listed, form)

    form = options.form
    live.run(work, client)
    if abort_hanging and without_end:
        _abort(client, without_end, confirmation, form)
    elif finds:
        _print_hanging(without_end, form)


def _check_alone(*, named: bool, filters: bool, topic: bool, finds: bool) -> None:
    if named + filters + (topic or finds) > 1:
        hint = "--transactional-id, --topic or --hanging, --state, --pattern, --longer-than"
        raise typer.BadParameter("not allowed together", param_hint=hint)


async def _hanging(admin: Admin, topics: list[str] | None, age_s: int) -> list[HangingTransaction]:
    if topics:
        await described_topics(admin, topics)  # an unknown one is an error, with a similar name
    before_ms = round((time.time() - age_s) * 1000)
    return await admin.find_hanging_transactions(topics, before_ms=before_ms)


def _abort(
    client: live.Configuration,
    hanging: list[HangingTransaction],
    confirmation: ChangeOptions,
    form: Form,
) -> None:
    """Abort hanging transactions, once that is confirmed, and report each."""
    report = ChangeReport(form, dry_run=confirmation.dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            for each in hanging:
                if not confirmation.dry_run:
                    await admin.abort_hanging_transaction(each)
                report.add(Change("abort", "transaction", _name(each)))

    confirmation.confirm([f"transaction {_name(each)}" for each in hanging], "abort")
    with report.printed():
        live.run(work, client)


def _name(hanging: HangingTransaction) -> str:
    producer = f"{hanging.producer_id}/{hanging.producer_epoch}"
    where = f"{hanging.topic}-{hanging.partition}"
    return f"of producer {producer} in {where} from offset {hanging.start_offset}"


Producers = dict[tuple[str, int], tuple["ProducerInfo", ...]]


async def _producers(admin: Admin, topics: list[str]) -> Producers:
    described = await described_topics(admin, topics)
    return {
        (name, each.partition): await admin.describe_producers(name, each.partition)
        for name, info in described.items()
        for each in info.partitions
    }


def _time(milliseconds: int) -> str:
    return "" if milliseconds < 0 else timestamp_text(milliseconds)


def _offset(offset: int) -> str:
    return "" if offset < 0 else f"{offset:,}"


def _print_list(listings: list[TransactionListing], form: Form) -> None:
    rows = [(each.transactional_id, f"{each.producer_id}", each.state) for each in listings]
    head = ("transactional id", ">producer id", "state")
    print_report(
        form,
        lambda: [Section("Transactional ids", head, rows)],
        lambda: {"transactional_ids": [each._asdict() for each in listings]},
        "No transactional ids found.",
    )


def _print_described(transactions: list[TransactionInfo], form: Form) -> None:
    head = ("transactional id", "state", "producer", ">timeout", "begin (UTC)", "partitions")
    rows = [
        (
            each.transactional_id,
            each.state,
            f"{each.producer_id}/{each.producer_epoch}",
            f"{each.timeout_ms:,} ms",
            _time(each.start_ms),
            "  ".join(f"{name} {ranges_text(indexes)}" for name, indexes in _topics(each).items()),
        )
        for each in transactions
    ]

    def as_json() -> dict[str, Any]:
        return {
            "transactions": [
                each._asdict() | {"partitions": _topics(each)} for each in transactions
            ]
        }

    print_report(form, lambda: [Section("Transactions", head, rows)], as_json)


def _topics(info: TransactionInfo) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in info.partitions:
        topics.setdefault(name, []).append(index)
    return topics


def _print_producers(by_partition: Producers, form: Form) -> None:
    head = ("partition", "producer", ">last sequence", "last record (UTC)", ">transaction from")
    rows = [
        (
            f"{name}-{index}",
            f"{each.producer_id}/{each.producer_epoch}",
            f"{each.last_sequence:,}",
            _time(each.last_timestamp),
            _offset(each.start_offset),
        )
        for (name, index), producers in by_partition.items()
        for each in producers
    ]

    def as_json() -> dict[str, Any]:
        return {
            "producers": [
                {"topic": name, "partition": index, **each._asdict()}
                for (name, index), producers in by_partition.items()
                for each in producers
            ]
        }

    print_report(form, lambda: [Section("Producers", head, rows)], as_json, "No producers found.")


def _print_hanging(hanging: list[HangingTransaction], form: Form) -> None:
    head = ("partition", "producer", ">from offset", "last record (UTC)")
    rows = [
        (
            f"{each.topic}-{each.partition}",
            f"{each.producer_id}/{each.producer_epoch}",
            _offset(each.start_offset),
            _time(each.last_timestamp),
        )
        for each in hanging
    ]
    print_report(
        form,
        lambda: [Section("Hanging transactions", head, rows)],
        lambda: {"hanging": [each._asdict() for each in hanging]},
        "No hanging transactions found.",
    )
