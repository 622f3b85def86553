"""`kafkawire topics`: the topics in captures, or those of a live cluster.

A topic named on the command line that does not exist is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kafkawire.display import plural

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import DEFAULTS, Form, OptionalFiles, ReportOptions
from ...live.changes import NO_CHANGE_OPTIONS, ChangeOptions
from ...live.completion import complete_topic
from ...live.offset_spec import parse_time
from ...live.topic_changes import NO_TOPIC_CHANGES, TopicChanges, change, checked
from ...live.topic_configs import TopicConfigs, read_configs
from ...live.unknown_names import described_topics
from ...render.report import Section, count_text, print_report
from ..captures.capture_topics import Sort
from ..captures.capture_topics import topics as of_captures

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, TopicInfo


def topics(  # noqa: PLR0913 - options of the verb
    context: typer.Context,
    files: OptionalFiles = None,
    cluster: ClusterOptions = NO_OPTIONS,
    named: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="NAME",
            help="Describe this topic; repeatable.",
            autocompletion=complete_topic,
        ),
    ] = None,
    every_config: Annotated[
        bool,
        typer.Option(
            "--all-configs",
            help="With --topic: show all its configuration [default: what is set for the topic].",
        ),
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --topic: show the offset of the first record not older (ISO 8601, or @ and "
            "milliseconds since 1970).",
        ),
    ] = None,
    changes: TopicChanges = NO_TOPIC_CHANGES,
    confirmation: ChangeOptions = NO_CHANGE_OPTIONS,
    sort: Annotated[Sort, typer.Option(help="Sort topics by this, largest first.")] = Sort.BYTES,
    options: ReportOptions = DEFAULTS,
) -> None:
    """Show topics: records, bytes, codecs, clients.

    \b
    kafkawire topics trace*.pcap
    kafkawire topics trace.pcap --sort records --top 50
    kafkawire topics -b localhost:9092
    kafkawire topics -b localhost:9092 --topic orders --all-configs
    kafkawire topics -b localhost:9092 --topic orders --at 2026-01-31T12:00:00Z
    kafkawire topics -b localhost:9092 --create orders:6 --topic-config retention.ms=60000
    kafkawire topics -b localhost:9092 --alter orders:12 --delete-config retention.ms
    kafkawire topics -b localhost:9092 --delete orders --dry-run

    With --bootstrap-server, lists, describes, creates, alters or deletes topics of a live cluster.
    In captures, bytes are those of (compressed) record batches.

    Exit code 1: an error of the cluster, such as an unknown topic, or a deletion that was refused
    at the prompt; 2: usage error, such as a deletion without --yes where no terminal can confirm.
    """
    if not live.is_live(context, files, cluster, "sort"):
        of_captures(files or [], sort, options)
        return
    if sum(map(bool, (named, changes.create, changes.alter, changes.delete))) > 1:
        hint = "--topic, --create, --alter, --delete"
        raise typer.BadParameter("not allowed together", param_hint=hint)
    if at is not None and not named:
        raise typer.BadParameter("only allowed with --topic", param_hint="--at")
    if every_config and not named:
        raise typer.BadParameter("only allowed with --topic", param_hint="--all-configs")
    timestamp = None if at is None else parse_time(at, "--at")
    to_change = checked(changes)
    confirmation.check("--delete" if changes.delete else None, changing=changes.any)
    client = live.admin_configuration(cluster)
    if changes.any:
        change(client, to_change, confirmation, options.form)
        return

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if named:
                await _describe(admin, named, timestamp, options.form, every_config)
            else:
                await _show(admin, options.form)

    live.run(work, client)


async def _show(admin: Admin, form: Form) -> None:
    """List the topics."""
    described = await admin.describe_topics(None)  # one request: a listed topic may be deleted
    rows = sorted(described.values(), key=lambda topic: topic.name)
    print_report(
        form,
        lambda: [_list(rows)],
        lambda: {"topics": [_json(topic) for topic in rows]},
        "No topics found.",
    )


async def _describe(
    admin: Admin, named: list[str], timestamp: int | None, form: Form, every_config: bool
) -> None:
    """Show topics with their offsets and configurations."""
    rows = list((await described_topics(admin, named)).values())
    ends = await _ends(admin, rows, timestamp)
    configs = await read_configs(admin, [topic.name for topic in rows], every=every_config)
    print_report(
        form,
        lambda: [part for topic in rows for part in _sections(topic, ends, configs[topic.name])],
        lambda: {"topics": [_json(topic, ends) | configs[topic.name].json() for topic in rows]},
    )


Ends = dict[tuple[str, int], tuple[int, ...]]
"""First offset and end offset of each partition, and where wanted the offset of a time."""


async def _ends(admin: Admin, listed: list[TopicInfo], timestamp: int | None) -> Ends:
    from kafkawire.net.admin import EARLIEST, LATEST

    online = [
        (topic.name, p.partition) for topic in listed for p in topic.partitions if p.leader >= 0
    ]
    first = await admin.list_offsets(dict.fromkeys(online, EARLIEST))
    last = await admin.list_offsets(dict.fromkeys(online, LATEST))
    ends = {each: (first[each].offset, last[each].offset) for each in online}
    if timestamp is None:
        return {**ends}
    offsets = await admin.list_offsets(dict.fromkeys(online, timestamp))
    return {
        each: (
            *ends[each],
            offsets[each].offset if offsets[each].offset >= 0 else last[each].offset,
        )
        for each in online
    }


def _list(listed: list[TopicInfo]) -> Section:
    head = ("topic", ">partitions", ">replicas", "")
    rows = [
        (
            topic.name,
            count_text(len(topic.partitions)),
            count_text(max((len(each.replicas) for each in topic.partitions), default=0)),
            _notes(topic),
        )
        for topic in listed
    ]
    return Section("Topics", head, rows)


def _notes(topic: TopicInfo) -> str:
    without = sum(each.leader < 0 for each in topic.partitions)
    behind = sum(len(each.isr) < len(each.replicas) for each in topic.partitions)
    notes = ["internal"] if topic.is_internal else []
    notes += [f"{without} without a leader"] if without else []
    notes += [f"{behind} under-replicated"] if behind else []
    return ", ".join(notes)


def _sections(topic: TopicInfo, ends: Ends, configs: TopicConfigs) -> list[Section]:
    head: tuple[str, ...] = (">partition", ">leader", ">epoch", "replicas", "in sync")
    head += (">first", ">end", ">at")[: max(map(len, ends.values()), default=2)]
    rows = []
    for each in topic.partitions:
        offsets = ends.get((topic.name, each.partition), ())
        rows.append(
            (
                str(each.partition),
                str(each.leader) if each.leader >= 0 else "none",
                str(each.leader_epoch) if each.leader_epoch >= 0 else "",
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.isr)),
                *map(str, offsets),
                *[""] * (len(head) - 5 - len(offsets)),
            )
        )
    title = f"{topic.name}: {plural(len(topic.partitions), 'partition')}"
    lines = (f"id {topic.topic_id.hex()}",) if any(topic.topic_id) else ()
    return [Section(title, head, rows, (*lines, *configs.lines())), *configs.sections()]


def _json(topic: TopicInfo, ends: Ends | None = None) -> dict[str, Any]:
    partitions = []
    for each in topic.partitions:
        fields: dict[str, Any] = each._asdict()
        offsets = (ends or {}).get((topic.name, each.partition), ())
        fields |= zip(("first_offset", "end_offset", "offset_at"), offsets, strict=False)
        partitions.append(fields)
    return {
        "name": topic.name,
        "topic_id": topic.topic_id.hex(),
        "is_internal": topic.is_internal,
        "partitions": partitions,
    }
