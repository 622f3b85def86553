"""`kafkawire topics`: of captures, what was written and read; of a live cluster, its topics.

Law: what is asked for by name and not there is an error; nothing is deleted that was not named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..input import cluster as live
from ..input.cluster import CapturesOption, ClusterOption, SettingOption
from ..input.sources import AllOption, BrokerOption, Form, FormOption, PortOption, TopOption
from ..render.report import Section, count_text, plural
from .capture_topics import Sort
from .capture_topics import topics as of_captures

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, TopicInfo

CAPTURES_ONLY: Final = ("sort", "most", "every", "port", "broker")


def topics(
    context: typer.Context,
    given: CapturesOption = None,
    bootstrap: ClusterOption = None,
    named: Annotated[
        list[str] | None, typer.Option("--topic", help="Tell more of this one. May be repeated.")
    ] = None,
    create: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:PARTITIONS]", help="Make this topic. May be repeated."),
    ] = None,
    replication_factor: Annotated[
        int, typer.Option(min=-1, help="Of a topic to make; -1 is the broker's.")
    ] = -1,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A setting of a topic to make."),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Delete this topic and its records. May be repeated."),
    ] = None,
    setting: SettingOption = None,
    sort: Annotated[Sort, typer.Option(help="The greatest first.")] = Sort.BYTES,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show topics of captures: records, bytes, codecs, by whom. Or those of a live cluster.

    \b
    kafkawire topics trace*.pcap
    kafkawire topics trace.pcap --sort records --top 50
    kafkawire topics -b localhost:9092
    kafkawire topics -b localhost:9092 --topic orders
    kafkawire topics -b localhost:9092 --create orders:6 --config retention.ms=60000

    Bytes are those of record batches on the wire, as they are compressed.
    """
    if not live.is_live(context, given, bootstrap, CAPTURES_ONLY):
        of_captures(given or [], sort, most, every, form, port, broker)
        return
    if sum(map(bool, (named, create, delete))) > 1:
        raise typer.BadParameter("one at a time", param_hint="--topic, --create, --delete")
    if not create and (config or replication_factor != -1):
        raise typer.BadParameter("is about --create", param_hint="--config, --replication-factor")
    made = [_new(text) for text in create or []]
    configs = live.pairs(config, "--config")
    from kafkawire.net.admin import ADMIN_KEYS

    settings = live.settings(bootstrap or "", setting, ADMIN_KEYS)

    async def work() -> None:
        async with live.asking(settings) as admin:
            for name, partitions in made:
                await admin.create_topic(
                    name,
                    partitions=partitions,
                    replication_factor=replication_factor,
                    configs=configs,
                )
            for name in delete or []:
                await admin.delete_topic(name)
            if not made and not delete:
                await _tell(admin, named, form)

    live.run(work)


def _new(text: str) -> tuple[str, int]:
    """Read NAME[:PARTITIONS]; what name is good is for the broker to say."""
    name, found, count = text.partition(":")
    if found and not (count.isascii() and count.isdecimal() and int(count)):
        raise typer.BadParameter(f"{count!r} partitions", param_hint="--create")
    return name, int(count) if found else -1


async def _tell(admin: Admin, named: list[str] | None, form: Form) -> None:
    names = await admin.list_topics() if named is None else list(dict.fromkeys(named))
    found = list((await admin.describe_topics(names)).values()) if names else []
    ends = await _ends(admin, found) if named else {}
    if form is Form.JSON:
        live.print_json({"topics": [_json(topic, ends) for topic in found]})
    elif named:
        live.print_sections(_section(topic, ends) for topic in found)
    else:
        live.print_sections([_list(found)])


Ends = dict[tuple[str, int], tuple[int, int]]
"""The first offset of a partition's log, and the one behind its last."""


async def _ends(admin: Admin, found: list[TopicInfo]) -> Ends:
    from kafkawire.net.admin import EARLIEST, LATEST

    led = [(topic.name, p.partition) for topic in found for p in topic.partitions if p.leader >= 0]
    first = await admin.list_offsets(dict.fromkeys(led, EARLIEST))
    last = await admin.list_offsets(dict.fromkeys(led, LATEST))
    return {each: (first[each].offset, last[each].offset) for each in led}


def _list(found: list[TopicInfo]) -> Section:
    head = ("topic", ">partitions", ">replicas", "")
    rows = [
        (
            topic.name,
            count_text(len(topic.partitions)),
            count_text(max((len(each.replicas) for each in topic.partitions), default=0)),
            _notes(topic),
        )
        for topic in found
    ]
    return Section("Topics", head, rows)


def _notes(topic: TopicInfo) -> str:
    without = sum(each.leader < 0 for each in topic.partitions)
    behind = sum(len(each.isr) < len(each.replicas) for each in topic.partitions)
    notes = ["internal"] if topic.is_internal else []
    notes += [f"{without} without a leader"] if without else []
    notes += [f"{behind} under-replicated"] if behind else []
    return ", ".join(notes)


def _section(topic: TopicInfo, ends: Ends) -> Section:
    head = (">partition", ">leader", ">epoch", "replicas", "in sync", ">first", ">end")
    rows = []
    for each in topic.partitions:
        first, end = ends.get((topic.name, each.partition), ("", ""))
        rows.append(
            (
                str(each.partition),
                str(each.leader) if each.leader >= 0 else "none",
                str(each.leader_epoch) if each.leader_epoch >= 0 else "",
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.isr)),
                str(first),
                str(end),
            )
        )
    title = f"{topic.name}: {plural(len(topic.partitions), 'partition')}"
    said = (f"id {topic.topic_id.hex()}",) if any(topic.topic_id) else ()
    return Section(title, head, rows, said)


def _json(topic: TopicInfo, ends: Ends) -> dict[str, Any]:
    partitions = []
    for each in topic.partitions:
        made: dict[str, Any] = each._asdict()
        if (topic.name, each.partition) in ends:
            made["first_offset"], made["end_offset"] = ends[topic.name, each.partition]
        partitions.append(made)
    return {
        "name": topic.name,
        "topic_id": topic.topic_id.hex(),
        "is_internal": topic.is_internal,
        "partitions": partitions,
    }
