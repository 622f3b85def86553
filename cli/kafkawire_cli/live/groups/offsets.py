"""Resets committed offsets of a group (`kafkawire groups --reset-offsets`).

Nothing is changed without `--execute`, or while the group has members. An offset outside the
partition becomes its first or its end offset, as with Kafka's own tool.
"""

# over 300 lines: a table of options, the checks that they need, and what they change

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from ...input.existing import existing_offsets
from ...input.inputs import MissingOption
from ...input.options import Form
from ...input.panels import Panel
from ...render.report import Section, print_report
from ..completion import complete_topic
from ..offset_spec import parse_duration, parse_time
from ..unknown_names import check_partition, described_topics
from .state import check_inactive

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, CommittedOffset, Offset

    Partition = tuple[str, int]


class OffsetOptions(NamedTuple):
    """Options that change committed offsets; the names are those of kafka-consumer-groups."""

    reset_offsets: Annotated[
        bool,
        typer.Option(
            "--reset-offsets",
            help="With --group: set committed offsets as one of the options --to-*, "
            "--shift-by or --by-duration says. Only shows the changes, unless --execute is given.",
            rich_help_panel=Panel.OFFSETS,
        ),
    ] = False
    delete_offsets: Annotated[
        bool,
        typer.Option(
            "--delete-offsets",
            help="With --group and --topic: delete its offsets.",
            rich_help_panel=Panel.OFFSETS,
        ),
    ] = False
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:N,...]",
            autocompletion=complete_topic,
            help="Topic, or partitions of it, to change; repeatable.",
            rich_help_panel=Panel.OFFSETS,
        ),
    ] = None
    all_topics: Annotated[
        bool,
        typer.Option(
            "--all-topics",
            help="Change all topics with committed offsets.",
            rich_help_panel=Panel.OFFSETS,
        ),
    ] = False
    to_earliest: Annotated[
        bool,
        typer.Option("--to-earliest", help="To the first offsets.", rich_help_panel=Panel.OFFSETS),
    ] = False
    to_latest: Annotated[
        bool, typer.Option("--to-latest", help="To the end offsets.", rich_help_panel=Panel.OFFSETS)
    ] = False
    to_current: Annotated[
        bool,
        typer.Option(
            "--to-current", help="To the committed offsets.", rich_help_panel=Panel.OFFSETS
        ),
    ] = False
    to_offset: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="To this offset.", rich_help_panel=Panel.OFFSETS),
    ] = None
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="To the first records from this time on (ISO 8601, or @ and milliseconds since "
            "1970).",
            rich_help_panel=Panel.OFFSETS,
        ),
    ] = None
    by_duration: Annotated[
        str | None,
        typer.Option(
            metavar="PnDTnHnMnS",
            help="To the first records newer than this duration.",
            rich_help_panel=Panel.OFFSETS,
        ),
    ] = None
    shift_by: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="By N from the committed offsets.", rich_help_panel=Panel.OFFSETS
        ),
    ] = None
    execute: Annotated[
        bool, typer.Option("--execute", help="Change the offsets.", rich_help_panel=Panel.OFFSETS)
    ] = False


class Target(NamedTuple):
    """Where to: a special timestamp or a time, an offset, or a distance from the committed one."""

    timestamp: int | None = None
    offset: int | None = None
    shift: int | None = None


class NewOffset(NamedTuple):
    """The offset that a partition gets. wanted: before it was limited to those of the partition."""

    offset: int
    wanted: int

    @property
    def note(self) -> str:
        """Say how it was limited; "" if it was not."""
        if self.wanted == self.offset:
            return ""
        where = "after the end" if self.wanted > self.offset else "before the first offset"
        return f"{self.wanted:,} is {where}"


NO_OFFSETS: Final = OffsetOptions()


def checked(options: OffsetOptions, wanted: list[str] | None, now_ms: int) -> Target | None:
    """Check that options fit together; return the target of a reset. now_ms: since 1970."""
    chosen = [
        name for name in OffsetOptions._fields[4:-1] if getattr(options, name) not in (None, False)
    ]
    if not (options.reset_offsets or options.delete_offsets):
        for name, value in options._asdict().items():
            if value not in (None, False):
                raise typer.BadParameter("only allowed with --reset-offsets", param_hint=flag(name))
        return None
    if options.reset_offsets and options.delete_offsets:
        raise typer.BadParameter("not allowed with --reset-offsets", param_hint="--delete-offsets")
    if len(wanted or []) != 1:
        raise typer.BadParameter("expected one group to change", param_hint="--group")
    _check_topics(options)
    if options.delete_offsets:
        if chosen or options.execute:
            name = flag([*chosen, "execute"][0])
            raise typer.BadParameter("only allowed with --reset-offsets", param_hint=name)
        return None
    if len(chosen) != 1:
        raise typer.BadParameter(
            "expected one of " + ", ".join(flag(each) for each in OffsetOptions._fields[4:-1]),
            param_hint="--reset-offsets",
        )
    return _target(options, now_ms)


def _check_topics(options: OffsetOptions) -> None:
    """Check that options name topics, or all."""
    if options.topic and options.all_topics:
        raise typer.BadParameter("not allowed with --all-topics", param_hint="--topic")
    if not (options.topic or options.all_topics):
        change = flag("reset_offsets" if options.reset_offsets else "delete_offsets")
        raise MissingOption(f"required by {change}", param_hint="--topic or --all-topics")


def flag(name: str) -> str:
    """Return the option of a field."""
    return f"--{name.replace('_', '-')}"


def _target(options: OffsetOptions, now_ms: int) -> Target:
    from kafkawire.net.admin import EARLIEST, LATEST

    if options.to_earliest or options.to_latest:
        return Target(timestamp=EARLIEST if options.to_earliest else LATEST)
    if options.to_datetime is not None:
        return Target(timestamp=parse_time(options.to_datetime, "--to-datetime"))
    if options.by_duration is not None:
        return Target(
            timestamp=max(0, now_ms - parse_duration(options.by_duration, "--by-duration"))
        )
    if options.to_offset is not None:
        return Target(offset=options.to_offset)
    return Target(shift=options.shift_by or 0)


async def reset(
    admin: Admin, group_id: str, options: OffsetOptions, target: Target, form: Form
) -> None:
    """Reset offsets to a target, or show what that would do."""
    exists = await check_inactive(admin, group_id)
    committed = await admin.group_offsets(group_id)
    partitions = await partitions_to_change(admin, options, committed)
    offsets = await _find(admin, target, partitions, committed, options)
    if options.execute and offsets:
        numbers = {each: new.offset for each, new in offsets.items()}
        await admin.alter_group_offsets(group_id, numbers)
    done = "set" if options.execute else "a dry run: --execute would set these offsets"
    rows = [
        (
            each[0],
            str(each[1]),
            f"{committed[each].offset:,}" if each in committed else "",
            f"{new.offset:,}",
            new.note,
        )
        for each, new in offsets.items()
    ]
    head = ("topic", ">partition", ">committed", ">new offset", "")
    print_report(
        form,
        lambda: [Section(f"{'Group' if exists else 'New group'} {group_id}: {done}", head, rows)],
        lambda: {
            "group": group_id,
            "is_new": not exists,
            "executed": options.execute,
            "offsets": [_json(each, new, committed) for each, new in offsets.items()],
        },
    )


def _json(
    partition: Partition, new: NewOffset, committed: dict[Partition, CommittedOffset]
) -> dict[str, Any]:
    old = committed.get(partition)
    return {
        "topic": partition[0],
        "partition": partition[1],
        "committed": None if old is None else old.offset,
        "new_offset": new.offset,
        "wanted_offset": new.wanted,
    }


async def partitions_to_change(
    admin: Admin, options: OffsetOptions, committed: dict[Partition, CommittedOffset]
) -> list[Partition]:
    """List the partitions to change."""
    if options.all_topics:
        topics = set(await admin.list_topics())
        return sorted(each for each in committed if each[0] in topics)
    wanted: list[Partition] = []
    for text in options.topic or []:
        name, separator, numbers = text.partition(":")
        if separator:
            if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", numbers):
                raise typer.BadParameter(f"invalid partitions {numbers!r}", param_hint="--topic")
            chosen = [int(number) for number in numbers.split(",")]
            if not options.delete_offsets:
                topic = (await described_topics(admin, [name]))[name]
                for number in chosen:
                    check_partition(topic, number)
            wanted += [(name, number) for number in chosen]
        elif options.delete_offsets:
            wanted += [each for each in sorted(committed) if each[0] == name]
        else:
            description = (await described_topics(admin, [name]))[name]
            wanted += [(name, each.partition) for each in description.partitions]
    return list(dict.fromkeys(wanted))


async def _find(
    admin: Admin,
    target: Target,
    partitions: list[Partition],
    committed: dict[Partition, CommittedOffset],
    options: OffsetOptions,
) -> dict[Partition, NewOffset]:
    """Find the new offset of each partition; none for a shift from no committed offset.

    With --all-topics, partitions that were deleted meanwhile are left out.
    """
    from kafkawire.net.admin import EARLIEST, LATEST

    if target.shift is not None:
        partitions = [each for each in partitions if each in committed]

    async def read(timestamp: int) -> dict[Partition, Offset]:
        wanted = dict.fromkeys(partitions, timestamp)
        if options.all_topics:
            return await existing_offsets(admin, wanted)
        return await admin.list_offsets(wanted)

    firsts, ends = await read(EARLIEST), await read(LATEST)
    if target.timestamp is not None:
        at_time = await read(target.timestamp)
        offsets = {  # -1: no record from then on
            each: ends[each].offset if at.offset < 0 else at.offset
            for each, at in at_time.items()
            if each in ends
        }
    elif target.offset is not None:
        offsets = dict.fromkeys(partitions, target.offset)
    else:
        offsets = {each: committed[each].offset + (target.shift or 0) for each in partitions}
    return {
        each: NewOffset(min(max(wanted, firsts[each].offset), ends[each].offset), wanted)
        for each, wanted in offsets.items()
        if each in firsts and each in ends
    }
