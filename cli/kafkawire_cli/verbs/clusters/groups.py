"""`kafkawire groups`: the groups in captures, or those of a live cluster with their lag.

Lag is the end offset of a partition minus the committed offset; it is unknown if either is. That of
a share group is what its coordinator reports: records that it has not finished. A group that is
deleted while the verb runs does not exist: it is left out, with a note.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

<<<<<<< HEAD
from kafkawire.display import plural
=======
from kafkawire.display import printable
>>>>>>> e42ca64c (kafkawire groups: members, epochs, assignments and lag of share groups and Streams groups)

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import DEFAULTS, Form, OptionalFiles, ReportOptions
from ...input.panels import Panel
from ...live.changes import NO_CHANGE_OPTIONS, ChangeOptions
from ...live.completion import complete_group
<<<<<<< HEAD
from ...live.group_changes import delete_groups, delete_offsets
from ...live.group_offsets import NO_OFFSETS, OffsetOptions, checked, reset
from ...live.group_state import listed_groups, refuse_group
from ...notes import print_note
from ...render.report import Section, count_text, print_report, ranges_text
=======
from ...live.groups.changes import delete_groups, delete_offsets
from ...live.groups.offsets import NO_OFFSETS, OffsetOptions, checked, reset
from ...live.groups.reading import read_group
from ...live.groups.report import as_json, list_section, sections
from ...live.groups.state import listed_groups, refuse_group
from ...notes import print_note
from ...render.report import print_report
>>>>>>> e42ca64c (kafkawire groups: members, epochs, assignments and lag of share groups and Streams groups)
from ..captures.capture_groups import GroupOrder
from ..captures.capture_groups import groups as of_captures

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin


def groups(  # noqa: PLR0913 - options of the verb
    context: typer.Context,
    given: OptionalFiles = None,
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
    if not live.is_live(context, given, cluster, "sort"):
        of_captures(given or [], wanted, sort, options)
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
<<<<<<< HEAD
        print_note(f"left out, deleted since it was listed: {group_id!r}")


async def _group(admin: Admin, listing: GroupListing, known: set[str]) -> Group | None:
    """Read a group; None if it was deleted since it was listed. known: the topics."""
    from kafkawire.net.admin import LATEST

    is_described = listing.type.lower() in DESCRIBED
    if not is_described and listing.protocol_type != CONSUMERS:
        return Group(listing, None, [])  # share and streams groups have no such offsets
    info = None
    if is_described:
        info = await existing_group(admin, listing.group_id)
        if info is None:
            return None
    committed = await if_exists(admin.group_offsets(listing.group_id))
    if committed is None:
        return None
    ends = await existing_offsets(admin, {each: LATEST for each in committed if each[0] in known})
    commits = [
        Commit(
            *partition,
            offset=at.offset,
            end=ends[partition].offset if partition in ends else None,
            metadata=at.metadata,
        )
        for partition, at in sorted(committed.items())
    ]
    return Group(listing, info, commits)


def _assigned(group: GroupInfo, member: MemberInfo) -> dict[str, list[int]]:
    """Decode the assignment of a consumer; other protocol types are opaque."""
    if group.protocol_type != CONSUMERS or not member.assignment:
        return {}
    from kafkawire.errors import KafkaWireError
    from kafkawire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
    from kafkawire.protocol.versioned import decode_versioned

    try:
        _, found = decode_versioned("ConsumerProtocolAssignment", member.assignment)
    except KafkaWireError:
        return {}  # members may write any bytes
    assert isinstance(found, ConsumerProtocolAssignment)
    return {each.topic: sorted(each.partitions) for each in found.assigned_partitions}


# -- as text


def _list(found: list[Group]) -> Section:
    head = ("group", "state", "type", "protocol", ">members", ">lag")
    rows = [
        (
            group.listing.group_id,
            group.info.state if group.info else group.listing.state,
            group.listing.type.lower() or "classic",
            group.info.protocol if group.info else "",
            count_text(len(group.info.members)) if group.info else "?",
            _number(group.lag),
        )
        for group in found
    ]
    return Section("Groups", head, rows)


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _sections(group: Group) -> list[Section]:
    info = group.info
    state = info.state if info else group.listing.state
    lines = [f"protocol {info.protocol}"] if info and info.protocol else []
    title = f"Group {group.listing.group_id}: {state}"
    if group.lag is not None:
        title += f", lag {group.lag:,}"
    sections = [Section(title, lines=[*lines, plural(len(group.commits), "commit")])]
    if info is not None:
        rows = [
            (
                each.member_id,
                each.group_instance_id or "",
                each.client_id,
                each.client_host,
                "  ".join(
                    f"{topic} {ranges_text(n)}" for topic, n in _assigned(info, each).items()
                ),
            )
            for each in info.members
        ]
        sections.append(
            Section("Members", ("member", "instance", "client", "host", "assigned"), rows)
        )
    commits = [
        (
            each.topic,
            str(each.partition),
            f"{each.offset:,}",
            _number(each.end),
            _number(each.lag),
            each.metadata,
        )
        for each in group.commits
    ]
    head = ("topic", ">partition", ">committed", ">end", ">lag", "metadata")
    return [*sections, Section("Offsets", head, commits)]


# -- as JSON


def _json(group: Group) -> dict[str, Any]:
    info = group.info
    fields: dict[str, Any] = group.listing._asdict()
    if info is not None:
        fields["state"], fields["protocol"] = info.state, info.protocol
        fields["members"] = [
            {
                "member_id": each.member_id,
                "group_instance_id": each.group_instance_id,
                "client_id": each.client_id,
                "client_host": each.client_host,
                "assigned": _assigned(info, each),
            }
            for each in info.members
        ]
    fields["offsets"] = [each._asdict() | {"lag": each.lag} for each in group.commits]
    fields["lag"] = group.lag
    return fields
=======
        print_note(f"left out, deleted since it was listed: {group_id!r}")
>>>>>>> e42ca64c (kafkawire groups: members, epochs, assignments and lag of share groups and Streams groups)
