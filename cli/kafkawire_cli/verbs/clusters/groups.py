"""`kafkawire groups`: the groups in captures, or those of a live cluster with their lag.

Lag is the end offset of a partition minus the committed offset; it is unknown if either is. That of
a share group is what its coordinator reports: records that it has not finished. A group that is
deleted while the verb runs does not exist: it is left out, with a note.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import DEFAULTS, Form, OptionalFiles, ReportOptions
from ...input.panels import Panel
from ...live.changes import NO_CHANGE_OPTIONS, ChangeOptions
from ...live.completion import complete_group
from ...live.groups.changes import delete_groups, delete_offsets
from ...live.groups.offsets import NO_OFFSETS, OffsetOptions, checked, reset
from ...live.groups.reading import read_group
from ...live.groups.report import as_json, list_section, sections
from ...live.groups.state import listed_groups, refuse_group
from ...notes import print_note
from ...render.report import print_report
from ..captures.capture_groups import GroupOrder
from ..captures.capture_groups import groups as of_captures

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin


def groups(  # noqa: PLR0913 - options of the verb
    context: typer.Context,
    files: OptionalFiles = None,
    cluster: ClusterOptions = NO_OPTIONS,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Show only this group; repeatable.",
            autocompletion=complete_group,
        ),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help="Delete this group and its offsets; repeatable.",
            autocompletion=complete_group,
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None,
    confirmation: ChangeOptions = NO_CHANGE_OPTIONS,
    offsets: OffsetOptions = NO_OFFSETS,
    sort: Annotated[
        GroupOrder, typer.Option(help="Sort groups of captures by this.")
    ] = GroupOrder.HARM,
    options: ReportOptions = DEFAULTS,
) -> None:
    """Show consumer groups: members, rebalances and causes, lag.

    \b
    kafkawire groups trace*.pcap
    kafkawire groups trace.pcap --group orders --format json | jq '.groups[].rebalances'
    kafkawire groups -b localhost:9092
    kafkawire groups -b localhost:9092 --group orders
    kafkawire groups -b localhost:9092 --group orders --reset-offsets --to-earliest --all-topics

    With --bootstrap-server, shows the groups of a live cluster and their current lag. In captures,
    lag is that of the last commit, relative to the end offsets in earlier Fetch and ListOffsets
    responses; it is empty if there were none.

    Exit code 1: an error of the cluster, such as an unknown group, or a deletion that was refused
    at the prompt; 2: usage error, such as a deletion without --yes where no terminal can confirm.
    """
    if not live.is_live(context, files, cluster, "sort"):
        of_captures(files or [], wanted, sort, options)
        return
    if delete and wanted:
        raise typer.BadParameter("not allowed together", param_hint="--group, --delete")
    target = checked(offsets, wanted, round(time.time() * 1000))
    deleting = "--delete" if delete else "--delete-offsets" if offsets.delete_offsets else None
    confirmation.check(deleting, changing=deleting is not None)
    client = live.admin_configuration(cluster)
    if delete:
        delete_groups(client, delete, confirmation, options.form)
        return
    if wanted and offsets.delete_offsets:
        delete_offsets(client, wanted[0], offsets, confirmation, options.form)
        return

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if wanted and target is not None:
                await reset(admin, wanted[0], offsets, target, options.form)
            else:
                await _show(admin, wanted, options.form)

    live.run(work, client)


async def _show(admin: Admin, wanted: list[str] | None, form: Form) -> None:
    chosen = await listed_groups(admin, wanted)
    topics = set(await admin.list_topics())
    read = {row.group_id: await read_group(admin, row, topics) for row in chosen}
    existing = [group for group in read.values() if group is not None]
    deleted = [group_id for group_id, group in read.items() if group is None]
    if existing or wanted is None:
        print_report(
            form,
            lambda: (
                [part for group in existing for part in sections(group)]
                if wanted
                else [list_section(existing)]
            ),
            lambda: {"groups": [as_json(group) for group in existing]},
            "No groups found.",
        )
    if deleted and wanted is not None:
        refuse_group(deleted[0])
    for group_id in deleted:
        print_note(f"left out, deleted since it was listed: {group_id!r}")
